"""``qdel``: deletes jobs."""

from fake_drm import submission, transitions
from fake_drm.arguments import parse_anywhere, refuse
from fake_pbs import changes, words


def main(store, argv):
    """Delete; returns the exit code."""
    usage = refuse("usage: qdel [-W force|suppress_email=X] [-x] job_identifier...\n", 2)
    given, ids = parse_anywhere(argv, {"W", "m", "t"}, {"x", "p", "a"}, usage)
    forced = "force" in [value for name, value in given if name == "W"] or ("p", True) in given

    def act(record, now):
        user, uid = submission.acting_user()[:2]
        record["extra"]["deleted_by"] = "%s@%s" % (user, store.settings["cluster"])
        record["extra"]["forced"] = forced
        if words.is_torque(store):
            record["extra"]["session"] = (record["session"] or [1000 + record["id"]])[0]
        if record["state"] == "ended":
            return None
        if record["state"] == "running":
            transitions.note(record, now, "deleted", record["extra"]["deleted_by"])
        transitions.cancel(record, uid, now, float(store.option(record, "completing")))
        return None

    return changes.each(store, "qdel", ids, act)
