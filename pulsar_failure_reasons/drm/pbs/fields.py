"""Attributes of a PBS job: their values, and used against requested."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Mapping, Optional

from ...errors import OutputParseError
from ...reason import Cause
from ..units import parse_duration, parse_memory

#: mom's last look may be a second old: 3 s of CPU time at a limit of 4 s, measured.
_CPUT_LAG_S = 1

#: The attributes of one job by their lower-case names: ``resources_used.walltime``.
Attributes = Mapping[str, str]


def whole_number(text: Optional[str]) -> Optional[int]:
    """Return the number (perhaps negative), None where the text is none."""
    word = (text or "").strip()
    return int(word) if re.fullmatch(r"-?[0-9]{1,15}", word) else None


def duration(text: Optional[str]) -> Optional[int]:
    """Return seconds of ``01:02:03``, ``62`` or ``62.5``, None where the text is no duration."""
    try:
        return parse_duration(text or "")
    except OutputParseError:
        return None


def memory(text: Optional[str]) -> Optional[int]:
    """Return bytes of ``60916kb``, None where the text is no size."""
    try:
        return parse_memory(text or "") or None
    except OutputParseError:
        return None


@dataclass(frozen=True)
class Usage:
    """What a job asked for and used: seconds and bytes, None where PBS did not say."""

    walltime_s: Optional[int] = None
    elapsed_s: Optional[int] = None
    memory_bytes: Optional[int] = None
    used_memory_bytes: Optional[int] = None
    exceeded: Optional[Cause] = None


def usage_of(attributes: Attributes) -> Usage:
    """Return requested and used, and which limit the numbers say was reached, if any.

    The walltime stands first: a job at its walltime may well have used all of its memory.
    """
    walltime_s = duration(attributes.get("resource_list.walltime"))
    elapsed_s = duration(attributes.get("resources_used.walltime"))
    limit, used = (memory(attributes.get(name)) for name in (
        "resource_list.mem", "resources_used.mem"
    ))
    return Usage(walltime_s, elapsed_s, limit, used, _exceeded(attributes, walltime_s, elapsed_s))


def _exceeded(
    attributes: Attributes, walltime_s: Optional[int], elapsed_s: Optional[int]
) -> Optional[Cause]:
    if walltime_s and elapsed_s is not None and elapsed_s >= walltime_s:
        return Cause.WALLTIME
    cput_s = duration(attributes.get("resource_list.cput"))
    used_cput_s = duration(attributes.get("resources_used.cput"))
    if cput_s and used_cput_s is not None and used_cput_s + _CPUT_LAG_S >= cput_s:
        return Cause.CPU_TIME
    for name in ("mem", "vmem"):
        limit = memory(attributes.get(f"resource_list.{name}"))
        used = memory(attributes.get(f"resources_used.{name}"))
        if limit and used is not None and used >= limit:
            return Cause.MEMORY
    return None


def plain_name(user: str) -> str:
    """Return a user without the host: ``alice@pbshead`` is alice."""
    return user.partition("@")[0]
