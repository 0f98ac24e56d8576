"""The simulated ``scontrol --details``, with which Pulsar's job script asks for its memory.

The rows are those of a real Slurm 22.05.8, but for the node's name.
"""

from __future__ import annotations

from pathlib import Path
from typing import Iterator

import pytest

from tests.simulated import control

#: What ``-d`` adds, each behind the row before it.
RAN = """\
   Socks/Node=* NtasksPerN:B:S:C=0:0:*:* CoreSpec=*
   JOB_GRES=(null)
     Nodes=node1 CPU_IDs=0-1 Mem=100 GRES=
   MinCPUsNode=1 MinMemoryCPU=50M MinTmpDiskNode=0
"""
WAITS = """\
   Socks/Node=* NtasksPerN:B:S:C=0:0:*:* CoreSpec=*
   MinCPUsNode=1 MinMemoryCPU=50M MinTmpDiskNode=0
"""
ALWAYS = """\
   Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0
   DerivedExitCode=0:0
   RunTime="""


@pytest.fixture
def state(tmp_path: Path) -> Iterator[str]:
    """A simulated Slurm."""
    path = control.create(tmp_path / "slurm", time_scale=60)
    yield path
    control.stop_all(path)


def submit(state: str, *options: str) -> str:
    """Submit a job of two CPUs with 50 MB each; return its id."""
    argv = ("sbatch", "--parsable", "-n", "2", "--mem-per-cpu=50", "-o", "/dev/null", *options)
    return str(control.run(state, *argv, "--wrap", "true").stdout).strip()


def test_details(state: str) -> None:
    """A job that has been on a node has a row of what it was given there, one that waits not."""
    ran, waits = submit(state), submit(state, "--hold")
    control.wait_for(state, ran, "COMPLETED")
    shown = control.run(state, "scontrol", "-d", "show", "job", ran).stdout
    assert RAN in shown and ALWAYS in shown
    shown = control.run(state, "scontrol", "--details", "show", "job", waits).stdout
    assert WAITS in shown and ALWAYS in shown
    assert "DerivedExitCode" not in control.run(state, "scontrol", "show", "job", ran).stdout


def test_one_line(state: str) -> None:
    """As the job script of Galaxy and Pulsar asks (-do), which looks for " Mem=100 "."""
    job = submit(state)
    control.wait_for(state, job, "COMPLETED")
    done = control.run(state, "scontrol", "-do", "show", "job", job)
    assert (done.returncode, done.stderr) == (0, "")
    assert (
        " CoreSpec=* JOB_GRES=(null)   Nodes=node1 CPU_IDs=0-1 Mem=100 GRES= MinCPUsNode=1 "
    ) in done.stdout
