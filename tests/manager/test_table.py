"""DESIGN section 3, row by row: what Slurm does to a job, and what Galaxy is told of it.

All jobs run at once on one server. Expected values are typed from the table.
"""

from __future__ import annotations

from typing import Dict, Iterator, NamedTuple, Optional

import pytest

from tests.pulsar_server import wait_until
from tests.simulated import control

from .harness import Pulsar, Slurm, own_observers, reason_of, running

HOG = (
    "python3 -c 'import time\nblock = []\n"
    "for step in range(100): block.append(bytes([1]) * 4000000); time.sleep(0.02)\n"
    # Until it is killed, however late somebody looks.
    "time.sleep(600)'"
)
BEGAN = "touch ../began; sleep 600"
KILL_LINE = (
    "slurmstepd-node1: error: Job $SLURM_JOB_ID exceeded memory limit (61440 > 51200), being killed"
)


class Row(NamedTuple):
    """One situation and what is told of it.

    ``scancel`` is the state in which the test cancels the job, ``event`` what the test plays on
    the running one, both once ``BEGAN`` was reached.
    """

    command: str
    native: str
    status: str
    cause: Optional[str] = None
    runner_state: Optional[str] = None
    message: str = ""
    returncode: Optional[int] = None
    confidence: str = "controller"
    scancel: Optional[str] = None
    event: Optional[str] = None


def _killed(command: str, native: str, cause: str, token: str, message: str, **more: str) -> Row:
    return Row(command, native, "failed", cause, token, message, **more)  # type: ignore[arg-type]


UNKNOWN = "unknown_error"
WALLTIME = "walltime_reached"
MEMORY = "memory_limit_reached"

ROWS: Dict[str, Row] = {
    "well_return_code_0": Row("true", "-t 6000", "complete", returncode=0),
    "well_return_code_3": Row("sh -c 'exit 3'", "-t 6000", "complete", returncode=3),
    "limit_time_absent": _killed(
        "sleep 600", "-t 1", "walltime", WALLTIME, "the job's walltime limit is 60 s"),
    "limit_time_return_code_0": Row(
        "sleep 0.8", "-t 1 --comment=fake:limit_slack=90000", "failed", "walltime", WALLTIME,
        returncode=0),
    "limit_memory_return_code_137": Row(
        HOG, "-t 6000 --mem=40", "failed", "memory", MEMORY, "the job's memory limit is 40",
        returncode=137),
    "limit_memory_return_code_0": Row(
        HOG + " || true", "-t 6000 --mem=40", "failed", "memory", MEMORY, returncode=0),
    "overmemkill": _killed(
        HOG, "-t 6000 --mem=40 --comment=fake:memory_limit=overmemkill", "memory", MEMORY,
        "killed for memory", confidence="stderr"),
    "deadline": _killed(
        "true", "--comment=fake:deadline", "walltime", WALLTIME, "deadline was reached"),
    "well_absent": _killed(
        "exit 0", "-t 6000", "lost", UNKNOWN, "left no exit code", confidence="inferred"),
    "badly_present": Row(
        "echo 5 > ../return_code; kill -9 $$", "-t 6000", "complete", returncode=5),
    "badly_absent_signal": _killed("kill -9 $$", "-t 6000", "unknown", UNKNOWN, "was killed"),
    "badly_absent_exit_7": _killed(
        "exit 7", "-t 6000", "launch_error", UNKNOWN, "exited with 7", confidence="inferred"),
    "badly_absent_exit_127": _killed(
        "exit 127", "-t 6000", "launch_error", UNKNOWN, "not found (exit code 127)"),
    "cancelled_running": _killed(
        BEGAN, "-t 6000", "cancelled", UNKNOWN, "cancelled outside Galaxy",
        scancel="RUNNING"),
    "cancelled_pending": _killed(
        "true", "--comment=fake:start_delay=600", "cancelled", UNKNOWN,
        "cancelled outside Galaxy", scancel="PENDING"),
    "cancelled_return_code_0": Row(
        "echo 0 > ../return_code; " + BEGAN, "-t 6000", "failed", "cancelled", UNKNOWN,
        returncode=0, scancel="RUNNING"),
    "cancelled_but_slurm_wrote_memory": _killed(
        f"echo \"{KILL_LINE}\" >&2; {BEGAN}", "-t 6000", "memory", MEMORY, "killed for memory",
        confidence="stderr", scancel="RUNNING"),
    "cancelled_the_tool_wrote_memory": _killed(
        "echo 'oom-kill event: Out Of Memory' >&2; " + BEGAN, "-t 6000", "cancelled", UNKNOWN,
        "cancelled outside Galaxy", scancel="RUNNING"),
    "node_failure": _killed(
        "sleep 600", "--no-requeue --comment=fake:node_failure=0.2", "node_failure", UNKNOWN,
        "its node failed"),
    "node_failure_requeued": Row(
        "sleep 0.4", "--requeue --comment=fake:node_failure=0.2,requeue_delay=60", "complete",
        returncode=0),
    "boot_failure": _killed(
        "true", "--no-requeue --comment=fake:boot_failure", "node_failure", UNKNOWN,
        "did not boot"),
    "preempted": _killed(
        "sleep 600", "--no-requeue --comment=fake:preempt=0.2", "preempted", UNKNOWN,
        "was preempted"),
    "preempted_requeued": Row(
        "sleep 0.4", "--requeue --comment=fake:preempt=0.2,requeue_delay=60", "complete",
        returncode=0),
    "launch_failure_no_requeue": _killed(
        "true", "--no-requeue --comment=fake:launch_failure", "cancelled", UNKNOWN,
        "cancelled outside Galaxy"),
    "requeued_held": _killed(
        "sleep 600", "--comment=fake:requeue_hold=0.2", "held", UNKNOWN,
        "Slurm requeued it in a held state"),
    "requeued_held_with_return_code": Row(
        "echo 0 > ../return_code; " + BEGAN, "-t 6000", "failed", "held", UNKNOWN, returncode=0,
        event="requeue_hold"),
    "launch_failure_held": _killed(
        "true", "--comment=fake:launch_failure", "held", UNKNOWN, "could not be launched"),
    "dependency_never": _killed(
        "true", "--comment=fake:dependency_never", "held", UNKNOWN, "dependency"),
    "completing_after_timeout": _killed(
        "sleep 600", "-t 1 --comment=fake:completing=0.6", "walltime", WALLTIME, "limit is 60 s"),
    "completing_after_success": Row(
        "true", "--comment=fake:completing=0.6", "complete", returncode=0),
    "array": Row("true", "-t 6000 -a 1-3", "complete", returncode=0),
    "array_cancelled": _killed(
        BEGAN, "-t 6000 -a 1-2", "cancelled", UNKNOWN, "cancelled outside Galaxy",
        scancel="RUNNING"),
    "aged_out_well": Row("true", "--comment=fake:min_job_age=0", "complete", returncode=0),
    "aged_out_tool_exit_3": Row(
        "sh -c 'exit 3'", "--comment=fake:min_job_age=0", "complete", returncode=3),
    "aged_out_timeout": _killed(
        "sleep 600", "-t 1 --comment=fake:min_job_age=0", "walltime", WALLTIME, "limit is 60 s",
        confidence="accounting"),
    "aged_out_cancelled": _killed(
        BEGAN, "-t 6000 --comment=fake:min_job_age=0", "cancelled", UNKNOWN,
        "cancelled outside Galaxy by uid 0", confidence="accounting", scancel="RUNNING"),
}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pulsar]:
    """A server with a job for each row, all submitted; what comes from outside is done."""
    home = tmp_path_factory.mktemp("table")
    with Slurm(home / "slurm").in_use() as slurm, own_observers():
        with running(Pulsar(home)) as pulsar:
            ids = {name: pulsar.submit(name, row.command, row.native) for name, row in ROWS.items()}
            for name, row in ROWS.items():
                if row.scancel or row.event:
                    interfere(slurm, pulsar, name, ids[name])
            yield pulsar


def interfere(slurm: Slurm, pulsar: Pulsar, name: str, external_id: str) -> None:
    """Do from outside what the row says."""
    row = ROWS[name]
    if row.scancel == "PENDING":
        slurm.wait_for(external_id, "PENDING")
    else:
        wait_until((pulsar.directory(name) / "began").exists, 60, f"{name} to begin", 0.02)
    if row.event:
        control.event(slurm.state, external_id, row.event)
    else:
        slurm.scancel(external_id)


@pytest.mark.parametrize("name", ROWS)
def test_row(table: Pulsar, name: str) -> None:
    """Each row of the table has its status, reason, token and message in the payload."""
    row = ROWS[name]
    payload = table.end(name)
    assert (payload["status"], reason_of(payload)) == (row.status, row.cause)
    assert payload.get("runner_state") == row.runner_state
    assert payload["returncode"] == row.returncode
    if row.cause is not None:
        assert row.message in payload["runner_state_message"]
        assert payload["failure_reason"]["confidence"] == row.confidence
        assert payload["failure_reason"]["external_id"] == table.external_id(name)
