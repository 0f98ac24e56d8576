"""Which jobs a command sees, and ids as users write them: ``7``, ``6_2``, ``6_[1-3]``, ``12+0``."""

import os
import time

from fake_slurm import formats


def acting_user():
    """(name, uid, group, gid) of whoever runs the command; ``FAKE_SLURM_AS=alice:1005`` plays
    another."""
    played = os.environ.get("FAKE_SLURM_AS")
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


def user_exists(store, name):
    """True for a user (name or uid) of this machine, or one that has jobs in this state."""
    import pwd

    try:
        pwd.getpwuid(int(name)) if name.isdigit() else pwd.getpwnam(name)
        return True
    except KeyError:
        return any(name in (record["user"], str(record["uid"])) for record in store.all())


def known(store, record):
    """True while the controller knows the job: not forgotten, and not ended too long ago."""
    if record["forgotten"] or record["erased"]:
        return False
    if record["state"] != "ended" or record["end_real"] is None:
        return True
    age = float(store.option(record, "min_job_age"))
    return time.time() < max(record["end_real"], record["completing_until"]) + age


def visible(store, record, user):
    """True if the controller shows the job to ``user`` (see ``private_data``)."""
    return known(store, record) and (
        not store.settings["private_data"] or user[1] in (0, record["uid"])
    )


def is_meta(record):
    """True for an array element that never started and so is shown together with its siblings."""
    return (
        record["array_id"] is not None
        and record["restarts"] == 0
        and not record["started"]
        and record["state"] in ("pending", "ended")
    )


def merge_arrays(records):
    """Replace the elements of an array that never started by one record: id of the array,
    ``tasks`` a list."""
    merged = []
    metas = {}
    for record in records:
        if not is_meta(record):
            merged.append(record)
            continue
        key = (record["array_id"], record["state"])
        meta = metas.get(key)
        if meta is None:
            meta = metas[key] = dict(record, tasks=[], id=record["array_id"])
            for stream in ("stdout", "stderr"):  # the real one shows an array's %a as 2**32 - 2
                meta[stream] = meta[stream].replace("_%d." % record["task_id"], "_4294967294.")
            merged.append(meta)
        meta["tasks"].append(record["task_id"])
        if record["why"] == "array_limit":
            meta["why"] = "array_limit"
    return merged


def task_text(record):
    """``3-5%2`` for a merged record, ``3`` for one element, None for other jobs."""
    if "tasks" in record:
        text = formats.task_list(record["tasks"])
        return text + ("%%%d" % record["throttle"] if record["throttle"] else "")
    return None if record["task_id"] is None else str(record["task_id"])


def job_id_text(record):
    """The id as squeue's %i and sacct's JobID show it."""
    if "tasks" in record:
        return "%d_[%s]" % (record["array_id"], task_text(record))
    if record["array_id"] is not None:
        return "%d_%d" % (record["array_id"], record["task_id"])
    return str(record["id"])


def parse_id(text):
    """Return (id, tasks): tasks None for the job itself, else a list. Raises ValueError on
    anything else."""
    text, plus, offset = text.partition("+")
    if plus:
        if int(offset) != 0:
            raise ValueError(text)
        return int(text), []  # het jobs do not exist here, so 12+0 names nothing
    number, underscore, tasks = text.partition("_")
    if not number.isdigit():
        raise ValueError(text)
    if not underscore:
        return int(number), None
    return int(number), formats.parse_task_list(tasks.strip("[]"))[0]


def find(store, number, tasks):
    """Return the records an id names: a whole array for its id, one job for a raw id. Knows no
    visibility."""
    record = store.read(number)
    if record is None:
        return []
    if tasks is not None:
        return [
            one
            for one in store.array(number)
            if one["task_id"] in tasks and one["array_id"] == number
        ]
    if record["array_id"] == number:
        return store.array(number)
    return [record]
