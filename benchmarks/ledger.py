"""What the failure ledger costs: rows written per second, and reports over N failures.

    python -m benchmarks.ledger [N ...]     other sizes than those of `make bench`
"""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Callable, Dict, List, Sequence, Tuple

from pulsar_failure_reasons.ledger.database import LedgerDatabase
from pulsar_failure_reasons.ledger.entry import Entry
from pulsar_failure_reasons.ledger.settings import LedgerSettings
from pulsar_failure_reasons.ledger.writer import BATCH_MAX, QUEUE_MAX, LedgerWriter
from pulsar_failure_reasons.report.build import build_report, parse_dimensions
from pulsar_failure_reasons.report.period import Period

from .ledger_sample import sample_entries
from .report import Target, say, seconds, table

SIZES = (50_000, 200_000)
WANTED_ROWS_S = 10_000
#: By the line through two sizes, which overstates: the counts by the day fill up.
WANTED_REPORT_S = 20.0
TEN_MILLION = 10_000_000
DAY_S = 86400
#: What is asked for, and how far back (None: all).
REPORTS: Sequence[Tuple[str, str, "int | None"]] = (
    ("report of all, by cause", "cause", None),
    ("report of all, by tool and cause", "tool,cause", None),
    ("report of all, by node", "node", None),
    ("report of all, by day", "day", None),
    ("report of the last 7 days, by cause and tool", "cause,tool", 7 * DAY_S),
    ("report of all, by node and tool (no index)", "node,tool", None),
)
NO_INDEX = "no index"
#: Years over which the failures of the largest ledger are spread, as a large site has them.
DAYS = 730


@dataclass(frozen=True)
class Size:
    """What a ledger of so many failures costs; times are (wall, CPU) seconds."""

    failures: int
    fill_s: Tuple[float, float]
    bytes_each: float
    reports: Dict[str, Tuple[float, float]]


@dataclass(frozen=True)
class Ledger:
    """One :class:`Size` for each N; ``queued`` is (rows, wall, CPU seconds) through the queue."""

    sizes: Sequence[Size]
    queued: Tuple[int, float, float]

    def section(self) -> str:
        """Return the section of RESULTS.md."""
        small, large = self.sizes[0], self.sizes[-1]
        headings = ["seconds, wall (CPU)", *(f"{size.failures:,}" for size in self.sizes),
                    "growth", f"at {TEN_MILLION:,}, if it grows so"]
        rows = [
            [name, *(_shown(size.reports[name]) for size in self.sizes),
             f"{_ratio(name, small, large):.1f} x", seconds(_at_ten_million(name, small, large))]
            for name, *_ in REPORTS
        ]
        rate = ", ".join(
            f"{size.failures / size.fill_s[0]:,.0f} rows/s ({size.failures / size.fill_s[1]:,.0f} "
            f"per CPU second)" for size in self.sizes)
        queued, wall_s, cpu_s = self.queued
        return f"""## The failure ledger

SQLite on a local disk, failures over {DAYS} days from 200 tools and 120 nodes. A report is what
`pulsar-failure-reasons report` asks: totals, groups, worst nodes, limits. The N grows
{large.failures / small.failures:.0f} times from column to column.

* written in batches of {BATCH_MAX:,}: {rate}; {large.bytes_each:,.0f} bytes each, with the indexes
* a burst, failures of one day through the queue, from the first `add` to the end of `flush`:
  {queued / wall_s:,.0f} rows/s ({queued / cpu_s:,.0f} per CPU second)

{table(headings, rows)}

The last column is a line through the two sizes, in CPU time, and too high: the number of rows that
are counted by the day no longer grows once every tool fails every day. Once, by hand, with
10,000,000 failures (5.6 GB, 1.5 million counts by the day; two busy cores): 1.7 s of
CPU time by cause, 1.7 s by tool and cause, 2.7 s by node, 2.5 s by day, 0.3 s for the last 7 days.
"""

    def targets(self) -> List[Target]:
        """The two that were demanded: the second by its growth."""
        small, large = self.sizes[0], self.sizes[-1]
        wall, cpu = (self.queued[0] / one for one in self.queued[1:])
        slowest = max(_at_ten_million(name, small, large) for name, *_ in REPORTS
                      if NO_INDEX not in name)
        return [
            # By CPU time: on a busy machine the clock measures the others.
            Target(f"{WANTED_ROWS_S:,} rows/s into a local SQLite",
                   f"{wall:,.0f} rows/s, {cpu:,.0f} per CPU second", cpu >= WANTED_ROWS_S),
            Target(f"reports with an index over {TEN_MILLION:,} failures in seconds",
                   f"the slowest at most {seconds(slowest)}, from its growth",
                   slowest <= WANTED_REPORT_S),
        ]


def measure(sizes: Sequence[int] = SIZES) -> Ledger:
    """Fill a ledger of each size and ask it."""
    with tempfile.TemporaryDirectory() as folder:
        measured = [_measure_size(Path(folder) / f"{size}.sqlite", size) for size in sizes]
        return Ledger(measured, _through_the_queue(Path(folder) / "queued.sqlite", sizes[0]))


def _measure_size(path: Path, size: int) -> Size:
    say(f"a ledger of {size:,} failures")
    until = int(time.time())
    entries = sample_entries(size, until=until, days=DAYS)
    database = LedgerDatabase(f"sqlite:///{path}")
    fill_s = (0.0, 0.0)
    while True:
        batch = list(islice(entries, BATCH_MAX))
        if not batch:
            break
        wall, cpu = timed(lambda: database.write(batch))
        fill_s = (fill_s[0] + wall, fill_s[1] + cpu)
    reader = LedgerDatabase(f"sqlite:///{path}", read_only=True)
    reports = {
        name: timed(lambda: build_report(
            reader, Period(back and until - back, until + DAY_S), parse_dimensions(by)))
        for name, by, back in REPORTS
    }
    return Size(size, fill_s, path.stat().st_size / size, reports)


def _through_the_queue(path: Path, count: int) -> Tuple[int, float, float]:
    """Return what adding and flushing takes, with a producer that waits where it must."""
    entries = list(sample_entries(count, until=int(time.time()), days=1))
    writer = LedgerWriter(LedgerSettings(f"sqlite:///{path}", None))
    wall, cpu = timed(lambda: _add_all(writer, entries))
    return count, wall, cpu


def _add_all(writer: LedgerWriter, entries: Sequence[Entry]) -> None:
    for entry in entries:
        while len(writer._queue) >= QUEUE_MAX - 1:
            time.sleep(0.005)
        writer.add(entry)
    while not writer.flush():
        pass


def timed(what: Callable[[], object]) -> Tuple[float, float]:
    """Return the wall and CPU seconds of a call, those of all threads."""
    wall, cpu = time.perf_counter(), time.process_time()
    what()
    return time.perf_counter() - wall, time.process_time() - cpu


def _ratio(name: str, small: Size, large: Size) -> float:
    return large.reports[name][1] / max(small.reports[name][1], 1e-6)


def _at_ten_million(name: str, small: Size, large: Size) -> float:
    """Return CPU seconds for ten million, from the slope between two sizes."""
    slope = (large.reports[name][1] - small.reports[name][1]) / (large.failures - small.failures)
    return large.reports[name][1] + max(slope, 0.0) * (TEN_MILLION - large.failures)


def _shown(times: Tuple[float, float]) -> str:
    return f"{times[0]:.3f} ({times[1]:.3f})"


if __name__ == "__main__":
    found = measure([int(size) for size in sys.argv[1:]] or SIZES)
    print(found.section(), *map(str, found.targets()), sep="\n")
