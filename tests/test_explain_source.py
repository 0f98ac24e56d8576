"""``explain --source auto`` guesses what a text is, and says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import List, Optional

import pytest

from pulsar_failure_reasons.cli import main

SACCT = "JobID|State|ExitCode\n7|TIMEOUT|0:0\n"
STDERR = (
    "slurmstepd-n1: error: *** JOB 7 ON n1 CANCELLED AT 2026-11-29T20:36:21 DUE TO TIME LIMIT ***\n"
)
QACCT = "jobnumber    7\nfailed       37  : qmaster enforced h_rt, h_cpu, or h_vmem limit\n"


def lines_of(capsys: pytest.CaptureFixture[str], *argv: str) -> List[str]:
    """Return what the command prints."""
    assert main(["explain", *argv]) == 0
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    "drm, text, guessed",
    [("slurm", SACCT, "sacct"), ("slurm", STDERR, "stderr"), ("sge", QACCT, "qacct"),
     ("slurm", "hello\n", None)],
)
def test_guessed(
    drm: str, text: str, guessed: Optional[str], tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The text form has a line of it, JSON a key; nothing is claimed of a text nobody knows."""
    path = tmp_path / "text"
    path.write_text(text)
    unknown = "nothing that tells; name --source, and --job where there are several"
    shown = f"{guessed} (guessed)" if guessed else unknown
    assert f"  read as:      {shown}" in lines_of(capsys, "--drm", drm, str(path))
    as_json = "\n".join(lines_of(capsys, "--drm", drm, "--format", "json", str(path)))
    assert json.loads(as_json)["guessed_source"] == guessed


def test_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is guessed where the source was named."""
    path = tmp_path / "text"
    path.write_text(SACCT)
    told = lines_of(capsys, "--drm", "slurm", "--source", "sacct", str(path))
    assert told and not any("read as:" in line for line in told)
    as_json = "\n".join(
        lines_of(capsys, "--drm", "slurm", "--source", "sacct", "--format", "json", str(path)))
    assert "guessed_source" not in json.loads(as_json)
