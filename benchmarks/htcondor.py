"""What one pass over N active jobs costs on HTCondor: seconds, memory, file descriptors.

A simulated pool with jobs that no process runs, and a stock Pulsar with
``queued_htcondor_classified``. The simulated schedd reads all its jobs from a database; what it
needs by itself is measured too.
"""

from __future__ import annotations

import gc
import importlib
import os
import re
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, List, Sequence

from pulsar.managers import status

from tests import simulated_htcondor
from tests.manager_htcondor.harness import add_running_jobs

from .child import in_child
from .passes import environment
from .pulsar_site import PulsarSite, watching
from .report import Target, say, seconds, table

SIZES = (1_000, 10_000)
PASSES = 5
OURS = {
    "type": "queued_htcondor_classified",
    "status_poll_interval": 3600,
    "command_timeout": 120,
}
WANTED_S = 2.0


#: Wall and CPU seconds.
Times = Sequence[float]


@dataclass(frozen=True)
class Size:
    """What passes over N jobs cost: seconds, KB of resident memory, descriptors.

    Times are (wall, CPU), the CPU time that of the server and of the calls it made. ``query_s``
    is the query by itself, ``grown_s`` a pass in which a tenth of the logs grew.
    """

    jobs: int
    first_s: Times
    unchanged_s: Times
    grown_s: Times
    query_s: Times
    memory_kb: int
    peak_kb: int
    files_between: int
    files_most: int


@dataclass(frozen=True)
class Passes:
    """One :class:`Size` for each N."""

    sizes: Sequence[Size]

    def section(self) -> str:
        """Return the section of RESULTS.md."""
        rows = [
            [
                f"{size.jobs:,}",
                *map(_shown, (size.unchanged_s, size.query_s, size.grown_s, size.first_s)),
                f"{size.memory_kb / 1024:,.0f} MB", f"{size.peak_kb / 1024:,.0f} MB",
                f"{size.files_between:+d}", f"{size.files_most:+d}",
            ]
            for size in self.sizes
        ]
        headings = [
            "active jobs", "a pass", "of that, the query itself", "a tenth of the logs grew",
            "first pass", "memory kept", "at most", "files held between passes",
            "at most during a pass",
        ]
        return f"""## HTCondor: a pass over N active jobs

`queued_htcondor_classified` on a simulated pool, all jobs running: one query of the schedd, in a
process of its own, and a `stat` of each job's log; with the status of each job. The first pass, as
after a restart of the server, reads all logs. Wall time / CPU time (of the server and of its call,
which other work on the machine does not change much); the fastest of {PASSES}. Memory is what the
server grew by with all N jobs.

{table(headings, rows)}

By itself: `python -m benchmarks.htcondor`.
"""

    def targets(self) -> List[Target]:
        """Return what was to be reached."""
        small, large = self.sizes[0], self.sizes[-1]
        growth = large.unchanged_s[1] / small.unchanged_s[1]
        return [
            Target(
                f"HTCondor: a pass at N = {large.jobs:,} within {WANTED_S:g} s of CPU time",
                f"{seconds(large.unchanged_s[1])}; {seconds(large.grown_s[1])} where logs grew",
                max(large.unchanged_s[1], large.grown_s[1]) <= WANTED_S,
            ),
            Target(
                "HTCondor: a pass grows no faster than the number of jobs",
                f"{growth:.1f} times the CPU time at {large.jobs / small.jobs:g} times the jobs",
                growth <= 1.2 * large.jobs / small.jobs,
            ),
            Target(
                "HTCondor: no file is held open between passes, few during one",
                f"{large.files_between:+d}, at most {large.files_most:+d}",
                large.files_between == 0 and large.files_most <= 16,
            ),
        ]


def measure() -> Passes:
    """Measure each size in a fresh process."""
    found = []
    for count in SIZES:
        say(f"HTCondor: passes over {count} jobs")
        found.append(Size(**in_child(_measure_size, count, timeout_s=600.0)))
    return Passes(found)


def _measure_size(count: int) -> Dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        pool = Path(folder) / "pool"
        variables = {**simulated_htcondor.environment(pool), "CONDOR_CONFIG": "/dev/null"}
        with environment(variables):
            sys.path.insert(0, str(simulated_htcondor.FAKES))
            with PulsarSite(Path(folder), {"ours": OURS}) as site:
                return _measure_passes(site.proxy("ours"), pool, Path(folder), count)


def _measure_passes(proxy: Any, pool: Path, home: Path, count: int) -> Dict[str, Any]:
    ids = [f"job-{number}" for number in range(count)]
    clusters = add_running_jobs(pool, home, ids)
    gc.collect()
    before_kb, files = _memory_kb("VmRSS"), _open_files()
    proxy._proxied_manager.get_status(ids[0])  # starts the thread, which looks at one job
    proxy._proxied_manager.observer(None).stop(60)
    observer: Any = None

    def first() -> None:
        nonlocal observer
        observer = watching(proxy, ids)
        observer.look()

    first_s = _times(first)
    unchanged_s = _fastest(_times(lambda: _a_pass(proxy, observer, ids)) for _ in range(PASSES))
    grown = []
    for _ in range(PASSES):
        _grow_logs(home, clusters[::10])
        grown.append(_times(lambda: _a_pass(proxy, observer, ids)))
    files_between, files_most = _open_files() - files, _most_files(observer) - files
    return {
        "jobs": count,
        "first_s": first_s,
        "unchanged_s": unchanged_s,
        "grown_s": _fastest(grown),
        "query_s": _fastest(
            _times(lambda: observer.source._ads("query", "true")) for _ in range(PASSES)),
        "memory_kb": _memory_kb("VmRSS") - before_kb,
        "peak_kb": _memory_kb("VmHWM") - before_kb,
        "files_between": files_between,
        "files_most": files_most,
    }


def _grow_logs(home: Path, clusters: Sequence[int]) -> None:
    events = importlib.import_module("fake_htcondor.events")
    for cluster in clusters:
        log = str(home / "logs" / f"{cluster}.log")
        events.append(log, cluster, 0, events.image_size(900_000, 880, 900_000))


def _a_pass(proxy: Any, observer: Any, ids: Sequence[str]) -> None:
    observer.look()
    found = {proxy._proxied_manager.get_status(job_id) for job_id in ids}
    assert observer.counters.failed_passes == 0, observer.counters
    assert found == {status.RUNNING}, found


def _times(work: Callable[[], Any]) -> List[float]:
    """Return what this took: wall seconds, and CPU seconds with those of its children."""
    wall, cpu = time.perf_counter(), _cpu_s()
    work()
    return [time.perf_counter() - wall, _cpu_s() - cpu]


def _cpu_s() -> float:
    return sum(os.times()[:4])


def _fastest(times: Iterable[Times]) -> List[float]:
    return [min(column) for column in zip(*times)]


def _shown(times: Times) -> str:
    return " / ".join(map(seconds, times))


def _most_files(observer: Any) -> int:
    """Return how many files were open at once during a pass."""
    seen, over = [_open_files()], threading.Event()

    def count() -> None:
        while not over.wait(0.002):
            seen.append(_open_files())

    counter = threading.Thread(target=count)
    counter.start()
    observer.look()
    over.set()
    counter.join()
    return max(seen)


def _open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def _memory_kb(what: str) -> int:
    """Return VmRSS (now) or VmHWM (at most so far) of this process."""
    found = re.search(rf"^{what}:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert found is not None
    return int(found.group(1))


if __name__ == "__main__":
    passes = measure()
    print(passes.section())
    print("\n".join(map(str, passes.targets())))
