"""What all submit commands do: who asks, the record or the records of an array, their runners."""

import json
import os

from fake_drm import runner, transitions
from fake_drm.cli import CommandError
from fake_drm.settings import SettingsError, job_options


def acting_user():
    """(name, uid, group, gid) of whoever runs the command; ``FAKE_DRM_AS=alice:1005`` plays
    another."""
    played = os.environ.get("FAKE_DRM_AS")
    if played:
        name, _, uid = played.partition(":")
        return name, int(uid or 1000), name, int(uid or 1000)
    import grp
    import pwd

    uid, gid = os.getuid(), os.getgid()
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = str(uid)
    try:
        group = grp.getgrgid(gid).gr_name
    except KeyError:
        group = str(gid)
    return name, uid, group, gid


def may_change(record):
    """True if the acting user may delete or hold the job."""
    return acting_user()[1] in (0, record["uid"])


def played_options(text):
    """What a text such as ``fake:node_failure=1`` asks for. Raises CommandError."""
    try:
        return job_options(text)
    except SettingsError as error:
        raise CommandError("fake: %s\n" % error, 70) from None


def store_jobs(store, fields, script, tasks=None, throttle=None, environment=None, finish=None):
    """Write the job, or one record for each of ``tasks``; start the runners; return the records.

    Args:
        fields: values of the record (see transitions.new_record).
        script: bytes that the node runs.
        finish: function of a record that sets what depends on its id, such as file names.
    """
    user, uid, group, gid = acting_user()
    records = []
    with store.lock():
        count = 1 if tasks is None else len(tasks)
        first = store.new_ids(count)
        now = store.clock.now()
        for number in range(first, first + count):
            values = dict(user=user, uid=uid, group=group, gid=gid)
            values.update(fields)
            values["extra"] = dict(values.get("extra", {}))
            record = transitions.new_record(number, now, **values)
            record["usual_priority"] = 4294901760 - first
            record["priority"] = 0 if record["why"] else record["usual_priority"]
            if tasks is not None:
                record.update(
                    array_id=first,
                    task_id=tasks[number - first],
                    throttle=throttle,
                    array_size=count,
                )
            if finish is not None:
                finish(record)
            _spool(store, number, script, environment)
            store.write(record)
            records.append(record)
    for record in records:
        if record["why"] not in transitions.NEVER_STARTS:
            runner.spawn(store, record["id"])
    return records


def _spool(store, number, script, environment):
    path = store.spool_path(number, "script")
    with open(path, "wb") as handle:
        handle.write(script)
    os.chmod(path, 0o700)
    with open(store.spool_path(number, "env.json"), "w") as handle:
        json.dump(dict(os.environ if environment is None else environment), handle)


def environment_of(record, store):
    """The environment that the submit command stored."""
    with open(store.spool_path(record["id"], "env.json")) as handle:
        return json.load(handle)


def directives(script, prefix):
    """The words behind ``prefix`` (such as ``#BSUB``), up to the first line that is a command."""
    import shlex

    words = []
    for line in script.decode("utf-8", "surrogateescape").splitlines():
        if line.startswith(prefix) and line[len(prefix):][:1] in (" ", "\t"):
            words.extend(shlex.split(line[len(prefix):], comments=True))
        elif line.strip() and not line.startswith("#"):
            break
    return words


def base_id(record):
    """The number that users know the job by: all elements of an array share one."""
    return record["id"] if record["array_id"] is None else record["array_id"]


def elements(store, number, task=None):
    """The records that a number, or a number and a task, names; an array as all its elements."""
    record = store.read(number)
    if record is None or record["erased"]:
        return []
    if record["array_id"] is None:
        return [record] if task is None else []
    if record["array_id"] != number:
        return []  # the numbers of an array's other elements are nobody's
    return [
        one
        for one in store.array(number)
        if (task is None or one["task_id"] == task) and not one["erased"]
    ]


def rewake(store, record):
    """Let a pending job's runner look, or start one, after its record was changed."""
    from fake_drm import process

    if process.alive(record["runner"]):
        process.wake(record["runner"])
    elif record["state"] == "pending" and record["why"] not in transitions.NEVER_STARTS:
        runner.spawn(store, record["id"])
