"""The report for other programs: JSON, CSV, Prometheus text, Influx line protocol."""

from __future__ import annotations

import csv
import io
import json
import re
from datetime import datetime, timezone
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from .build import Group, Report, without_cause
from .queries import TIMES
from .words import show_value

#: Changes where a key changes its name or meaning.
JSON_VERSION = 1


def render_json(report: Report) -> str:
    """Return the whole report; times in ISO 8601, unknown values null."""
    return json.dumps(as_object(report), indent=2) + "\n"


def as_object(report: Report) -> Dict[str, Any]:
    """Return the report as JSON values."""
    since, until = report.period.since, report.period.until
    return {
        "version": JSON_VERSION,
        "ledger": report.place,
        "since": None if since is None else _iso(since),
        "until": _iso(until),
        "by": list(report.by),
        "ends": report.ends,
        "failures": report.failures,
        "groups": [_group_object(report, group) for group in report.groups],
        "worst_nodes": [
            {"node": node.node, "failures": node.failures, "by_cause": dict(node.by_cause)}
            for node in report.nodes
        ],
        "limits": [dict(vars(limit)) for limit in report.limits],
    }


def _group_object(report: Report, group: Group) -> Dict[str, Any]:
    values = {
        name: _iso(value) if name in TIMES else value
        for name, value in zip(report.by, group.values)
    }
    rate = None if group.rate is None else round(group.rate, 6)
    return {**values, "failures": group.failures, "ends": group.ends, "rate": rate}


def _iso(moment: int) -> str:
    return datetime.fromtimestamp(moment, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def render_csv(report: Report) -> str:
    """Return the groups as CSV (RFC 4180), unknown values empty."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow([*report.by, "failures", "ends", "rate"])
    for group in report.groups:
        row = _group_object(report, group)
        writer.writerow("" if value is None else _no_formula(value) for value in row.values())
    return text.getvalue()


def _no_formula(value: Any) -> Any:
    # A spreadsheet runs a cell that begins so, and tool ids come from outside.
    return f"'{value}" if isinstance(value, str) and value[:1] in tuple("=+-@") else value


# ---- Prometheus --------------------------------------------------------------------------------

_METRICS = (
    ("pulsar_failures_in_period", "Ended jobs that have a failure reason, in the period."),
    ("pulsar_ends_in_period", "Ended jobs, with or without a failure reason, in the period."),
    ("pulsar_node_failures_in_period", "Failures of the infrastructure on a node, in the period."),
)


def render_prometheus(report: Report) -> str:
    """Return Prometheus' text format 0.0.4, for a textfile collector or a scrape."""
    samples = (
        [(_labels(report.by, group.values), group.failures) for group in report.groups],
        # Without the cause, so that their sum is that of all ends.
        [(_labels(without_cause(report.by), values), count) for values, count in report.ends_by]
        or [({}, report.ends)],
        [({"node": node.node}, node.failures) for node in report.nodes],
    )
    lines: List[str] = []
    for (name, help_text), found in zip(_METRICS, samples):
        lines += [f"# HELP {name} {help_text}", f"# TYPE {name} gauge"]
        lines += [f"{name}{_label_text(labels)} {value}" for labels, value in found]
    return "\n".join(lines) + "\n"


def _labels(by: Sequence[str], values: Sequence[Any]) -> Dict[str, str]:
    return {
        name: "" if value is None else show_value(name, value) for name, value in zip(by, values)
    }


def _label_text(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    inside = ",".join(f'{name}="{_label_value(value)}"' for name, value in labels.items())
    return "{" + inside + "}"


def _label_value(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


# ---- Influx ------------------------------------------------------------------------------------


def render_influx(report: Report, now: float) -> str:
    """Return Influx line protocol (Telegraf's ``exec``), at ``now`` or a group's own time."""
    return "".join(f"{line}\n" for line in _influx_lines(report, int(now)))


def _influx_lines(report: Report, now: int) -> Iterator[str]:
    for values, count in report.ends_by or [((), report.ends)]:
        tags, moment = _tags(without_cause(report.by), values, now)
        yield _influx_line("pulsar_ends", tags, {"ends": count}, None, moment)
    for group in report.groups:
        tags, moment = _tags(report.by, group.values, now)
        fields = {"failures": group.failures, "ends": group.ends}
        yield _influx_line("pulsar_failures", tags, fields, group.rate, moment)
    for node in report.nodes:
        yield _influx_line(
            "pulsar_node_failures", {"node": node.node}, {"failures": node.failures}, None, now
        )


def _tags(by: Sequence[str], values: Sequence[Any], now: int) -> Tuple[Dict[str, str], int]:
    """Return the tags of some values, and their time where one of them is one."""
    pairs = [(name, value) for name, value in zip(by, values) if value is not None]
    moments = [value for name, value in pairs if name in TIMES]
    tags = {name: value for name, value in pairs if name not in TIMES}
    return tags, moments[0] if moments else now


def _influx_line(
    measurement: str,
    tags: Mapping[str, str],
    fields: Mapping[str, Optional[int]],
    rate: Optional[float],
    moment: int,
) -> str:
    head = ",".join([measurement, *(f"{name}={_tag(value)}" for name, value in tags.items())])
    told = [f"{name}={value}i" for name, value in fields.items() if value is not None]
    if rate is not None:
        told.append(f"rate={rate:.6f}")
    return f"{head} {','.join(told)} {moment}000000000"


def _tag(value: str) -> str:
    # A backslash at the end would escape the comma behind it, and cannot itself be escaped.
    return re.sub(r"([,= ])", r"\\\1", value.rstrip("\\").replace("\n", " "))
