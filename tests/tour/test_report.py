"""``report`` on the ledger that the site's own Pulsar has written."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import stat
from pathlib import Path

import pytest

from tests.pulsar_server import wait_until
from tests.tour.conftest import Visit

LEDGER = Path("persisted") / "failure-ledger.sqlite"


@pytest.fixture
def counted(site: Visit) -> Visit:
    """The site once the rows of all four ended jobs have come to the ledger."""

    def ends() -> int:
        said = site.run("report", "--app", site.app_yml, "--format", "json")
        return int(json.loads(said.out)["ends"]) if said.code == 0 else -1

    wait_until(lambda: ends() == 4, 180, "four ends in the ledger")
    return site


def test_table(counted: Visit) -> None:
    """A person reads it: the causes, and nothing on stderr."""
    said = counted.run("report", "--app", counted.app_yml, "--since", "7d", "--by", "cause,tool")
    assert (said.code, said.err) == (0, "")
    assert "walltime" in said.out and "memory" in said.out and "demo" in said.out


def test_csv(counted: Visit) -> None:
    """A spreadsheet reads it: one row a cause, with its count."""
    said = counted.run("report", "--app", counted.app_yml, "--by", "cause", "--format", "csv")
    assert (said.code, said.err) == (0, "")
    rows = {row["cause"]: row for row in csv.DictReader(io.StringIO(said.out))}
    assert {"walltime", "memory"} <= set(rows)
    assert rows["walltime"]["failures"] == "1"


@pytest.mark.parametrize("form, pattern", [
    ("prometheus", r"^# TYPE \w+ \w+$"),
    ("influx", r"^\w+,\S*cause=walltime\S* \S+ \d+$"),
    ("tpv", r"^tools:"),
])
def test_machine_forms(form: str, pattern: str, counted: Visit) -> None:
    """Each form has the lines that its readers look for, on stdout alone."""
    said = counted.run("report", "--app", counted.app_yml, "--format", form)
    assert said.code == 0, said.err
    assert re.search(pattern, said.out, re.MULTILINE), said.out


def test_page(counted: Visit, tmp_path: Path) -> None:
    """One file that loads nothing from elsewhere; where it went is told on stderr."""
    page = tmp_path / "report.html"
    said = counted.run(
        "report", "--app", counted.app_yml, "--format", "html", "--output", str(page)
    )
    assert (said.code, said.out) == (0, "")
    assert str(page) in said.err
    text = page.read_text()
    assert not re.search(r"<(?:script|link|img)[^>]+(?:src|href)=[\"']?https?:", text)


def test_the_ledger_is_nobody_elses(counted: Visit) -> None:
    """The file that Pulsar made can be read by its user alone."""
    mode = stat.S_IMODE(os.stat(counted.pulsar.home / LEDGER).st_mode)
    assert mode == 0o600


@pytest.mark.parametrize("argv", [
    [],
    ["--ledger", "nowhere.sqlite"],
    ["--ledger", "app.yml"],
    ["--ledger", "oracle://x/y"],
    ["--app", "nowhere.yml"],
    ["--app", "app.yml", "--by", "colour"],
    ["--app", "app.yml", "--since", "yesterday-ish"],
    ["--app", "app.yml", "--format", "csv", "--output", "/no/such/folder/x"],
])
def test_what_cannot_be_reported(argv: "list[str]", counted: Visit) -> None:
    """Exit 2, nothing on stdout, and one line on stderr."""
    said = counted.run("report", *argv)
    assert (said.code, said.out) == (2, "")
    assert len(said.err.splitlines()) == 1, said.err
