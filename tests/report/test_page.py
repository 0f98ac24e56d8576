"""The page: it opens offline, in light and dark, and nothing in a ledger can break out of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import List

import pytest

from pulsar_failure_reasons.ledger.database import LedgerDatabase
from pulsar_failure_reasons.reason import Cause
from pulsar_failure_reasons.report.as_html import render_html
from pulsar_failure_reasons.report.build import build_report, parse_dimensions
from pulsar_failure_reasons.report.period import parse_period
from tests.ledger.samples import DAY, GIB, MONDAY, database, ended
from tests.real import chromium
from tests.real.require import require_real

from .small_ledger import NOW, fill

HOSTILE = '</script><img src="x" onerror="document.title=1"><b>'
PLOTS = ("over-time", "by-tool", "by-node", "memory_bytes", "walltime_s")
PAPER_LIGHT, PAPER_DARK = (255, 255, 255), (20, 24, 29)
TEXT_LIGHT, TEXT_DARK = "rgb(29, 35, 43)", "rgb(228, 232, 237)"


def page_of(ledger: LedgerDatabase, path: Path, since: int = MONDAY - 30 * DAY) -> Path:
    """Write the page of a ledger."""
    period = parse_period(f"{NOW - since}s", None, NOW)
    report = build_report(ledger, period, parse_dimensions("cause"))
    path.write_text(render_html(report, ledger), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the small ledger, to which a hostile tool and node were added."""
    folder = tmp_path_factory.mktemp("page")
    path = folder / "ledger.sqlite"
    fill(database(path))
    database(path).write([
        ended(str(job), Cause.MEMORY, tool=HOSTILE, requested={"memory_bytes": GIB})
        for job in range(50, 55)
    ])
    database(path).write([ended("60", Cause.NODE_FAILURE, node=HOSTILE)])
    return page_of(database(path, read_only=True), folder / "report.html")


def without_scripts(html: str) -> str:
    """Return what a browser does not take for a script."""
    return re.sub(r"<script\b.*?</script>", "", html, flags=re.DOTALL)


def test_nothing_is_loaded(page: Path) -> None:
    """No address in any attribute: scripts and style are in the page."""
    html = page.read_text(encoding="utf-8")
    loading = r"<(?:link|img|iframe|script)\b[^>]*(?:src|href)="
    assert re.findall(loading, without_scripts(html)) == []
    assert re.findall(r"<script\b[^>]*>", html) == ["<script>", "<script>"]


def test_hostile_names_are_text(page: Path) -> None:
    """A tool that is called like HTML ends no script and makes no element."""
    html = page.read_text(encoding="utf-8")
    assert html.count("</script>") == 2
    assert "<img" not in without_scripts(html)
    assert "&lt;/script&gt;&lt;img src=&quot;x&quot;" in html


def test_empty_ledger_makes_a_page(tmp_path: Path) -> None:
    """Without plots and with zeros."""
    database(tmp_path / "x").write([ended("1")])
    page = page_of(database(tmp_path / "x", read_only=True), tmp_path / "x.html", NOW - 3600)
    html = without_scripts(page.read_text(encoding="utf-8"))
    assert "<b>0</b><span>jobs ended</span>" in html
    assert 'class="plot"' not in html


@pytest.mark.parametrize(
    "since, title",
    [(NOW - DAY, "Failures by hour"), (NOW - 30 * DAY, "Failures by day"),
     (NOW - 400 * DAY, "Failures by week")],
)
def test_bars_are_as_long_as_the_period_wants(tmp_path: Path, since: int, title: str) -> None:
    """Some dozens of bars, whatever the period."""
    database(tmp_path / "x").write([ended("1", Cause.MEMORY)])
    page = page_of(database(tmp_path / "x", read_only=True), tmp_path / "x.html", since)
    assert f"<h2>{title}</h2>" in page.read_text(encoding="utf-8")


def drawn(dom: str, name: str) -> str:
    """Return the DOM of one plot, up to the next part of the page."""
    begin = dom.index(f'<div id="{name}"')
    return dom[begin:].partition("</section>")[0]


def bars(dom: str, name: str) -> List[str]:
    """Return the drawn bars of a plot that have a length."""
    bar = r'<g class="point"><path d="M([\d.]+),[\d.]+V[\d.]+H([\d.]+)'
    found = re.findall(bar, drawn(dom, name))
    return [end for begin, end in found if begin != end]


@pytest.mark.real
@pytest.mark.parametrize(
    "dark, paper, text",
    [(False, PAPER_LIGHT, TEXT_LIGHT), (True, PAPER_DARK, TEXT_DARK)],
    ids=["light", "dark"],
)
def test_page_in_a_browser(page: Path, dark: bool, paper: object, text: str) -> None:
    """Chromium draws every plot, in the reader's colours, without an error on its console."""
    require_real("Chromium", chromium.why_missing())
    seen = chromium.look(page, dark=dark)
    assert seen.console == []
    for name in PLOTS:
        plot = drawn(seen.dom, name)
        assert 'class="main-svg"' in plot, name
        assert f"fill: {text}" in plot, name
    # Walltime, node_failure and lost of bwa; memory and cancelled of hisat2; memory of two more,
    # and the node failure on the hostile node, whose tool is hisat2.
    assert len(bars(seen.dom, "by-tool")) == 8
    # n3: node_failure and lost; the hostile one: node_failure.
    assert len(bars(seen.dom, "by-node")) == 3
    assert "<img" not in seen.dom
    assert "<title>Why Pulsar jobs failed</title>" in seen.dom
    assert chromium.background(page, dark=dark) == paper


#: What a browser does when its reader switches to the dark: the media query's listeners are told.
SWITCH = """<script>
const listeners = [];
window.matchMedia = () => ({ addEventListener: (name, call) => listeners.push([name, call]) });
window.addEventListener("load", () => {
  document.documentElement.style.setProperty("--text", "rgb(1, 2, 3)");
  listeners.filter(([name]) => name === "change").forEach(([_, call]) => call());
});
</script></head>"""


@pytest.mark.real
def test_plots_follow_a_switch_of_the_scheme(page: Path, tmp_path: Path) -> None:
    """The plots are drawn again when the reader's scheme changes while the page is open."""
    require_real("Chromium", chromium.why_missing())
    switching = tmp_path / "switching.html"
    html = page.read_text(encoding="utf-8")
    switching.write_text(html.replace("</head>", SWITCH, 1), encoding="utf-8")
    seen = chromium.look(switching)
    for name in PLOTS:
        plot = drawn(seen.dom, name)
        assert "fill: rgb(1, 2, 3)" in plot and f"fill: {TEXT_LIGHT}" not in plot, name
