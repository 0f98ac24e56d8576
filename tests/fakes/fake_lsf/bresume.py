"""``bresume``: lets suspended jobs go on."""

from fake_drm import transitions
from fake_drm.arguments import parse_anywhere, refuse
from fake_lsf import changes

USAGE = refuse("%s: Illegal option.\nUsage: bresume [options] [job_ID ...]\n", 255)


def main(store, argv):
    """Resume; returns the exit code."""
    ids = parse_anywhere(argv, {"u", "q", "J"}, set(), USAGE, False)[1]

    def act(record, now):
        if record["state"] == "ended":
            return None, changes.GONE
        if record["state"] == "pending":
            transitions.release(record)
        else:
            transitions.resume(record, now)
        return "is being resumed", None

    return changes.each(store, ids, act)
