"""Many jobs, several managers, forks, and two server processes on one folder."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import traceback
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest

from tests.pulsar_server import wait_until
from tests.simulated import control

from .conftest import MakePulsar
from .harness import TERMINAL, Pulsar, Slurm, own_observers, reason_of, running

ROOT = Path(__file__).resolve().parents[2]


def _adopt(pulsar: Pulsar, slurm: Slurm, count: int, **values: Any) -> List[str]:
    """Give the server jobs that are in Slurm already, without processes; return the job ids."""
    user = f"somebody:{os.geteuid()}"
    ids = control.add_jobs(slurm.state, count, user=user, **values)
    active = Path(pulsar._conf["persistence_directory"]) / "_default_-active-jobs"
    for external_id in ids:
        job_id = f"many{external_id}"
        directory = pulsar.directory(job_id)
        for folder in ("working", "outputs", "metadata"):
            (directory / folder).mkdir(parents=True)
        (directory / "external_id").write_text(json.dumps(str(external_id)))
        (directory / "preprocessed").write_text("true")
        control.change(slurm.state, external_id, name=f"pulsar_{job_id}")
        (active / job_id).touch()
    return [f"many{external_id}" for external_id in ids]


@pytest.mark.slow
def test_two_hundred_jobs_cost_one_command_a_look(
    make_pulsar: MakePulsar, slurm: Slurm
) -> None:
    """200 running jobs: one squeue a look. 200 ended ones that are forgotten: one sacct a look."""
    slurm.set(time_scale=1)
    pulsar = make_pulsar(status_poll_interval=0.5)
    jobs = _adopt(pulsar, slurm, 200, job_state="RUNNING")
    for job_id in jobs:
        pulsar.status(job_id)
    pulsar.wait_for_looks(2)
    assert {pulsar.status(job_id) for job_id in jobs} == {"running"}
    counters = pulsar.observer().counters
    first = counters.passes
    control.clear_commands(slurm.state)
    before = counters.passes
    pulsar.wait_for_looks(2)
    looks = counters.passes - before
    # One more or less: of the looks that were under way at the begin and are at the end.
    assert looks - 1 <= len(slurm.commands("squeue")) <= counters.passes - first + 1
    assert slurm.commands("sacct") == []
    with pulsar.unseen():
        for external_id in range(1, 201):
            control.change(
                slurm.state, external_id, state="ended", why="time_limit", forgotten=True,
                end=control.job(slurm.state, external_id)["start"] + 3600)
    for job_id in jobs:
        assert reason_of(pulsar.end(job_id)) == "walltime"
    assert len(slurm.commands("sacct")) == 1
    assert len(control.commands(slurm.state)) <= counters.passes - first + 2


def test_two_managers_share_one_look(tmp_path: Path, slurm: Slurm) -> None:
    """Managers on the same cluster and user cost one squeue together, not one each."""
    with own_observers():
        pulsar = Pulsar(tmp_path, managers={
            "a": {}, "b": {}, "c": {"status_poll_interval": 5}})
        with running(pulsar):
            for name in ("a", "b", "c"):
                pulsar.submit(f"job_{name}", "sleep 600", "-t 600", manager=name)
            for name in ("a", "b", "c"):
                pulsar.wait_for(f"job_{name}", "running", manager=name)
            assert len({id(pulsar.observer(name)) for name in ("a", "b", "c")}) == 1
            counters = pulsar.observer("a").counters
            before = counters.passes
            control.clear_commands(slurm.state)
            pulsar.wait_for_looks(3, "a")
            assert 3 <= len(slurm.commands("squeue")) <= counters.passes - before + 1
            # One manager's end is not the others': they are still looked at.
            pulsar.manager("a").shutdown()
            slurm.scancel("2")
            assert reason_of(pulsar.end("job_b", manager="b")) == "cancelled"


def test_shutdown_leaves_no_thread(tmp_path: Path, slurm: Slurm) -> None:
    """After shutdown nothing of ours runs, also in the middle of a look."""
    before = set(threading.enumerate())
    slurm.set(latency={"squeue": 0.5})
    with own_observers():
        pulsar = Pulsar(tmp_path)
        pulsar.submit("1", "sleep 600", "-t 600")
        wait_until(lambda: slurm.commands("squeue"), 60, "a look to begin", 0.01)
        assert set(threading.enumerate()) != before
        pulsar.shutdown()
    assert set(threading.enumerate()) <= before


def test_no_thread_before_the_first_job(make_pulsar: MakePulsar, slurm: Slurm) -> None:
    """A server that only loads (before it forks) starts no thread and asks Slurm nothing."""
    before = set(threading.enumerate())
    make_pulsar()
    assert set(threading.enumerate()) <= before
    assert control.commands(slurm.state) == []


def _in_child(work: Callable[[], None]) -> int:
    """Run this in a forked child; return its pid."""
    pid = os.fork()
    if pid:
        return pid
    try:
        work()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def _exit_status(pid: int) -> int:
    ended: List[int] = []

    def has_ended() -> bool:
        gone, status = os.waitpid(pid, os.WNOHANG)
        ended.append(status)
        return gone != 0

    try:
        wait_until(has_ended, 240, "the child to end", 0.05)
    except TimeoutError:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise
    return ended[-1]


def test_fork_after_load(pulsar: Pulsar, slurm: Slurm) -> None:
    """A worker forked from a server that already looks has an observer of its own."""
    pulsar.submit("1", "sleep 600", "-t 600")
    pulsar.wait_for("1", "running")

    def worker() -> None:
        pulsar.submit("2", "sleep 600", "-t 600")
        pulsar.wait_for("2", "running")
        slurm.scancel("2")
        assert reason_of(pulsar.end("2")) == "cancelled"
        # The parent's job too, which it has never looked at.
        slurm.scancel("1")
        assert reason_of(pulsar.end("1")) == "cancelled"

    assert _exit_status(_in_child(worker)) == 0
    assert pulsar.end("1")["runner_state_message"] == pulsar.record("1")["message"]


WORKER = """\
import json, sys, time
from pathlib import Path
from pulsar import manager_endpoint_util
from tests.manager.harness import Pulsar
home, jobs = Path(sys.argv[1]), sys.argv[2].split(",")
pulsar = Pulsar(home, manager={"status_poll_interval": 0.05, "min_polling_interval": 0.01})
print("ready", flush=True)
told = {}
while len(told) < len(jobs):
    for job_id in jobs:
        try:
            payload = pulsar.payload(job_id)
        except ValueError:
            continue  # stock writes final_status not atomically, the other one was at it
        if job_id not in told and payload["complete"] == "true":
            told[job_id] = payload
    time.sleep(0.005)
for job_id in jobs:
    assert pulsar.payload(job_id) == told[job_id], (pulsar.payload(job_id), told[job_id])
print(json.dumps(told), flush=True)
"""


@pytest.mark.slow
def test_two_processes_on_one_folder_tell_the_same(pulsar: Pulsar, slurm: Slurm) -> None:
    """gunicorn's workers judge the same ends at the same time: one record, equal payloads."""
    jobs = [str(number) for number in range(1, 9)]
    for job_id in jobs:
        pulsar.submit(job_id, "sleep 600", "-t 600")
    pulsar.shutdown()
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, str(pulsar.staging.parent), ",".join(jobs)],
            cwd=ROOT, stdout=subprocess.PIPE, universal_newlines=True)
        for _ in range(2)
    ]
    try:
        for worker in workers:
            assert worker.stdout is not None and worker.stdout.readline() == "ready\n"
        for job_id in jobs:
            slurm.scancel(job_id)
        told = [json.loads(worker.communicate(timeout=120)[0]) for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    for job_id in jobs:
        reasons = [_story(payloads[job_id]) for payloads in told]
        assert reasons[0] == reasons[1]
        assert reasons[0]["failure_reason"]["cause"] == "cancelled"


def _story(payload: Dict[str, Any]) -> Dict[str, Any]:
    assert payload["status"] in TERMINAL
    return {k: payload[k] for k in ("status", "failure_reason", "runner_state_message")}


def test_a_second_process_leaves_the_record_of_the_first(pulsar: Pulsar, slurm: Slurm) -> None:
    """A process that sees another end (here: a late return_code) does not undo what was told."""
    external_id = pulsar.submit("1", "exit 0", "--comment=fake:completing=2")
    slow = Pulsar(pulsar.staging.parent, manager={"missing_grace": 60})
    try:
        slow.status("1")
        slurm.wait_for(external_id, "COMPLETED")
        assert reason_of(pulsar.end("1")) == "lost"
        told = pulsar.payload("1")
        (pulsar.directory("1") / "return_code").write_text("0\n")
        wait_until(lambda: ("1" not in _looked_at(slow)), 60, "the other to judge", 0.02)
        assert reason_of(pulsar.payload("1")) == "lost"
        assert slow.payload("1")["runner_state_message"] == told["runner_state_message"]
    finally:
        slow.shutdown()


def _looked_at(pulsar: Pulsar) -> List[str]:
    manager = pulsar.manager()
    watches = pulsar.observer()._watches
    return [job_id for owner, job_id in watches if owner is manager]


def test_a_fresh_process_with_an_old_answer_leaves_a_new_record(
    pulsar: Pulsar, slurm: Slurm
) -> None:
    """A process whose query began before the end does not clear the record of that end."""
    external_id = pulsar.submit("1", "sleep 600", "-t 600")
    pulsar.wait_for("1", "running")
    pulsar.shutdown()
    slurm.set(latency={"squeue": 0.6})
    slow = Pulsar(pulsar.staging.parent)
    try:
        slow.status("1")
        # The first process records and is killed before the final status; then the old answer.
        record = {"runner_state": "unknown_error", "message": "m", "cause": "cancelled",
                  "fault": "user", "confidence": "controller", "drm": "slurm",
                  "external_id": external_id}
        (pulsar.directory("1") / "runner_state").write_text(json.dumps(record))
        slow.wait_for_looks(2)
        assert slow.record("1") == record
    finally:
        slow.shutdown()


def test_cancel_by_galaxy_in_another_process(pulsar: Pulsar, slurm: Slurm) -> None:
    """A worker that watches a job which Galaxy cancels through another worker records nothing."""
    pulsar.submit("1", "sleep 600", "-t 600")
    pulsar.wait_for("1", "running")
    other = Pulsar(pulsar.staging.parent)
    try:
        other.proxy().kill("1")
        slurm.wait_for("1", "CANCELLED")
        wait_until(lambda: "1" not in _looked_at(pulsar), 60, "the worker to see it", 0.02)
        assert pulsar.record("1") is None
        assert pulsar.status("1") == "cancelled"
    finally:
        other.shutdown()


def test_get_status_is_answered_from_memory(
    make_pulsar: MakePulsar, slurm: Slurm, tmp_path: Path, odd_command: Callable[..., None]
) -> None:
    """Requests run no command and wait for none, however slow Slurm is."""
    odd_command(
        "squeue", f"touch {tmp_path}/asked; while [ ! -e {tmp_path}/go ]; do sleep 0.05; done")
    pulsar = make_pulsar(command_timeout=600)
    pulsar.submit("1", "sleep 600", "-t 600")
    wait_until((tmp_path / "asked").exists, 60, "a look", 0.02)
    looks = pulsar.observer().counters.passes
    control.clear_commands(slurm.state)
    for _ in range(200):
        assert pulsar.manager().get_status("1") == "queued"
    # The one look that began before has not come to its end.
    assert pulsar.observer().counters.passes == looks
    assert control.commands(slurm.state) == []
    (tmp_path / "go").touch()
