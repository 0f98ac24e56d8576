"""The plots of the report page, as Plotly figures without colours of text and paper.

Those follow the reader's light or dark scheme, so the page's own script sets them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Dict, List, Mapping, Sequence, Tuple

import plotly.graph_objects as go

from .build import Group, Limit, Node
from .words import UNKNOWN, short_tool, show_amount

#: Told apart on white and on black, and by the colour-blind (after Okabe and Ito); a cause has the
#: same colour in all plots. Limits are warm, the infrastructure is blue, the rest is grey.
COLORS = {
    "memory": "#d9572b",
    "walltime": "#e69f00",
    "cpu_time": "#b8860b",
    "disk": "#a0527a",
    "cancelled": "#8a8f98",
    "node_failure": "#2f7fbf",
    "preempted": "#56b4e9",
    "lost": "#1f9e89",
    "stage_error": "#6a6fd0",
    "held": "#b59fd6",
    "launch_error": "#cc79a7",
    "tool_error": "#6b7a3a",
    "unknown": "#a89878",
}
OTHER_COLOR = "#7d858f"
BARS_MAX = 15
_BAR_PX = 26


@dataclass(frozen=True)
class Plot:
    """A figure with its name in the page, its heading and the sentence below it."""

    name: str
    title: str
    note: str
    figure: go.Figure


def time_plot(groups: Sequence[Group], bar_s: int) -> go.Figure:
    """Return bars of failures by cause over time; ``groups`` are by (time, cause)."""
    counts: Dict[Tuple[str, int], int] = {
        (str(group.values[1]), group.values[0]): group.failures for group in groups
    }
    times = sorted({moment for _, moment in counts})
    figure = _figure(height=340, barmode="stack")
    for cause in _most_frequent_first(counts):
        figure.add_bar(
            name=cause, marker=_marker(cause), width=bar_s * 900,
            x=[_iso(moment + bar_s // 2) for moment in times],
            y=[counts.get((cause, moment), 0) for moment in times],
            hovertemplate="%{y:,} " + cause + "<extra></extra>",
        )
    figure.update_layout(hovermode="x unified", legend=_LEGEND_ABOVE)
    figure.update_xaxes(type="date", hoverformat="%Y-%m-%d %H:%M")
    figure.update_yaxes(title_text="failed jobs", rangemode="tozero")
    return figure


def tool_plot(groups: Sequence[Group]) -> go.Figure:
    """Return bars of the tools that fail most, by cause; ``groups`` are by (tool, cause)."""
    counts = {(str(g.values[1]), g.values[0]): g.failures for g in groups if g.failures}
    return _bars(counts, lambda tool: short_tool(tool), lambda tool: str(tool or UNKNOWN))


def node_plot(nodes: Sequence[Node]) -> go.Figure:
    """Return bars of the nodes whose infrastructure fails most, by cause."""
    counts = {(cause, node.node): n for node in nodes for cause, n in node.by_cause}
    return _bars(counts, str, str)


def limit_plot(limits: Sequence[Limit], amount: str) -> go.Figure:
    """Return, for each tool, what its killed jobs asked for, used, and what is suggested."""
    shown = [limit for limit in limits if limit.amount == amount][:BARS_MAX][::-1]
    scale = 2**30 if amount.endswith("_bytes") else 3600
    labels = _unique([short_tool(limit.tool) for limit in shown])
    figure = _figure(height=_height(len(shown)))
    for limit, label in zip(shown, labels):
        ends = [v / scale for v in (limit.requested_p50, limit.suggested) if v is not None]
        figure.add_scatter(
            x=ends, y=[label] * len(ends), mode="lines", showlegend=False, hoverinfo="skip",
            line={"color": OTHER_COLOR, "width": 2},
        )
    for name, field, symbol, size, color in _MARKS:
        values = [getattr(limit, field) for limit in shown]
        figure.add_scatter(
            name=name, mode="markers", y=labels,
            x=[None if value is None else value / scale for value in values],
            marker={"symbol": symbol, "size": size, "color": color,
                    "line": {"width": 2 if symbol.endswith("-open") else 0}},
            customdata=[[limit.tool, show_amount(v, amount)] for limit, v in zip(shown, values)],
            hovertemplate="%{customdata[0]}<br>" + name + ": %{customdata[1]}<extra></extra>",
        )
    figure.update_layout(legend=_LEGEND_ABOVE)
    figure.update_xaxes(title_text="GiB" if scale == 2**30 else "hours", rangemode="tozero")
    return figure


_LEGEND_ABOVE: Dict[str, Any] = {
    "orientation": "h", "x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom",
    "traceorder": "normal",
}
_MARKS = (
    # A ring, because what was used often lies upon it.
    ("asked for (50 %)", "requested_p50", "circle-open", 16, "#2f7fbf"),
    ("used (95 %)", "used_p95", "diamond", 9, "#d9572b"),
    ("suggested", "suggested", "triangle-right", 12, "#1f9e89"),
)


def _bars(counts: Mapping[Tuple[str, Any], int], label_of: Any, full_of: Any) -> go.Figure:
    totals: Dict[Any, int] = {}
    for (_, item), count in counts.items():
        totals[item] = totals.get(item, 0) + count
    # Plotly draws the first at the bottom.
    items = sorted(totals, key=lambda item: (-totals[item], str(item)))[:BARS_MAX][::-1]
    labels = _unique([label_of(item) for item in items])
    figure = _figure(height=_height(len(items)), barmode="stack")
    for cause in _most_frequent_first(counts):
        values = [counts.get((cause, item), 0) for item in items]
        if not any(values):
            continue
        figure.add_bar(
            name=cause, orientation="h", marker=_marker(cause), x=values, y=labels,
            customdata=[full_of(item) for item in items],
            hovertemplate="%{customdata}<br>%{x:,} " + cause + "<extra></extra>",
        )
    figure.update_layout(legend=_LEGEND_ABOVE)
    figure.update_xaxes(title_text="failed jobs", rangemode="tozero")
    return figure


def _figure(height: int, **layout: Any) -> go.Figure:
    figure = go.Figure()
    figure.update_layout(
        template=None, height=height, paper_bgcolor="rgba(0,0,0,0)", plot_bgcolor="rgba(0,0,0,0)",
        margin={"l": 8, "r": 12, "t": 48, "b": 44}, showlegend=True, bargap=0.3, **layout,
    )
    figure.update_xaxes(automargin=True, zeroline=False, fixedrange=True)
    figure.update_yaxes(automargin=True, zeroline=False, fixedrange=True)
    return figure


def _height(rows: int) -> int:
    return 110 + _BAR_PX * max(rows, 3)


def _marker(cause: str) -> Dict[str, Any]:
    return {"color": COLORS.get(cause, OTHER_COLOR)}


def _most_frequent_first(counts: Mapping[Tuple[str, Any], int]) -> List[str]:
    totals: Dict[str, int] = {}
    for (cause, _), count in counts.items():
        totals[cause] = totals.get(cause, 0) + count
    return sorted(totals, key=lambda cause: (-totals[cause], cause))


def _unique(labels: Sequence[str]) -> List[str]:
    """Return the labels, equal ones told apart: Plotly would draw them upon each other."""
    seen: Dict[str, int] = {}
    found = []
    for label in labels:
        seen[label] = seen.get(label, 0) + 1
        short = label if len(label) <= 44 else f"{label[:43]}…"
        found.append(short + "\u200b" * (seen[label] - 1))
    return found


def _iso(moment: int) -> str:
    return datetime.fromtimestamp(moment, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")
