"""How jobs reach HTCondor and leave it: commands, limits, names, refusals, attempts."""

from __future__ import annotations

import errno
import json
import logging
import os
import threading
from pathlib import Path
from typing import Any, Dict

import pytest

from pulsar_failure_reasons.managers.job_directory import AtomicJobDirectory as JobDirectory
from tests.pulsar_in_process import own_observers, reason_of, running
from tests.pulsar_server import wait_until

from .conftest import MakePulsar
from .harness import HELD, LOG, Pool, Pulsar

OVER = "Job has gone over cgroup memory limit of 2048 megabytes."
MB = 1024 * 1024


def test_stock_commands(pulsar: Pulsar, pool: Pool) -> None:
    """The job is submitted as stock queued_condor does it, its streams and log where Pulsar looks.
    """
    external_id = pulsar.submit("1", "true")
    ad = pool.ad(external_id)
    directory = pulsar.directory("1")
    assert ad["JobUniverse"] == "5"
    assert json.loads(ad["Cmd"]) == str(directory / "command.sh")
    assert json.loads(ad["UserLog"]) == str(directory / LOG)
    assert json.loads(ad["Iwd"]) == str(directory / "working")
    assert Path(json.loads(ad["Out"])) == directory / "metadata" / "job_stdout"
    assert json.loads(pool.attribute(external_id, "PulsarJobDirectory") or "") == str(directory)
    assert pool.attribute(external_id, "JobBatchName") == '"pulsar_1"'
    assert pulsar.external_id("1") == external_id and external_id.isdigit()


def test_commands_of_the_manager_win(make_pulsar: MakePulsar, pool: Pool) -> None:
    """submit_* options of the operator replace the submission's, whatever their case."""
    pulsar = make_pulsar(submit_priority="7", submit_RANK="3")
    external_id = pulsar.submit("1", "true", Priority="2", rank="9", description="x")
    assert pool.attribute(external_id, "JobPrio") == "7"
    assert pool.attribute(external_id, "Rank") == "3"
    assert pool.attribute(external_id, "JobDescription") == '"x"'


@pytest.mark.parametrize(
    "commands",
    [
        {"executable": "/bin/false", "output": "/dev/null", "error": "/dev/null",
         "log": "/dev/null"},
        {"Executable": "/bin/false", "LOG": "/dev/null"},
        {"+Cmd": '"/bin/false"', "+UserLog": '"/dev/null"', "My.Out": '"/dev/null"'},
        {"+PulsarJobDirectory": '"other"'},
        {"My.PulsarJobDirectory": '"other"'},
        {"batch_name": "other", "Batch_Name": "another"},
    ],
)
def test_what_has_to_be_ours(pulsar: Pulsar, pool: Pool, commands: Dict[str, str]) -> None:
    """Program, streams, log and our name for the job are ours whatever the submission says."""
    external_id = pulsar.submit("1", "echo out; echo err >&2", **commands)
    assert json.loads(pool.ad(external_id)["UserLog"]) == str(pulsar.log("1"))
    ours = json.loads(pool.attribute(external_id, "PulsarJobDirectory") or "")
    assert ours == str(pulsar.directory("1"))
    payload = pulsar.end("1")
    assert (payload["status"], payload["returncode"]) == ("complete", 0)


def test_batch_name_of_the_operator(make_pulsar: MakePulsar, pool: Pool) -> None:
    """The operator's batch_name is HTCondor's; the job is known and found again all the same."""
    pulsar = make_pulsar(submit_batch_name="galaxy")
    external_id = pulsar.submit("1", "sleep 600")
    assert pool.attribute(external_id, "JobBatchName") == '"galaxy"'
    pulsar.wait_for("1", "running")
    pool.do("edit", external_id, JobBatchName="renamed by the admin")
    pulsar.wait_for_looks(8)
    assert pulsar.status("1") == "running"


def test_found_again_by_its_name(make_pulsar: MakePulsar, pool: Pool) -> None:
    """A job whose id was lost in a crash is found by the attribute of its own."""
    pulsar = make_pulsar()
    external_id = pulsar.submit("1", "sleep 600", batch_name="x")
    pulsar.wait_for("1", "running")
    pulsar.shutdown()
    (pulsar.directory("1") / "external_id").unlink()
    again = make_pulsar()
    again.wait_for("1", "running", "queued")
    wait_until(lambda: again.external_id("1") == external_id, 60, "the id", 0.02)
    pool.do("hold", external_id, 34, 102, OVER)
    assert reason_of(again.end("1")) == "memory"


def test_names_with_quotes(tmp_path: Path, pool: Pool) -> None:
    """A job name and a folder with quotes, blanks and backslashes are texts, not expressions."""
    home = tmp_path / 'a "b" \\c'
    home.mkdir()
    with own_observers():
        with running(Pulsar(home, manager={"job_name_template": 'a"b $job_id'})) as pulsar:
            external_id = pulsar.submit("1", "sleep 600")
            ours = pool.attribute(external_id, "PulsarJobDirectory")
            assert json.loads(ours or "") == str(pulsar.directory("1"))
            pulsar.wait_for("1", "running")
            pulsar.wait_for_looks(6)
            assert pulsar.status("1") == "running"


def test_another_servers_job_of_the_same_id(tmp_path: Path, pool: Pool) -> None:
    """Two Pulsars on one schedd with equal job_ids: neither takes the other's job for its own."""
    homes = [tmp_path / name for name in ("one", "other")]
    for home in homes:
        home.mkdir()
    with own_observers(), running(Pulsar(homes[0])) as one:
        with own_observers(), running(Pulsar(homes[1])) as other:
            external_id = one.submit("1", "sleep 600")
            one.wait_for("1", "running")
            (one.directory("1") / "external_id").unlink()
            assert other.submit("1", "sleep 600") != external_id
            other.wait_for("1", "running")
            pool.do("remove", external_id)
            other.wait_for_looks(6)
            assert other.status("1") == "running"


@pytest.mark.parametrize(
    "options, commands, duration, memory_mb, disk_kb",
    [
        ({}, {}, None, "128", "1024"),
        ({"request_walltime": "01:00:00"}, {}, "3600", "128", "1024"),
        ({"request_walltime": 60}, {"request_walltime": "30"}, "30", "128", "1024"),
        ({"request_walltime": 60}, {"Request_Walltime": "00:00:30"}, "30", "128", "1024"),
        ({"submit_request_walltime": 60}, {"request_walltime": "30"}, "60", "128", "1024"),
        ({}, {"request_walltime": "unlimited"}, None, "128", "1024"),
        ({"request_memory": "2G", "request_disk": "1G"}, {}, None, "2048", "1048576"),
        ({"request_memory": 2048}, {"request_memory": "4096"}, None, "4096", "1024"),
        ({"request_memory": 2048}, {"RequestMemory": "4096"}, None, "4096", "1024"),
        ({}, {"request_memory": "4096"}, None, "4096", "1024"),
    ],
)
def test_limits(
    make_pulsar: MakePulsar, pool: Pool, options: Dict[str, Any], commands: Dict[str, str],
    duration: Any, memory_mb: str, disk_kb: str
) -> None:
    """Limits of the manager and of the submission reach the ad; the submission's replaces the
    option's, and submit_* of the manager wins over both."""
    external_id = make_pulsar(**options).submit("1", "sleep 600", **commands)
    assert pool.attribute(external_id, "AllowedExecuteDuration") == duration
    assert pool.attribute(external_id, "RequestMemory") == memory_mb
    assert pool.attribute(external_id, "RequestDisk") == disk_kb


def test_request_without_the_option_is_no_limit(pulsar: Pulsar, pool: Pool) -> None:
    """A submission's request_memory alone does not make the job's own policy hold it."""
    external_id = pulsar.submit("1", "true", request_memory="64")
    assert pool.attribute(external_id, "PeriodicHold") is None


def test_memory_request_that_is_an_expression(make_pulsar: MakePulsar, pool: Pool) -> None:
    """HTCondor's own expressions are left to HTCondor."""
    pulsar = make_pulsar(request_memory="2G")
    external_id = pulsar.submit("1", "true", request_memory="1024 * 3")
    assert pool.attribute(external_id, "RequestMemory") == "1024 * 3"
    assert pool.attribute(external_id, "PeriodicHold") is None


@pytest.mark.parametrize(
    "value", ["-5", "0", "1e99", "60) || (true", "60\nqueue 5", '60"', "$(MEMORY)", "", "sixty"]
)
def test_walltime_of_a_submission_that_is_none(pulsar: Pulsar, pool: Pool, value: str) -> None:
    """What Galaxy sends as a walltime is a number or is refused; it never reaches an expression."""
    pulsar.submit("1", "true", request_walltime=value)
    payload = pulsar.end("1")
    if value == "":
        assert payload["status"] == "complete"
        return
    assert (payload["status"], reason_of(payload)) == ("failed", "launch_error")
    assert pool.queue() == []


@pytest.mark.parametrize(
    "commands, said",
    [
        ({"queue": "3"}, "'queue' cannot be given"),
        ({"arguments": "x\nqueue 3"}, "line break"),
        ({"requirements": "(this is (not"}, "HTCondor refused the submission"),
        ({"universe": "parallel universe"}, "universe"),
        ({"a=b": "c"}, "'a=b' cannot be given"),
    ],
)
def test_refused_submission(
    pulsar: Pulsar, pool: Pool, commands: Dict[str, str], said: str
) -> None:
    """What makes no job is failed with HTCondor's words or ours, and nothing is in the queue."""
    pulsar.submit("1", "true", **commands)
    payload = pulsar.end("1")
    assert (payload["status"], reason_of(payload)) == ("failed", "launch_error")
    assert said in payload["runner_state_message"]
    assert pool.queue() == []


def test_our_walltime_holds(make_pulsar: MakePulsar, pool: Pool) -> None:
    """request_walltime ends a job that takes no file transfer."""
    pulsar = make_pulsar(request_walltime=1)
    external_id = pulsar.submit("1", "sleep 600")
    payload = pulsar.end("1")
    assert (payload["status"], payload["runner_state"]) == ("failed", "walltime_reached")
    assert payload["failure_reason"]["requested"]["walltime_s"] == 1
    pool.wait_gone(external_id)


def test_our_memory_holds(make_pulsar: MakePulsar) -> None:
    """request_memory ends a job that uses more."""
    pulsar = make_pulsar(request_memory="30M")
    pulsar.submit("1", "python3 -c 'x = bytes([1]) * 99000000; import time; time.sleep(600)'")
    payload = pulsar.end("1")
    assert (payload["status"], payload["runner_state"]) == ("failed", "memory_limit_reached")
    assert payload["failure_reason"]["requested"]["memory_bytes"] == 30 * MB


@pytest.mark.parametrize("spelling", ["periodic_hold", "+PeriodicHold", "My.PeriodicHold"])
@pytest.mark.parametrize(
    "theirs, ours, cause",
    [("(JobStatus == 2)", "600", "disk"), ("(Never =?= true)", "1", "walltime")],
    ids=["theirs_is_first", "ours_is_first"],
)
def test_with_the_operators_own_hold(
    make_pulsar: MakePulsar, spelling: str, theirs: str, ours: str, cause: str
) -> None:
    """Our rule is added to the operator's periodic_hold; each keeps its reason and subcode."""
    options = {
        f"submit_{spelling}": theirs,
        "submit_periodic_hold_reason": '"the scratch disk is full"',
        "submit_+PeriodicHoldSubCode": "77",
    }
    pulsar = make_pulsar(request_walltime=ours, **options)
    pulsar.submit("1", "sleep 600")
    payload = pulsar.end("1")
    assert reason_of(payload) == cause
    codes = [e["value"] for e in payload["failure_reason"]["evidence"]
             if e["field"] == "HoldReasonCode"]
    assert codes == ["3/77 JobPolicy" if cause == "disk" else "3/46001 JobPolicy"]


def test_operators_release_and_remove(make_pulsar: MakePulsar, pool: Pool) -> None:
    """periodic_remove of the operator is a removal by policy."""
    pulsar = make_pulsar(submit_periodic_remove="(JobStatus == 5)", request_walltime=1,
                         wait_for_release="walltime", hold_grace=60)
    pulsar.submit("1", "sleep 600")
    payload = pulsar.end("1")
    assert (payload["status"], reason_of(payload)) == ("failed", "walltime")


def test_relaunch(pulsar: Pulsar, pool: Pool) -> None:
    """A second attempt of a job_id knows nothing of the first: log, record, return code."""
    first = pulsar.submit("1", "echo 3 > ../return_code; sleep 600", f"0.3 hold 34 102 {OVER}")
    assert reason_of(pulsar.end("1")) == "memory"
    pool.wait_gone(first)
    (pulsar.directory("1") / "final_status").unlink()
    second = pulsar.submit("1", "sleep 0.5")
    assert second != first
    assert pulsar.record("1") is None
    payload = pulsar.end("1")
    assert (payload["status"], payload["returncode"], reason_of(payload)) == ("complete", 0, None)


def test_cancel(pulsar: Pulsar, pool: Pool) -> None:
    """Galaxy's own cancel takes the job out and records nothing."""
    external_id = pulsar.submit("1", "sleep 600")
    pulsar.wait_for("1", "running")
    pulsar.proxy().kill("1")
    pool.wait_gone(external_id)
    payload = pulsar.payload("1")
    assert (payload["status"], reason_of(payload), pulsar.record("1")) == ("cancelled", None, None)


def test_cancel_while_it_is_submitted(
    pulsar: Pulsar, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Galaxy cancels while the schedd is at it: the job does not run on."""
    source = pulsar.observer().source
    submit, submitting, go_on = source.submit, threading.Event(), threading.Event()

    def slow(commands: Any) -> str:
        external_id = str(submit(commands))
        submitting.set()
        go_on.wait(60)
        return external_id

    monkeypatch.setattr(source, "submit", slow)
    launcher = threading.Thread(target=lambda: pulsar.submit("1", "sleep 600"))
    launcher.start()
    assert submitting.wait(60)
    pulsar.proxy().kill("1")
    go_on.set()
    launcher.join(60)
    wait_until(lambda: pool.queue() == [], 60, "the job to leave", 0.02)
    assert pulsar.status("1") == "cancelled"


def test_id_that_cannot_be_stored(
    pulsar: Pulsar, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk: the submission fails for Galaxy, and the job does not run on unseen."""
    store = JobDirectory.store_metadata

    def full(self: Any, name: str, value: Any, atomic: bool = False) -> None:
        if name == "external_id":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        store(self, name, value, atomic=atomic)

    monkeypatch.setattr(JobDirectory, "store_metadata", full)
    pulsar.submit("1", "sleep 600")
    assert pulsar.end("1")["status"] == "failed"
    wait_until(lambda: pool.queue() == [], 60, "the job to leave", 0.02)


def test_removed_before_the_first_look(
    pulsar: Pulsar, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that an admin removes in the moment of its submission is cancelled, not lost."""
    source = pulsar.observer().source
    submit = source.submit

    def removed_at_once(commands: Any) -> str:
        external_id = str(submit(commands))
        pool.do("remove", external_id, "via condor_rm (by user alice)")
        return external_id

    monkeypatch.setattr(source, "submit", removed_at_once)
    pulsar.submit("1", "sleep 600")
    payload = pulsar.end("1")
    assert (payload["status"], reason_of(payload)) == ("failed", "cancelled")
    assert payload["failure_reason"]["cancelled_by"] == "alice"


def test_there_from_queued_condor(
    make_pulsar: MakePulsar, pool: Pool, caplog: pytest.LogCaptureFixture
) -> None:
    """Jobs that stock queued_condor submitted, without our attribute, are seen and judged."""
    caplog.set_level(logging.INFO, "pulsar.failure_reasons")
    pulsar = make_pulsar()
    stock = pulsar.submit("1", "sleep 600")
    pulsar.wait_for("1", "running")
    pulsar.shutdown()
    with pool.store().change() as queue:
        job = queue.get(int(stock))
        job.ad = {k: v for k, v in job.ad.items()
                  if k.lower() not in ("pulsarjobdirectory", "jobbatchname")}
        queue.put(job)
    again = make_pulsar()
    again.wait_for("1", "running")
    again.wait_for_looks(8)
    assert again.status("1") == "running"
    pool.do("hold", stock, 34, 102, OVER)
    assert reason_of(again.end("1")) == "memory"
    pool.wait_gone(stock)


def test_the_first_process_of_a_cluster(make_pulsar: MakePulsar, pool: Pool) -> None:
    """Of a cluster with several processes (stock's submit file had queue 2) the first one counts.
    """
    pulsar = make_pulsar()
    external_id = pulsar.submit("1", "sleep 600")
    pulsar.wait_for("1", "running")
    with pool.store().change() as queue:
        first = queue.get(int(external_id))
        second = type(first)(first.cluster, 1, dict(first.ad))
        second.set(ProcId=1, JobStatus=HELD, HoldReasonCode=34, HoldReason=OVER)
        queue.put(second)
    pulsar.wait_for_looks(4)
    assert pulsar.status("1") == "running"


def test_id_that_is_given_to_another_job(pulsar: Pulsar, pool: Pool) -> None:
    """A schedd that was set up anew counts from 1: the old job is lost, the new one is told right.
    """
    old = pulsar.submit("old", "sleep 600")
    pulsar.wait_for("old", "running")
    pool.do("forget", old)
    new = pulsar.submit("new", "kill -11 $$")
    assert new == old
    assert reason_of(pulsar.end("new")) == "unknown"
    assert reason_of(pulsar.end("old")) == "lost"


def _killed_in_launch(pulsar: Pulsar, *forgotten: str) -> None:
    """Leave job 1 as a kill does that comes before Pulsar notes the launch: in no index."""
    pulsar.shutdown()
    for name in ("preprocessed", *forgotten):
        (pulsar.directory("1") / name).unlink()
    pulsar.proxy().active_jobs.deactivate_job("1")


@pytest.mark.parametrize("forgotten", [(), ("external_id",)], ids=["id stored", "id not stored"])
def test_killed_in_the_launch_and_in_no_index(
    make_pulsar: MakePulsar, pool: Pool, forgotten: Any
) -> None:
    """A REST job is found by its id, or by the job directory in its ad; it is not run twice."""
    first = make_pulsar()
    external_id = first.submit("1", "touch ../began; sleep 600")
    wait_until((first.directory("1") / "began").exists, 60, "it to begin", 0.02)
    _killed_in_launch(first, *forgotten)
    again = make_pulsar()
    assert again.wait_for("1", "running")["status"] == "running"
    assert again.external_id("1") == external_id
    assert pool.queue() == [int(external_id)]
    again.proxy().kill("1")
    pool.wait_gone(external_id)


def test_never_submitted_and_in_no_index(make_pulsar: MakePulsar, pool: Pool) -> None:
    """No job with its directory in its ad: it ends, and the message says how it came to that."""
    first = make_pulsar()
    external_id = first.submit("1", "touch ../began; sleep 600")
    wait_until((first.directory("1") / "began").exists, 60, "it to begin", 0.02)
    _killed_in_launch(first, "external_id")
    pool.do("forget", external_id)
    payload = make_pulsar().end("1")
    assert (payload["status"], reason_of(payload)) == ("failed", "lost")
    assert "Pulsar was killed while it submitted the job" in payload["runner_state_message"]
