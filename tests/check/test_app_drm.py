"""Checks of the DRM: commands, libraries, Slurm's configuration, the dry run."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable, Dict, Iterator, Set

import pytest

from pulsar_failure_reasons.check.drm import check_commands, check_queries
from pulsar_failure_reasons.check.options import check_options
from pulsar_failure_reasons.check.slurm import check_slurm, parse_config
from tests.manager.harness import Slurm
from tests.manager_htcondor.harness import Pool

from .harness import PATIENCE_S, codes, found_in, said, slurm_app, write_app

FAKES = Path(__file__).resolve().parent.parent / "fakes"
DATA = Path(__file__).resolve().parent.parent / "data" / "slurm" / "config"


@pytest.fixture
def slurm(tmp_path: Path) -> Iterator[Slurm]:
    """A simulated Slurm."""
    with Slurm(tmp_path / "slurm").in_use() as simulated:
        yield simulated


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[Pool]:
    """A simulated pool of HTCondor."""
    with Pool(tmp_path / "pool").in_use() as simulated:
        yield simulated


@pytest.fixture
def only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Leave only these of the simulated commands on PATH; returns their folder."""
    def leave(*names: str) -> Path:
        folder = tmp_path / "only"
        folder.mkdir()
        for name in names:
            (folder / name).symlink_to(FAKES / "bin" / name)
        # readlink, sh and env, for the commands themselves; a host's own Slurm is not wanted.
        for name in ("sh", "readlink", "env", "id", "sed", "printf", "cat"):
            found = next(p for p in ("/bin", "/usr/bin") if (Path(p) / name).exists())
            (folder / name).symlink_to(Path(found) / name)
        monkeypatch.setenv("PATH", str(folder))
        return folder

    return leave


# ---- commands and libraries -----------------------------------------------------------------


ALL = ("squeue", "sbatch", "scancel", "sacct", "scontrol")


@pytest.mark.parametrize(
    "there, options, expected",
    [
        (ALL, {}, {"PFR201"}),
        (("squeue", "sbatch", "scancel"), {}, {"PFR201", "PFR203"}),
        (("squeue", "sbatch", "scancel"), {"accounting": "none"}, {"PFR201"}),
        (("sbatch", "scancel", "sacct"), {}, {"PFR202"}),
        # Without sbatch the manager would submit by DRMAA, and there is none here.
        (("squeue", "sacct"), {}, {"PFR201", "PFR207"}),
        (("squeue", "sacct"), {"submit": "sbatch"}, {"PFR202"}),
    ],
)
def test_commands(
    tmp_path: Path, slurm: Slurm, only: Callable[..., Path], there: Any, options: Any,
    expected: Set[str],
) -> None:
    """What is missing is an error if no job works without it."""
    only(*there)
    assert codes(found_in(slurm_app(tmp_path, **options), check_commands)) == expected


def test_drmaa_that_is_there(
    tmp_path: Path, slurm: Slurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PFR206 where the package drmaa can be imported."""
    monkeypatch.setenv("PYTHONPATH", str(FAKES))
    found = found_in(slurm_app(tmp_path, submit="drmaa"), check_commands)
    assert codes(found) == {"PFR201", "PFR206"}


def test_bindings(tmp_path: Path, pool: Pool) -> None:
    """PFR204 tells the version of HTCondor's bindings."""
    path = write_app(tmp_path, manager={"type": "queued_htcondor_classified"})
    assert codes(found_in(path, check_commands)) == {"PFR204"}


def test_bindings_that_are_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PFR205 says what to install."""
    monkeypatch.setitem(sys.modules, "htcondor2", None)
    path = write_app(tmp_path, manager={"type": "queued_htcondor_classified"})
    found = found_in(path, check_options)
    assert codes(found) == {"PFR205"} and "[htcondor]" in found[0].advice


def test_a_host_that_does_not_answer(tmp_path: Path, only: Callable[..., Path]) -> None:
    """PFR208: the ssh behind the shell plugin fails."""
    ssh = only() / "ssh"
    ssh.write_text("#!/bin/sh\necho 'ssh: connect to host login1 port 22: refused' >&2\nexit 255\n")
    ssh.chmod(0o755)
    path = write_app(tmp_path, manager={
        "type": "queued_cli_classified", "job_plugin": "Slurm", "shell_plugin": "SecureShell",
        "shell_hostname": "login1", "shell_username": "me", "command_timeout": PATIENCE_S})
    found = found_in(path, check_commands)
    assert codes(found) == {"PFR208"} and "login1" in found[0].what


@pytest.mark.parametrize(
    "plugin, there, expected",
    [
        ("LSF", ("bjobs", "bsub", "bkill", "bhist"), {"PFR201"}),
        ("LSF", ("bjobs", "bsub", "bkill"), {"PFR201", "PFR203"}),
        ("Torque", ("qstat", "qsub"), {"PFR202"}),
        ("SGE", ("qstat", "qsub", "qdel", "qacct"), {"PFR201"}),
    ],
)
def test_commands_by_shell(
    tmp_path: Path, only: Callable[..., Path], plugin: str, there: Any, expected: Set[str]
) -> None:
    """Commands of other DRMs are looked for behind the shell plugin."""
    only(*there)
    path = write_app(
        tmp_path, manager={"type": "queued_cli_classified", "job_plugin": plugin,
                           "command_timeout": PATIENCE_S})
    assert codes(found_in(path, check_commands)) == expected


# ---- Slurm's configuration ------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings, options, expected",
    [
        ({}, {}, {"PFR210", "PFR213"}),
        ({}, {"accounting": "none"}, {"PFR213"}),
        ({"accounting": "off"}, {}, {"PFR211", "PFR213"}),
        ({"accounting": "off"}, {"accounting": "sacct"}, {"PFR212", "PFR213"}),
        ({"min_job_age": 0}, {}, {"PFR210", "PFR213"}),
        ({"min_job_age": 59}, {}, {"PFR210", "PFR214"}),
        ({"min_job_age": 60}, {}, {"PFR210", "PFR213"}),
        ({"min_job_age": 15}, {}, {"PFR210", "PFR214"}),
        ({"min_job_age": 15, "accounting": "off"}, {}, {"PFR211", "PFR215"}),
        ({"min_job_age": 16, "accounting": "off"}, {}, {"PFR211", "PFR214"}),
        ({"min_job_age": 16}, {"status_poll_interval": 16, "accounting": "none"}, {"PFR215"}),
        ({"job_file_append": 1}, {}, {"PFR210", "PFR213", "PFR216"}),
        ({"controller_down": True}, {}, {"PFR217"}),
    ],
)
def test_slurm_configuration(
    tmp_path: Path, slurm: Slurm, settings: Dict[str, Any], options: Any, expected: Set[str]
) -> None:
    """slurmctld's configuration is held against the interval (15 s) and the option accounting."""
    slurm.set(**settings)
    assert codes(found_in(slurm_app(tmp_path, **options), check_slurm)) == expected


@pytest.mark.parametrize(
    "name, storage",
    [
        ("22.05-accounting", "accounting_storage/slurmdbd"),
        ("22.05-none", "accounting_storage/none"),
        ("24.11-none", "(null)"),
    ],
)
def test_captured_configuration(name: str, storage: str) -> None:
    """The rows of real Slurms are read."""
    config = parse_config((DATA / f"{name}.txt").read_text())
    assert (config["AccountingStorageType"], config["MinJobAge"], config["JobFileAppend"]) == (
        storage, "300 sec", "0")


# ---- the dry run ----------------------------------------------------------------------------


def test_queries_and_their_cost(tmp_path: Path, slurm: Slurm) -> None:
    """Each query is made once and told with its time and its number an hour."""
    found = found_in(slurm_app(tmp_path, status_poll_interval=30), check_queries)
    assert [finding.code for finding in found] == ["PFR220", "PFR220"]
    assert found[0].numbers["queries_per_hour"] == 120
    assert 0 < found[0].numbers["seconds"] < PATIENCE_S
    assert "at most 120 an hour" in found[0].what
    assert len(slurm.commands("squeue")) == 1 and len(slurm.commands("sacct")) == 1


def test_managers_that_share_are_asked_once(tmp_path: Path, slurm: Slurm) -> None:
    """Two managers of one cluster cost one query, at the shorter of their intervals."""
    patient = {"type": "queued_slurm", "command_timeout": PATIENCE_S}
    managers = {"a": patient, "b": {**patient, "status_poll_interval": 10}}
    found = found_in(write_app(tmp_path, managers=managers), check_queries)
    assert {finding.about for finding in found} == {"a, b"}
    assert found[0].numbers["queries_per_hour"] == 360
    assert len(slurm.commands("squeue")) == 1


@pytest.mark.parametrize(
    "settings, options, expected",
    [
        ({"controller_down": True}, {}, {"PFR221"}),
        ({"latency": {"squeue": 300}}, {"command_timeout": 0.5}, {"PFR221"}),
        ({"accounting": "down"}, {}, {"PFR220", "PFR223"}),
        ({"accounting": "off"}, {}, {"PFR220", "PFR224"}),
        ({"accounting": "off"}, {"accounting": "sacct"}, {"PFR220", "PFR212"}),
        ({}, {"accounting": "none"}, {"PFR220", "PFR224"}),
    ],
)
def test_queries_that_fail(
    tmp_path: Path, slurm: Slurm, settings: Dict[str, Any], options: Any, expected: Set[str]
) -> None:
    """A query without an answer is an error."""
    slurm.set(**settings)
    assert codes(found_in(slurm_app(tmp_path, **options), check_queries)) == expected


@pytest.mark.parametrize(
    "seconds, expected",
    [(121, {"PFR220", "PFR222", "PFR224"}), (119, {"PFR220", "PFR224"})],
)
def test_a_slow_query(
    tmp_path: Path, slurm: Slurm, monkeypatch: pytest.MonkeyPatch, seconds: int,
    expected: Set[str],
) -> None:
    """PFR222: a query that takes more than half of command_timeout is a warning."""
    ticks = itertools.count(100, seconds)  # a look at the clock after each of them
    monkeypatch.setattr(
        "pulsar_failure_reasons.check.drm.time", SimpleNamespace(monotonic=ticks.__next__))
    path = slurm_app(tmp_path, command_timeout=240, accounting="none")
    assert codes(found_in(path, check_queries)) == expected


def test_queries_of_htcondor(tmp_path: Path, pool: Pool) -> None:
    """The schedd and its history are asked."""
    path = write_app(tmp_path, manager={
        "type": "queued_htcondor_classified", "command_timeout": PATIENCE_S})
    assert [f.code for f in found_in(path, check_queries)] == ["PFR220", "PFR220"]
    pool.schedd_down()
    found = found_in(path, check_queries)
    assert codes(found) == {"PFR221"} and "HTCondor" in found[0].what
    pool.schedd_up()


@pytest.mark.parametrize(
    "flavour, plugin, options, expected",
    [
        ("lsf", "LSF", {}, ["PFR220", "PFR220"]),
        ("openpbs", "OpenPBS", {}, ["PFR220", "PFR220"]),
        ("torque", "Torque", {}, ["PFR220", "PFR224"]),
        # Of a cell in which no job has ended.
        ("sge", "SGE", {}, ["PFR220", "PFR226"]),
        ("slurm", "Slurm", {"accounting": "none"}, ["PFR220", "PFR224"]),
    ],
)
def test_queries_by_shell(
    tmp_path: Path, slurm: Slurm, flavour: str, plugin: str, options: Any, expected: Any
) -> None:
    """An id that no job has is an answer too, whatever the DRM."""
    slurm.set(flavour=flavour)
    path = write_app(tmp_path, manager={
        "type": "queued_cli_classified", "job_plugin": plugin, "command_timeout": PATIENCE_S,
        **options})
    assert [f.code for f in found_in(path, check_queries)] == expected


def test_a_plugin_that_we_do_not_know(
    tmp_path: Path, slurm: Slurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PFR225: nothing can be told of a site's own plugin without a job; its commands neither."""
    homemade(tmp_path, monkeypatch)
    path = write_app(tmp_path, manager={
        "type": "queued_cli_classified", "job_plugin": "Homemade", "job_drm": "/srv"})
    assert codes(found_in(path, check_queries, check_commands)) == {"PFR225"}


def homemade(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a site's own job plugin among Pulsar's."""
    from pulsar.managers.util.cli import job as stock_jobs

    folder = tmp_path / "plugins"
    folder.mkdir()
    (folder / "homemade.py").write_text(
        "from tests.manager_cli.test_plugin import Homemade\n__all__ = ('Homemade',)\n")
    monkeypatch.setattr(stock_jobs, "__path__", [*stock_jobs.__path__, str(folder)])
    monkeypatch.delitem(sys.modules, f"{stock_jobs.__name__}.homemade", raising=False)


def test_nothing_is_said_twice(tmp_path: Path, slurm: Slurm) -> None:
    """A healthy Slurm gives no problem from all checks of the DRM together."""
    found = found_in(slurm_app(tmp_path), check_commands, check_slurm, check_queries)
    assert codes(found) == {"PFR201", "PFR210", "PFR213", "PFR220"}
    assert said(found, "PFR213") == (
        "MinJobAge is 300 sec, and Slurm is looked at every 15 s")
