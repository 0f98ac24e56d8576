"""``--since`` and ``--until``."""

from __future__ import annotations

import time
from typing import Optional

import pytest

from pulsar_failure_reasons.errors import ConfigurationError
from pulsar_failure_reasons.report.period import Period, parse_period
from tests.ledger.samples import MONDAY

# MONDAY is 2026-03-02 10:20:00 UTC; its hour begins at 1772445600, its day at 1772409600.
HOUR_S, DAY_S = 3600, 86400


@pytest.mark.parametrize(
    "since, until, period",
    [
        ("1h", None, Period(1772442000, 1772449200, HOUR_S)),
        ("7d", None, Period(1771840800, 1772449200, HOUR_S)),
        ("all", None, Period(None, 1772496000, DAY_S)),
        ("2026-03-01", None, Period(1772323200, 1772449200, HOUR_S)),
        ("2026-03-01T12:00", None, Period(1772366400, 1772449200, HOUR_S)),
        ("2026-03-01T13:00:00+01:00", None, Period(1772366400, 1772449200, HOUR_S)),
        ("2026-03-01T12:00:00Z", "2026-03-01T13:00Z", Period(1772366400, 1772370000, HOUR_S)),
        ("60d", None, Period(1767225600, 1772496000, DAY_S)),
        ("2026-01-01", "2026-01-02", Period(1767225600, 1767312000, DAY_S)),
        ("33d", None, Period(1769594400, 1772449200, HOUR_S)),
        ("7d", "1d", Period(1771840800, 1772362800, HOUR_S)),
    ],
)
def test_period(since: str, until: Optional[str], period: Period) -> None:
    """Spans and dates in UTC, widened to full hours, or to full days where hours are gone."""
    assert parse_period(since, until, MONDAY) == period


def test_dates_are_in_utc_wherever_the_server_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """As all times of the ledger are."""
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        assert parse_period("2026-03-01", None, MONDAY).since == 1772323200
    finally:
        monkeypatch.delenv("TZ")
        time.tzset()


@pytest.mark.parametrize("text", ["yesterday", "7", "", "2026-13-01", "-7d"])
def test_neither_span_nor_date(text: str) -> None:
    """The error says what can be written."""
    with pytest.raises(ConfigurationError) as caught:
        parse_period(text, None, MONDAY)
    assert str(caught.value) == (
        f"--since {text!r} is neither a span (12h, 7d, 2w, 1y) nor a date (2026-01-31, "
        "2026-01-31T12:00, in UTC)"
    )


def test_nothing_between() -> None:
    """A period that ends before it begins."""
    with pytest.raises(ConfigurationError, match="^--since 1d is not before the end"):
        parse_period("1d", "2d", MONDAY)
