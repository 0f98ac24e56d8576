"""The site that the tour visits: a simulated Slurm, a stock Pulsar in front of it, and its jobs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Dict, Iterator, NamedTuple, Optional

import pytest

from tests.demo import SLURM
from tests.pulsar_server import PulsarServer

COMMAND = str(Path(sys.executable).with_name("pulsar-failure-reasons"))


class Said(NamedTuple):
    """What a command left: its exit code, and its two outputs apart."""

    code: int
    out: str
    err: str


class Visit:
    """A site as its operator sees it: an app.yml, a DRM, a shell.

    Jobs 1 to 4 are those of ``make demo`` (well, exit 3, walltime, memory), 5 is still running.
    """

    def __init__(self, pulsar: PulsarServer, env: Dict[str, str]) -> None:
        self.pulsar = pulsar
        self.app_yml = str(pulsar.home / "app.yml")
        self._env = env

    def run(self, *argv: str, given: str = "", timeout_s: float = 600.0,
            env: Optional[Dict[str, str]] = None) -> Said:
        """Run ``pulsar-failure-reasons`` on the Pulsar host; ``given`` is its standard input."""
        done = subprocess.run(
            [COMMAND, *argv], input=given, capture_output=True, text=True, timeout=timeout_s,
            env={**os.environ, **self._env, **(env or {})}, cwd=self.pulsar.home,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Said(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visit]:
    """The site, after its first four jobs have ended and while the fifth runs."""
    home = tmp_path_factory.mktemp("tour")
    with SLURM.simulated(home / "drm") as drm:
        manager = {**SLURM.manager, "status_poll_interval": 1}
        with PulsarServer(home / "pulsar", {"manager": manager}, drm.env) as pulsar:
            for number, job in enumerate(SLURM.jobs, 1):
                pulsar.submit(str(number), job.command, **job.params)
            pulsar.submit("5", "sleep 7200", native_specification="--time=30000")
            for number, job in enumerate(SLURM.jobs, 1):
                assert pulsar.wait_for_end(str(number))["status"] == job.status
            pulsar.wait_for("5", ["running"])
            yield Visit(pulsar, dict(drm.env))
