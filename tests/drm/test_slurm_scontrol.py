"""``scontrol show job``: the captures of two versions, and texts that look like fields."""

from __future__ import annotations

from typing import List, Optional, Tuple

import pytest

from pulsar_failure_reasons.drm.base import Ending, Phase
from pulsar_failure_reasons.drm.slurm import parse_scontrol
from pulsar_failure_reasons.errors import OutputParseError
from pulsar_failure_reasons.reason import Cause
from tests.drm.slurm_data import batched, capture

# version, case -> state, phase, ending, cause, exit code, signal, restarts. Typed from INDEX.tsv.
Row = Tuple[
    str, str, str, Phase, Optional[Ending], Optional[Cause], Optional[int], Optional[int], int
]
CAPTURES: List[Row] = [
    ("22.05", "success", "COMPLETED", Phase.ENDED, Ending.WELL, None, 0, None, 0),
    ("22.05", "badinterp", "FAILED", Phase.ENDED, Ending.BADLY, None, 2, None, 0),
    ("22.05", "badoutput", "FAILED", Phase.ENDED, Ending.BADLY, Cause.DISK, 0, 53, 0),
    ("22.05", "badworkdir", "COMPLETED", Phase.ENDED, Ending.WELL, None, 0, None, 0),
    ("22.05", "bootfail", "PENDING", Phase.QUEUED, None, None, None, None, 1),
    (
        "22.05", "bootfail_norequeue", "NODE_FAIL", Phase.ENDED, Ending.INFRASTRUCTURE,
        Cause.NODE_FAILURE, 0, None, 0,
    ),
    ("22.05", "comment_newline", "FAILED", Phase.ENDED, Ending.BADLY, None, 3, None, 0),
    ("22.05", "completing_cancel", "COMPLETING", Phase.ENDING, None, None, None, None, 0),
    ("22.05", "completing_fail", "COMPLETING", Phase.ENDING, None, None, None, None, 0),
    ("22.05", "deadline", "DEADLINE", Phase.ENDED, Ending.LIMIT, Cause.WALLTIME, 0, 1, 0),
    (
        "22.05", "depkill", "CANCELLED", Phase.ENDED, Ending.CANCELLED, Cause.CANCELLED, 0, None, 0
    ),
    ("22.05", "depnever", "PENDING", Phase.STUCK, None, None, None, None, 0),
    ("22.05", "exit137", "FAILED", Phase.ENDED, Ending.BADLY, None, 137, None, 0),
    ("22.05", "oom_cgroup", "OUT_OF_MEMORY", Phase.ENDED, Ending.LIMIT, Cause.MEMORY, 0, 125, 0),
    ("22.05", "overmem_kill", "FAILED", Phase.ENDED, Ending.BADLY, None, 0, 9, 0),
    ("22.05", "overmem_srun", "FAILED", Phase.ENDED, Ending.BADLY, None, 137, None, 0),
    (
        "22.05", "preempted", "PREEMPTED", Phase.ENDED, Ending.INFRASTRUCTURE, Cause.PREEMPTED,
        0, 15, 0,
    ),
    ("22.05", "preempted_requeue", "PENDING", Phase.QUEUED, None, None, None, None, 1),
    ("22.05", "prologfail", "PENDING", Phase.STUCK, None, None, None, None, 1),
    ("22.05", "requeuehold", "PENDING", Phase.STUCK, None, None, None, None, 1),
    (
        "22.05", "scancel_running", "CANCELLED", Phase.ENDED, Ending.CANCELLED, Cause.CANCELLED,
        0, 15, 0,
    ),
    ("22.05", "scancel_running__running", "RUNNING", Phase.RUNNING, None, None, None, None, 0),
    ("22.05", "scancel_signal", "COMPLETED", Phase.ENDED, Ending.WELL, None, 0, None, 0),
    ("22.05", "sigkill_self", "FAILED", Phase.ENDED, Ending.BADLY, None, 0, 9, 0),
    ("22.05", "specialexit", "SPECIAL_EXIT", Phase.STUCK, None, None, None, None, 1),
    ("22.05", "spoof", "FAILED", Phase.ENDED, Ending.BADLY, None, 3, None, 0),
    ("22.05", "timeout_fast", "TIMEOUT", Phase.ENDED, Ending.LIMIT, Cause.WALLTIME, 0, 15, 0),
    ("24.11", "success", "COMPLETED", Phase.ENDED, Ending.WELL, None, 0, None, 0),
    ("24.11", "exit1", "FAILED", Phase.ENDED, Ending.BADLY, None, 1, None, 0),
    ("24.11", "array__task_1_running", "RUNNING", Phase.RUNNING, None, None, None, None, 0),
    (
        "24.11", "array__task_3_cancelled", "CANCELLED", Phase.ENDED, Ending.CANCELLED,
        Cause.CANCELLED, 0, 15, 0,
    ),
    ("24.11", "array__running", "RUNNING", Phase.RUNNING, None, None, None, None, 0),
    (
        "24.11", "array__all_cancelled", "CANCELLED", Phase.ENDED, Ending.CANCELLED,
        Cause.CANCELLED, 0, None, 0,
    ),
    ("24.11", "badoutput", "FAILED", Phase.ENDED, Ending.BADLY, Cause.DISK, 0, 53, 0),
    ("24.11", "comment_newline", "FAILED", Phase.ENDED, Ending.BADLY, None, 3, None, 0),
    ("24.11", "completing_timeout", "COMPLETING", Phase.ENDING, None, None, None, None, 0),
    ("24.11", "deadline", "DEADLINE", Phase.ENDED, Ending.LIMIT, Cause.WALLTIME, 0, 1, 0),
    ("24.11", "depnever", "PENDING", Phase.STUCK, None, None, None, None, 0),
    (
        "24.11", "nodefail", "NODE_FAIL", Phase.ENDED, Ending.INFRASTRUCTURE,
        Cause.NODE_FAILURE, 0, 1, 0,
    ),
    ("24.11", "oom_cgroup", "OUT_OF_MEMORY", Phase.ENDED, Ending.LIMIT, Cause.MEMORY, 0, 125, 0),
    (
        "24.11", "oom_child_exit0", "OUT_OF_MEMORY", Phase.ENDED, Ending.LIMIT, Cause.MEMORY,
        0, 125, 0,
    ),
    ("24.11", "oom_srun_exit0", "COMPLETED", Phase.ENDED, Ending.WELL, None, 0, None, 0),
    (
        "24.11", "prologfail_norequeue", "CANCELLED", Phase.ENDED, Ending.CANCELLED,
        Cause.CANCELLED, 0, None, 0,
    ),
    ("24.11", "requeued__just_after", "COMPLETING", Phase.ENDING, None, None, None, None, 1),
    ("24.11", "requeued__pending", "PENDING", Phase.QUEUED, None, None, None, None, 1),
    ("24.11", "requeuehold", "PENDING", Phase.STUCK, None, None, None, None, 1),
    ("24.11", "scancel_signal", "COMPLETED", Phase.ENDED, Ending.WELL, None, 0, None, 0),
    (
        "24.11", "scancel_trapterm", "CANCELLED", Phase.ENDED, Ending.CANCELLED,
        Cause.CANCELLED, 7, None, 0,
    ),
    ("24.11", "sigkill_self", "FAILED", Phase.ENDED, Ending.BADLY, None, 0, 9, 0),
    ("24.11", "sigsegv", "FAILED", Phase.ENDED, Ending.BADLY, None, 0, 11, 0),
    ("24.11", "specialexit", "SPECIAL_EXIT", Phase.STUCK, None, None, None, None, 1),
    ("24.11", "spoof", "FAILED", Phase.ENDED, Ending.BADLY, None, 3, None, 0),
    ("24.11", "spoofok", "COMPLETED", Phase.ENDED, Ending.WELL, None, 0, None, 0),
    ("24.11", "timeout_fast", "TIMEOUT", Phase.ENDED, Ending.LIMIT, Cause.WALLTIME, 0, 15, 0),
]


@pytest.mark.parametrize("row", CAPTURES, ids=[f"{row[1]}-{row[0]}" for row in CAPTURES])
@pytest.mark.parametrize("lines", ["one_line", "many_lines"])
def test_captures(row: Row, lines: str) -> None:
    """Each captured job says what it was, on one line or on many."""
    version, case, state, phase, ending, cause, exit_code, signal, restarts = row
    text = capture(version, case, "scontrol_o_show_job")
    if lines == "many_lines":
        for field in ("UserId=", "Priority=", "JobState=", "Requeue=", "RunTime=", "Partition="):
            text = text.replace(f" {field}", f"\n   {field}")
    view = parse_scontrol(text)
    assert (view.job_state, view.phase, view.restarts) == (state, phase, restarts)
    assert (view.end.ending if view.end else None) is ending
    assert (view.end.cause if view.end else None) is cause
    assert (view.end.exit_code if view.end else None) == exit_code
    assert (view.end.signal if view.end else None) == signal


def test_details_of_a_capture() -> None:
    """Limits, memory of the whole job, node, times and name."""
    view = parse_scontrol(capture("22.05", "timeout_fast", "scontrol_o_show_job"))
    assert (view.external_id, view.job_name) == ("4", "timeout_fast")
    assert view.walltime_s == 60 and view.elapsed_s is not None
    assert view.memory_bytes == 100 * 1024 * 1024 and view.node == "pt26817"
    assert view.submitted_at is not None and view.submitted_at.startswith("2026-11-29T11:46:")


@pytest.mark.parametrize("version", ["22.05", "24.11"])
def test_records_of_one_job_are_combined(version: str) -> None:
    """An array or heterogeneous job is one job; the worst end of its parts decides."""
    array = parse_scontrol(batched(version, "scontrol_array"))
    assert (array.external_id, array.job_state) == ("7", "FAILED")
    het = parse_scontrol(batched(version, "scontrol_het"))
    assert (het.external_id, het.job_state, het.job_name) == ("10", "COMPLETED", "het")


@pytest.mark.parametrize("version", ["22.05", "24.11"])
def test_names_that_look_like_fields(version: str) -> None:
    """A job name may hold newlines and what looks like a state."""
    view = parse_scontrol(batched(version, "scontrol_spoof"))
    assert (view.job_state, view.job_name) == ("FAILED", "JobState=COMPLETED Reason=None")
    view = parse_scontrol(batched(version, "scontrol_newline"))
    assert (view.job_state, view.job_name) == ("COMPLETED", "two\nlines | x")


RECORD = (
    "JobId=5 JobName={name} UserId=u(1) GroupId=g(1) MCS_label=N/A Priority=1 Nice=0 Account=a "
    "QOS=q {more}JobState=FAILED Reason=NonZeroExitCode Dependency=(null) Requeue=1 Restarts=0 "
    "BatchFlag=1 Reboot=0 ExitCode=3:0 RunTime=00:00:01 TimeLimit=00:10:00 TimeMin=N/A "
    "SubmitTime=2026-11-29T11:46:18 Partition=main NodeList=n1 NumNodes=1 Command=x "
    "Comment={comment} StdErr=/x\n"
)
FAKE = (
    "x UserId=u(1) GroupId=g(1) MCS_label=N/A Priority=1 Nice=0 Account=a QOS=q "
    "JobState=COMPLETED Reason=None Dependency=(null) Requeue=1 ExitCode=0:0"
)


@pytest.mark.parametrize(
    "name, comment, more",
    [
        pytest.param("x JobState=COMPLETED", "c", "", id="state_in_name"),
        pytest.param("x\nJobState=COMPLETED Reason=None", "c", "", id="line_in_name"),
        pytest.param("x ExitCode=0:0 Restarts=9", "c", "", id="other_fields_in_name"),
        pytest.param("x", "JobState=COMPLETED Reason=None ExitCode=0:0", "", id="in_comment"),
        pytest.param("x", "a\n   JobState=COMPLETED Reason=None", "", id="line_in_comment"),
        pytest.param("x", "c", "WCKey=k ", id="wckey"),
        pytest.param("UserId=0(root)", "c", "", id="user_in_name"),
    ],
)
def test_text_cannot_change_the_state(name: str, comment: str, more: str) -> None:
    """What stands in name and comment is never read as a field."""
    view = parse_scontrol(RECORD.format(name=name, comment=comment, more=more))
    assert (view.job_state, view.restarts, view.job_name) == ("FAILED", 0, name)
    assert view.end is not None and view.end.exit_code == 3


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("slurm_load_jobs error: Invalid job id specified\n", id="error"),
        pytest.param("Job 47_7 not found\n", id="not_found"),
        pytest.param("No jobs in the system\n", id="no_jobs"),
        pytest.param("JobId=xxx JobName=a JobState=FAILED Reason=None\n", id="blacked_out"),
        pytest.param("JobState=FAILED Reason=NonZeroExitCode Dependency=(null)\n", id="no_id"),
        pytest.param(RECORD[:120], id="cut"),
        pytest.param(RECORD.format(name=FAKE, comment="c", more=""), id="whole_fake_in_name"),
        pytest.param(RECORD.format(name="x", comment=FAKE, more=""), id="whole_fake_in_comment"),
        pytest.param(
            RECORD.format(name="x", comment=f"c\nJobId=6 JobName={FAKE}", more=""),
            id="another_record_in_comment",
        ),
        pytest.param(
            RECORD.format(name="x", comment=f"c\nJobId=5 JobName={FAKE}", more=""),
            id="the_same_record_in_comment",
        ),
        pytest.param(
            RECORD.format(name="x", comment="c", more="")
            + RECORD.format(name="x", comment="c", more="").replace("JobId=5", "JobId=6"),
            id="two_jobs",
        ),
    ],
)
def test_what_cannot_be_told_is_refused(text: str) -> None:
    """Where a fake could be the truth, the record is refused rather than believed."""
    with pytest.raises(OutputParseError):
        parse_scontrol(text)
