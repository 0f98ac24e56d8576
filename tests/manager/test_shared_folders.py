"""Staging folders on a shared file system that is away for a while, and a server's limits."""

from __future__ import annotations

import builtins
import errno
import json
import logging
import os
import threading
from pathlib import Path
from typing import Any, Iterator, List

import pytest

from tests.pulsar_server import wait_until
from tests.simulated import control

from .conftest import MakePulsar
from .harness import Pulsar, Slurm, reason_of


@pytest.fixture
def stale(monkeypatch: pytest.MonkeyPatch) -> Iterator[List[Path]]:
    """Opening what lies in the folders of this list fails as a stale NFS handle does."""
    folders: List[Path] = []
    stock_open, stock_stat = builtins.open, os.stat

    def hit(path: Any) -> bool:
        return isinstance(path, str) and any(path.startswith(str(folder)) for folder in folders)

    def open_or_fail(path: Any, *args: Any, **kwds: Any) -> Any:
        if hit(path):
            raise OSError(errno.ESTALE, "Stale file handle", path)
        return stock_open(path, *args, **kwds)

    def stat_or_fail(path: Any, *args: Any, **kwds: Any) -> Any:
        if hit(path):
            raise OSError(errno.ESTALE, "Stale file handle", path)
        return stock_stat(path, *args, **kwds)

    monkeypatch.setattr(builtins, "open", open_or_fail)
    monkeypatch.setattr(os, "stat", stat_or_fail)
    yield folders


def test_end_while_the_staging_folder_is_away(
    make_pulsar: MakePulsar, slurm: Slurm, stale: List[Path], caplog: pytest.LogCaptureFixture
) -> None:
    """A job that ended well is not failed because its files could not be read for a while."""
    pulsar = make_pulsar(hold_grace=60)
    caplog.set_level(logging.INFO)
    external_id = pulsar.submit("1", "while [ ! -e ../go ]; do sleep 0.1; done; (exit 3)", "-t 600")
    pulsar.wait_for("1", "running")
    stale.append(pulsar.directory("1"))
    os.symlink("/", pulsar.directory("1") / "go")
    slurm.wait_for(external_id, "COMPLETED")
    pulsar.wait_for_looks(8)
    assert pulsar.manager()._watch_of("1").status == "running"
    stale.clear()
    payload = pulsar.end("1")
    assert (payload["status"], payload["returncode"]) == ("complete", 3)
    assert [r for r in caplog.records if r.levelno >= logging.WARNING] == []


def test_forgotten_while_the_staging_folder_is_not_mounted(
    pulsar: Pulsar, slurm: Slurm, caplog: pytest.LogCaptureFixture
) -> None:
    """An automount that is away: the job is judged when its folder is back, not before."""
    slurm.set(accounting="off")
    external_id = pulsar.submit(
        "1", "touch ../began; sleep 600", "-t 600 --comment=fake:min_job_age=0"
    )
    # The job script makes folders of its own before the tool begins.
    wait_until((pulsar.directory("1") / "began").exists, 60, "the tool", 0.02)
    pulsar.wait_for("1", "running")
    away = pulsar.staging.parent / "away"
    pulsar.directory("1").rename(away)
    slurm.scancel(external_id)
    wait_until(lambda: pulsar.observer().watched() == 0, 60, "the job to be let go", 0.02)
    (away / "return_code").write_text("0\n")
    away.rename(pulsar.directory("1"))
    payload = pulsar.end("1")
    assert (payload["status"], payload["returncode"]) == ("complete", 0)
    assert [r for r in caplog.records if r.levelno >= logging.WARNING
            and "accounting" not in r.getMessage()] == []


@pytest.mark.parametrize("return_code", ["0", "143"])
def test_killed_before_the_status_and_forgotten_since(
    pulsar: Pulsar, slurm: Slurm, return_code: str
) -> None:
    """A recorded kill stays one after a restart, also where Slurm knows the job no more."""
    slurm.set(accounting="off")
    external_id = pulsar.submit("1", "sleep 600", "-t 6000 --comment=fake:min_job_age=0")
    pulsar.wait_for("1", "running")
    pulsar.shutdown()
    slurm.scancel(external_id)
    (pulsar.directory("1") / "return_code").write_text(return_code)
    (pulsar.directory("1") / "runner_state").write_text(json.dumps({
        "runner_state": "walltime_reached", "message": "m", "cause": "walltime", "fault": "job",
        "confidence": "controller", "drm": "slurm", "external_id": external_id}))
    again = Pulsar(pulsar.staging.parent)
    try:
        payload = again.end("1")
        assert (payload["status"], reason_of(payload)) == ("failed", "walltime")
    finally:
        again.shutdown()


def test_no_more_threads(
    pulsar: Pulsar, slurm: Slurm, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A thread that cannot be started costs no submitted job; it is started when it can be."""
    start = threading.Thread.start

    def refuse(self: threading.Thread) -> None:
        if self.name.startswith("failure-reasons"):
            raise RuntimeError("can't start new thread")
        start(self)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    external_id = pulsar.submit("1", "sleep 600", "-t 600")
    assert external_id == "1"
    assert [pulsar.status("1") for _ in range(5)] == ["queued"] * 5
    told = [r for r in caplog.records if "can't start new thread" in r.getMessage()]
    assert [r.levelname for r in told] == ["WARNING"]
    monkeypatch.setattr(threading.Thread, "start", start)
    pulsar.wait_for("1", "running")


def test_watches_of_another_worker_s_ends_do_not_pile_up(pulsar: Pulsar, slurm: Slurm) -> None:
    """gunicorn: a worker to which Galaxy's last question did not come forgets the job too."""
    other = Pulsar(pulsar.staging.parent)
    try:
        jobs = [str(number) for number in range(1, 6)]
        for job_id in jobs:
            pulsar.submit(job_id, "true")
            other.manager().get_status(job_id)
        for job_id in jobs:
            assert pulsar.end(job_id)["status"] == "complete"
        wait_until(lambda: other.observer().watched() == 0, 60, "the others' ends", 0.02)
        pulsar.submit("6", "sleep 600", "-t 600")
        other.manager().get_status("6")
        assert sorted(other.manager()._watches) == ["6"]
    finally:
        other.shutdown()


def test_a_mistake_of_ours_is_one_error_not_one_a_look(
    pulsar: Pulsar, slurm: Slurm, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Sentry takes every ERROR: many jobs, many looks, one line."""
    monkeypatch.setattr(
        type(pulsar.manager()), "classify_stderr", lambda self, text, external_id: 1 / 0)
    for job_id in ("1", "2", "3"):
        slurm.wait_for(pulsar.submit(job_id, "echo something >&2; kill -9 $$"), "FAILED")
        pulsar.status(job_id)
    pulsar.wait_for_looks(8)
    assert len([r for r in caplog.records if r.levelno >= logging.WARNING]) == 1


def _unmount(pulsar: Pulsar, job_id: str) -> Path:
    away = pulsar.staging.parent / f"away-{job_id}"
    pulsar.directory(job_id).rename(away)
    return away


def test_directory_that_was_deleted(pulsar: Pulsar, slurm: Slurm) -> None:
    """A scratch purge takes a running job's directory: it ends, with that said, once it is over.

    Stock tells a message queue nothing of such a job, ever.
    """
    told: List[str] = []
    pulsar.proxy().set_state_change_callback(
        lambda status, job_id: told.append(f"{job_id} {status}"), start_monitor=True)
    ids = [pulsar.submit(name, "touch ../began; sleep 600", "-t 600") for name in ("1", "2")]
    for name in ("1", "2"):
        wait_until((pulsar.directory(name) / "began").exists, 60, "it to begin", 0.02)
    wait_until(lambda: "1 running" in told, 60, "it to be told running", 0.02)
    _unmount(pulsar, "1")
    pulsar.wait_for_looks(8)
    assert not pulsar.directory("1").exists(), "it still runs, and may write elsewhere"
    slurm.scancel(ids[0])
    wait_until(lambda: "1 failed" in told, 60, "its end to be told", 0.05)
    payload = pulsar.payload("1")
    assert (payload["status"], reason_of(payload)) == ("failed", "cancelled")
    assert payload["failure_reason"]["evidence"][-1] == {
        "source": "job_directory", "field": "unreadable",
        "value": "its job directory could not be read (it is gone or not mounted)"}
    assert pulsar.status("2") == "running"


def test_directory_that_was_deleted_while_pulsar_was_down(pulsar: Pulsar, slurm: Slurm) -> None:
    """At the start too: neither its id nor its name tells more, and it ends, with that said."""
    slurm.set(accounting="off")
    ids = [pulsar.submit(name, "touch ../began; sleep 600", "-t 600") for name in ("1", "2")]
    for name in ("1", "2"):
        wait_until((pulsar.directory(name) / "began").exists, 60, "it to begin", 0.02)
    pulsar.shutdown()
    slurm.scancel(ids[0])
    slurm.wait_for(ids[0], "CANCELLED")
    control.forget(slurm.state, ids[0])
    _unmount(pulsar, "1")
    again = Pulsar(pulsar.staging.parent)
    try:
        wait_until(again.directory("1").exists, 60, "its directory", 0.05)
        payload = again.end("1")
        assert (payload["status"], reason_of(payload)) == ("failed", "lost")
        assert "its job directory could not be read" in payload["runner_state_message"]
    finally:
        again.shutdown()


def test_staging_folder_that_is_not_mounted(pulsar: Pulsar, slurm: Slurm) -> None:
    """All job directories are away: nothing is made in the empty mount point, no job ends."""
    external_id = pulsar.submit("1", "touch ../began; sleep 600", "-t 600")
    wait_until((pulsar.directory("1") / "began").exists, 60, "it to begin", 0.02)
    away = _unmount(pulsar, "1")
    slurm.scancel(external_id)
    pulsar.wait_for_looks(12)
    assert os.listdir(pulsar.staging) == []
    away.rename(pulsar.directory("1"))
    assert reason_of(pulsar.end("1")) == "cancelled"


def test_directory_that_cannot_be_read_for_long(
    pulsar: Pulsar, slurm: Slurm, stale: List[Path]
) -> None:
    """Files that nobody can read keep no job for ever: after its grace it ends, never well."""
    external_id = pulsar.submit("1", "while [ ! -e ../go ]; do sleep 0.1; done", "-t 600")
    pulsar.wait_for("1", "running")
    stale.append(pulsar.directory("1") / "return_code")
    os.symlink("/", pulsar.directory("1") / "go")
    slurm.wait_for(external_id, "COMPLETED")
    payload = pulsar.end("1")
    assert (payload["status"], reason_of(payload)) == ("failed", "lost")
    assert "its job directory could not be read (Stale file handle)" in (
        payload["runner_state_message"])
