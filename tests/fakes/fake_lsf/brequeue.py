"""``brequeue``: ends running jobs and puts them back into the queue."""

from fake_drm import transitions
from fake_drm.arguments import parse_anywhere, refuse
from fake_lsf import changes

USAGE = refuse("%s: Illegal option.\nUsage: brequeue [options] [job_ID ...]\n", 255)


def main(store, argv):
    """Requeue; returns the exit code."""
    given, ids = parse_anywhere(argv, {"u", "J"}, {"a", "d", "e", "r", "H"}, USAGE, False)
    options = dict(given)

    def act(record, now):
        if record["state"] != "running":
            return None, "Job is not in a state that can be requeued"
        delay = float(store.option(record, "requeue_delay"))
        why = "requeued_held" if "H" in options else "begin_time"
        transitions.requeue(record, "requeued", now, delay, why)
        return "is being requeued", None

    return changes.each(store, ids, act)
