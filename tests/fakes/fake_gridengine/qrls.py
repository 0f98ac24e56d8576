"""``qrls``: releases held jobs."""

from fake_drm import transitions
from fake_drm.arguments import parse_anywhere
from fake_gridengine import changes, jobs
from fake_gridengine.qhold import USAGE


def main(store, argv):
    """Release; returns the exit code."""
    given, ids = parse_anywhere(argv, {"h", "t"}, set(), USAGE, joined=False)

    def act(record, now, text):
        if record["why"] != "error":
            transitions.release(record)
        print("modified hold of job %s" % text)
        return 0

    ids = jobs.with_tasks(ids, dict(given).get("t"))
    return changes.each(store, "qrls", ids, ('denied: job "%s" does not exist', 3), act)
