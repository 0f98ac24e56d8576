"""What the report page is made of beside the plots: its style, its script, its tables.

The page loads nothing: it opens offline, from a mail or a disk. Its script draws the plots in the
reader's colours, and again when these change.
"""

from __future__ import annotations

from html import escape
from typing import Sequence

STYLE = """
:root { color-scheme: light dark; --paper: #ffffff; --card: #f6f7f9; --text: #1d232b;
  --faint: #59636f; --line: #d9dee5; --bar: #d9572b; }
@media (prefers-color-scheme: dark) { :root { --paper: #14181d; --card: #1c2229; --text: #e4e8ed;
  --faint: #9aa5b1; --line: #323b45; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 28px 24px 60px; max-width: 1120px; background: var(--paper);
  color: var(--text); font: 15px/1.5 system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
h1 { font-size: 24px; margin: 0 0 2px; }
h2 { font-size: 18px; margin: 0 0 2px; }
p.note { color: var(--faint); margin: 0 0 10px; }
section { margin-top: 36px; }
.numbers { display: flex; flex-wrap: wrap; gap: 12px; margin-top: 18px; }
.number { background: var(--card); border: 1px solid var(--line); border-radius: 8px;
  padding: 10px 16px; min-width: 140px; }
.number b { display: block; font-size: 24px; line-height: 1.25; }
.number span { color: var(--faint); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; margin-top: 6px; font-size: 14px; }
th, td { text-align: left; padding: 5px 14px 5px 0; border-bottom: 1px solid var(--line);
  vertical-align: top; overflow-wrap: anywhere; }
th { color: var(--faint); font-weight: 600; white-space: nowrap; }
th.n, td.n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
footer { margin-top: 44px; color: var(--faint); font-size: 13px; }
"""

#: ``PLOTS`` is put in front of it: figures by the id of their place.
SCRIPT = """
const dark = window.matchMedia("(prefers-color-scheme: dark)");
function css(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
function draw() {
  const axis = { gridcolor: css("--line"), linecolor: css("--line"), tickcolor: css("--line") };
  const font = { color: css("--text"), family: getComputedStyle(document.body).fontFamily,
                 size: 13 };
  const hover = { bgcolor: css("--card"), bordercolor: css("--line"), font: font };
  for (const [id, figure] of Object.entries(PLOTS)) {
    const layout = { ...figure.layout, font: font, hoverlabel: { ...hover, namelength: -1 } };
    layout.xaxis = { ...layout.xaxis, ...axis };
    layout.yaxis = { ...layout.yaxis, ...axis };
    const edge = { color: css("--paper"), width: 1 };
    const data = figure.data.map(trace => trace.type !== "bar" ? trace :
      { ...trace, marker: { ...trace.marker, line: edge } });
    Plotly.react(id, data, layout, { responsive: true, displayModeBar: false });
  }
}
draw();
dark.addEventListener("change", draw);
"""


def number(value: str, what: str) -> str:
    """Return a box with one number that matters."""
    return f'<div class="number"><b>{escape(value)}</b><span>{escape(what)}</span></div>'


def section(title: str, note: str, content: str) -> str:
    """Return a part of the page."""
    return (
        f"<section><h2>{escape(title)}</h2><p class=\"note\">{escape(note)}</p>"
        f"{content}</section>"
    )


def html_table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], texts: int = 1
) -> str:
    """Return a table whose first ``texts`` columns are text and the others numbers."""
    classes = ["" if i < texts else ' class="n"' for i in range(len(headings))]
    head = "".join(f"<th{c}>{escape(h)}</th>" for c, h in zip(classes, headings))
    body = "".join(
        "<tr>" + "".join(f"<td{c}>{escape(cell)}</td>" for c, cell in zip(classes, row)) + "</tr>"
        for row in rows
    )
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead>{body}</table></div>'
