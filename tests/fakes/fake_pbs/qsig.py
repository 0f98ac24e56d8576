"""``qsig``: sends a signal; suspend and resume are OpenPBS's own."""

import signal

from fake_drm import process, transitions
from fake_drm.arguments import parse_anywhere, refuse
from fake_pbs import changes


def main(store, argv):
    """Signal; returns the exit code."""
    usage = refuse("usage: qsig [-s signal] job_identifier...\n", 2)
    given, ids = parse_anywhere(argv, {"s"}, {"a"}, usage)
    name = dict(given).get("s", "SIGTERM")

    def act(record, now):
        if record["state"] != "running":
            return "Request invalid for state of job", 15018
        if name == "suspend":
            transitions.suspend(record, now, "admin")
        elif name == "resume":
            transitions.resume(record, now)
        else:
            return _send(record, name)
        return None

    return changes.each(store, "qsig", ids, act)


def _send(record, name):
    known = {item.name[3:]: item.value for item in signal.Signals}
    word = name.upper()[3:] if name.upper().startswith("SIG") else name.upper()
    number = int(word) if word.isdigit() else known.get(word)
    if number is None:
        return "Unknown/illegal signal name", 15016
    pid = record["session"][0]
    for one in [pid] + process.descendants(pid):
        process.send(one, number)
    return None
