"""What the measurements share to say what they found, and the machine's data."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import List, Sequence


@dataclass(frozen=True)
class Target:
    """Something that a measurement was to reach."""

    wanted: str
    reached: str
    met: bool

    def __str__(self) -> str:
        return f"{'met' if self.met else 'NOT met'}: {self.wanted} ({self.reached})"


def say(text: str) -> None:
    """Tell the person how far we are."""
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table, its first column left-aligned and the others right-aligned."""
    lines = [headings, ["---", *["---:"] * (len(headings) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def seconds(value: float) -> str:
    """Return a duration with three significant digits and its unit."""
    if value < 1e-3:
        return f"{value * 1e6:.3g} µs"
    if value < 1:
        return f"{value * 1e3:.3g} ms"
    return f"{value:,.1f} s"


def load() -> str:
    """Return how many processes wanted to run in the last minute, ours included."""
    return f"{os.getloadavg()[0]:.1f}"


def machine(load_before: str) -> str:
    """Return the table of what this was measured on; it names no host and no folder."""
    return table(["measured on", ""], [
        ["CPU", f"{_cpu_model()}, {len(_cpus())} cores"],
        ["kernel", f"{platform.system()} {platform.release().partition('-')[0]}"],
        ["Python", platform.python_version()],
        ["pulsar-app", metadata.version("pulsar-app")],
        ["pulsar-failure-reasons", metadata.version("pulsar-failure-reasons")],
        ["Slurm", _slurm_version()],
        ["load average before", load_before],
        ["date", time.strftime("%Y-%m-%d")],
    ])


def _cpus() -> List[str]:
    """Return the CPUs' model names, one for each core."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    cores = [line for line in lines if line.startswith("processor")]
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models or cores


def _cpu_model() -> str:
    return f"{_cpus()[0]} ({platform.machine()})"


def _slurm_version() -> str:
    # Not squeue: without a slurm.conf it does not even tell its version.
    slurmctld = shutil.which("slurmctld", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if slurmctld is None:
        return "simulated only"
    shown = subprocess.run([slurmctld, "-V"], capture_output=True, text=True, timeout=60)
    return f"{shown.stdout.strip()}, and the simulated one of tests/fakes"
