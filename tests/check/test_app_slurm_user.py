"""The check of whose jobs Slurm is asked for: its filter by user does not work for root."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pulsar_failure_reasons.check.slurm import check_slurm_user

from .harness import codes, found_in, write_app

SLURM = {"type": "queued_slurm"}
BY_SHELL = {"type": "queued_cli_classified", "shell_plugin": "LocalShell"}


@pytest.mark.parametrize("user, expected", [(0, {"PFR218"}), (1000, set())])
def test_queued_slurm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: int, expected: "set[str]"
) -> None:
    """As root each look gets all jobs of the cluster: PFR218, with the option that does it."""
    path = write_app(tmp_path, manager=SLURM)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    found = found_in(path, check_slurm_user)
    assert codes(found) == expected
    assert [finding.what for finding in found] == ["squeue --user=0"] * len(expected)


@pytest.mark.parametrize(
    "plugin, user, expected",
    [
        ("Slurm", "root", {"PFR218"}),
        ("Slurm", "galaxy", set()),
        # qstat leaves out other users' jobs for root too.
        ("SGE", "root", set()),
        # Nobody there: other checks tell.
        ("Slurm", "", set()),
    ],
)
def test_behind_a_shell_plugin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plugin: str, user: str, expected: "set[str]"
) -> None:
    """There the user who logs in counts."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "id").write_text(f"#!/bin/sh\n{f'echo {user}' if user else 'exit 1'}\n")
    (folder / "id").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    path = write_app(tmp_path, manager={**BY_SHELL, "job_plugin": plugin})
    assert codes(found_in(path, check_slurm_user)) == expected
