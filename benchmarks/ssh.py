"""Over ssh: stock ``queued_cli`` against ``queued_cli_classified``, through a real sshd.

By itself: ``python -m benchmarks.ssh``. A simulated Slurm behind a private sshd on loopback; a pass
is what :mod:`.passes` calls one.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence

from tests.real.sshd import PrivateSshd, why_missing
from tests.simulated import control

from .passes import add_running_jobs, expect_running
from .pulsar_site import PulsarSite, job_ids, job_name, make_active, watching
from .report import Target, say, seconds, table

SIZES = (10, 100, 1000)
PLUGINS = ("SecureShell", "ParamikoShell")
STOCK_SAMPLE = 3
OUR_PASSES = 5
WANTED_RATIO = 100


@dataclass(frozen=True)
class Size:
    """What a pass over N jobs costs through one shell plugin."""

    plugin: str
    jobs: int
    stock_commands: float
    stock_s: float
    our_commands: float
    our_s: float

    @property
    def ratio(self) -> float:
        """How many times faster ours is."""
        return self.stock_s / self.our_s


@dataclass(frozen=True)
class OverSsh:
    """One :class:`Size` for each plugin and N, or why there are none."""

    left_out: Optional[str] = None
    sizes: Sequence[Size] = ()

    def section(self) -> str:
        """Return the section of RESULTS.md."""
        title = "## Over ssh: a pass over N active jobs\n\n"
        if self.left_out:
            return f"{title}Left out: {self.left_out}.\n"
        rows = [
            [
                size.plugin,
                f"{size.jobs:,}",
                f"{size.stock_commands:,.0f}",
                seconds(size.stock_s),
                f"{size.our_commands:g}",
                seconds(size.our_s),
                f"{size.ratio:,.0f} ×",
            ]
            for size in self.sizes
        ]
        headings = [
            "shell plugin", "active jobs", "stock: commands", "stock: a pass", "ours: commands",
            "ours: a pass", "faster by",
        ]
        return f"""{title}Stock `queued_cli` and `queued_cli_classified`, both with plugin
Slurm, on the same simulated Slurm behind a real sshd on loopback (no network in between), all jobs
running, none changing. Commands are those that sshd was asked for.

{table(headings, rows)}

Stock: sampled, the fastest of {STOCK_SAMPLE} jobs times N; commands likewise. A job costs 3.1 s
with `SecureShell`, whose commands stock looks after at 0.1 s and then every 3 s, and what squeue
and the link take with `ParamikoShell`, which keeps its connection. Ours: the fastest of
{OUR_PASSES} whole passes, with `get_status` of each job.

By itself: `python -m benchmarks.ssh`.
"""

    def targets(self) -> List[Target]:
        """Return what was to be reached."""
        if self.left_out:
            return []
        largest = [size for size in self.sizes if size.jobs == SIZES[-1]]
        return [
            Target(
                "over ssh: one command over the link per pass, whatever N",
                ", ".join(f"{size.our_commands:g}" for size in self.sizes),
                all(size.our_commands == 1 for size in self.sizes),
            ),
            Target(
                f"over ssh: a pass at N = {SIZES[-1]} at least {WANTED_RATIO} times faster than "
                "stock",
                ", ".join(f"{size.plugin}: {size.ratio:,.0f} times" for size in largest),
                all(size.ratio >= WANTED_RATIO for size in largest),
            ),
        ]


def measure() -> OverSsh:
    """Measure each plugin and size, if a private sshd can be started here."""
    # ParamikoShell's own, of a host key that it has not seen before.
    warnings.filterwarnings("ignore", message="Unknown .* host key")
    left_out = why_missing()
    if left_out:
        say(f"ssh left out: {left_out}")
        return OverSsh(left_out)
    return OverSsh(None, [_measure_size(p, count) for p in PLUGINS for count in SIZES])


def _measure_size(plugin: str, count: int) -> Size:
    with tempfile.TemporaryDirectory(prefix="ssh-") as folder:
        home = Path(folder)
        state = control.create(home / "slurm")
        our_ids, stock_ids = job_ids("ours", count), job_ids("stock", count)
        external_ids = add_running_jobs(state, [job_name(job_id) for job_id in our_ids])
        with PrivateSshd(home / "sshd", env=control.environment(state)) as sshd:
            managers = _managers(sshd.shell_options(plugin))
            with PulsarSite(home, managers) as site:
                ours, stock = site.proxy("ours"), site.proxy("stock")
                make_active(ours, our_ids, external_ids)
                make_active(stock, stock_ids, external_ids)
                say(f"{plugin}, {count} active jobs: passes of queued_cli_classified")
                our_s, our_commands = _measure_ours(sshd, ours, our_ids)
                say(f"{plugin}, {count} active jobs: {STOCK_SAMPLE} jobs of queued_cli")
                stock_s, stock_commands = _measure_stock(sshd, stock, stock_ids[:STOCK_SAMPLE])
    return Size(plugin, count, stock_commands * count, stock_s * count, our_commands, our_s)


def _managers(shell: Dict[str, str]) -> Dict[str, Dict[str, Any]]:
    plugins: Dict[str, Any] = {"job_plugin": "Slurm", **shell}
    # The observer's own thread looks once and then sleeps: we make the passes.
    ours = {"type": "queued_cli_classified", "status_poll_interval": 3600, **plugins}
    return {"ours": ours, "stock": {"type": "queued_cli", **plugins}}


def _measure_ours(sshd: PrivateSshd, proxy: Any, ids: Sequence[str]) -> "tuple[float, float]":
    """Return seconds and commands of a pass."""
    observer = watching(proxy, ids)
    before = len(sshd.commands())
    times = []
    for _ in range(OUR_PASSES):
        started = time.perf_counter()
        observer.look()
        expect_running(proxy, ids)
        times.append(time.perf_counter() - started)
    assert observer.counters.failed_passes == 0, observer.counters
    return min(times), (len(sshd.commands()) - before) / OUR_PASSES


def _measure_stock(sshd: PrivateSshd, proxy: Any, sample: Sequence[str]) -> "tuple[float, float]":
    """Return seconds and commands for one job."""
    before = len(sshd.commands())
    times = []
    for job_id in sample:
        started = time.perf_counter()
        expect_running(proxy, [job_id])
        times.append(time.perf_counter() - started)
    return min(times), (len(sshd.commands()) - before) / len(sample)


if __name__ == "__main__":
    measured = measure()
    print(measured.section())
    print("\n".join(map(str, measured.targets())))
