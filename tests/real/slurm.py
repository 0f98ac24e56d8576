"""A private, real Slurm on loopback, without systemd: for the tests and for ``make demo``.

    with PrivateSlurm(home) as slurm:
        job = slurm.submit("sleep 60")
        slurm.expire(job)
        slurm.wait_state(job, "TIMEOUT")

Several clusters run side by side, each with its own folder, ports, munged and MariaDB. As root,
jobs may be limited by cgroups (v1) and run as any user; as an ordinary user it works for that
user's jobs alone. Every process is ended by its own pid; what a crashed run left in the same
folder is ended by the next ``start()``.

Command line: ``python -m tests.real.slurm up --home DIR`` prints what to export,
``down --home DIR`` ends it.
"""

from __future__ import annotations

import argparse
import atexit
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import List, Optional, Sequence, Union

from tests.real.processes import PATIENCE_S, HarnessError, wait_until
from tests.real.slurm_cluster import MARKER, SlurmCluster
from tests.real.slurm_machine import SYSTEM_PATH, VERSIONS, programs_path

ENDED = (
    "BOOT_FAIL",
    "CANCELLED",
    "COMPLETED",
    "DEADLINE",
    "FAILED",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "PREEMPTED",
    "TIMEOUT",
)
JobId = Union[int, str]


def why_missing(
    version: str = "22.05", accounting: bool = True, auth: str = "munge"
) -> Optional[str]:
    """Return why a private Slurm cannot be started here and what to do, or None if it can."""
    try:
        front, _ = programs_path(version)
        search = os.pathsep.join([*front, *SYSTEM_PATH])
    except HarnessError as error:
        return str(error)
    needed = ["slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "scancel"]
    needed += ["munged"] if auth == "munge" else []
    needed += ["slurmdbd", "sacct", "mariadbd", "mariadb-install-db"] if accounting else []
    lacking = [name for name in needed if shutil.which(name, path=search) is None]
    if lacking:
        part = "slurm" if version == "22.05" else "slurm24"
        return f"{', '.join(lacking)} not found: run as root: python -m tests.real.install {part}"
    slurmctld = shutil.which("slurmctld", path=search)
    shown = subprocess.run([str(slurmctld), "-V"], capture_output=True, text=True, timeout=60)
    if version not in shown.stdout:
        return f"{slurmctld} is {shown.stdout.strip() or shown.stderr.strip()!r}, not {version}"
    return None


class PrivateSlurm(SlurmCluster):
    """A private cluster, and what tests do with its jobs and nodes; options as SlurmCluster's."""

    # ---- jobs --------------------------------------------------------------------------------

    def submit(self, script: str, *options: str, user: Optional[str] = None) -> str:
        """Submit a shell script (its text without the first line) and return the job's id."""
        argv = ["sbatch", "--parsable", *options]
        done = self.run(argv, user=user, stdin=f"#!/bin/sh\n{script}\n")
        return done.stdout.strip().split(";")[0]

    def state(self, job_id: JobId) -> Optional[str]:
        """Return the controller's word for the job's state, or None if it does not know the job."""
        shown = self.run(
            ["squeue", "--noheader", "--states=all", f"--jobs={job_id}", "--format=%T"],
            check=False,
        )
        if shown.returncode != 0 and "Invalid job id" not in shown.stderr:
            raise HarnessError(f"squeue on job {job_id}: {shown.stderr.strip()}")
        return shown.stdout.split("\n")[0].strip() or None

    def wait_state(self, job_id: JobId, *states: str, timeout_s: float = PATIENCE_S) -> str:
        """Wait until the job is in one of `states` (default: any end) and return it.

        Raises:
            HarnessError: it is not by then, or it ended in another one.
        """
        wanted = states or ENDED
        seen: List[Optional[str]] = []

        def reached() -> bool:
            seen.append(self.state(job_id))
            if seen[-1] in ENDED and seen[-1] not in wanted:
                raise HarnessError(f"job {job_id} ended {seen[-1]}, not {' or '.join(wanted)}")
            return seen[-1] in wanted

        wait_until(reached, timeout_s, f"job {job_id} to be {' or '.join(wanted)}", interval_s=0.1)
        return str(seen[-1])

    def accounted(self, job_id: JobId) -> str:
        """Return accounting's State of the job itself ("CANCELLED by 0"), or "" if it has no
        row."""
        shown = self.run(
            [
                "sacct",
                "--noheader",
                "--parsable2",
                "--allocations",
                f"--jobs={job_id}",
                "--format=State",
            ]
        )
        return shown.stdout.split("\n")[0]

    def wait_accounted(self, job_id: JobId, state: str, timeout_s: float = PATIENCE_S) -> None:
        """Wait until accounting's State of the job begins with `state`."""
        wait_until(
            lambda: self.accounted(job_id).startswith(state),
            timeout_s,
            f"sacct to call job {job_id} {state}",
            interval_s=0.2,
        )

    def expire(self, job_id: JobId) -> None:
        """Let a running job reach its walltime in 2 s; Slurm notices within about 30 s.

        It refuses a time that is past when the command arrives, so a stalling machine gets more.
        """
        for ahead_s in (2, 10, 60, 180):
            end = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(time.time() + ahead_s))
            update = ["scontrol", "update", f"jobid={job_id}", f"EndTime={end}"]
            done = self.run(update, check=False)
            if "Invalid time specified" not in done.stderr:
                break
        if done.returncode != 0:
            raise HarnessError(f"{shlex.join(update)}: {done.stderr.strip()}")

    def start_now(self, job_id: JobId) -> None:
        """Let a requeued job run at once; Slurm would keep it for two minutes (Reason=BeginTime).

        Slurm waits so that its words about the former run are long over. So must we: a node that
        was away gets REQUEST_TERMINATE_JOB of the former run when it is back, and if that meets the
        new run it kills it, or the controller takes the new run's end for one that it knows already
        and calls the job RUNNING for minutes (22.05.8). Nor does a node run a job whose credential
        is of the second in which it was told to end it, or older.
        """
        self.wait_all_told()
        self.run(["scontrol", "update", f"jobid={job_id}", "StartTime=now+1"])

    def wait_all_told(self, timeout_s: float = 2 * PATIENCE_S) -> None:
        """Wait until the controller has no message to a node under way or to be sent again.

        It tries a node that does not answer again every 60 s (RPC_RETRY_INTERVAL).
        """
        wait_until(
            lambda: self.untold() == 0, timeout_s, "slurmctld's messages to arrive", interval_s=0.1
        )

    def untold(self) -> int:
        """Return how many messages to nodes slurmctld is sending or will send again."""
        shown = self.run(["sdiag"]).stdout
        counts = re.findall(r"^Agent (?:queue size|count): +(\d+)$", shown, re.MULTILINE)
        if len(counts) != 2:
            raise HarnessError(f"sdiag does not tell the size of the agent queue: {shown[:500]!r}")
        return sum(map(int, counts))

    def wait_forgotten(self, job_id: JobId, timeout_s: float = 2 * PATIENCE_S) -> None:
        """Wait until the controller does not know the job any more (for clusters with
        min_job_age=2)."""
        wait_until(
            lambda: self.state(job_id) is None,
            timeout_s,
            f"the controller to forget job {job_id}",
            interval_s=0.5,
        )

    def cancel_all(self, timeout_s: float = PATIENCE_S) -> None:
        """Cancel every job and wait until all nodes are idle again."""
        listed = self.run(["squeue", "--noheader", "--format=%A"]).stdout.split()
        if listed:
            self.run(["scancel", *sorted(set(listed))], check=False)
        self.wait_idle(timeout_s)

    # ---- nodes -------------------------------------------------------------------------------

    def node_down(self, node: Optional[str] = None) -> None:
        """Declare a node down, as an admin does: its jobs end NODE_FAIL (or are requeued) at once.

        Their processes are killed without a word to the controller, as if the power had failed. If
        they lived on, the next start of a requeued job there would meet its own former run, and
        Slurm would drain the node ("Duplicate jobid").
        """
        name = node or self.nodes[0]
        self.run(["scontrol", "update", f"nodename={name}", "state=DOWN", "reason=test"])
        self._kill_job_processes(name)

    def node_up(self, node: Optional[str] = None, timeout_s: float = PATIENCE_S) -> None:
        """Bring a node that is down, or whose slurmd was killed, back and wait until it takes
        jobs."""
        name = node or self.nodes[0]
        if not self.daemons.alive(f"slurmd-{name}"):
            self._start_slurmd(name)

        def resumed() -> bool:
            state = self.run(
                ["sinfo", "--noheader", f"--nodes={name}", "--format=%T"]
            ).stdout.split()[:1]
            if state and state[0].startswith(("down", "drain")):
                self.run(["scontrol", "update", f"nodename={name}", "state=RESUME"], check=False)
            return bool(state) and state[0] in ("idle", "mixed", "allocated")

        wait_until(resumed, timeout_s, f"node {name} to come back", interval_s=0.3)

    def crash_node(self, node: Optional[str] = None) -> None:
        """Kill a node's slurmd with all its jobs' processes; it counts as failed after
        slurmd_timeout."""
        name = node or self.nodes[0]
        self.daemons.kill(f"slurmd-{name}")
        self._kill_job_processes(name)


# ---- command line ----------------------------------------------------------------------------


def up(options: argparse.Namespace) -> None:
    """Start a cluster that outlives this process, or find it running; print what to export."""
    slurm = PrivateSlurm(
        options.home,
        version=options.version,
        accounting=options.accounting,
        min_job_age=options.min_job_age,
    )
    if not slurm.running():
        missing = why_missing(options.version, options.accounting)
        if missing:
            raise HarnessError(missing)
        slurm.start()
        atexit.unregister(slurm.stop)
    exported = {name: slurm.env[name] for name in ("SLURM_CONF", "PATH")}
    if options.format == "json":
        facts = {
            "version": slurm.version,
            "home": str(slurm.home),
            "nodes": slurm.nodes,
            "cgroup": slurm.cgroup,
            "accounting": slurm.accounting,
        }
        print(json.dumps({**exported, **facts}))
    else:
        for name, value in exported.items():
            print(f"export {name}={shlex.quote(value)}")


def down(options: argparse.Namespace) -> None:
    """End the cluster in the given folder."""
    home = Path(options.home).resolve()
    if (home / MARKER).exists():
        PrivateSlurm(home, version=recorded_version(home)).stop()


def recorded_version(home: Path) -> str:
    """Return the version that the cluster in `home` was started with."""
    try:
        return str(json.loads((home / "layout.json").read_text())["version"])
    except (OSError, ValueError, KeyError):
        return VERSIONS[0]


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Run the command line; return 0, or 2 if it could not be done."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.real.slurm",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name, function in (("up", up), ("down", down)):
        command = commands.add_parser(name, help=function.__doc__)
        command.add_argument("--home", required=True, help="the cluster's own folder")
        command.set_defaults(function=function)
        if name == "up":
            command.add_argument("--version", choices=VERSIONS, default=VERSIONS[0])
            command.add_argument("--no-accounting", dest="accounting", action="store_false")
            command.add_argument("--min-job-age", type=int, default=300, metavar="SECONDS")
            command.add_argument("--format", choices=("shell", "json"), default="shell")
    options = parser.parse_args(arguments)
    try:
        options.function(options)
    except (HarnessError, OSError, subprocess.SubprocessError) as error:
        print(f"tests.real.slurm: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
