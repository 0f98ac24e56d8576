"""Fields that several of Slurm's commands share."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Optional

from ...errors import OutputParseError
from ..units import parse_duration, parse_memory

_NOTHING = frozenset({"", "n/a", "none", "(null)", "unknown", "none assigned", "null"})


def text_or_none(text: Optional[str]) -> Optional[str]:
    """Return the text, None where it is one of Slurm's words for nothing."""
    if text is None or text.strip().lower() in _NOTHING:
        return None
    return text.strip()


def whole_number(text: Optional[str]) -> Optional[int]:
    """Return the number, None where the text is none."""
    word = (text or "").strip()
    return int(word) if re.fullmatch(r"[0-9]{1,15}", word) else None


@lru_cache(maxsize=512)
def duration(text: Optional[str], bare_number_s: int = 1) -> Optional[int]:
    """Return seconds, None where the text is no duration: a detail must not cost the answer."""
    try:
        return parse_duration(text or "", bare_number_s=bare_number_s)
    except OutputParseError:
        return None


def memory(text: Optional[str]) -> Optional[int]:
    """Return bytes (Slurm's bare numbers are MB), None where the text is no size."""
    try:
        return parse_memory(text or "", bare_unit="m")
    except OutputParseError:
        return None


@lru_cache(maxsize=512)
def tres_memory(tres: Optional[str]) -> Optional[int]:
    """Return the memory of the whole job in bytes, from ``cpu=1,mem=100M,node=1,billing=1``.

    None where there is none, and for 0, which means all memory of the node.
    """
    match = re.search(r"(?:^|,)mem=([^,]*)", tres or "")
    return (memory(match.group(1)) if match else None) or None


def whole_job_memory(
    text: Optional[str], cpus: Optional[int], nodes: Optional[int]
) -> Optional[int]:
    """Return the memory of the whole job in bytes from what ``ReqMem`` says.

    Until 20.11 it is per CPU (``2Gc``) or per node (``4Gn``), since 21.08 for the whole job.
    """
    size = memory(text)
    if not size:
        return None
    word = (text or "").strip().lower()
    if word.endswith("c"):
        return size * cpus if cpus else None
    if word.endswith("n"):
        return size * nodes if nodes else None
    return size
