"""``get_status`` of ``queued_slurm`` against a manager that knows its jobs' statuses by heart.

Both through Pulsar's ``StatefulManagerProxy``, in turn, so what remains is what we add to Pulsar's
own bookkeeping (locks and files in the job directory).
"""

from __future__ import annotations

import contextlib
import os
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Iterator, List, Sequence

from pulsar.managers import status
from pulsar.managers.base.external import ExternalBaseManager
from pulsar.managers.stateful import StatefulManagerProxy

from tests.simulated import control

from .passes import add_running_jobs, environment
from .pulsar_site import OURS, PulsarSite, job_ids, job_name, make_active, watching
from .report import Target, say, seconds, table

JOBS = 1000
ROUNDS = 21
JOBS_IN_TURN = 50
WANTED_RATIO = 2


class MemoryManager(ExternalBaseManager):  # type: ignore[misc]
    """The least a manager can be: stock's base class over a dict."""

    manager_type = "memory"

    def __init__(self, name: str, app: Any, **kwds: Any) -> None:
        super().__init__(name, app, **kwds)
        self.statuses: Dict[str, str] = {}

    def get_status(self, job_id: str) -> str:
        """Return what is known of the job; as stock's, but without asking anybody."""
        if self._was_cancelled(job_id):
            return str(status.CANCELLED)
        return self.statuses[job_id]

    def _kill_external(self, external_id: str) -> None:
        raise NotImplementedError

    def launch(self, *_: Any, **__: Any) -> None:
        """No job is launched here."""
        raise NotImplementedError


@dataclass(frozen=True)
class GetStatus:
    """Seconds for one job."""

    our_s: float
    memory_s: float

    @property
    def ratio(self) -> float:
        """Return how much more ours costs."""
        return self.our_s / self.memory_s

    def section(self) -> str:
        """Return the section of RESULTS.md."""
        rows = [
            ["a manager that answers from memory", seconds(self.memory_s), "1"],
            ["queued_slurm", seconds(self.our_s), f"{self.ratio:.2f}"],
        ]
        return f"""## `get_status` of one job

{JOBS:,} running jobs, both managers asked in turn ({JOBS_IN_TURN} jobs each) through
`StatefulManagerProxy` on one core; medians of {ROUNDS} rounds. The first row is Pulsar's own
bookkeeping.

{table(["", "for each job", "ratio"], rows)}
"""

    def targets(self) -> List[Target]:
        """Return what was to be reached."""
        return [Target(
            f"get_status within {WANTED_RATIO} times of a manager that answers from memory",
            f"{self.ratio:.2f} times",
            self.ratio <= WANTED_RATIO,
        )]


def measure() -> GetStatus:
    """Measure both managers, in turn."""
    say(f"get_status of {JOBS} jobs, {ROUNDS} rounds")
    with tempfile.TemporaryDirectory() as folder:
        state = control.create(Path(folder) / "slurm")
        our_ids, memory_ids = job_ids("ours", JOBS), job_ids("memory", JOBS)
        external_ids = add_running_jobs(state, [job_name(job_id) for job_id in our_ids])
        site = PulsarSite(Path(folder), {"ours": OURS})
        with environment(control.environment(state)), site, one_core():
            ours, memory = site.proxy("ours"), _memory_proxy(site, memory_ids)
            make_active(ours, our_ids, external_ids)
            make_active(memory, memory_ids, external_ids)
            watching(ours, our_ids).look()
            times = _take_turns(ours, our_ids, memory, memory_ids)
    return GetStatus(*(statistics.median(column) / JOBS_IN_TURN for column in zip(*times)))


def _take_turns(
    ours: Any, our_ids: Sequence[str], memory: Any, memory_ids: Sequence[str]
) -> "list[tuple[float, float]]":
    """Return pairs of seconds for a few jobs, taken right after each other."""
    return [
        (
            _time(ours, our_ids[start:start + JOBS_IN_TURN]),
            _time(memory, memory_ids[start:start + JOBS_IN_TURN]),
        )
        for _ in range(ROUNDS)
        for start in range(0, JOBS, JOBS_IN_TURN)
    ]


def _memory_proxy(site: PulsarSite, ids: Sequence[str]) -> StatefulManagerProxy:
    manager = MemoryManager("memory", site.app)
    manager.statuses = dict.fromkeys(ids, status.RUNNING)
    return StatefulManagerProxy(manager)


def _time(proxy: Any, ids: Sequence[str]) -> float:
    started = time.perf_counter()
    for job_id in ids:
        assert proxy.get_status(job_id) == status.RUNNING
    return time.perf_counter() - started


@contextlib.contextmanager
def one_core() -> Iterator[None]:
    """Stay on one core, so that both managers meet the same caches."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
