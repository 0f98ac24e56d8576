"""What a test does to the simulated pool that no client can: accidents, other people's acts,
made-up jobs.

Every function takes the state folder (a path) first. They may be called from any process.
"""

import json
import os
import signal
import time

from fake_drm import process
from fake_htcondor import changes, submit
from fake_htcondor import play as play_module
from fake_htcondor import runner
from fake_htcondor.expressions import literal
from fake_htcondor.store import Job, Store


def configure(state, **settings):
    """Change settings of the pool (see ``store.SETTINGS``)."""
    Store(state).configure(**settings)


def schedd_down(state):
    """The schedd is gone; jobs run on, nothing is written until it is back."""
    configure(state, schedd="down")


def schedd_up(state):
    """The schedd starts (again): a Schedd of before is stale, running jobs are found again."""
    store = Store(state)
    store.configure(schedd="up", generation=store.settings()["generation"] + 1)
    _wake_all(store)


def restart_schedd(state):
    """The schedd is killed and starts again at once."""
    schedd_up(state)


def play(state, cluster, steps, proc=0):
    """Play steps (see ``play.py``) in a job, after those it has played."""
    play_module.parse(steps)

    def change(job):
        before = play_module.parse(job["FakePlay"] or "")[: job.extra.get("played", 0)]
        done = "; ".join(["0 lose_log"] * len(before))  # played already: only their number counts
        job.set(FakePlay="; ".join(part for part in (done, steps) if part))

    _change(state, cluster, proc, change)


def hold(state, cluster, code, subcode=0, reason="", proc=0):
    """Hold a job now with any code, as the pool would."""
    _change(state, cluster, proc, lambda job: changes.hold(job, reason, code, subcode))


def release(state, cluster, reason="via condor_release (by user admin)", proc=0):
    """Release a job, as somebody else would."""
    _change(state, cluster, proc, lambda job: changes.release(job, reason))


def remove(state, cluster, reason="via condor_rm (by user admin)", proc=0, log=True):
    """Remove a job, as somebody else would; without an event with ``log=False``."""

    def change(job):
        if not log:
            job.set(UserLog="/proc/nowhere/job.log")
        changes.remove(job, reason)

    _change(state, cluster, proc, change, leaves=True)


def edit(state, cluster, proc=0, **values):
    """Set attributes of a job, as condor_qedit would."""
    _change(state, cluster, proc, lambda job: job.set(**values))


def forget(state, cluster, proc=0):
    """The job is neither in the queue nor in the history any more; its processes end."""
    store = Store(state)
    with store.change() as queue:
        job = queue.get(cluster, proc)
        if job is not None:
            queue.drop(job)
    _wake(store, job)


def job(state, cluster, proc=0):
    """Return the ad of a job from queue or history as a dict of expression texts, or None."""
    with Store(state).look() as queue:
        found = queue.get(cluster, proc)
        if found is None:
            found = next(
                (one for one in queue.history() if (one.cluster, one.proc) == (cluster, proc)), None
            )
    return None if found is None else found.ad


def inject(state, count, status=changes.RUNNING, log_folder=None, commands=None, **attributes):
    """Put `count` jobs without processes into the queue; return their clusters.

    Args:
        log_folder: each gets a log ``<cluster>.log`` there, with SUBMIT and (running) EXECUTE.
        commands: submit commands that they share.
        attributes: attributes of their ads, as Python values.
    """
    store = Store(state)
    with store.change() as queue:
        settings = queue.settings()
        first = queue.new_cluster()
        jobs = []
        for cluster in range(first, first + count):
            given = dict({"executable": "/bin/true"}, **(commands or {}))
            if log_folder:
                given["log"] = os.path.join(log_folder, "%d.log" % cluster)
            one = Job(cluster, 0, submit.job_ad(given, cluster, 0, settings))
            changes.submitted(one, settings)
            if status == changes.RUNNING:
                changes.matched(one)
                changes.executing(one, "/var/pool/execute/dir_%d" % cluster)
            one.ad.update({name: literal(value) for name, value in attributes.items()})
            one.ad["JobStatus"] = str(status)
            jobs.append(one)
        queue.put(*jobs)
    return [one.cluster for one in jobs]


def end_injected(state, clusters, exit_code=0, number=None):
    """End injected jobs: JOB_TERMINATED and the history."""
    with Store(state).change() as queue:
        for cluster in clusters:
            one = queue.get(cluster)
            if changes.ended(one, exit_code, number):
                queue.leave(one)
            else:
                queue.put(one)


def stop(state, timeout_s=60):
    """End every process of the pool: empties the queue, and waits for the runners."""
    store = Store(state)
    with store.change() as queue:
        runners = [job.extra.get("runner") for job in queue.jobs()]
        for job in list(queue.jobs()):
            queue.drop(job)
    for known in runners:
        process.wake(known)
    deadline = time.time() + timeout_s
    while any(process.alive(known) for known in runners):
        if time.time() > deadline:
            for known in runners:
                if process.alive(known):
                    process.send(known[0], signal.SIGKILL)
        time.sleep(0.02)


def errors(state):
    """Return what runners reported as their own failures; "" is good."""
    try:
        with open(os.path.join(state, "runner-errors.log")) as handle:
            return handle.read()
    except FileNotFoundError:
        return ""


def dump(state):
    """Return queue and settings as JSON, for a failed test's message."""
    with Store(state).look() as queue:
        return json.dumps(
            {"settings": queue.settings(), "jobs": [job.ad for job in queue.jobs()]}, indent=1
        )


def _change(state, cluster, proc, change, leaves=False):
    store = Store(state)
    with store.change() as queue:
        found = queue.get(cluster, proc)
        if found is None:
            raise KeyError("no job %d.%d in the queue" % (cluster, proc))
        change(found)
        (queue.leave if leaves else queue.put)(found)
    _wake(store, found, starts=not leaves)


def _wake(store, found, starts=False):
    if found is None:
        return
    if process.alive(found.extra.get("runner")):
        process.wake(found.extra["runner"])
    elif starts:
        runner.spawn(store, found.cluster, found.proc)


def _wake_all(store):
    with store.look() as queue:
        found = list(queue.jobs())
    for one in found:
        _wake(store, one)
