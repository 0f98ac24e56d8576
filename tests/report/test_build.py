"""What a report counts, against a ledger that was counted by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any, List, Optional, Tuple

import pytest

from pulsar_failure_reasons.errors import ConfigurationError
from pulsar_failure_reasons.ledger.database import LedgerDatabase
from pulsar_failure_reasons.reason import Cause
from pulsar_failure_reasons.report.build import (
    Limit,
    Node,
    Report,
    build_report,
    parse_dimensions,
    percentile,
)
from pulsar_failure_reasons.report.period import Period, parse_period
from tests.ledger.samples import DAY, GIB, MONDAY, database, ended

from .small_ledger import NOW, make

#: 2026-03-02 00:00 UTC; 2026-02-23, the Monday before.
MARCH_2, FEBRUARY_23 = 1772409600, 1771804800


@pytest.fixture
def ledger(tmp_path: Path) -> LedgerDatabase:
    """The ledger of ``small_ledger``."""
    return make(tmp_path / "ledger.sqlite")


def report(ledger: LedgerDatabase, by: str = "cause", since: str = "all") -> Report:
    """Return a report as of Tuesday noon."""
    return build_report(ledger, parse_period(since, None, NOW), parse_dimensions(by))


def groups(ledger: LedgerDatabase, by: str, since: str = "all") -> List[Tuple[Any, ...]]:
    """Return the groups as tuples: the values, failures, ends."""
    return [
        (*group.values, group.failures, group.ends) for group in report(ledger, by, since).groups]


def test_totals(ledger: LedgerDatabase) -> None:
    """All ends, and those with a reason; a period leaves out what is older."""
    assert (report(ledger).failures, report(ledger).ends) == (9, 20)
    assert (report(ledger, since="3d").failures, report(ledger, since="3d").ends) == (8, 19)


@pytest.mark.parametrize(
    "by, expected",
    [
        ("cause", [
            ("memory", 4, 20), ("node_failure", 2, 20), ("cancelled", 1, 20), ("lost", 1, 20),
            ("walltime", 1, 20)]),
        ("fault", [("job", 5, 20), ("infrastructure", 3, 20), ("user", 1, 20)]),
        ("tool", [("hisat2", 4, 11), ("bwa", 4, 8), (None, 1, 1)]),
        ("manager", [("main", 7, 14), ("big", 2, 6)]),
        ("manager,cause", [
            ("main", "memory", 4, 14), ("main", "node_failure", 2, 14), ("main", "walltime", 1, 14),
            ("big", "cancelled", 1, 6), ("big", "lost", 1, 6)]),
        ("day", [(FEBRUARY_23, 1, 1), (MARCH_2, 8, 19)]),
        ("time", [(FEBRUARY_23, 1, 1), (MARCH_2, 8, 19)]),
        ("week", [(FEBRUARY_23, 1, 1), (MARCH_2, 8, 19)]),  # both are Mondays
        ("month", [(1769904000, 1, 1), (1772323200, 8, 19)]),  # the firsts of February, March
        ("month,fault", [
            (1769904000, "user", 1, 1), (1772323200, "job", 5, 19),
            (1772323200, "infrastructure", 3, 19)]),
        ("node", [("n1", 4, None), ("n3", 3, None), ("n2", 2, None)]),
        ("node,cause", [
            ("n1", "memory", 3, None), ("n3", "node_failure", 2, None),
            ("n1", "cancelled", 1, None), ("n2", "memory", 1, None), ("n2", "walltime", 1, None),
            ("n3", "lost", 1, None)]),
        ("node,tool", [
            ("n1", "hisat2", 4, None), ("n3", "bwa", 3, None), ("n2", None, 1, None),
            ("n2", "bwa", 1, None)]),
        ("node,day", [
            ("n1", FEBRUARY_23, 1, None), ("n1", MARCH_2, 3, None), ("n3", MARCH_2, 3, None),
            ("n2", MARCH_2, 2, None)]),
        ("fault,manager,node", [
            ("job", "main", "n1", 3, None), ("infrastructure", "main", "n3", 2, None),
            ("job", "main", "n2", 2, None), ("infrastructure", "big", "n3", 1, None),
            ("user", "big", "n1", 1, None)]),
    ],
)
def test_groups(ledger: LedgerDatabase, by: str, expected: List[Any]) -> None:
    """Failures of each group, beside all ends of its tool, manager and time; by node: none."""
    assert groups(ledger, by) == expected


def test_by_hour(ledger: LedgerDatabase) -> None:
    """For as long as hours are counted; else the days are all that is known."""
    assert groups(ledger, "hour", since="20d") == [
        (FEBRUARY_23 + 36000, 1, 1), (MARCH_2 + 36000, 8, 19)]
    with pytest.raises(ConfigurationError, match="^--by hour: hours are kept for some weeks only"):
        groups(ledger, "hour", since="60d")


def test_days_and_hours_agree(ledger: LedgerDatabase) -> None:
    """The same ends, counted by the one and by the other."""
    by_day, by_hour = (groups(ledger, "day,manager,cause", since) for since in ("60d", "20d"))
    assert by_day == by_hour != []


def test_sunday_belongs_to_the_week_before(tmp_path: Path) -> None:
    """Weeks begin on Mondays."""
    database(tmp_path / "x").write([ended("1", at=MARCH_2 - 1), ended("2", at=MARCH_2)])
    assert groups(database(tmp_path / "x", read_only=True), "week") == [
        (FEBRUARY_23, 0, 1), (MARCH_2, 0, 1)]


def test_tool_that_never_fails(tmp_path: Path) -> None:
    """It has a row by tool, as its rate of 0 is news; by cause there is nothing to show of it."""
    database(tmp_path / "x").write([ended("1", tool="cat")])
    ledger = database(tmp_path / "x", read_only=True)
    assert groups(ledger, "tool") == [("cat", 0, 1)]
    assert groups(ledger, "tool,cause") == []


def test_worst_nodes(ledger: LedgerDatabase) -> None:
    """Only what is the infrastructure's fault, by cause."""
    assert report(ledger).nodes == (Node("n3", 3, (("node_failure", 2), ("lost", 1))),)


def test_limits(ledger: LedgerDatabase) -> None:
    """Of hisat2's 3, 4 and 5 GiB half used 4 at most and 95 % 5; 1.5 times 5 is 8 in whole GiB."""
    assert report(ledger).limits == (
        Limit("hisat2", "memory", "memory_bytes", kills=3, ends=11, requested_p50=4 * GIB,
              used_p50=4 * GIB, used_p95=5 * GIB, suggested=8 * GIB),
        # 1.5 times 3601 s, in quarters of an hour.
        Limit("bwa", "walltime", "walltime_s", kills=1, ends=8, requested_p50=3600,
              used_p50=3601, used_p95=3601, suggested=6300),
    )


def test_limit_of_jobs_of_which_nothing_is_known(tmp_path: Path) -> None:
    """Unknown stays unknown."""
    database(tmp_path / "x").write([ended("1", Cause.MEMORY)])
    limit = report(database(tmp_path / "x", read_only=True)).limits[0]
    assert (limit.requested_p50, limit.used_p50, limit.used_p95, limit.suggested) == (
        None, None, None, None)


def test_limit_looks_at_the_newest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was asked for before an admin raised it counts no more."""
    monkeypatch.setattr("pulsar_failure_reasons.report.build.NEWEST_JOBS", 2)
    database(tmp_path / "x").write([
        ended(str(day), Cause.MEMORY, at=MONDAY + day * DAY, requested={"memory_bytes": size * GIB})
        for day, size in ((1, 64), (2, 2), (3, 2))
    ])
    assert build_report(
        database(tmp_path / "x", read_only=True), Period(None, MONDAY + 9 * DAY), ("cause",)
    ).limits[0].suggested == 3 * GIB


def test_top(ledger: LedgerDatabase) -> None:
    """The lists of the worst are cut, the groups are not."""
    cut = build_report(ledger, Period(None, NOW), ("cause",), top=1)
    assert (len(cut.limits), len(cut.nodes), len(cut.groups)) == (1, 1, 5)


@pytest.mark.parametrize(
    "values, percent, expected",
    [
        ([15, 20, 35, 40, 50], 30, 20),  # the examples of Wikipedia, "Percentile", nearest rank
        ([15, 20, 35, 40, 50], 40, 20),
        ([15, 20, 35, 40, 50], 50, 35),
        ([15, 20, 35, 40, 50], 100, 50),
        ([3], 95, 3),
        ([], 50, None),
    ],
)
def test_percentile(values: List[float], percent: int, expected: Optional[float]) -> None:
    """Nearest rank: always one of the values."""
    assert percentile(values, percent) == expected


@pytest.mark.parametrize(
    "by, told",
    [
        ("colour", "--by 'colour': 'colour' cannot be grouped by; choose of: cause, tool, node, "
                   "manager, fault, hour, day, week, month"),
        ("cause,", None),
        ("", "'nothing' cannot be grouped by"),
        ("cause,cause", "each at most once, and one time at most"),
        ("day,week", "each at most once, and one time at most"),
    ],
)
def test_dimensions(by: str, told: Optional[str]) -> None:
    """An unknown word is named beside those that are known."""
    if told is None:
        assert parse_dimensions(by) == ("cause",)
        return
    with pytest.raises(ConfigurationError) as caught:
        parse_dimensions(by)
    assert told in str(caught.value)
