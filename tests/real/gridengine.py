"""A private, real Grid Engine (Debian's SGE 8.1.9), without systemd: for the tests.

    with PrivateGridEngine(home) as cell:
        job = cell.submit("exit 3")
        assert cell.wait_accounted(job)[0]["exit_status"] == "3"

qmaster and execd live in a network namespace of their own, because they bind to every address that
they see; so it needs root, and jobs have no network but a loopback of their own. ``cell.bin`` holds
commands that enter the namespace: whatever root starts with ``cell.env`` (a Pulsar, an sshd) uses
them like those of a system-wide installation. Several cells run side by side. Jobs run as root
unless ``submit`` is told otherwise.

Command line: ``python -m tests.real.gridengine up --home DIR`` prints what to export,
``down --home DIR`` ends it.
"""

from __future__ import annotations

import argparse
import atexit
import json
import shlex
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Dict, List, Optional, Sequence, Union

from tests.real.gridengine_cell import MARKER, GridEngineCell, why_missing
from tests.real.gridengine_conf import HOST
from tests.real.processes import PATIENCE_S, HarnessError, wait_until

__all__ = ["PrivateGridEngine", "why_missing"]
JobId = Union[int, str]
Record = Dict[str, str]


class PrivateGridEngine(GridEngineCell):
    """A private cell, and what tests do with its jobs; options as GridEngineCell's."""

    # ---- jobs ----------------------------------------------------------------------------------

    def submit(self, script: str, *options: str, user: Optional[str] = None) -> str:
        """Submit a shell script (its text without the first line) and return the job's id.

        It runs in ``home/work`` unless ``-wd``, its output goes there unless ``-o`` says otherwise.
        An array's id is without its tasks.
        """
        place = [] if "-wd" in options else ["-cwd"]
        output = [] if "-o" in options else ["-o", f"{self.home}/work/", "-j", "yes"]
        argv = ["qsub", "-terse", "-N", "job.sh", *place, *output, *options]
        done = self.run(argv, user=user, stdin=f"#!/bin/sh\n{script}\n")
        return done.stdout.strip().split(".")[0]

    def states(self) -> Dict[str, str]:
        """Return the state letters of every job that is listed; of an array its first task's."""
        shown = self.run(["qstat", "-xml", "-u", "*"]).stdout
        found: Dict[str, str] = {}
        for job in ElementTree.fromstring(shown).iter("job_list"):
            found.setdefault(job.findtext("JB_job_number", ""), job.findtext("state", ""))
        return found

    def state(self, job_id: JobId) -> Optional[str]:
        """Return the job's state letters (qw, t, r, dr, Eqw ...), or None if it is not listed."""
        return self.states().get(str(job_id))

    def wait_state(self, job_id: JobId, *states: str, timeout_s: float = PATIENCE_S) -> str:
        """Wait until the job is in one of `states` and return it.

        Raises:
            HarnessError: it is not by then, or it is not listed any more.
        """
        seen: List[Optional[str]] = []

        def reached() -> bool:
            seen.append(self.state(job_id))
            if seen[-1] is None:
                raise HarnessError(f"job {job_id} is gone before it was {' or '.join(states)}")
            return seen[-1] in states

        wait_until(reached, timeout_s, f"job {job_id} to be {' or '.join(states)}", interval_s=0.1)
        return str(seen[-1])

    def wait_gone(self, job_id: JobId, timeout_s: float = PATIENCE_S) -> None:
        """Wait until the job is not listed any more."""
        gone = f"job {job_id} to leave qstat's list"
        wait_until(lambda: self.state(job_id) is None, timeout_s, gone, interval_s=0.1)

    def wait_ended(self, job_id: JobId, task: int = 1, timeout_s: float = PATIENCE_S) -> None:
        """Wait until a job that runs is over on its host, whether or not the qmaster learns it."""
        active = self.home / f"spool/execd/{HOST}/active_jobs/{job_id}.{task}"
        try:
            pid = int((active / "pid").read_text())
        except FileNotFoundError:
            return  # over, and reported
        # not process_start: an execd takes a zombie for alive
        shepherd = Path(f"/proc/{pid}")
        over = f"the end of job {job_id} on its host"
        wait_until(lambda: not shepherd.exists(), timeout_s, over)

    def accounted(self, job_id: JobId) -> List[Record]:
        """Return accounting's records of the job, oldest first: one a run and one a task; [] if
        none."""
        shown = self.run(["qacct", "-j", str(job_id)], check=False)
        said = shown.stdout + shown.stderr
        if "not found" in said or "no jobs running since startup" in said:
            return []
        if shown.returncode != 0:
            raise HarnessError(f"qacct on job {job_id}: {said.strip()}")
        return [record(block) for block in shown.stdout.split(62 * "=")[1:]]

    def wait_accounted(
        self, job_id: JobId, records: int = 1, timeout_s: float = PATIENCE_S
    ) -> List[Record]:
        """Wait until accounting has that many records of the job and return them."""
        found: List[Record] = []

        def enough() -> bool:
            found[:] = self.accounted(job_id)
            return len(found) >= records

        wait_until(enough, timeout_s, f"{records} records of job {job_id}", interval_s=0.1)
        return found

    def qdel(self, job_id: JobId, force: bool = False, user: Optional[str] = None) -> None:
        """Delete a job as `user`, or as root; by root with `force` it looks like a success."""
        self.run(["qdel", *(["-f"] if force else []), str(job_id)], user=user)

    def requeue(self, job_id: JobId) -> None:
        """Reschedule a running job (submitted with ``-r y``); it runs again within seconds."""
        self.run(["qmod", "-rj", str(job_id)])

    def clear_error(self, job_id: JobId) -> None:
        """Take a job out of Eqw; the command succeeds with status 1."""
        shown = self.run(["qmod", "-cj", str(job_id)], check=False)
        if "cleared error state" not in shown.stdout:
            raise HarnessError(f"qmod -cj {job_id}: {(shown.stdout + shown.stderr).strip()}")

    def output(self, job_id: JobId) -> str:
        """Return what a job has written so far, if ``submit`` chose the place."""
        path = self.home / "work" / f"job.sh.o{job_id}"
        return path.read_text(errors="replace") if path.exists() else ""

    def delete_all(self, timeout_s: float = PATIENCE_S) -> None:
        """Delete every job by force, end what still runs of them, and wait until none is listed."""
        if self.states():
            self.run(["qdel", "-f", "-u", "*"], check=False)
        wait_until(lambda: not self.states(), timeout_s, "qstat's list to be empty", interval_s=0.1)


def record(block: str) -> Record:
    """Return the fields of one record of qacct, values stripped ("100 : assumedly after job")."""
    pairs = [line.split(None, 1) for line in block.splitlines() if line.strip()]
    return {pair[0]: pair[1].strip() if len(pair) > 1 else "" for pair in pairs}


# ---- command line -----------------------------------------------------------------------------


def up(options: argparse.Namespace) -> None:
    """Start a cell that outlives this process, or find it running; print what to export."""
    cell = PrivateGridEngine(options.home)
    if not cell.running():
        missing = why_missing()
        if missing:
            raise HarnessError(missing)
        cell.start()
        atexit.unregister(cell.stop)
    exported = {**cell.settings, "PATH": cell.env["PATH"]}
    if options.format == "json":
        print(json.dumps({**exported, "home": str(cell.home), "bin": str(cell.bin)}))
    else:
        for name, value in exported.items():
            print(f"export {name}={shlex.quote(value)}")


def down(options: argparse.Namespace) -> None:
    """End the cell in the given folder."""
    home = Path(options.home).resolve()
    if (home / MARKER).exists():
        PrivateGridEngine(home).stop()


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Run the command line; return 0, or 2 if it could not be done."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.real.gridengine",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name, function in (("up", up), ("down", down)):
        command = commands.add_parser(name, help=function.__doc__)
        command.add_argument("--home", required=True, help="the cell's own folder")
        command.set_defaults(function=function)
        if name == "up":
            command.add_argument("--format", choices=("shell", "json"), default="shell")
    options = parser.parse_args(arguments)
    try:
        options.function(options)
    except (HarnessError, OSError, subprocess.SubprocessError) as error:
        print(f"tests.real.gridengine: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
