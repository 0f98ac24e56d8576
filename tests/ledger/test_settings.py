"""The options ``failure_ledger`` and ``failure_ledger_retention``."""

from __future__ import annotations

import subprocess
import sys
from typing import Any, Optional

import pytest

from pulsar_failure_reasons.errors import ConfigurationError
from pulsar_failure_reasons.ledger.settings import (
    LedgerSettings,
    NoLedger,
    as_url,
    ledger_settings,
    shown,
)
from pulsar_failure_reasons.ledger.spans import parse_span

TWO_YEARS_S = 63072000
DEFAULT = "sqlite:////srv/persisted/failure-ledger.sqlite"


@pytest.mark.parametrize(
    "value, url",
    [
        (None, DEFAULT),
        (True, DEFAULT),  # YAML's bare on
        ("auto", DEFAULT),
        ("/var/lib/ends.db", "sqlite:////var/lib/ends.db"),
        ("ends.db", "sqlite:////srv/persisted/ends.db"),
        ("postgresql+psycopg://pulsar@db/pulsar", "postgresql+psycopg://pulsar@db/pulsar"),
    ],
)
def test_place(value: Any, url: str) -> None:
    """A path, a URL, or the file in Pulsar's persistence directory."""
    given = {} if value is None else {"failure_ledger": value}
    assert ledger_settings("main", given, "/srv/persisted") == LedgerSettings(url, TWO_YEARS_S)


@pytest.mark.parametrize("value", [False, "off", "Off", "no", "none", 0])
def test_off(value: Any) -> None:
    """Also as YAML reads a bare off."""
    settings = ledger_settings("main", {"failure_ledger": value}, "/srv/persisted")
    assert settings == NoLedger("failure_ledger is off")


def test_no_persistence_directory() -> None:
    """No folder, no file in it; an operator who asked for one is told louder."""
    why = "Pulsar has no persistence_directory, and no full path is given"
    assert ledger_settings("main", {}, None) == NoLedger(why)
    assert ledger_settings("main", {"failure_ledger": "x.db"}, None) == NoLedger(why, wanted=True)


@pytest.mark.parametrize(
    "value, seconds",
    [("90d", 7776000), ("12 h", 43200), ("1y", 31536000), ("off", None), (False, None)],
)
def test_retention(value: Any, seconds: Optional[int]) -> None:
    """Spans with their unit, or for ever."""
    settings = ledger_settings("main", {"failure_ledger_retention": value}, "/srv/persisted")
    assert isinstance(settings, LedgerSettings) and settings.retention_s == seconds


@pytest.mark.parametrize("value", ["soon", 90, "0d", "-3d", "999999999y", ""])
def test_retention_that_cannot_work(value: Any) -> None:
    """The error names manager, option, value, and what to write."""
    with pytest.raises(ConfigurationError) as caught:
        ledger_settings("main", {"failure_ledger_retention": value}, "/srv/persisted")
    assert str(caught.value) == (
        f"manager main: option failure_ledger_retention is {value!r}; it must be off (keep all) "
        "or a span such as 12h, 7d, 2w, 1y"
    )


def test_empty_place() -> None:
    """Neither off nor a place."""
    with pytest.raises(ConfigurationError, match="option failure_ledger is empty"):
        ledger_settings("main", {"failure_ledger": " "}, "/srv/persisted")


@pytest.mark.parametrize(
    "text, seconds",
    [("7d", 604800), ("2w", 1209600), ("30m", 1800), ("7", None), ("d", None), ("1.5h", None)],
)
def test_span(text: str, seconds: Optional[int]) -> None:
    """A whole number with a unit, nothing else."""
    assert parse_span(text) == seconds


def test_no_password_is_shown() -> None:
    """Not in a log, whatever the password holds."""
    assert shown("postgresql+psycopg://pulsar:s3c@ret@db/pulsar") == (
        "postgresql+psycopg://pulsar:***@db/pulsar")
    assert shown("postgresql+psycopg://db/pulsar") == "postgresql+psycopg://db/pulsar"
    assert shown(as_url("/srv/a.db") or "") == "/srv/a.db"


WITHOUT_SQLALCHEMY = """
import sys
sys.modules["sqlalchemy"] = None
from pulsar_failure_reasons.errors import FailureReasonsError
from pulsar_failure_reasons.ledger import entry, writer
from pulsar_failure_reasons.ledger.settings import ledger_settings
print(ledger_settings("main", {}, "/srv"))
try:
    from pulsar_failure_reasons.ledger import database
except FailureReasonsError as error:
    print(error)
"""


def test_without_sqlalchemy() -> None:
    """What Pulsar loads works, there is no ledger, and its database says what to install."""
    said = subprocess.run([sys.executable, "-c", WITHOUT_SQLALCHEMY], capture_output=True,
                          text=True, timeout=600, check=True)
    needs = "SQLAlchemy 2 (pip install 'pulsar-failure-reasons[tools]')"
    assert said.stdout.splitlines() == [
        f'NoLedger(why="it needs {needs}", wanted=False)',
        f"the failure ledger needs {needs}",
    ]
    assert said.stderr == ""
