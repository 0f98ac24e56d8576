"""The ledger in a real PostgreSQL: the same rows, the same report, the same quiet in an outage."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Iterator

import pytest
from sqlalchemy import inspect

from pulsar_failure_reasons.errors import LedgerError
from pulsar_failure_reasons.ledger import writer as writer_module
from pulsar_failure_reasons.ledger.database import LedgerDatabase
from pulsar_failure_reasons.ledger.lookup import find_failures
from pulsar_failure_reasons.ledger.schema import metadata
from pulsar_failure_reasons.ledger.settings import LedgerSettings
from pulsar_failure_reasons.ledger.writer import LedgerWriter
from pulsar_failure_reasons.reason import Cause
from pulsar_failure_reasons.report.as_data import as_object
from pulsar_failure_reasons.report.build import build_report, parse_dimensions
from pulsar_failure_reasons.report.period import Period, parse_period
from tests.pulsar_server import wait_until
from tests.real.postgresql import PrivatePostgresql
from tests.report import small_ledger

from .samples import DAY, MONDAY, database, ended

pytestmark = pytest.mark.real
ROOT = Path(__file__).parents[2]


@pytest.fixture
def url(server: PrivatePostgresql) -> Iterator[str]:
    """The URL of an empty database."""
    yield server.url
    ledger = LedgerDatabase(server.url)
    with ledger.engine.begin() as connection:
        metadata.drop_all(connection)


@pytest.mark.parametrize(
    "by", ["cause", "tool,cause", "manager,week", "month", "node,cause", "hour"])
def test_same_report_as_from_sqlite(url: str, tmp_path: Path, by: str) -> None:
    """What a report says does not depend on the database."""
    small_ledger.fill(LedgerDatabase(url))
    period = parse_period("20d" if by == "hour" else "all", None, small_ledger.NOW)
    told = []
    for ledger in (LedgerDatabase(url, read_only=True), small_ledger.make(tmp_path / "x.sqlite")):
        report = build_report(ledger, period, parse_dimensions(by))
        told.append({**as_object(report), "ledger": ""})
    assert told[0] == told[1]
    assert told[0]["failures"] == 9 and told[0]["limits"]


def test_once(url: str) -> None:
    """The same end again changes nothing; a lookup finds it."""
    ledger = LedgerDatabase(url)
    for _ in range(2):
        ledger.write([ended("1", Cause.MEMORY, attempt=3), ended("2")])
    (found,) = find_failures(LedgerDatabase(url, read_only=True), "1")
    assert (found.reason.cause, found.reason.attempt) == (Cause.MEMORY, 3)
    report = build_report(ledger, Period(None, MONDAY + DAY), ("cause",))
    assert (report.failures, report.ends) == (1, 2)


def test_prune(url: str) -> None:
    """By the retention, as in SQLite."""
    ledger = LedgerDatabase(url)
    ledger.write([ended(str(n), Cause.LOST, at=MONDAY - n * DAY) for n in (0, 5, 40)])
    assert ledger.prune(30 * DAY, MONDAY) == 1


def test_odd_texts(url: str) -> None:
    """A NUL, which PostgreSQL refuses, holds up nobody."""
    LedgerDatabase(url).write([ended("1", Cause.LOST, tool="a\x00b", node="é\udcff")])
    (found,) = find_failures(LedgerDatabase(url, read_only=True), "1")
    assert (found.tool_id, found.reason.node) == ("a b", "é?")


def test_row_that_is_refused(url: str, caplog: pytest.LogCaptureFixture) -> None:
    """It alone is left out."""
    writer = LedgerWriter(LedgerSettings(url, None))
    for number in range(1, 6):
        writer.add(ended(str(number), Cause.LOST, **({"attempt": 2**70} if number == 3 else {})))
    assert writer.flush()
    report = build_report(LedgerDatabase(url), Period(None, MONDAY + DAY), ("cause",))
    assert report.failures == 4


def test_empty_database_is_no_ledger(url: str, server: PrivatePostgresql) -> None:
    """A reader says so, without the password, and makes no table."""
    with pytest.raises(LedgerError) as caught:
        with LedgerDatabase(url, read_only=True).transaction():
            pass
    assert "holds no failure ledger" in str(caught.value)
    assert server.password not in str(caught.value)
    assert inspect(LedgerDatabase(url).engine).get_table_names() == []


def test_other_version(url: str, server: PrivatePostgresql) -> None:
    """It is left alone."""
    LedgerDatabase(url).write([ended("1")])
    server.sql("UPDATE ledger_version SET version = 9")
    with pytest.raises(LedgerError, match="has schema version 9 and this version"):
        LedgerDatabase(url).write([ended("2")])


def test_outage(
    url: str, server: PrivatePostgresql, caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A server that is away costs one warning without the password, and no row."""
    monkeypatch.setattr(writer_module, "GATHER_S", 0.05)
    monkeypatch.setattr(writer_module, "FIRST_BACK_OFF_S", 0.05)
    monkeypatch.setattr(writer_module, "LONGEST_BACK_OFF_S", 0.2)
    writer = LedgerWriter(LedgerSettings(url, None))
    writer.add(ended("1"))
    assert writer.flush()
    server.down()
    try:
        with caplog.at_level(logging.INFO, "pulsar.failure_reasons.ledger"):
            writer.add(ended("2"))
            wait_until(lambda: writer._failures >= 3, 180, "three attempts", 0.02)
    finally:
        server.up()
    wait_until(lambda: writer._thread is None, 180, "the rows to be written", 0.02)
    told = [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]
    assert len(told) == 1 and "cannot be written now" in told[0]
    assert server.password not in caplog.text
    report = build_report(LedgerDatabase(url), Period(None, MONDAY + DAY), ("cause",))
    assert report.ends == 2


WRITE_MANY = """
import sys
from pulsar_failure_reasons.ledger.database import LedgerDatabase
from tests.ledger.samples import Cause, ended
ledger = LedgerDatabase(sys.argv[1])
for number in range(30):
    ledger.write([ended(str(number), Cause.MEMORY), ended(str(100 + number))])
"""


def test_processes_at_once(url: str) -> None:
    """They make the tables at once, write the same ends, and each end is there once."""
    running = [
        subprocess.Popen([sys.executable, "-c", WRITE_MANY, url], cwd=ROOT) for _ in range(3)]
    assert [process.wait(timeout=600) for process in running] == [0, 0, 0]
    report = build_report(LedgerDatabase(url), Period(None, MONDAY + DAY), ("cause",))
    assert (report.failures, report.ends) == (30, 60)


def test_command(url: str) -> None:
    """`report --ledger URL`, as an admin types it."""
    small_ledger.fill(LedgerDatabase(url))
    done = subprocess.run(
        [sys.executable, "-m", "pulsar_failure_reasons", "report", "--ledger", url, "--since",
         "all", "--format", "json"], capture_output=True, text=True, timeout=600, cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert told["failures"] == 9
    assert ":***@127.0.0.1" in told["ledger"]


def test_database_is_not_needed_by_sqlite(tmp_path: Path) -> None:
    """A file needs no driver of PostgreSQL."""
    database(tmp_path / "x").write([ended("1")])
    code = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from pulsar_failure_reasons.ledger.database import LedgerDatabase\n"
        "with LedgerDatabase(sys.argv[1]).transaction(): print('read')\n"
        "try: LedgerDatabase('postgresql+psycopg://h/d')\n"
        "except Exception as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code, f"sqlite:///{tmp_path / 'x'}"],
                          capture_output=True, text=True, timeout=600, cwd=ROOT)
    assert done.stdout.startswith("read\n"), done.stderr
    assert "pip install 'pulsar-failure-reasons[postgresql]'" in done.stdout
