"""One look at HTCondor: logs and queue are read one after the other, and jobs do not wait."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, List

import pytest

from pulsar_failure_reasons.drm.base import Ending, Phase
from pulsar_failure_reasons.drm.htcondor import HoldPolicy
from pulsar_failure_reasons.managers.htcondor_log import JobLog
from pulsar_failure_reasons.managers.htcondor_source import FollowedJob, HTCondorSource
from pulsar_failure_reasons.reason import Cause

from .harness import Pool

# HTCondor 23.9.6, a job of 64 MB under policy:Hold_If_Memory_Exceeded.
BEGUN = """\
000 (7.000.000) 2026-11-29 21:04:03 Job submitted from host: <127.0.0.1:9618>
...
001 (7.000.000) 2026-11-29 21:04:05 Job executing on host: <127.0.0.1:9618>
...
006 (7.000.000) 2026-11-29 21:04:07 Image size of job updated: 7
\t5  -  MemoryUsage of job (MB)
\t4616  -  ResidentSetSize of job (KB)
...
"""
HELD = """\
006 (7.000.000) 2026-11-29 21:04:22 Image size of job updated: 167540
\t160  -  MemoryUsage of job (MB)
\t162904  -  ResidentSetSize of job (KB)
...
012 (7.000.000) 2026-11-29 21:04:22 Job was held.
\tError from slot1_1@localhost: memory usage exceeded request_memory
\tCode 21 Subcode 102
...
"""
AD = {
    "ClusterId": 7, "ProcId": 0, "JobStatus": 5, "HoldReasonCode": 21, "HoldReasonSubCode": 102,
    "HoldReason": "Error from slot1_1@localhost: memory usage exceeded request_memory",
    "RequestMemory": 64,
}


def test_held_between_log_and_queue(
    pool: Pool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that is held after its log was read is told with what was measured last."""
    path = tmp_path / "job.log"
    path.write_text(BEGUN)
    source = HTCondorSource()
    source.follow("7", FollowedJob(JobLog(str(path), pool.bindings, "7"), HoldPolicy))

    def ads(what: str, constraint: str, **more: Any) -> List[Dict[str, Any]]:
        path.write_text(BEGUN + HELD)
        return [dict(AD)]

    monkeypatch.setattr(source, "_ads", ads)
    (view,) = source.query_jobs()
    assert view.phase is Phase.ENDED and view.end is not None
    assert (view.end.ending, view.end.cause) == (Ending.LIMIT, Cause.MEMORY)
    assert (view.used_memory_bytes, view.memory_bytes) == (160 * 1024**2, 64 * 1024**2)
