"""The period of a report: ``--since 7d``, ``--since 2026-01-31``, ``--since all``.

Counts are kept by the hour, so a period begins and ends with a full hour.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Optional

from ..errors import ConfigurationError
from ..ledger.entry import HOUR_S
from ..ledger.spans import EXAMPLES, parse_span


@dataclass(frozen=True)
class Period:
    """From ``since`` up to ``until``, in seconds since 1970; ``since`` None: from the beginning."""

    since: Optional[int]
    until: int

    def __str__(self) -> str:
        """Return it as a person reads it."""
        if self.since is None:
            return f"all until {show_time(self.until)}"
        return f"{show_time(self.since)} to {show_time(self.until)}"


def parse_period(since: str, until: Optional[str], now: float) -> Period:
    """Return the period that an admin asked for; ``until`` None is now.

    Raises:
        ConfigurationError: one of them is neither a span nor a date, or there is nothing between.
    """
    end = now if until is None else _moment("--until", until, now)
    hours_end = -int(-end // HOUR_S) * HOUR_S
    if since.strip().lower() == "all":
        return Period(None, hours_end)
    begin = _moment("--since", since, now)
    if begin >= end:
        raise ConfigurationError(f"--since {since} is not before the end of the report")
    return Period(int(begin // HOUR_S) * HOUR_S, hours_end)


def show_time(moment: int) -> str:
    """Return a time in UTC, to the minute."""
    return datetime.fromtimestamp(moment, timezone.utc).strftime("%Y-%m-%d %H:%M UTC")


def _moment(option: str, text: str, now: float) -> float:
    span = parse_span(text)
    if span is not None:
        return now - span
    try:
        # Python < 3.11 reads no Z.
        moment = datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
    except ValueError:
        raise ConfigurationError(
            f"{option} {text!r:.80} is neither a span ({EXAMPLES}) nor a date "
            "(2026-01-31, 2026-01-31T12:00, in UTC)"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc)
    return moment.timestamp()
