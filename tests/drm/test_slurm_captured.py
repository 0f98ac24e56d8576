"""Texts about Slurm jobs as people copy them: the corpus, and the forms next to it."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Tuple

import pytest

from pulsar_failure_reasons.drm.captured import Captured
from pulsar_failure_reasons.drm.slurm import read_captured
from pulsar_failure_reasons.reason import Confidence, Fault
from tests.drm.slurm_data import batched, capture, corpus

#: The corpus' words against ours (corpus/README.md).
TRUTHS = {
    "walltime_reached": {"walltime", "cpu_time"},
    "memory_limit_reached": {"memory"},
    "cancelled": {"cancelled"},
    "node_failure": {"node_failure"},
    "preempted": {"preempted"},
    "disk_or_output_failure": {"disk", "stage_error"},
    "executable_error": {"launch_error"},
    "tool_error": {"tool_error"},
    "success": {"success"},
    "still_running/pending": {"alive"},
    "unknown": {"unknown", "lost", "tool_error"},
}


def told(captured: Captured) -> str:
    """The answer in one word."""
    if captured.ended is False:
        return "alive"
    if captured.ended and captured.cause is None:
        return "success"
    assert captured.cause is not None
    return captured.cause.value


STRICT = [case for case in corpus() if case["strict"]]


@pytest.mark.parametrize("case", STRICT, ids=[case["id"] for case in STRICT])
@pytest.mark.parametrize("source", ["kind", "auto"])
def test_corpus(case: Dict[str, Any], source: str) -> None:
    """Every text from the wild is read right, with and without being told what it is."""
    captured = read_captured(case["text"], case["kind"] if source == "kind" else "auto")
    assert told(captured) in TRUTHS[case["truth"]], case["why"]


OLD = "slurmstepd: error: *** JOB 12 ON n1 CANCELLED AT 2026-01-01T00:00:00"
SACCT = """\
JobID           JobName  Partition    Account  AllocCPUS      State ExitCode
------------ ---------- ---------- ---------- ---------- ---------- --------
"""
SQUEUE = "             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n"


def _json(**job: Any) -> str:
    return json.dumps({"jobs": [{"job_id": 5, **job}]})


SIBLINGS: List[Tuple[str, str, str, str]] = [
    # ---- sacct: default table, cuts, separators, ids
    (
        "sacct_default_timeout", "sacct", "walltime",
        SACCT + "12                 wrap       main       acc          4    TIMEOUT      0:0 \n"
        "12.batch          batch                  acc          4  CANCELLED     0:15 \n",
    ),
    (
        "sacct_default_cut_states", "sacct", "memory",
        SACCT + "12                 wrap       main       acc          4 OUT_OF_ME+    0:125 \n"
        "12.batch          batch                  acc          4 OUT_OF_ME+    0:125 \n"
        "12.exte+         extern                  acc          4  COMPLETED      0:0 \n",
    ),
    (
        "sacct_default_blank_columns", "sacct", "cancelled",
        SACCT + "12                 a b                               4 CANCELLED+      0:0 \n",
    ),
    (
        "sacct_without_heading", "sacct", "cancelled",
        "12345678     bash       debug     acc          1 CANCELLED+      0:0 \n"
        "12345678.ex+     extern               acc          1  COMPLETED      0:0 \n",
    ),
    (
        "sacct_name_is_a_state", "sacct", "tool_error",
        "       JobID      State ExitCode    JobName\n"
        "------------ ---------- -------- ----------\n"
        "12               FAILED      2:0    RUNNING\n",
    ),
    (
        "sacct_wide_cancelled_by", "sacct", "cancelled",
        "       JobID                State ExitCode\n------------ -------------------- --------\n"
        "12                CANCELLED by 1234      0:0\n",
    ),
    ("sacct_parsable", "sacct", "walltime", "JobID|State|ExitCode|\n12|TIMEOUT|0:0|\n"),
    ("sacct_caret", "sacct", "preempted", "JobID^JobName^State\n12^x^PREEMPTED\n"),
    ("sacct_comma", "sacct", "alive", "JobID,State\n12,RUNNING\n"),
    ("sacct_unit_separator", "sacct", "node_failure", "a\x1f12\x1fx\x1fNODE_FAIL\x1f1:0"),
    ("sacct_separator_in_name", "sacct", "tool_error", "JobID|JobName|State\n12|a|b|FAILED\n"),
    ("sacct_heading_only", "sacct", "unknown", "JobID|State|ExitCode\n"),
    ("sacct_banner", "sacct", "walltime", "Welcome to 9 nodes\nLast login: 1.1.\n12|TIMEOUT|0:0\n"),
    ("sacct_colours_crlf", "sacct", "success", "\x1b[32m12|COMPLETED|0:0\x1b[0m\r\n"),
    ("sacct_only_states", "sacct", "walltime", "TIMEOUT   \nCANCELLED \nCOMPLETED \n"),
    ("sacct_only_states_failed_first", "sacct", "tool_error", "FAILED \nCANCELLED \n"),
    ("sacct_batch_oom", "sacct", "memory", "12|FAILED|1:0\n12.batch|OUT_OF_MEMORY|0:125\n"),
    ("sacct_only_steps", "sacct", "memory", "12.0|COMPLETED|0:0\n12.batch|OUT_OF_MEMORY|0:125\n"),
    ("sacct_array_alive", "sacct", "alive", "12_7|TIMEOUT|0:0\n12_[8-10]|PENDING|0:0\n"),
    ("sacct_array_worst", "sacct", "walltime", "12_7|TIMEOUT|0:0\n12_8|COMPLETED|0:0\n"),
    ("sacct_duplicates", "sacct", "alive", "12|NODE_FAIL|0:0\n12|PENDING|0:0\n"),
    ("sacct_two_jobs", "sacct", "unknown", "12|TIMEOUT|0:0\n13|TIMEOUT|0:0\n"),
    ("sacct_killed", "sacct", "unknown", "12|FAILED|0:9\n"),
    ("sacct_name_or_state", "sacct", "unknown", "12|TIMEOUT|CANCELLED|0:0\n"),
    ("sacct_output", "sacct", "disk", "12|FAILED|0:53\n12.batch|CANCELLED|0:53\n"),
    ("sacct_segv", "sacct", "tool_error", "12|FAILED|0:11\n"),
    ("sacct_deadline", "sacct", "walltime", "12|DEADLINE|1:0\n"),
    ("sacct_boot_fail", "sacct", "node_failure", "12|BOOT_FAIL|0:0\n"),
    ("sacct_revoked", "sacct", "unknown", "12|REVOKED|0:0\n"),
    ("sacct_requeued", "sacct", "alive", "12|REQUEUED|0:0\n"),
    ("sacct_database_down", "sacct", "unknown", "sacct: error: Problem talking to the database\n"),
    ("sacct_disabled", "sacct", "unknown", "Slurm accounting storage is disabled\n"),
    ("sacct_empty", "sacct", "unknown", ""),
    # ---- squeue
    ("squeue_running", "squeue", "alive", SQUEUE + "   12      main F u  R       0:05      1 n1\n"),
    ("squeue_completing", "squeue", "alive", SQUEUE + " 12 main R u CG  0:05      1 n1\n"),
    (
        "squeue_limit_reason", "squeue", "alive",
        SQUEUE + "   12  main  x u PD       0:00      1 (QOSMaxCpuPerUserLimit)\n",
    ),
    ("squeue_held", "squeue", "alive", "12 PD (launch failed requeued held)\n"),
    (
        "squeue_cut_state", "squeue", "memory",
        "JOBID PARTITION NAME USER STATE TIME TIME_LIMI NODES NODELIST(REASON)\n"
        " 77 main big u1 OUT_OF_M 1:02 10:00 1 (OutOfMemory)\n",
    ),
    ("squeue_codes", "squeue", "walltime", "12|TO|TimeLimit\n"),
    ("squeue_heading_only", "squeue", "unknown", SQUEUE),
    ("squeue_unknown_id", "squeue", "unknown", "slurm_load_jobs error: Invalid job id specified\n"),
    # ---- scontrol
    (
        "scontrol_lines", "scontrol", "walltime",
        "JobId=12 JobName=x\r\n   JobState=TIMEOUT Reason=TimeLimit Dependency=(null)\r\n",
    ),
    (
        "scontrol_cancelled", "scontrol", "cancelled",
        "   JobState=CANCELLED Reason=None Dependency=(null)\n   ExitCode=0:15\n",
    ),
    ("scontrol_completing", "scontrol", "alive", "JobState=COMPLETING Reason=TimeLimit\n"),
    (
        "scontrol_output", "scontrol", "disk",
        "JobState=FAILED Reason=RaisedSignal:53(Real-time_signal_19) Dependency=(null)\n",
    ),
    (
        "scontrol_126", "scontrol", "launch_error",
        "JobState=FAILED Reason=NonZeroExitCode Dependency=(null)\nExitCode=126:0\n",
    ),
    (
        "scontrol_node", "scontrol", "node_failure",
        "JobState=NODE_FAIL Reason=NodeDown FailedNode=n1 Dependency=(null)\nExitCode=0:1\n",
    ),
    ("scontrol_state_in_cut_name", "scontrol", "unknown", "JobId=5 JobName=a JobState=FAILED b\n"),
    (
        "scontrol_and_stderr", "scontrol+stderr", "memory",
        "JobState=FAILED Reason=JobLaunchFailure Dependency=(null)\nExitCode=0:9\n"
        "slurmstepd-node1: error: Exceeded job memory limit\n",
    ),
    (
        "scontrol_pending_sacct_node_fail", "scontrol+sacct", "alive",
        "JobId=12 JobName=x\n  JobState=PENDING Reason=BeginTime Dependency=(null)\n"
        "12|NODE_FAIL|0:0\n",
    ),
    (
        "scontrol_completing_sacct_told", "scontrol+sacct", "cancelled",
        "JobId=12 JobName=x\n  JobState=COMPLETING Reason=None Dependency=(null)\n"
        "12|CANCELLED by 0|0:0\n",
    ),
    # ---- stderr, alone and with a state
    ("stderr_requeue", "stderr", "alive", f"{OLD} DUE TO JOB REQUEUE ***\n"),
    ("stderr_tool_memory", "stderr", "unknown", "java.lang.OutOfMemoryError: Java heap space\n"),
    (
        "stderr_warning_and_killed", "stderr", "memory",
        "/var/spool/slurmd/job12/slurm_script: line 3: 99 Killed    tool\n"
        "slurmstepd: error: Exceeded job memory limit at some point.\n",
    ),
    (
        "stderr_warning_cancelled", "stderr+state", "cancelled",
        "slurmstepd: error: Exceeded job memory limit at some point.\nCANCELLED by 5\n",
    ),
    ("stderr_signal_survived", "stderr+state", "success", f"{OLD} ***\nCOMPLETED\n"),
    (
        "stderr_oom_completed", "stderr+state", "memory",
        "slurmstepd: error: Detected 1 oom_kill event in StepId=12.batch.\nCOMPLETED\n",
    ),
    (
        "stderr_time_state_failed", "stderr+state", "walltime",
        f"{OLD} DUE TO TIME LIMIT ***\nFAILED\n",
    ),
    (
        "srun_exit", "stderr", "tool_error",
        "srun: error: n1: task 1: Exited with exit code 1\n"
        "slurmstepd: error: *** STEP 12.0 ON n1 CANCELLED AT 2026-01-01T00:00:00 ***\n"
        "srun: error: n1: task 0: Killed\n",
    ),
    ("srun_127", "stderr", "launch_error", "srun: error: n1: task 0: Exited with exit code 127\n"),
    (
        "srun_segv", "stderr", "tool_error",
        "srun: error: n1: task 0: Segmentation fault (core dumped)\n",
    ),
    (
        "shell_not_found", "stderr", "launch_error",
        "/var/spool/slurmd/job123/slurm_script: line 5: blastn: command not found\n",
    ),
    ("quota", "stderr", "disk", "cp: error writing 'x': Disk quota exceeded\n"),
    (
        "refused", "stderr", "launch_error",
        "sbatch: error: Batch job submission failed: Invalid account or account/partition "
        "combination specified\n",
    ),
    (
        "not_refused", "stderr", "unknown",
        "sbatch: error: Batch job submission failed: Unable to contact slurm controller\n",
    ),
    # ---- mails and seff
    (
        "mail_ended", "mail", "success",
        "Slurm Job_id=12 Name=a b Ended, Run time 00:00:05, COMPLETED, ExitCode 0",
    ),
    (
        "mail_failed", "mail", "tool_error",
        "Slurm Job_id=12 Name=x Failed, Run time 00:00:05, FAILED, ExitCode 1",
    ),
    (
        "mail_timeout", "mail", "walltime",
        "SLURM Job_id=12 Name=x Failed, Run time 00:00:05, TIMEOUT, ExitCode 0",
    ),
    (
        "mail_memory", "mail", "memory",
        "Subject: Slurm Job_id=12 Name=Failed Failed, Run time 00:05, OUT_OF_MEMORY",
    ),
    (
        "mail_name_is_a_state", "mail", "success",
        "Slurm Job_id=12 Name=Failed, TIMEOUT Ended, Run time 00:05, COMPLETED, ExitCode "
        "0",
    ),
    ("mail_began", "mail", "alive", "Slurm Job_id=12 Name=x Began, Queued time 00:00:05"),
    ("mail_90_percent", "mail", "alive", "Slurm Job_id=12 Name=x Reached 90% of time limit"),
    (
        "mail_time_limit", "mail", "walltime",
        "Slurm Job_id=12 Name=x Reached time limit, Run time 01:00",
    ),
    (
        "mail_array", "mail", "success",
        "Slurm Array Summary Job_id=12_* (12) Name=x Ended, COMPLETED, ExitCode [0-0]",
    ),
    ("seff_memory", "seff", "memory", "Job ID: 12\nState: OUT_OF_MEMORY (exit code 0)\nCores: 1\n"),
    ("seff_well", "seff", "success", "Job ID: 12\nState: COMPLETED (exit code 0)\n"),
    ("seff_running", "seff", "alive", "Job ID: 12\nState: RUNNING\n"),
    ("seff_failed", "seff", "tool_error", "Job ID: 12\nState: FAILED (exit code 2)\n"),
    # ---- logs
    (
        "ctld_time", "slurmctld-log", "walltime",
        "[2022-01-01T00:00:00.123] Time limit exhausted for JobId=12\n"
        "[2022-01-01T00:00:00.124] _job_complete: JobId=12 WTERMSIG 15\n",
    ),
    (
        "ctld_oom", "slurmctld-log", "memory",
        "[2022-01-01T00:00:00.123] _job_complete: JobId=12 OOM failure\n",
    ),
    (
        "ctld_cancel", "slurmctld-log", "cancelled",
        "[2022-01-01T00:00:00.123] _slurm_rpc_kill_job: REQUEST_KILL_JOB JobId=12 uid 1000\n"
        "[2022-01-01T00:00:00.124] _job_complete: JobId=12 WTERMSIG 15\n",
    ),
    (
        "ctld_well", "slurmctld-log", "success",
        "[2022-01-01T00:00:00.123] _job_complete: JobId=12 WEXITSTATUS 0\n",
    ),
    (
        "ctld_exit", "slurmctld-log", "tool_error",
        "[2022-01-01T00:00:00.123] _job_complete: JobId=12 WEXITSTATUS 2\n",
    ),
    (
        "ctld_node", "slurmctld-log", "node_failure",
        "[2022-01-01T00:00:00.123] Killing JobId=5 on failed node n1\n",
    ),
    (
        "ctld_preempted", "slurmctld-log", "preempted",
        "[2022-01-01T00:00:00.123] preempted JobId=5 has been killed to reclaim resources for "
        "preemptor JobId=6\n",
    ),
    (
        "ctld_requeued", "slurmctld-log", "unknown",
        "[2022-01-01T00:00:00.123] requeue job JobId=5 due to failure of node n1\n",
    ),
    (
        "ctld_two_jobs", "slurmctld-log", "unknown",
        "[2022-01-01T00:00:00.123] Time limit exhausted for JobId=12\n"
        "[2022-01-01T00:00:00.123] _job_complete: JobId=13 OOM failure\n",
    ),
    (
        "slurmd_status", "slurmd-log", "tool_error",
        "[2022-01-01T00:00:00.123] [12.batch] sending REQUEST_COMPLETE_BATCH_SCRIPT, slurm_rc:0, "
        "job status 256\n",
    ),
    (
        "slurmd_old_status", "slurmd-log", "success",
        "[2012-01-01T00:00:00.123] [12] sending REQUEST_COMPLETE_BATCH_SCRIPT, error:0 status 0\n",
    ),
    (
        "slurmd_time", "slurmd-log", "walltime",
        "[2022-01-01T00:00:00.123] [12.batch] error: *** JOB 12 ON n1 CANCELLED AT "
        "2022-01-01T00:00:00 DUE TO TIME LIMIT ***\n[2022-01-01T00:00:01.123] [12.batch] "
        "done with job\n",
    ),
    (
        "slurmd_output", "slurmd-log", "disk",
        "[2022-01-01T00:00:00.123] [12.batch] error: Could not open stdout file /a: "
        "Permission denied\n",
    ),
    # ---- JSON
    ("json_pending", "squeue-json", "alive", _json(job_state="PENDING", exit_code=0)),
    ("json_old_raw_exit", "squeue-json", "tool_error", _json(job_state="FAILED", exit_code=768)),
    ("json_timeout", "scontrol-json", "walltime", _json(job_state=["TIMEOUT"])),
    ("json_completing", "scontrol-json", "alive", _json(job_state=["FAILED", "COMPLETING"])),
    ("json_unknown_flag", "scontrol-json", "unknown", _json(job_state=["COMPLETED", "NEW_FLAG"])),
    ("json_requeued", "sacct-json", "alive", _json(state={"current": ["PENDING", "REQUEUED"]})),
    (
        "json_step_oom", "sacct-json", "memory",
        _json(
            state={"current": "FAILED"},
            steps=[{"step": {"id": "5.batch", "name": "batch"}, "state": "OUT_OF_MEMORY"}],
        ),
    ),
    (
        "json_22_05_says_success_of_a_failure", "sacct-json", "tool_error",
        _json(state={"current": "FAILED"}, exit_code={"status": "SUCCESS", "return_code": 0}),
    ),
    (
        "requeued_and_then_timed_out", "stderr", "walltime",
        "slurmstepd: error: *** JOB 12 ON n1 CANCELLED AT 2020-01-01T00:00:00 DUE TO JOB REQUEUE "
        "***\nslurmstepd: error: *** JOB 12 ON n1 CANCELLED AT 2020-01-01T01:00:00 DUE TO TIME "
        "LIMIT ***\n",
    ),
    (
        "slurmd_log_without_error", "slurmd-log", "memory",
        "[2014-05-02T11:16:29.000] [12] Job 12 exceeded memory limit (2048 > 1024), being killed\n",
    ),
    (
        "in_a_log_of_another", "stderr", "memory",
        "[2020-01-01T12:00:00+0000] [MainThread] [W] [toil.leader] script: line 2: 8 Killed x\n"
        "[2020-01-01T12:00:00+0000] [MainThread] [W] [toil.leader] slurmstepd: error: Detected 1 "
        "oom-kill event(s) in StepId=12.batch.\n",
    ),
    (
        "labelled_by_srun", "stderr", "walltime",
        "0: slurmstepd: error: *** STEP 12.0 ON n1 CANCELLED AT 2020-01-01T00:00:00 DUE TO TIME "
        "LIMIT ***\n",
    ),
    ("sacct_extern_alone", "sacct", "unknown", "12.extern|COMPLETED|0:0\n"),
    ("json_no_jobs", "scontrol-json", "unknown", '{"jobs": [], "errors": []}'),
    ("json_banner", "sacct-json", "walltime", "Hello\n" + _json(state={"current": ["TIMEOUT"]})),
    (
        "json_cut", "sacct-json", "walltime",
        '{"jobs": [{"job_id": 7, "state": {"current": ["TIMEOUT"], "reason": "None"}, "st',
    ),
    (
        "json_state_in_name", "sacct-json", "alive",
        _json(name='"state": {"current": ["TIMEOUT"]', state={"current": ["RUNNING"]}),
    ),
]


@pytest.mark.parametrize(
    "source, expected, text", [row[1:] for row in SIBLINGS], ids=[row[0] for row in SIBLINGS]
)
@pytest.mark.parametrize("how", ["told", "auto"])
def test_siblings(source: str, expected: str, text: str, how: str) -> None:
    """The forms next to those of the corpus, from manuals and other versions."""
    assert told(read_captured(text, source if how == "told" else "auto")) == expected


def test_one_of_several_jobs() -> None:
    """With an id, a text about several jobs is read for that one only."""
    text = "JobID|State\n21|TIMEOUT\n22|OUT_OF_MEMORY\n23|NODE_FAIL\n24|COMPLETED\n"
    words = {job: told(read_captured(text, "sacct", job)) for job in ("21", "22", "23", "24", "25")}
    assert words == {
        "21": "walltime", "22": "memory", "23": "node_failure", "24": "success", "25": "unknown",
    }


def test_what_is_told_with_it() -> None:
    """Who cancelled, whose fault, where it was read."""
    captured = read_captured("12|CANCELLED by 1000|0:0\n", "sacct")
    assert (captured.cancelled_by, captured.fault) == ("1000", Fault.USER)
    assert (captured.confidence, captured.external_id) == (Confidence.ACCOUNTING, "12")
    assert captured.evidence[0].value == "CANCELLED by 1000"
    assert read_captured("12|COMPLETED|0:0\n").fault is None
    assert read_captured("nothing").confidence is None


@pytest.mark.parametrize(
    "version, case, expected",
    [
        ("22.05", "spoof", "tool_error"), ("24.11", "spoofok", "success"),
        ("22.05", "comment_newline", "tool_error"), ("22.05", "badoutput", "disk"),
        ("24.11", "nodefail", "node_failure"), ("22.05", "prologfail", "alive"),
        ("24.11", "array__all_cancelled", "cancelled"), ("24.11", "sigsegv", "tool_error"),
    ],
)
def test_scontrol_captures(version: str, case: str, expected: str) -> None:
    """Whole records are read as the strict parser reads them, whatever their names hold."""
    text = capture(version, case, "scontrol_o_show_job")
    assert told(read_captured(text, "scontrol")) == expected


@pytest.mark.parametrize("version", ["22.05", "24.11"])
@pytest.mark.parametrize(
    "job, expected", [("6", "memory"), ("9", "cancelled"), ("12", "walltime"), ("7", "tool_error")]
)
def test_our_own_answers_can_be_read_back(version: str, job: str, expected: str) -> None:
    """A kept answer of ours, with | for the separator, is a table like any other."""
    text = batched(version, "sacct_all").replace("@q7f3a9c1@", "|")
    assert told(read_captured(text, "sacct", job)) == expected
