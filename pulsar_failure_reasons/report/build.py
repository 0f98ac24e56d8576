"""Put a report together: groups, worst nodes, limits that are too low."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any, List, Mapping, Optional, Sequence, Tuple

from ..errors import ConfigurationError
from ..ledger.database import LedgerDatabase
from ..ledger.entry import HOUR_S, NO_CAUSE
from ..reason import CAUSE_TABLE, Cause, Fault
from .period import Period
from .queries import (
    DIMENSIONS,
    TIMES,
    CountRow,
    Key,
    added_up,
    count_ends,
    count_failures,
    newest_at_limit,
)

# Behind .queries, which says in one line what to install where SQLAlchemy is missing.
import sqlalchemy as sa

#: What a job may be killed for that a higher limit cures, and the amount that the limit is of.
LIMIT_AMOUNTS = {
    Cause.MEMORY.value: "memory_bytes",
    Cause.WALLTIME.value: "walltime_s",
    Cause.CPU_TIME.value: "cpu_time_s",
    Cause.DISK.value: "disk_bytes",
}
#: So many killed jobs of a tool are looked at, the newest: older limits may be changed by now.
NEWEST_JOBS = 500
#: A killed job was stopped on its way: what it would have used is not known, only that it is more.
HEADROOM = 1.5
#: Rows of the parts that are lists of the worst.
TOP = 20

Values = Tuple[Any, ...]


@dataclass(frozen=True)
class Group:
    """Failures of one value of each dimension.

    ``values`` are texts, or seconds since 1970; None where it is not known. ``ends`` is how many
    jobs ended, well or not; None where the ledger does not know it (by node).
    """

    values: Values
    failures: int
    ends: Optional[int]

    @property
    def rate(self) -> Optional[float]:
        """Failures per ended job, None where the ends are not known."""
        return self.failures / self.ends if self.ends else None


@dataclass(frozen=True)
class Node:
    """Infrastructure failures of one node, by cause, the most frequent first."""

    node: str
    failures: int
    by_cause: Tuple[Tuple[str, int], ...]


@dataclass(frozen=True)
class Limit:
    """A tool whose jobs die at a limit.

    ``requested_p50``, ``used_p50`` and ``used_p95`` are of its newest killed jobs, in the unit of
    ``amount``; None where none of them says. ``suggested`` is None where nothing is known.
    """

    tool: str
    cause: str
    amount: str
    kills: int
    ends: int
    requested_p50: Optional[float]
    used_p50: Optional[float]
    used_p95: Optional[float]
    suggested: Optional[float]


@dataclass(frozen=True)
class Report:
    """What the ledger tells of a period; ``place`` is the ledger's, for people.

    ``ends_by`` is all ends by those dimensions that also an end without a cause has (not
    ``cause`` and ``fault``); empty by node.
    """

    place: str
    period: Period
    by: Tuple[str, ...]
    ends: int
    failures: int
    groups: Tuple[Group, ...]
    ends_by: Tuple[Tuple[Values, int], ...]
    nodes: Tuple[Node, ...]
    limits: Tuple[Limit, ...]


def parse_dimensions(text: str) -> Tuple[str, ...]:
    """Return the dimensions of ``--by cause,tool``.

    Raises:
        ConfigurationError: one is not known, or given twice, or there are two times.
    """
    by = tuple("day" if word == "time" else word for word in _words(text))
    unknown = [word for word in by if word not in DIMENSIONS]
    if unknown or not by:
        raise ConfigurationError(
            f"--by {text!r:.80}: {unknown[0] if unknown else 'nothing'!r} cannot be grouped by; "
            f"choose of: {', '.join(DIMENSIONS)}"
        )
    if len(set(by)) < len(by) or sum(word in TIMES for word in by) > 1:
        raise ConfigurationError(f"--by {text!r:.80}: each at most once, and one time at most")
    return by


def _words(text: str) -> List[str]:
    return [word.strip().lower() for word in text.split(",") if word.strip()]


def build_report(
    database: LedgerDatabase, period: Period, by: Sequence[str], top: int = TOP
) -> Report:
    """Return the report of a period; ``top`` rows of worst nodes and of limits.

    Raises:
        LedgerError: the ledger cannot be read.
        ConfigurationError: hours are asked of a time of which only days are known.
    """
    if "hour" in by and period.span_s != HOUR_S:
        raise ConfigurationError(
            "--by hour: hours are kept for some weeks only; take --since 30d, or --by day"
        )
    with database.transaction() as connection:
        by_tool = count_ends(connection, ("tool",), period)
        groups, ends_by = _groups(connection, period, tuple(by), by_tool)
        return Report(
            place=database.shown,
            period=period,
            by=tuple(by),
            ends=sum(row.jobs for row in by_tool),
            failures=sum(row.jobs for row in by_tool if row.key["cause"] != NO_CAUSE),
            groups=groups,
            ends_by=ends_by,
            nodes=_worst_nodes(connection, period, top),
            limits=_limits(connection, period, by_tool, top),
        )


# ---- groups ------------------------------------------------------------------------------------


def _groups(
    connection: sa.Connection, period: Period, by: Tuple[str, ...], by_tool: Sequence[CountRow]
) -> Tuple[Tuple[Group, ...], Tuple[Tuple[Values, int], ...]]:
    """Return the groups, and all ends by what also an end without a cause has."""
    all_ends: Mapping[Values, int] = {}
    if "node" in by:
        groups = _groups_by_node(connection, period, by)
    else:
        known = set(by) <= {"cause", "fault", "tool"}
        ended = by_tool if known else count_ends(connection, by, period)
        # A cause is no property of an end that had none: its rate is of all ends beside it.
        all_ends = added_up(ended, lambda key: _values(key, without_cause(by)))
        groups = _groups_of_ends(ended, by, all_ends)
    ordered = sorted(groups, key=lambda group: _order(group, by))
    return tuple(ordered), tuple(sorted(all_ends.items(), key=lambda item: str(item[0])))


def without_cause(by: Sequence[str]) -> Tuple[str, ...]:
    """Return those dimensions that also an end without a cause has."""
    return tuple(name for name in by if name not in ("cause", "fault"))


def _groups_by_node(
    connection: sa.Connection, period: Period, by: Tuple[str, ...]
) -> List[Group]:
    rows = count_failures(connection, by, period)
    counts = added_up(rows, lambda key: _values(key, by))
    return [Group(values, count, None) for values, count in counts.items()]


def _groups_of_ends(
    ended: Sequence[CountRow], by: Tuple[str, ...], all_ends: Mapping[Values, int]
) -> List[Group]:
    beside = without_cause(by)
    counts = added_up(
        [row for row in ended if row.key["cause"] != NO_CAUSE], lambda key: _values(key, by)
    )
    groups = [
        Group(values, count, all_ends[_kept(values, by, beside)])
        for values, count in counts.items()
    ]
    if beside == by:
        # A tool that never fails is worth a row: its rate is 0.
        groups += [Group(v, 0, count) for v, count in all_ends.items() if v not in counts]
    return groups


def _values(key: Key, by: Sequence[str]) -> Values:
    return tuple(_value(key, name) for name in by)


def _value(key: Key, name: str) -> Any:
    if name == "fault" and "fault" not in key:
        return fault_of(key["cause"])
    if name == "month":
        day = datetime.fromtimestamp(key["month"], timezone.utc)
        return int(day.replace(day=1).timestamp())
    # The counts hold "" where the tool is not known: a key of a table cannot be NULL.
    return key[name] if name in TIMES else key[name] or None


def fault_of(cause: str) -> str:
    """Return whose fault a cause is; a cause that a later version wrote is nobody's."""
    try:
        return CAUSE_TABLE[Cause(cause)].fault.value
    except ValueError:
        return Fault.UNKNOWN.value


def _kept(values: Values, by: Sequence[str], kept: Sequence[str]) -> Values:
    return tuple(value for value, name in zip(values, by) if name in kept)


def _order(group: Group, by: Sequence[str]) -> Tuple[Any, ...]:
    """In time, and the most frequent first."""
    times = tuple(value for value, name in zip(group.values, by) if name in TIMES)
    texts = tuple(str(value or "") for value in group.values)
    return (*times, -group.failures, -(group.ends or 0), *texts)


# ---- nodes and limits --------------------------------------------------------------------------


def _worst_nodes(connection: sa.Connection, period: Period, top: int) -> Tuple[Node, ...]:
    rows = count_failures(connection, (), period, fault=Fault.INFRASTRUCTURE.value)
    known = [row for row in rows if row.key["node"]]
    by_cause = added_up(known, lambda key: (key["node"], key["cause"]))
    nodes = [
        Node(node, count, tuple(sorted(
            ((cause, n) for (name, cause), n in by_cause.items() if name == node),
            key=lambda item: (-item[1], item[0]),
        )))
        for node, count in _first(
            {key[0]: n for key, n in added_up(known, lambda key: (key["node"],)).items()}, top
        )
    ]
    return tuple(nodes)


def _first(counts: Mapping[Any, int], top: int) -> List[Tuple[Any, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], str(item[0])))[:top]


def _limits(
    connection: sa.Connection, period: Period, by_tool: Sequence[CountRow], top: int
) -> Tuple[Limit, ...]:
    rows = [row for row in by_tool if row.key["tool"]]
    ended = added_up(rows, lambda key: (key["tool"],))
    kills = added_up(
        [row for row in rows if row.key["cause"] in LIMIT_AMOUNTS],
        lambda key: (key["tool"], key["cause"]),
    )
    return tuple(
        _with_amounts(
            Limit(tool, cause, LIMIT_AMOUNTS[cause], count, ended[(tool,)], *[None] * 4),
            connection, period,
        )
        for (tool, cause), count in _first(kills, top)
    )


def _with_amounts(limit: Limit, connection: sa.Connection, period: Period) -> Limit:
    jobs = newest_at_limit(
        connection, limit.tool, limit.cause, limit.amount, period, NEWEST_JOBS
    )
    requested = [job.requested for job in jobs if job.requested is not None]
    used = [job.used for job in jobs if job.used is not None]
    # At least the limit was not enough, also where no sample of the use came near it.
    needed = [max(job.requested or 0, job.used or 0) for job in jobs]
    most = percentile([need for need in needed if need], 95)
    return replace(
        limit,
        requested_p50=percentile(requested, 50),
        used_p50=percentile(used, 50),
        used_p95=percentile(used, 95),
        suggested=None if most is None else rounded_up(most * HEADROOM, limit.amount),
    )


def percentile(values: Sequence[float], percent: int) -> Optional[float]:
    """Return the smallest value that ``percent`` of them do not exceed, None where none is there.

    The nearest-rank method: always one of the values.
    """
    if not values:
        return None
    rank = max(1, math.ceil(len(values) * percent / 100))
    return sorted(values)[rank - 1]


def rounded_up(amount: float, name: str) -> float:
    """Return an amount as an admin would ask for it: whole GiB, or quarters of an hour."""
    unit = 2**30 if name.endswith("_bytes") else 900
    return float(math.ceil(amount / unit) * unit)
