"""Durations and memory sizes as DRMs write them: the only parser for either.

Every unit of memory is binary (K = 1024 bytes), as in Slurm, LSF and PBS; Grid Engine's small
letters are the one exception (``lower_is_decimal``).
``None`` means that the DRM said that there is no value (``UNLIMITED``, ``N/A``).
"""

from __future__ import annotations

import re
from typing import List, Optional

from ..errors import OutputParseError

#: What DRMs print where there is no number: no limit, or not known yet.
_NO_VALUE = frozenset(
    {
        "", "-", "--", "n/a", "na", "none", "null", "(null)", "nil", "unlimited", "infinite",
        "infinity", "invalid", "not_set", "notset", "partition_limit", "unknown", "undefined",
    }
)

_SECONDS_PER_UNIT = {
    "s": 1, "sec": 1, "secs": 1, "second": 1, "seconds": 1, "second(s)": 1, "sec.": 1,
    "m": 60, "min": 60, "mins": 60, "minute": 60, "minutes": 60, "minute(s)": 60, "min.": 60,
    "h": 3600, "hr": 3600, "hrs": 3600, "hour": 3600, "hours": 3600, "hour(s)": 3600,
    "d": 86400, "day": 86400, "days": 86400, "day(s)": 86400,
}

_MEMORY_PREFIXES = "kmgtpe"
_LONG_MEMORY_UNITS = {
    "byte": 0, "bytes": 0, "kilobyte": 1, "kilobytes": 1, "kbytes": 1, "megabyte": 2,
    "megabytes": 2, "mbytes": 2, "gigabyte": 3, "gigabytes": 3, "gbytes": 3, "terabyte": 4,
    "terabytes": 4, "tbytes": 4, "petabyte": 5, "petabytes": 5,
}

# [0-9] and not \d, here and everywhere: \d also matches digits of other scripts.
_CLOCK = re.compile(
    r"(?:(?P<days>[0-9]{1,6})-)?(?P<parts>[0-9]{1,9}(?::[0-9]{1,9}){0,3})(?:\.[0-9]{1,9})?"
)
_AMOUNT = re.compile(r"(?P<number>[0-9]{1,18}(?:\.[0-9]{1,18})?)\s*(?P<unit>[A-Za-z().]*)")
_LONGEST_TEXT = 60


def parse_duration(
    text: str, *, bare_number_s: int = 1, two_parts_s: int = 60
) -> Optional[int]:
    """Return a duration in whole seconds (fractions are cut), None where there is none.

    Known forms: ``1-02:03:04``, ``1-02:03``, ``1-02``, ``1:02:03``, ``02:03``, ``00:00.168``,
    ``1:02:03:04`` (days first), ``62``, ``62s``, ``60.0 min``, ``UNLIMITED``, ``N/A``.

    Args:
        text: What the DRM wrote.
        bare_number_s: Seconds that a number without a unit counts (60 for Slurm's
            ``TimelimitRaw``).
        two_parts_s: Seconds that the first part of ``02:03`` counts: 60 for Slurm's
            minutes:seconds, 3600 for LSF's hours:minutes.

    Raises:
        OutputParseError: the text has none of these forms.
    """
    word = text.strip()
    if word.lower() in _NO_VALUE:
        return None
    if len(word) <= _LONGEST_TEXT:
        clock = _CLOCK.fullmatch(word)
        if clock and (":" in word or "-" in word):
            parts = [int(part) for part in clock.group("parts").split(":")]
            return _clock_seconds(clock.group("days"), parts, two_parts_s)
        amount = _AMOUNT.fullmatch(word)
        if amount:
            unit = amount.group("unit").lower()
            factor = bare_number_s if not unit else _SECONDS_PER_UNIT.get(unit)
            if factor is not None:
                return int(float(amount.group("number")) * factor)
    raise OutputParseError(f"not a duration: {text!r:.80}; expected e.g. 1-02:03:04 or UNLIMITED")


def _clock_seconds(days: Optional[str], parts: List[int], two_parts_s: int) -> int:
    if days is not None:
        # After days come hours, whatever the number of parts.
        weights = [3600, 60, 1, 0]
        return int(days) * 86400 + sum(p * w for p, w in zip(parts, weights))
    if len(parts) == 2:
        return parts[0] * two_parts_s + parts[1] * (two_parts_s // 60)
    weights = [86400, 3600, 60, 1][-len(parts):]
    return sum(p * w for p, w in zip(parts, weights))


def parse_memory(
    text: str, *, bare_unit: str = "", lower_is_decimal: bool = False
) -> Optional[int]:
    """Return a size in bytes, None where there is none.

    Known forms: ``100M``, ``4Gn`` and ``2Gc`` (Slurm's per node and per CPU: the letter is
    ignored here), ``0.98G``, ``22212K``, ``67032kb``, ``1.5GiB``, ``4096 megabytes``, ``N/A``.

    Args:
        text: What the DRM wrote.
        bare_unit: The prefix that a number without one has: "" bytes, "k", "m" ...
        lower_is_decimal: ``4g`` is 4 * 1000^3 bytes and ``4G`` 4 * 1024^3, as in Grid Engine.

    Raises:
        OutputParseError: the text has none of these forms.
    """
    word = text.strip()
    if word.lower() in _NO_VALUE:
        return None
    amount = _AMOUNT.fullmatch(word) if len(word) <= _LONGEST_TEXT else None
    power = _memory_power(amount.group("unit").lower(), bare_unit.lower()) if amount else None
    if amount is None or power is None:
        raise OutputParseError(f"not a memory size: {text!r:.80}; expected e.g. 100M or 4Gn")
    decimal = lower_is_decimal and amount.group("unit")[:1].islower()
    return int(float(amount.group("number")) * (1000 if decimal else 1024) ** power)


def _memory_power(unit: str, bare_unit: str) -> Optional[int]:
    if unit in _LONG_MEMORY_UNITS:
        return _LONG_MEMORY_UNITS[unit]
    match = re.fullmatch(rf"([{_MEMORY_PREFIXES}]?)(?:i?b)?([nc]?)", unit)
    if match is None:
        return None
    bare = unit in ("", "n", "c")
    prefix = bare_unit if bare else match.group(1)
    return _MEMORY_PREFIXES.index(prefix) + 1 if prefix else 0


def format_duration(seconds: float) -> str:
    """Return a duration for people, in at most two units: ``62 s``, ``2 h 5 min``, ``3 d 4 h``.

    Up to 90 s stay seconds, so that "62 s against a limit of 60 s" can be told.
    """
    whole = max(0, int(seconds))
    if whole <= 90:
        return f"{whole} s"
    for size, name, small, small_name in (
        (86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")
    ):
        if whole >= size:
            rest = whole % size // small
            return f"{whole // size} {name}" + (f" {rest} {small_name}" if rest else "")
    return f"{whole} s"


def format_memory(size_bytes: float) -> str:
    """Return a size for people, binary units under their usual names: ``50 MB``, ``1.5 GB``."""
    amount = max(0.0, float(size_bytes))
    for unit in ("bytes", "KB", "MB", "GB", "TB"):
        if amount < 1024 or unit == "TB":
            break
        amount /= 1024
    digits = f"{amount:.1f}"
    return f"{digits[:-2] if digits.endswith('.0') else digits} {unit}"
