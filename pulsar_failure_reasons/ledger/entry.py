"""One end of a job as the ledger keeps it, without command lines and without names of users.

The DRM's own words in ``message`` and ``evidence`` are kept as they were recorded.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Dict, Mapping, Optional

from ..reason import FailureReason, clean_text

#: The amounts that have columns, as ``requested_<name>`` and ``used_<name>``.
AMOUNTS = ("memory_bytes", "walltime_s", "cpu_time_s", "disk_bytes")
#: ``cause`` of an end without a reason in the counts: the job ran to its end.
NO_CAUSE = ""
HOUR_S = 3600
DAY_S = 86400
#: How long ends are counted by the hour beside by the day.
HOURS_KEPT_S = 35 * DAY_S

_ID_CHARS = 255
_LARGEST = 2**63 - 1


@dataclass(frozen=True)
class Entry:
    """A job that ended.

    Args:
        manager: Name of the manager in ``app.yml``.
        job_id: Pulsar's id.
        external_id: The DRM's id, None where the job never had one or it is lost.
        tool_id: Galaxy's id of the tool, None where Galaxy did not say.
        ended_at: Seconds since 1970: when the reason was recorded, else when the end was seen.
        reason: None where the job ended without one.
    """

    manager: str
    job_id: str
    external_id: Optional[str]
    tool_id: Optional[str]
    ended_at: int
    reason: Optional[FailureReason]

    @property
    def end_key(self) -> str:
        """What tells this end from another attempt of the same job_id, also after a crash."""
        return _short(self.external_id) or f"at {self.ended_at}"

    def count_row(self) -> Dict[str, Any]:
        """Return what the counts need, and what keeps an end from being counted twice."""
        return {
            "manager": _short(self.manager) or "",
            "job_id": _short(self.job_id) or "",
            "end_key": self.end_key,
            "ended_at": self.ended_at,
            "tool_id": _short(self.tool_id) or "",
            "cause": self.reason.cause.value if self.reason else NO_CAUSE,
        }

    def failure_row(self) -> Optional[Dict[str, Any]]:
        """Return the row of a failure, None for an end without a reason."""
        reason = self.reason
        if reason is None:
            return None
        return {
            "recorded_at": self.ended_at,
            "manager": _short(self.manager) or "",
            "drm": _short(reason.drm),
            "job_id": _short(self.job_id) or "",
            "attempt": reason.attempt,
            "external_id": _short(reason.external_id or self.external_id),
            "tool_id": _short(self.tool_id),
            "cause": reason.cause.value,
            "runner_state": reason.runner_state,
            "fault": reason.fault.value,
            "confidence": reason.confidence.value,
            "node": _short(reason.node),
            "message": reason.message,
            "evidence": _evidence(reason),
            **_amounts("requested", reason.requested),
            **_amounts("used", reason.used),
        }


def make_entry(
    manager: str,
    job_id: str,
    external_id: Optional[str],
    tool_id: Optional[str],
    reason: Optional[FailureReason],
) -> Entry:
    """Return the entry of an end that is recorded now, or was in a former life of the server."""
    recorded_at = _seconds(reason.recorded_at) if reason and reason.recorded_at else None
    if reason is not None and reason.external_id is not None:
        external_id = reason.external_id
    return Entry(
        manager=manager,
        job_id=job_id,
        external_id=external_id,
        tool_id=tool_id or None,
        ended_at=int(time.time()) if recorded_at is None else recorded_at,
        reason=reason,
    )


def _seconds(iso: str) -> Optional[int]:
    """Return a time of ``FailureReason.recorded_at`` in seconds since 1970, None if it is none."""
    try:
        moment = datetime.strptime(iso, "%Y-%m-%dT%H:%M:%SZ")
    except ValueError:
        return None
    return int(moment.replace(tzinfo=timezone.utc).timestamp())


def _short(text: Optional[str]) -> Optional[str]:
    # PostgreSQL refuses a NUL in a text, and one such row must not hold up the others.
    if text is None:
        return None
    if len(text) <= _ID_CHARS and text.isascii() and text.isprintable():
        return text.strip() or None
    return clean_text(text, _ID_CHARS) or None


def _evidence(reason: FailureReason) -> str:
    items = [[item.source, item.field, item.value] for item in reason.evidence]
    return json.dumps(items, ensure_ascii=True)


def _amounts(kind: str, amounts: Mapping[str, float]) -> Dict[str, Optional[float]]:
    return {f"{kind}_{name}": _amount(name, amounts.get(name)) for name in AMOUNTS}


def _amount(name: str, value: Optional[float]) -> Optional[float]:
    if value is None or not abs(value) <= _LARGEST:  # also what is no number, or infinite
        return None
    return int(value) if name.endswith("_bytes") else float(value)
