"""``pulsar-serve`` killed with SIGKILL while ``sbatch`` runs and has submitted the job already."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Iterator

import pytest

from tests.pulsar_server import PulsarServer, wait_until
from tests.simulated import control

from .harness import QUICK

#: Submits, and does not come back: a slow controller, as Pulsar sees it.
SLOW_SBATCH = """#!/bin/sh
{bin}/sbatch "$@" > {folder}/told
sleep 600
"""


@pytest.fixture
def state(tmp_path: Path) -> Iterator[str]:
    """A simulated Slurm."""
    made = str(control.create(tmp_path / "slurm", time_scale=60, kill_wait=0.1))
    yield made
    control.stop_all(made)


def _environment(state: str, folder: Path) -> "dict[str, str]":
    environment = dict(control.environment(state))
    simulated = environment["PATH"].partition(":")[0]
    folder.mkdir()
    (folder / "sbatch").write_text(SLOW_SBATCH.format(bin=simulated, folder=folder))
    (folder / "sbatch").chmod(0o755)
    environment["PATH"] = f"{folder}:{environment['PATH']}"
    return environment


@pytest.mark.slow
def test_killed_while_it_submits(tmp_path: Path, state: str) -> None:
    """The job is in no index of Pulsar's; it is found, told, and not submitted a second time."""
    folder = tmp_path / "slow"
    server = PulsarServer(tmp_path, {"manager": QUICK}, _environment(state, folder))
    try:
        server.start()
        # Its request never gets an answer.
        asks = threading.Thread(target=_submit, args=(server,), daemon=True)
        asks.start()
        wait_until(lambda: (folder / "told").exists() and (folder / "told").read_text(), 60,
                   "the submission")
        server.kill()
        asks.join(60)
        directory = server.staging / "1"
        assert not (directory / "external_id").exists()
        assert not (directory / "preprocessed").exists()
        server.start()
        payload = server.wait_for("1", ["complete", "failed"])
        assert (payload["status"], payload["returncode"]) == ("complete", 3)
        assert (directory / "ran").read_text() == "once\n"
        assert len(control.commands(state, "sbatch")) == 1
    finally:
        server.kill()


def _submit(server: PulsarServer) -> None:
    try:
        server.submit("1", "sleep 3; echo once >> ../ran; (exit 3)", native_specification="-t 6000")
    except Exception as error:  # whatever the client makes of a server that dies
        print(f"as expected: {error!r}")
