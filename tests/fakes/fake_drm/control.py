"""For tests: make a state folder of LSF, OpenPBS, PBS Pro, Torque or Grid Engine, and play it.

    from fake_drm import control
    state = control.create(tmp_path / "drm", "lsf", time_scale=60)
    env = dict(os.environ, **control.environment(state))
    control.stop_all(state)                                  # in the fixture's teardown

What is the same for every DRM comes from ``fake_slurm.control``, which was first: ``set_settings``,
``job``, ``jobs``, ``change``, ``event``, ``forget``, ``show_as``, ``commands``,
``clear_commands``, ``stop_all``, ``restart``. Ids are those of the records (an array's elements
have neighbouring ones).
"""

import os
import subprocess
import sys
import time

from fake_drm import transitions
from fake_drm.store import Store
from fake_slurm import control as _first
from fake_slurm.control import (  # noqa: F401
    BIN,
    change,
    clear_commands,
    commands,
    event,
    forget,
    job,
    jobs,
    restart,
    set_settings,
    show_as,
    stop_all,
)

_OPENPBS = {
    "cluster": "pbs1",
    "partitions": ["workq"],
    "first_job_id": 0,
    "memory_limit": "none",
    "kill_invalid_dependency": True,
    "min_job_age": 14 * 86400,  # job_history_duration
}
# What differs from the settings' defaults, by flavour: the DRM as it is installed
FLAVOURS = {
    "lsf": {"cluster": "cluster1", "partitions": ["normal"], "version": "10.1.0.14"},
    "openpbs": dict(_OPENPBS, version="23.06.06"),
    "pbspro": dict(_OPENPBS, version="19.2.4"),
    "torque": {
        "cluster": "server1",
        "partitions": ["batch"],
        "version": "6.1.2",
        "first_job_id": 0,
        "memory_limit": "overmemkill",
    },
    "sge": {
        "cluster": "default",
        "partitions": ["all.q"],
        "version": "8.1.9",
        "memory_limit": "overmemkill",
        "accounting_lag": 15,
    },
}
PACKAGES = {
    "lsf": "fake_lsf",
    "openpbs": "fake_pbs",
    "pbspro": "fake_pbs",
    "torque": "fake_pbs",
    "sge": "fake_gridengine",
}
# what add_jobs makes -> (state, why, wait status of the script)
INJECTED = {
    "pending": ("pending", "", 0),
    "held": ("pending", "held_user", 0),
    "running": ("running", "", 0),
    "success": ("ended", "exited", 0),
    "failed": ("ended", "exited", 3 << 8),
    "time_limit": ("ended", "time_limit", 15),
    "memory": ("ended", "memory_kill", 9),
    "cancelled": ("ended", "cancelled", 15),
    "node_failure": ("ended", "node_failure", 0),
}


def create(path, flavour, **values):
    """Make the folder ``path`` for one of FLAVOURS with these settings; returns the path as
    text."""
    return _first.create(path, flavour=flavour, **dict(FLAVOURS[flavour], **values))


def environment(path):
    """Variables to add to the environment of whatever calls the commands."""
    return {
        "FAKE_DRM_STATE": os.fspath(path),
        "FAKE_DRM_PYTHON": sys.executable,
        "PATH": BIN + os.pathsep + os.environ.get("PATH", os.defpath),
    }


def run(path, *argv, user=None, cwd=None, timeout=120.0, stdin=""):
    """Run one command and return subprocess's CompletedProcess, its output decoded.

    Args:
        user: "name:uid" to play another user.
        cwd: folder to run in; the state folder if None.
    """
    env = dict(os.environ, **environment(path))
    if user:
        env["FAKE_DRM_AS"] = user
    return subprocess.run(
        [os.path.join(BIN, argv[0]), *map(str, argv[1:])],
        env=env,
        timeout=timeout,
        input=stdin,
        cwd=cwd or path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        universal_newlines=True,
        check=False,
    )


def wait_for(path, job_id, *states, timeout=60.0):
    """Wait until the record's state (pending, running, ended) is one of ``states``, and an ended
    job's processes are gone; returns it. Raises AssertionError after ``timeout``."""
    return wait_until(
        path,
        job_id,
        lambda record: record["state"] in states
        and (record["state"] == "running" or not transitions.is_completing(record)),
        timeout,
    )


def wait_until(path, job_id, condition, timeout=60.0):
    """Wait until ``condition(record)``; returns the record. Raises AssertionError after
    ``timeout``."""
    deadline = time.time() + timeout
    while True:
        record = job(path, job_id)
        if record is not None and condition(record):
            return record
        if time.time() > deadline:
            found = record and {key: record[key] for key in ("state", "why", "exit", "killing")}
            raise AssertionError("job %s is %r after %s s" % (job_id, found, timeout))
        time.sleep(0.02)


def add_jobs(path, count, state="pending", user="other:1000", name="injected", **values):
    """Put ``count`` ready-made jobs into the state, without processes; returns their ids.

    Args:
        user: "name:uid".
        state: one of INJECTED.
        values: fields of the record, such as ``time_limit=3600``.
    """
    state, why, status = INJECTED[state]
    user, _, uid = user.partition(":")
    store = Store(path)
    base = dict(
        name=name,
        user=user,
        uid=int(uid or 1000),
        group=user,
        gid=int(uid or 1000),
        partition=store.settings["partitions"][0],
        cluster=store.settings["cluster"],
        dialect=PACKAGES[store.settings["flavour"]],
        command="/home/%s/job.sh" % user,
        workdir="/home/%s" % user,
        stdout="/home/%s/out" % user,
        stderr="/home/%s/err" % user,
        time_limit=3600,
        options={"no_process": 1},
    )
    base.update(values)
    extra = base.pop("extra", {})
    dialect = __import__(base["dialect"] + ".dialect", fromlist=["dialect"])
    with store.lock():
        first = store.new_ids(count)
        now = store.clock.now()
        for job_id in range(first, first + count):
            record = transitions.new_record(job_id, now, **dict(base, extra=dict(extra)))
            dialect.injected(store, record)
            if state == "pending":
                record["why"] = why
                record["priority"] = 0 if why else 1
            else:
                transitions.start(record, now, store.settings["node"], None)
            if state == "ended":
                if why == "cancelled":
                    record["cancelled_by"] = record["uid"]
                transitions.end(record, why, now, status)
                record["script_exit"] = status
                getattr(dialect, "run_over", lambda *unused: None)(store, record, now)
            store.write(record)
    return list(range(first, first + count))
