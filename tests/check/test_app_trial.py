"""The trial job on simulated DRMs: what each end of it is told as, and that nothing is left."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path
from typing import Any, Callable, Iterator, List, Optional

import pytest

from pulsar_failure_reasons.check.findings import Finding
from pulsar_failure_reasons.check.trial import Trial
from tests.manager.harness import QUICK, Slurm, own_observers
from tests.manager_htcondor.harness import QUICK as QUICK_CONDOR
from tests.manager_htcondor.harness import Pool
from tests.simulated import control

from .harness import NOBODY, as_nobody, codes, describe, slurm_app, write_app
from .test_app_drm import homemade

TRIAL_FOLDER = ".pulsar-failure-reasons-check-*"


@pytest.fixture
def slurm(tmp_path: Path) -> Iterator[Slurm]:
    """A simulated Slurm; a minute of a time limit takes half a second."""
    with Slurm(tmp_path / "slurm").in_use() as simulated:
        yield simulated


def run_trial(
    path: str, folder: Path, deadline_s: float = 600, on_line: Optional[Callable[..., None]] = None
) -> List[Finding]:
    """Run the trial of the one manager of an app.yml; ``on_line(trial, line)`` sees progress."""
    with own_observers():
        (made,) = describe(path).usable()
        trial = Trial(made, str(folder), deadline_s, stop=threading.Event())
        trial.progress = lambda line: on_line(trial, line) if on_line else None
        return list(trial.run())


def left_over(folder: Path) -> List[Path]:
    """Return the trials' folders that are left."""
    return list(folder.glob(TRIAL_FOLDER))


def living(slurm: Slurm) -> List[Any]:
    """Return the ids of the jobs that have not ended."""
    return [job["id"] for job in control.jobs(slurm.state) if job["state"] != "ended"]


def test_the_reason_arrives(tmp_path: Path, slurm: Slurm) -> None:
    """PFR401 tells what Galaxy would be told; neither folder nor ledger has anything of it."""
    lines: List[str] = []

    def see(trial: Trial, line: str) -> None:
        lines.append(line)
        if "is running" in line:
            slurm.set(time_scale=120)

    slurm.set(time_scale=1)  # or a slow machine sees the job end before it has seen it run
    ledger = tmp_path / "ledger.sqlite"
    path = slurm_app(
        tmp_path, **QUICK, native_specification="--comment=mine --time=05:00:00",
        failure_ledger=str(ledger),
    )
    found = run_trial(path, tmp_path, on_line=see)
    assert codes(found) == {"PFR401"}
    assert "job 1 of Slurm ended" in found[0].what
    assert "walltime limit is 60 s" in found[0].what
    assert lines[0] == "submitting a job that sleeps, to Slurm"
    assert any(line.endswith("job 1 is running") for line in lines)
    (argv,) = slurm.commands("sbatch")
    assert "--comment=mine" in argv
    assert left_over(tmp_path) == []
    assert list((tmp_path / "staging").iterdir()) == []
    assert list((tmp_path / "persisted").iterdir()) == [] and not ledger.exists()


def test_it_is_not_sent(tmp_path: Path, slurm: Slurm) -> None:
    """PFR408: with observe_only the reason is found, and Galaxy is told nothing."""
    assert codes(run_trial(slurm_app(tmp_path, **QUICK, observe_only=True), tmp_path)) == {"PFR408"}


def test_it_is_switched_off(
    tmp_path: Path, slurm: Slurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PFR408 with PULSAR_FAILURE_REASONS=off, too."""
    monkeypatch.setenv("PULSAR_FAILURE_REASONS", "off")
    found = run_trial(slurm_app(tmp_path, **QUICK), tmp_path)
    assert codes(found) == {"PFR408"} and "switched off" in found[0].what


def test_another_end(tmp_path: Path, slurm: Slurm) -> None:
    """PFR402: the job ends for another reason than its walltime."""
    def cancel(trial: Trial, line: str) -> None:
        if "is running" in line:
            slurm.scancel("1")

    slurm.set(time_scale=1)
    found = run_trial(slurm_app(tmp_path, **QUICK), tmp_path, on_line=cancel)
    assert codes(found) == {"PFR402"} and "cancelled outside Galaxy" in found[0].what


def test_no_end_in_time(tmp_path: Path, slurm: Slurm) -> None:
    """PFR403: a job that waits is cancelled at the deadline, and gone before the folder is."""
    slurm.set(start_delay=1000)
    found = run_trial(slurm_app(tmp_path, **QUICK), tmp_path, deadline_s=1)
    assert codes(found) == {"PFR403"} and "is queued after" in found[0].what
    assert living(slurm) == [] and left_over(tmp_path) == []


def test_a_refused_submission(tmp_path: Path, slurm: Slurm) -> None:
    """PFR404 has Slurm's own words."""
    slurm.set(reject="bad_account")
    found = run_trial(slurm_app(tmp_path, **QUICK), tmp_path)
    assert codes(found) == {"PFR404"} and "Invalid account" in found[0].what
    assert left_over(tmp_path) == []


def test_no_folder(tmp_path: Path, slurm: Slurm) -> None:
    """PFR404 tells of --folder where none can be made beside the staging folder."""
    path = slurm_app(tmp_path, **QUICK)
    with own_observers():
        (made,) = describe(path).usable()
        with as_nobody():
            found = list(Trial(made, "/usr", 1).run())
    assert codes(found) == {"PFR404"} and found[0].advice.startswith("--folder")
    assert NOBODY and slurm.commands("sbatch") == []


def test_interrupted(tmp_path: Path, slurm: Slurm) -> None:
    """PFR406: the job is cancelled, and gone before the folder is removed."""
    slurm.set(time_scale=1)
    found = run_trial(
        slurm_app(tmp_path, **QUICK), tmp_path,
        on_line=lambda trial, line: trial.stop.set() if "is running" in line else None,
    )
    assert codes(found) == {"PFR406"}
    assert living(slurm) == [] and left_over(tmp_path) == []
    assert len(slurm.commands("scancel")) == 1


def test_interrupted_at_the_submission(tmp_path: Path, slurm: Slurm) -> None:
    """An interruption while sbatch runs waits for the id, so that no job is left behind."""
    slurm.set(time_scale=1, latency={"sbatch": 1})
    found = run_trial(
        slurm_app(tmp_path, **QUICK), tmp_path,
        on_line=lambda trial, line: trial.stop.set() if "submitting" in line else None,
    )
    assert codes(found) == {"PFR406"}
    assert len(slurm.commands("sbatch")) == 1 and living(slurm) == []


def test_a_folder_that_stays(
    tmp_path: Path, slurm: Slurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PFR405 names what could not be removed."""
    real = shutil.rmtree
    monkeypatch.setattr(shutil, "rmtree", lambda *_, **__: None)
    found = run_trial(slurm_app(tmp_path, **QUICK), tmp_path)
    assert [finding.code for finding in found] == ["PFR401", "PFR405"]
    (left,) = left_over(tmp_path)
    assert str(left) in found[1].what
    real(left)


def test_a_plugin_without_a_walltime(
    tmp_path: Path, slurm: Slurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PFR407: nothing is submitted where we know no walltime option."""
    homemade(tmp_path, monkeypatch)
    path = write_app(tmp_path, manager={
        **QUICK, "type": "queued_cli_classified", "job_plugin": "Homemade", "job_drm": "/srv"})
    assert codes(run_trial(path, tmp_path)) == {"PFR407"}


@pytest.mark.parametrize(
    "flavour, plugin, native",
    [
        ("slurm", "Slurm", None),
        ("lsf", "LSF", "-W 5:00"),
        ("openpbs", "OpenPBS", "-l walltime=05:00:00"),
        ("sge", "SGE", "-l h_rt=5:0:0"),
    ],
)
def test_other_drms(
    tmp_path: Path, slurm: Slurm, flavour: str, plugin: str, native: Optional[str]
) -> None:
    """The walltime option of each DRM is a limit there, and wins over the operator's."""
    slurm.set(flavour=flavour)
    options = {**QUICK, "type": "queued_cli_classified", "job_plugin": plugin}
    if native:
        options["native_specification"] = native
    found = run_trial(write_app(tmp_path, manager=options), tmp_path)
    assert codes(found) == {"PFR401"}, found


def test_htcondor(tmp_path: Path) -> None:
    """HTCondor: the job's own hold at its walltime, 20 s."""
    with Pool(tmp_path / "pool").in_use():
        path = write_app(tmp_path, manager={**QUICK_CONDOR, "request_walltime": "5:00:00"})
        found = run_trial(path, tmp_path)
    assert codes(found) == {"PFR401"}, found
    assert left_over(tmp_path) == []
