"""The database: private, of one version, each end once, pruned; what is wrong is told in a line."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import List

import pytest

from pulsar_failure_reasons.errors import LedgerError
from pulsar_failure_reasons.ledger.database import LedgerDatabase
from pulsar_failure_reasons.ledger.lookup import find_failures
from pulsar_failure_reasons.reason import Cause, Confidence, Evidence

from .samples import DAY, GIB, HOUR, MONDAY, database, ended, rows


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the ledger will be."""
    return tmp_path / "ledger.sqlite"


def counts(path: Path) -> List[object]:
    """Return what the counts by the hour say: hour, manager, cause, tool, ends."""
    return list(rows(path, "SELECT begins_at, manager, cause, tool_id, ends FROM ledger_ends "
                           "WHERE span_s = 3600 ORDER BY begins_at, manager, cause, tool_id"))


def test_file_is_private_and_has_no_wal(path: Path) -> None:
    """Mode 600 whatever the umask; a rollback journal, also where somebody switched WAL on."""
    before = os.umask(0)
    try:
        database(path).write([ended("1")])
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert rows(path, "PRAGMA journal_mode") == [("delete",)]
    assert rows(path, "PRAGMA journal_mode=WAL") == [("wal",)]
    database(path).write([ended("2")])
    assert rows(path, "PRAGMA journal_mode") == [("delete",)]


def test_mode_that_an_admin_gave_is_kept(path: Path) -> None:
    """A group that may read it (Telegraf) keeps that."""
    path.touch()
    path.chmod(0o640)
    database(path).write([ended("1")])
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_odd_path(tmp_path: Path) -> None:
    """Characters that mean something in a URL are a path's own."""
    path = tmp_path / "a b?mode=ro#%41" / "x.sqlite"
    database(path).write([ended("1")])
    assert path.is_file()


def test_counts_of_ends(path: Path) -> None:
    """By hour, manager, cause and tool, with and without a reason."""
    ledger = database(path)
    ledger.write([ended("1"), ended("2"), ended("3", Cause.MEMORY), ended("4", tool=None)])
    ledger.write([ended("5"), ended("6", at=MONDAY + HOUR), ended("7", manager="other")])
    assert counts(path) == [
        (1772445600, "main", "", "", 1),
        (1772445600, "main", "", "hisat2", 3),
        (1772445600, "main", "memory", "hisat2", 1),
        (1772445600, "other", "", "hisat2", 1),
        (1772449200, "main", "", "hisat2", 1),
    ]
    assert rows(path, "SELECT begins_at, manager, cause, tool_id, ends FROM ledger_ends WHERE "
                      "span_s = 86400 AND manager = 'main' AND tool_id <> '' ORDER BY cause") == [
        (1772409600, "main", "", "hisat2", 4), (1772409600, "main", "memory", "hisat2", 1)]


def test_an_end_is_stored_once(path: Path) -> None:
    """Told again (another process, or after a crash) it changes nothing, in one batch or two."""
    ledger = database(path)
    failure = ended("1", Cause.WALLTIME)
    ledger.write([failure, failure, ended("2")])
    ledger.write([failure])
    # A good end has no record whose time stays the same.
    ledger.write([ended("2", at=MONDAY + 5)])
    assert counts(path) == [
        (1772445600, "main", "", "hisat2", 1),
        (1772445600, "main", "walltime", "hisat2", 1),
    ]
    assert rows(path, "SELECT count(*) FROM ledger_failures") == [(1,)]


def test_another_attempt_is_another_end(path: Path) -> None:
    """The same job_id with another external id, or refused a second time."""
    ledger = database(path)
    ledger.write([
        ended("1", Cause.MEMORY, external_id="7", at=MONDAY),
        ended("1", Cause.MEMORY, external_id="8", at=MONDAY + 60),
        ended("1", Cause.LAUNCH_ERROR, external_id=None, at=MONDAY + 120),
        ended("1", Cause.LAUNCH_ERROR, external_id=None, at=MONDAY + 180),
    ])
    assert rows(path, "SELECT count(*) FROM ledger_failures") == [(4,)]
    assert rows(path, "SELECT sum(ends) FROM ledger_ends WHERE span_s = 86400") == [(4,)]


def test_nothing_of_a_batch_is_stored_that_fails(path: Path) -> None:
    """A row that the database refuses takes back its batch, the counts too."""
    ledger = database(path)
    ledger.write([ended("1")])
    bad = ended("3", Cause.MEMORY, attempt=2**70)
    with pytest.raises(ValueError):
        ledger.write([ended("2"), bad])
    assert rows(path, "SELECT sum(ends) FROM ledger_ends WHERE span_s = 86400") == [(1,)]


def test_prune(path: Path) -> None:
    """What is older than the retention goes, failures and counts; the rest stays."""
    ledger = database(path)
    ledger.write([
        ended(str(n), Cause.MEMORY, at=MONDAY - n * DAY) for n in (0, 1, 29, 31, 400)])
    assert ledger.prune(30 * DAY, MONDAY) == 2
    assert rows(path, "SELECT job_id FROM ledger_failures ORDER BY id") == [("0",), ("1",), ("29",)]
    assert rows(path, "SELECT sum(ends) FROM ledger_ends WHERE span_s = 86400") == [(3,)]
    assert ledger.prune(None, MONDAY + 9999 * DAY) == 0
    assert rows(path, "SELECT sum(ends) FROM ledger_ends WHERE span_s = 86400") == [(3,)]


def test_hours_become_days(path: Path) -> None:
    """Counts by the hour are kept some weeks, those by the day as long as the failures."""
    ledger = database(path)
    ledger.write([ended("1", at=MONDAY - 34 * DAY), ended("2", at=MONDAY - 36 * DAY)])
    ledger.prune(None, MONDAY)
    assert rows(path, "SELECT span_s, sum(ends) FROM ledger_ends GROUP BY span_s") == [
        (3600, 1), (86400, 2)]


def test_prune_many(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In several transactions, so that nobody waits for one long one."""
    monkeypatch.setattr("pulsar_failure_reasons.ledger.database.PRUNE_ROWS", 10)
    ledger = database(path)
    ledger.write([ended(str(n), Cause.MEMORY, at=MONDAY + n) for n in range(25)])
    assert ledger.prune(DAY, MONDAY + 9 * DAY) == 25


def test_what_keeps_ends_from_being_counted_twice_is_kept_a_week(path: Path) -> None:
    """Then it is removed: it is one row for each end."""
    ledger = database(path)
    ledger.write([ended("1")])
    (written_at,), = rows(path, "SELECT (batch >> 20) / 1000 FROM ledger_counted")
    ledger.prune(None, written_at + 6 * DAY)
    assert rows(path, "SELECT count(*) FROM ledger_counted") == [(1,)]
    ledger.prune(None, written_at + 8 * DAY)
    assert rows(path, "SELECT count(*) FROM ledger_counted") == [(0,)]


def test_other_schema_version(path: Path) -> None:
    """A ledger of another version is left alone, by writers and readers, with what to do."""
    database(path).write([ended("1")])
    connection = sqlite3.connect(str(path))
    connection.execute("UPDATE ledger_version SET version = 7")
    connection.commit()
    connection.close()
    for read_only in (False, True):
        with pytest.raises(LedgerError) as caught:
            database(path, read_only=read_only).write([ended("2")])
        assert str(caught.value) == (
            f"the failure ledger {path} has schema version 7 and this version of "
            "pulsar-failure-reasons works with 1: use the version that wrote it, or let "
            "failure_ledger name another place"
        )
    assert rows(path, "SELECT sum(ends) FROM ledger_ends WHERE span_s = 86400") == [(1,)]


def read(path: Path) -> None:
    """Open a ledger as a report does."""
    with database(path, read_only=True).transaction():
        pass


def test_reader_finds_no_file(path: Path) -> None:
    """It says so, and makes none."""
    with pytest.raises(LedgerError, match=f"^the failure ledger {path}: there is no such file;"):
        read(path)
    assert not path.exists()


def test_reader_finds_another_database(path: Path) -> None:
    """An SQLite file without a ledger is named as such, and nothing is put into it."""
    connection = sqlite3.connect(str(path))
    connection.execute("CREATE TABLE jobs (id INTEGER)")
    connection.commit()
    connection.close()
    with pytest.raises(LedgerError, match=f"^{path} holds no failure ledger"):
        read(path)
    assert rows(path, "SELECT name FROM sqlite_master") == [("jobs",)]


def test_file_that_is_no_database(path: Path) -> None:
    """SQLite's own words, with the file's name."""
    path.write_text("not a database at all, but long enough to be read as a header of one" * 9)
    for read_only in (False, True):
        with pytest.raises(LedgerError, match=f"^the failure ledger {path}: file is not a data"):
            database(path, read_only=read_only).write([ended("1")])


def test_folder_in_the_file_s_place(tmp_path: Path) -> None:
    """Neither a traceback nor a file elsewhere."""
    with pytest.raises(LedgerError, match=f"^the failure ledger {tmp_path}: "):
        database(tmp_path).write([ended("1")])


READ_AS_NOBODY = """
import os, sys
from pulsar_failure_reasons.errors import LedgerError
from pulsar_failure_reasons.ledger.database import LedgerDatabase
readable, closed = (LedgerDatabase("sqlite:///" + path, read_only=True) for path in sys.argv[1:])
with readable.transaction():
    os.setgid(65534)
    os.setuid(65534)
try:
    with closed.transaction():
        pass
except LedgerError as error:
    print(error)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_reader_without_permission() -> None:
    """The file is there and its owner's alone: that is what it says."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        paths = [Path(folder) / "readable.sqlite", Path(folder) / "closed.sqlite"]
        for path in paths:
            database(path).write([ended("1")])
        paths[0].chmod(0o644)
        said = subprocess.run([sys.executable, "-c", READ_AS_NOBODY, *map(str, paths)],
                              capture_output=True, text=True, timeout=600)
    assert said.stdout == (
        f"the failure ledger {paths[1]}: the file may not be read by this user\n"), said.stderr


@pytest.mark.parametrize(
    "url, told",
    [
        ("mysql+pymysql://h/d", "mysql"),
        ("nonsense://h/d", "nonsense"),
        ("postgresql+nodriver://h/d", "pulsar-failure-reasons[postgresql]"),
        ("postgresql+psycopg://h:port/d", "port"),
    ],
)
def test_url_that_cannot_be_served(url: str, told: str) -> None:
    """One line that names the ledger."""
    with pytest.raises(LedgerError, match="cannot be opened") as caught:
        LedgerDatabase(url)
    assert told in str(caught.value) and "\n" not in str(caught.value)


WRITE_MANY = """
import sys
from pathlib import Path
from pulsar_failure_reasons.ledger import database as module
from tests.ledger.samples import Cause, database, ended
module.LOCK_TIMEOUT_S = 300.0  # the other one may stall while it holds the lock
ledger = database(Path(sys.argv[1]))
for number in range(30):
    ledger.write([ended(str(number), Cause.MEMORY), ended(str(100 + number))])
"""


def test_two_processes_at_once(path: Path) -> None:
    """Both make the tables, write the same ends, and each end is there once."""
    root = Path(__file__).parents[2]
    both = [subprocess.Popen([sys.executable, "-c", WRITE_MANY, str(path)], cwd=root)
            for _ in range(2)]
    assert [process.wait(timeout=600) for process in both] == [0, 0]
    assert rows(path, "SELECT count(*) FROM ledger_failures") == [(30,)]
    assert rows(path, "SELECT sum(ends) FROM ledger_ends WHERE span_s = 86400") == [(60,)]


def test_lookup_of_a_job(path: Path) -> None:
    """All that was stored comes back as a failure reason, the newest end first."""
    database(path).write([
        ended("1", Cause.MEMORY, external_id="7", node="node7", attempt=1,
              requested={"memory_bytes": GIB}, used={"memory_bytes": GIB, "walltime_s": 1.5}),
        ended("1", Cause.WALLTIME, external_id="8", at=MONDAY + 60),
        ended("1", Cause.LOST, external_id="9", manager="other"),
        ended("2", Cause.LOST),
    ])
    found = find_failures(database(path, read_only=True), "1", "main")
    assert [failure.reason.cause for failure in found] == [Cause.WALLTIME, Cause.MEMORY]
    older = found[1]
    assert (older.manager, older.tool_id) == ("main", "hisat2")
    assert older.reason.recorded_at == "2026-03-02T10:20:00Z"
    assert older.reason.confidence is Confidence.CONTROLLER
    assert (older.reason.external_id, older.reason.node, older.reason.attempt) == ("7", "node7", 1)
    assert older.reason.requested == {"memory_bytes": 1073741824}
    assert older.reason.used == {"memory_bytes": 1073741824, "walltime_s": 1.5}
    assert older.reason.evidence == (Evidence("scontrol", "JobState", "MEMORY"),)
    assert len(find_failures(database(path, read_only=True), "1")) == 3
    assert find_failures(database(path, read_only=True), "3") == []
