"""HTCondor's views through the shared judgement: what Pulsar reports."""

from __future__ import annotations

import pytest

from pulsar_failure_reasons.drm.htcondor import HoldPolicy, summarize_events, view_of
from pulsar_failure_reasons.judgement import History, JobFiles, JobId, Policy, judge
from pulsar_failure_reasons.reason import Cause, Confidence

from .support import EVICTED, EXECUTE, RELEASED, SUBMIT, aborted, event, exited, held, killed

JOB = JobId("htcondor", "HTCondor", "7.0")
MEMORY_TEXT = "Error from slot1@n1: Job has gone over memory limit of 10 megabytes."
MEMORY = held(34, 0, MEMORY_TEXT)
WAITS = HoldPolicy(wait_for_release=frozenset({Cause.MEMORY}))


def _judge(events, return_code=None, policy=Policy(), hold_policy=HoldPolicy()):
    view = view_of(summarize_events([SUBMIT, EXECUTE, *events]), policy=hold_policy)
    history = History().after(view, 0.0)
    return judge(JOB, history, lambda: JobFiles(return_code), policy)


# (id, events after EXECUTE, return_code, status, cause)
ROWS = [
    ("ended_well", [exited(0)], 0, "complete", None),
    ("ended_well_tool_failed", [exited(0)], 3, "complete", None),
    ("guard_exited", [exited(1)], None, "failed", Cause.LAUNCH_ERROR),
    ("memory_hold", [MEMORY], None, "failed", Cause.MEMORY),
    ("memory_hold_with_exit_0", [MEMORY], 0, "failed", Cause.MEMORY),
    ("output_transfer_failed_after_the_tool", [held(12, 2)], 0, "failed", Cause.STAGE_ERROR),
    ("persons_hold", [held(1, 0, "x (by user a)")], None, "queued", None),
    ("evicted", [EVICTED], None, "queued", None),
    ("removed_by_another", [aborted("via condor_rm (by user a)")], 0, "failed", Cause.CANCELLED),
    ("usegalaxy_eu", [MEMORY, RELEASED, EXECUTE, MEMORY, aborted("x (by user condor)")], None,
     "failed", Cause.MEMORY),
    ("sigkill", [killed(9)], None, "failed", Cause.MEMORY),
    ("sigkill_after_the_tool", [killed(9)], 0, "complete", None),
    ("segfault", [killed(11)], None, "failed", Cause.UNKNOWN),
    ("disconnected", [event(22)], None, "running", None),
]


@pytest.mark.parametrize("events, return_code, status, cause", [
    pytest.param(*row[1:], id=row[0]) for row in ROWS
])
def test_rows(events, return_code, status, cause):
    """The rows of the judgement table, as HTCondor shows them."""
    judged = _judge(events, return_code)
    assert judged.status == status
    assert (judged.reason.cause if judged.reason else None) is cause


def test_limit_with_zero_exit_may_be_complete():
    """The operator's choice holds for holds too."""
    assert _judge([MEMORY], 0, Policy(limit_with_zero_exit="complete")).status == "complete"


def test_awaited_release_is_queued_then_failed():
    """A hold that the site should release is failed after the grace, and taken out."""
    view = view_of(summarize_events([SUBMIT, EXECUTE, MEMORY]), policy=WAITS)
    history = History().after(view, 0.0)
    policy = Policy(stuck_answers=2)
    assert judge(JOB, history, JobFiles, policy).status == "queued"
    judged = judge(JOB, history.after(view, 1.0), JobFiles, policy)
    assert (judged.status, judged.remove) == ("failed", True)
    assert judged.reason is not None and judged.reason.cause is Cause.MEMORY


def test_sigkill_is_inferred():
    """Nobody said memory."""
    reason = _judge([killed(9)]).reason
    assert reason is not None and reason.confidence is Confidence.INFERRED


def test_message_has_htcondors_words():
    """What limit, in HTCondor's words, and where."""
    reason = _judge([event(28, RequestMemory=10), event(6, MemoryUsage=9), MEMORY]).reason
    assert reason is not None
    assert reason.message == (
        "killed for memory: the job's memory limit is 10 MB (it used 9 MB): Job has gone over "
        "memory limit of 10 megabytes. (HTCondor job 7.0, slot1_1@node1)"
    )
