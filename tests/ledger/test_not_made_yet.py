"""A ledger that its server has not made yet, told from one that lies elsewhere."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from sqlalchemy import inspect

from pulsar_failure_reasons.errors import LedgerError, LedgerNotMadeError
from pulsar_failure_reasons.ledger.database import EmptyLedger, LedgerDatabase
from pulsar_failure_reasons.report.build import build_report
from pulsar_failure_reasons.report.period import Period
from tests.check.harness import as_nobody
from tests.real.postgresql import PrivatePostgresql

from .samples import MONDAY, database

ROOT = Path(__file__).parents[2]


def error_of(path: Path) -> LedgerError:
    """Return what a reader of this file is told."""
    with pytest.raises(LedgerError) as caught:
        with database(path, read_only=True).transaction():
            pass
    return caught.value


def test_a_file_that_is_not_there_yet(tmp_path: Path) -> None:
    """Only where its folder is there, and nothing in its place."""
    assert type(error_of(tmp_path / "x.sqlite")) is LedgerNotMadeError
    assert type(error_of(tmp_path / "no" / "x.sqlite")) is LedgerError
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to("nowhere")
    for name in ("file", "file/x.sqlite", "link"):
        assert type(error_of(tmp_path / name)) is LedgerError, name


def test_a_folder_that_may_not_be_read() -> None:
    """Nobody can tell what is in it: not the same as nothing."""
    with tempfile.TemporaryDirectory() as home:
        Path(home).chmod(0o755)
        folder = Path(home) / "persisted"
        folder.mkdir()
        folder.chmod(0o600)
        try:
            with as_nobody():
                error = error_of(folder / "x.sqlite")
        finally:
            folder.chmod(0o700)
    assert type(error) is LedgerError
    assert str(error).endswith("persisted/x.sqlite: Permission denied")


def test_an_empty_ledger_stands_for_it(tmp_path: Path) -> None:
    """It has the file's name, and nothing in it; the file is not made."""
    path = tmp_path / "x.sqlite"
    report = build_report(EmptyLedger(f"sqlite:///{path}"), Period(None, MONDAY), ("cause",))
    assert (report.place, report.ends, report.groups) == (str(path), 0, ())
    assert not path.exists()


@pytest.mark.real
def test_postgresql_without_tables(server: PrivatePostgresql, tmp_path: Path) -> None:
    """`report` is empty for the server that will make them, an error for a URL that was typed."""
    app = tmp_path / "app.yml"
    app.write_text(json.dumps({"manager": {"type": "queued_slurm", "failure_ledger": server.url}}))
    codes = {}
    for option, value in (("--app", str(app)), ("--ledger", server.url)):
        done = subprocess.run(
            [sys.executable, "-m", "pulsar_failure_reasons", "report", option, value,
             "--format", "csv"], capture_output=True, text=True, timeout=600, cwd=ROOT)
        codes[option] = (done.returncode, done.stdout)
        assert server.password not in done.stderr
    assert codes == {"--app": (0, "cause,failures,ends,rate\n"), "--ledger": (2, "")}
    assert inspect(LedgerDatabase(server.url).engine).get_table_names() == []
