"""Values as people read them."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any, Optional

from .queries import TIMES

UNKNOWN = "(unknown)"
_FORMATS = {"hour": "%Y-%m-%d %H:00", "day": "%Y-%m-%d", "week": "%Y-%m-%d", "month": "%Y-%m"}


def show_value(name: str, value: Any) -> str:
    """Return a value of a dimension; times in UTC, a week by its Monday."""
    if value is None:
        return UNKNOWN
    if name in TIMES:
        return datetime.fromtimestamp(value, timezone.utc).strftime(_FORMATS[name])
    return str(value)


def show_amount(value: Optional[float], amount: str) -> str:
    """Return bytes as GiB or MiB, seconds as hours and minutes, "-" where nothing is known."""
    if value is None:
        return "-"
    return show_bytes(value) if amount.endswith("_bytes") else show_seconds(value)


def show_bytes(value: float) -> str:
    """Return bytes in the unit that people use for them."""
    for unit, size in (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20)):
        if value >= size:
            return f"{value / size:.1f} {unit}".replace(".0 ", " ")
    return f"{value / 1024:.0f} KiB"


def show_seconds(value: float) -> str:
    """Return ``1 h 05 min``, or seconds below a minute."""
    if value < 60:
        return f"{value:.0f} s"
    minutes = round(value / 60)
    if minutes < 60:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60:02d} min".replace(" 00 min", "")


def show_rate(rate: Optional[float]) -> str:
    """Return a percentage, "-" where it is not known."""
    if rate is None:
        return "-"
    return f"{rate:.1%}" if rate == 0 or rate >= 0.001 else "< 0.1%"


def short_tool(tool: Optional[str]) -> str:
    """Return a tool's id without the tool shed's address: ``hisat2/2.2.1``."""
    if tool is None:
        return UNKNOWN
    parts = tool.split("/")
    return "/".join(parts[-2:]) if "repos" in parts and len(parts) >= 5 else tool
