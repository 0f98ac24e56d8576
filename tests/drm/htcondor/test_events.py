"""A job's event log as one summary, and what the judgement is shown of it."""

from __future__ import annotations

import pytest

from pulsar_failure_reasons.drm.base import Ending, Phase
from pulsar_failure_reasons.drm.htcondor import (
    JobState,
    JobSummary,
    advance,
    summarize_events,
    view_of,
)
from pulsar_failure_reasons.reason import Cause, Confidence

from .support import (
    EVICTED,
    EXECUTE,
    RELEASED,
    SUBMIT,
    aborted,
    captured_events,
    event,
    exited,
    held,
    killed,
)

MEMORY = "Error from slot1@n1: Job has gone over memory limit of 10 megabytes. Peak usage: 9"

QUEUED, RUNNING, STUCK = Phase.QUEUED, Phase.RUNNING, Phase.STUCK
WELL, BADLY, LIMIT = Ending.WELL, Ending.BADLY, Ending.LIMIT
CANCELLED, FOR_GOOD = Ending.CANCELLED, Ending.INFRASTRUCTURE

#: What each captured log shows: a phase, or how it ended, with cause, exit code and signal.
CAPTURED = {
    "SYNTHETIC_held_multiline_reason": (STUCK, Cause.HELD),
    "SYNTHETIC_held_reason_unspecified": (STUCK, Cause.UNKNOWN),
    "SYNTHETIC_hold_34_cgroup_memory_v23": (LIMIT, Cause.MEMORY, None, None),
    "SYNTHETIC_hold_34_lvm_disk_v23": (LIMIT, Cause.DISK, None, None),
    "SYNTHETIC_hold_34_lvm_disk_v25": (LIMIT, Cause.DISK, None, None),
    "SYNTHETIC_hold_34_oom_no_limit_v25": (LIMIT, Cause.MEMORY, None, None),
    "SYNTHETIC_hold_6_oom_at_startup_v25": (LIMIT, Cause.MEMORY, None, None),
    "dataflow_skipped": (WELL, None, 0, None),
    "docker_universe": (QUEUED, Cause.HELD),
    "evicted_startd_preempt_runtime": (QUEUED, Cause.HELD),
    "evicted_vacate_then_completes": (WELL, None, 0, None),
    "exec_bad_format": (FOR_GOOD, Cause.LAUNCH_ERROR, None, None),
    "exec_missing_no_transfer": (FOR_GOOD, Cause.LAUNCH_ERROR, None, None),
    "exec_not_executable": (FOR_GOOD, Cause.LAUNCH_ERROR, None, None),
    "exec_removed_after_submit_notransfer": (FOR_GOOD, Cause.LAUNCH_ERROR, None, None),
    "galaxy_walltime_expression": (WELL, None, 0, None),
    "galaxy_walltime_expression_fixed": (LIMIT, Cause.WALLTIME, None, None),
    "held_released_completes": (WELL, None, 0, None),
    "history_only_exit": (BADLY, None, 6, None),
    "history_only_removed": (CANCELLED, Cause.CANCELLED, None, None),
    "history_only_removed_by_policy": (CANCELLED, Cause.CANCELLED, None, None),
    "history_only_signal": (BADLY, None, None, 9),
    "hold_allowed_execute_duration": (RUNNING, Cause.HELD),
    "hold_allowed_execute_duration_transfer": (LIMIT, Cause.WALLTIME, None, None),
    "hold_by_condor_hold_cli": (QUEUED, Cause.HELD),
    "hold_by_user_no_reason": (QUEUED, Cause.HELD),
    "hold_by_user_str_reason": (QUEUED, Cause.HELD),
    "hold_job_policy_memory": (LIMIT, Cause.MEMORY, None, None),
    "hold_job_policy_no_reason": (LIMIT, Cause.WALLTIME, None, None),
    "hold_job_policy_undefined": (RUNNING, Cause.HELD),
    "hold_job_policy_walltime": (LIMIT, Cause.WALLTIME, None, None),
    "hold_startd_policy_memory": (LIMIT, Cause.MEMORY, None, None),
    "hold_startd_policy_runtime": (LIMIT, Cause.WALLTIME, None, None),
    "hold_system_policy": (LIMIT, Cause.WALLTIME, None, None),
    "iwd_missing": (FOR_GOOD, Cause.LAUNCH_ERROR, None, None),
    "job_ad_information": (BADLY, None, 4, None),
    "kill_sig_custom_removed": (CANCELLED, Cause.CANCELLED, None, None),
    "leave_in_queue": (BADLY, None, 6, None),
    "log_deleted_while_running": (BADLY, None, 2, None),
    "log_dir_removed_before_start": (QUEUED, Cause.HELD),
    "log_is_a_directory": (Phase.UNKNOWN, Cause.HELD),
    "log_xml": (BADLY, None, 2, None),
    "max_retries": (BADLY, None, 9, None),
    "multi_proc_cluster": (WELL, None, 0, None),
    "never_matches": (QUEUED, Cause.HELD),
    "on_exit_remove_false_requeue": (WELL, None, 0, None),
    "oom_rlimit": (BADLY, None, 1, None),
    "periodic_release_auto": (WELL, None, 0, None),
    "pool_restarted_while_running": (RUNNING, Cause.HELD),
    "removed_by_condor_rm_cli": (CANCELLED, Cause.CANCELLED, None, None),
    "removed_idle": (CANCELLED, Cause.CANCELLED, None, None),
    "removed_running": (CANCELLED, Cause.CANCELLED, None, None),
    "removed_running_str_reason": (CANCELLED, Cause.CANCELLED, None, None),
    "removex_running": (CANCELLED, Cause.CANCELLED, None, None),
    "retry_request_memory": (LIMIT, Cause.MEMORY, None, None),
    "schedd_killed": (BADLY, None, 3, None),
    "shadow_exception_never_reconnect_evict_loop": (QUEUED, Cause.HELD),
    "shadow_exception_starter_lost": (WELL, None, 0, None),
    "shadow_killed_sigabrt": (WELL, None, 0, None),
    "sigkill_group": (BADLY, None, None, 9),
    "signal11_self": (BADLY, None, None, 11),
    "signal15_self": (BADLY, None, None, 15),
    "signal9_self": (BADLY, None, None, 9),
    "spool_submit": (Phase.UNKNOWN, Cause.HELD),
    "startd_killed": (RUNNING, Cause.HELD),
    "starter_killed_sigabrt": (WELL, None, 0, None),
    "starter_killed_sigkill": (WELL, None, 0, None),
    "stdin_missing": (FOR_GOOD, Cause.LAUNCH_ERROR, None, None),
    "stdout_unwritable": (LIMIT, Cause.DISK, None, None),
    "submitted_on_hold": (QUEUED, Cause.HELD),
    "success": (WELL, None, 0, None),
    "suspended_continued": (WELL, None, 0, None),
    "transfer_input_missing": (FOR_GOOD, Cause.STAGE_ERROR, None, None),
    "transfer_input_too_big": (FOR_GOOD, Cause.STAGE_ERROR, None, None),
    "transfer_ok": (WELL, None, 0, None),
    "transfer_output_too_big": (FOR_GOOD, Cause.STAGE_ERROR, None, None),
    "transfer_output_unwritable": (FOR_GOOD, Cause.STAGE_ERROR, None, None),
    "transfer_url_bad": (FOR_GOOD, Cause.STAGE_ERROR, None, None),
}


def _shown(view):
    end = view.end
    if end is None:
        return view.phase, view.stuck_for
    assert view.phase is Phase.ENDED
    return end.ending, end.cause, end.exit_code, end.signal


@pytest.mark.parametrize("case", sorted(captured_events()))
def test_captured_logs(case):
    """Every log of a real pool is read as what happened."""
    assert _shown(view_of(summarize_events(captured_events()[case]))) == CAPTURED[case]


# (id, events, what is shown)
SEQUENCES = [
    ("running", [SUBMIT, EXECUTE], (RUNNING, Cause.HELD)),
    ("evicted_is_no_end", [SUBMIT, EXECUTE, EVICTED], (QUEUED, Cause.HELD)),
    ("shadow_exception_is_no_end", [SUBMIT, EXECUTE, event(7, Message="x")],
     (QUEUED, Cause.HELD)),
    ("disconnected_is_no_end", [SUBMIT, EXECUTE, event(22)], (RUNNING, Cause.HELD)),
    ("reconnect_failed_is_no_end", [SUBMIT, EXECUTE, event(22), event(24), EVICTED],
     (QUEUED, Cause.HELD)),
    ("unsuspended", [SUBMIT, EXECUTE, event(10), event(11), EVICTED, event(11)],
     (RUNNING, Cause.HELD)),
    ("suspended", [SUBMIT, EXECUTE, event(10)], (RUNNING, Cause.HELD)),
    ("executes_twice", [SUBMIT, EXECUTE, EXECUTE, exited(0)], (WELL, None, 0, None)),
    ("hold_released", [SUBMIT, EXECUTE, held(34, 0, MEMORY), RELEASED], (QUEUED, Cause.HELD)),
    ("hold_released_and_running", [SUBMIT, EXECUTE, held(34, 0, MEMORY), RELEASED, EXECUTE],
     (RUNNING, Cause.HELD)),
    ("hold_whose_release_was_not_logged", [SUBMIT, EXECUTE, held(1), EXECUTE],
     (RUNNING, Cause.HELD)),
    ("shadow_speaks_after_the_hold", [SUBMIT, EXECUTE, held(34, 0, MEMORY), EVICTED],
     (LIMIT, Cause.MEMORY, None, None)),
    ("only_job_held_counts", [SUBMIT, EXECUTE, event(21, HoldReasonCode=34), held(13, 2, "x")],
     (FOR_GOOD, Cause.STAGE_ERROR, None, None)),
    ("usegalaxy_eu", [SUBMIT, EXECUTE, held(34, 0, MEMORY), RELEASED, EXECUTE,
     held(34, 0, MEMORY), aborted("via condor_rm (by user condor)")],
     (CANCELLED, Cause.MEMORY, None, None)),
    ("usegalaxy_eu_by_reason_only", [SUBMIT, EXECUTE, held(34, 0, MEMORY), RELEASED,
     aborted("job is running out of memory (by user condor)")],
     (CANCELLED, Cause.MEMORY, None, None)),
    ("removed_after_release", [SUBMIT, EXECUTE, held(34, 0, MEMORY), RELEASED, EXECUTE,
     aborted("via condor_rm (by user alice)")], (CANCELLED, Cause.CANCELLED, None, None)),
    ("removed_after_ending", [SUBMIT, EXECUTE, exited(0), aborted("x")], (WELL, None, 0, None)),
    ("end_after_removal_is_late", [SUBMIT, EXECUTE, aborted(None), exited(0)],
     (CANCELLED, Cause.CANCELLED, None, None)),
    ("vacate_code_is_no_hold", [SUBMIT, EXECUTE, held(1014, 0, "drain")], (QUEUED, Cause.HELD)),
    ("terminated_without_a_value", [SUBMIT, EXECUTE, event(5)], (BADLY, None, None, None)),
    ("normally_without_a_value", [SUBMIT, event(5, TerminatedNormally=True)],
     (BADLY, None, None, None)),
    ("old_executable_error", [SUBMIT, event(2)], (QUEUED, Cause.HELD)),
    ("log_without_its_beginning", [event(6, MemoryUsage=3)], (RUNNING, Cause.HELD)),
]


@pytest.mark.parametrize("events, shown", [
    pytest.param(*row[1:], id=row[0]) for row in SEQUENCES
])
def test_sequences(events, shown):
    """What ends a job, and what does not."""
    assert _shown(view_of(summarize_events(events))) == shown


def test_incremental_is_the_same():
    """A log read in pieces gives what it gives in one."""
    events = captured_events()["periodic_release_auto"]
    summary = JobSummary()
    for one in events:
        summary = advance(summary, one)
    assert summary == summarize_events(events)


def test_releases_count_only_holds_that_were_no_persons():
    """A person who holds and releases uses up no release."""
    summary = summarize_events([
        SUBMIT, EXECUTE, held(1, 0, "x (by user a)"), RELEASED,
        EXECUTE, held(34, 0, MEMORY), RELEASED,
    ])
    assert summary.releases == 1
    assert summary.last_hold is not None and summary.last_hold.cause is Cause.MEMORY
    assert summary.hold is None


def test_other_jobs_events_are_passed_over():
    """A log that several jobs write to is read for one."""
    other = {"EventTypeNumber": 9, "Cluster": 8, "Proc": 0, "Reason": "x"}
    sibling = {"EventTypeNumber": 9, "Cluster": 7, "Proc": 1, "Reason": "x"}
    summary = summarize_events([SUBMIT, EXECUTE, other, sibling])
    assert (summary.state, summary.external_id) == (JobState.RUNNING, "7.0")


def test_unknown_event_is_noted_with_its_number():
    """A newer version's event changes nothing and stands in the evidence."""
    view = view_of(summarize_events([SUBMIT, EXECUTE, event(48), event(48), event(999)]))
    assert view.phase is Phase.RUNNING
    assert [item.value for item in view.evidence if item.field == "EventTypeNumber"] == ["48, 999"]


def test_view_shows_node_times_and_memory():
    """Node of the last start, run time to the hold, request and the most memory measured."""
    summary = summarize_events([
        SUBMIT,
        EXECUTE,
        event(6, MemoryUsage=311, ResidentSetSize=1),
        event(6, ResidentSetSize=2048),
        event(28, RequestMemory=64),
        held(34, 102, MEMORY),
    ])
    view = view_of(summary)
    assert (view.node, view.elapsed_s) == ("slot1_1@node1", 62)
    assert view.used_memory_bytes == 311 * 1024 * 1024
    assert view.memory_bytes == 64 * 1024 * 1024
    assert view.confidence is Confidence.EVENT_LOG
    assert [(item.source, item.field, item.value) for item in view.evidence] == [
        ("event log", "JobStatus", "HELD"),
        ("event log", "HoldReasonCode", "34/102 JobOutOfResources"),
        ("event log", "HoldReason",
         "Job has gone over memory limit of 10 megabytes. Peak usage: 9"),
        ("event log", "MemoryUsage", "311 MB"),
    ]


def test_memory_of_an_earlier_run_is_forgotten():
    """Memory is that of the last run."""
    summary = summarize_events([SUBMIT, EXECUTE, event(6, MemoryUsage=900), EVICTED, EXECUTE])
    assert summary.memory_used_bytes is None
    assert summary.executions == 2


SIGKILLS = [
    ("not_measured", {}, True, Cause.MEMORY),
    ("nearly_all", {"MemoryUsage": 64, "RequestMemory": 64}, True, Cause.MEMORY),
    ("half", {"MemoryUsage": 32, "RequestMemory": 64}, True, Cause.MEMORY),
    ("far_below", {"MemoryUsage": 31, "RequestMemory": 64}, True, None),
    ("ended_before_it_was_measured", {"MemoryUsage": 0, "RequestMemory": 64}, True, Cause.MEMORY),
    ("no_request_known", {"MemoryUsage": 5}, True, Cause.MEMORY),
    ("switched_off", {"MemoryUsage": 64, "RequestMemory": 64}, False, None),
]


@pytest.mark.parametrize("usage, means_memory, cause", [
    pytest.param(*row[1:], id=row[0]) for row in SIGKILLS
])
def test_signal_9_without_a_hold(usage, means_memory, cause):
    """Signal 9 is memory by inference, unless far less was used than requested."""
    summary = summarize_events([SUBMIT, EXECUTE, killed(9, **usage)])
    view = view_of(summary, sigkill_means_memory=means_memory)
    assert view.end is not None
    assert (view.end.ending, view.end.cause, view.end.signal) == (BADLY, cause, 9)
    assert (view.confidence is Confidence.INFERRED) == (cause is Cause.MEMORY)


def test_trouble_is_told_until_it_is_over():
    """What is no end stands in the evidence of a job that is still there."""
    lost = [SUBMIT, EXECUTE, event(22, DisconnectReason="socket closed")]
    assert _trouble(lost) == ["disconnected: socket closed"]
    assert _trouble([*lost, event(23)]) == []
    assert _trouble([*lost, event(24, Reason="gone"), EVICTED]) == ["reconnect failed: gone"]
    assert _trouble([SUBMIT, EXECUTE, held(1014, 0, "drained"), EVICTED]) == ["vacated: drained"]


def _trouble(events):
    view = view_of(summarize_events(events))
    return [item.value for item in view.evidence if item.field == "trouble"]


def test_removal_is_in_the_evidence():
    """The reason of the removal is kept as HTCondor wrote it."""
    view = view_of(summarize_events([SUBMIT, aborted("via condor_rm (by user a)")]))
    assert [(item.field, item.value) for item in view.evidence] == [
        ("JobStatus", "REMOVED"), ("RemoveReason", "via condor_rm (by user a)"),
    ]


def test_other_signals_tell_no_cause():
    """A segfault is no limit."""
    view = view_of(summarize_events([SUBMIT, EXECUTE, killed(11)]))
    assert view.end is not None and view.end.cause is None and view.end.signal == 11


def test_cluster_that_is_known_before_the_log():
    """Only events of the known cluster count, and of the first process that is mentioned."""
    known = JobSummary(cluster=7)
    assert advance(known, {**SUBMIT, "Cluster": 6}) == known
    summary = advance(known, {**SUBMIT, "Cluster": 7, "Proc": 1})
    assert (summary.cluster, summary.proc, summary.state) == (7, 1, JobState.IDLE)
    assert advance(summary, {**EXECUTE, "Cluster": 7, "Proc": 0}) == summary


def test_unknown_events_are_kept_once_and_not_without_end():
    """Each number once, and the first eight."""
    summary = JobSummary()
    for number in [200, 200, *range(201, 230)]:
        summary = advance(summary, {"EventTypeNumber": number, "Cluster": 7, "Proc": 0})
    assert summary.unknown_events == (200, 201, 202, 203, 204, 205, 206, 207)
