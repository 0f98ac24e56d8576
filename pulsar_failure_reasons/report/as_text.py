"""The report as tables for a terminal, by Rich."""

from __future__ import annotations

import io
from typing import List, Sequence

from rich.console import Console
from rich.table import Table

from .build import Report
from .words import show_amount, show_rate, show_value

#: Wide enough for a tool's id, where nobody's screen limits it (a pipe, a file).
WIDE = 240
SHOWN_GROUPS = 50


def render_text(report: Report, width: int = WIDE, *, color: bool = False) -> str:
    """Return the report for a screen of so many columns."""
    console = Console(
        file=io.StringIO(), width=width, force_terminal=color, no_color=not color,
        highlight=False, markup=False, emoji=False,  # a tool's id is text, whatever it looks like
    )
    console.print(_heading(report), style="bold")
    console.print(_groups(report))
    if len(report.groups) > SHOWN_GROUPS:
        console.print(f"... and {len(report.groups) - SHOWN_GROUPS} more rows: --format csv")
    if report.nodes:
        console.print(_nodes(report))
    if report.limits:
        console.print(_limits(report))
    file = console.file
    assert isinstance(file, io.StringIO)
    lines = (line.rstrip() for line in file.getvalue().splitlines())
    return "\n".join(lines) + "\n"


def _heading(report: Report) -> str:
    rate = report.failures / report.ends if report.ends else None
    return (
        f"{report.failures:,} of {report.ends:,} ended jobs failed with a reason "
        f"({show_rate(rate)}), {report.period}"
    )


def _groups(report: Report) -> Table:
    with_ends = "node" not in report.by
    table = _table(f"By {', '.join(report.by)}", report.by)
    for name in ("failures", "share", *(("ended", "rate") if with_ends else ())):
        table.add_column(name, justify="right", no_wrap=True)
    for group in report.groups[:SHOWN_GROUPS]:
        share = group.failures / report.failures if report.failures else None
        row = [show_value(name, value) for name, value in zip(report.by, group.values)]
        row += [f"{group.failures:,}", show_rate(share)]
        if with_ends:
            row += [f"{group.ends or 0:,}", show_rate(group.rate)]
        table.add_row(*row)
    return table


def _nodes(report: Report) -> Table:
    table = _table("Worst nodes: failures of the infrastructure", ("node",))
    table.add_column("failures", justify="right", no_wrap=True)
    table.add_column("causes", overflow="fold")
    for node in report.nodes:
        causes = ", ".join(f"{cause} {count:,}" for cause, count in node.by_cause)
        table.add_row(node.node, f"{node.failures:,}", causes)
    return table


def _limits(report: Report) -> Table:
    table = _table("Limits that are too low", ("tool", "limit"))
    headings = ("killed", "of ended", "asked 50%", "used 50%", "used 95%", "suggested")
    for name in headings:
        table.add_column(name, justify="right", no_wrap=True)
    for limit in report.limits:
        amounts: List[str] = [
            show_amount(value, limit.amount)
            for value in (
                limit.requested_p50, limit.used_p50, limit.used_p95, limit.suggested
            )
        ]
        killed_rate = show_rate(limit.kills / limit.ends)
        table.add_row(limit.tool, limit.cause, f"{limit.kills:,}", killed_rate, *amounts)
    return table


def _table(title: str, columns: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for name in columns:
        table.add_column(name, overflow="fold")
    return table
