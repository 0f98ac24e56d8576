"""A stock ``PulsarApp`` in this process, its ``queued_htcondor_classified`` on a simulated pool."""

from __future__ import annotations

import contextlib
import json
import os
import re
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Sequence

import pytest

from tests import simulated_htcondor
from tests.pulsar_in_process import PulsarInProcess
from tests.pulsar_server import wait_until

control = simulated_htcondor.control()

IDLE, RUNNING, REMOVED, COMPLETED, HELD = 1, 2, 3, 4, 5
LOG = "job_condor.log"

#: Graces of a few answers, so that tests need not wait for what operators have minutes for.
QUICK = {
    "type": "queued_htcondor_classified",
    "status_poll_interval": 0.1,
    "min_polling_interval": 0.05,
    "missing_grace": 0.3,
    "hold_grace": 0.5,
    "command_timeout": 10,
}


class Pool:
    """A simulated pool; this process and its children find its ``htcondor2`` in :meth:`in_use`."""

    def __init__(self, home: Path, **settings: Any) -> None:
        self.state = home
        control.configure(str(home), **{"policy_interval": 0.1, "vacate_time": 0.1, **settings})

    @contextlib.contextmanager
    def in_use(self) -> Iterator[Pool]:
        """Put the bindings and the pool into the environment; end all jobs afterwards."""
        with pytest.MonkeyPatch.context() as patch:
            self.bindings = simulated_htcondor.load(patch, self.state)
            for name, value in simulated_htcondor.environment(self.state).items():
                patch.setenv(name, value)
            try:
                yield self
            finally:
                simulated_htcondor.stop(self.state)

    def set(self, **settings: Any) -> None:
        """Change settings (``docs/fake-htcondor2.md``)."""
        control.configure(str(self.state), **settings)

    def do(self, what: str, external_id: str, *values: Any, **more: Any) -> None:
        """Do what somebody else would: ``hold``, ``release``, ``remove``, ``edit``, ``play`` ..."""
        getattr(control, what)(str(self.state), int(external_id), *values, **more)

    def schedd_down(self) -> None:
        """The schedd is gone."""
        control.schedd_down(str(self.state))

    def schedd_up(self) -> None:
        """The schedd is back, at another address."""
        control.schedd_up(str(self.state))

    def ad(self, external_id: str) -> Dict[str, str]:
        """Return the job's ad from queue or history, as texts; empty where it is unknown."""
        return control.job(str(self.state), int(external_id)) or {}

    def attribute(self, external_id: str, name: str) -> Optional[str]:
        """Return an attribute's text, whatever the case of its name; None where it is absent."""
        ad = {key.lower(): value for key, value in self.ad(external_id).items()}
        return ad.get(name.lower())

    def queue(self) -> List[int]:
        """Return the clusters in the queue."""
        with self.store().look() as queue:
            return [job.cluster for job in queue.jobs()]

    def store(self) -> Any:
        """Return the pool's database, for what ``control`` has no word for."""
        return control.Store(str(self.state))

    def wait_for(self, external_id: str, *statuses: int) -> None:
        """Wait until the job's JobStatus is one of these."""
        wait_until(
            lambda: int(self.ad(external_id).get("JobStatus", 0)) in statuses, 60,
            f"job {external_id} to be {statuses}", 0.02)

    def wait_gone(self, external_id: str) -> None:
        """Wait until the job has left the queue."""
        wait_until(
            lambda: int(external_id) not in self.queue(), 60, f"job {external_id} to leave", 0.02)


class Pulsar(PulsarInProcess):
    """A server whose managers are ``queued_htcondor_classified``."""

    quick = QUICK

    def submit(
        self,
        job_id: str,
        command_line: str = "true",
        play: Optional[str] = None,
        manager: str = "_default_",
        **commands: str,
    ) -> str:
        """Set up and launch a job; return its external id. ``play`` is what happens to it."""
        params: Dict[str, str] = dict(commands)
        if play is not None:
            params["+FakePlay"] = '"' + play.replace("\\", "\\\\").replace('"', '\\"') + '"'
        return self.launch(job_id, command_line, params, manager)

    def log(self, job_id: str) -> Path:
        """Return the job's event log."""
        return self.directory(job_id) / LOG

    def wait_for_events(self, job_id: str, *numbers: int) -> None:
        """Wait until the job's log has these events, in this order."""
        pattern = re.compile(".*".join(f"^{number:03} \\(" for number in numbers), re.M | re.S)
        wait_until(
            lambda: self.log(job_id).exists() and pattern.search(self.log(job_id).read_text()),
            60, f"events {numbers} of job {job_id}", 0.02)


def add_running_jobs(state: Path, home: Path, ids: Sequence[str]) -> List[int]:
    """Put running jobs without processes into a pool, and their directories into ``staging``.

    Their logs are ``logs/<cluster>.log`` too. Returns their clusters.
    """
    (home / "logs").mkdir()
    clusters: List[int] = control.inject(str(state), len(ids), log_folder=str(home / "logs"))
    for job_id, cluster in zip(ids, clusters):
        directory = home / "staging" / job_id
        directory.mkdir(parents=True)
        # By hand: Pulsar's setup of 10,000 jobs takes a minute.
        (directory / "external_id").write_text(json.dumps(str(cluster)))
        (directory / "running").write_text("true")
        os.link(home / "logs" / f"{cluster}.log", directory / LOG)
    with control.Store(str(state)).change() as queue:
        jobs = list(queue.jobs())
        for job_id, job in zip(ids, jobs):
            job.set(PulsarJobDirectory=os.path.realpath(home / "staging" / job_id))
        queue.put(*jobs)
    return clusters


def open_files(*folders: Path) -> int:
    """Return how many descriptors this process has of files in these folders.

    Not of all files: other threads, such as the ledger's, open and close theirs.
    """
    paths = []
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            paths.append(os.readlink(f"/proc/self/fd/{name}"))
    return sum(path.startswith(f"{folder}/") for path in paths for folder in folders)
