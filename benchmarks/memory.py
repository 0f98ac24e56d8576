"""What an active job costs in memory: Python's own accounts (tracemalloc), N = 100 and 10,000."""

from __future__ import annotations

import gc
import os
import tempfile
import tracemalloc
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Sequence

from pulsar.managers import status

from tests.simulated import control

from .child import in_child
from .passes import environment
from .pulsar_site import OURS, PulsarSite, job_ids, user_name, watching
from .report import Target, say, table

SIZES = (100, 10_000)
#: Job directories for 10,000 jobs take a minute, several on a busy machine.
TIMEOUT_S = 900.0
NAME = "pulsar_job_of_usual_length"


@dataclass(frozen=True)
class Memory:
    """Bytes for one more job: kept, and needed in addition while a pass is made."""

    kept: float
    in_a_pass: float

    def section(self) -> str:
        """Return the section of RESULTS.md."""
        rows = [
            ["kept while it is active", f"{self.kept:,.0f} bytes"],
            ["in addition, during a pass", f"{self.in_a_pass:,.0f} bytes"],
        ]
        small, large = SIZES
        return f"""## Memory for an active job

The difference between {small:,} and {large:,} watched, running jobs, divided by their number
(tracemalloc, after two passes; what Pulsar itself keeps is not counted).

{table(["for each job", ""], rows)}
"""

    def targets(self) -> List[Target]:
        """Nothing was demanded."""
        return []


def measure() -> Memory:
    """Measure each size in a fresh process."""
    small, large = SIZES
    found = []
    for count in SIZES:
        say(f"memory of {count} jobs")
        found.append(in_child(_measure_size, count, timeout_s=TIMEOUT_S))
    kept, peak = (
        (found[1][what] - found[0][what]) / (large - small) for what in ("kept", "peak")
    )
    return Memory(kept, peak - kept)


def _measure_size(count: int) -> Dict[str, int]:
    with tempfile.TemporaryDirectory() as folder:
        state = control.create(Path(folder) / "slurm")
        external_ids = [
            str(external_id)
            for external_id in control.add_jobs(
                state, count, user=user_name(), job_state="RUNNING", name=NAME)
        ]
        managers = {"ours": dict(OURS, job_name_template=NAME)}
        with environment(control.environment(state)), PulsarSite(Path(folder), managers) as site:
            proxy, ids = site.proxy("ours"), job_ids("ours", count)
            # No more than an external id in each job directory: all that Pulsar puts there would
            # take a minute.
            for job_id, external_id in zip(ids, external_ids):
                os.makedirs(proxy.job_directory(job_id).path)
                proxy._proxied_manager._register_external_id(job_id, external_id)
            return _memory_of_watching(proxy, ids)


def _memory_of_watching(proxy: Any, ids: Sequence[str]) -> Dict[str, int]:
    gc.collect()
    tracemalloc.start()
    observer = watching(proxy, ids)
    observer.look()
    gc.collect()
    tracemalloc.reset_peak()
    observer.look()
    peak = tracemalloc.get_traced_memory()[1]
    gc.collect()
    assert observer.counters.failed_passes == 0, observer.counters
    statuses = {proxy._proxied_manager.get_status(job_id) for job_id in ids}
    assert statuses == {status.RUNNING}, statuses
    return {"kept": tracemalloc.get_traced_memory()[0], "peak": peak}
