"""``qmod``: -sj and -usj suspend and resume, -cj clears an error state, -rj reschedules."""

from fake_drm import submission, transitions
from fake_drm.arguments import parse_anywhere
from fake_drm.cli import not_simulated
from fake_gridengine import changes
from fake_gridengine.qhold import USAGE

ACTIONS = ("sj", "usj", "cj", "rj")


def main(store, argv):
    """Change; returns the exit code."""
    given, ids = parse_anywhere(argv, set(), set(ACTIONS) | {"f", "sq", "usq", "cq"}, USAGE, False)
    asked = [name for name, _ in given if name in ACTIONS]
    if not asked:
        raise not_simulated("qmod", " ".join("-" + name for name, _ in given))
    user, uid = submission.acting_user()[:2]
    node = store.settings["node"]

    def act(record, now, text):
        return _ACT[asked[0]](store, record, now, "%s@%s" % (user, node), text)

    return changes.each(store, "qmod", ids, ('invalid queue or job "%s"', 1), act)


def _suspend(store, record, now, who, text):
    transitions.suspend(record, now, "user")
    print("%s - suspended job %s" % (who.partition("@")[0], text))
    return 0


def _resume(store, record, now, who, text):
    transitions.resume(record, now)
    print("%s - unsuspended job %s" % (who.partition("@")[0], text))
    return 0


def _clear(store, record, now, who, text):
    if record["why"] == "error":
        record["why"] = ""
        record["extra"].pop("error_reason", None)
    print("%s cleared error state of job %s" % (who, text))
    return 1  # so the real one


def _reschedule(store, record, now, who, text):
    if record["state"] != "running":
        print("Job %s is not running" % text)
        return 1
    if not record["requeue"] and submission.acting_user()[1] != 0:
        print("denied: job \"%s\" is not rerunable" % text)
        return 1
    node = record["node"] or store.settings["node"]
    transitions.requeue(record, "requeued", now, float(store.option(record, "requeue_delay")))
    print("Pushed rescheduling of job %s on host %s" % (text, node))
    return 0


_ACT = {"sj": _suspend, "usj": _resume, "cj": _clear, "rj": _reschedule}
