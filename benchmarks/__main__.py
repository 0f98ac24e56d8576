"""Measure everything in one run, write RESULTS.md, and tell whether the targets are met.

    make bench        (or: python -m benchmarks)

Exit code 1: a target is not met. Five minutes; 20 on a busy machine.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, List

from . import get_status, htcondor, ledger, memory, passes, real_slurm, ssh
from .report import Target, load, machine, say

RESULTS = Path(__file__).with_name("RESULTS.md")
STARTUP_RUNS = 100


def startup_section() -> str:
    """Return the section of RESULTS.md about Python processes that are not Pulsar."""
    say(f"start-up of Python, {STARTUP_RUNS} runs each")
    command = [sys.executable, "-m", "benchmarks.startup_cost", str(STARTUP_RUNS)]
    printed = subprocess.run(
        command, check=True, timeout=300, stdout=subprocess.PIPE, universal_newlines=True
    ).stdout
    return f"## Start-up of a Python process that is not Pulsar\n\n```\n{printed.rstrip()}\n```\n"


def results(load_before: str, sections: List[str], targets: List[Target]) -> str:
    """Return RESULTS.md."""
    reached = "\n".join(f"* {target}" for target in targets)
    body = "\n".join(sections)
    return f"""# What looking at jobs costs

Written by `make bench`, which repeats it in five minutes (20 on a busy machine): everything in one
run, on one machine. Other machines give other seconds, and so does a busy one, whose load average
is above its number of cores: there ours, a process or two in a pass, suffers more than stock's
sleep.
The part on a real Slurm needs root (jobs of two users) and Slurm's daemons, the one over ssh sshd:
as root on Debian, `python -m tests.real.install slurm sshd` installs them.

{machine(load_before)}

## Targets

{reached}

{body}"""


def main() -> int:
    """Measure, write, and return the exit code."""
    load_before = load()
    measured: List[Any] = [
        module.measure()
        for module in (passes, ssh, get_status, memory, htcondor, ledger, real_slurm)
    ]
    targets = [target for one in measured for target in one.targets()]
    sections = [*(one.section() for one in measured), startup_section()]
    RESULTS.write_text(results(load_before, sections, targets))
    say(f"written: {RESULTS.parent.name}/{RESULTS.name}")
    print("\n".join(map(str, targets)))
    return 0 if all(target.met for target in targets) else 1


if __name__ == "__main__":
    sys.exit(main())
