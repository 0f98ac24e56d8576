"""The table of codes and the finding as values."""

from __future__ import annotations

import re
from pathlib import Path

from pulsar_failure_reasons.check.codes import CODES, THEMES, Level
from pulsar_failure_reasons.check.findings import Finding, count_by_level, exit_code_of


def test_a_problem_has_advice() -> None:
    """Every warning and error says what to do, or needs no more than its own sentence."""
    silent = {code for code, row in CODES.items()
              if row.level in (Level.WARNING, Level.ERROR) and not row.do}
    assert silent == {"PFR406"}


def test_codes_have_themes() -> None:
    """Every code is PFR and three digits, of one of the themes of the documentation."""
    prefixes = tuple(prefix for prefix, _ in THEMES)
    assert all(re.fullmatch(r"PFR\d{3}", code) and code.startswith(prefixes) for code in CODES)


def test_every_code_has_a_test() -> None:
    """Each code stands in a test of this folder, or of the launchers', beside this one."""
    here = Path(__file__).resolve().parent
    files = [p for p in here.glob("test_*.py") if p != Path(__file__).resolve()]
    text = "\n".join(path.read_text() for path in files)
    assert [code for code in CODES if code not in text] == []


def test_exit_code() -> None:
    """Only an error makes the exit code 1."""
    warning, error = Finding("PFR306", "off"), Finding("PFR302", "no")
    assert exit_code_of([]) == 0
    assert exit_code_of([warning]) == 0
    assert exit_code_of([warning, error]) == 1
    assert count_by_level([warning, error, error]) == {
        "ok": 0, "info": 0, "warning": 1, "error": 2}


def test_json_form() -> None:
    """A finding has all five keys, its own advice before the table's, numbers where it has some."""
    finding = Finding("PFR305", "10 MB", "staging", do="delete", numbers={"free_bytes": 10})
    assert finding.to_dict() == {
        "code": "PFR305", "level": "warning", "about": "staging", "what": "10 MB",
        "do": "delete", "numbers": {"free_bytes": 10},
    }
    assert Finding("PFR305", "10 MB").to_dict()["do"] == "make room"
    assert "numbers" not in Finding("PFR305", "10 MB").to_dict()
