"""Questions to the ledger, each answered from the counts or from one index.

Ten million failures are answered in seconds: ``benchmarks/ledger.py`` shows the growth.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..ledger.entry import DAY_S, HOUR_S
from ..ledger.schema import ends, failures
from .period import Period

# Behind .schema, which says in one line what to install where it is missing.
import sqlalchemy as sa

#: Lengths of the times that a report can be grouped by. The weeks begin on a Monday: 1970 began
#: on a Thursday. Months are made of days by whoever asked.
TIMES = {
    "hour": (HOUR_S, 0), "day": (DAY_S, 0), "week": (7 * DAY_S, 4 * DAY_S), "month": (DAY_S, 0),
}
COLUMNS = ("cause", "tool", "node", "manager")
DIMENSIONS = (*COLUMNS, "fault", *TIMES)

#: Values of one row, by dimension: text, or seconds since 1970; None where it is not known.
Key = Mapping[str, Any]


class CountRow(NamedTuple):
    """So many jobs with these values."""

    key: Key
    jobs: int


class LimitRow(NamedTuple):
    """What one job that was killed at a limit had asked for and used, None where not known."""

    requested: Optional[float]
    used: Optional[float]


def count_ends(connection: sa.Connection, by: Sequence[str], period: Period) -> List[CountRow]:
    """Return all ends by cause ("" for those without a reason) and the dimensions, but no node."""
    time = _time_of(by)
    columns = {"cause": ends.c.cause, "tool": ends.c.tool_id, "manager": ends.c.manager}
    chosen = {name: columns[name] for name in columns if name == "cause" or name in by}
    if time:
        chosen[time] = _bucket(ends.c.begins_at, time)
    where = [ends.c.span_s == period.span_s, *_within(ends.c.begins_at, period)]
    return _grouped(connection, chosen, sa.func.sum(ends.c.ends), where)


def count_failures(
    connection: sa.Connection,
    by: Sequence[str],
    period: Period,
    fault: Optional[str] = None,
) -> List[CountRow]:
    """Return the failures by fault, node, cause and the dimensions; with one fault: only those."""
    time = _time_of(by)
    # In the order of an index, so that the database groups as it reads.
    chosen = {"fault": failures.c.fault, "node": failures.c.node, "cause": failures.c.cause}
    if "manager" in by:
        chosen["manager"] = failures.c.manager
    if "tool" in by:
        chosen["tool"] = failures.c.tool_id
    if time:
        chosen[time] = _bucket(failures.c.recorded_at, time)
    where = _within(failures.c.recorded_at, period)
    if fault is not None:
        where.append(failures.c.fault == fault)
    return _grouped(connection, chosen, sa.func.count(), where)


def newest_at_limit(
    connection: sa.Connection, tool: str, cause: str, amount: str, period: Period, newest: int
) -> List[LimitRow]:
    """Return what the newest jobs of a tool that died of ``cause`` asked for and used."""
    columns = [failures.c[f"{kind}_{amount}"] for kind in ("requested", "used")]
    query = (
        sa.select(*columns)
        .where(
            failures.c.cause == cause,
            failures.c.tool_id == tool,
            *_within(failures.c.recorded_at, period),
        )
        .order_by(failures.c.recorded_at.desc())
        .limit(newest)
    )
    return [LimitRow(*row) for row in connection.execute(query)]


def _time_of(by: Sequence[str]) -> Optional[str]:
    return next((name for name in by if name in TIMES), None)


def _bucket(column: Any, time: str) -> Any:
    length_s, offset_s = TIMES[time]
    return column - (column - offset_s) % length_s


def _within(column: Any, period: Period) -> List[Any]:
    where = [column < period.until]
    return where if period.since is None else [column >= period.since, *where]


def _grouped(
    connection: sa.Connection, chosen: Mapping[str, Any], count: Any, where: Sequence[Any]
) -> List[CountRow]:
    labelled = [column.label(f"by_{name}") for name, column in chosen.items()]
    query = sa.select(*labelled, count).where(*where).group_by(*labelled)
    return [
        CountRow(dict(zip(chosen, values)), int(values[-1]))
        for values in map(tuple, connection.execute(query))
    ]


def added_up(
    rows: Sequence[CountRow], key_of: Callable[[Key], Tuple[Any, ...]]
) -> Dict[Tuple[Any, ...], int]:
    """Return the counts of the rows, added up by what ``key_of`` makes of their keys."""
    sums: Dict[Tuple[Any, ...], int] = {}
    for row in rows:
        key = key_of(row.key)
        sums[key] = sums.get(key, 0) + row.jobs
    return sums
