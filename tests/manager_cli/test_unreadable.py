"""Answers in JSON or XML that nobody can read: jobs must not stay as they are for ever.

OpenPBS and PBS Pro up to 2022 print JSON that is none where a job's environment holds a comma, a
quote or digits with a leading zero (openpbs issues 1255 and 2541, pull request 2049), and PBS Pro
up to 18.1 for any two jobs (pull request 585). Of LSF none is known that does the like.
"""

from __future__ import annotations

import logging
import os
import pwd
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Sequence

import pytest
from pulsar.managers.util.cli.shell.local import LocalShell

from pulsar_failure_reasons.drm.base import JobView, Phase
from pulsar_failure_reasons.errors import OutputParseError
from pulsar_failure_reasons.managers.cli_shell import Link
from pulsar_failure_reasons.managers.cli_source import LsfSource, PbsSource
from tests import simulated

from fake_drm import control  # isort: skip

assert simulated.FAKES  # it puts fake_drm on the path

ME = f"{pwd.getpwuid(os.geteuid()).pw_name}:{os.geteuid()}"
#: What stands before "job_state", in the JSON of each job and in the XML, as sed writes it.
DAMAGES = {
    "backslash and comma": r's/"job_state"/"FOO":"a\\,b","job_state"/',
    "quotes": r's/"job_state"/"FOO":"a "b" c","job_state"/',
    "leading zeros": r's/"job_state"/"FOO":005,"job_state"/',
    "a list of jobs in each": r's/"job_state"/"Jobs":{"job_state"/',
}
MakeDamaged = Callable[[str, str], str]


@pytest.fixture
def make_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MakeDamaged]:
    """Make a simulated DRM whose status command has its answers changed by sed on their way."""
    states: List[str] = []

    def make(flavour: str, damage: str) -> str:
        state = control.create(tmp_path / "drm", flavour)
        states.append(state)
        for name, value in control.environment(state).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
        name = "bjobs" if flavour == "lsf" else "qstat"
        program = tmp_path / name
        program.write_text(
            f'#!/bin/sh\n"{control.BIN}/{name}" "$@" > {tmp_path}/answer\nstatus=$?\n'
            f"sed '{damage}' < {tmp_path}/answer\nexit $status\n"
        )
        program.chmod(0o755)
        return state

    yield make
    for state in states:
        control.stop_all(state)


def _source() -> PbsSource:
    return PbsSource(Link(LocalShell, 60, "LocalShell"), "auto")


def _phases(views: Sequence[JobView]) -> Dict[str, Phase]:
    return {view.external_id: view.phase for view in views}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_openpbs(
    make_damaged: MakeDamaged, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The text is read in the same look, of living jobs and of ended ones; that is said once."""
    state = make_damaged("openpbs", damage)
    running = [f"{i}.pbs1" for i in control.add_jobs(state, 2, "running", ME)]
    ended, = [f"{i}.pbs1" for i in control.add_jobs(state, 1, "time_limit", ME)]
    source = _source()
    with caplog.at_level(logging.INFO, "pulsar.failure_reasons"):
        for _ in range(2):
            assert _phases(source.query_these([*running, ended], ())) == dict.fromkeys(
                running, Phase.RUNNING
            )
        assert _phases(source.query_ended([ended]) or ()) == {ended: Phase.ENDED}
    assert len([r for r in caplog.records if "its text is read" in r.getMessage()]) == 1


def test_json_is_asked_for_again(make_damaged: MakeDamaged, tmp_path: Path) -> None:
    """Text can be forged by users, so it is read only as long as the JSON is broken."""
    state = make_damaged("openpbs", DAMAGES["leading zeros"])
    ids = [f"{i}.pbs1" for i in control.add_jobs(state, 2, "running", ME)]
    source = _source()
    source.query_these(ids, ())
    (tmp_path / "qstat").unlink()
    before = len(control.commands(state, "qstat"))
    assert set(_phases(source.query_these(ids, ()))) == set(ids)
    asked = [argv for _, argv in control.commands(state, "qstat")][before:]
    assert len(asked) == 1 and "json" in asked[0]


def test_torque(make_damaged: MakeDamaged) -> None:
    """XML that is none (a bare & in a job's environment) is no end of all looking either."""
    state = make_damaged("torque", "s/<job_state>/<x>a & b<\\/x><job_state>/g")
    ids = [f"{i}.server1" for i in control.add_jobs(state, 2, "running", ME)]
    assert _phases(_source().query_these(ids, ())) == dict.fromkeys(ids, Phase.RUNNING)


def test_lsf(make_damaged: MakeDamaged, caplog: pytest.LogCaptureFixture) -> None:
    """Rows are read in the same look; a job whose id was lost is not said to be unknown."""
    state = make_damaged("lsf", r's/"STAT"/"FOO":"a\\.b","STAT"/')
    running, = control.add_jobs(state, 1, "running", ME, name="pulsar_1")
    ended, = control.add_jobs(state, 1, "failed", ME)
    source = LsfSource(Link(LocalShell, 60, "LocalShell"), "auto")
    with caplog.at_level(logging.INFO, "pulsar.failure_reasons"):
        for _ in range(2):
            assert _phases(source.query_these([str(running), str(ended)], ())) == {
                str(running): Phase.RUNNING, str(ended): Phase.ENDED
            }
    assert len([r for r in caplog.records if "its rows are read" in r.getMessage()]) == 1
    with pytest.raises(OutputParseError):
        source.query_these((), ("pulsar_1",))


def test_nothing_can_be_read(make_damaged: MakeDamaged, tmp_path: Path) -> None:
    """Where the text cannot be read either there was no answer."""
    state = make_damaged("openpbs", "s/.*/Welcome to the cluster/")
    ids: List[Any] = [f"{i}.pbs1" for i in control.add_jobs(state, 2, "running", ME)]
    source = _source()
    (tmp_path / "answer").write_text("")
    with pytest.raises(OutputParseError):
        source.query_these(ids, ())
