"""Submission by plugin: headers, options quoted once, refusals, a launch that was cut short."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable, Optional

import pytest
from pulsar.managers.stateful import ACTIVE_STATUS_PREPROCESSING

from tests.manager.harness import Pulsar, Slurm, reason_of
from tests.pulsar_server import wait_until
from tests.simulated import control

from .conftest import MakePulsar

OddCommand = Callable[[str, Optional[str]], None]


def test_external_id_is_stored_as_stock_does(pulsar: Pulsar) -> None:
    """A JSON string with the number alone, as queued_cli writes it."""
    pulsar.submit("1", "true")
    assert (pulsar.directory("1") / "external_id").read_bytes() == b'"1"'


def test_headers_reach_sbatch(make_pulsar: MakePulsar, slurm: Slurm) -> None:
    """``job_*`` options become #SBATCH lines before the first command, where sbatch reads them."""
    pulsar = make_pulsar(job_time="7", **{"job_--comment": "from-the-site"})
    pulsar.submit("1", "sleep 600")
    slurm.wait_for("1", "RUNNING", "PENDING")
    record = control.run(slurm.state, "scontrol", "show", "job", "1").stdout
    assert "TimeLimit=00:07:00" in record
    assert "JobName=pulsar_1" in record
    assert f"StdErr={pulsar.directory('1')}/metadata/job_stderr" in record


@pytest.mark.parametrize("option", ["native_specification", "submit_native_specification"])
def test_native_specification_of_the_manager(
    make_pulsar: MakePulsar, slurm: Slurm, option: str
) -> None:
    """The manager's own options are given to sbatch, and win over those that a job brings."""
    pulsar = make_pulsar(**{option: "-t 9 --comment='two  words'"})
    pulsar.submit("1", "true", "-t 5")
    script = str(pulsar.directory("1") / "command.sh")
    assert slurm.commands("sbatch") == [["sbatch", "-t", "9", "--comment=two  words", script]]


def test_native_specification_of_the_job_is_quoted(pulsar: Pulsar, slurm: Slurm) -> None:
    """What a job brings can be no shell text: it arrives in sbatch's argv as it is."""
    hostile = "--comment='$(touch /tmp/pwned); `id` & | > \"'"
    pulsar.submit("1", "true", hostile)
    assert slurm.commands("sbatch")[0][1] == "--comment=$(touch /tmp/pwned); `id` & | > \""


def test_quotes_that_do_not_match(pulsar: Pulsar, slurm: Slurm) -> None:
    """A job's options that cannot be split fail it, with a reason, before anything is run."""
    pulsar.submit("1", "true", "--comment='open")
    payload = pulsar.payload("1")
    assert (payload["status"], reason_of(payload)) == ("failed", "launch_error")
    assert "cannot be split" in payload["runner_state_message"]
    assert slurm.commands("sbatch") == []


def test_refused(pulsar: Pulsar) -> None:
    """A refusal that LocalShell shows as exit code 0 is a refusal, in Slurm's own words."""
    pulsar.submit("1", "true", "--partition=nosuch")
    payload = pulsar.payload("1")
    assert (payload["status"], reason_of(payload)) == ("failed", "launch_error")
    assert "invalid partition specified" in payload["runner_state_message"]


def test_no_sbatch(pulsar: Pulsar, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No sbatch on PATH is a refusal too: nothing was asked of Slurm."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/sh").symlink_to("/bin/sh")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    pulsar.submit("1", "true")
    payload = pulsar.payload("1")
    assert (payload["status"], reason_of(payload)) == ("failed", "launch_error")
    assert "cannot run sbatch" in payload["runner_state_message"]


def test_banner_of_sbatch(pulsar: Pulsar, odd_command: OddCommand) -> None:
    """Sites let sbatch print text with digits before the id."""
    odd_command("sbatch", 'echo "Project 42: 1234 hours"; echo "Welcome" >&2; exec $REAL "$@"')
    assert pulsar.submit("1", "true") == "1"
    assert pulsar.end("1")["status"] == "complete"


def test_controller_down_at_submission(pulsar: Pulsar, slurm: Slurm) -> None:
    """Without an answer nobody knows whether the job is there: it is lost, not refused."""
    slurm.set(controller_down=True)
    pulsar.submit("1", "true")
    payload = pulsar.payload("1")
    assert (payload["status"], reason_of(payload)) == ("failed", "lost")


def test_cancelled_by_galaxy(pulsar: Pulsar, slurm: Slurm) -> None:
    """A cancelled job is taken out of Slurm, reported cancelled, and has no reason."""
    pulsar.submit("1", "sleep 600")
    slurm.wait_for("1", "RUNNING")
    pulsar.proxy().kill("1")
    payload = pulsar.payload("1")
    assert (payload["status"], reason_of(payload)) == ("cancelled", None)
    slurm.wait_for("1", "CANCELLED")


def test_cancelled_while_slurm_is_down(pulsar: Pulsar, slurm: Slurm) -> None:
    """A cancel that Slurm does not hear is said again when it answers."""
    pulsar.submit("1", "sleep 600")
    slurm.wait_for("1", "RUNNING")
    slurm.set(controller_down=True)
    pulsar.proxy().kill("1")
    slurm.set(controller_down=None)
    slurm.wait_for("1", "CANCELLED")


# ---- a launch that was cut short ---------------------------------------------------------------


def _killed_in_launch(pulsar: Pulsar, *forgotten: str) -> None:
    """Leave job 1 as a Pulsar leaves it that is killed before it noted that it was launched."""
    pulsar.shutdown()
    for name in ("preprocessed", *forgotten):
        (pulsar.directory("1") / name).unlink()
    pulsar.proxy().active_jobs.deactivate_job("1")
    pulsar.proxy().active_jobs.activate_job("1", active_status=ACTIVE_STATUS_PREPROCESSING)


def _launched_again(make_pulsar: MakePulsar, **options: Any) -> Pulsar:
    """Start a server, which launches job 1 again."""
    pulsar = make_pulsar(**options)
    ended = [pulsar.directory("1") / name for name in ("preprocessed", "preprocessing_failed")]
    wait_until(lambda: any(path.exists() for path in ended), 60, "the launch to end", 0.02)
    return pulsar


@pytest.mark.parametrize("forgotten", [(), ("external_id",)], ids=["id stored", "id not stored"])
def test_killed_after_the_submission(
    make_pulsar: MakePulsar, slurm: Slurm, forgotten: Any
) -> None:
    """A job that Slurm has already is taken up, by its id or its name, and not submitted twice."""
    first = make_pulsar()
    first.submit("1", "while [ ! -e ../go ]; do sleep 0.1; done; echo once >> ../ran")
    slurm.wait_for("1", "RUNNING")
    _killed_in_launch(first, *forgotten)
    again = _launched_again(make_pulsar)
    assert again.external_id("1") == "1"
    (again.directory("1") / "go").touch()
    payload = again.end("1")
    assert (payload["status"], payload["returncode"]) == ("complete", 0)
    assert len(slurm.commands("sbatch")) == 1
    assert (again.directory("1") / "ran").read_text() == "once\n"


def test_killed_after_the_submission_ended_meanwhile(
    make_pulsar: MakePulsar, slurm: Slurm
) -> None:
    """A job with a stored id that ended while Pulsar was down keeps its return code."""
    first = make_pulsar()
    first.submit("1", "sh -c 'exit 3'")
    slurm.wait_for("1", "COMPLETED")
    _killed_in_launch(first)
    again = _launched_again(make_pulsar)
    payload = again.end("1")
    assert (payload["status"], payload["returncode"]) == ("complete", 3)
    assert len(slurm.commands("sbatch")) == 1


def test_killed_before_the_submission(make_pulsar: MakePulsar, slurm: Slurm) -> None:
    """A job that Slurm never got is submitted."""
    first = make_pulsar()
    first.submit("1", "sleep 600")
    _killed_in_launch(first, "external_id")
    slurm.scancel("1")
    slurm.wait_for("1", "CANCELLED")
    again = _launched_again(make_pulsar)
    assert again.external_id("1") == "2"
    assert len(slurm.commands("sbatch")) == 2


def test_killed_in_the_launch_and_slurm_is_down(make_pulsar: MakePulsar, slurm: Slurm) -> None:
    """Where the list cannot be had, the job is not submitted a second time: it is lost."""
    first = make_pulsar()
    first.submit("1", "sleep 600")
    _killed_in_launch(first, "external_id")
    slurm.set(controller_down=True)
    again = _launched_again(make_pulsar)
    payload = again.payload("1")
    assert (payload["status"], reason_of(payload)) == ("failed", "lost")
    slurm.set(controller_down=None)
    assert len(slurm.commands("sbatch")) == 1


@pytest.mark.parametrize("place", ["elsewhere", "in our folder"])
def test_killed_in_the_launch_and_two_jobs_have_the_name(
    make_pulsar: MakePulsar, slurm: Slurm, tmp_path: Path, place: str
) -> None:
    """Another server's job of the name is told by where it works; of two in our folder nobody
    knows which is ours, so no third is submitted."""
    first = make_pulsar()
    first.submit("1", "sleep 600")
    script = tmp_path / "other.sh"
    script.write_text("#!/bin/sh\nsleep 600\n")
    folder = str(first.directory("1") / "working" if place == "in our folder" else tmp_path)
    done = control.run(slurm.state, "sbatch", "-J", "pulsar_1", str(script), cwd=folder)
    assert done.returncode == 0
    _killed_in_launch(first, "external_id")
    again = _launched_again(make_pulsar)
    payload = again.payload("1")
    assert len(slurm.commands("sbatch")) == 2
    if place == "elsewhere":
        assert again.external_id("1") == "1"
        assert reason_of(payload) is None
    else:
        assert (payload["status"], reason_of(payload)) == ("failed", "lost")
        assert "several jobs named pulsar_1 (1, 2)" in payload["runner_state_message"]
        assert json.loads((again.directory("1") / "preprocessing_failed").read_text()) is True
