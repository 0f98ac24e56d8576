"""The command itself: what it lists, what a shell completes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import List

import pytest

from pulsar_failure_reasons.cli import PROGRAM, main

COMMAND = str(Path(sys.executable).with_name(PROGRAM))


def completed(typed: str) -> List[str]:
    """Return what bash is told for the last word of a line, as it asks by tab."""
    done = subprocess.run(
        [COMMAND], capture_output=True, text=True, timeout=600, check=True,
        env={**os.environ, "_PULSAR_FAILURE_REASONS_COMPLETE": "bash_complete",
             "COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split(" ")) - 1)},
    )
    return [line.partition(",")[2] for line in done.stdout.splitlines()]


def test_a_shell_completes() -> None:
    """Commands, and options and choices of a command whose module is read for it."""
    assert completed(f"{PROGRAM} re") == ["reconcile", "report"]
    assert "--since" in completed(f"{PROGRAM} report --s")
    assert completed(f"{PROGRAM} report --format p") == ["prometheus"]


def test_help_lists_all(capsys: pytest.CaptureFixture[str]) -> None:
    """With how to switch completion on."""
    assert main(["--help"]) == 0
    told = capsys.readouterr().out
    commands = ("check", "explain", "mirror", "reconcile", "report", "run")
    assert all(f"\n  {name} " in told for name in commands)
    assert "_PULSAR_FAILURE_REASONS_COMPLETE=bash_source" in told


def test_no_such_command(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit 2, with nothing on stdout."""
    assert main(["exlpain"]) == 2
    said = capsys.readouterr()
    assert said.out == "" and "No such command 'exlpain'" in said.err
