"""``qhold``: keeps jobs from starting (again)."""

from fake_drm import submission, transitions
from fake_drm.arguments import parse_anywhere, refuse
from fake_pbs import changes, words


def main(store, argv):
    """Hold; returns the exit code."""
    usage = refuse("usage: qhold [-h hold_list] job_identifier...\n", 2)
    given, ids = parse_anywhere(argv, {"h", "t"}, set(), usage)
    types = dict(given).get("h", "u")

    def act(record, now):
        record["extra"]["hold_types"] = types
        transitions.hold(record, "held_user" if types == "u" else "held_admin")
        user = submission.acting_user()[0]
        record["extra"]["comment"] = "Job held by %s on %s" % (user, words.ctime(now))
        return None

    return changes.each(store, "qhold", ids, act)
