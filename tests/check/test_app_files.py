"""Checks of folders, logging configuration and ledger."""

from __future__ import annotations

import os
import shutil
from collections import namedtuple
from pathlib import Path
from typing import Any, Iterator, Set

import pytest

from pulsar_failure_reasons.check.app_checks import CHECKS
from pulsar_failure_reasons.check.folders import check_folders
from pulsar_failure_reasons.check.ledger import check_ledger
from pulsar_failure_reasons.check.logs import check_logs
from pulsar_failure_reasons.ledger.database import LedgerDatabase
from pulsar_failure_reasons.ledger.schema import version
from tests.launchers.servers import SERVER_INI
from tests.manager.harness import Slurm, own_observers

from .harness import (
    NOBODY,
    as_nobody,
    codes,
    describe,
    found_in,
    listing,
    run_all,
    said,
    slurm_app,
)


@pytest.fixture(autouse=True)
def slurm(tmp_path: Path) -> Iterator[Slurm]:
    """A simulated Slurm, so that a manager can be made."""
    with Slurm(tmp_path / "slurm").in_use() as simulated:
        yield simulated


# ---- folders --------------------------------------------------------------------------------


def test_folders_that_will_do(tmp_path: Path) -> None:
    """Staging and persistence can be written; nothing is left in them."""
    path = slurm_app(tmp_path)
    before = listing(tmp_path / "staging")
    found = found_in(path, check_folders)
    assert [(f.code, f.about) for f in found] == [
        ("PFR301", "staging of _default_"), ("PFR301", "persistence")]
    assert listing(tmp_path / "staging") == before == {}


def test_folders_to_be_made(tmp_path: Path) -> None:
    """PFR303: Pulsar makes what is not there, where it may."""
    path = slurm_app(tmp_path)
    shutil.rmtree(tmp_path / "staging")
    found = found_in(path, check_folders)
    assert codes(found) == {"PFR301", "PFR303"}
    assert not (tmp_path / "staging").exists()
    (tmp_path / "staging").write_text("")
    assert codes(found_in(path, check_folders)) == {"PFR301", "PFR304"}


def test_folders_of_another_user(tmp_path: Path) -> None:
    """PFR302, PFR304: an ordinary user and a folder of root."""
    app = Path(slurm_app(tmp_path))
    app.write_text(app.read_text().replace(str(tmp_path / "staging"), "/usr")
                   .replace(str(tmp_path / "persisted"), "/usr/no-such-folder"))
    with own_observers():
        site = describe(str(app))
    with as_nobody():
        found = list(check_folders(site))
    assert codes(found) == {"PFR302", "PFR304", "PFR307"}
    assert said(found, "PFR307") == "/usr belongs to root"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a folder to another user")
def test_a_folder_that_is_pulsars(tmp_path: Path) -> None:
    """PFR307: root may write what is Pulsar's, which says nothing of Pulsar."""
    path = slurm_app(tmp_path)
    os.chown(tmp_path / "staging", NOBODY, NOBODY)
    assert codes(found_in(path, check_folders)) == {"PFR301", "PFR307"}


def test_little_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PFR305 tells how much is free."""
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(10**12, 10**12, 300 * 2**20))
    found = found_in(slurm_app(tmp_path), check_folders)
    assert codes(found) == {"PFR301", "PFR305"}
    assert "300 MB are free" in said(found, "PFR305")


def test_no_persistence(tmp_path: Path) -> None:
    """PFR306: __none__ is Pulsar's word for no persistence."""
    path = slurm_app(tmp_path)
    app = Path(path)
    app.write_text(app.read_text().replace(str(tmp_path / "persisted"), "__none__"))
    assert codes(found_in(path, check_folders)) == {"PFR301", "PFR306"}


# ---- the log --------------------------------------------------------------------------------

#: As pulsar-config writes it (tests/launchers/servers.py).
USUAL = SERVER_INI % {"port": 1, "app_factory": "x", "app_yml": "y"}


@pytest.mark.parametrize(
    "ini, expected",
    [
        (None, {"PFR314"}),
        ("[app:main]\npaste.app_factory = pulsar.web.wsgi:app_factory\n", {"PFR314"}),
        (USUAL, {"PFR311"}),
        # The root alone: what exists already is disabled.
        (USUAL.replace("root,pulsar", "root"), {"PFR312"}),
        (USUAL.replace("qualname = pulsar", "qualname = galaxy"), {"PFR312"}),
        (USUAL.replace("handlers = console\nqualname", "handlers =\nqualname"), {"PFR312"}),
        (USUAL.replace("level = DEBUG\nhandlers", "level = ERROR\nhandlers"), {"PFR312"}),
        (USUAL.replace("level = DEBUG\nhandlers", "level = WARN\nhandlers"), {"PFR313"}),
        (USUAL.replace("args = (sys.stderr,)\nlevel = DEBUG",
                       "args = (sys.stderr,)\nlevel = WARNING"), {"PFR313"}),
        # No level of its own: the root's holds.
        (USUAL.replace("level = DEBUG\nhandlers = console\nqualname",
                       "level = NOTSET\nhandlers = console\nqualname"), {"PFR311"}),
        (USUAL.replace("handlers = console\nqualname = pulsar\npropagate = 0",
                       "handlers =\nqualname = pulsar\npropagate = 1"), {"PFR311"}),
        (USUAL.replace("level = INFO", "level = LOUD"), {"PFR315"}),
        (USUAL.replace("[logger_pulsar]", "[logger_pulsra]"), {"PFR315"}),
        ("no section\n", {"PFR315"}),
    ],
)
def test_logging_configuration(tmp_path: Path, ini: Any, expected: Set[str]) -> None:
    """What server.ini lets through is told without setting it up."""
    server_ini = None
    if ini is not None:
        server_ini = str(tmp_path / "server.ini")
        Path(server_ini).write_text(ini)
    assert codes(found_in(slurm_app(tmp_path), check_logs, server_ini=server_ini)) == expected


# ---- the ledger -----------------------------------------------------------------------------


def test_ledger_that_will_do(tmp_path: Path) -> None:
    """A ledger that is not there yet is not made by the check; one of our version will do."""
    path = slurm_app(tmp_path)
    found = found_in(path, check_ledger)
    assert codes(found) == {"PFR321"}
    ledger = tmp_path / "persisted" / "failure-ledger.sqlite"
    assert said(found, "PFR321") == str(ledger) and not ledger.exists()
    with LedgerDatabase(f"sqlite:///{ledger}").transaction():
        pass
    before = listing(tmp_path / "persisted")
    assert codes(found_in(path, check_ledger)) == {"PFR321"}
    assert listing(tmp_path / "persisted") == before


def test_ledger_of_another_version(tmp_path: Path) -> None:
    """PFR322: a newer schema, and a file that is no database."""
    ledger = tmp_path / "persisted" / "failure-ledger.sqlite"
    path = slurm_app(tmp_path)
    database = LedgerDatabase(f"sqlite:///{ledger}")
    with database.transaction() as connection:
        connection.execute(version.update().values(version=99))
    assert codes(found_in(path, check_ledger)) == {"PFR322"}
    ledger.write_text("a text" * 1000)
    assert codes(found_in(path, check_ledger)) == {"PFR322"}


@pytest.mark.parametrize(
    "option, code",
    [
        ("off", "PFR323"),
        ("/etc/hostname/ledger.sqlite", "PFR322"),
        ("postgresql+psycopg://nobody@127.0.0.1:1/none", "PFR322"),
    ],
)
def test_ledger_option(tmp_path: Path, option: str, code: str) -> None:
    """The option failure_ledger is looked into as far as it leads."""
    found = found_in(slurm_app(tmp_path, failure_ledger=option), check_ledger)
    assert codes(found) == {code}


# ---- all together ---------------------------------------------------------------------------


def test_all_checks_change_nothing(tmp_path: Path) -> None:
    """On a healthy host no check finds a problem, and none changes a file."""
    path = slurm_app(tmp_path)
    ini = tmp_path / "server.ini"
    ini.write_text(USUAL)
    before = {**listing(tmp_path / "staging"), **listing(tmp_path / "persisted")}
    found = run_all(path, CHECKS, server_ini=str(ini))
    # PFR218 is for root alone.
    assert codes(found) - {"PFR218"} == {
        "PFR101", "PFR104", "PFR110", "PFR120", "PFR130", "PFR201", "PFR210", "PFR213", "PFR220",
        "PFR301", "PFR311", "PFR321",
    }
    assert {**listing(tmp_path / "staging"), **listing(tmp_path / "persisted")} == before
