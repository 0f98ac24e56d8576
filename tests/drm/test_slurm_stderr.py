"""Slurm's own lines in a job's stderr."""

from __future__ import annotations

from typing import Optional

import pytest

from pulsar_failure_reasons.drm.slurm import classify_stderr
from pulsar_failure_reasons.reason import Cause
from tests.drm.slurm_data import capture

AT = "CANCELLED AT 2026-01-01T00:00:00"

# version, case, job -> cause
CAPTURES = [
    ("22.05", "oom_cgroup", "5", Cause.MEMORY),
    ("22.05", "overmem_kill", "40", Cause.MEMORY),
    ("22.05", "overmem_srun", "41", Cause.MEMORY),
    ("22.05", "no_accounting__overmem_kill", "1", Cause.MEMORY),
    ("22.05", "preempted", "46", Cause.PREEMPTED),
    ("22.05", "scancel_running", "9", Cause.CANCELLED),
    ("22.05", "scancel_mem_msg", "42", Cause.CANCELLED),
    ("22.05", "timeout_fast", "4", Cause.WALLTIME),
    ("22.05", "badinterp", "21", Cause.LAUNCH_ERROR),
    ("22.05", "badworkdir", "18", None),
    ("24.11", "oom_cgroup", "8", Cause.MEMORY),
    ("24.11", "oom_srun_exit0", "26", Cause.MEMORY),
    ("24.11", "nodefail", "45", Cause.NODE_FAILURE),
    ("24.11", "preempted", "1", Cause.PREEMPTED),
    ("24.11", "timeout_fast", "7", Cause.WALLTIME),
    ("24.11", "scancel_trapterm", "23", Cause.CANCELLED),
    ("24.11", "requeued__pending", "28", None),
]


@pytest.mark.parametrize(
    "version, case, job, cause", CAPTURES, ids=[f"{row[1]}-{row[0]}" for row in CAPTURES]
)
def test_captures(version: str, case: str, job: str, cause: Optional[Cause]) -> None:
    """What real jobs' stderr said, and that the same text says nothing about another job."""
    text = capture(version, case, "job.stderr")
    finding = classify_stderr(text, job)
    assert (finding.cause if finding else None) is cause
    naming = [s for s in text.splitlines() if "StepId=" in s or "*** JOB" in s or "*** STEP" in s]
    other = classify_stderr("\n".join(naming), "990099")
    assert other is None


LINES = [
    pytest.param(
        "slurmstepd: error: Step 12.0 exceeded memory limit (52917772 > 20971520), being killed\n"
        f"slurmstepd: error: *** STEP 12.0 ON n1 {AT} ***\n",
        Cause.MEMORY, id="memory_kill_before_the_bare_cancel",
    ),
    pytest.param(
        f"slurmstepd: error: *** JOB 12 ON n1 {AT} ***\n"
        "slurmstepd: error: Detected 1 oom-kill event(s) in step 12.batch cgroup.\n",
        Cause.MEMORY, id="oom_on_second_line",
    ),
    pytest.param(
        "slurmstepd-n1: error: Job 12 exceeded virtual memory limit (9 > 8), being killed\n",
        Cause.MEMORY, id="virtual_memory",
    ),
    pytest.param("srun: Exceeded job memory limit\n", Cause.MEMORY, id="srun_without_error"),
    pytest.param("srun: error: n1: tasks 0-3: Out Of Memory\n", Cause.MEMORY, id="tasks_oom"),
    pytest.param(
        "slurmstepd: error: Exceeded job memory limit at some point.\n", None, id="warning"
    ),
    pytest.param(
        "slurmstepd: error: Exceeded step memory limit at some point. Step may have been "
        "partially swapped out to disk.\n",
        None, id="swapping_warning",
    ),
    pytest.param("MemoryError\nout of memory\nKilled\n", None, id="tool_says_memory"),
    pytest.param("[time limit reached]\n", None, id="tool_says_time"),
    pytest.param("error: *** it is CANCELLED AT last ***\n", Cause.CANCELLED, id="bare_error"),
    pytest.param("Error: *** CANCELLED AT noon\n", None, id="not_the_bare_form"),
    pytest.param(
        f"slurmd[n01]: *** JOB 12 {AT} DUE TO TIME LIMIT ***\n", Cause.WALLTIME, id="slurm_2"
    ),
    pytest.param(
        "slurmd[n01]: error: *** JOB 12 KILLED AT 2011-01-01T00:00:00 WITH SIGNAL 9 ***\n",
        Cause.CANCELLED, id="slurm_2_killed",
    ),
    pytest.param(
        "salloc: Job 12 has exceeded its time limit and its allocation has been revoked.\n",
        Cause.WALLTIME, id="salloc_time",
    ),
    pytest.param("salloc: Job allocation 12 has been revoked.\n", Cause.CANCELLED, id="salloc"),
    pytest.param("srun: error: Node failure on node37\n", Cause.NODE_FAILURE, id="srun_node"),
    pytest.param(
        f"error: *** STEP 12.0 ON n1 {AT} DUE TO TASK FAILURE ***\n", Cause.TOOL_ERROR,
        id="task_failure",
    ),
    pytest.param(
        "error: *** JOB 12 ON n1 FAILED (non-zero exit code or other failure mode) ***\n",
        Cause.TOOL_ERROR, id="failed",
    ),
    pytest.param(
        f"error: *** STEP 12.0 ON n1 {AT} DUE to SIGNAL Terminated ***\n", Cause.CANCELLED,
        id="lower_case_to",
    ),
    pytest.param(
        f"slurmstepd: error: *** JOB 12 ON n1 {AT} DUE TO JOB REQUEUE ***\n", None, id="requeue"
    ),
    pytest.param(
        "slurmstepd: error: Could not open stdout file /x: Permission denied\n", Cause.DISK,
        id="output",
    ),
    pytest.param(
        "slurmstepd: error: execve(): foo: No such file or directory\n", Cause.LAUNCH_ERROR,
        id="execve",
    ),
    pytest.param(
        f"\x1b[31mslurmstepd: error: *** JOB 12 ON n1 {AT} DUE TO TIME LIMIT ***\x1b[0m\r\n",
        Cause.WALLTIME, id="colours_and_crlf",
    ),
    pytest.param(
        f"10%\r20%\rslurmstepd: error: *** JOB 12 ON n1 {AT} DUE TO TIME LIMIT ***\n",
        Cause.WALLTIME, id="after_a_progress_bar",
    ),
    pytest.param(
        f"working...slurmstepd: error: *** JOB 12 ON n1 {AT} DUE TO TIME LIMIT ***\n",
        Cause.WALLTIME, id="glued_to_the_tools_text",
    ),
    pytest.param(
        "read log: slurmstepd: error: Exceeded job memory limit\n", None, id="glued_without_id"
    ),
    pytest.param(
        f"slurmstepd: error: *** JOB 13 ON n1 {AT} DUE TO TIME LIMIT ***\n", None, id="other_job"
    ),
    pytest.param(
        f"slurmstepd: error: *** JOB 123 ON n1 {AT} DUE TO TIME LIMIT ***\n", None,
        id="other_job_with_our_digits",
    ),
    pytest.param(
        "slurmstepd: error: Detected 2 oom_kill events in StepId=JOBID.13. Some of the step tasks "
        "have been OOM Killed.\n",
        Cause.MEMORY, id="blacked_out_id",
    ),
    pytest.param("", None, id="empty"),
]


@pytest.mark.parametrize("text, cause", LINES)
def test_lines(text: str, cause: Optional[Cause]) -> None:
    """Only Slurm's own lines about this job count, and the kill before its announcement."""
    finding = classify_stderr(text, "12")
    assert (finding.cause if finding else None) is cause


def test_ids_that_cannot_be_compared() -> None:
    """slurmstepd names an array task by its raw id; no id at all means any job's lines."""
    line = f"slurmstepd: error: *** JOB 14 ON n1 {AT} DUE TO TIME LIMIT ***"
    for external_id in ("13_1", "13+1", None):
        finding = classify_stderr(line, external_id)
        assert finding is not None and finding.cause is Cause.WALLTIME
    assert classify_stderr(line, "13") is None
    assert classify_stderr(line, "14.cluster") is not None


def test_glued_lines_need_an_id() -> None:
    """Behind a tool's text Slurm is only believed when it names this very job."""
    glued = f"log: slurmstepd: error: *** JOB 14 ON n1 {AT} DUE TO TIME LIMIT ***"
    assert classify_stderr(glued, None) is None
    assert classify_stderr(glued, "13_1") is not None
    assert classify_stderr("x" * 60000 + glued, "14") is not None


@pytest.mark.parametrize(
    "line, used, limit",
    [
        pytest.param(
            "StepId=12.batch exceeded memory limit (168075264 > 52428800), being killed",
            168075264, 52428800, id="bytes_since_20_02",
        ),
        pytest.param(
            "Step 12.0 exceeded memory limit (52917772 > 20971520), being killed",
            52917772 * 1024, 20971520 * 1024, id="kilobytes_until_17",
        ),
        pytest.param(
            "Job 12 exceeded memory limit (21474836481 > 21474836480), being killed",
            21474836481, 21474836480, id="bytes_18_08",
        ),
        pytest.param(
            "Step 12.0 exceeded memory limit (1073741825 > 1073741824), being killed",
            None, None, id="could_be_either",
        ),
        pytest.param("Exceeded job memory limit", None, None, id="no_numbers"),
    ],
)
def test_memory_numbers(line: str, used: Optional[int], limit: Optional[int]) -> None:
    """The unit changed with 18.08; where it cannot be told no number is."""
    finding = classify_stderr(f"slurmstepd: error: {line}\n", "12")
    assert finding is not None
    assert (finding.used_bytes, finding.limit_bytes) == (used, limit)
