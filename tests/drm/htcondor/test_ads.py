"""Job ads: in the queue beside a log, and in history alone."""

from __future__ import annotations

from enum import IntEnum

import pytest

from pulsar_failure_reasons.drm.base import Ending, Phase
from pulsar_failure_reasons.drm.htcondor import (
    HoldPolicy,
    JobSummary,
    summarize_events,
    view_of,
    view_of_history_ad,
    with_ad,
)
from pulsar_failure_reasons.drm.htcondor.log_text import read_records
from pulsar_failure_reasons.reason import Cause, Confidence

from .support import EVICTED, EXECUTE, SUBMIT, aborted, captured_ad, event, exited, held


class Value(IntEnum):
    """As classad2.Value: a value that is none, and a number to isinstance()."""

    Undefined = 2
    Error = 1


class ExprTree:
    """As classad2.ExprTree: an expression that was not evaluated."""

    def __str__(self):
        return "((ResidentSetSize + 1023) / 1024)"


def _ad(case, which="history"):
    return read_records(captured_ad(case, which))[1][0]


# (case, ending, cause, exit code, signal)
HISTORY = [
    ("history_only_exit", Ending.BADLY, None, 6, None),
    ("history_only_signal", Ending.BADLY, None, None, 9),
    ("history_only_removed", Ending.CANCELLED, Cause.CANCELLED, None, None),
    ("history_only_removed_by_policy", Ending.CANCELLED, Cause.CANCELLED, None, None),
    ("log_dir_removed_before_start", Ending.WELL, None, 0, None),
    ("log_is_a_directory", Ending.WELL, None, 0, None),
    ("success", Ending.WELL, None, 0, None),
    ("held_released_completes", Ending.WELL, None, 0, None),
    ("signal11_self", Ending.BADLY, None, None, 11),
    ("hold_startd_policy_memory", Ending.CANCELLED, Cause.MEMORY, None, None),
    ("hold_job_policy_walltime", Ending.CANCELLED, Cause.WALLTIME, None, None),
    ("hold_by_condor_hold_cli", Ending.CANCELLED, Cause.CANCELLED, None, None),
    ("transfer_output_unwritable", Ending.CANCELLED, Cause.STAGE_ERROR, None, None),
    ("spool_submit", Ending.WELL, None, 0, None),
]


@pytest.mark.parametrize("case, ending, cause, exit_code, signal", HISTORY)
def test_history_alone(case, ending, cause, exit_code, signal):
    """A job without a log is judged by its history: JobStatus first, ExitSignal after."""
    view = view_of_history_ad(_ad(case))
    assert view.phase is Phase.ENDED and view.end is not None
    assert (view.end.ending, view.end.cause) == (ending, cause)
    assert (view.end.exit_code, view.end.signal) == (exit_code, signal)
    assert view.confidence is Confidence.ACCOUNTING


def test_memory_beside_a_log_is_the_most_of_both():
    """An ad is newer than the log, which may tell only of the job's beginning.

    Of the ad it is what was measured: the others are rounded up, as the log's is not.
    """
    summary = summarize_events([SUBMIT, EXECUTE, event(6, MemoryUsage=5, ResidentSetSize=4616)])
    ad = {"ClusterId": 7, "JobStatus": 5, "HoldReasonCode": 21, "HoldReasonSubCode": 102,
          "MemoryUsage": 171, "ResidentSetSize": 175000, "ResidentSetSize_RAW": 162904}
    assert view_of(summary, ad).used_memory_bytes == 162904 * 1024
    again = summarize_events(
        [SUBMIT, EXECUTE, EVICTED, EXECUTE, event(6, MemoryUsage=5, ResidentSetSize=4616)])
    assert view_of(again, ad).used_memory_bytes == 5 * 1024**2, "an ad's is of all runs"
    ad["ResidentSetSize_RAW"] = 2048
    assert view_of(summary, ad).used_memory_bytes == 5 * 1024**2


def test_history_names_who_removed_it():
    """RemoveReason tells by whom."""
    view = view_of_history_ad(_ad("history_only_removed"))
    assert view.end is not None and view.end.cancelled_by == "daemon"


def test_history_shows_numbers():
    """Node, request, memory and time of the last run are those of the ad."""
    view = view_of_history_ad(_ad("hold_startd_policy_memory"))
    assert (view.external_id, view.node) == ("1.0", "slot1_1@localhost")
    assert view.memory_bytes == 64 * 1024 * 1024
    assert view.used_memory_bytes == 523224 * 1024
    assert (view.elapsed_s, view.submitted_at, view.restarts) == (5, "1795951090", 0)


def test_usegalaxy_eu_in_history():
    """Hold 34, more memory, hold 34 again, condor_rm: the cause is memory."""
    view = view_of_history_ad({
        "ClusterId": 5, "ProcId": 0, "JobStatus": 3, "LastJobStatus": 5, "ExitSignal": 15,
        "ExitBySignal": True, "LastHoldReasonCode": 34, "LastHoldReasonSubCode": 0,
        "LastHoldReason": "Error from slot1@n: Job has gone over memory limit of 10 megabytes",
        "RemoveReason": "via condor_rm (by user condor)",
    })
    assert view.end is not None and view.end.cause is Cause.MEMORY


def test_history_of_a_job_that_was_running_again_when_removed():
    """A hold that had been released explains nothing."""
    view = view_of_history_ad({
        "JobStatus": 3, "LastJobStatus": 2, "LastHoldReasonCode": 34,
        "RemoveReason": "via condor_rm (by user alice)",
    })
    assert view.end is not None and view.end.cause is Cause.CANCELLED


def test_submitted_on_hold_is_seen_in_the_queue_only():
    """No JOB_HELD is written; a person holds it, so it waits."""
    view = view_of(summarize_events([SUBMIT]), _ad("submitted_on_hold", "q"))
    assert (view.phase, view.job_state) == (Phase.QUEUED, "HELD")
    assert view.confidence is Confidence.CONTROLLER


def test_spooling_is_no_failure():
    """Code 16 is how every spooled submission begins."""
    view = view_of(JobSummary(), _ad("spool_submit", "q.BEFORE_SPOOL.1"))
    assert view.phase is Phase.QUEUED


def test_log_lost_the_queue_tells():
    """With a deleted log, the ad in the queue tells of the hold."""
    view = view_of(summarize_events([SUBMIT, EXECUTE]), _ad("hold_startd_policy_memory",
                                                            "q.JOB_HELD.1"))
    assert view.end is not None and view.end.cause is Cause.MEMORY


def test_leave_in_queue_is_an_end():
    """A completed job that stays in the queue has ended."""
    view = view_of(JobSummary(), _ad("leave_in_queue", "q"))
    assert view.end is not None and view.end.exit_code == 6


def test_removal_under_way_is_no_end_yet():
    """JobStatus 3 in the queue: the end comes with JOB_ABORTED."""
    ad = {"JobStatus": 3, "LastJobStatus": 2, "RemoveReason": "via condor_rm (by user a)"}
    assert view_of(summarize_events([SUBMIT, EXECUTE]), ad).phase is Phase.ENDING


@pytest.mark.parametrize("events, cause", [
    ([SUBMIT, EXECUTE, exited(0)], None),
    ([SUBMIT, EXECUTE, aborted(None)], Cause.CANCELLED),
])
def test_an_end_in_the_log_stands(events, cause):
    """The ad may still say running for a moment."""
    view = view_of(summarize_events(events), {"JobStatus": 2})
    assert view.end is not None and view.end.cause is cause


def test_released_in_the_queue_before_the_log_says_so():
    """The ad is the newer of the two."""
    view = view_of(summarize_events([SUBMIT, EXECUTE, held(34, 102)]), {"JobStatus": 1})
    assert view.phase is Phase.QUEUED


def test_own_periodic_release_makes_a_limit_wait():
    """A job that will release itself is given its grace."""
    held_ad = _ad("hold_startd_policy_memory", "q.JOB_HELD.1")
    released_ad = {**held_ad, "PeriodicRelease": "NumJobStarts < 3"}
    assert view_of(JobSummary(), held_ad).phase is Phase.ENDED
    assert view_of(JobSummary(), released_ad).phase is Phase.STUCK


def test_walltime_limit_is_that_of_the_run():
    """AllowedExecuteDuration comes before AllowedJobDuration."""
    ad = {"JobStatus": 2, "AllowedExecuteDuration": 60, "AllowedJobDuration": 90,
          "JobCurrentStartDate": 100, "ServerTime": 130}
    view = view_of(JobSummary(), ad)
    assert (view.walltime_s, view.elapsed_s) == (60, 30)


def test_undefined_is_no_number():
    """classad2's Undefined equals 2, which would be a hold reason code."""
    ad = {"JobStatus": 5, "HoldReasonCode": Value.Undefined, "HoldReasonSubCode": Value.Error,
          "HoldReason": Value.Undefined, "MemoryUsage": ExprTree(), "RequestMemory": ExprTree(),
          "ResidentSetSize": 2048, "PeriodicRelease": Value.Undefined}
    view = view_of(JobSummary(), ad, policy=HoldPolicy())
    assert (view.phase, view.stuck_for) == (Phase.STUCK, Cause.UNKNOWN)
    assert (view.memory_bytes, view.used_memory_bytes) == (None, 2048 * 1024)


def test_unevaluated_periodic_release_counts():
    """An expression that was not evaluated is still a release."""
    ad = {"JobStatus": 5, "HoldReasonCode": 34, "HoldReasonSubCode": 102,
          "PeriodicRelease": ExprTree()}
    assert view_of(JobSummary(), ad).phase is Phase.STUCK


def test_undefined_periodic_release_is_none():
    """After spool() attributes stay with the value Undefined."""
    ad = {"JobStatus": 5, "HoldReasonCode": 34, "HoldReasonSubCode": 102,
          "PeriodicRelease": Value.Undefined}
    assert view_of(JobSummary(), ad).phase is Phase.ENDED


@pytest.mark.parametrize("status, phase", [
    (1, Phase.QUEUED), (2, Phase.RUNNING), (6, Phase.RUNNING), (7, Phase.RUNNING),
])
def test_living_states(status, phase):
    """JobStatus by its number."""
    assert view_of(JobSummary(), {"JobStatus": status}).phase is phase


def test_earlier_hold_is_known_from_the_ad():
    """Without a log, LastHoldReason tells of the hold that was released."""
    summary = with_ad(JobSummary(), _ad("held_released_completes"), from_history=True)
    assert summary.hold is None
    assert summary.last_hold is not None and summary.last_hold.held_by == "daemon"


def test_disk_is_read():
    """Disk is in KB."""
    summary = with_ad(JobSummary(), _ad("spool_submit"), from_history=True)
    assert (summary.disk_request_bytes, summary.disk_used_bytes) == (1024 * 1024, 15 * 1024)


@pytest.mark.parametrize("status", [None, 0, 9, "x", Value.Undefined])
def test_unknown_job_status_changes_nothing(status):
    """A JobStatus that we do not know leaves what the log says."""
    view = view_of(summarize_events([SUBMIT, EXECUTE]), {"JobStatus": status})
    assert view.phase is Phase.RUNNING


def test_held_in_the_queue_with_a_vacate_code():
    """A job that the queue shows held is held, and gets its grace, whatever the code."""
    view = view_of(JobSummary(), {"ClusterId": 7, "JobStatus": 5, "HoldReasonCode": 1004})
    assert (view.phase, view.stuck_for) == (Phase.STUCK, Cause.HELD)


@pytest.mark.parametrize("missing", ["JobCurrentStartDate", "ServerTime"])
def test_elapsed_needs_both_times(missing):
    """Without its start or the schedd's clock nobody knows how long a job runs."""
    ad = {"ClusterId": 7, "JobStatus": 2, "JobCurrentStartDate": 100, "ServerTime": 160}
    assert view_of(JobSummary(), ad).elapsed_s == 60
    ad.pop(missing)
    assert view_of(JobSummary(), ad).elapsed_s is None


@pytest.mark.parametrize("status, elapsed_s", [(2, 60), (6, 60), (1, 30), (7, 30)])
def test_elapsed_by_state(status, elapsed_s):
    """A running job runs since its start; for all others its last run counts, as logged."""
    ad = {"ClusterId": 7, "JobStatus": status, "JobCurrentStartDate": 100, "ServerTime": 160,
          "LastRemoteWallClockTime": 20.0}
    assert view_of(JobSummary(run_s=30), ad).elapsed_s == elapsed_s


def test_submission_is_told_by_second_and_directory():
    """Two jobs of one second and one cluster id (a schedd set up anew) are two submissions."""
    ad = {"ClusterId": 7, "JobStatus": 2, "QDate": 100}
    assert view_of(JobSummary(), ad).submitted_at == "100"
    ours = view_of(JobSummary(), {**ad, "PulsarJobDirectory": "/staging/1"})
    assert (ours.submitted_at, ours.job_name) == ("100 /staging/1", "/staging/1")
    assert view_of(JobSummary(), {"ClusterId": 7, "JobStatus": 2}).submitted_at is None
