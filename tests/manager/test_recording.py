"""The record: when it is written, kept, cleared, refused; what stock Pulsar sends of it."""

from __future__ import annotations

import errno
import json
import logging
import os
import threading
from pathlib import Path
from typing import Any, List

import pytest
from pulsar import manager_endpoint_util

from pulsar_failure_reasons.managers import recording
from pulsar_failure_reasons.managers.job_directory import AtomicJobDirectory as JobDirectory
from tests.pulsar_server import wait_until
from tests.simulated import control

from .conftest import MakePulsar
from .harness import Pulsar, Slurm, reason_of

OLD_RECORD = {
    "runner_state": "memory_limit_reached", "message": "of an earlier attempt", "cause": "memory",
    "fault": "job", "confidence": "controller", "drm": "slurm", "external_id": "1",
}


def test_record_has_what_the_design_says(pulsar: Pulsar) -> None:
    """The file runner_state, in the job directory only, with the payload's own content."""
    pulsar.submit("1", "sleep 600", "-t 1 --mem=50")
    payload = pulsar.end("1")
    record = pulsar.record("1")
    assert record is not None
    assert record["requested"] == {"walltime_s": 60, "memory_bytes": 50 * 1024 * 1024}
    assert record["used"]["walltime_s"] >= 60
    assert record["recorded_at"].endswith("Z")
    assert pulsar.manager().runner_state("1") == record
    assert payload["runner_state_message"] == record["message"]
    details = {k: v for k, v in record.items() if k not in ("runner_state", "message")}
    assert payload["failure_reason"] == details
    assert os.listdir(pulsar.staging) == ["1"]
    assert None not in payload["failure_reason"].values()


def test_record_is_there_before_the_status(pulsar: Pulsar, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the record is not written yet, the manager does not say failed."""
    statuses: List[str] = []
    store = JobDirectory.store_metadata

    def slow_store(self: Any, name: str, value: Any, atomic: bool = False) -> None:
        if name == "runner_state":
            assert atomic
            statuses.append(pulsar.manager().get_status("1"))
        store(self, name, value, atomic=atomic)

    monkeypatch.setattr(JobDirectory, "store_metadata", slow_store)
    pulsar.submit("1", "sleep 600", "-t 1")
    pulsar.end("1")
    assert statuses and set(statuses) <= {"queued", "running"}


def test_new_attempt_clears_record_and_return_code(pulsar: Pulsar, slurm: Slurm) -> None:
    """A relaunch of the same job_id starts with neither; its own end is told."""
    pulsar.submit("1", "sleep 600", "-t 1")
    assert reason_of(pulsar.end("1")) == "walltime"
    directory = pulsar.directory("1")
    for name in ("final_status", "running", "postprocessed"):
        (directory / name).unlink() if (directory / name).exists() else None
    manager_endpoint_util.setup_job(pulsar.proxy(), "1", "tool", "1")
    assert pulsar.record("1") is None
    # What may still come from the attempt before.
    (directory / "return_code").write_text("0\n")
    (directory / "runner_state").write_text(json.dumps(OLD_RECORD))
    manager_endpoint_util.submit_job(pulsar.proxy(), {
        "job_id": "1", "command_line": "touch ../began; sleep 600",
        "submit_params": {"native_specification": "-t 6000"}})
    assert pulsar.record("1") is None
    assert not (directory / "return_code").exists()
    wait_until((directory / "began").exists, 60, "the second attempt", 0.02)
    assert pulsar.external_id("1") == "2"
    slurm.scancel("2")
    payload = pulsar.end("1")
    assert (reason_of(payload), payload["failure_reason"]["external_id"]) == ("cancelled", "2")


def test_staging_failure_of_a_new_attempt_does_not_carry_the_old_reason(pulsar: Pulsar) -> None:
    """A new attempt that fails before its launch tells nothing of the last one."""
    pulsar.submit("1", "sleep 600", "-t 1")
    assert reason_of(pulsar.end("1")) == "walltime"
    manager_endpoint_util.setup_job(pulsar.proxy(), "1", "tool", "1")
    # What stock publishes when staging in fails.
    payload = manager_endpoint_util.full_status(pulsar.proxy(), "failed", "1")
    assert reason_of(payload) is None


def test_requeued_job_is_not_blessed_by_its_first_run(pulsar: Pulsar, slurm: Slurm) -> None:
    """A stale return_code of a run before a requeue does not make a kill a success."""
    script = (
        "if [ -e ../first ]; then touch ../second; sleep 600; fi; touch ../first; "
        "echo 0 > ../return_code; sleep 600"
    )
    external_id = pulsar.submit("1", script, "--requeue --comment=fake:requeue_delay=360000")
    wait_until((pulsar.directory("1") / "return_code").exists, 60, "the first run", 0.02)
    control.event(slurm.state, external_id, "requeue")
    pulsar.wait_for("1", "queued")
    control.change(slurm.state, external_id, begin=None)
    wait_until((pulsar.directory("1") / "second").exists, 60, "the second run", 0.02)
    slurm.wait_for(external_id, "RUNNING")
    record = control.job(slurm.state, external_id)
    os.killpg(record["session"][0], 9)
    payload = pulsar.end("1")
    assert (payload["status"], reason_of(payload), payload["returncode"]) == (
        "failed", "unknown", None)


def test_cancel_by_galaxy_records_nothing(pulsar: Pulsar, slurm: Slurm) -> None:
    """What Galaxy cancels is cancelled: no record, no reason."""
    external_id = pulsar.submit("1", "sleep 600", "-t 6000")
    pulsar.wait_for("1", "running")
    pulsar.proxy().kill("1")
    assert pulsar.observer().watched() == 0
    slurm.wait_for(external_id, "CANCELLED")
    payload = pulsar.end("1")
    assert (payload["status"], reason_of(payload)) == ("cancelled", None)
    pulsar.wait_for_looks(2)
    assert pulsar.record("1") is None


def test_cancel_by_galaxy_as_the_job_ends(
    pulsar: Pulsar, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cancel comes while the end is being recorded: cancelled, and no record stays."""
    store = JobDirectory.store_metadata

    def cancelled_meanwhile(self: Any, name: str, value: Any, atomic: bool = False) -> None:
        if name == "runner_state":
            pulsar.manager()._record_cancel("1")
        store(self, name, value, atomic=atomic)

    monkeypatch.setattr(JobDirectory, "store_metadata", cancelled_meanwhile)
    pulsar.submit("1", "sleep 600", "-t 1")
    payload = pulsar.end("1")
    assert (payload["status"], reason_of(payload)) == ("cancelled", None)
    wait_until(lambda: pulsar.observer().watched() == 0, 60, "the end of looking", 0.02)
    assert pulsar.record("1") is None


def test_postprocessing_failure_carries_no_reason(pulsar: Pulsar) -> None:
    """A job judged complete whose outputs cannot be staged fails without a reason of ours."""
    (pulsar.staging / "1").mkdir(parents=True)
    (pulsar.staging / "1" / "runner_state").write_text(json.dumps(OLD_RECORD))
    pulsar.submit("1", "true")
    assert pulsar.end("1")["status"] == "complete"
    payload = manager_endpoint_util.full_status(pulsar.proxy(), "failed", "1")
    assert (payload["status"], reason_of(payload)) == ("failed", None)


def test_record_of_a_former_life_whose_job_was_requeued(pulsar: Pulsar, slurm: Slurm) -> None:
    """Killed between record and status, then the job lives again: the record is forgotten."""
    external_id = pulsar.submit("1", "sleep 600", "-t 6000")
    pulsar.wait_for("1", "running")
    pulsar.shutdown()
    (pulsar.directory("1") / "runner_state").write_text(
        json.dumps(dict(OLD_RECORD, external_id=external_id)))
    again = Pulsar(pulsar.staging.parent)
    try:
        again.status("1")
        wait_until(lambda: again.record("1") is None, 60, "the record to go", 0.02)
        slurm.scancel(external_id)
        assert reason_of(again.end("1")) == "cancelled"
    finally:
        again.shutdown()


def test_record_of_a_former_life_is_what_is_told(pulsar: Pulsar, slurm: Slurm) -> None:
    """Killed between record and status: the next life tells the recorded reason."""
    external_id = pulsar.submit("1", "sleep 600", "-t 6000")
    pulsar.wait_for("1", "running")
    pulsar.shutdown()
    slurm.scancel(external_id)
    (pulsar.directory("1") / "runner_state").write_text(
        json.dumps(dict(OLD_RECORD, external_id=external_id)))
    again = Pulsar(pulsar.staging.parent)
    try:
        payload = again.end("1")
        assert payload["runner_state"] == "memory_limit_reached"
        assert payload["runner_state_message"] == "of an earlier attempt"
    finally:
        again.shutdown()


@pytest.mark.parametrize("of, command, cause", [
    ("1", "true", None),  # recorded by a former life, for a return code that it did not see yet
    ("77", "kill -9 $$", "unknown"),  # of another attempt, left by a manager that knows no records
])
def test_record_that_is_not_of_this_end(
    pulsar: Pulsar, slurm: Slurm, of: str, command: str, cause: Any
) -> None:
    """A record found at a complete job, or of another external id, is not told."""
    external_id = pulsar.submit("1", command)
    pulsar.shutdown()
    slurm.wait_for(external_id, "COMPLETED", "FAILED")
    record_file = pulsar.directory("1") / "runner_state"
    record_file.write_text(json.dumps(dict(OLD_RECORD, external_id=of)))
    again = Pulsar(pulsar.staging.parent)
    try:
        assert reason_of(again.end("1")) == cause
        record = again.record("1")
        assert (record is None) if cause is None else (record["external_id"] == external_id)
    finally:
        again.shutdown()


def test_corrupt_record(pulsar: Pulsar, caplog: pytest.LogCaptureFixture) -> None:
    """A record that cannot be read costs its reason and one line, not the payload."""
    pulsar.submit("1", "sleep 600", "-t 1")
    pulsar.end("1")
    for content in (b"", b"{", b"[]", b'{"cause": "gravity"}', b"\xff\xfe", b'{"cause": 7}', b"1"):
        (pulsar.directory("1") / "runner_state").write_bytes(content)
        caplog.clear()
        for _ in range(3):  # Galaxy asks again and again
            payload = pulsar.payload("1")
        assert (payload["status"], reason_of(payload)) == ("failed", None), content
        told = [r for r in caplog.records if "runner_state" in r.getMessage()]
        assert len(told) == 1, content
        assert "\n" not in told[0].getMessage() and not told[0].exc_info
        assert pulsar.manager().runner_state("1") is None


def test_corrupt_external_id_is_found_by_name(pulsar: Pulsar, slurm: Slurm) -> None:
    """The id is lost, the job is not: it is found again by its name, and its end is told."""
    contents = {"a": "", "b": "{", "c": '"junk"', "d": "[1]", "e": "null", "f": "\0", "g": '"-rf"'}
    ids = {job_id: pulsar.submit(job_id, "sleep 600", "-t 6000") for job_id in contents}
    for job_id in contents:
        pulsar.wait_for(job_id, "running")
    pulsar.shutdown()
    for job_id, content in contents.items():
        (pulsar.directory(job_id) / "external_id").write_text(content)
    again = Pulsar(pulsar.staging.parent)
    try:
        for job_id in contents:
            again.status(job_id)
        again.wait_for_looks(1)
        for job_id in contents:
            assert again.status(job_id) == "running"
            slurm.scancel(ids[job_id])
        for job_id in contents:
            assert reason_of(again.end(job_id)) == "cancelled", contents[job_id]
            assert again.external_id(job_id) == ids[job_id]
    finally:
        again.shutdown()


@pytest.mark.parametrize("return_code, status, cause", [("0", "complete", None),
                                                        (None, "failed", "lost")])
def test_lost_external_id_and_no_such_name(
    pulsar: Pulsar, slurm: Slurm, return_code: Any, status: str, cause: Any
) -> None:
    """No id and no job of that name: complete with a return code, else lost after the grace."""
    external_id = pulsar.submit("1", "sleep 600", "-t 6000")
    pulsar.wait_for("1", "running")
    pulsar.shutdown()
    (pulsar.directory("1") / "external_id").unlink()
    control.change(slurm.state, external_id, forgotten=True)
    if return_code:
        (pulsar.directory("1") / "return_code").write_text(return_code)
    again = Pulsar(pulsar.staging.parent)
    try:
        payload = again.end("1")
        assert (payload["status"], reason_of(payload)) == (status, cause)
    finally:
        again.shutdown()


def test_lost_external_id_of_a_job_with_a_name_of_its_own(pulsar: Pulsar, slurm: Slurm) -> None:
    """Its native specification named it, so it is found by where it works."""
    external_id = pulsar.submit("1", "sleep 600", "-t 6000 -J mine")
    pulsar.wait_for("1", "running")
    pulsar.shutdown()
    (pulsar.directory("1") / "external_id").unlink()
    again = Pulsar(pulsar.staging.parent)
    try:
        again.status("1")
        wait_until(lambda: again.external_id("1") == external_id, 60, "it to be found", 0.05)
        slurm.scancel(external_id)
        assert reason_of(again.end("1")) == "cancelled"
    finally:
        again.shutdown()


@pytest.mark.parametrize("place", ["elsewhere", "in our folder"])
def test_lost_external_id_and_two_jobs_of_that_name(
    pulsar: Pulsar, slurm: Slurm, tmp_path: Path, place: str
) -> None:
    """Another server's is told by where it works; of two in our folder nobody knows which."""
    external_id = pulsar.submit("1", "sleep 600", "-t 6000")
    pulsar.wait_for("1", "running")
    pulsar.shutdown()
    (pulsar.directory("1") / "external_id").unlink()
    folder = pulsar.directory("1") / "working" if place == "in our folder" else tmp_path
    control.run(
        slurm.state, "sbatch", "-J", "pulsar_1", "--wrap", "sleep 600", cwd=str(folder))
    again = Pulsar(pulsar.staging.parent, manager={"missing_grace": 60})
    try:
        again.status("1")
        again.wait_for_looks(2)
        assert again.external_id("1") == (external_id if place == "elsewhere" else None)
        assert again.status("1") == "running"
    finally:
        again.shutdown()


def test_lost_external_id_and_an_ended_job_of_that_name(pulsar: Pulsar, slurm: Slurm) -> None:
    """The attempt before, which Slurm still shows, is not taken for the one that runs."""
    control.run(slurm.state, "sbatch", "-J", "pulsar_1", "--wrap", "exit 3")
    slurm.wait_for("1", "FAILED")
    assert pulsar.submit("1", "sleep 600", "-t 600") == "2"
    pulsar.wait_for("1", "running")
    pulsar.shutdown()
    (pulsar.directory("1") / "external_id").unlink()
    again = Pulsar(pulsar.staging.parent)
    try:
        again.status("1")
        wait_until(lambda: again.external_id("1") == "2", 60, "the id to be found", 0.02)
    finally:
        again.shutdown()


def test_asked_for_while_a_new_attempt_is_submitted(pulsar: Pulsar, slurm: Slurm) -> None:
    """A request in the middle of the second submission does not bind the job to its first id."""
    pulsar.submit("1", "sleep 600", "-t 1")
    assert reason_of(pulsar.end("1")) == "walltime"
    for name in ("final_status", "running", "postprocessed"):
        pulsar.manager().job_directory("1").remove_metadata(name)
    slurm.set(latency={"sbatch": 0.5})
    submission = threading.Thread(target=pulsar.submit, args=("1", "sleep 600", "-t 600"))
    submission.start()
    wait_until(lambda: len(slurm.commands("sbatch")) == 2, 60, "the second sbatch", 0.01)
    pulsar.manager().get_status("1")
    submission.join(60)
    slurm.scancel("2")
    assert pulsar.end("1")["failure_reason"]["external_id"] == "2"


def test_full_disk_while_recording(
    pulsar: Pulsar, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A record that cannot be stored is tried again; the status waits for it."""
    caplog.set_level(logging.INFO)
    store = JobDirectory.store_metadata
    tries: List[int] = []

    def full(self: Any, name: str, value: Any, atomic: bool = False) -> None:
        if name == "runner_state":
            tries.append(1)
            if len(tries) <= 2:
                raise OSError(errno.ENOSPC, "No space left on device")
        store(self, name, value, atomic=atomic)

    monkeypatch.setattr(JobDirectory, "store_metadata", full)
    pulsar.submit("1", "sleep 600", "-t 1")
    assert reason_of(pulsar.end("1")) == "walltime"
    assert len(tries) == 3
    told = [r.getMessage() for r in caplog.records if "could not be stored" in r.getMessage()]
    assert len(told) == 2 and "No space left on device" in told[0]


def test_disk_that_stays_full(
    pulsar: Pulsar, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """After many tries the job ends without a reason in its directory, but with one in the log."""
    monkeypatch.setattr(recording, "STORE_ATTEMPTS", 5)
    store = JobDirectory.store_metadata

    def full(self: Any, name: str, value: Any, atomic: bool = False) -> None:
        if name == "runner_state":
            raise OSError(errno.ENOSPC, "No space left on device")
        store(self, name, value, atomic=atomic)

    monkeypatch.setattr(JobDirectory, "store_metadata", full)
    pulsar.submit("1", "sleep 600", "-t 1")
    payload = pulsar.end("1")
    assert (payload["status"], reason_of(payload)) == ("failed", None)
    lost = [r.getMessage() for r in caplog.records if "and is lost" in r.getMessage()]
    assert len(lost) == 1 and "walltime limit is 60 s" in lost[0]


def test_job_directory_is_deleted_under_us(
    pulsar: Pulsar, slurm: Slurm, caplog: pytest.LogCaptureFixture
) -> None:
    """Galaxy or a cleaner removes the directory of a running job: no traceback, no endless look."""
    external_id = pulsar.submit("1", "touch ../began; cd /; sleep 600", "-t 6000")
    # The job script makes folders of its own before the tool begins.
    wait_until((pulsar.directory("1") / "began").exists, 60, "the tool", 0.02)
    pulsar.wait_for("1", "running")
    # Moved away at one stroke: the running job still writes into its folder.
    pulsar.directory("1").rename(pulsar.directory("1").parent.with_name("deleted"))
    slurm.scancel(external_id)
    wait_until(lambda: pulsar.observer().watched() == 0, 60, "the end of looking", 0.02)
    assert pulsar.status("1") == "lost"
    assert [r for r in caplog.records if r.exc_info] == []


def test_a_mistake_of_ours_never_reaches_pulsar(
    pulsar: Pulsar, slurm: Slurm, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture
) -> None:
    """A classifier that raises keeps the job's status, and other jobs go on."""
    monkeypatch.setattr(
        type(pulsar.manager()), "classify_stderr",
        lambda self, text, external_id: 1 / 0 if external_id == "1" else None)
    pulsar.submit("1", "echo something >&2; kill -9 $$")
    pulsar.submit("2", "sh -c 'exit 3'")
    assert pulsar.end("2")["returncode"] == 3
    slurm.wait_for("1", "FAILED")
    pulsar.wait_for_looks(2)
    assert pulsar.status("1") in ("queued", "running")
    assert "ZeroDivisionError" in caplog.text


def test_unreadable_job_files(pulsar: Pulsar, tmp_path: Path) -> None:
    """A return_code and a stderr that cannot be read (here: folders) count as absent."""
    pulsar.submit(
        "1",
        "rm -f ../metadata/job_stderr; mkdir ../metadata/job_stderr ../return_code; kill -9 $$")
    payload = pulsar.end("1")
    assert (payload["status"], reason_of(payload), payload["returncode"]) == (
        "failed", "unknown", None)


def test_unwritable_output(pulsar: Pulsar) -> None:
    """Slurm cannot open the job's stderr: disk, and the message says so."""
    manager_endpoint_util.setup_job(pulsar.proxy(), "1", "tool", "1")
    (pulsar.directory("1") / "metadata" / "job_stderr").mkdir()
    manager_endpoint_util.submit_job(pulsar.proxy(), {"job_id": "1", "command_line": "true"})
    payload = pulsar.end("1")
    assert reason_of(payload) == "disk"
    assert "output file could not be opened" in payload["runner_state_message"]


def test_held_by_a_person_is_waited_for(make_pulsar: MakePulsar, slurm: Slurm) -> None:
    """A person's hold is no reason to remove a job, however short hold_grace is."""
    pulsar = make_pulsar(hold_grace=0)
    external_id = pulsar.submit("1", "true", "-H")
    pulsar.wait_for_looks(4)
    assert pulsar.status("1") == "queued"
    control.run(slurm.state, "scontrol", "release", external_id)
    assert pulsar.end("1")["status"] == "complete"


def test_stuck_job_is_removed_and_then_failed(
    make_pulsar: MakePulsar, slurm: Slurm, caplog: pytest.LogCaptureFixture
) -> None:
    """Requeued-held: queued for hold_grace, then taken out of Slurm, then failed as held."""
    caplog.set_level(logging.INFO, "pulsar.failure_reasons")
    pulsar = make_pulsar(hold_grace=3600)
    external_id = pulsar.submit("1", "sleep 600", "--comment=fake:launch_failure")
    pulsar.wait_for_looks(5)
    assert pulsar.status("1") == "queued"
    assert slurm.state_of(external_id) == "PENDING"
    pulsar.set_graces(hold_s=1)
    payload = pulsar.end("1")
    assert reason_of(payload) == "held"
    assert slurm.state_of(external_id) == "CANCELLED"


@pytest.fixture
def long_removals(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many looks a slow test takes, a job that is still to be removed is not given up."""
    monkeypatch.setattr(recording, "REMOVAL_ANSWERS", 100_000)


@pytest.mark.usefixtures("long_removals")
def test_stuck_job_stays_queued_while_it_cannot_be_removed(
    make_pulsar: MakePulsar, slurm: Slurm, odd_command: Any
) -> None:
    """Failed is told only of a job that is gone from Slurm; scancel is repeated."""
    odd_command("scancel", "echo scancel: error: busy >&2; exit 1")
    pulsar = make_pulsar(hold_grace=0)
    external_id = pulsar.submit("1", "sleep 600", "--comment=fake:launch_failure")
    pulsar.wait_for_looks(5)
    assert pulsar.status("1") == "queued"
    odd_command("scancel", None)
    assert reason_of(pulsar.end("1")) == "held"
    assert slurm.state_of(external_id) == "CANCELLED"


@pytest.mark.usefixtures("long_removals")
def test_stuck_job_that_is_released_before_its_removal_goes_on(
    make_pulsar: MakePulsar, slurm: Slurm, odd_command: Any
) -> None:
    """Somebody releases the job while it cannot be removed: it runs on, and its record goes."""
    odd_command("scancel", "echo scancel: error: busy >&2; exit 1")
    pulsar = make_pulsar(hold_grace=0)
    external_id = pulsar.submit("1", "sleep 600", "--comment=fake:launch_failure")
    wait_until(lambda: pulsar.record("1"), 60, "its record", 0.02)
    control.run(slurm.state, "scontrol", "release", external_id)
    pulsar.wait_for("1", "running")
    odd_command("scancel", None)
    pulsar.wait_for_looks(3)
    assert (pulsar.status("1"), pulsar.record("1")) == ("running", None)
    slurm.scancel(external_id)
    assert reason_of(pulsar.end("1")) == "cancelled"


@pytest.mark.usefixtures("long_removals")
def test_stuck_job_that_ran_to_its_end_before_its_removal(
    make_pulsar: MakePulsar, slurm: Slurm, odd_command: Any
) -> None:
    """It was released, and no look came before its end: complete, its record gone."""
    odd_command("scancel", "echo scancel: error: busy >&2; exit 1")
    pulsar = make_pulsar(hold_grace=0)
    external_id = pulsar.submit("1", "true", "--comment=fake:launch_failure")
    wait_until(lambda: pulsar.record("1"), 60, "its record", 0.02)
    with pulsar.unseen():
        control.change(slurm.state, external_id, state="ended", why="exited", exit=0)
        (pulsar.directory("1") / "return_code").write_text("0\n")
    assert pulsar.end("1")["status"] == "complete"
    assert pulsar.record("1") is None


def test_removed_job_that_is_forgotten_at_once(pulsar: Pulsar, slurm: Slurm) -> None:
    """The return code of a run before the hold does not make a removed job a success."""
    slurm.set(accounting="off")
    external_id = pulsar.submit(
        "1", "echo 0 > ../return_code; touch ../began; sleep 600",
        "-t 6000 --comment=fake:min_job_age=0")
    wait_until((pulsar.directory("1") / "began").exists, 60, "the job to begin", 0.02)
    control.event(slurm.state, external_id, "requeue_hold")
    payload = pulsar.end("1")
    assert (payload["status"], reason_of(payload), payload["returncode"]) == ("failed", "held", 0)


def test_an_end_that_was_told_stays(pulsar: Pulsar, slurm: Slurm) -> None:
    """Whatever a late look says, a watch that has told an end changes it no more."""
    external_id = pulsar.submit("1", "sleep 600", "-t 6000")
    manager = pulsar.manager()
    manager.get_status("1")
    watch = manager._watch_of("1")
    slurm.scancel(external_id)
    wait_until(lambda: manager.get_status("1") == "failed", 60, "its end", 0.02)
    control.show_as(slurm.state, external_id, state="RUNNING")
    pulsar.observer().watch((manager, "1"), watch)
    wait_until(lambda: pulsar.observer().watched() == 0, 60, "the end of looking", 0.02)
    assert manager.get_status("1") == "failed"


def test_many_stuck_jobs_are_removed_with_one_command(
    make_pulsar: MakePulsar, slurm: Slurm
) -> None:
    """A prolog that fails for everybody costs one scancel, not one a job."""
    pulsar = make_pulsar(hold_grace=0.5)
    jobs = [str(number) for number in range(1, 9)]
    ids = [pulsar.submit(job_id, "true", "-H") for job_id in jobs]
    with pulsar.unseen():
        for external_id in ids:
            control.show_as(slurm.state, external_id, reason="launch failed requeued held")
    for job_id in jobs:
        pulsar.wait_for(job_id, "failed")
        assert reason_of(pulsar.end(job_id)) == "held"
    assert len(slurm.commands("scancel")) == 1


def test_metadata_are_written_whole(pulsar: Pulsar) -> None:
    """A file that cannot be replaced keeps its content, and no part of the new one is left."""
    pulsar.directory("1").mkdir(parents=True)
    directory = pulsar.manager().job_directory("1")
    directory.store_metadata("final_status", "failed")
    assert directory.load_metadata("final_status") == "failed"
    (pulsar.directory("1") / "running").mkdir()
    with pytest.raises(OSError):
        directory.store_metadata("running", True)
    left = sorted(path.name for path in pulsar.directory("1").iterdir())
    assert left == ["final_status", "running"]
