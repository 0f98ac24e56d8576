"""Texts from the wild."""

from __future__ import annotations

import json

import pytest

from pulsar_failure_reasons.drm.htcondor.captured import read_captured, read_jobs
from pulsar_failure_reasons.drm.htcondor.log_text import EVENT_BY_TYPE_NAME, read_records
from pulsar_failure_reasons.reason import Cause, Confidence

from .support import DATA, captured_ad, captured_events, captured_log, corpus

#: What the corpus calls right, in our words. "still_running/pending" and "success" are no causes.
ACCEPTED = {
    "walltime_reached": {Cause.WALLTIME, Cause.CPU_TIME},
    "memory_limit_reached": {Cause.MEMORY},
    "cancelled": {Cause.CANCELLED},
    "node_failure": {Cause.NODE_FAILURE},
    "preempted": {Cause.PREEMPTED},
    "disk_or_output_failure": {Cause.DISK, Cause.STAGE_ERROR, Cause.LAUNCH_ERROR},
    "executable_error": {Cause.LAUNCH_ERROR},
    "tool_error": {Cause.TOOL_ERROR},
    "unknown": {Cause.UNKNOWN, Cause.LOST, Cause.TOOL_ERROR},
}


@pytest.mark.parametrize("case", corpus(), ids=lambda case: case["id"])
def test_corpus(case):
    """Every text of the corpus that can be decided is read right."""
    found = read_captured(case["text"], case["kind"])
    if case["truth"] == "success":
        assert (found.ended, found.cause) == (True, None)
    elif case["truth"] == "still_running/pending":
        assert (found.ended, found.cause) == (False, None)
    else:
        assert found.ended and found.cause in ACCEPTED[case["truth"]]


#: Logs as files, with the removal that cleaned up after the capture.
LOGS = {
    "SYNTHETIC_hold_34_cgroup_memory_v23": Cause.MEMORY,
    "SYNTHETIC_hold_34_lvm_disk_v23": Cause.DISK,
    "SYNTHETIC_hold_6_oom_at_startup_v25": Cause.MEMORY,
    "SYNTHETIC_held_multiline_reason": Cause.CANCELLED,
    "SYNTHETIC_held_reason_unspecified": Cause.UNKNOWN,
    "evicted_vacate_then_completes": None,
    "exec_bad_format": Cause.LAUNCH_ERROR,
    "held_released_completes": None,
    "hold_allowed_execute_duration_transfer": Cause.WALLTIME,
    "hold_by_condor_hold_cli": Cause.CANCELLED,
    "hold_job_policy_memory": Cause.MEMORY,
    "hold_job_policy_no_reason": Cause.WALLTIME,
    "hold_startd_policy_memory": Cause.MEMORY,
    "hold_startd_policy_runtime": Cause.WALLTIME,
    "hold_system_policy": Cause.WALLTIME,
    "iwd_missing": Cause.LAUNCH_ERROR,
    "job_ad_information": Cause.TOOL_ERROR,
    "leave_in_queue": Cause.TOOL_ERROR,
    "log_xml": Cause.TOOL_ERROR,
    "max_retries": Cause.TOOL_ERROR,
    "on_exit_remove_false_requeue": None,
    "periodic_release_auto": None,
    "removed_by_condor_rm_cli": Cause.CANCELLED,
    "removed_running_str_reason": Cause.CANCELLED,
    "retry_request_memory": Cause.MEMORY,
    "schedd_killed": Cause.TOOL_ERROR,
    "shadow_exception_starter_lost": None,
    "shadow_killed_sigabrt": None,
    "signal9_self": Cause.UNKNOWN,
    "signal11_self": Cause.TOOL_ERROR,
    "starter_killed_sigkill": None,
    "stdout_unwritable": Cause.DISK,
    "transfer_output_too_big": Cause.STAGE_ERROR,
    "transfer_url_bad": Cause.STAGE_ERROR,
}


@pytest.mark.parametrize("case", sorted(LOGS))
def test_logs(case):
    """A whole log says what its job came to."""
    found = read_captured(captured_log(case))
    assert (found.ended, found.cause) == (True, LOGS[case])


@pytest.mark.parametrize("path", sorted((DATA / "logs").glob("*.log")), ids=lambda p: p.stem)
def test_own_reader_agrees_with_the_bindings(path):
    """Our reader of log texts sees the events and values that htcondor2.JobEventLog sees."""
    ours = read_records(path.read_text())[0]
    theirs = captured_events()[path.stem]
    compared = (
        "EventTypeNumber", "Cluster", "Proc", "HoldReason", "HoldReasonCode", "HoldReasonSubCode",
        "ReturnValue", "TerminatedBySignal", "TerminatedNormally", "SlotName", "Reason",
        "RequestMemory", "EventTime",
    )
    # The bindings give no Reason for evictions of this version, ours does; 28 repeats others.
    for mine, right in zip(ours, theirs):
        if right["EventTypeNumber"] in (4, 28):
            continue
        for name in compared:
            if name == "HoldReason" and mine.get(name) == "Reason unspecified":
                continue
            assert _same(mine.get(name)) == _same(right.get(name)), (name, right)


def _same(value):
    return value.partition(".")[0] if isinstance(value, str) and value.startswith("20") else value


ADS = [
    ("hold_startd_policy_memory", "q.JOB_HELD.1", True, Cause.MEMORY, Confidence.CONTROLLER),
    ("hold_startd_policy_memory", "history", True, Cause.MEMORY, Confidence.ACCOUNTING),
    ("hold_job_policy_no_reason", "history", True, Cause.WALLTIME, Confidence.INFERRED),
    ("submitted_on_hold", "q", True, Cause.CANCELLED, Confidence.CONTROLLER),
    ("spool_submit", "q.BEFORE_SPOOL.1", False, None, Confidence.CONTROLLER),
    ("spool_submit", "history", True, None, Confidence.ACCOUNTING),
    ("success", "history", True, None, Confidence.ACCOUNTING),
    ("removed_running", "history", True, Cause.CANCELLED, Confidence.ACCOUNTING),
    ("history_only_signal", "history", True, Cause.UNKNOWN, Confidence.ACCOUNTING),
]


@pytest.mark.parametrize("case, which, ended, cause, confidence", ADS)
def test_ads(case, which, ended, cause, confidence):
    """A job ad says the same in long form and as JSON."""
    text = captured_ad(case, which)
    as_json = json.dumps(read_records(text)[1])
    for found in (read_captured(text), read_captured(as_json)):
        assert (found.ended, found.cause, found.confidence) == (ended, cause, confidence)


HELD_LINE = (
    " ID       OWNER          HELD_SINCE  HOLD_REASON\n"
    " 123.0    alice           4/22 20:44 Error from slot1_1@node1: memory usage exceeded\n"
    "                                     request_memory\n"
    "1 jobs; 0 completed, 0 removed, 0 idle, 0 running, 1 held, 0 suspended\n"
)
ANALYZE = "123.000:  Request is held.\n\nHold reason: Error from slot1@n: runtime exceeded maximum"
EVENT_005 = "005 (12.000.000) 02/13 12:00:19 Job terminated.\n"
MEMORY_TABLE = (
    "\t(0) Abnormal termination (signal 9)\n"
    "\tPartitionable Resources :    Usage  Request Allocated \n"
    "\t   Memory (MB)          :     {}     2048      2048 \n...\n"
)
DAGMAN_HELD = (
    "02/27/19 07:56:38 Event: ULOG_JOB_HELD for HTCondor Node n (178.0.0) {02/27/19 07:56:35}\n"
    "02/27/19 07:56:38   Hold reason: Job in status 2 put on hold by SYSTEM_PERIODIC_HOLD due to"
    " memory usage 3000000.\n"
)
DAGMAN_RELEASED = "02/27/19 08:00:00 Event: ULOG_JOB_RELEASED for HTCondor Node n (178.0.0) {x}\n"
DAGMAN_ENDED = "02/27/19 09:00:00 Event: ULOG_JOB_TERMINATED for HTCondor Node n (178.0.0) {x}\n"

# (id, text, ended, cause)
BATCHES = (
    "-- Schedd: s@h : <192.0.2.1:9618?... @ 01/01/23 10:00:00\n"
    "OWNER BATCH_NAME     SUBMITTED   DONE   RUN    IDLE   HOLD  TOTAL JOB_IDS\n"
    "alice ID: 12        1/1  10:00 {counts} 12.0\n\n"
    "Total for query: 1 jobs; 0 completed, 0 removed, 0 idle, 1 running, 0 held, 0 suspended\n"
)
PIECES = [
    ("own_accord", "\tJob terminated of its own accord at 2025-02-13T18:00:19Z with exit-code 1.",
     True, Cause.TOOL_ERROR),
    ("own_accord_signal", "Job terminated of its own accord at 2025-02-13T18:00:19Z with signal "
     "11.", True, Cause.TOOL_ERROR),
    ("condor_q_batch_running", BATCHES.format(counts="_ 1 _ _ 1"), False, None),
    ("condor_q_batch_idle", BATCHES.format(counts="_ _ 1 1"), False, None),
    ("condor_q_batch_held", BATCHES.format(counts="_ _ _ 1 1"), None, Cause.UNKNOWN),
    ("condor_q_hold", HELD_LINE, True, Cause.MEMORY),
    ("condor_q_analyze", ANALYZE, True, Cause.WALLTIME),
    ("condor_q_running", "105.0   u   11/7  23:48   0+00:10:00 R  0  0.3 run.sh", False, None),
    ("condor_q_completed_says_not_how", "105.0   u   11/7  23:48   0+00:10:00 C  11/7 23:59 r.sh",
     True, Cause.UNKNOWN),
    ("autoformat", "12.0 34 102 Error from slot1@n: Job has gone over", True, Cause.MEMORY),
    ("excerpt_of_an_ad", 'HoldReasonCode = 47\nHoldReason = "The job exceeded"', True,
     Cause.WALLTIME),
    ("ad_with_remove_reason_only", 'RemoveReason = "via condor_rm (by user a)"\nExitSignal = 15',
     True, Cause.CANCELLED),
    ("ad_of_a_released_job", "JobStatus = 2\nLastHoldReasonCode = 34\nLastHoldReason = \"memory\"",
     False, None),
    ("json_event", '{"MyType": "JobHeldEvent", "HoldReasonCode": 46, "Cluster": 3, "Proc": 0}',
     True, Cause.WALLTIME),
    ("json_lines", '{"MyType": "SubmitEvent", "Cluster": 3}\n{"MyType": "ExecuteEvent"}', False,
     None),
    ("signal_9_alone", EVENT_005 + "\t(0) Abnormal termination (signal 9)\n...\n", True,
     Cause.UNKNOWN),
    ("signal_9_at_the_limit", EVENT_005 + MEMORY_TABLE.format(2040), True, Cause.MEMORY),
    ("signal_9_far_below", EVENT_005 + MEMORY_TABLE.format(100), True, Cause.UNKNOWN),
    ("signal_9_not_measured", EVENT_005 + MEMORY_TABLE.format(""), True, Cause.UNKNOWN),
    ("cpu_limit_signal", EVENT_005 + "\t(0) Abnormal termination (signal 24)\n", True,
     Cause.CPU_TIME),
    ("body_without_header", "\t(1) Normal termination (return value 0)\n", True, None),
    ("cut_before_the_value", EVENT_005, True, Cause.UNKNOWN),
    ("starters_error_without_the_hold", "021 (12.000.000) 02/13 12:00:19 Error from starter on "
     "slot1@n:\n\tJob has gone over memory limit of 10 megabytes.\n\tCode 34 Subcode 0\n...\n",
     True, Cause.MEMORY),
    ("shadow_exception_of_a_node", "007 (12.000.000) 02/13 12:00:19 Shadow exception!\n"
     "\tCan no longer talk to condor_starter <192.0.2.1:9618>\n...\n", True, Cause.NODE_FAILURE),
    ("evicted_with_a_vacate_code", "004 (12.000.000) 02/13 12:00:19 Job was evicted. "
     "Code 1012 Subcode 0\n...\n", True, Cause.NODE_FAILURE),
    ("evicted_with_a_hold_code", "004 (12.000.000) 02/13 12:00:19 Job was evicted. "
     "Code 34 Subcode 104\n\tReason: x\n...\n", True, Cause.DISK),
    ("requeued_by_its_own_policy", "004 (12.000.000) 02/13 12:00:19 Job was evicted.\n"
     "\t(0) Job terminated and was requeued\n\t(1) Normal termination (return value 9)\n...\n",
     False, None),
    ("disconnected", "022 (12.000.000) 02/13 12:00:19 Job disconnected, attempting to reconnect\n"
     "    Socket between submit and execute hosts closed unexpectedly\n...\n", False, None),
    ("removed_by_site_policy", "009 (12.000.000) 02/13 12:00:19 Job was aborted.\n\tThe system "
     "macro SYSTEM_PERIODIC_REMOVE expression 'JobStatus == 5' evaluated to TRUE\n...\n", True,
     Cause.CANCELLED),
    ("removed_for_memory", "009 (12.000.000) 02/13 12:00:19 Job was aborted.\n\tRemoved due to "
     "memory use\n...\n", True, Cause.MEMORY),
    ("quoted_in_a_mail", "> 012 (12.000.000) 02/13 12:00:19 Job was held.\n> \tMEMORY EXCEEDED\n"
     "> \tCode 26 Subcode 0\n> ...\n", True, Cause.MEMORY),
    ("windows_line_ends", "012 (12.000.000) 02/13 12:00:19 Job was held.\r\n\tMEMORY EXCEEDED\r\n"
     "\tCode 26 Subcode 0\r\n...\r\n", True, Cause.MEMORY),
    ("dagman_held", DAGMAN_HELD, True, Cause.MEMORY),
    ("dagman_released", DAGMAN_HELD + DAGMAN_RELEASED, False, None),
    ("dagman_failed", DAGMAN_ENDED
     + "02/27/19 09:00:00 Node n job proc (178.0.0) failed with status 1.\n", True,
     Cause.TOOL_ERROR),
    ("dagman_done", DAGMAN_ENDED
     + "02/27/19 09:00:00 Node n job proc (178.0.0) completed successfully.\n", True, None),
    ("dagman_ended_says_not_how", DAGMAN_ENDED, True, Cause.UNKNOWN),
    ("reason_with_its_code", "disk trouble Code 34 Subcode 104", True, Cause.DISK),
    ("file_size_signal", EVENT_005 + "\t(0) Abnormal termination (signal 25)\n", True,
     Cause.DISK),
    ("hold_code_without_words", "HoldReasonCode = 46", True, Cause.WALLTIME),
    ("status_without_anything_else", "JobStatus = 1", False, None),
    ("startd_held_and_nothing_said", "021 (12.000.000) 02/13 12:00:19 Error from starter on "
     "slot1@n:\n\tnode wanted back\n\tCode 21 Subcode 7\n...\n", None, Cause.UNKNOWN),
    ("reason_docker", "Error from slot1@n: Cannot start container: invalid image name", True,
     Cause.LAUNCH_ERROR),
    ("reason_cores", "CPU usage exceeded request_cpus", True, Cause.CANCELLED),
    ("reason_spooling", "Spooling input data files", False, None),
    ("garbage", "hello world", None, Cause.UNKNOWN),
    ("tool_prints_memory", "java.lang.OutOfMemoryError: Java heap space", None, Cause.UNKNOWN),
    ("empty", "", None, Cause.UNKNOWN),
]


@pytest.mark.parametrize("text, ended, cause", [
    pytest.param(*row[1:], id=row[0]) for row in PIECES
])
def test_pieces(text, ended, cause):
    """Pieces, other forms and other sources are read as far as they go."""
    found = read_captured(text)
    assert (found.ended, found.cause) == (ended, cause)


def test_several_jobs_in_one_text():
    """Each job of a text has its own answer; without an id the one that failed is told."""
    text = captured_log("success") + captured_log("hold_job_policy_memory") + (
        "000 (99.000.000) 2026-11-29 11:00:00 Job submitted from host: <x>\n...\n"
    )
    told = {job.external_id: (job.ended, job.cause) for job in read_jobs(text)}
    assert told == {
        "2.0": (True, None), "11.0": (True, Cause.MEMORY), "99.0": (False, None),
    }
    assert read_captured(text).external_id == "11.0"
    assert read_captured(text, external_id="2").cause is None
    assert read_captured(text, external_id="99.0").ended is False
    assert read_captured(text, external_id="4").ended is None


def test_the_living_are_told_before_the_well_ended():
    """Without a failure, a job that still runs is what matters."""
    text = captured_log("success") + (
        "000 (99.000.000) 2026-11-29 11:00:00 Job submitted from host: <x>\n...\n"
    )
    assert read_captured(text).external_id == "99.0"


def test_type_names_are_htcondors():
    """MyType means the event that the bindings number so."""
    seen = set()
    for events in captured_events().values():
        for one in events:
            if one["MyType"] in EVENT_BY_TYPE_NAME:
                seen.add(one["MyType"])
                assert EVENT_BY_TYPE_NAME[one["MyType"]] == one["EventTypeNumber"]
    # No captured job was checkpointed or could not be linked.
    assert set(EVENT_BY_TYPE_NAME) - seen == {"ExecutableErrorEvent", "CheckpointedEvent"}


@pytest.mark.parametrize("written, read", [
    ("11/12 06:17:24", "2000-11-12T06:17:24"),
    ("11/12/22 06:17:24", "2022-11-12T06:17:24"),
    ("2025-02-13 12:00:19.123", "2025-02-13T12:00:19"),
    ("2025-02-13T12:00:19Z", "2025-02-13T12:00:19"),
])
def test_times(written, read):
    """Old and new forms of a time; one without a year can be compared with its like."""
    events, _ = read_records(f"001 (12.000.000) {written} Job executing on host: <x>\n...\n")
    assert events[0]["EventTime"] == read


def test_who_removed_it():
    """A removal names who did it only where it is a cancellation."""
    line = "009 (12.000.000) 02/13 12:00:19 Job was aborted.\n\t{}\n...\n"
    assert read_captured(line.format("via condor_rm (by user a)")).cancelled_by == "a"
    assert read_captured(line.format("out of memory (by user a)")).cancelled_by is None


def test_who_held_it():
    """A person's hold names them."""
    found = read_captured("07/23/24 17:24:50   Hold reason: via condor_hold (by user user1)")
    assert (found.cause, found.cancelled_by) == (Cause.CANCELLED, "user1")


@pytest.mark.parametrize("text", [
    "\t(1) Normal termination (return value 0", "\t(1) Normal termination (return value 1",
    "\t(0) Abnormal termination (signal 1",
])
def test_cut_in_its_number(text):
    """Of 137 or of 11 a cut text may have a 1: no number, and so no end."""
    assert read_captured(text).ended is None
