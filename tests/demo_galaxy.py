"""``make demo-galaxy``: a real Galaxy runs a job on a real Pulsar, which is killed at its walltime.

Galaxy resubmits it where there is more room, and it ends well. Printed: the job's history in
Galaxy, and how long it took from the DRM's end of the job to its resubmission. The DRM is a real
Slurm where there is one, else the simulated one of ``tests/fakes``; ``SIMULATED=1`` demands that.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Dict, Mapping, Optional, Tuple

from tests import demo
from tests.demo import say
from tests.galaxy.galaxy import ENDED, NEWEST, Galaxy, python_of, states_of
from tests.galaxy.job_conf import OURS, JobConf, rule
from tests.pulsar_server import PulsarServer

PATIENCE_S = 900
TOOL = "demo__sleeps"


def job_conf(pulsar: PulsarServer) -> JobConf:
    """Return Galaxy's configuration: a short environment, and a roomy one for what was killed."""
    conf = JobConf()
    conf.runner("pulsar", f"{OURS}:PulsarRESTJobRunner")
    for name, rules, limits, env in (
        ("short", [rule("walltime_reached", "roomy")], "--time=1 --mem=200", {}),
        ("roomy", [], "--time=60 --mem=200", {"ROOMY": "1"}),
    ):
        conf.environment(name, "pulsar", rules, env, url=pulsar.url,
                         default_file_action="transfer", submit_native_specification=limits)
    conf.tool(TOOL, "short")
    return conf


class Watch:
    """When the DRM ended the job that is in it first, seen by asking it again and again."""

    def __init__(self, pulsar: PulsarServer, site: demo.Site, job_id: str) -> None:
        self.ended_at: Optional[float] = None
        self._pulsar = pulsar
        self._env = {**os.environ, **site.env}
        self._job_id = job_id
        self._external_id: Optional[str] = None

    def look(self) -> None:
        """Ask the DRM, unless the end is known."""
        self._external_id = self._external_id or self._pulsar.external_id(self._job_id)
        if self.ended_at is not None or self._external_id is None:
            return
        shown = subprocess.run(
            ["scontrol", "--oneliner", "show", "job", self._external_id], env=self._env,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, timeout=60,
        ).stdout
        state = re.search(r"JobState=(\S+)", shown)
        if state and state.group(1) not in ("PENDING", "RUNNING"):
            self.ended_at = time.time()
            say(f"Slurm: job {self._external_id} has ended: {state.group(1)}")


def run_job(galaxy: Galaxy, pulsar: PulsarServer, site: demo.Site) -> Tuple[Dict[str, Any], Watch]:
    """Submit the job, follow it, and return what Galaxy knows of it at its end."""
    job_id = galaxy.submit(TOOL)
    say(f"submitted job {job_id}: `sleep 600` in the environment 'short', which allows a minute")
    watch = Watch(pulsar, site, str(job_id))
    shown = 0
    deadline = time.monotonic() + PATIENCE_S
    while True:
        watch.look()
        job = galaxy.job(job_id)
        for state, _, _ in job["history"][shown:]:
            say(f"Galaxy: job {job_id} is {state}")
        shown = len(job["history"])
        if job["state"] in ENDED:
            return job, watch
        if time.monotonic() > deadline:
            raise TimeoutError(f"job {job_id} has not ended: {states_of(job)}, see {pulsar.log}")
        time.sleep(0.2)


def show(job: Mapping[str, Any], watch: Watch) -> None:
    """Print the job's history, and how long the resubmission took."""
    print("\nThe job's history in Galaxy:")
    for state, at, info in job["history"]:
        print(f"  {time.strftime('%H:%M:%S', time.localtime(at))}  {state:<12} {info}".rstrip())
    reason = job["params"].get("failure_reason") or {}
    print(f"Its last environment: {job['destination']}. Why the first one ended it: "
          f"{reason.get('message') or reason or 'not told'}")
    resubmitted = [at for state, at, _ in job["history"] if state == "resubmitted"]
    if resubmitted and watch.ended_at:
        print(f"From the DRM's end of the job to its resubmission: "
              f"{max(0.0, resubmitted[0] - watch.ended_at):.1f} s\n", flush=True)


def demonstrate(home: Path) -> bool:
    """Run the demonstration; tell whether the job came to a good end."""
    say(f"{NEWEST}: making its environment if it is not there (a minute or some the first time)")
    python_of(NEWEST)
    with demo.started(demo.DRMS["slurm"], home / "drm") as site:
        pulsar = PulsarServer(home / "pulsar", {"manager": {"type": "queued_slurm"}}, site.env)
        conf = job_conf(pulsar)
        say("starting a real Galaxy and a stock Pulsar server")
        with pulsar, Galaxy(home / "galaxy", conf.content, conf.tools) as galaxy:
            say("both are up")
            job, watch = run_job(galaxy, pulsar, site)
            show(job, watch)
    good = job["state"] == "ok" and "resubmitted" in states_of(job)
    say("as expected: killed at its walltime, resubmitted, ok" if good
        else f"NOT as expected: {job['state']}, {states_of(job)}")
    return good


def main() -> int:
    """Run the demonstration; return 0 if all went as it should."""
    with tempfile.TemporaryDirectory(prefix="pfr-demo-") as folder:
        home = Path(folder)
        home.chmod(0o755)  # the daemons of a private Slurm run as several users
        return 0 if demonstrate(home) else 1


if __name__ == "__main__":
    sys.exit(main())
