"""``qdel``: deletes jobs and tasks."""

from fake_drm import submission, transitions
from fake_drm.arguments import parse_anywhere, refuse
from fake_drm.cli import CommandError
from fake_gridengine import dialect, jobs


def main(store, argv):
    """Delete; returns the exit code. Its answers, good or bad, are on stdout."""
    usage = refuse("error: unknown option %s\n", 1)
    given, ids = parse_anywhere(argv, {"t", "u"}, {"f", "help"}, usage, joined=False)
    options = dict(given)
    ids = jobs.with_tasks([one for text in ids for one in text.split(",")], options.get("t"))
    if "u" in options:
        ids += sorted({
            str(submission.base_id(one)) for one in store.all()
            if one["user"] == options["u"] and one["state"] != "ended"
        })
    if not ids:
        raise CommandError("error: no option argument provided\n", 1)
    jobs.require_qmaster(store, "qdel")
    code = 0
    for text in ids:
        found = jobs.living(store, text)
        if not found:
            print('denied: job "%s" does not exist' % text)
            code = 1
            continue
        code = max(code, _delete(store, text, [one["id"] for one in found], "f" in options))
    return code


def _delete(store, text, numbers, force):
    user, uid = submission.acting_user()[:2]
    changed, code = [], 0
    with store.lock():
        now = store.clock.now()
        for record in map(store.read, numbers):
            if not submission.may_change(record):
                print('%s - you do not have the necessary privileges to delete the job "%s"' % (
                    user, text
                ))
                return 1
            code = max(code, _delete_one(store, record, now, user, uid, force))
            store.write(record)
            changed.append(record)
    for record in changed:
        submission.rewake(store, record)
    return code


def _delete_one(store, record, now, user, uid, force):
    number = submission.base_id(record)
    task = "" if record["task_id"] is None else ".%d" % record["task_id"]
    job = "job-array task %d%s" % (number, task) if task else "job %d" % number
    if record["state"] == "ended" and not (force and uid == 0):
        print("job %d%s is already in deletion" % (number, task))
        return 1
    if record["state"] == "pending":
        transitions.cancel(record, uid, now)
        record["erased"] = True
        print("%s has deleted %s" % (user, job))
        return 0
    if force and uid == 0:
        dialect.account_forced(store, record, now)
        print("%s forced the deletion of %s" % (user, job))
    else:
        print("%s has registered the %s for deletion" % (user, job))
    transitions.cancel(record, uid, now, float(store.option(record, "completing")))
    return 1 if force and uid != 0 else 0
