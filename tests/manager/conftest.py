"""Fixtures: a simulated Slurm of the test's own, and Pulsars on it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Callable, Iterator, List, Optional

import pytest

from .harness import Pulsar, Slurm, own_observers

MakePulsar = Callable[..., Pulsar]


@pytest.fixture
def slurm(tmp_path: Path) -> Iterator[Slurm]:
    """A simulated Slurm; a minute of a time limit takes half a second."""
    with Slurm(tmp_path / "slurm").in_use() as simulated:
        yield simulated


@pytest.fixture
def make_pulsar(tmp_path: Path, slurm: Slurm) -> Iterator[MakePulsar]:
    """Start a server: ``make_pulsar(missing_grace=1)``; all are shut down at the end.

    Servers of one test share folders, so that the second one is the first one restarted.
    """
    servers: List[Pulsar] = []

    def make(**options: Any) -> Pulsar:
        servers.append(Pulsar(tmp_path, manager=options))
        return servers[-1]

    with own_observers():
        try:
            yield make
        finally:
            for server in servers:
                server.shutdown()


@pytest.fixture
def pulsar(make_pulsar: MakePulsar) -> Pulsar:
    """A server with the options of ``QUICK``."""
    return make_pulsar()


@pytest.fixture
def odd_command(
    tmp_path: Path, slurm: Slurm, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str, Optional[str]], None]:
    """Put a command before the simulated one: ``odd_command("squeue", "exit 1")``; None removes."""
    folder = tmp_path / "odd"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")

    def replace(name: str, script: Optional[str]) -> None:
        if script is None:
            (folder / name).unlink()
            return
        program = folder / f"{name}.new"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        program.rename(folder / name)

    return replace


@pytest.fixture
def fake_drmaa(monkeypatch: pytest.MonkeyPatch, slurm: Slurm) -> Any:
    """Let stock Pulsar's DRMAA code use ``tests/fakes/drmaa.py``, and count what it does."""
    import drmaa
    from pulsar.managers.base import base_drmaa
    from pulsar.managers.util import drmaa as pulsar_drmaa

    submitted: List[str] = []
    killed: List[str] = []

    class CountedSession(drmaa.Session):
        """The session, which also keeps what it was asked for."""

        def runJob(self, template: Any) -> Any:
            submitted.append(template.jobName)
            return super().runJob(template)

        def control(self, job_id: str, action: str) -> None:
            killed.append(job_id)
            super().control(job_id, action)

    CountedSession.submitted, CountedSession.killed = submitted, killed
    monkeypatch.setattr(pulsar_drmaa, "Session", CountedSession)
    monkeypatch.setattr(pulsar_drmaa, "JobControlAction", drmaa.JobControlAction, raising=False)
    monkeypatch.setattr(base_drmaa, "JobState", drmaa.JobState)
    monkeypatch.setattr(pulsar_drmaa.DrmaaSession, "session", None)
    monkeypatch.setattr(pulsar_drmaa.DrmaaSession, "session_count", 0)
    return CountedSession
