"""``bstop``: suspends running jobs (USUSP) and pending ones (PSUSP)."""

from fake_drm import submission, transitions
from fake_drm.arguments import parse_anywhere, refuse
from fake_lsf import changes

USAGE = refuse("%s: Illegal option.\nUsage: bstop [options] [job_ID ...]\n", 255)


def main(store, argv):
    """Suspend; returns the exit code."""
    ids = parse_anywhere(argv, {"u", "q", "J"}, {"a"}, USAGE, False)[1]

    def act(record, now):
        who = "user" if submission.acting_user()[1] == record["uid"] else "admin"
        if record["state"] == "ended":
            return None, changes.GONE
        if record["state"] == "pending":
            transitions.hold(record, "held_" + who)
        else:
            transitions.suspend(record, now, who)
        return "is being stopped", None

    return changes.each(store, ids, act)
