"""What qhold, qrls and qmod share."""

from fake_drm import submission
from fake_gridengine import jobs


def each(store, command, ids, unknown, act):
    """Call ``act(record, now, text)``, which prints the answer and returns a code, for every job.

    Args:
        unknown: (text with %s, exit code) of an id that names no job.
    """
    jobs.require_qmaster(store, command)
    code = 0
    for text in [one for word in ids for one in word.split(",")]:
        found = jobs.living(store, text)
        if not found:
            print(unknown[0] % text)
            code = unknown[1]
            continue
        changed = []
        with store.lock():
            now = store.clock.now()
            for record in map(store.read, [one["id"] for one in found]):
                if submission.may_change(record):
                    code = max(code, act(record, now, text))
                    store.write(record)
                    changed.append(record)
                else:
                    user = submission.acting_user()[0]
                    print('%s - you do not have the necessary privileges to modify the job "%s"'
                          % (user, text))
                    code = 1
        for record in changed:
            submission.rewake(store, record)
    return code
