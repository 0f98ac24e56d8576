"""``make demo``: what Galaxy is told of four jobs of a stock Pulsar with ``queued_slurm``.

One ends well, one's tool exits 3, one is killed at its walltime, one for memory. A real private
Slurm serves where Slurm is installed, else, or with ``SLURM=simulated`` in the environment, the
simulated one of ``tests/fakes``.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple

from tests.pulsar_server import PulsarServer

APP = {
    "manager": {
        "type": "queued_slurm",
    },
}
SHOWN_KEYS = ("status", "returncode", "runner_state", "runner_state_message", "failure_reason")
MEMORY_HOG = (
    "python3 -c 'import time\nblock = []\n"
    "for step in range(60): block.append(bytes([1]) * 10_000_000); time.sleep(0.1)'"
)


class Cluster(NamedTuple):
    """A Slurm to demonstrate on."""

    name: str
    env: Mapping[str, str]


class Job(NamedTuple):
    """One job of the demonstration."""

    job_id: str
    what: str
    command: str
    native_specification: str


JOBS = (
    Job("1", "a job that ends well", "echo hello", "--time=5 --mem=200"),
    Job("2", "a job whose tool exits with 3", "sh -c 'exit 3'", "--time=5 --mem=200"),
    Job("3", "a job killed at its walltime", "sleep 600", "--time=1 --mem=200"),
    Job("4", "a job killed for memory", MEMORY_HOG, "--time=5 --mem=100"),
)


def say(text: str) -> None:
    """Tell the person how far we are."""
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def some_slurm(home: Path) -> Iterator[Cluster]:
    """Start a real private Slurm where one is installed, else set up the simulated one."""
    os.environ["PATH"] += os.pathsep + "/usr/sbin"
    installed = all(map(shutil.which, ("slurmctld", "slurmd", "munged", "sbatch")))
    if installed and os.geteuid() == 0 and os.environ.get("SLURM") != "simulated":
        with real_slurm(home) as cluster:
            yield cluster
    else:
        with simulated_slurm(home) as cluster:
            yield cluster


@contextlib.contextmanager
def real_slurm(home: Path) -> Iterator[Cluster]:
    """A private one-node Slurm, started and stopped here."""
    from tests.real.slurm import PrivateSlurm

    accounting = all(map(shutil.which, ("slurmdbd", "mariadbd")))
    with PrivateSlurm(home, accounting=accounting) as slurm:
        yield Cluster(
            "a real Slurm, private to this demonstration (it looks for jobs over their time limit "
            "about once a minute, so this takes up to two)",
            slurm.env,
        )


@contextlib.contextmanager
def simulated_slurm(home: Path) -> Iterator[Cluster]:
    """The simulated Slurm, its minutes twenty times shorter."""
    from tests.simulated import control

    state = control.create(home, time_scale=20)
    try:
        yield Cluster(
            "the simulated Slurm of tests/fakes (no real one is installed)",
            control.environment(state),
        )
    finally:
        control.stop_all(state)


def show(job: Job, payload: Dict[str, Any]) -> None:
    """Print what Galaxy is told, without what stock Pulsar always says."""
    shown = {key: payload[key] for key in SHOWN_KEYS if key in payload}
    print(f"\n=== {job.what}: {job.command.splitlines()[0]}   [{job.native_specification}]")
    print(json.dumps(shown, indent=2))


def run_jobs(pulsar: PulsarServer) -> List[Dict[str, Any]]:
    """Submit the jobs, show the end of each and return their payloads."""
    for job in JOBS:
        pulsar.submit(job.job_id, job.command, native_specification=job.native_specification)
    say(f"submitted {len(JOBS)} jobs over HTTP to {pulsar.url}")
    payloads = []
    for job in JOBS:
        say(f"waiting for {job.what}")
        payloads.append(pulsar.wait_for_end(job.job_id, timeout_s=200))
        show(job, payloads[-1])
    return payloads


def main() -> int:
    """Run the demonstration; return 0 if every job ended as it should."""
    with tempfile.TemporaryDirectory(prefix="pfr-demo-") as folder:
        home = Path(folder)
        home.chmod(0o755)  # the daemons of a private Slurm run as several users
        say("starting Slurm")
        with some_slurm(home / "slurm") as cluster:
            say(f"using {cluster.name}")
            say("starting a stock Pulsar server; its app.yml says manager: {type: queued_slurm}")
            with PulsarServer(home / "pulsar", APP, cluster.env) as pulsar:
                payloads = run_jobs(pulsar)
    states = [payload.get("runner_state") for payload in payloads]
    expected = [None, None, "walltime_reached", "memory_limit_reached"]
    print()
    if states != expected:
        say(f"NOT as expected: runner_state {states}, expected {expected}")
        return 1
    say("all four as expected")
    return 0


if __name__ == "__main__":
    sys.exit(main())
