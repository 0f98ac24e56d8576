"""A server killed between the submission and its own record of it, on a real Slurm and Grid Engine.

Found again by the job's name, and told from another job of that name by where it works: on Grid
Engine by what the real ``qstat -j`` shows of its streams.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, Mapping

import pytest

from tests.manager.harness import Pulsar, own_observers, running
from tests.pulsar_server import wait_until
from tests.real.gridengine import PrivateGridEngine
from tests.real.slurm import PrivateSlurm

pytestmark = [pytest.mark.real, pytest.mark.slow]

BEGAN = "touch ../began; sleep 600"


def _is_found_again(home: Path, env: Mapping[str, str], **options: Any) -> None:
    """Submit the same name from two folders, kill one server in its launch, start it again."""
    manager: Dict[str, Any] = {"type": "queued_cli_classified", "status_poll_interval": 0.5,
                               "missing_grace": 5, "hold_grace": 60, **options}
    with pytest.MonkeyPatch.context() as patch, own_observers():
        for name, value in env.items():
            patch.setenv(name, value)
        with running(Pulsar(home / "other", manager=manager)) as other:
            theirs = other.submit("1", BEGAN)
            with running(Pulsar(home / "ours", manager=manager)) as first:
                external_id = first.submit("1", BEGAN)
                for server in (first, other):
                    began = server.directory("1") / "began"
                    wait_until(began.exists, 180, "the job to begin")
            for name in ("preprocessed", "external_id"):
                (first.directory("1") / name).unlink()
            first.proxy().active_jobs.deactivate_job("1")
            with running(Pulsar(home / "ours", manager=manager)) as again:
                again.wait_for("1", "running", timeout_s=180)
                assert again.external_id("1") == external_id != theirs
                again.proxy().kill("1")
            assert other.wait_for("1", "running", timeout_s=180)["status"] == "running"
            other.proxy().kill("1")


def test_grid_engine(real_gridengine: PrivateGridEngine, tmp_path: Path) -> None:
    """qstat -xml gives the name, qstat -xml -j where the streams lie."""
    _is_found_again(tmp_path, real_gridengine.env, job_plugin="SGE")
    real_gridengine.delete_all()


def test_slurm(real_slurm: PrivateSlurm, tmp_path: Path) -> None:
    """squeue gives name and working directory."""
    _is_found_again(tmp_path, real_slurm.env, job_plugin="Slurm")
