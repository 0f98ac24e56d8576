"""What is stored of an end, and what is not."""

from __future__ import annotations

import json
import time

from pulsar_failure_reasons.ledger.entry import make_entry
from pulsar_failure_reasons.reason import Cause, Confidence, Evidence, FailureReason

from .samples import GIB, MONDAY, ended

REASON = FailureReason(
    cause=Cause.MEMORY,
    message="Slurm killed the job: it used 4.1 GiB of the 4 GiB it had asked for, on node7.",
    confidence=Confidence.CONTROLLER,
    drm="slurm",
    external_id="4711",
    attempt=2,
    node="node7",
    requested={"memory_bytes": 4 * GIB, "walltime_s": 3600},
    used={"memory_bytes": 4.1 * GIB, "walltime_s": 61.5},
    cancelled_by="alice",
    evidence=(Evidence("scontrol", "JobState", "OUT_OF_MEMORY"),),
    recorded_at="2026-03-02T10:20:00Z",
)


def test_row_of_a_failure() -> None:
    """Each column, by hand; who cancelled a job is nobody's business here."""
    row = make_entry("main", "42", "4711", "hisat2", REASON).failure_row()
    assert row == {
        "recorded_at": MONDAY, "manager": "main", "drm": "slurm", "job_id": "42", "attempt": 2,
        "external_id": "4711", "tool_id": "hisat2", "cause": "memory",
        "runner_state": "memory_limit_reached", "fault": "job", "confidence": "controller",
        "node": "node7",
        "requested_memory_bytes": 4294967296, "requested_walltime_s": 3600.0,
        "requested_cpu_time_s": None, "requested_disk_bytes": None,
        "used_memory_bytes": 4402341478, "used_walltime_s": 61.5,
        "used_cpu_time_s": None, "used_disk_bytes": None,
        "message": "Slurm killed the job: it used 4.1 GiB of the 4 GiB it had asked for, on node7.",
        "evidence": '[["scontrol", "JobState", "OUT_OF_MEMORY"]]',
    }
    assert "alice" not in json.dumps(row)


def test_end_without_a_reason_is_counted_only() -> None:
    """It makes no row; its count has an empty cause."""
    entry = ended("1")
    assert entry.failure_row() is None
    count = entry.count_row()
    assert (count["cause"], count["ended_at"]) == ("", MONDAY)


def test_time_is_that_of_the_record() -> None:
    """A server that judges an end again after a crash tells the same end, not a second one."""
    assert make_entry("main", "42", "4711", None, REASON).ended_at == MONDAY
    before = int(time.time())
    assert before <= make_entry("main", "42", "4711", None, None).ended_at <= time.time()


def test_attempts_are_told_apart() -> None:
    """By the DRM's id; a refused submission, which has none, by its time."""
    keys = {
        ended("1", Cause.MEMORY, external_id="17").end_key,
        ended("1", Cause.MEMORY, external_id="18").end_key,
        ended("1", Cause.LAUNCH_ERROR, external_id=None).end_key,
        ended("1", Cause.LAUNCH_ERROR, external_id=None, at=MONDAY + 1).end_key,
    }
    assert len(keys) == 4


def test_the_record_knows_the_id_best() -> None:
    """A server that has lost the id tells the same end as the one that recorded it."""
    assert make_entry("main", "42", None, None, REASON).end_key == "4711"


def test_odd_values_become_something_that_every_database_takes() -> None:
    """NUL and line ends are blanks, long ids are cut, numbers that are none are unknown."""
    entry = ended(
        "1", Cause.DISK, tool="a\x00b\nc", manager="m" * 999, node="\udcff",
        used={"memory_bytes": float("nan"), "walltime_s": float("inf"), "disk_bytes": 2.0**80},
    )
    row = entry.failure_row()
    assert row is not None
    assert row["tool_id"] == "a b c"
    assert len(row["manager"]) == 255
    assert row["node"] == "?"
    assert [row[f"used_{name}"] for name in ("memory_bytes", "walltime_s", "disk_bytes")] == [
        None, None, None]


def test_unknown_tool_is_unknown() -> None:
    """Pulsar stores an empty text where Galaxy named no tool."""
    row = make_entry("main", "42", "4711", "", REASON).failure_row()
    assert row is not None and row["tool_id"] is None
