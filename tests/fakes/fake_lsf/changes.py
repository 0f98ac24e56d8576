"""What bkill, bstop, bresume and brequeue share: each id in turn, with its own answer."""

import sys

from fake_drm import submission
from fake_lsf import jobs

GONE = "Job has already finished"
DENIED = "User permission denied"


def each(store, ids, act):
    """Call ``act(record, now)`` for every job; return the exit code.

    ``act`` returns (text for stdout, None) or (None, text for stderr).
    """
    jobs.require_lsf(store)
    code = 0
    if "0" in ids:
        ids = [str(one["id"]) for one in store.all()
               if jobs.visible(one) and one["state"] != "ended"]
        if not ids:
            sys.stderr.write("Job <0>: No matching job found\n")
            return 255
    for text in ids:
        found = [one for one in jobs.find(store, text) if jobs.known(store, one)]
        if not found:
            sys.stderr.write("Job <%s>: No matching job found\n" % text)
            code = 255
            continue
        code = max(code, _change(store, text, found, act))
    return code


def _change(store, text, found, act):
    said, refused = [], []
    changed = []
    with store.lock():
        now = store.clock.now()
        for record in map(store.read, [one["id"] for one in found]):
            if not submission.may_change(record):
                refused.append(DENIED)
                continue
            good, bad = act(record, now)
            if good is None:
                refused.append(bad)
            else:
                said.append(good)
                store.write(record)
                changed.append(record)
    for record in changed:
        submission.rewake(store, record)
    if said:
        print("Job <%s> %s" % (text, said[0]))
        return 0
    sys.stderr.write("Job <%s>: %s\n" % (text, refused[0]))
    return 255
