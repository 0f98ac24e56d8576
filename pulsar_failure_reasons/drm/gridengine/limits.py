"""What a Grid Engine job asked for, what it used, and which limit that says it reached."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Dict, Mapping, Optional

from ...errors import OutputParseError
from ...reason import Cause
from ..units import parse_duration, parse_memory

_TIMES = ("h_rt", "s_rt", "h_cpu", "s_cpu")
_SIZES = ("h_vmem", "s_vmem", "h_rss", "s_rss", "h_data", "s_data", "m_mem_free")
_REQUEST = re.compile(r"(?:^|[\s,])(?P<name>[A-Za-z_][\w.]*)=(?P<value>[^\s,]+)")
#: execd samples the usage, so a job is killed a little below or above its limit (3.96 s of CPU
#: time at h_cpu=4, measured).
_NEARLY = 0.95


def duration(text: Optional[str]) -> Optional[int]:
    """Return seconds of ``24s``, ``0.000``, ``01:00:00``, None where the text is none."""
    try:
        return parse_duration((text or "").strip())
    except OutputParseError:
        return None


def memory(text: Optional[str]) -> Optional[int]:
    """Return bytes of ``4.793MB``, ``16000M``, ``4g`` (decimal), None where the text is none."""
    word = (text or "").strip()
    try:
        # qacct's own units end in B and are binary.
        return parse_memory(word, lower_is_decimal=not word.endswith(("B", "b")))
    except OutputParseError:
        return None


def parse_requests(category: str) -> Dict[str, str]:
    """Return the requested resources of a ``category`` or ``hard resource_list``."""
    return {m.group("name"): m.group("value") for m in _REQUEST.finditer(category[:4000])}


@dataclass(frozen=True)
class Usage:
    """Requested and used; None (or a missing request) where it was not said.

    ``requests`` is None where the text has no category, so nothing is known of limits. Memory
    requests are per slot.
    """

    requests: Optional[Mapping[str, str]] = None
    elapsed_s: Optional[int] = None
    cpu_s: Optional[float] = None
    max_vmem_bytes: Optional[int] = None
    slots: int = 1

    def time(self, name: str) -> Optional[int]:
        """Return a requested time in seconds, None where it was not requested."""
        return duration((self.requests or {}).get(name)) or None

    def size(self, name: str) -> Optional[int]:
        """Return a requested size for the whole job in bytes, None where not requested."""
        per_slot = memory((self.requests or {}).get(name))
        return per_slot * max(1, self.slots) if per_slot else None

    def has(self, *names: str) -> bool:
        """Tell whether any of these was requested."""
        return any(name in (self.requests or {}) for name in names)

    @property
    def requests_limits(self) -> Optional[bool]:
        """Whether any limit was requested; None where no request is known at all."""
        if self.requests is None:
            return None
        return self.has(*_TIMES, *_SIZES)

    def reached(self) -> Optional[Cause]:
        """Return the limit that the numbers say was reached, None where none was.

        The walltime stands first: a job at its walltime may well have used all of its memory.
        """
        for name in ("h_rt", "s_rt"):
            limit = self.time(name)
            if limit and self.elapsed_s is not None and self.elapsed_s >= limit:
                return Cause.WALLTIME
        for name in ("h_vmem", "s_vmem"):
            size = self.size(name)
            if size and self.max_vmem_bytes and self.max_vmem_bytes >= size * _NEARLY:
                return Cause.MEMORY
        for name in ("h_cpu", "s_cpu"):
            limit = self.time(name)
            if limit and self.cpu_s is not None and self.cpu_s >= limit * _NEARLY:
                return Cause.CPU_TIME
        return None

    def only_limit(self) -> Optional[Cause]:
        """Return the one kind of limit that was requested, None for none or several."""
        kinds = {
            Cause.WALLTIME: self.has("h_rt", "s_rt"),
            Cause.CPU_TIME: self.has("h_cpu", "s_cpu"),
            Cause.MEMORY: self.has("h_vmem", "s_vmem"),
        }
        asked = [cause for cause, was_asked in kinds.items() if was_asked]
        return asked[0] if len(asked) == 1 else None
