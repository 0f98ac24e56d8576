"""What the ledger knows of one job, for those whose job directory is gone."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple

from ..reason import Cause, Confidence, Evidence, FailureReason
from .database import LedgerDatabase
from .entry import AMOUNTS
from .schema import failures

# Behind .schema, which says in one line what to install where it is missing.
import sqlalchemy as sa


class FoundFailure(NamedTuple):
    """One end of the job, as it was recorded; ``tool_id`` is None where Galaxy did not say."""

    manager: str
    tool_id: Optional[str]
    reason: FailureReason


def find_failures(
    database: LedgerDatabase, job_id: str, manager: Optional[str] = None
) -> List[FoundFailure]:
    """Return the failures of a Pulsar job id, the newest first; ``manager`` None: of all.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    query = sa.select(failures).where(failures.c.job_id == job_id)
    if manager is not None:
        query = query.where(failures.c.manager == manager)
    query = query.order_by(failures.c.recorded_at.desc(), failures.c.id.desc())
    with database.transaction() as connection:
        rows = connection.execute(query).mappings().all()
    return [FoundFailure(row["manager"], row["tool_id"], _reason(row)) for row in rows]


def _reason(row: Mapping[Any, Any]) -> FailureReason:
    moment = datetime.fromtimestamp(row["recorded_at"], timezone.utc)
    return FailureReason(
        cause=_known(row["cause"]),
        message=row["message"],
        confidence=Confidence(row["confidence"]),
        drm=row["drm"] or "",
        external_id=row["external_id"],
        attempt=row["attempt"],
        node=row["node"],
        requested=_amounts(row, "requested"),
        used=_amounts(row, "used"),
        evidence=_evidence(row["evidence"]),
        recorded_at=moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
    )


def _known(cause: str) -> Cause:
    try:
        return Cause(cause)
    except ValueError:
        return Cause.UNKNOWN


def _amounts(row: Mapping[Any, Any], kind: str) -> Dict[str, float]:
    found = {name: row[f"{kind}_{name}"] for name in AMOUNTS}
    return {name: amount for name, amount in found.items() if amount is not None}


def _evidence(stored: str) -> Tuple[Evidence, ...]:
    return tuple(Evidence(*item) for item in json.loads(stored))
