"""For tests: make a state folder, play what a cluster does to jobs, look at jobs and at the
command log.

    from fake_slurm import control
    state = control.create(tmp_path / "slurm", time_scale=60)
    env = dict(os.environ, **control.environment(state))     # PATH and FAKE_SLURM_STATE for the
    commands ...
    control.event(state, 7, "node_failure")
    control.stop_all(state)                                  # in the fixture's teardown

Every function takes the path of the state folder first; ids are raw job ids (squeue's %A).
"""

import json
import os
import signal
import subprocess
import sys
import time

from fake_drm import process, runner, settings, transitions
from fake_drm.store import Store
from fake_slurm import words

FAKES = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BIN = os.path.join(FAKES, "bin")

# job_state of add_jobs -> (state, why, wait status)
INJECTED = {
    "PENDING": ("pending", "", 0),
    "HELD": ("pending", "held_user", 0),
    "RUNNING": ("running", "", 0),
    "REQUEUED_HELD": ("pending", "requeued_held", 0),
    "COMPLETED": ("ended", "exited", 0),
    "FAILED": ("ended", "exited", 3 << 8),
    "TIMEOUT": ("ended", "time_limit", 15),
    "OUT_OF_MEMORY": ("ended", "memory_limit", 125),
    "CANCELLED": ("ended", "cancelled", 15),
    "NODE_FAIL": ("ended", "node_failure", 0),
    "PREEMPTED": ("ended", "preempted", 15),
}


def create(path, **values):
    """Make the folder ``path`` with these settings (see fake_drm/settings.py); returns the path as
    text."""
    path = os.path.abspath(os.fspath(path))
    os.makedirs(path, exist_ok=True)
    with open(os.path.join(path, "python"), "w") as handle:
        handle.write(sys.executable + "\n")
    Store(path).set_stopped(False)
    set_settings(path, **values)
    return path


def environment(path):
    """Variables to add to the environment of whatever calls the commands."""
    return {
        "FAKE_SLURM_STATE": os.fspath(path),
        "FAKE_SLURM_PYTHON": sys.executable,
        "PATH": BIN + os.pathsep + os.environ.get("PATH", os.defpath),
    }


def run(path, *argv, user=None, cwd=None, timeout=120.0, stdin=""):
    """Run one command and return subprocess's CompletedProcess, its output decoded.

    Args:
        user: "name:uid" to play another user.
        cwd: folder to run in; the state folder if None, so that a job's output never litters ours.
    """
    env = dict(os.environ, **environment(path))
    if user:
        env["FAKE_SLURM_AS"] = user
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


def set_settings(path, **values):
    """Change settings, also while jobs run. Raises fake_drm.settings.SettingsError on an unknown
    name."""
    store = Store(path)
    if "time_scale" in values and "clock_anchor" not in values:
        values["clock_anchor"] = [time.time(), store.clock.now()]  # no jump for the jobs there are
    settings.save(path, values)
    for record in store.all():
        process.wake(record["runner"])


def job(path, job_id):
    """The record of one job, a dict (see fake_drm/transitions.py); None if there never was one."""
    return Store(path).read(int(job_id))


def jobs(path):
    """All records, by id, also of jobs that the controller has forgotten."""
    return Store(path).all()


def job_state(path, job_id):
    """``JobState`` as scontrol would show it, also for a forgotten job."""
    return words.job_state(job(path, job_id))


def wait_for(path, job_id, *states, timeout=60.0):
    """Wait until the job's state is one of ``states``; returns the record. Raises AssertionError
    after ``timeout``."""
    deadline = time.time() + timeout
    while True:
        record = job(path, job_id)
        found = words.job_state(record) if record else "no such job"
        if found in states:
            return record
        if time.time() > deadline:
            raise AssertionError(
                "job %s is %s after %s s, not %s" % (job_id, found, timeout, " or ".join(states))
            )
        time.sleep(0.02)


def change(path, job_id, **values):
    """Overwrite fields of a job's record, then let its runner look."""
    store = Store(path)
    with store.lock():
        record = store.read(int(job_id))
        record.update(values)
        store.write(record)
    process.wake(record["runner"])
    return record


def show_as(path, job_id, state=None, reason=None, accounting_state=None):
    """Let the commands show these words for a job, whatever it does: states no fake job comes
    to."""
    change(
        path, job_id, shown={"state": state, "reason": reason, "accounting_state": accounting_state}
    )


def event(path, job_id, name):
    """Do to a running job what the cluster might.

    Args:
        name: node_failure, preempt, requeue, requeue_hold, forget; with a job that may be
        requeued, the first
            two requeue it, otherwise they end it.
    """
    store = Store(path)
    with store.lock():
        record = store.read(int(job_id))
        runner.play(store, record, name, store.clock.now())
        store.write(record)
    process.wake(record["runner"])


def forget(path, *job_ids):
    """The controller forgets these jobs at once, as after MinJobAge; the accounting keeps them."""
    for job_id in job_ids:
        change(path, job_id, forgotten=True)


def forget_all(path):
    """A controller started with ``slurmctld -c``: no job is known, those that ran are killed on
    their nodes."""
    store = Store(path)
    with store.lock():
        records = store.all()
        for record in records:
            if record["state"] != "ended":
                transitions.end(record, "lost", store.clock.now())
            record["forgotten"] = True
            store.write(record)
    for record in records:
        process.wake(record["runner"])


def add_jobs(path, count, user="other", job_state="PENDING", name="injected", **values):
    """Put ``count`` ready-made jobs into the state, without processes; returns their ids.

    Args:
        user: "name" or "name:uid"; the uid defaults to that of the user where the system knows it,
        else 1000. job_state: one of INJECTED.
        values: fields of the record, such as ``time_limit=3600``.
    """
    state, why, status = INJECTED[job_state]
    user, _, uid = user.partition(":")
    store = Store(path)
    base = dict(
        name=name,
        user=user,
        uid=int(uid) if uid else _uid(user),
        group=user,
        account=user,
        qos="normal",
        partition=store.settings["partitions"][0],
        cluster=store.settings["cluster"],
        dialect="fake_slurm",
        command="/home/%s/job.sh" % user,
        workdir="/home/%s" % user,
        stdout="/home/%s/out" % user,
        stderr="/home/%s/err" % user,
        memory_mb=store.settings["default_memory_mb"],
        time_limit=3600,
    )
    base.update(values)
    with store.lock():
        first = store.new_ids(count)
        now = store.clock.now()
        for job_id in range(first, first + count):
            record = transitions.new_record(job_id, now, **base)
            record["usual_priority"] = 4294901760 - job_id
            record["priority"] = 0 if why in transitions.NEVER_STARTS else record["usual_priority"]
            record["options"] = dict(record["options"], no_process=1)
            if state != "pending":
                transitions.start(record, now, store.settings["node"], None)
            if state == "ended":
                if why == "cancelled":
                    record["cancelled_by"] = record["uid"]
                transitions.end(record, why, now, status)
                if why in ("time_limit", "cancelled", "preempted"):
                    record["ended_exit"] = 0
            else:
                record["why"] = why
            store.write(record)
    return list(range(first, first + count))


def _uid(user):
    import pwd

    try:
        return pwd.getpwnam(user).pw_uid
    except KeyError:
        return 1000


def commands(path, name=None):
    """The logged commands so far: a list of (real time, argv), only those called ``name`` if
    given."""
    try:
        with open(os.path.join(path, "commands.log")) as handle:
            lines = handle.read().splitlines()
    except FileNotFoundError:
        return []
    found = [
        (float(when), json.loads(argv))
        for when, _, argv in (line.partition("\t") for line in lines)
    ]
    return [item for item in found if name is None or item[1][0] == name]


def clear_commands(path):
    """Empty the command log."""
    open(os.path.join(path, "commands.log"), "w").close()


def stop_all(path, timeout=60.0):
    """End every runner and job of this state, each by its own pid; afterwards the controller is
    down.

    Raises RuntimeError if a process outlives ``timeout``.
    """
    store = Store(path)
    store.set_stopped(True)
    deadline = time.time() + timeout
    while True:
        records = store.all()
        left = [
            known
            for record in records
            for known in (record["runner"], record["session"])
            if process.alive(known)
        ]
        if not left:
            return
        for record in records:
            process.wake(record["runner"])
        if time.time() > deadline:
            for known in left:
                process.send(known[0], signal.SIGKILL)
            raise RuntimeError(
                "fake Slurm processes outlived %s s and were killed: %r" % (timeout, left)
            )
        time.sleep(0.02)


def restart(path):
    """Let commands and runners work again after stop_all; jobs that were stopped stay as they
    were."""
    Store(path).set_stopped(False)
