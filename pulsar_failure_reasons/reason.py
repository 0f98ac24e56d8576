"""Why a job failed: :class:`FailureReason` and the words it is made of.

``CAUSE_TABLE`` is the one place that says whose fault a cause is and which token Galaxy sees;
``docs/reasons.md`` is generated from it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from enum import Enum
from typing import Any, Dict, Mapping, NamedTuple, Optional, Tuple, Type, TypeVar

from . import runner_state
from .errors import RecordError

MAX_MESSAGE_CHARS = 500
MAX_EVIDENCE_ITEMS = 8
MAX_EVIDENCE_CHARS = 300

_CONTROL_CHARACTERS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def clean_text(text: str, limit: int = MAX_EVIDENCE_CHARS) -> str:
    """Return text from outside on one line, without control characters, cut to ``limit``.

    Lone surrogates (undecodable bytes) become ``?``, so that the result can always be
    encoded as UTF-8.
    """
    printable = text.encode("utf-8", errors="replace").decode("utf-8")
    one_line = _CONTROL_CHARACTERS.sub(" ", printable).strip()
    return one_line if len(one_line) <= limit else one_line[: limit - 1] + "…"


class Fault(Enum):
    """Who can do something about it."""

    JOB = "job"
    USER = "user"
    INFRASTRUCTURE = "infrastructure"
    UNKNOWN = "unknown"


class Cause(Enum):
    """What ended the job."""

    WALLTIME = "walltime"
    MEMORY = "memory"
    CPU_TIME = "cpu_time"
    DISK = "disk"
    CANCELLED = "cancelled"
    PREEMPTED = "preempted"
    NODE_FAILURE = "node_failure"
    LOST = "lost"
    HELD = "held"
    LAUNCH_ERROR = "launch_error"
    STAGE_ERROR = "stage_error"
    TOOL_ERROR = "tool_error"
    UNKNOWN = "unknown"


class Confidence(Enum):
    """Where the decisive detail was read."""

    CONTROLLER = "controller"
    ACCOUNTING = "accounting"
    EVENT_LOG = "event_log"
    STDERR = "stderr"
    INFERRED = "inferred"


class CauseRow(NamedTuple):
    """One row of the cause table.

    ``runner_state`` is None where nothing may be sent: Galaxy judges the tool's own exit.
    ``meaning`` is a phrase for the documentation.
    """

    fault: Fault
    runner_state: Optional[str]
    meaning: str


CAUSE_TABLE: Mapping[Cause, CauseRow] = {
    Cause.WALLTIME: CauseRow(
        Fault.JOB, runner_state.WALLTIME_REACHED, "ran longer than its time limit"
    ),
    Cause.MEMORY: CauseRow(
        Fault.JOB, runner_state.MEMORY_LIMIT_REACHED, "used more memory than its limit"
    ),
    # Galaxy has no word for CPU time; more walltime is the remedy that comes nearest.
    Cause.CPU_TIME: CauseRow(
        Fault.JOB, runner_state.WALLTIME_REACHED, "used more CPU time than its limit"
    ),
    # Not output_size_limit: that token switches Galaxy's resubmission off.
    Cause.DISK: CauseRow(
        Fault.JOB,
        runner_state.UNKNOWN_ERROR,
        "quota, size limit or file system full, or its output could not be opened",
    ),
    Cause.CANCELLED: CauseRow(
        Fault.USER, runner_state.UNKNOWN_ERROR, "somebody cancelled it outside Galaxy"
    ),
    Cause.PREEMPTED: CauseRow(
        Fault.INFRASTRUCTURE, runner_state.UNKNOWN_ERROR, "made way for another job"
    ),
    Cause.NODE_FAILURE: CauseRow(
        Fault.INFRASTRUCTURE, runner_state.UNKNOWN_ERROR, "its node failed"
    ),
    Cause.LOST: CauseRow(
        Fault.INFRASTRUCTURE,
        runner_state.UNKNOWN_ERROR,
        "the DRM no longer knows it and it left no exit code",
    ),
    Cause.HELD: CauseRow(
        Fault.UNKNOWN,
        runner_state.UNKNOWN_ERROR,
        "stuck or held, for no limit, longer than hold_grace",
    ),
    Cause.LAUNCH_ERROR: CauseRow(
        Fault.JOB,
        runner_state.UNKNOWN_ERROR,
        "never came to the tool: submission refused, or executable, container, account or "
        "working directory not usable",
    ),
    Cause.STAGE_ERROR: CauseRow(
        Fault.INFRASTRUCTURE, runner_state.UNKNOWN_ERROR, "the DRM's own file transfer failed"
    ),
    Cause.TOOL_ERROR: CauseRow(
        Fault.JOB, None, "the tool's own exit code, which Galaxy judges"
    ),
    Cause.UNKNOWN: CauseRow(
        Fault.UNKNOWN, runner_state.UNKNOWN_ERROR, "killed, and nothing says by what"
    ),
}


@dataclass(frozen=True)
class Evidence:
    """One thing that was read: from which command or file, which field, and its raw value.

    The value is cleaned and cut on the way in, so evidence is always safe to store and log.
    """

    source: str
    field: str
    value: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", clean_text(self.value))


@dataclass(frozen=True)
class FailureReason:
    """Why a job failed.

    ``requested`` and ``used`` map names that end in their unit (``walltime_s``,
    ``memory_bytes``, ``cpu_time_s``, ``disk_bytes``) to numbers; a missing key means unknown.
    ``attempt`` is None where Galaxy did not number the attempts of the job; ``node`` and
    ``cancelled_by`` are None where nobody said. ``recorded_at`` is None until the reason is
    stored. A reason with ``observe_only`` set is stored and logged, never sent.
    """

    cause: Cause
    message: str
    confidence: Confidence
    drm: str
    external_id: Optional[str] = None
    attempt: Optional[int] = None
    node: Optional[str] = None
    requested: Mapping[str, float] = field(default_factory=dict)
    used: Mapping[str, float] = field(default_factory=dict)
    cancelled_by: Optional[str] = None
    evidence: Tuple[Evidence, ...] = ()
    recorded_at: Optional[str] = None
    observe_only: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", clean_text(self.message, MAX_MESSAGE_CHARS))
        object.__setattr__(self, "evidence", tuple(self.evidence[:MAX_EVIDENCE_ITEMS]))

    @property
    def fault(self) -> Fault:
        """Whose fault it is."""
        return CAUSE_TABLE[self.cause].fault

    @property
    def runner_state(self) -> Optional[str]:
        """Galaxy's token, or None where nothing may be sent."""
        return CAUSE_TABLE[self.cause].runner_state

    def stamped(self, now: Optional[datetime] = None) -> FailureReason:
        """Return this reason with the time of recording, in UTC."""
        moment = now or datetime.now(timezone.utc)
        return replace(self, recorded_at=moment.strftime("%Y-%m-%dT%H:%M:%SZ"))

    def to_dict(self) -> Dict[str, Any]:
        """Return the stored form (DESIGN section 2): JSON values, keys absent when unknown."""
        stored: Dict[str, Any] = {
            "runner_state": self.runner_state,
            "message": self.message,
            "cause": self.cause.value,
            "fault": self.fault.value,
            "confidence": self.confidence.value,
            "drm": self.drm,
            "external_id": self.external_id,
            "attempt": self.attempt,
            "node": self.node,
            "requested": dict(self.requested),
            "used": dict(self.used),
            "cancelled_by": self.cancelled_by,
            "evidence": [
                {"source": item.source, "field": item.field, "value": item.value}
                for item in self.evidence
            ],
            "recorded_at": self.recorded_at,
            "observe_only": self.observe_only,
        }
        return {key: value for key, value in stored.items() if not _says_nothing(value)}

    @classmethod
    def from_dict(cls, stored: object) -> FailureReason:
        """Return the reason that :meth:`to_dict` wrote.

        Keys that we do not know are ignored, so a newer version's records can be read.

        Raises:
            RecordError: ``stored`` is no such record.
        """
        if not isinstance(stored, Mapping):
            raise RecordError(f"a failure reason is a JSON object, not {stored!r:.80}")
        try:
            return cls(
                cause=Cause(stored["cause"]),
                message=_text(stored["message"]),
                confidence=Confidence(stored["confidence"]),
                drm=_text(stored["drm"]),
                external_id=_optional(stored, "external_id", str),
                attempt=_optional(stored, "attempt", int),
                node=_optional(stored, "node", str),
                requested=_amounts(stored.get("requested", {})),
                used=_amounts(stored.get("used", {})),
                cancelled_by=_optional(stored, "cancelled_by", str),
                evidence=tuple(
                    Evidence(_text(i["source"]), _text(i["field"]), _text(i["value"]))
                    for i in stored.get("evidence", [])
                ),
                recorded_at=_optional(stored, "recorded_at", str),
                observe_only=stored.get("observe_only") is True,
            )
        except (KeyError, TypeError, ValueError) as error:
            raise RecordError(f"not a failure reason: {error!r} in {stored!r:.200}") from error


def _says_nothing(value: object) -> bool:
    # Not "not value": a number that is zero was said.
    return value is None or value is False or value == {} or value == []


_Value = TypeVar("_Value")


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected text, got {value!r:.80}")
    return value


def _optional(stored: Mapping[str, Any], key: str, kind: Type[_Value]) -> Optional[_Value]:
    value = stored.get(key)
    if value is not None and not isinstance(value, kind):
        raise TypeError(f"{key}: expected {kind.__name__}, got {value!r:.80}")
    return value


def _amounts(values: object) -> Dict[str, float]:
    if not isinstance(values, Mapping):
        raise TypeError(f"expected amounts by name, got {values!r:.80}")
    for name, amount in values.items():
        if isinstance(amount, bool) or not isinstance(amount, (int, float)):
            raise TypeError(f"{name!r}: expected a number, got {amount!r:.80}")
    return dict(values)
