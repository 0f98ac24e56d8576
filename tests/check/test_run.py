"""Checks one after the other."""

from __future__ import annotations

from pulsar_failure_reasons.check.findings import Finding
from pulsar_failure_reasons.check.run import run_checks


def test_a_check_that_fails() -> None:
    """PFR199: a check that raises is a finding with its name and place, and the others go on."""
    def broken(subject: object) -> object:
        yield Finding("PFR306", "before")
        raise KeyError("oops")

    def fine(subject: object) -> object:
        yield Finding("PFR314", "after")

    found = list(run_checks([("the moon", broken), ("the sun", fine)], None))  # type: ignore
    assert [finding.code for finding in found] == ["PFR306", "PFR199", "PFR314"]
    assert "the check of the moon failed: KeyError: 'oops' (test_run.py, line" in found[1].what
