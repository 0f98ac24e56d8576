"""Downloads of the install step: what fails for a moment is tried again, and told."""

from __future__ import annotations

import os
from pathlib import Path
from typing import List

import pytest

from tests.real import install
from tests.real.processes import HarnessError

NO_LISTS = "E: Unable to locate package slurmd"
LOCKED = "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 77 (apt-get)"


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(install, "PAUSES_S", (0, 0, 0))


def programs(folder: Path, monkeypatch: pytest.MonkeyPatch, *install_says: str) -> Path:
    """Put an apt-get and a dpkg on PATH that note their calls; return the file of the notes.

    The n-th ``apt-get install`` or ``download`` fails with the n-th of these sentences; "" is done.
    """
    notes, answers = folder / "notes", folder / "answers"
    answers.write_text("".join(f"{words}\n" for words in install_says))
    note = f'#!/bin/sh\necho "$0 $*" | sed "s,.*/,," >> {notes}\n'
    (folder / "dpkg").write_text(note)
    (folder / "apt-get").write_text(
        f'{note}case "$*" in *update) exit 0;; esac\n'
        f"said=$(sed -n 1p {answers}); sed -i 1d {answers}\n"
        'echo Reading package lists; [ -z "$said" ] || { echo "$said"; exit 100; }\n'
        'case "$*" in *download*) touch condor_23.deb;; esac\n'
    )
    for name in ("apt-get", "dpkg"):
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return notes


def calls(notes: Path) -> List[str]:
    """Return the program and the last word of each call."""
    lines = [line.split() for line in notes.read_text().splitlines()]
    return [f"{words[0]} {words[-1]}" for words in lines]


def test_an_installation_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each failure is told in apt's words; the next attempt mends dpkg and gets lists first."""
    notes = programs(tmp_path, monkeypatch, NO_LISTS, LOCKED, "")
    monkeypatch.setattr(install, "missing_packages", lambda packages: [])
    install.apt_install("slurm", ["slurmd"])
    again = ["dpkg -a", "apt-get update", "apt-get slurmd"]
    assert calls(notes) == ["apt-get slurmd", *again, *again]
    told = capsys.readouterr().err
    assert f"slurm: apt-get install failed (1 of 4 attempts): {NO_LISTS}\n" in told
    assert f"slurm: apt-get install failed (2 of 4 attempts): {LOCKED}\n" in told


def test_an_installation_that_never_succeeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is an error with apt's last words after four attempts."""
    notes = programs(tmp_path, monkeypatch, *[NO_LISTS] * 9)
    with pytest.raises(HarnessError, match=f"(?s)install failed 4 times:.*{NO_LISTS}"):
        install.apt_install("slurm", ["slurmd"])
    assert calls(notes).count("apt-get slurmd") == 4


def test_a_download_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for packages that are only fetched."""
    notes = programs(tmp_path, monkeypatch, LOCKED, "")
    found = install.download("htcondor", [], ["condor"], tmp_path / "debs")
    assert found == [tmp_path / "debs/condor_23.deb"]
    assert calls(notes) == ["apt-get update", "apt-get condor"] * 2


def test_an_apt_that_hangs_is_a_failed_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is ended, and what the message says is that."""
    (tmp_path / "apt-get").write_text("#!/bin/sh\nexec sleep 60\n")
    (tmp_path / "apt-get").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(install, "APT_TIMEOUT_S", 0.2)
    done = install.run_apt(["update"])
    assert (done.returncode, "update: not done in 0.2 s" in done.stdout) == (124, True)
