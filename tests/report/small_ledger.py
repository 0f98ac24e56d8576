"""A small ledger whose numbers are counted by hand.

Nine failures among 20 ends: on Monday 2026-03-02 all but one, which is a week older.

============  =======  =====  ======  =================================
cause         manager  node   tool    jobs
============  =======  =====  ======  =================================
memory        main     n1     hisat2  1, 2, 3 (asked 4 GiB, used 3, 4, 5)
memory        main     n2     None    4
walltime      main     n2     bwa     5 (asked 1 h, used 3601 s)
node_failure  main     n3     bwa     6, 7
lost          big      n3     bwa     8
cancelled     big      n1     hisat2  9 (a week before)
none          main            hisat2  10 to 16
none          big             bwa     17 to 20
============  =======  =====  ======  =================================
"""

from __future__ import annotations

from pathlib import Path

from pulsar_failure_reasons.ledger.database import LedgerDatabase
from pulsar_failure_reasons.reason import Cause
from tests.ledger.samples import DAY, GIB, MONDAY, database, ended

#: Tuesday noon.
NOW = MONDAY + DAY


def make(path: Path) -> LedgerDatabase:
    """Write the ledger, and open it as a report does."""
    fill(database(path))
    return database(path, read_only=True)


def fill(ledger: LedgerDatabase) -> None:
    """Write the jobs of the module's table."""
    memory = [
        ended(str(job), Cause.MEMORY, node="n1", requested={"memory_bytes": 4 * GIB},
              used={"memory_bytes": used * GIB})
        for job, used in ((1, 3), (2, 4), (3, 5))
    ]
    ledger.write([
        *memory,
        ended("4", Cause.MEMORY, node="n2", tool=None),
        ended("5", Cause.WALLTIME, node="n2", tool="bwa", requested={"walltime_s": 3600},
              used={"walltime_s": 3601}),
        ended("6", Cause.NODE_FAILURE, node="n3", tool="bwa"),
        ended("7", Cause.NODE_FAILURE, node="n3", tool="bwa"),
        ended("8", Cause.LOST, node="n3", tool="bwa", manager="big"),
        ended("9", Cause.CANCELLED, node="n1", manager="big", at=MONDAY - 7 * DAY),
        *(ended(str(job)) for job in range(10, 17)),
        *(ended(str(job), tool="bwa", manager="big") for job in range(17, 21)),
    ])
