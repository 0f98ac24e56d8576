"""The queue and its thread: never in a job's way, whatever the database does."""

from __future__ import annotations

import errno
import logging
import os
import resource
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Iterator, List

import pytest

from pulsar_failure_reasons.ledger import writer as writer_module
from pulsar_failure_reasons.ledger.settings import LedgerSettings
from pulsar_failure_reasons.ledger.writer import LedgerWriter, shared_writer
from pulsar_failure_reasons.reason import Cause
from tests.pulsar_server import wait_until

from .samples import database, ended, rows

LOGGER = "pulsar.failure_reasons.ledger"
#: 2100: rows of this test are never too old.
FUTURE = 4102444800


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the ledger will be."""
    return tmp_path / "ledger.sqlite"


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try again soon; wait for a lock as long as a test may."""
    monkeypatch.setattr(writer_module, "GATHER_S", 0.05)
    monkeypatch.setattr(writer_module, "FIRST_BACK_OFF_S", 0.02)
    monkeypatch.setattr(writer_module, "LONGEST_BACK_OFF_S", 0.1)
    monkeypatch.setattr("pulsar_failure_reasons.ledger.database.LOCK_TIMEOUT_S", 0.1)
    # How long a busy machine takes for what must succeed is no test.
    monkeypatch.setattr(writer_module, "FLUSH_TIMEOUT_S", 60.0)
    monkeypatch.setattr(writer_module, "OUTAGE_FLUSH_TIMEOUT_S", 60.0)


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """What the ledger logs."""
    with caplog.at_level(logging.INFO, LOGGER):
        yield caplog


def settings(path: Path) -> LedgerSettings:
    """Return the settings of a file's ledger."""
    return LedgerSettings(f"sqlite:///{path}", None)


def warnings(log: pytest.LogCaptureFixture) -> List[str]:
    """Return the messages that an admin would be woken for."""
    return [r.getMessage() for r in log.records if r.levelno >= logging.WARNING]


def ends_in(path: Path) -> Any:
    """Return how many ends the file counts."""
    return rows(path, "SELECT sum(ends) FROM ledger_ends WHERE span_s = 86400")[0][0]


def test_written_soon_and_then_no_thread(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Entries are written together; without work there is no thread to survive a fork."""
    monkeypatch.setattr(writer_module, "GATHER_S", 60.0)  # until the flush
    writer = LedgerWriter(settings(path))
    before = set(threading.enumerate())
    for number in range(25):
        writer.add(ended(str(number)))
    assert writer.flush()
    assert ends_in(path) == 25
    wait_until(lambda: set(threading.enumerate()) <= before, 60, "the thread to end", 0.01)
    assert rows(path, "SELECT count(DISTINCT batch) FROM ledger_counted") == [(1,)]


def test_more_than_a_batch(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All are written, in the order in which they came."""
    monkeypatch.setattr(writer_module, "BATCH_MAX", 10)
    writer = LedgerWriter(settings(path))
    for number in range(35):
        writer.add(ended(str(number), Cause.MEMORY))
    assert writer.flush()
    assert rows(path, "SELECT job_id FROM ledger_failures ORDER BY id") == [
        (str(number),) for number in range(35)]


def test_adding_never_waits_for_the_database(path: Path) -> None:
    """A locked file holds up the thread, not the one who records a job's end."""
    database(path).write([ended("0")])
    lock = sqlite3.connect(str(path), isolation_level=None)
    lock.execute("BEGIN EXCLUSIVE")
    writer = LedgerWriter(settings(path))
    spent_s = -time.thread_time()
    for number in range(1, 101):
        writer.add(ended(str(number)))
    spent_s += time.thread_time()
    assert spent_s < 1  # CPU time of this thread; it slept for nobody, or the lock would still hold
    assert not writer.flush(0.2)
    lock.execute("ROLLBACK")
    assert writer.flush()
    assert ends_in(path) == 101


def test_outage_is_one_line_and_loses_nothing(path: Path, log: pytest.LogCaptureFixture) -> None:
    """A lock of another process: one warning, one line when it is over, all rows there."""
    database(path).write([ended("0")])
    lock = sqlite3.connect(str(path), isolation_level=None)
    lock.execute("BEGIN EXCLUSIVE")
    writer = LedgerWriter(settings(path))
    for number in range(1, 6):
        writer.add(ended(str(number)))
    wait_until(lambda: writer._failures >= 3, 60, "three attempts", 0.01)
    assert warnings(log) == [
        f"failure ledger {path} cannot be written now: the failure ledger {path}: database is "
        "locked. Jobs are not affected; up to 10000 rows wait in memory"]
    lock.execute("ROLLBACK")
    assert writer.flush()
    assert ends_in(path) == 6
    assert len(warnings(log)) == 1
    assert log.records[-1].getMessage() == (
        f"failure ledger {path} is written again; 0 rows were dropped meanwhile")


def test_missing_folder_that_comes_back(tmp_path: Path, log: pytest.LogCaptureFixture) -> None:
    """A path that cannot be is an outage; once it can be, the rows are written."""
    folder = tmp_path / "not-a-folder"
    folder.touch()
    writer = LedgerWriter(settings(folder / "ledger.sqlite"))
    writer.add(ended("1"))
    wait_until(lambda: writer._failures >= 2, 60, "two attempts", 0.01)
    assert len(warnings(log)) == 1
    folder.unlink()
    assert writer.flush()
    assert ends_in(folder / "ledger.sqlite") == 1


def test_second_outage_is_told_again(path: Path, log: pytest.LogCaptureFixture) -> None:
    """Once per outage, not once per life."""
    database(path).write([ended("0")])
    writer = LedgerWriter(settings(path))
    for number in (1, 2):
        lock = sqlite3.connect(str(path), isolation_level=None)
        lock.execute("BEGIN EXCLUSIVE")
        writer.add(ended(str(number)))
        wait_until(lambda: writer._failures >= 2, 60, "two attempts", 0.01)
        lock.execute("ROLLBACK")
        assert writer.flush()
    assert len(warnings(log)) == 2


def test_full_queue_drops_and_counts(
    path: Path, log: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the database is away memory is bounded; the log says how many rows that cost."""
    monkeypatch.setattr(writer_module, "QUEUE_MAX", 10)
    database(path).write([ended("0")])
    lock = sqlite3.connect(str(path), isolation_level=None)
    lock.execute("BEGIN EXCLUSIVE")
    writer = LedgerWriter(settings(path))
    for number in range(1, 31):
        writer.add(ended(str(number)))
    assert len(writer._queue) == 10
    lock.execute("ROLLBACK")
    assert writer.flush()
    assert ends_in(path) == 11
    assert "20 rows were dropped" in log.records[-1].getMessage()


def test_full_disk(path: Path, log: pytest.LogCaptureFixture) -> None:
    """A file that may not grow costs a line; with room again the rows are written."""
    database(path).write([ended("0")])
    writer = LedgerWriter(settings(path))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    # Python ignores SIGXFSZ, so that writes fail with EFBIG: to SQLite a disk I/O error.
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size, hard))
    try:
        for number in range(1, 501):
            writer.add(ended(str(number), Cause.MEMORY))
        wait_until(lambda: writer._failures >= 2, 60, "two attempts", 0.01)
        assert ends_in(path) == 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert writer.flush()
    assert ends_in(path) == 501
    assert len(warnings(log)) == 1


def test_a_row_that_the_database_refuses(path: Path, log: pytest.LogCaptureFixture) -> None:
    """It alone is left out, with a line that names the job; the others are written."""
    writer = LedgerWriter(settings(path))
    for number in range(1, 9):
        odd = {"attempt": 2**70} if number == 5 else {}
        writer.add(ended(str(number), Cause.MEMORY, **odd))
    assert writer.flush()
    assert ends_in(path) == 7
    assert [r.getMessage() for r in log.records if "(5)" in r.getMessage()]
    assert warnings(log) == []


def test_flush_gives_up(path: Path, log: pytest.LogCaptureFixture) -> None:
    """A shutdown waits no longer than it may, and says how many rows it leaves."""
    database(path).write([ended("0")])
    lock = sqlite3.connect(str(path), isolation_level=None)
    lock.execute("BEGIN EXCLUSIVE")
    writer = LedgerWriter(settings(path))
    writer.add(ended("1"))
    assert not writer.flush(0.3)
    assert [line for line in warnings(log) if "1 rows were not written within 0.3 s" in line]
    lock.execute("ROLLBACK")
    assert writer.flush()


def test_flush_in_an_outage_is_short(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of several managers would else wait its full time for a database that is away."""
    monkeypatch.setattr(writer_module, "FLUSH_TIMEOUT_S", 600.0)
    monkeypatch.setattr(writer_module, "OUTAGE_FLUSH_TIMEOUT_S", 0.05)
    database(path).write([ended("0")])
    lock = sqlite3.connect(str(path), isolation_level=None)
    lock.execute("BEGIN EXCLUSIVE")
    writer = LedgerWriter(settings(path))
    writer.add(ended("1"))
    wait_until(lambda: writer._failures >= 2, 60, "two attempts", 0.01)
    began = time.monotonic()
    assert not writer.flush()
    assert time.monotonic() - began < 300  # not the 600 s of a flush without an outage
    lock.execute("ROLLBACK")
    wait_until(lambda: writer._thread is None, 60, "the row", 0.01)


def test_no_thread_to_be_had(
    path: Path, log: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A system without threads left costs one line; the next end tries again."""
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    writer = LedgerWriter(settings(path))
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        writer.add(ended("1"))
        writer.add(ended("2"))
        assert len(warnings(log)) == 1
    writer.add(ended("3"))
    assert writer.flush()
    assert ends_in(path) == 3


def test_old_rows_are_pruned_as_it_writes(path: Path) -> None:
    """The retention is kept without a cron job."""
    database(path).write([ended("1", Cause.MEMORY, at=86400)])
    writer = LedgerWriter(LedgerSettings(f"sqlite:///{path}", 3600))
    writer.add(ended("2", Cause.MEMORY, at=FUTURE))
    assert writer.flush()
    assert rows(path, "SELECT job_id FROM ledger_failures") == [("2",)]


def test_one_writer_for_all_managers_of_a_place(path: Path) -> None:
    """Several managers on one file do not stand in each other's way."""
    assert shared_writer(settings(path)) is shared_writer(settings(path))


FORKING = """
import os, sys
from pathlib import Path
from pulsar_failure_reasons.ledger.settings import LedgerSettings
from pulsar_failure_reasons.ledger.writer import shared_writer
from tests.ledger.samples import ended
settings = LedgerSettings("sqlite:///" + sys.argv[1], None)
writer = shared_writer(settings)
for number in range(50):
    writer.add(ended(str(number)))
children = []
for child in range(1, 4):
    pid = os.fork()
    if pid == 0:
        for number in range(50):
            writer.add(ended(str(1000 * child + number)))
        os._exit(0 if writer.flush() else 1)
    children.append(pid)
assert writer.flush()
sys.exit(max(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children))
"""


def test_forked_workers_write_what_is_theirs(path: Path) -> None:
    """As gunicorn forks them, also while the parent has entries waiting: each end once."""
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", FORKING, str(path)], cwd=root, timeout=600, check=True)
    assert ends_in(path) == 200


def test_file_that_was_moved_away(path: Path) -> None:
    """An admin who moves the file gets a new one; nothing goes into the old."""
    writer = LedgerWriter(settings(path))
    writer.add(ended("1"))
    assert writer.flush()
    path.rename(path.with_suffix(".old"))
    writer.add(ended("2"))
    assert writer.flush()
    assert (ends_in(path.with_suffix(".old")), ends_in(path)) == (1, 1)


def test_mistake_of_ours_ends_no_thread(
    path: Path, log: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is raised, the rows wait for a better moment."""
    from pulsar_failure_reasons.ledger.database import LedgerDatabase

    with monkeypatch.context() as patch:
        def fail(*_: Any) -> None:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        patch.setattr(LedgerDatabase, "write", fail)
        writer = LedgerWriter(settings(path))
        writer.add(ended("1"))
        wait_until(lambda: writer._failures >= 2, 60, "two attempts", 0.01)
    assert writer.flush()
    assert ends_in(path) == 1
    assert len(warnings(log)) == 1
