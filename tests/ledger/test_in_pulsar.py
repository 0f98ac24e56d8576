"""The ledger behind a stock Pulsar: what ends up in it, and that no job notices it."""

from __future__ import annotations

import json
import logging
import sys
import time
from pathlib import Path
from typing import Any, Dict, Iterator, List

import pytest

from pulsar_failure_reasons.ledger import writer as writer_module
from pulsar_failure_reasons.managers import ledger as manager_ledger
from tests.manager.conftest import MakePulsar, make_pulsar, pulsar, slurm  # noqa: F401
from tests.manager.harness import Pulsar, Slurm, reason_of
from tests.pulsar_server import wait_until

from .samples import rows

pytestmark = pytest.mark.simulated
LOGGER = "pulsar.failure_reasons.ledger"


@pytest.fixture(autouse=True)
def own_writers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give each test the ledgers of a new process, which write soon."""
    monkeypatch.setattr(writer_module, "_writers", {})
    monkeypatch.setattr(writer_module, "GATHER_S", 0.05)
    monkeypatch.setattr(writer_module, "FLUSH_TIMEOUT_S", 60.0)
    monkeypatch.setattr(manager_ledger, "_told", set())
    yield


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the ledger is by default: Pulsar's persistence directory."""
    return tmp_path / "persisted" / "failure-ledger.sqlite"


def failures(path: Path) -> List[Any]:
    """Return some columns of all failures."""
    return list(rows(path, "SELECT job_id, manager, tool_id, cause, runner_state, node IS NOT NULL,"
                           " external_id FROM ledger_failures ORDER BY id"))


def ends(path: Path) -> Dict[str, int]:
    """Return how many jobs ended, by cause."""
    return dict(rows(path, "SELECT cause, sum(ends) FROM ledger_ends WHERE span_s = 86400 "
                           "GROUP BY cause"))


def test_ends_of_all_kinds(pulsar: Pulsar, path: Path) -> None:  # noqa: F811
    """A limit makes a row with the tool's id; a good end and a tool's own error are counted."""
    walltime = pulsar.submit("1", "sleep 600", "-t 1")
    pulsar.submit("2", "true")
    pulsar.submit("3", "(exit 3)")
    statuses = [pulsar.end(job_id)["status"] for job_id in ("1", "2", "3")]
    assert statuses == ["failed", "complete", "complete"]
    pulsar.shutdown()
    assert failures(path) == [
        ("1", "_default_", "tool", "walltime", "walltime_reached", 1, walltime)]
    assert ends(path) == {"": 2, "walltime": 1}


def test_refused_submission(pulsar: Pulsar, path: Path) -> None:  # noqa: F811
    """It never had an id in the DRM, and is a row all the same."""
    pulsar.submit("1", "true", "--nonsense")
    assert reason_of(pulsar.end("1")) == "launch_error"
    pulsar.shutdown()
    assert failures(path) == [
        ("1", "_default_", "tool", "launch_error", "unknown_error", 0, None)]
    assert ends(path) == {"launch_error": 1}


def test_cancel_by_galaxy_is_no_end(pulsar: Pulsar, path: Path) -> None:  # noqa: F811
    """Nobody is to blame, so it is neither a failure nor counted."""
    pulsar.submit("1", "sleep 600", "-t 6000")
    pulsar.submit("2", "true")
    pulsar.proxy().kill("1")
    pulsar.end("2")
    assert pulsar.end("1")["status"] == "cancelled"
    pulsar.shutdown()
    assert (failures(path), ends(path)) == ([], {"": 1})


def test_no_command_line_is_stored(pulsar: Pulsar, path: Path) -> None:  # noqa: F811
    """Not in any column, and not in the file at all."""
    pulsar.submit("1", "sleep 600 # secret-of-a-scientist", "-t 1 --comment=a-project")
    pulsar.end("1")
    pulsar.shutdown()
    content = path.read_bytes()
    assert b"walltime" in content
    assert b"secret-of-a-scientist" not in content and b"a-project" not in content


def test_killed_between_record_and_status(
    make_pulsar: MakePulsar, slurm: Slurm, path: Path, tmp_path: Path  # noqa: F811
) -> None:
    """The end that the next server judges again is the same one: one row, one count."""
    first = make_pulsar()
    first.submit("1", "sleep 600", "-t 1")
    record = first.directory("1") / "runner_state"
    wait_until(record.exists, 60, "the record", 0.02)
    first.shutdown()
    assert not (first.directory("1") / "final_status").exists()
    before = json.loads(record.read_text())["recorded_at"]
    # So that an end that is recorded anew would have another time.
    wait_until(lambda: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()) > before, 60,
               "the next second", 0.02)
    writer_module._writers.clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pulsar_failure_reasons.observer._shared", {})
        second = make_pulsar()
        assert reason_of(second.end("1")) == "walltime"
        second.shutdown()
    assert json.loads(record.read_text())["recorded_at"] == before
    assert len(failures(path)) == 1
    assert ends(path) == {"walltime": 1}


def test_off(make_pulsar: MakePulsar, path: Path) -> None:  # noqa: F811
    """No file, and no word."""
    server = make_pulsar(failure_ledger=False)
    server.submit("1", "true")
    server.end("1")
    server.shutdown()
    assert not path.exists()


def test_reasons_are_off(
    pulsar: Pulsar, path: Path, monkeypatch: pytest.MonkeyPatch  # noqa: F811
) -> None:
    """The switch for everything switches the ledger off too."""
    monkeypatch.setenv("PULSAR_FAILURE_REASONS", "off")
    pulsar.submit("1", "sleep 600", "-t 1")
    pulsar.end("1")
    pulsar.shutdown()
    assert not path.exists()


def test_ledger_that_cannot_be_written(
    make_pulsar: MakePulsar, tmp_path: Path, caplog: pytest.LogCaptureFixture,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Jobs end as ever, with their reasons; the log has one warning for all of them."""
    monkeypatch.setattr(writer_module, "FLUSH_TIMEOUT_S", 0.1)  # it will be in vain
    (tmp_path / "file").touch()
    with caplog.at_level(logging.INFO, LOGGER):
        server = make_pulsar(failure_ledger=str(tmp_path / "file" / "x.sqlite"))
        for number in range(1, 6):
            server.submit(str(number), *(("sleep 600", "-t 1") if number == 1 else ("true",)))
        assert reason_of(server.end("1")) == "walltime"
        assert {server.end(str(number))["status"] for number in range(2, 6)} == {"complete"}
        wait_until(lambda: [r for r in caplog.records if "cannot be written" in r.getMessage()],
                   60, "the warning", 0.02)
    told = [r for r in caplog.records if r.levelno >= logging.WARNING and r.name == LOGGER]
    assert len(told) == 1


def test_without_sqlalchemy(
    make_pulsar: MakePulsar, path: Path, monkeypatch: pytest.MonkeyPatch,  # noqa: F811
    caplog: pytest.LogCaptureFixture,
) -> None:
    """One INFO line for the process, none for its jobs, and no ledger."""
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    with caplog.at_level(logging.INFO, LOGGER):
        server = make_pulsar()
        for number in ("1", "2"):
            server.submit(number, "true")
            server.end(number)
        server.shutdown()
    told = [(r.levelno, r.getMessage()) for r in caplog.records if r.name == LOGGER]
    assert told == [(logging.INFO, "no failure ledger is kept: it needs SQLAlchemy 2 "
                     "(pip install 'pulsar-failure-reasons[tools]')")]
    assert not path.exists()


def test_misspelt_option(
    make_pulsar: MakePulsar, caplog: pytest.LogCaptureFixture  # noqa: F811
) -> None:
    """It is told, as those of the managers are."""
    with caplog.at_level(logging.INFO, "pulsar.failure_reasons"):
        make_pulsar(failure_leger="off")
    assert [r.getMessage() for r in caplog.records if "failure_leger" in r.getMessage()] == [
        "manager _default_: option 'failure_leger' is not known; is 'failure_ledger' meant?"]
