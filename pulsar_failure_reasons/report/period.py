"""The period of a report: ``--since 7d``, ``--since 2026-01-31``, ``--since all``.

Ends are counted by the hour for some weeks and by the day for ever, so a period begins and ends
with a full hour, and one that began before those weeks with a full day (UTC).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Optional

from ..errors import ConfigurationError
from ..ledger.entry import DAY_S, HOUR_S, HOURS_KEPT_S
from ..ledger.spans import EXAMPLES, parse_span

#: The ledger is pruned by the hour, so the last hours that it keeps may be gone.
HOURS_ASKED_S = HOURS_KEPT_S - DAY_S


@dataclass(frozen=True)
class Period:
    """From ``since`` up to ``until``, in seconds since 1970; ``since`` None: from the beginning.

    ``span_s`` tells which of the counts are asked: those by the hour or those by the day.
    """

    since: Optional[int]
    until: int
    span_s: int = DAY_S

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
    if since.strip().lower() == "all":
        return Period(None, _up(end, DAY_S))
    begin = _moment("--since", since, now)
    if begin >= end:
        raise ConfigurationError(f"--since {since} is not before the end of the report")
    span_s = HOUR_S if begin >= now - HOURS_ASKED_S else DAY_S
    return Period(int(begin // span_s) * span_s, _up(end, span_s), span_s)


def _up(moment: float, span_s: int) -> int:
    return -int(-moment // span_s) * span_s


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
