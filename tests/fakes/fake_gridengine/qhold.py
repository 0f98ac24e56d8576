"""``qhold``: keeps jobs from starting."""

from fake_drm import transitions
from fake_drm.arguments import parse_anywhere, refuse
from fake_gridengine import changes, jobs

USAGE = refuse("error: unknown option %s\n", 1)


def main(store, argv):
    """Hold; returns the exit code."""
    given, ids = parse_anywhere(argv, {"h", "t"}, set(), USAGE, joined=False)

    def act(record, now, text):
        transitions.hold(record, "held_user")
        print("modified hold of job %s" % text)
        return 0

    ids = jobs.with_tasks(ids, dict(given).get("t"))
    return changes.each(store, "qhold", ids, ('denied: job "%s" does not exist', 3), act)
