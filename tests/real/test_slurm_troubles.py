"""What else happens to jobs and to Slurm: real Slurm 22.05, through a stock Pulsar server."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Iterator

import pytest

from tests.pulsar_server import wait_until
from tests.real.conftest import SlurmFactory
from tests.real.site import PATIENCE_S, UNTIL_LET_GO, Site, outcome
from tests.real.slurm import PrivateSlurm

pytestmark = pytest.mark.real

PREEMPTION = """\
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName=low Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=1 PreemptMode=REQUEUE
PartitionName=doomed Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=1 PreemptMode=CANCEL
PartitionName=high Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=OFF
"""


#: Slurm counts the runs of a job that it requeues; in the first one there is no count.
FIRST_RUN_STAYS = "touch started; [ $SLURM_RESTART_COUNT ] || sleep 600; sleep 3"


@pytest.fixture(scope="module")
def site(
    real_slurm: PrivateSlurm, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    with Site(real_slurm, tmp_path_factory.mktemp("pulsar"), hold_grace=5) as made:
        yield made


def pending_forever(site: Site) -> str:
    """Submit a job that waits for a start time of tomorrow."""
    return site.submit("touch started", "--begin=now+1day --time=5 --mem=100")


def test_scancel_of_a_pending_job(site: Site) -> None:
    """A job that somebody takes out of the queue never ran, and is no success."""
    job_id = pending_forever(site)
    site.slurm.run(["scancel", site.external_id(job_id)])
    assert outcome(site.end(job_id)) == {
        "status": "failed", "returncode": None,
        "runner_state": "unknown_error", "cause": "cancelled",
    }


def test_cancel_by_galaxy_records_nothing(site: Site) -> None:
    """Galaxy's own cancel ends the job in Slurm, and there is no reason to tell."""
    job_id = site.submit("sleep 600")
    external_id = site.running(job_id)
    site.pulsar.client(job_id).kill()
    site.slurm.wait_state(external_id, "CANCELLED")
    payload = site.end(job_id)
    assert payload["status"] == "cancelled"
    assert "runner_state" not in payload
    assert not (site.pulsar.staging / job_id / "runner_state").exists()


def test_node_failure_with_requeue(site: Site) -> None:
    """A job that Slurm requeues after its node failed is queued again, then ends well."""
    slurm = site.slurm
    job_id = site.submit(
        FIRST_RUN_STAYS, f"--time=5 --mem=100 --requeue -w {slurm.nodes[1]}"
    )
    external_id = site.running(job_id)
    site.tool_has_started(job_id)
    slurm.crash_node(slurm.nodes[1])
    site.pulsar.wait_for(job_id, ["queued"], PATIENCE_S)
    slurm.node_up(slurm.nodes[1])
    slurm.start_now(external_id)
    payload = site.end(job_id)
    assert (payload["status"], payload["returncode"]) == ("complete", 0)
    assert "runner_state" not in payload


def test_requeue_then_kill_9(site: Site) -> None:
    """The return code of the first run does not bless a second run that is killed."""
    job_id = site.submit("touch started; sh -c 'exit 0'; [ -e again ] || sleep 600")
    external_id = site.running(job_id)
    site.tool_has_started(job_id)
    # What a first run leaves that comes to its tool's end just before it is requeued.
    site.return_code_file(job_id).write_text("0\n")
    site.slurm.run(["scontrol", "requeue", external_id])
    site.pulsar.wait_for(job_id, ["queued"])
    started = site.pulsar.staging / job_id / "working" / "started"
    started.unlink()
    site.slurm.start_now(external_id)
    site.running(job_id)
    site.tool_has_started(job_id)
    assert not site.return_code_file(job_id).exists()
    site.slurm.run(["scancel", "--signal=KILL", "--batch", external_id])
    payload = site.end(job_id)
    assert (payload["status"], payload["runner_state"]) == ("failed", "unknown_error")


def test_requeued_and_held_past_its_grace(site: Site) -> None:
    """A job that Slurm holds for good is removed from Slurm after the grace, and failed."""
    job_id = site.submit("sleep 600")
    external_id = site.running(job_id)
    site.slurm.run(["scontrol", "requeuehold", external_id])
    payload = site.end(job_id)
    assert outcome(payload) == {
        "status": "failed", "returncode": None, "runner_state": "unknown_error", "cause": "held",
    }
    site.slurm.wait_state(external_id, "CANCELLED")


def test_deadline(site: Site) -> None:
    """A job that its deadline overtakes is told of as a limit of time, naming the deadline."""
    payload = site.end(site.submit("sleep 600", "--time=1 --deadline=now+45 --mem=100"))
    assert (payload["status"], payload["runner_state"]) == ("failed", "walltime_reached")
    assert "deadline" in payload["runner_state_message"]


def test_unwritable_output(site: Site) -> None:
    """A job whose output file cannot be opened never comes to its tool."""
    job_id = pending_forever(site)
    metadata = site.pulsar.staging / job_id / "metadata"
    metadata.rename(metadata.with_name("moved"))
    metadata.write_text("a file where Slurm expects a folder")
    site.slurm.start_now(site.external_id(job_id))
    payload = site.end(job_id)
    assert (payload["status"], payload["runner_state"]) == ("failed", "unknown_error")
    assert payload["failure_reason"]["cause"] == "disk"
    assert "output file" in payload["runner_state_message"]


def test_controller_stopped_and_started(site: Site) -> None:
    """A silent controller changes no job's status, and is logged once, and so is its return."""
    job_id = site.submit(UNTIL_LET_GO)
    site.running(job_id)
    logged = len(site.pulsar.log_text())
    site.slurm.controller_stop()
    try:
        wait_until(
            lambda: "Slurm gave no usable answer" in site.pulsar.log_text()[logged:],
            180, "the outage to be logged",
        )
        took = []
        for _ in range(5):
            began = time.monotonic()
            assert site.pulsar.payload(job_id)["status"] == "running"
            took.append(time.monotonic() - began)
        # The machine may hold up one or the other; had they waited for Slurm, then each for 18 s.
        assert min(took) < 8, "get_status waited for Slurm"
    finally:
        site.slurm.controller_start()
    site.let_go(job_id)
    assert site.end(job_id)["status"] == "complete"
    log = site.pulsar.log_text()[logged:]
    outage, again, later = log.partition("Slurm answers again")
    assert again and outage.count("Slurm gave no usable answer") == 1
    # None, unless the machine stalled.
    assert later.count("Slurm gave no usable answer") == later.count("Slurm answers again")


def test_slurmdbd_down(site: Site) -> None:
    """Accounting is not needed for a job that the controller knows."""
    site.slurm.slurmdbd_stop()
    try:
        job_id = site.submit("sh -c 'exit 3'")
        payload = site.end(job_id)
    finally:
        site.slurm.slurmdbd_start()
    assert (payload["status"], payload["returncode"]) == ("complete", 3)


def test_array_elements(site: Site) -> None:
    """A native specification may make an array: it ends with its last element, by its worst."""
    job_id = site.submit(
        'if [ "$SLURM_ARRAY_TASK_ID" = 2 ]; then sleep 600; fi', "--array=1-2 --time=5 --mem=100"
    )
    external_id = site.running(job_id)
    site.slurm.wait_state(f"{external_id}_1", "COMPLETED")
    assert site.pulsar.payload(job_id)["status"] == "running"
    site.slurm.expire(f"{external_id}_2")
    payload = site.end(job_id)
    assert (payload["status"], payload["runner_state"]) == ("failed", "walltime_reached")


def test_pulsar_restart_while_the_job_runs(site: Site) -> None:
    """A restarted Pulsar goes on with its jobs: running stays running, the end is told."""
    killed, well = site.submit("sleep 600"), site.submit(UNTIL_LET_GO)
    external_id = site.running(killed)
    site.running(well)
    site.pulsar.stop()
    site.pulsar.start()
    assert site.pulsar.payload(killed)["status"] == "running"
    site.let_go(well)
    site.slurm.expire(external_id)
    assert site.end(killed)["runner_state"] == "walltime_reached"
    assert site.end(well)["status"] == "complete"


def test_unknown_option_of_sbatch_is_told(site: Site) -> None:
    """A submission that sbatch refuses is failed with sbatch's own words."""
    payload = site.end(site.submit("true", "--no-such-option=1"))
    assert payload["failure_reason"]["cause"] == "launch_error"
    assert "no-such-option" in payload["runner_state_message"]


def test_qos_limit_and_bad_account(
    real_slurm_limits: PrivateSlurm, tmp_path: Path
) -> None:
    """A QOS limit and a bad account are refused in different words."""
    with Site(real_slurm_limits, tmp_path) as site:
        first = site.submit("sleep 600", "--qos=one --time=5 --mem=100")
        second = site.end(site.submit("true", "--qos=one --time=5 --mem=100"))
        third = site.end(site.submit("true", "--account=nobodys --time=5 --mem=100"))
        site.pulsar.client(first).kill()
    for payload in (second, third):
        assert (payload["status"], payload["runner_state"]) == ("failed", "unknown_error")
        assert payload["failure_reason"]["cause"] == "launch_error"
    assert "limit" in second["runner_state_message"]
    assert "Invalid account" in third["runner_state_message"]


@pytest.fixture(scope="module")
def preempting(
    make_slurm: SlurmFactory, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    """A cluster with partitions that preempt and are preempted; without accounting."""
    slurm = make_slurm(accounting=False, extra_conf=PREEMPTION)
    with Site(slurm, tmp_path_factory.mktemp("pulsar")) as made:
        yield made


def test_preempted_and_requeued(preempting: Site) -> None:
    """A preempted job that Slurm requeues is queued again and not judged."""
    job_id = preempting.submit(FIRST_RUN_STAYS, "-p low --time=5 --exclusive")
    external_id = preempting.running(job_id)
    preempting.tool_has_started(job_id)
    winner = preempting.slurm.submit("sleep 3", "-p", "high", "--exclusive")
    preempting.pulsar.wait_for(job_id, ["queued"])
    preempting.slurm.wait_state(winner, "COMPLETED")
    preempting.slurm.start_now(external_id)
    assert preempting.end(job_id)["status"] == "complete"


def test_preempted_for_good(preempting: Site) -> None:
    """A job that is preempted and cancelled says so."""
    job_id = preempting.submit("sleep 600", "-p doomed --time=5 --exclusive --no-requeue")
    preempting.running(job_id)
    winner = preempting.slurm.submit("sleep 1", "-p", "high", "--exclusive")
    payload = preempting.end(job_id)
    assert payload["failure_reason"]["cause"] == "preempted"
    preempting.slurm.wait_state(winner, "COMPLETED")


def test_accounting_off(preempting: Site) -> None:
    """While the controller remembers, no accounting is needed."""
    job_id = preempting.submit("sleep 600", "-p high --time=5 --mem=100")
    preempting.slurm.run(["scancel", preempting.running(job_id)])
    assert preempting.end(job_id)["failure_reason"]["cause"] == "cancelled"


@pytest.fixture(scope="module")
def no_accounting(
    real_slurm_no_accounting: PrivateSlurm, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    with Site(real_slurm_no_accounting, tmp_path_factory.mktemp("pulsar")) as made:
        yield made


def test_aged_out_without_accounting(no_accounting: Site) -> None:
    """Nobody remembers: a return code is an end, its absence is a loss, neither is a guess."""
    site = no_accounting
    killed, well = site.submit("sleep 600"), site.submit(f"{UNTIL_LET_GO}; sh -c 'exit 3'")
    ids = [site.running(killed), site.running(well)]
    site.pulsar.stop()
    site.let_go(well)
    site.slurm.run(["scancel", ids[0]])
    for external_id in ids:
        site.slurm.wait_forgotten(external_id)
    site.pulsar.start()
    payload = site.end(well)
    assert (payload["status"], payload["returncode"]) == ("complete", 3)
    assert outcome(site.end(killed)) == {
        "status": "failed", "returncode": None, "runner_state": "unknown_error", "cause": "lost",
    }


@pytest.mark.parametrize("accounting, cause", [(True, "cancelled"), (False, "lost")])
def test_controller_forgets_all_jobs(
    accounting: bool, cause: str, make_slurm: SlurmFactory, tmp_path: Path
) -> None:
    """After ``slurmctld -c`` a running job is over, as accounting says it, or lost."""
    slurm = make_slurm(accounting=accounting)
    with Site(slurm, tmp_path) as site:
        lost = site.submit("sleep 600")
        site.running(lost)
        slurm.controller_stop()
        slurm.controller_start(clean=True)
        payload = site.end(lost)
        assert (payload["status"], payload["failure_reason"]["cause"]) == ("failed", cause)
        assert "cancelled_by" not in payload["failure_reason"]
        assert site.end(site.submit("sleep 2"))["status"] == "complete"
