"""How each DRM is asked: how many commands, what is asked of old versions, what is forgotten."""

from __future__ import annotations

import logging
import os
import pwd
import re
from pathlib import Path
from typing import Any, Callable, Iterator, List, Optional, Sequence, Tuple

import pytest
from pulsar.managers.util.cli.shell.local import LocalShell

from pulsar_failure_reasons.drm.base import Ending, JobView, Phase
from pulsar_failure_reasons.errors import DrmUnreachableError
from pulsar_failure_reasons.execute import CommandResult
from pulsar_failure_reasons.managers.cli_shell import Link
from pulsar_failure_reasons.managers.cli_source import GridEngineSource, LsfSource, PbsSource
from tests import simulated

from fake_drm import control  # isort: skip

assert simulated.FAKES  # it puts fake_drm on the path

ME = f"{pwd.getpwuid(os.geteuid()).pw_name}:{os.geteuid()}"
MakeDrm = Callable[..., str]


@pytest.fixture
def make_drm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MakeDrm]:
    """Make a simulated DRM and put its commands on PATH, behind those in ``tmp_path/odd``."""
    states: List[str] = []

    def make(flavour: str, **settings: Any) -> str:
        state = control.create(tmp_path / "drm", flavour, **settings)
        for name, value in control.environment(state).items():
            monkeypatch.setenv(name, value)
        (tmp_path / "odd").mkdir()
        monkeypatch.setenv("PATH", f"{tmp_path / 'odd'}{os.pathsep}{os.environ['PATH']}")
        states.append(state)
        return state

    yield make
    for state in states:
        control.stop_all(state)


def _odd(tmp_path: Path, name: str, script: str) -> None:
    """Put a command before the simulated one, which is ``$REAL`` in it."""
    program = tmp_path / "odd" / name
    program.write_text(f'#!/bin/sh\nREAL="{control.BIN}/{name}"\n{script}\n')
    program.chmod(0o755)


def _link() -> Link:
    return Link(LocalShell, 60, "LocalShell")


def _by_id(views: Sequence[JobView]) -> "dict[str, Tuple[Phase, Optional[Ending]]]":
    return {v.external_id: (v.phase, v.end.ending if v.end else None) for v in views}


# ---- LSF ---------------------------------------------------------------------------------------


def test_lsf_looks(make_drm: MakeDrm) -> None:
    """300 jobs are one bjobs; those that it has forgotten are one bhist."""
    state = make_drm("lsf")
    running = [str(i) for i in control.add_jobs(state, 297, "running", ME)]
    ended = [str(i) for i in control.add_jobs(state, 3, "failed", ME)]
    control.forget(state, *map(int, ended[1:]))
    source = LsfSource(_link(), "auto")
    seen = _by_id(source.query_these(running + ended, ()))
    assert len(seen) == 298
    assert seen[running[0]] == (Phase.RUNNING, None)
    assert seen[ended[0]] == (Phase.ENDED, Ending.BADLY)
    assert len(control.commands(state, "bjobs")) == 1
    gone = source.query_ended(ended[1:])
    assert _by_id(gone or []) == {i: (Phase.ENDED, Ending.BADLY) for i in ended[1:]}
    assert len(control.commands(state, "bhist")) == 1
    assert LsfSource(_link(), "none").query_ended(ended) is None


def test_lsf_without_json(make_drm: MakeDrm, tmp_path: Path) -> None:
    """An LSF that knows no -json is asked for rows, and not for JSON again."""
    state = make_drm("lsf")
    ids = [str(i) for i in control.add_jobs(state, 2, "running", ME)]
    refuse = 'case "$*" in *-json*) echo "bjobs: Illegal option -- j" >&2; exit 255;; esac'
    _odd(tmp_path, "bjobs", f'{refuse}\nexec "$REAL" "$@"')
    source = LsfSource(_link(), "auto")
    for _ in range(3):
        assert set(_by_id(source.query_these(ids, ()))) == set(ids)
    assert len(control.commands(state, "bjobs")) == 3


def test_lsf_unknown_to_all(make_drm: MakeDrm) -> None:
    """Jobs that LSF does not know are an answer, an LSF that is down is none."""
    state = make_drm("lsf")
    source = LsfSource(_link(), "auto")
    assert list(source.query_these(["77"], ())) == []
    assert list(source.query_ended(["77"]) or ()) == []
    control.set_settings(state, controller_down=True)
    with pytest.raises(DrmUnreachableError):
        source.query_these(["77"], ())


def test_lsf_by_name(make_drm: MakeDrm) -> None:
    """A job whose id was lost is found by its name in the list of our jobs."""
    state = make_drm("lsf")
    found, = control.add_jobs(state, 1, "running", ME, name="pulsar_1")
    control.add_jobs(state, 2, "running", ME, name="pulsar_2")
    views = LsfSource(_link(), "auto").query_these((), ("pulsar_1",))
    assert [(v.external_id, v.job_name) for v in views] == [(str(found), "pulsar_1")]


# ---- PBS ---------------------------------------------------------------------------------------


def test_openpbs_looks(make_drm: MakeDrm) -> None:
    """200 jobs are one qstat, the flavour is asked once, ended jobs are one qstat -x."""
    state = make_drm("openpbs")
    running = [f"{i}.pbs1" for i in control.add_jobs(state, 200, "running", ME)]
    ended, = [f"{i}.pbs1" for i in control.add_jobs(state, 1, "time_limit", ME)]
    source = PbsSource(_link(), "auto")
    assert len(source.query_these([*running, ended], ())) == 200
    assert len(source.query_these([*running, ended], ())) == 200
    assert len(control.commands(state, "qstat")) == 3
    assert _by_id(source.query_ended([ended]) or ()) == {ended: (Phase.ENDED, Ending.LIMIT)}
    assert len(control.commands(state, "qstat")) == 4
    assert PbsSource(_link(), "none").query_ended([ended]) is None


def test_openpbs_without_history(make_drm: MakeDrm, caplog: pytest.LogCaptureFixture) -> None:
    """A server that keeps no history is not taken to have forgotten jobs that run; said once."""
    state = make_drm("openpbs", accounting="off")
    running = [f"{i}.pbs1" for i in control.add_jobs(state, 2, "running", ME)]
    source = PbsSource(_link(), "auto")
    assert len(source.query_these(running, ())) == 2
    with caplog.at_level(logging.WARNING, "pulsar.failure_reasons"):
        assert source.query_ended(running) is None
        assert source.query_ended(running) is None
    assert len([r for r in caplog.records if "job_history_enable" in r.getMessage()]) == 1


def test_openpbs_without_json(make_drm: MakeDrm, tmp_path: Path) -> None:
    """A PBS Pro that knows no -F is asked for text."""
    state = make_drm("openpbs")
    ids = [f"{i}.pbs1" for i in control.add_jobs(state, 2, "running", ME)]
    refuse = """case "$*" in *-F*) echo "qstat: invalid option -- 'F'" >&2; exit 2;; esac"""
    _odd(tmp_path, "qstat", f'{refuse}\nexec "$REAL" "$@"')
    source = PbsSource(_link(), "auto")
    for _ in range(2):
        assert set(_by_id(source.query_these(ids, ()))) == set(ids)


def test_torque_looks(make_drm: MakeDrm) -> None:
    """Torque answers in XML; jobs that it does not know are an answer; it keeps no history."""
    state = make_drm("torque")
    ids = [f"{i}.server1" for i in control.add_jobs(state, 20, "running", ME)]
    source = PbsSource(_link(), "auto")
    assert set(_by_id(source.query_these([*ids, "9999.server1"], ()))) == set(ids)
    assert list(source.query_these(["9999.server1"], ())) == []
    assert source.query_ended(ids) is None


def _submit_elsewhere(state: str, submit: Sequence[str], folder: Path) -> str:
    """Submit a sleeping job whose streams lie in a Pulsar job directory; return its id."""
    (folder / "metadata").mkdir(parents=True)
    script = folder / "command.sh"
    script.write_text("#!/bin/sh\n/bin/sleep 600\n")
    done = control.run(state, *submit, str(script), cwd=str(folder))
    assert done.returncode == 0, done
    return str(re.search("[0-9]+", done.stdout).group())  # type: ignore[union-attr]


STREAMS = ("-o", "metadata/job_stdout", "-e", "metadata/job_stderr")


@pytest.mark.parametrize("flavour, server", [("openpbs", "pbs1"), ("torque", "server1")])
def test_pbs_by_name(make_drm: MakeDrm, tmp_path: Path, flavour: str, server: str) -> None:
    """A living job of ours whose id was lost is found by qselect, and where its streams lie."""
    state = make_drm(flavour)
    control.add_jobs(state, 1, "running", "somebody:77", name="pulsar_1")
    control.add_jobs(state, 1, "failed", ME, name="pulsar_1")
    control.add_jobs(state, 1, "running", ME, name="pulsar_2")
    found = _submit_elsewhere(state, ["qsub", "-N", "pulsar_1", *STREAMS], tmp_path / "1")
    views = PbsSource(_link(), "auto").query_these((), ("pulsar_1",))
    assert [(v.external_id, v.job_name, v.workdir) for v in views] == [
        (f"{found}.{server}", "pulsar_1", str(tmp_path / "1"))]


def test_lsf_by_name_and_where_it_works(make_drm: MakeDrm, tmp_path: Path) -> None:
    """A job whose id was lost is found in the user's list, and where its streams lie."""
    state = make_drm("lsf")
    control.add_jobs(state, 1, "running", ME, name="pulsar_2")
    streams = [str(tmp_path / "1" / word) if "/" in word else word for word in STREAMS]
    found = _submit_elsewhere(state, ["bsub", "-J", "pulsar_1", *streams, "sh"], tmp_path / "1")
    views = LsfSource(_link(), "auto").query_these((), ("pulsar_1",))
    assert [(v.external_id, v.workdir) for v in views] == [(found, str(tmp_path / "1"))]


def test_lsf_that_is_too_old_for_names(make_drm: MakeDrm, tmp_path: Path) -> None:
    """Without -json a lost id cannot be found, and that is no outage for the other jobs."""
    state = make_drm("lsf")
    other, = map(str, control.add_jobs(state, 1, "running", ME, name="pulsar_2"))
    refuse = 'case "$*" in *-json*) echo "bjobs: Illegal option." >&2; exit 255;; esac'
    _odd(tmp_path, "bjobs", f'{refuse}\nexec "$REAL" "$@"')
    source = LsfSource(_link(), "auto")
    assert list(source.query_these((), ("pulsar_1",))) == []
    assert set(_by_id(source.query_these([other], ("pulsar_1",)))) == {other}


# ---- Grid Engine -------------------------------------------------------------------------------


def test_grid_engine_looks(make_drm: MakeDrm) -> None:
    """All jobs are one qstat; several ended ones are one qacct, and one for what it lacks."""
    state = make_drm("sge", accounting_lag=0)
    control.add_jobs(state, 50, "running", ME)
    ended = [str(i) for i in control.add_jobs(state, 3, "failed", ME)]
    source = GridEngineSource(_link(), "auto")
    assert len(source.query_these((), ())) == 50
    assert len(control.commands(state, "qstat")) == 1
    gone = _by_id(source.query_ended(ended) or ())
    assert {i: gone[i] for i in ended} == {i: (Phase.ENDED, Ending.BADLY) for i in ended}
    assert len(control.commands(state, "qacct")) == 1
    assert "9999" not in _by_id(source.query_ended([*ended, "9999"]) or ())
    assert len(control.commands(state, "qacct")) == 3


class Scripted:
    """A link whose answers are given."""

    where = "a script"

    def __init__(self, answers: "dict[str, CommandResult]") -> None:
        self.answers = answers

    def user(self) -> str:
        """Return who we are."""
        return "galaxy"

    def run_all(self, commands: Sequence[Sequence[str]], clean: Any) -> List[CommandResult]:
        """Answer by the command's name."""
        return [self.answers[argv[0]] for argv in commands]


def _qstat(state: str) -> CommandResult:
    job = (
        f"<job_list><JB_job_number>7</JB_job_number><JB_name>pulsar_1</JB_name>"
        f"<JB_owner>galaxy</JB_owner><state>{state}</state></job_list>"
    )
    jobs = job if state else ""
    return CommandResult(
        0, f"<?xml version='1.0'?>\n<job_info><queue_info>{jobs}</queue_info></job_info>\n", "")


BAR = "=" * 62
KILLED = (
    f"{BAR}\nqname all.q\njobname pulsar_1\njobnumber 7\ntaskid undefined\n"
    "failed 100 : assumedly after job\nexit_status 137\nru_wallclock 3\n"
)


def test_grid_engine_by_name(make_drm: MakeDrm, tmp_path: Path) -> None:
    """qstat -j tells where the jobs of a wanted name work; it is asked for no others."""
    state = make_drm("sge")
    control.add_jobs(state, 1, "running", ME, name="pulsar_2")
    streams = [f":{tmp_path / '1' / word}" if "/" in word else word for word in STREAMS]
    submit = ["qsub", "-S", "/bin/sh", "-N", "pulsar_1", *streams]
    found = _submit_elsewhere(state, submit, tmp_path / "1")
    source = GridEngineSource(_link(), "auto")
    views = {v.job_name: v for v in source.query_these((), ("pulsar_1",))}
    assert (views["pulsar_1"].external_id, views["pulsar_1"].workdir) == (
        found, str(tmp_path / "1"))
    assert views["pulsar_2"].workdir is None
    assert [argv for _, argv in control.commands(state, "qstat")][1:] == [
        ["qstat", "-xml", "-j", found]]
    source.query_these([found], ())
    assert len(control.commands(state, "qstat")) == 3


@pytest.mark.parametrize(
    "state, deleted", [("dr", True), ("dqw", True), ("r", False), ("hqw", False)])
def test_grid_engine_shows_a_deletion(state: str, deleted: bool) -> None:
    """The letter d is Grid Engine's only word of a deletion; what it means is judged later."""
    link = Scripted({"qstat": _qstat(state)})
    views = GridEngineSource(link, "none").query_these(["7"], ())  # type: ignore[arg-type]
    assert [(view.external_id, view.deleted) for view in views] == [("7", deleted)]
