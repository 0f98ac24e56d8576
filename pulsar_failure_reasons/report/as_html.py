"""The report as one page that opens offline, with plots by Plotly, in light and dark."""

from __future__ import annotations

import json
from html import escape
from typing import List, Optional, Sequence, Tuple

import plotly.offline

from ..ledger.database import LedgerDatabase
from ..ledger.entry import DAY_S, HOUR_S
from .build import Group, Report, build_report
from .page import SCRIPT, STYLE, html_table, number, section
from .period import Period
from .plots import Plot, limit_plot, node_plot, time_plot, tool_plot
from .queries import TIMES
from .words import short_tool, show_amount, show_rate, show_value

#: Bars of the plot over time: hours for a few days, weeks for a year and more.
_FEW_DAYS_S = 3 * DAY_S
_MANY_DAYS_S = 200 * DAY_S
TABLE_ROWS = 50


def render_html(report: Report, database: LedgerDatabase) -> str:
    """Return the page; what the plots need beside the report is asked for here.

    Raises:
        LedgerError: the ledger cannot be read.
    """
    time = _time_step(report.period)
    over_time = build_report(database, report.period, (time, "cause"), 1).groups
    by_tool = build_report(database, report.period, ("tool", "cause"), 1).groups
    return render_page(report, over_time, by_tool, time)


def render_page(
    report: Report, over_time: Sequence[Group], by_tool: Sequence[Group], time: str
) -> str:
    """Return the page of a report; ``over_time`` is by (time, cause), ``by_tool`` by both."""
    plots = list(_plots(report, over_time, by_tool, time))
    figures = {plot.name: json.loads(plot.figure.to_json()) for plot in plots}
    parts = [
        section(plot.title, plot.note, f'<div id="{plot.name}" class="plot"></div>')
        for plot in plots
    ]
    return "\n".join([
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        "<title>Why Pulsar jobs failed</title>",
        f"<style>{STYLE}</style></head><body>",
        _head(report),
        *parts,
        *_tables(report),
        f"<footer>pulsar-failure-reasons report, from {escape(report.place)}</footer>",
        # In the page itself, so that it opens offline.
        f"<script>{plotly.offline.get_plotlyjs()}</script>",
        f"<script>const PLOTS = {_in_script(figures)};{SCRIPT}</script>",
        "</body></html>",
        "",
    ])


def _time_step(period: Period) -> str:
    if period.since is None:
        return "week"
    length_s = period.until - period.since
    if length_s <= _FEW_DAYS_S and period.span_s == HOUR_S:
        return "hour"
    return "day" if length_s <= _MANY_DAYS_S else "week"


def _in_script(value: object) -> str:
    # "</script>" in a tool's id would end the script.
    return json.dumps(value).replace("<", "\\u003c")


def _head(report: Report) -> str:
    rate = report.failures / report.ends if report.ends else None
    worst = max(report.nodes, key=lambda node: node.failures, default=None)
    boxes = [
        number(f"{report.ends:,}", "jobs ended"),
        number(f"{report.failures:,}", "failed with a reason"),
        number(show_rate(rate), "of ended jobs"),
    ]
    if worst is not None:
        boxes.append(number(worst.node, f"worst node: {worst.failures:,} failures"))
    return (
        f"<h1>Why Pulsar jobs failed</h1><p class=\"note\">{escape(str(report.period))}</p>"
        f'<div class="numbers">{"".join(boxes)}</div>'
    )


def _plots(
    report: Report, over_time: Sequence[Group], by_tool: Sequence[Group], time: str
) -> "List[Plot]":
    plots = []
    if over_time:
        plots.append(Plot("over-time", f"Failures by {time}", "By cause, in UTC.",
                          time_plot(over_time, TIMES[time][0])))
    if any(group.failures for group in by_tool):
        plots.append(Plot("by-tool", "Tools that fail most", "By cause.", tool_plot(by_tool)))
    if report.nodes:
        plots.append(Plot("by-node", "Worst nodes", "Failures of the infrastructure: the same job "
                          "may run well elsewhere.", node_plot(report.nodes)))
    for amount, title in (("memory_bytes", "Memory limits that are too low"),
                          ("walltime_s", "Time limits that are too low")):
        if any(limit.amount == amount for limit in report.limits):
            plots.append(Plot(amount, title, "What the killed jobs of a tool asked for and used. "
                              "They were stopped on their way, so the suggestion is a beginning.",
                              limit_plot(report.limits, amount)))
    return plots


def _tables(report: Report) -> List[str]:
    headings, rows = _group_rows(report)
    parts = [section(f"By {', '.join(report.by)}", _rows_note(report),
                     html_table(headings, rows, len(report.by)))]
    if report.limits:
        parts.append(section(
            "Limits that are too low", "Of a tool's newest killed jobs.",
            html_table(
                ["tool", "limit", "killed", "of ended", "asked 50 %", "used 50 %", "used 95 %",
                 "suggested"], _limit_rows(report), 2),
        ))
    return parts


def _rows_note(report: Report) -> str:
    more = len(report.groups) - TABLE_ROWS
    return f"And {more:,} more rows: --format csv." if more > 0 else ""


def _group_rows(report: Report) -> Tuple[List[str], List[List[str]]]:
    with_ends = "node" not in report.by
    headings = [*report.by, "failures", *(("ended", "rate") if with_ends else ())]
    rows = []
    for group in report.groups[:TABLE_ROWS]:
        row = [show_value(name, value) for name, value in zip(report.by, group.values)]
        row.append(f"{group.failures:,}")
        if with_ends:
            row += [f"{group.ends or 0:,}", show_rate(group.rate)]
        rows.append(row)
    return headings, rows


def _limit_rows(report: Report) -> List[List[str]]:
    def amount(value: Optional[float], name: str) -> str:
        return show_amount(value, name)

    return [
        [
            short_tool(limit.tool), limit.cause, f"{limit.kills:,}",
            show_rate(limit.kills / limit.ends), amount(limit.requested_p50, limit.amount),
            amount(limit.used_p50, limit.amount), amount(limit.used_p95, limit.amount),
            amount(limit.suggested, limit.amount),
        ]
        for limit in report.limits
    ]
