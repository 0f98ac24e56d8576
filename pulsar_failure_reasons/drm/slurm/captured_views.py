"""A job's state as somebody copied it, as a :class:`JobView`; shared by the readers of it."""

from __future__ import annotations

import re
from typing import Optional

from ...errors import OutputParseError
from ...reason import Confidence, Evidence
from ..base import JobView
from .classify import describe_state, parse_exit_code, signal_from_reason

#: The id of a view whose text names none (blacked out, not among the columns).
NO_ID = ""

_ID = re.compile(r"(?P<base>[0-9]{1,18})(?P<element>_[0-9]{1,18}|_\[[^\]]*\]|\+[0-9]{1,18})?")
#: sacct cuts ids as well: ``4018898_12+``.
_CUT_ID = re.compile(r"(?P<base>[0-9]{1,18})_[0-9]*\+")


def sighting(
    source: str,
    confidence: Confidence,
    state: str,
    *,
    job: Optional[str] = None,
    reason: str = "",
    exit_text: str = "",
    exit_code: Optional[int] = None,
    signal: Optional[int] = None,
    max_rss_bytes: Optional[int] = None,
) -> JobView:
    """Return the view that a state with its details makes; unreadable details are left out."""
    if exit_text:
        try:
            exit_code, signal = parse_exit_code(exit_text)
        except OutputParseError:
            exit_text = ""
    described = describe_state(state, reason, exit_code, signal or signal_from_reason(reason))
    shown = (("State", state), ("Reason", reason), ("ExitCode", exit_text))
    return JobView(
        external_id=clean_id(job) or NO_ID,
        job_state=described.word,
        phase=described.phase,
        confidence=confidence,
        end=described.end,
        stuck_detail=described.stuck_detail,
        used_memory_bytes=max_rss_bytes,
        evidence=tuple(Evidence(source, name, value) for name, value in shown if value),
    )


def clean_id(text: Optional[str]) -> Optional[str]:
    """Return a job's id (``13``, ``13_7``, ``13_[4-10%3]``, ``176+0``), None for any other text."""
    word = (text or "").strip().strip("'\"`,;")
    if _ID.fullmatch(word):
        return word
    cut = _CUT_ID.fullmatch(word)
    return cut.group("base") if cut else None
