"""What qdel, qhold, qrls, qsig and qrerun share: each id in turn, complaints on stderr."""

import sys

from fake_drm import submission
from fake_drm.cli import CommandError
from fake_pbs import jobs, words


def each(store, command, ids, act):
    """Call ``act(record, now)`` for every job; returns the exit code, the last error's.

    ``act`` returns None, or (text, PBS's error number).
    """
    if not ids:
        raise CommandError("usage: %s [options] job_identifier...\n" % command, 2)
    jobs.require_pbs(store, command)
    code = 0
    for text in ids:
        try:
            _change(store, command, text, act)
        except CommandError as error:
            sys.stderr.write(error.text)
            code = error.code
    return code


def _change(store, command, text, act):
    found = [one["id"] for one in jobs.find(store, command, text)]
    changed, errors = [], []
    with store.lock():
        now = store.clock.now()
        for record in map(store.read, found):
            error = _refusal(store, record) or act(record, now)
            if error:
                errors.append(error)
            else:
                store.write(record)
                changed.append(record)
    for record in changed:
        submission.rewake(store, record)
    if not changed:
        said, number = errors[0]
        full = jobs.full_id(store, text)
        raise CommandError("%s: %s %s\n" % (command, said, full), number % 256)


def _refusal(store, record):
    if words.is_ended(record):
        if words.is_torque(store):
            return "Request invalid for state of job MSG=invalid state for job - COMPLETE", 15018
        return "Job has finished", 15139
    if not submission.may_change(record):
        return "Unauthorized Request ", 15007
    return None
