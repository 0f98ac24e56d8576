"""A stock Pulsar in front of a private real Slurm, and jobs through the pair."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import Any, Dict, Optional

from tests.pulsar_server import PulsarServer, wait_until
from tests.real.slurm import PrivateSlurm

#: Seconds between two looks: the default of 15 would make the tests slow, nothing else.
QUICK = {"status_poll_interval": 1, "missing_grace": 4}

HOG = (
    "python3 -c 'import time\nblock = []\n"
    "for step in range(20): block.append(bytes([1]) * 10_000_000); time.sleep(0.1)\n"
    "time.sleep(600)'"
)

#: A tool that runs until ``let_go``: no test is to be over before the machine has come to look.
#: Not in the working directory, which a job script that runs again makes anew.
UNTIL_LET_GO = "until [ -e ../go ]; do sleep 0.2; done"

#: Seconds that a status may take: over twice what Slurm needs for its slowest (a limit of one
#: minute: up to 87 s).
PATIENCE_S = 180

_job_ids = itertools.count(1)


class Site:
    """One cluster with one Pulsar server.

    Args:
        slurm: The cluster, started.
        home: Folder for the server.
        manager: Options of ``queued_slurm`` beside the quick ones.
    """

    def __init__(self, slurm: PrivateSlurm, home: Path, **manager: Any) -> None:
        self.slurm = slurm
        app = {"manager": {"type": "queued_slurm", **QUICK, **manager}}
        self.pulsar = PulsarServer(home, app, slurm.env)

    def __enter__(self) -> Site:
        self.pulsar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.pulsar.stop()

    def submit(self, command: str, spec: str = "--time=5 --mem=100") -> str:
        """Submit a job through Pulsar and return its Pulsar id."""
        job_id = str(next(_job_ids))
        return self.pulsar.submit(job_id, command, native_specification=spec)

    def external_id(self, job_id: str) -> str:
        """Return the job's Slurm id, which is there when ``submit`` has returned."""
        external_id = self.pulsar.external_id(job_id)
        assert external_id is not None, f"job {job_id} was not submitted to Slurm"
        return external_id

    def running(self, job_id: str) -> str:
        """Wait until Pulsar says that the job runs; return its Slurm id."""
        self.pulsar.wait_for(job_id, ["running"], PATIENCE_S)
        return self.external_id(job_id)

    def end(self, job_id: str, timeout_s: float = PATIENCE_S) -> Dict[str, Any]:
        """Return the job's terminal payload."""
        return self.pulsar.wait_for_end(job_id, timeout_s)

    def tool_has_started(self, job_id: str) -> None:
        """Wait until the job's tool has made the file ``started`` in its working directory."""
        path = self.pulsar.staging / job_id / "working" / "started"
        wait_until(path.exists, PATIENCE_S, f"the tool of job {job_id} to start")

    def let_go(self, job_id: str) -> None:
        """Let a tool that runs ``UNTIL_LET_GO`` end, in this run or in the next."""
        (self.pulsar.staging / job_id / "go").touch()

    def return_code_file(self, job_id: str) -> Path:
        """Return the path of the file that the job script writes after the tool."""
        return Path(os.path.join(self.pulsar.staging, job_id, "return_code"))


def outcome(payload: Dict[str, Any]) -> Dict[str, Optional[Any]]:
    """Return what decides Galaxy's next step, and the cause behind it."""
    details = payload.get("failure_reason") or {}
    return {
        "status": payload["status"],
        "returncode": payload["returncode"],
        "runner_state": payload.get("runner_state"),
        "cause": details.get("cause"),
    }
