"""Slurm's job states: all of them, in every spelling, and what each says about a job."""

from __future__ import annotations

from typing import Optional

import pytest

from pulsar_failure_reasons.drm.base import Ending, Phase
from pulsar_failure_reasons.drm.slurm import (
    COMPACT_CODES,
    END_STATES,
    SlurmState,
    cancelled_by,
    canonical_state,
    describe_state,
    parse_exit_code,
)
from pulsar_failure_reasons.errors import OutputParseError
from pulsar_failure_reasons.reason import Cause

#: squeue(1) of 22.05.8 and 24.11.5, JOB STATE CODES, typed from the manual.
SQUEUE_MANUAL = {
    "BF": "BOOT_FAIL", "CA": "CANCELLED", "CD": "COMPLETED", "CF": "CONFIGURING",
    "CG": "COMPLETING", "DL": "DEADLINE", "F": "FAILED", "NF": "NODE_FAIL",
    "OOM": "OUT_OF_MEMORY", "PD": "PENDING", "PR": "PREEMPTED", "R": "RUNNING",
    "RD": "RESV_DEL_HOLD", "RF": "REQUEUE_FED", "RH": "REQUEUE_HOLD", "RQ": "REQUEUED",
    "RS": "RESIZING", "RV": "REVOKED", "SI": "SIGNALING", "SE": "SPECIAL_EXIT",
    "SO": "STAGE_OUT", "ST": "STOPPED", "S": "SUSPENDED", "TO": "TIMEOUT",
}
#: job_state_codes.html of 25.11, both tables, typed from the manual.
MANUAL_STATES = {
    "BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY",
    "PENDING", "PREEMPTED", "RUNNING", "SUSPENDED", "TIMEOUT",
}
MANUAL_FLAGS = {
    "COMPLETING", "CONFIGURING", "EXPEDITING", "LAUNCH_FAILED", "POWER_UP_NODE",
    "RECONFIG_FAIL", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "RESIZING", "RESV_DEL_HOLD",
    "REVOKED", "SIGNALING", "SPECIAL_EXIT", "STAGE_OUT", "STOPPED", "UPDATE_DB",
}


def test_every_state_of_the_manual_is_there() -> None:
    """The enum holds the manual's states and flags, and nothing else but UNKNOWN."""
    assert {state.value for state in SlurmState} == MANUAL_STATES | MANUAL_FLAGS | {"UNKNOWN"}
    assert {code: state.value for code, state in COMPACT_CODES.items()} == SQUEUE_MANUAL


SPELLINGS = [
    ("TIMEOUT", "TIMEOUT"),
    ("timeout", "TIMEOUT"),
    (" TIMEOUT\r\n", "TIMEOUT"),
    ("TO", "TIMEOUT"),
    ("to", "TIMEOUT"),
    ("oom", "OUT_OF_MEMORY"),
    ("CANCELLED by 1000", "CANCELLED"),
    ("CANCELLED by user1", "CANCELLED"),
    ("CANCELLED+", "CANCELLED"),
    ("CANCELLED+ by 5", "CANCELLED"),
    ("CANCELED", "CANCELLED"),
    ("OUT_OF_ME+", "OUT_OF_MEMORY"),
    ("OUT_OF_M", "OUT_OF_MEMORY"),
    ("OUT OF MEMORY", "OUT_OF_MEMORY"),
    ("NODE FAIL", "NODE_FAIL"),
    ("CONFIGUR", "CONFIGURING"),
    ("COMPLETIN", "COMPLETING"),
    ("COMPLETI", "COMPLETING"),
    ("COMPLETE", "COMPLETED"),
    ("PREEMPTE", "PREEMPTED"),
    ("BOOT_FAI", "BOOT_FAIL"),
    ("COMP+", "UNKNOWN"),
    ("COMPLET+", "UNKNOWN"),
    ("REQUEUE_", "UNKNOWN"),
    ("RES", "UNKNOWN"),
    ("JOB_OUT_OF_MEMORY", "OUT_OF_MEMORY"),
    ("FAILED,COMPLETING", "COMPLETING"),
    ("COMPLETING,FAILED", "COMPLETING"),
    ("PENDING+REQUEUED", "REQUEUED"),
    ('["FAILED","COMPLETING"]', "COMPLETING"),
    ("['PENDING', 'REQUEUED']", "REQUEUED"),
    ('["TIMEOUT"]', "TIMEOUT"),
    ("RUNNING|CONFIGURING", "CONFIGURING"),
    ("PENDING,REQUEUE_HOLD,REQUEUED", "REQUEUE_HOLD"),
    ("PENDING,LAUNCH_FAILED", "LAUNCH_FAILED"),
    ("FAILED,LAUNCH_FAILED", "FAILED"),
    ("COMPLETED,UPDATE_DB", "COMPLETED"),
    ("PENDING,EXPEDITING", "PENDING"),
    ("COMPLETED,FAILED", "UNKNOWN"),
    ("COMPLETED,NEW_FLAG", "UNKNOWN"),
    ("FAILED,COMPLETING,NEW_FLAG", "UNKNOWN"),
    ("\x1b[31mFAILED\x1b[0m", "FAILED"),
    ("UNKNOWN", "UNKNOWN"),
    ("HIBERNATED", "UNKNOWN"),
    ("COMPLETED_NOT", "UNKNOWN"),
    ("", "UNKNOWN"),
    ("+", "UNKNOWN"),
    ("F" * 10000, "UNKNOWN"),
]


@pytest.mark.parametrize("text, state", SPELLINGS, ids=[repr(t)[:30] for t, _ in SPELLINGS])
def test_spellings(text: str, state: str) -> None:
    """Every spelling means one state; a cut word that could mean two means none."""
    assert canonical_state(text).value == state


@pytest.mark.parametrize("state", list(SlurmState), ids=lambda s: s.value)
def test_full_names_mean_themselves(state: SlurmState) -> None:
    """The name of a state is its own spelling, so canonicalisation is idempotent."""
    assert canonical_state(state.value) is state


@pytest.mark.parametrize(
    "text, who",
    [
        ("CANCELLED by 0", "0"), ("CANCELLED by 1060117793", "1060117793"),
        ("cancelled by user1", "user1"), ("CANCELLED", None), ("CANCELLED+", None),
        ("FAILED by 5", None),
    ],
)
def test_cancelled_by(text: str, who: Optional[str]) -> None:
    """The uid stands in the state and nowhere else; None is "not said"."""
    assert cancelled_by(text) == who


# state, phase, ending, cause
STATES = [
    ("PENDING", Phase.QUEUED, None, None),
    ("CONFIGURING", Phase.QUEUED, None, None),
    ("POWER_UP_NODE", Phase.QUEUED, None, None),
    ("REQUEUED", Phase.QUEUED, None, None),
    ("REQUEUE_FED", Phase.QUEUED, None, None),
    ("EXPEDITING", Phase.QUEUED, None, None),
    ("RUNNING", Phase.RUNNING, None, None),
    ("SUSPENDED", Phase.RUNNING, None, None),
    ("STOPPED", Phase.RUNNING, None, None),
    ("RESIZING", Phase.RUNNING, None, None),
    ("COMPLETING", Phase.ENDING, None, None),
    ("STAGE_OUT", Phase.ENDING, None, None),
    ("SIGNALING", Phase.ENDING, None, None),
    ("SPECIAL_EXIT", Phase.STUCK, None, None),
    ("REQUEUE_HOLD", Phase.STUCK, None, None),
    ("RESV_DEL_HOLD", Phase.STUCK, None, None),
    ("LAUNCH_FAILED", Phase.STUCK, None, None),
    ("RECONFIG_FAIL", Phase.STUCK, None, None),
    ("REVOKED", Phase.UNKNOWN, None, None),
    ("UPDATE_DB", Phase.UNKNOWN, None, None),
    ("UNKNOWN", Phase.UNKNOWN, None, None),
    ("COMPLETED", Phase.ENDED, Ending.WELL, None),
    ("FAILED", Phase.ENDED, Ending.BADLY, None),
    ("TIMEOUT", Phase.ENDED, Ending.LIMIT, Cause.WALLTIME),
    ("DEADLINE", Phase.ENDED, Ending.LIMIT, Cause.WALLTIME),
    ("OUT_OF_MEMORY", Phase.ENDED, Ending.LIMIT, Cause.MEMORY),
    ("CANCELLED", Phase.ENDED, Ending.CANCELLED, Cause.CANCELLED),
    ("NODE_FAIL", Phase.ENDED, Ending.INFRASTRUCTURE, Cause.NODE_FAILURE),
    ("BOOT_FAIL", Phase.ENDED, Ending.INFRASTRUCTURE, Cause.NODE_FAILURE),
    ("PREEMPTED", Phase.ENDED, Ending.INFRASTRUCTURE, Cause.PREEMPTED),
]


@pytest.mark.parametrize("word, phase, ending, cause", STATES, ids=[row[0] for row in STATES])
def test_what_a_state_says(
    word: str, phase: Phase, ending: Optional[Ending], cause: Optional[Cause]
) -> None:
    """Each state alone has its phase, and an end only where it is one."""
    described = describe_state(word)
    assert described.phase is phase
    assert described.word == word
    assert (described.end.ending if described.end else None) is ending
    assert (described.end.cause if described.end else None) is cause
    assert bool(described.stuck_detail) is (phase is Phase.STUCK)


def test_every_state_has_such_a_row() -> None:
    """No state is left to chance."""
    assert {row[0] for row in STATES} == {state.value for state in SlurmState}
    assert {row[0] for row in STATES if row[2]} == {state.value for state in END_STATES}


def test_an_invented_state_is_a_value() -> None:
    """A word we do not know keeps its text, and is no end."""
    described = describe_state("HIBERNATED")
    assert (described.word, described.phase, described.end) == ("HIBERNATED", Phase.UNKNOWN, None)
    assert len(describe_state("\x00X" * 10000).word) <= 80


# id, reason, exit code, signal -> ending, cause, part of the detail
FAILURES = [
    ("tool_exit", "NonZeroExitCode", 3, None, Ending.BADLY, None, ""),
    ("exit_137_is_no_proof", "NonZeroExitCode", 137, None, Ending.BADLY, None, ""),
    ("not_executable", "NonZeroExitCode", 126, None, Ending.BADLY, Cause.LAUNCH_ERROR, "126"),
    ("command_not_found", "NonZeroExitCode", 127, None, Ending.BADLY, Cause.LAUNCH_ERROR, "127"),
    ("killed_22_05", "JobLaunchFailure", 0, 9, Ending.BADLY, None, ""),
    ("killed_24_11", "RaisedSignal:9(Killed)", 0, 9, Ending.BADLY, None, ""),
    ("output_22_05", "JobLaunchFailure", 0, 53, Ending.BADLY, Cause.DISK, "output file"),
    (
        "output_24_11", "RaisedSignal:53(Real-time_signal_19)", 0, 53, Ending.BADLY, Cause.DISK,
        "output file",
    ),
    ("out_of_memory", "OutOfMemory", 0, 9, Ending.LIMIT, Cause.MEMORY, ""),
    ("time_limit", "TimeLimit", 0, 15, Ending.LIMIT, Cause.WALLTIME, ""),
    ("refused", "BadConstraints", 0, 1, Ending.BADLY, Cause.LAUNCH_ERROR, "requirements"),
    ("nothing_said", "", None, None, Ending.BADLY, None, ""),
]


@pytest.mark.parametrize(
    "reason, exit_code, signal, ending, cause, detail",
    [row[1:] for row in FAILURES],
    ids=[row[0] for row in FAILURES],
)
def test_what_a_failure_says(
    reason: str,
    exit_code: Optional[int],
    signal: Optional[int],
    ending: Ending,
    cause: Optional[Cause],
    detail: str,
) -> None:
    """FAILED is told by its reason, exit code and signal, and by nothing less."""
    end = describe_state("FAILED", reason, exit_code, signal).end
    assert end is not None
    assert (end.ending, end.cause, end.exit_code, end.signal) == (
        ending, cause, exit_code, signal
    )
    assert detail in end.detail and bool(end.detail) is bool(detail)


@pytest.mark.parametrize(
    "reason",
    [
        "launch_failed_requeued_held", "(launch failed requeued held)",
        "job_requeued_in_held_state", "job requeued in held state", "JobHoldMaxRequeue",
        "launch_failure_limit_exceeded_requeued_held", "DependencyNeverSatisfied",
        "(DependencyNeverSatisfied)", "BadConstraints", "ReservationDeleted", "InvalidAccount",
        "InvalidQOS",
    ],
)
def test_pending_that_slurm_will_not_start_is_stuck(reason: str) -> None:
    """Slurm put it there, and somebody must do something."""
    described = describe_state("PENDING", reason)
    assert described.phase is Phase.STUCK and described.stuck_detail


@pytest.mark.parametrize(
    "reason",
    [
        "JobHeldUser", "JobHeldAdmin", "Priority", "Resources", "Dependency", "BeginTime",
        "JobArrayTaskLimit", "QOSMaxCpuPerUserLimit", "PartitionTimeLimit", "AssocGrpMemLimit",
        "ReqNodeNotAvail,_May_be_reserved_for_other_job", "None", "(null)", "",
    ],
)
def test_pending_that_only_waits_is_queued(reason: str) -> None:
    """A person's hold and a limit that may pass are no failure, however long they last."""
    assert describe_state("PENDING", reason).phase is Phase.QUEUED


def test_who_cancelled_and_why() -> None:
    """The uid is kept, and a dependency that could never be satisfied is told."""
    end = describe_state("CANCELLED by 1000", "None", 0, 15).end
    assert end is not None and end.cancelled_by == "1000" and end.detail == ""
    end = describe_state("CANCELLED", "DependencyNeverSatisfied", 0, None).end
    assert end is not None and end.cancelled_by is None and "dependency" in end.detail


def test_the_deadline_is_named() -> None:
    """A deadline is no walltime limit of the job, so the message must say so."""
    end = describe_state("DEADLINE", "DeadLine", 0, 1).end
    assert end is not None and "deadline" in end.detail


@pytest.mark.parametrize(
    "text, exit_code, signal",
    [
        pytest.param("0:0", 0, None, id="well"),
        pytest.param("3:0", 3, None, id="exit"),
        pytest.param("0:125", 0, 125, id="out_of_memory"),
        pytest.param("0", 0, None, id="raw_well"),
        pytest.param("768", 3, None, id="raw_exit"),
        pytest.param("35072", 137, None, id="raw_137"),
        pytest.param("15", 0, 15, id="raw_signal"),
        pytest.param("139", 0, 11, id="raw_signal_with_core"),
        pytest.param("253", 0, 125, id="raw_out_of_memory"),
        pytest.param("4021", 0, 53, id="raw_output_not_opened"),
        pytest.param("", None, None, id="step_of_a_dead_node"),
        pytest.param("N/A", None, None, id="not_available"),
    ],
)
def test_exit_codes(text: str, exit_code: Optional[int], signal: Optional[int]) -> None:
    """Both of squeue's forms are read alike (22.05: raw wait status, 24.11: code:signal)."""
    assert parse_exit_code(text) == (exit_code, signal)


@pytest.mark.parametrize("text", ["3:0:1", "x", "0x3", "99999999999", "3:"])
def test_what_is_no_exit_code_is_refused(text: str) -> None:
    """No guess at an exit code."""
    with pytest.raises(OutputParseError):
        parse_exit_code(text)
