"""How a job's end on a real HTCondor reaches Galaxy, through a stock Pulsar server."""

from __future__ import annotations

import itertools
import shlex
import shutil
from pathlib import Path
from typing import Any, Dict, Iterator, Optional

import pytest

from tests.pulsar_server import PulsarServer, wait_until
from tests.real import htcondor_conf
from tests.real.conftest import PoolFactory
from tests.real.htcondor import HELD, PrivatePool, htcondor_prefix, namespace
from tests.real.site import PATIENCE_S, UNTIL_LET_GO, outcome

pytestmark = pytest.mark.real

LOG = "job_condor.log"
TYPE = "queued_htcondor_classified"
#: A stall of the machine is not to end a submission.
QUICK = {"type": TYPE, "status_poll_interval": 1, "missing_grace": 4, "command_timeout": 90}

#: Named managers of the one server, by what they do otherwise than the default.
MANAGERS: Dict[str, Dict[str, Any]] = {
    "_default_": QUICK,
    "limited": {**QUICK, "request_walltime": 6},
    "patient_with_limit": {
        **QUICK, "wait_for_release": "memory", "hold_releases_max": 9, "request_memory": "64",
    },
    "limited_disk": {**QUICK, "request_disk": "20M"},
    "impatient_with_people": {**QUICK, "user_hold_grace": 4},
    "impatient": {**QUICK, "hold_grace": 4},
}

MEMORY_SUBCODE = "46002"

#: A tool of 150 MB, and of 350 MB once there is ../grow; it runs until it is let go.
GROWS = (
    "python3 -c 'import os, time; blocks = [bytes([1]) * 150_000_000]\n"
    "while not os.path.exists(\"../go\"):\n"
    " if os.path.exists(\"../grow\") and len(blocks) == 1:\n"
    "  blocks.append(bytes([1]) * 200_000_000)\n"
    " time.sleep(0.2)'"
)

_job_ids = itertools.count(1)


class CondorSite:
    """One pool with one Pulsar server."""

    def __init__(self, pool: PrivatePool, home: Path, managers: Dict[str, Any]) -> None:
        self.pool = pool
        self.pulsar = PulsarServer(home, {"managers": managers}, pool.env)

    def submit(self, command: str, manager: str = "_default_", **commands: str) -> str:
        """Submit a job with these submit commands; return its Pulsar id."""
        job_id = str(next(_job_ids))
        small = {"request_memory": "64", "request_disk": "1024", "should_transfer_files": "NO"}
        return self.pulsar.submit(job_id, command, manager=manager, **{**small, **commands})

    def cluster(self, job_id: str) -> str:
        """Return the job's cluster in HTCondor."""
        external_id = self.pulsar.external_id(job_id)
        assert external_id is not None, f"job {job_id} was not submitted"
        return external_id

    def running(self, job_id: str) -> str:
        """Wait until Pulsar says that the job runs; return its cluster."""
        self.pulsar.wait_for(job_id, ["running"], PATIENCE_S)
        return self.cluster(job_id)

    def executing(self, job_id: str) -> str:
        """Wait until HTCondor's log tells that the job has begun, ended or not; return its
        cluster."""
        self.pool.wait_event(self.directory(job_id) / LOG, "EXECUTE", PATIENCE_S)
        return self.cluster(job_id)

    def let_go(self, job_id: str) -> None:
        """Let a tool that runs ``UNTIL_LET_GO`` end, in this run or in the next."""
        (self.directory(job_id) / "go").touch()

    def held(self, job_id: str) -> str:
        """Wait until HTCondor holds the job; return its cluster."""
        self.pool.wait_status(self.cluster(job_id), HELD, PATIENCE_S)
        return self.cluster(job_id)

    def gone(self, job_id: str) -> bool:
        """Tell whether the job has left HTCondor's queue, waiting for it."""
        constraint = f"ClusterId == {self.cluster(job_id)}"
        gone = "the job to leave the queue"
        wait_until(lambda: not self.pool.schedd().query(constraint), PATIENCE_S, gone)
        return True

    def end(self, job_id: str, timeout_s: float = PATIENCE_S) -> Dict[str, Any]:
        """Return the job's terminal payload."""
        return self.pulsar.wait_for_end(job_id, timeout_s)

    def directory(self, job_id: str) -> Path:
        """Return the job's directory."""
        return self.pulsar.staging / job_id


def cause_of(payload: Dict[str, Any]) -> Optional[str]:
    """Return the cause that a payload carries."""
    return (payload.get("failure_reason") or {}).get("cause")


@pytest.fixture(scope="module")
def site(
    real_htcondor: PrivatePool, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[CondorSite]:
    made = CondorSite(real_htcondor, tmp_path_factory.mktemp("pulsar"), MANAGERS)
    with made.pulsar:
        yield made


@pytest.mark.parametrize("command, returncode", [("echo hello", 0), ("sh -c 'exit 3'", 3)])
def test_the_tools_own_exit(site: CondorSite, command: str, returncode: int) -> None:
    """A job that ends by itself is complete, with its exit code and no new key."""
    payload = site.end(site.submit(command))
    assert (payload["status"], payload["returncode"]) == ("complete", returncode)
    assert "runner_state" not in payload and "failure_reason" not in payload


def test_signal_9_near_the_memory_request(site: CondorSite) -> None:
    """Signal 9 without a hold, with the memory used up, is memory, and marked as inferred."""
    hog = (
        "python3 -c 'import os, time; block = bytes([1]) * 60_000_000\n"
        "while not os.path.exists(\"../go\"): time.sleep(0.2)\n"
        "os.kill(os.getppid(), 9)'"
    )
    # The last measurement may come as the memory is given back already: a small request.
    job_id = site.submit(hog, request_memory="8")
    cluster = site.executing(job_id)
    site.pool.wait_memory(cluster, 50)
    site.let_go(job_id)
    payload = site.end(job_id)
    assert (payload["status"], cause_of(payload)) == ("failed", "memory")
    assert payload["failure_reason"]["confidence"] == "inferred"


@pytest.mark.parametrize("signal", [9, 11])
def test_a_signal_far_from_any_limit(site: CondorSite, signal: int) -> None:
    """A signal that nothing explains is a kill of unknown cause, never a success."""
    payload = site.end(site.submit(f"kill -{signal} $$", request_memory="2048"))
    assert outcome(payload) == {
        "status": "failed",
        "returncode": None,
        "runner_state": "unknown_error",
        "cause": "unknown",
    }


def test_our_walltime_limit(site: CondorSite) -> None:
    """request_walltime holds a job that takes no file transfer, and the job is taken out."""
    job_id = site.submit("sleep 600", manager="limited")
    payload = site.end(job_id)
    assert outcome(payload) == {
        "status": "failed",
        "returncode": None,
        "runner_state": "walltime_reached",
        "cause": "walltime",
    }
    assert payload["failure_reason"]["requested"]["walltime_s"] == 6
    assert site.gone(job_id)


@pytest.mark.parametrize(
    "limit", ["allowed_job_duration", "allowed_execute_duration"], ids=["46", "47"]
)
def test_htcondors_own_durations(site: CondorSite, limit: str) -> None:
    """Hold codes 46 and 47 are walltime."""
    commands = {limit: "5", "should_transfer_files": "YES"}
    payload = site.end(site.submit("sleep 600", **commands))
    assert (payload["status"], payload["runner_state"]) == ("failed", "walltime_reached")


def test_submitted_on_hold_then_started_without_its_executable(site: CondorSite) -> None:
    """A person's hold waits; what cannot be executed afterwards (6) is a launch error."""
    job_id = site.submit("true", hold="true")
    cluster = site.held(job_id)
    (site.directory(job_id) / "command.sh").unlink()
    assert site.pulsar.payload(job_id)["status"] == "queued"
    site.pool.run(["condor_release", cluster])
    payload = site.end(job_id)
    assert (payload["status"], cause_of(payload)) == ("failed", "launch_error")


@pytest.mark.parametrize(
    "command", ["transfer_output_files", "transfer_input_files"], ids=["12", "13"]
)
def test_file_transfer(site: CondorSite, command: str) -> None:
    """HTCondor's own file transfer that fails (12, 13) is a stage error."""
    commands = {command: "/nonexistent/file", "should_transfer_files": "YES"}
    job_id = site.submit("true", **commands)
    payload = site.end(job_id)
    assert (payload["status"], cause_of(payload)) == ("failed", "stage_error")
    assert payload["failure_reason"]["fault"] == "infrastructure"
    assert site.gone(job_id)


def test_user_hold_then_release(site: CondorSite) -> None:
    """A person's hold is no failure: queued, and complete after the release."""
    job_id = site.submit(UNTIL_LET_GO)
    cluster = site.running(job_id)
    site.pool.run(["condor_hold", cluster])
    site.pulsar.wait_for(job_id, ["queued"])
    site.let_go(job_id)
    site.pool.run(["condor_release", cluster])
    assert site.end(job_id)["status"] == "complete"


def test_user_hold_kept(site: CondorSite) -> None:
    """Where an operator sets user_hold_grace, a person's hold comes to an end too."""
    job_id = site.submit("sleep 600", manager="impatient_with_people")
    site.pool.run(["condor_hold", site.running(job_id)])
    payload = site.end(job_id)
    assert (payload["status"], cause_of(payload)) == ("failed", "held")
    assert site.gone(job_id)


def released_with_more(site: CondorSite, megabytes: int) -> str:
    """Submit a job of 150 MB, over its limit of 64; release it with more as usegalaxy.eu does, and
    wait until it runs and was measured; return its Pulsar id."""
    job_id = site.submit(GROWS, manager="patient_with_limit")
    cluster = site.held(job_id)
    ad = site.pool.ad(cluster) or {}
    assert (ad["HoldReasonCode"], ad["HoldReasonSubCode"]) == (3, int(MEMORY_SUBCODE))
    assert ad["HoldReason"] == "over its memory limit of 64 MB"
    site.pulsar.wait_for(job_id, ["queued"])
    site.pool.run(["condor_qedit", cluster, "RequestMemory", str(megabytes)])
    site.pool.run(["condor_release", cluster])
    site.running(job_id)
    site.pool.wait_memory(cluster, 140, run=2)
    assert site.pulsar.payload(job_id)["status"] == "running"
    return job_id


def test_limit_raised_by_a_release_with_more_memory(site: CondorSite) -> None:
    """request_memory is the limit of the moment: with a larger request the job ends well."""
    job_id = released_with_more(site, 1000)
    site.let_go(job_id)
    assert site.end(job_id)["status"] == "complete"


def test_memory_hold_released_with_too_little(site: CondorSite) -> None:
    """The usegalaxy.eu sequence: hold, qedit and release, hold again, condor_rm: memory."""
    job_id = released_with_more(site, 250)
    (site.directory(job_id) / "grow").touch()
    cluster = site.held(job_id)
    assert (site.pool.ad(cluster) or {})["HoldReason"] == "over its memory limit of 250 MB"
    assert site.pulsar.payload(job_id)["status"] in ("queued", "running")
    site.pool.run(["condor_rm", "-reason", "The job is running out of memory", cluster])
    payload = site.end(job_id)
    assert (payload["status"], payload["runner_state"]) == ("failed", "memory_limit_reached")
    assert payload["failure_reason"]["requested"]["memory_bytes"] == 250 * 1024**2


def test_our_disk_limit(site: CondorSite) -> None:
    """request_disk holds a job whose scratch folder grows over the request, and it fails."""
    fill = 'head -c 40000000 /dev/zero > "$_CONDOR_SCRATCH_DIR/big"; sleep 600'
    # Without a transfer of files HTCondor does not measure the scratch folder (seen on 23.9.6).
    commands = {"request_disk": "20480", "should_transfer_files": "YES"}
    payload = site.end(site.submit(fill, manager="limited_disk", **commands))
    assert (payload["status"], cause_of(payload)) == ("failed", "disk")
    assert "over its disk limit of 20 MB" in payload["runner_state_message"]


def test_memory_hold_without_anybody_to_release_it(site: CondorSite) -> None:
    """By default a memory hold fails at once, and the job is taken out of the queue."""
    job_id = site.submit(
        "sleep 600",
        periodic_hold="(JobStatus == 2)",
        periodic_hold_subcode=MEMORY_SUBCODE,
        periodic_hold_reason='"used too much memory"',
    )
    payload = site.end(job_id)
    assert (payload["status"], payload["runner_state"]) == ("failed", "memory_limit_reached")
    assert site.gone(job_id)


def test_hold_for_no_limit_past_its_grace(site: CondorSite) -> None:
    """A hold that no limit explains waits for hold_grace, then the job is removed."""
    job_id = site.submit(
        "sleep 600",
        manager="impatient",
        periodic_hold="(JobStatus == 2)",
        periodic_hold_reason='"the wrong phase of the moon"',
    )
    site.held(job_id)
    payload = site.end(job_id)
    assert (payload["status"], cause_of(payload)) == ("failed", "held")
    assert "phase of the moon" in payload["runner_state_message"]


def test_condor_rm(site: CondorSite) -> None:
    """A removal by somebody else is cancelled, and says by whom."""
    job_id = site.submit("sleep 600")
    site.pool.run(["condor_rm", site.running(job_id)])
    payload = site.end(job_id)
    assert (payload["status"], cause_of(payload)) == ("failed", "cancelled")
    assert payload["failure_reason"]["cancelled_by"] == site.pool.user


def test_periodic_remove(site: CondorSite) -> None:
    """A removal by policy is cancelled too."""
    job_id = site.submit("sleep 600", periodic_remove="(JobStatus == 2)")
    payload = site.end(job_id)
    assert (payload["status"], cause_of(payload)) == ("failed", "cancelled")


def test_cancel_by_galaxy(site: CondorSite) -> None:
    """Galaxy's own cancel takes the job out and leaves no reason."""
    job_id = site.submit("sleep 600")
    site.running(job_id)
    site.pulsar.client(job_id).kill()
    assert site.gone(job_id)
    payload = site.end(job_id)
    assert payload["status"] == "cancelled" and "runner_state" not in payload


def test_log_deleted(site: CondorSite) -> None:
    """Without its log a job's end is read from the queue and from history."""
    well, held = site.submit(UNTIL_LET_GO), site.submit("sleep 600", allowed_job_duration="6")
    for job_id in (well, held):
        site.executing(job_id)
        (site.directory(job_id) / LOG).unlink()
    site.let_go(well)
    assert site.end(well)["status"] == "complete"
    assert site.end(held)["runner_state"] == "walltime_reached"


def test_log_unwritable(site: CondorSite) -> None:
    """A job whose log cannot be written ends by what history says."""
    job_id = site.submit("kill -11 $$", hold="true")
    cluster = site.held(job_id)
    log = site.directory(job_id) / LOG
    log.unlink(missing_ok=True)
    log.mkdir()
    site.pool.run(["condor_release", cluster])
    payload = site.end(job_id)
    assert (payload["status"], payload["runner_state"]) == ("failed", "unknown_error")
    assert payload["failure_reason"]["confidence"] == "accounting"


def test_pulsar_restarted(site: CondorSite) -> None:
    """A restarted Pulsar goes on with its jobs and reads their logs again."""
    well = site.submit(UNTIL_LET_GO)
    held = site.submit("sleep 600", allowed_job_duration="12")
    site.executing(held)
    site.running(well)
    site.pulsar.kill()
    site.pulsar.start()
    assert site.pulsar.payload(well)["status"] == "running"
    site.let_go(well)
    assert site.end(well)["status"] == "complete"
    assert site.end(held)["runner_state"] == "walltime_reached"


def test_schedd_killed(site: CondorSite) -> None:
    """A schedd that dies and comes back at another address changes no job's status."""
    job_id = site.submit(UNTIL_LET_GO)
    site.running(job_id)
    site.pool.kill_schedd()
    assert site.pulsar.payload(job_id)["status"] == "running"
    site.let_go(job_id)
    assert site.end(job_id)["status"] == "complete"


def test_pool_restarted(site: CondorSite) -> None:
    """A job that is disconnected, evicted and runs again is not judged in between."""
    # By default HTCondor tries to reconnect for 40 minutes.
    job_id = site.submit(UNTIL_LET_GO, job_lease_duration="20")
    site.running(job_id)
    site.pool.restart()
    site.let_go(job_id)
    assert site.end(job_id)["status"] == "complete"


def test_refused_submission(site: CondorSite) -> None:
    """What HTCondor does not take is failed with its own words."""
    payload = site.end(site.submit("true", requirements="(this is (not an expression"))
    assert (payload["status"], cause_of(payload)) == ("failed", "launch_error")
    assert "HTCondor" in payload["runner_state_message"]


def test_there_and_back_from_queued_condor(
    real_htcondor: PrivatePool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """An operator changes the type with jobs in flight, in both directions."""
    home = tmp_path_factory.mktemp("pulsar")
    stock = {"_default_": {"type": "queued_condor", "min_polling_interval": 1}}
    site = CondorSite(real_htcondor, home, stock)
    site.pulsar._env["PATH"] = stock_commands(home)
    with site.pulsar:
        killed, well = site.submit("sleep 600", allowed_job_duration="15"), site.submit("sleep 5")
        site.executing(killed)
        stored = (site.directory(killed) / "external_id").read_text()
    site.pulsar.configure({"managers": {"_default_": QUICK}})
    with site.pulsar:
        assert site.end(well)["status"] == "complete"
        assert site.end(killed)["runner_state"] == "walltime_reached"
        back = site.submit(UNTIL_LET_GO)
        site.running(back)
        now = (site.directory(back) / "external_id").read_text()
    assert stored.strip('"').isdigit() and now.strip('"').isdigit()
    site.pulsar.configure({"managers": stock})
    with site.pulsar:
        site.let_go(back)
        assert site.end(back)["status"] == "complete"


def stock_commands(home: Path) -> str:
    """Return a PATH on which stock Pulsar finds condor's commands of the private pool."""
    programs = home / "bin"
    programs.mkdir()
    prefix = htcondor_prefix()
    for name in ("condor_submit", "condor_rm"):
        program = shutil.which(name, path=f"{prefix}/usr/bin")
        assert program is not None
        command = shlex.join([*namespace(), program])
        (programs / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        (programs / name).chmod(0o755)
    return f"{programs}:/usr/local/bin:/usr/bin:/bin"


@pytest.fixture(scope="module")
def strict_site(
    make_htcondor: PoolFactory, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[CondorSite]:
    """A pool with a rule of its own: 26 for jobs that ask for it."""
    rules = htcondor_conf.system_periodic_hold(
        "(JobStatus == 2) && (PleaseHold =?= true)", "MEMORY EXCEEDED", subcode=0
    )
    made = CondorSite(
        make_htcondor(extra_config=rules), tmp_path_factory.mktemp("pulsar"), MANAGERS
    )
    with made.pulsar:
        yield made


def test_site_rule_26_by_its_text(strict_site: CondorSite) -> None:
    """A site's rule is read by its words where its subcode says nothing."""
    payload = strict_site.end(strict_site.submit("sleep 600", **{"+PleaseHold": "true"}))
    assert (payload["status"], payload["runner_state"]) == ("failed", "memory_limit_reached")


def test_execute_side_runtime_21_103(strict_site: CondorSite) -> None:
    """The execute side's runtime rule (21/103, after 8 s) is walltime."""
    with strict_site.pool.configured(htcondor_conf.hold_if_runtime_exceeds(8)):
        payload = strict_site.end(strict_site.submit("sleep 600"))
    assert (payload["status"], payload["runner_state"]) == ("failed", "walltime_reached")


def test_execute_side_memory_21_102(
    make_htcondor: PoolFactory, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The execute side's memory rule is memory, with used and requested."""
    pool = make_htcondor(extra_config="use policy:Hold_If_Memory_Exceeded\n")
    site = CondorSite(pool, tmp_path_factory.mktemp("pulsar"), MANAGERS)
    hog = "python3 -c 'import time; block = bytes([1]) * 150_000_000; time.sleep(600)'"
    with site.pulsar:
        payload = site.end(site.submit(hog, request_memory="64"))
    assert (payload["status"], payload["runner_state"]) == ("failed", "memory_limit_reached")
    reason = payload["failure_reason"]
    assert reason["used"]["memory_bytes"] > reason["requested"]["memory_bytes"]
