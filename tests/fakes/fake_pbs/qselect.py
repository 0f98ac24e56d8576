"""``qselect``: the ids of living jobs, one a line, by name and user."""

from fake_drm.arguments import parse_anywhere, refuse
from fake_pbs import jobs, words


def main(store, argv):
    """List; returns the exit code."""
    usage = refuse("usage: qselect [-N name] [-u user_name] ...\n", 2)
    given, rest = parse_anywhere(argv, {"N", "u"}, set(), usage)
    if rest:
        raise usage(rest[0])
    options = dict(given)
    jobs.require_pbs(store, "qselect")
    for record in store.all():
        if jobs.remembered(store, record) and not words.is_ended(record) and _selects(
            options, record
        ):
            print(words.job_id(store, record))
    return 0


def _selects(options, record):
    return (
        options.get("N", record["name"]) == record["name"]
        and options.get("u", record["user"]) == record["user"]
    )
