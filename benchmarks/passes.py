"""Stock ``queued_cli`` against ``queued_slurm`` on one simulated Slurm: what does one pass cost?

A pass is what keeps the status of N active jobs up to date once. Stock's is that of Pulsar's
monitor, ``get_status`` of each job, which runs a squeue each. Ours is a look of the observer and
``get_status`` of each job. Both through Pulsar's ``StatefulManagerProxy``.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterator, List, Sequence

from pulsar_failure_reasons.drm.slurm import squeue_command
from tests.simulated import control

from .pulsar_site import (
    OURS,
    STOCK,
    PulsarSite,
    job_ids,
    job_name,
    make_active,
    user_name,
    watching,
)
from .report import Target, say, seconds, table

SIZES = (10, 100, 1000)
STOCK_SAMPLE = 20
OUR_PASSES = 7
WANTED_RATIO = 100


@dataclass(frozen=True)
class Size:
    """What a pass over N jobs costs.

    ``squeue_s`` is what our command takes by itself, ``forgotten_commands`` the commands of a
    pass in which jobs were forgotten.
    """

    jobs: int
    stock_commands: float
    stock_s: float
    our_commands: float
    our_s: float
    squeue_s: float
    forgotten_commands: int

    @property
    def ratio(self) -> float:
        """How many times faster ours is."""
        return self.stock_s / self.our_s


@dataclass(frozen=True)
class Passes:
    """One :class:`Size` for each N."""

    sizes: Sequence[Size]

    def section(self) -> str:
        """Return the section of RESULTS.md."""
        rows = [
            [
                str(size.jobs),
                f"{size.stock_commands:,.0f}",
                seconds(size.stock_s),
                f"{size.our_commands:g}",
                seconds(size.our_s),
                seconds(size.squeue_s),
                f"{size.ratio:,.0f} ×",
            ]
            for size in self.sizes
        ]
        headings = [
            "active jobs", "stock: commands", "stock: a pass", "ours: commands", "ours: a pass",
            "of that, squeue itself", "faster by",
        ]
        forgotten = " / ".join(str(size.forgotten_commands) for size in self.sizes)
        return f"""## A pass over N active jobs

Stock `queued_cli` (LocalShell, plugin Slurm) and `queued_slurm` on the same simulated Slurm, all
jobs running, none changing.

{table(headings, rows)}

Stock: sampled, the fastest of {STOCK_SAMPLE} jobs (all, where there are fewer) times N; commands
likewise. Its `LocalShell` looks after 0.1 s whether the command has ended, and next after 3 s more:
a job here costs 0.1 s, and where squeue needs longer (a slow cluster, a busy host), 3.1 s.
Ours: the fastest of {OUR_PASSES} whole passes, which a server makes in a thread of its own; the
simulated squeue reads a file for each job, for a real one see below. Fastest, because other work on
the machine only ever adds. Where slurmctld had forgotten a tenth of the jobs, a pass ran
{forgotten} commands: squeue, and one sacct for all of them.
"""

    def targets(self) -> List[Target]:
        """Return what was to be reached."""
        commands = ", ".join(f"{size.our_commands:g} at N = {size.jobs}" for size in self.sizes)
        last = self.sizes[-1]
        return [
            Target(
                "one DRM command per pass, whatever N",
                commands,
                all(size.our_commands == 1 for size in self.sizes),
            ),
            Target(
                f"a pass at N = {last.jobs} at least {WANTED_RATIO} times faster than stock",
                f"{last.ratio:,.0f} times",
                last.ratio >= WANTED_RATIO,
            ),
        ]


def measure() -> Passes:
    """Measure each size on a simulated Slurm of its own."""
    return Passes([_measure_size(count) for count in SIZES])


def _measure_size(count: int) -> Size:
    with tempfile.TemporaryDirectory() as folder:
        state = control.create(Path(folder) / "slurm")
        our_ids, stock_ids = job_ids("ours", count), job_ids("stock", count)
        external_ids = add_running_jobs(state, [job_name(job_id) for job_id in our_ids])
        managers = {"ours": OURS, "stock": STOCK}
        with environment(control.environment(state)), PulsarSite(Path(folder), managers) as site:
            ours, stock = site.proxy("ours"), site.proxy("stock")
            make_active(ours, our_ids, external_ids)
            make_active(stock, stock_ids, external_ids)
            say(f"{count} active jobs: passes of queued_slurm")
            our_s, our_commands = _measure_ours(state, ours, our_ids)
            squeue_s = _measure_squeue(state)
            sample = stock_ids[:: max(1, count // STOCK_SAMPLE)][:STOCK_SAMPLE]
            say(f"{count} active jobs: {len(sample)} jobs of queued_cli, 0.1 s each")
            stock_s, stock_commands = _measure_stock(state, stock, sample)
            forgotten_commands = _commands_where_forgotten(state, ours, external_ids[::10])
    return Size(
        count, stock_commands * count, stock_s * count, our_commands, our_s,
        squeue_s, forgotten_commands,
    )


def add_running_jobs(state: str, names: Sequence[str]) -> List[str]:
    """Put running jobs of ours into the simulated Slurm and return their external ids."""
    return [
        str(control.add_jobs(state, 1, user=user_name(), job_state="RUNNING", name=name)[0])
        for name in names
    ]


def _measure_ours(state: str, proxy: Any, ids: Sequence[str]) -> "tuple[float, float]":
    """Return seconds and commands of a pass."""
    observer = watching(proxy, ids)
    control.clear_commands(state)
    times = []
    for _ in range(OUR_PASSES):
        started = time.perf_counter()
        observer.look()
        expect_running(proxy, ids)
        times.append(time.perf_counter() - started)
    assert observer.counters.failed_passes == 0, observer.counters
    return min(times), len(control.commands(state)) / OUR_PASSES


def _measure_squeue(state: str) -> float:
    """Return seconds of our command by itself."""
    command = squeue_command(user_name(), "@f3a9c1@")
    times = []
    for _ in range(OUR_PASSES):
        started = time.perf_counter()
        done = control.run(state, *command)
        times.append(time.perf_counter() - started)
        assert done.returncode == 0, done.stderr
    return min(times)


def _commands_where_forgotten(state: str, proxy: Any, external_ids: Sequence[str]) -> int:
    """Return the commands of a pass after slurmctld has forgotten these jobs."""
    control.forget(state, *external_ids)
    control.clear_commands(state)
    proxy._proxied_manager.observer(None).look()
    return len(control.commands(state))


def _measure_stock(state: str, proxy: Any, sample: Sequence[str]) -> "tuple[float, float]":
    """Return seconds and commands for one job."""
    control.clear_commands(state)
    times = []
    for job_id in sample:
        started = time.perf_counter()
        expect_running(proxy, [job_id])
        times.append(time.perf_counter() - started)
    return min(times), len(control.commands(state)) / len(sample)


def expect_running(proxy: Any, ids: Sequence[str]) -> None:
    """Ask for the status of each job; fail unless all run."""
    for job_id in ids:
        status = proxy.get_status(job_id)
        if status != "running":
            raise AssertionError(f"{job_id} is {status}, not running")


@contextlib.contextmanager
def environment(values: "dict[str, str]") -> Iterator[None]:
    """Have these variables in our environment for a while."""
    before = dict(os.environ)
    os.environ.update(values)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
