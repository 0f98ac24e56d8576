"""The same jobs, the same faults: what stock ``queued_cli`` says, and what ours says."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, NamedTuple, Optional

import pytest

from tests.manager.harness import Pulsar, Slurm, own_observers, reason_of, running
from tests.pulsar_server import wait_until
from tests.simulated import control

from .conftest import CLI

HOG = (
    "python3 -c 'import time\nblock = []\n"
    "for step in range(100): block.append(bytes([1]) * 4000000); time.sleep(0.02)\n"
    # Until it is killed, however late somebody looks.
    "time.sleep(600)'"
)
BEGAN = "touch ../began; sleep 600"


class Fault(NamedTuple):
    """A job, what happens to it, and what each manager says: a status and a cause.

    ``stock`` is the word that queued_cli's own look returns; None is its None.
    """

    command: str
    native: str
    stock: Optional[str]
    status: str
    cause: Optional[str]
    happens: Optional[Callable[[Slurm, str], Any]] = None


FAULTS: Dict[str, Fault] = {
    "timeout": Fault("sleep 600", "-t 1", "complete", "failed", "walltime"),
    "out_of_memory": Fault(HOG, "-t 6000 --mem=40", "complete", "failed", "memory"),
    "script_exits_7": Fault("exit 7", "-t 6000", "complete", "failed", "launch_error"),
    "cancelled": Fault(
        BEGAN, "-t 6000", "complete", "failed", "cancelled", lambda slurm, job: slurm.scancel(job)),
    "node_failure": Fault(
        BEGAN, "-t 6000 --no-requeue", "complete", "failed", "node_failure",
        lambda slurm, job: control.event(slurm.state, job, "node_failure")),
    "aged_out_timeout": Fault(
        "sleep 600", "-t 1 --comment=fake:min_job_age=0", "complete", "failed", "walltime"),
    "aged_out_unseen": Fault(
        "kill -9 $$", "--comment=fake:min_job_age=0", "complete", "failed", "unknown"),
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of this module's servers and Slurm."""
    return tmp_path_factory.mktemp("stock")


@pytest.fixture(scope="module")
def slurm(home: Path) -> Iterator[Slurm]:
    """A simulated Slurm."""
    with Slurm(home / "slurm").in_use() as simulated:
        yield simulated


@pytest.fixture(scope="module")
def pulsar(home: Path, slurm: Slurm) -> Iterator[Pulsar]:
    """A server with both managers."""
    stock = {"type": "queued_cli", "job_plugin": "Slurm", "shell_plugin": "LocalShell"}
    with own_observers():
        with running(Pulsar(home, managers={"ours": CLI, "stock": stock})) as server:
            yield server


@pytest.fixture(scope="module")
def told(pulsar: Pulsar, slurm: Slurm) -> Dict[str, Any]:
    """Play all faults; return what stock's look says of each job once ours has made up its mind.

    Stock's looks take 3 s each, so they are made at once.
    """
    ids = {}
    for name, fault in FAULTS.items():
        ids[name] = pulsar.submit(name, fault.command, fault.native, manager="ours")
    for name, fault in FAULTS.items():
        if fault.happens:
            began = pulsar.directory(name) / "began"
            wait_until(began.exists, 60, f"{name} to begin", 0.02)
            fault.happens(slurm, ids[name])
    for name, fault in FAULTS.items():
        pulsar.wait_for(name, fault.status, manager="ours")
    look = pulsar.manager("stock")._get_status_external
    with ThreadPoolExecutor(len(ids)) as pool:
        return dict(zip(ids, pool.map(look, ids.values())))


@pytest.mark.parametrize("name", FAULTS)
def test_fault(told: Dict[str, Any], pulsar: Pulsar, name: str) -> None:
    """Stock calls a killed job complete or knows no word for it; ours says what happened."""
    fault = FAULTS[name]
    assert told[name] == fault.stock
    payload = pulsar.payload(name, manager="ours")
    assert (payload["status"], reason_of(payload)) == (fault.status, fault.cause)


@pytest.mark.parametrize(
    "odd", ["controller down", "no squeue", "squeue says nothing"]
)
def test_no_answer(pulsar: Pulsar, slurm: Slurm, home: Path, odd: str) -> None:
    """Stock calls a running job complete when its look gets no answer; ours keeps it running."""
    name = odd.replace(" ", "-")
    external_id = pulsar.submit(name, "sleep 600", "-t 600", manager="ours")
    pulsar.wait_for(name, "running", manager="ours")
    with pytest.MonkeyPatch.context() as patch:
        folder = home / name
        folder.mkdir()
        if odd == "controller down":
            slurm.set(controller_down=True)
        elif odd == "no squeue":
            for program in ("sh", "env", "sed", "id"):
                real = next(p for p in (Path("/bin"), Path("/usr/bin")) if (p / program).exists())
                (folder / program).symlink_to(real / program)
            patch.setenv("PATH", str(folder))
        else:
            (folder / "squeue").write_text("#!/bin/sh\nexit 1\n")
            (folder / "squeue").chmod(0o755)
            patch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
        counters = pulsar.observer("ours").counters
        target = counters.failed_passes + 2
        assert pulsar.manager("stock")._get_status_external(external_id) == "complete"
        wait_until(lambda: counters.failed_passes >= target, 60, "two failed looks", 0.02)
        assert pulsar.status(name, manager="ours") == "running"
    slurm.set(controller_down=None)
    pulsar.wait_for_looks(1, "ours")
    assert pulsar.status(name, manager="ours") == "running"
