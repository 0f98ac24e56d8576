"""``qrerun``: puts running jobs back into the queue; for operators."""

from fake_drm import submission, transitions
from fake_drm.arguments import parse_anywhere, refuse
from fake_pbs import changes


def main(store, argv):
    """Requeue; returns the exit code."""
    usage = refuse("usage: qrerun [-W force] job_identifier...\n", 2)
    ids = parse_anywhere(argv, {"W"}, {"f"}, usage)[1]

    def act(record, now):
        user, uid = submission.acting_user()[:2]
        if uid != 0:
            return "Unauthorized Request ", 15007
        if not record["requeue"]:
            return "job is not rerunnable", 15038
        if record["state"] != "running":
            return "Request invalid for state of job", 15018
        transitions.note(record, now, "rerun", "%s@%s" % (user, store.settings["cluster"]))
        transitions.requeue(record, "requeued", now, float(store.option(record, "requeue_delay")))
        return None

    return changes.each(store, "qrerun", ids, act)
