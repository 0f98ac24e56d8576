"""Fixtures: a simulated Slurm of the test's own, and Pulsars on it by command line."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Callable, Iterator, List, Optional

import pytest

from tests.manager.harness import Pulsar, Slurm, own_observers

MakePulsar = Callable[..., Pulsar]

#: An operator's ``app.yml`` of ``queued_cli``, with the one word changed.
CLI = {"type": "queued_cli_classified", "job_plugin": "Slurm"}


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
        servers.append(Pulsar(tmp_path, manager={**CLI, **options}))
        return servers[-1]

    with own_observers():
        try:
            yield make
        finally:
            for server in servers:
                server.shutdown()


@pytest.fixture
def pulsar(make_pulsar: MakePulsar) -> Pulsar:
    """A server with quick graces."""
    return make_pulsar()


@pytest.fixture
def odd_command(
    tmp_path: Path, slurm: Slurm, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str, Optional[str]], None]:
    """Put a command before the simulated one: ``odd_command("squeue", "exit 1")``; None removes.

    ``$REAL`` in it is the simulated command.
    """
    folder = tmp_path / "odd"
    folder.mkdir()
    behind = os.environ["PATH"]
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{behind}")

    def replace(name: str, script: Optional[str]) -> None:
        if script is None:
            (folder / name).unlink()
            return
        program = folder / f"{name}.new"
        program.write_text(f"#!/bin/sh\nPATH={behind}\nREAL={name}\n{script}\n")
        program.chmod(0o755)
        program.rename(folder / name)

    return replace
