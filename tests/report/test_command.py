"""``pulsar-failure-reasons report`` as an admin types it: exit code, stdout and stderr apart."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, NamedTuple, Optional

import pytest

from tests.ledger.samples import database, ended

from .small_ledger import fill

#: A process for each: seconds on a busy machine.
pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]


class Said(NamedTuple):
    """What a command left."""

    code: int
    out: str
    err: str


def run(*argv: str, cwd: Optional[Path] = None) -> Said:
    """Run the command in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "pulsar_failure_reasons", "report", *argv], capture_output=True,
        text=True, timeout=600, cwd=cwd or ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert "Traceback" not in done.stderr, done.stderr
    return Said(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of the small ledger."""
    path = tmp_path_factory.mktemp("ledger") / "ledger.sqlite"
    fill(database(path))
    return path


def app_yml(folder: Path, app: Dict[str, Any]) -> str:
    """Write an app.yml (JSON is YAML)."""
    path = folder / "app.yml"
    path.write_text(json.dumps({"staging_directory": str(folder / "staging"), **app}))
    return str(path)


@pytest.mark.parametrize(
    "form, begin",
    [
        ("table", "9 of 20 ended jobs failed with a reason (45.0%), all until "),
        ("json", '{\n  "version": 1,\n'),
        ("csv", "cause,failures,ends,rate\n"),
        ("prometheus", "# HELP pulsar_failures_in_period "),
        ("influx", "pulsar_ends ends=20i "),
        ("tpv", "# Memory for tools whose jobs were killed for memory"),
        ("html", "<!DOCTYPE html>\n"),
    ],
)
def test_formats(path: Path, form: str, begin: str) -> None:
    """Each to stdout, nothing to stderr, exit code 0."""
    said = run("--ledger", str(path), "--since", "all", "--format", form)
    assert (said.code, said.err) == (0, "")
    assert said.out.startswith(begin)


def test_output_to_a_file(path: Path, tmp_path: Path) -> None:
    """The file has it, stdout nothing."""
    page = tmp_path / "report.html"
    said = run("--ledger", str(path), "--since", "all", "--format", "html", "-o", str(page))
    assert said == (0, "", f"written: {page}\n")
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


def test_output_to_a_device(path: Path) -> None:
    """A device is written to, not replaced by a file."""
    argv = ("--ledger", str(path), "--since", "all", "--format", "csv", "--output", "/dev/stdout")
    said = run(*argv)
    assert said.code == 0 and said.out.startswith("cause,failures,ends,rate")
    assert not os.path.isfile("/dev/stdout.new")


def test_ledger_of_a_server(path: Path, tmp_path: Path) -> None:
    """By its app.yml: the option of a manager, or the file in the persistence directory."""
    app = {"manager": {"type": "queued_slurm", "failure_ledger": str(path)}}
    said = run("--app", app_yml(tmp_path, app), "--since", "all", "--format", "csv")
    assert (said.code, said.err) == (0, "")
    assert "memory,4,20,0.2" in said.out
    database(tmp_path / "failure-ledger.sqlite").write([ended("1")])
    app = {"manager": {"type": "queued_slurm"}, "persistence_directory": str(tmp_path)}
    said = run("--app", app_yml(tmp_path, app), "--since", "all", "--by", "tool", "--format", "csv")
    assert said == (0, "tool,failures,ends,rate\nhisat2,0,1,0.0\n", "")


def test_relative_path(path: Path) -> None:
    """From the current folder, as any path that is typed."""
    said = run("--ledger", path.name, "--since", "all", "--format", "influx", cwd=path.parent)
    assert said.code == 0


def refusal(said: Said) -> str:
    """Return the one line of a command that could not run."""
    assert said.code == 2
    assert said.out == ""
    lines = [line for line in said.err.splitlines() if line]
    assert len(lines) == 1, said.err
    return lines[0]


def test_empty_period(path: Path) -> None:
    """A report of nothing, a word on stderr, and no error: nothing failed."""
    said = run("--ledger", str(path), "--since", "1h", "--format", "csv")
    assert (said.code, said.out) == (0, "cause,failures,ends,rate\n")
    assert "no job ended in this period" in said.err
    assert str(path) in said.err and "--since all" in said.err


def test_missing_ledger(tmp_path: Path) -> None:
    """The file's name; and none is made."""
    said = refusal(run("--ledger", str(tmp_path / "no.sqlite")))
    assert said.endswith(f"the failure ledger {tmp_path / 'no.sqlite'}: there is no such file; "
                         "no job has ended yet, or it lies elsewhere")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "form, begin",
    [
        ("table", "0 of 0 ended jobs failed with a reason (-), "),
        ("csv", "cause,failures,ends,rate\n"),
        ("prometheus", "# HELP pulsar_failures_in_period "),
        ("html", "<!DOCTYPE html>\n"),
    ],
)
def test_server_without_a_ledger_yet(tmp_path: Path, form: str, begin: str) -> None:
    """Before the first job has ended there is none: an empty report, for cron; none is made."""
    app = {"manager": {"type": "queued_slurm"}, "persistence_directory": str(tmp_path)}
    said = run("--app", app_yml(tmp_path, app), "--format", form)
    assert said.code == 0 and said.out.startswith(begin)
    assert said.err == (
        f"pulsar-failure-reasons report: no job has ended yet: {tmp_path}/failure-ledger.sqlite "
        "is made when the first one does\n")
    assert [file.name for file in tmp_path.iterdir()] == ["app.yml"]


def test_server_whose_folder_is_not_there(tmp_path: Path) -> None:
    """A relative persistence directory, seen from another folder than Pulsar's: an error."""
    app = {"manager": {"type": "queued_slurm"}, "persistence_directory": "persisted"}
    said = refusal(run("--app", app_yml(tmp_path, app), cwd=tmp_path))
    assert "persisted/failure-ledger.sqlite: there is no such file" in said


def test_server_that_keeps_no_ledger(tmp_path: Path) -> None:
    """A stock manager will never make one: an error."""
    app = {"manager": {"type": "queued_drmaa"}, "persistence_directory": str(tmp_path)}
    assert "failure-ledger.sqlite: there is no such file" in refusal(
        run("--app", app_yml(tmp_path, app)))


def test_server_whose_ledger_is_another_file(tmp_path: Path) -> None:
    """app.yml names a file that holds something else: an error, as where it is named here."""
    other = tmp_path / "galaxy.sqlite"
    other.write_bytes(b"")
    app = {"manager": {"type": "queued_slurm", "failure_ledger": str(other)}}
    assert "holds no failure ledger" in refusal(run("--app", app_yml(tmp_path, app)))


def test_server_whose_ledger_is_off(tmp_path: Path) -> None:
    """It says why."""
    app = {"manager": {"type": "queued_slurm", "failure_ledger": False}}
    assert refusal(run("--app", app_yml(tmp_path, app))).endswith(
        "has no failure ledger: failure_ledger is off")


def test_server_with_two_ledgers(tmp_path: Path) -> None:
    """They are named, so that one can be chosen."""
    managers = {name: {"type": "queued_slurm", "failure_ledger": f"/srv/{name}.sqlite"}
                for name in ("a", "b")}
    said = refusal(run("--app", app_yml(tmp_path, {"managers": managers})))
    assert said.endswith("several ledgers, name one with --ledger: /srv/a.sqlite, /srv/b.sqlite")


@pytest.mark.parametrize("argv", [(), ("--app", "a.yml", "--ledger", "x.sqlite")])
def test_not_one_ledger(argv: Any) -> None:
    """Neither, or both."""
    assert refusal(run(*argv)).endswith(
        "name the ledger: --app APP.YML, or --ledger PATH or URL")


def test_missing_app_yml(tmp_path: Path) -> None:
    """The file's name and the system's word."""
    assert str(tmp_path / "no.yml") in refusal(run("--app", str(tmp_path / "no.yml")))


@pytest.mark.parametrize(
    "argv, told",
    [
        (("--by", "colour"), "--by 'colour': 'colour' cannot be grouped by; choose of: cause"),
        (("--by", "day,week"), "one time at most"),
        (("--since", "yesterday"), "--since 'yesterday' is neither a span (12h, 7d, 2w, 1y)"),
        (("--until", "never"), "--until 'never' is neither a span"),
        (("--since", "1d", "--until", "2d"), "--since 1d is not before the end"),
        (("--since", "all", "--output", "/no/such/folder/x"),
         "/no/such/folder/x cannot be written: No such file"),
    ],
)
def test_what_cannot_be_asked(path: Path, argv: Any, told: str) -> None:
    """One line that says what is wrong."""
    assert told in refusal(run("--ledger", str(path), *argv))


def test_other_database(tmp_path: Path) -> None:
    """A file that is none of ours."""
    other = tmp_path / "galaxy.sqlite"
    other.write_bytes(b"")
    assert "holds no failure ledger" in refusal(run("--ledger", str(other)))


@pytest.mark.parametrize(
    "url, told",
    [
        ("mysql://h/d", "mysql"),
        ("postgresql+psycopg://127.0.0.1:1/d", "127.0.0.1"),
    ],
)
def test_url_without_an_answer(url: str, told: str) -> None:
    """A database that is not served, or a server that is not there."""
    assert told in refusal(run("--ledger", url))


def test_other_version(tmp_path: Path) -> None:
    """Which version it has, and what to do."""
    path = tmp_path / "x.sqlite"
    database(path).write([ended("1")])
    with sqlite3.connect(str(path)) as connection:
        connection.execute("UPDATE ledger_version SET version = 2")
    connection.close()
    assert "has schema version 2 and this version of pulsar-failure-reasons works with 1" in (
        refusal(run("--ledger", str(path))))


def test_unknown_format(path: Path) -> None:
    """Click's own words, with the formats."""
    said = run("--ledger", str(path), "--format", "xml")
    assert said.code == 2 and "'tpv'" in said.err and said.out == ""


def test_help_has_examples() -> None:
    """What to type."""
    said = run("--help")
    assert said.code == 0
    assert "report --app /etc/pulsar/app.yml --since 7d --by cause,tool" in said.out
