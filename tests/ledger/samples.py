"""Ends of jobs for the tests of the ledger and of the report."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any, List, Optional, Tuple

from pulsar_failure_reasons.ledger.database import LedgerDatabase
from pulsar_failure_reasons.ledger.entry import Entry
from pulsar_failure_reasons.reason import Cause, Confidence, Evidence, FailureReason

#: 2026-03-02, a Monday, 10:20:00 UTC: ``date -u -d 2026-03-02T10:20:00 +%s``.
MONDAY = 1772446800
HOUR = 3600
DAY = 86400
GIB = 2**30


def ended(
    job_id: str,
    cause: Optional[Cause] = None,
    *,
    at: int = MONDAY,
    manager: str = "main",
    tool: Optional[str] = "hisat2",
    external_id: Optional[str] = "",
    **reason: Any,
) -> Entry:
    """Return an end; without a cause the job ended well. Its external id is 1000 + job_id."""
    if external_id == "":
        external_id = str(1000 + int(job_id))
    return Entry(
        manager=manager, job_id=job_id, external_id=external_id, tool_id=tool, ended_at=at,
        reason=cause and FailureReason(
            cause=cause,
            message=f"Slurm ended the job for {cause.value}.",
            confidence=Confidence.CONTROLLER,
            drm="slurm",
            external_id=external_id,
            evidence=(Evidence("scontrol", "JobState", cause.value.upper()),),
            **reason,
        ),
    )


def database(path: Path, **options: Any) -> LedgerDatabase:
    """Return the ledger of a file."""
    return LedgerDatabase(f"sqlite:///{path}", **options)


def rows(path: Path, query: str) -> List[Tuple[Any, ...]]:
    """Return what the file itself says, past our own code."""
    connection = sqlite3.connect(str(path))
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()
