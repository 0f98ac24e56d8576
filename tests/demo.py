"""``make demo``: what Galaxy is told of the jobs of a stock Pulsar with one of our managers.

One job ends well, one's tool exits 3, one is killed at its walltime, one for memory; with HTCondor
one is held by a person and released. The environment says on what:

* ``DRM=slurm`` (default) or ``DRM=htcondor``
* ``SIMULATED=1``: on the simulated DRM of ``tests/fakes``; else on a real one of its own, where
  there is one (HTCondor is fetched first where it can be)
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import (
    Any,
    Callable,
    ContextManager,
    Dict,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
)

import yaml

from tests.pulsar_server import PulsarServer

SHOWN_KEYS = ("status", "returncode", "runner_state", "runner_state_message", "failure_reason")
MEMORY_HOG = (
    "python3 -c 'import time; "
    "kept = [time.sleep(0.1) or bytes([1]) * 10_000_000 for _ in range(60)]; time.sleep(3600)'"
)


class Site(NamedTuple):
    """A started DRM: its name for people, and the environment of who uses it."""

    name: str
    env: Mapping[str, str]


class Job(NamedTuple):
    """One job of the demonstration, and what it should come to.

    ``params`` are what Galaxy's destination would have as ``submit_NAME``. ``meanwhile`` is done
    to the job once all are submitted.
    """

    what: str
    command: str
    params: Mapping[str, str]
    status: str
    runner_state: Optional[str] = None
    meanwhile: Optional[Callable[[PulsarServer, Site, str], None]] = None


class Drm(NamedTuple):
    """What the demonstration needs to know of one DRM.

    ``why_no_real`` returns why no real one can be started here, None if one can; it may fetch one.
    """

    label: str
    manager: Mapping[str, object]
    jobs: List[Job]
    why_no_real: Callable[[], Optional[str]]
    real: Callable[[Path], ContextManager[Site]]
    simulated: Callable[[Path], ContextManager[Site]]


def say(text: str) -> None:
    """Tell the person how far we are."""
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


# --- Slurm ------------------------------------------------------------------------------------


def why_no_real_slurm() -> Optional[str]:
    """See ``Drm``."""
    os.environ["PATH"] += os.pathsep + "/usr/sbin"
    if not all(map(shutil.which, ("slurmctld", "slurmd", "munged", "sbatch"))):
        return "no real one is installed"
    return None if os.geteuid() == 0 else "a real one needs root"


@contextlib.contextmanager
def real_slurm(home: Path) -> Iterator[Site]:
    """A private one-node Slurm, started and stopped here."""
    from tests.real.slurm import PrivateSlurm

    accounting = all(map(shutil.which, ("slurmdbd", "mariadbd")))
    with PrivateSlurm(home, accounting=accounting) as slurm:
        yield Site(
            "a real Slurm, private to this demonstration (it looks for jobs over their time limit "
            "about once a minute, so this takes up to two)",
            slurm.env,
        )


@contextlib.contextmanager
def simulated_slurm(home: Path) -> Iterator[Site]:
    """The simulated Slurm, its minutes twenty times shorter."""
    from tests.simulated import control

    state = control.create(home, time_scale=20)
    try:
        name = "the simulated Slurm of tests/fakes, its clock 20 times as fast"
        yield Site(name, control.environment(state))
    finally:
        control.stop_all(state)


def with_native(limits: str) -> Dict[str, str]:
    """Return the parameters of a job with this native specification."""
    return {"native_specification": limits}


SLURM = Drm(
    label="Slurm",
    manager={"type": "queued_slurm"},
    jobs=[
        Job("a job that ends well", "echo hello", with_native("--time=60 --mem=200"), "complete"),
        Job("a job whose tool exits with 3", "sh -c 'exit 3'", with_native("--time=60 --mem=200"),
            "complete"),
        Job("a job killed at its walltime", "sleep 600", with_native("--time=1 --mem=200"),
            "failed", "walltime_reached"),
        Job("a job killed for memory", MEMORY_HOG, with_native("--time=60 --mem=100"),
            "failed", "memory_limit_reached"),
    ],
    why_no_real=why_no_real_slurm,
    real=real_slurm,
    simulated=simulated_slurm,
)


# --- HTCondor ---------------------------------------------------------------------------------

ACT = """\
import sys, htcondor2
schedd = htcondor2.Schedd(htcondor2.Collector().locate(htcondor2.DaemonType.Schedd))
action, job, reason = sys.argv[1:]
schedd.act(getattr(htcondor2.JobAction, action), [job], reason=(reason, 0))
"""


def why_no_real_htcondor() -> Optional[str]:
    """See ``Drm``: Debian's HTCondor is fetched first where we are root on Debian."""
    from tests.real import htcondor, install

    if htcondor.htcondor_prefix() is None and os.geteuid() == 0 and shutil.which("apt-get"):
        say("fetching a real HTCondor for the tests and this demonstration (16 MB, once)")
        install.main(["htcondor"])
    return htcondor.why_missing()


@contextlib.contextmanager
def real_htcondor(home: Path) -> Iterator[Site]:
    """A private pool, started and stopped here."""
    from tests.real.htcondor import PrivatePool

    with PrivatePool(home) as pool:
        yield Site("a real HTCondor pool, private to this demonstration", pool.env)


@contextlib.contextmanager
def simulated_htcondor(home: Path) -> Iterator[Site]:
    """The simulated pool."""
    from tests import simulated_htcondor as simulated

    try:
        yield Site("the simulated HTCondor of tests/fakes", simulated.environment(home))
    finally:
        simulated.stop(home)


def hold_and_release(pulsar: PulsarServer, site: Site, job_id: str) -> None:
    """Do what a person does who holds a job, and releases it once Pulsar shows it queued."""
    pulsar.wait_for(job_id, ["running"])
    job = f"{pulsar.external_id(job_id)}.0"

    def act(action: str) -> None:
        command = [sys.executable, "-c", ACT, action, job, "a person at work"]
        subprocess.run(command, env={**os.environ, **site.env}, check=True, timeout=120)

    act("Hold")
    say(f"held HTCondor's job {job}; status now: {pulsar.wait_for(job_id, ['queued'])['status']}")
    act("Release")
    # Not in "working": a job script that runs again begins with a new one.
    (pulsar.staging / job_id / "go_on").touch()


HTCONDOR = Drm(
    label="HTCondor",
    manager={
        "type": "queued_htcondor_classified", "request_memory": 100, "status_poll_interval": 3,
    },
    jobs=[
        Job("a job that ends well", "echo hello", {}, "complete"),
        Job("a job whose tool exits with 3", "sh -c 'exit 3'", {}, "complete"),
        Job("a job over its walltime", "sleep 600", {"request_walltime": "8"},
            "failed", "walltime_reached"),
        Job("a job over its memory", MEMORY_HOG, {}, "failed", "memory_limit_reached"),
        Job("a job held by a person, and released",
            "until test -e ../go_on; do sleep 1; done", {}, "complete",
            meanwhile=hold_and_release),
    ],
    why_no_real=why_no_real_htcondor,
    real=real_htcondor,
    simulated=simulated_htcondor,
)

DRMS = {"slurm": SLURM, "htcondor": HTCONDOR}


# --- for any DRM ------------------------------------------------------------------------------


@contextlib.contextmanager
def started(drm: Drm, home: Path) -> Iterator[Site]:
    """Start a real DRM, or where that cannot be or is not wanted, the simulated one."""
    simulated = os.environ.get("SIMULATED", "") not in ("", "0")
    why_not = "SIMULATED is set" if simulated else drm.why_no_real()
    say(f"starting {drm.label}")
    with drm.simulated(home) if why_not else drm.real(home) as site:
        say(f"using {site.name}{f' ({why_not})' if why_not else ''}")
        yield site


def run_jobs(pulsar: PulsarServer, site: Site, jobs: List[Job]) -> List[Dict[str, Any]]:
    """Submit the jobs, show the end of each and return their payloads."""
    numbered = [(str(number), job) for number, job in enumerate(jobs, 1)]
    for job_id, job in numbered:
        pulsar.submit(job_id, job.command, **job.params)
    say(f"submitted {len(jobs)} jobs over HTTP to {pulsar.url}")
    for job_id, job in numbered:
        if job.meanwhile is not None:
            job.meanwhile(pulsar, site, job_id)
    payloads = []
    for job_id, job in numbered:
        say(f"waiting for {job.what}")
        payloads.append(pulsar.wait_for_end(job_id, timeout_s=200))
        show(job, payloads[-1])
    return payloads


def show(job: Job, payload: Dict[str, Any]) -> None:
    """Print what Galaxy is told, without what stock Pulsar always says."""
    shown = {key: payload[key] for key in SHOWN_KEYS if key in payload}
    params = " ".join(f"{name}={value}" for name, value in job.params.items())
    print(f"\n=== {job.what}: {job.command}   [{params}]")
    print(json.dumps(shown, indent=2), flush=True)


def demonstrate(drm: Drm, home: Path) -> bool:
    """Run the jobs; tell whether each ended as it should."""
    with started(drm, home / "drm") as site:
        app_yml = yaml.safe_dump({"manager": dict(drm.manager)}, default_flow_style=True).strip()
        say(f"starting a stock Pulsar server; its app.yml says {app_yml}")
        with PulsarServer(home / "pulsar", {"manager": dict(drm.manager)}, site.env) as pulsar:
            payloads = run_jobs(pulsar, site, drm.jobs)
    seen = [(payload["status"], payload.get("runner_state")) for payload in payloads]
    expected = [(job.status, job.runner_state) for job in drm.jobs]
    print(flush=True)
    say(f"all {len(seen)} as expected" if seen == expected
        else f"NOT as expected: {seen}, expected {expected}")
    return seen == expected


def main() -> int:
    """Run the demonstration; return 0 if every job ended as it should."""
    name = os.environ.get("DRM") or "slurm"
    if name not in DRMS:
        say(f"DRM={name}: there is no demonstration for it; there is: {', '.join(DRMS)}")
        return 2
    with tempfile.TemporaryDirectory(prefix="pfr-demo-") as folder:
        home = Path(folder)
        home.chmod(0o755)  # the daemons of a private Slurm run as several users
        return 0 if demonstrate(DRMS[name], home) else 1


if __name__ == "__main__":
    sys.exit(main())
