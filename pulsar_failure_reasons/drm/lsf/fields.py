"""Fields that several of LSF's commands share."""

from __future__ import annotations

import re
from typing import Optional

from ...errors import OutputParseError
from ..units import parse_duration, parse_memory


def text_or_none(text: Optional[str]) -> Optional[str]:
    """Return the text, None for LSF's ``-`` and for nothing."""
    word = (text or "").strip()
    return None if word in ("", "-", "N/A") else word


def whole_number(text: Optional[str]) -> Optional[int]:
    """Return the number, None where the text is none."""
    word = (text or "").strip()
    return int(word) if re.fullmatch(r"[0-9]{1,15}", word) else None


def seconds(text: Optional[str]) -> Optional[int]:
    """Return a run time (``518 second(s)``) in seconds, None where the text is none."""
    return _duration((text or "").strip(), bare_number_s=1)


def run_limit(text: Optional[str]) -> Optional[int]:
    """Return a run limit in seconds: ``60.0``, ``60.0/host``, ``60.0 min of host``, ``1:00``.

    Bare numbers are minutes; two parts are hours and minutes, as in ``bsub -W``.
    """
    word = re.sub(r"\s*(?:/\s*\S+|of \S+)\s*$", "", (text or "").strip())
    return _duration(word, bare_number_s=60)


def _duration(word: str, bare_number_s: int) -> Optional[int]:
    try:
        return parse_duration(word, bare_number_s=bare_number_s, two_parts_s=3600)
    except OutputParseError:
        return None


def memory(text: Optional[str]) -> Optional[int]:
    """Return bytes, None where the text is no size: ``4 G``, ``512 Mbytes``, ``10240 MB``.

    Bare numbers are KB, LSF's own unit where LSF_UNIT_FOR_LIMITS is not set.
    """
    try:
        return parse_memory(text or "", bare_unit="k") or None
    except OutputParseError:
        return None
