"""``bkill``: ends jobs, or sends them a signal."""

import signal

from fake_drm import process, submission, transitions
from fake_drm.arguments import parse_anywhere, refuse
from fake_drm.cli import CommandError
from fake_lsf import changes

USAGE = refuse("%s: Illegal option.\nUsage: bkill [options] [job_ID ...]\n", 255)


def main(store, argv):
    """Kill; returns the exit code."""
    given, ids = parse_anywhere(
        argv, {"s", "u", "q", "m", "J", "g", "app", "C"}, {"r", "b", "d", "stat"}, USAGE, False
    )
    options = dict(given)
    if not ids:
        raise CommandError("Job ID, job name or user name has to be specified.\n", 255)
    name = options.get("s")
    number = None if name is None else _number(name)

    def act(record, now):
        if record["state"] == "ended" and not record["session"]:
            return None, changes.GONE
        if number is not None and number != signal.SIGKILL:
            return _send(record, number)
        return _kill(store, record, now, "r" in options)

    return changes.each(store, ids, act)


def _number(name):
    known = {item.name[3:]: item.value for item in signal.Signals}
    word = name.upper()[3:] if name.upper().startswith("SIG") else name.upper()
    if word.isdigit():
        return int(word)
    if word not in known:
        raise CommandError("%s: Illegal signal value\n" % name, 255)
    return known[word]


def _send(record, number):
    if record["session"]:
        pid = record["session"][0]
        for one in [pid] + process.descendants(pid):
            process.send(one, number)
    return "is being signaled", None


def _kill(store, record, now, forced):
    user, uid = submission.acting_user()[:2]
    if record["state"] == "ended":
        return "is being terminated", None
    transitions.note(record, now, "killed", "KILL %s" % user)
    if forced:
        word = "TERM_FORCE_OWNER" if uid == record["uid"] else "TERM_FORCE_ADMIN"
        record["extra"].update(termination=word, forced=True)
        record["shown"] = None
    transitions.cancel(record, uid, now, float(store.option(record, "completing")))
    return "is being terminated", None
