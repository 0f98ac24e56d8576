"""Each format, against its own specification, with values counted by hand."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import List

import pytest
import yaml

from pulsar_failure_reasons.ledger.database import LedgerDatabase
from pulsar_failure_reasons.reason import Cause
from pulsar_failure_reasons.report.as_data import (
    render_csv,
    render_influx,
    render_json,
    render_prometheus,
)
from pulsar_failure_reasons.report.as_text import render_text
from pulsar_failure_reasons.report.as_tpv import render_tpv, tool_pattern
from pulsar_failure_reasons.report.build import Report, build_report, parse_dimensions
from pulsar_failure_reasons.report.period import Period
from pulsar_failure_reasons.report.words import (
    short_tool,
    show_amount,
    show_bytes,
    show_rate,
    show_seconds,
)
from tests.ledger.samples import GIB, database, ended

from .small_ledger import NOW, make

SHED = "toolshed.g2.bx.psu.edu/repos/iuc/hisat2/hisat2/2.2.1+galaxy1"


@pytest.fixture
def ledger(tmp_path: Path) -> LedgerDatabase:
    """The ledger of ``small_ledger``."""
    return make(tmp_path / "ledger.sqlite")


def report(ledger: LedgerDatabase, by: str = "cause") -> Report:
    """Return a report of all as of Tuesday noon (1772533200)."""
    return build_report(ledger, Period(None, NOW), parse_dimensions(by))


def odd_tool(tmp_path: Path, tool: str) -> LedgerDatabase:
    """Return a ledger with one failure of a tool."""
    database(tmp_path / "odd").write(
        [ended("1", Cause.MEMORY, tool=tool, requested={"memory_bytes": GIB})])
    return database(tmp_path / "odd", read_only=True)


def test_json(ledger: LedgerDatabase) -> None:
    """The whole report, times in ISO 8601, unknown values null."""
    told = json.loads(render_json(report(ledger, "day,tool")))
    assert (told["version"], told["failures"], told["ends"]) == (1, 9, 20)
    assert (told["since"], told["until"], told["by"]) == (
        None, "2026-03-03T10:20:00Z", ["day", "tool"])
    assert told["groups"][:2] == [
        {"day": "2026-02-23T00:00:00Z", "tool": "hisat2", "failures": 1, "ends": 1, "rate": 1.0},
        {"day": "2026-03-02T00:00:00Z", "tool": "bwa", "failures": 4, "ends": 8, "rate": 0.5},
    ]
    assert told["groups"][3]["tool"] is None
    assert told["worst_nodes"] == [
        {"node": "n3", "failures": 3, "by_cause": {"node_failure": 2, "lost": 1}}]
    assert told["limits"][0] == {
        "tool": "hisat2", "cause": "memory", "amount": "memory_bytes", "kills": 3, "ends": 11,
        "requested_p50": 4294967296, "used_p50": 4294967296, "used_p95": 5368709120,
        "suggested": 8589934592.0}


def test_csv(ledger: LedgerDatabase) -> None:
    """RFC 4180, a line for each group; a rate that is not known is empty."""
    assert render_csv(report(ledger, "tool")) == (
        "tool,failures,ends,rate\r\nhisat2,4,11,0.363636\r\nbwa,4,8,0.5\r\n,1,1,1.0\r\n")
    assert "n1,4,," in render_csv(report(ledger, "node"))


def test_csv_of_odd_tools(tmp_path: Path) -> None:
    """Quotes and commas are the reader's again; no spreadsheet takes a tool for a formula."""
    tool = '=cmd|"a",b'
    rows = list(csv.reader(io.StringIO(render_csv(report(odd_tool(tmp_path, tool), "tool")))))
    assert rows[1][0] == "'" + tool


def test_prometheus(ledger: LedgerDatabase) -> None:
    """The text format: HELP and TYPE before the samples, one name's samples together."""
    assert render_prometheus(report(ledger, "manager,cause")) == """\
# HELP pulsar_failures_in_period Ended jobs that have a failure reason, in the period.
# TYPE pulsar_failures_in_period gauge
pulsar_failures_in_period{manager="main",cause="memory"} 4
pulsar_failures_in_period{manager="main",cause="node_failure"} 2
pulsar_failures_in_period{manager="main",cause="walltime"} 1
pulsar_failures_in_period{manager="big",cause="cancelled"} 1
pulsar_failures_in_period{manager="big",cause="lost"} 1
# HELP pulsar_ends_in_period Ended jobs, with or without a failure reason, in the period.
# TYPE pulsar_ends_in_period gauge
pulsar_ends_in_period{manager="big"} 6
pulsar_ends_in_period{manager="main"} 14
# HELP pulsar_node_failures_in_period Failures of the infrastructure on a node, in the period.
# TYPE pulsar_node_failures_in_period gauge
pulsar_node_failures_in_period{node="n3"} 3
"""
    assert "\npulsar_ends_in_period 20\n" in render_prometheus(report(ledger))


def test_prometheus_tells_all_ends(tmp_path: Path) -> None:
    """Also those of a tool that never failed, which has no sample by cause."""
    database(tmp_path / "x").write([ended("1", Cause.MEMORY), ended("2", tool="cat")])
    lines = render_prometheus(report(database(tmp_path / "x", read_only=True), "tool,cause"))
    assert [line for line in lines.splitlines() if line.startswith("pulsar_ends")] == [
        'pulsar_ends_in_period{tool="cat"} 1', 'pulsar_ends_in_period{tool="hisat2"} 1']


def test_prometheus_escapes(tmp_path: Path) -> None:
    """A backslash and a quote in a label's value, as the format demands."""
    text = render_prometheus(report(odd_tool(tmp_path, 'a\\b"c'), "tool"))
    assert r'pulsar_failures_in_period{tool="a\\b\"c"} 1' in text


def test_influx(ledger: LedgerDatabase) -> None:
    """Line protocol in nanoseconds; a group by time at its own time, no tag without a value."""
    assert render_influx(report(ledger, "day,tool"), NOW).splitlines() == [
        "pulsar_ends,tool=hisat2 ends=1i 1771804800000000000",
        "pulsar_ends,tool=bwa ends=8i 1772409600000000000",
        "pulsar_ends,tool=hisat2 ends=10i 1772409600000000000",
        "pulsar_ends ends=1i 1772409600000000000",
        "pulsar_failures,tool=hisat2 failures=1i,ends=1i,rate=1.000000 1771804800000000000",
        "pulsar_failures,tool=bwa failures=4i,ends=8i,rate=0.500000 1772409600000000000",
        "pulsar_failures,tool=hisat2 failures=3i,ends=10i,rate=0.300000 1772409600000000000",
        "pulsar_failures failures=1i,ends=1i,rate=1.000000 1772409600000000000",
        "pulsar_node_failures,node=n3 failures=3i 1772533200000000000",
    ]


def test_influx_escapes(tmp_path: Path) -> None:
    """Blanks, commas and equal signs in a tag's value."""
    text = render_influx(report(odd_tool(tmp_path, "a b,c=d"), "tool"), NOW)
    assert r"pulsar_failures,tool=a\ b\,c\=d failures=1i" in text


def test_tpv(tmp_path: Path) -> None:
    """Memory in GB for any version of a tool, and where it comes from."""
    text = render_tpv(report(odd_tool(tmp_path, SHED)))
    assert text.splitlines()[-4:] == [
        "tools:",
        '  "toolshed.g2.bx.psu.edu/repos/iuc/hisat2/hisat2/.*":',
        "    # 1 of 1 ended jobs killed; they asked for 1 GiB",
        "    mem: 2",
    ]
    assert all(line.startswith("#") for line in text.splitlines()[:-4])
    assert yaml.safe_load(text) == {
        "tools": {"toolshed.g2.bx.psu.edu/repos/iuc/hisat2/hisat2/.*": {"mem": 2}}}


@pytest.mark.parametrize("tool", ["123", "null", "- a: b", "'\"", "*x", "é # y"])
def test_tpv_of_odd_tools(tmp_path: Path, tool: str) -> None:
    """A key is text to YAML, whatever it looks like."""
    (key,) = yaml.safe_load(render_tpv(report(odd_tool(tmp_path, tool))))["tools"]
    assert key == tool.replace("*", r"\*")


def test_tpv_takes_versions_together(tmp_path: Path) -> None:
    """A key may be there once only: the largest suggestion holds."""
    database(tmp_path / "x").write([
        ended("1", Cause.MEMORY, tool=SHED, requested={"memory_bytes": 2 * GIB}),
        ended("2", Cause.MEMORY, tool=SHED[:-1] + "2", requested={"memory_bytes": 8 * GIB}),
        ended("3", tool=SHED),
        ended("4", Cause.WALLTIME, tool="other", requested={"walltime_s": 60}),
    ])
    lines = render_tpv(report(database(tmp_path / "x", read_only=True))).splitlines()
    assert lines[-3:] == [
        '  "toolshed.g2.bx.psu.edu/repos/iuc/hisat2/hisat2/.*":',
        "    # 2 of 3 ended jobs killed; they asked for 8 GiB",
        "    mem: 12",
    ]


def test_tpv_without_memory(tmp_path: Path) -> None:
    """Still YAML that TPV takes."""
    database(tmp_path / "x").write([ended("1")])
    text = render_tpv(report(database(tmp_path / "x", read_only=True)))
    assert text.splitlines()[-1] == "tools: {}"


@pytest.mark.parametrize(
    "tool, pattern",
    [
        (SHED, "toolshed.g2.bx.psu.edu/repos/iuc/hisat2/hisat2/.*"),
        ("Cut1", "Cut1"),
        ("a+b", r"a\+b"),
        ("user/repos", "user/repos"),
    ],
)
def test_tool_pattern(tool: str, pattern: str) -> None:
    """Regular expressions: what is special is escaped, but for dots."""
    assert tool_pattern(tool) == pattern


def cells(text: str, first: str) -> List[str]:
    """Return the words of the one line that begins so."""
    (line,) = [line for line in text.splitlines() if line.startswith(first)]
    return line.split()


def test_text(ledger: LedgerDatabase) -> None:
    """Counts, shares and rates; nodes; limits."""
    text = render_text(report(ledger, "cause"))
    assert text.splitlines()[0] == (
        "9 of 20 ended jobs failed with a reason (45.0%), all until 2026-03-03 10:20 UTC")
    assert cells(text, "memory") == ["memory", "4", "44.4%", "20", "20.0%"]
    assert cells(text, "n3") == ["n3", "3", "node_failure", "2,", "lost", "1"]
    assert cells(text, "hisat2") == (
        "hisat2 memory 3 27.3% 4 GiB 4 GiB 5 GiB 8 GiB".split())


def test_text_fits_a_screen(tmp_path: Path) -> None:
    """A tool's id is folded, not cut; numbers stay whole."""
    text = render_text(report(odd_tool(tmp_path, SHED), "tool"), 60)
    assert max(map(len, text.splitlines())) <= 60
    (first,) = [i for i, line in enumerate(text.splitlines()) if line.startswith("toolshed")]
    folded = [line.split()[0] for line in text.splitlines()[first:] if line.strip()]
    assert SHED in "".join(folded)


def test_text_is_cut_with_a_word(tmp_path: Path) -> None:
    """Hundreds of tools do not scroll by; the rest is named."""
    database(tmp_path / "x").write(
        [ended(str(n), Cause.MEMORY, tool=f"tool{n}") for n in range(70)])
    text = render_text(report(database(tmp_path / "x", read_only=True), "tool"))
    assert "... and 20 more rows: --format csv" in text


def test_markup_of_rich_in_a_tool(tmp_path: Path) -> None:
    """A tool's id is text, whatever it looks like."""
    assert "[bold]x[/red]" in render_text(report(odd_tool(tmp_path, "[bold]x[/red]"), "tool"))


def test_words() -> None:
    """Amounts and rates as people read them."""
    assert [show_bytes(n) for n in (512 * 1024, 2**20, 1.5 * 2**30, 2**40)] == [
        "512 KiB", "1 MiB", "1.5 GiB", "1 TiB"]
    assert [show_seconds(n) for n in (59, 90 * 60, 7200, 600)] == [
        "59 s", "1 h 30 min", "2 h", "10 min"]
    assert [show_rate(n) for n in (None, 0, 0.0004, 0.5)] == ["-", "0.0%", "< 0.1%", "50.0%"]
    assert show_amount(None, "memory_bytes") == "-"
    assert [short_tool(t) for t in (SHED, "Cut1", None)] == [
        "hisat2/2.2.1+galaxy1", "Cut1", "(unknown)"]
