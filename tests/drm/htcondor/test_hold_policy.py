"""Whether a held job is waited for or failed."""

from __future__ import annotations

import pytest

from pulsar_failure_reasons.drm.base import Ending, Phase
from pulsar_failure_reasons.drm.htcondor import (
    HoldDecision,
    HoldPolicy,
    hold_decision,
    summarize_events,
    view_of,
)
from pulsar_failure_reasons.reason import Cause

from .support import EXECUTE, RELEASED, SUBMIT, aborted, held

WAIT, FAIL, NEVER = HoldDecision.WAIT, HoldDecision.FAIL, HoldDecision.NEVER
MEMORY = held(34, 102)
PERSON = held(1, 0, "via condor_hold (by user alice)")
OTHER = held(26, 0, "too many starts")
WAITS_FOR_MEMORY = HoldPolicy(wait_for_release=frozenset({Cause.MEMORY}))
AGAIN = [MEMORY, RELEASED, EXECUTE]

# (id, events after EXECUTE, policy, held answers, decision)
DECISIONS = [
    ("running", [], HoldPolicy(), 1, NEVER),
    ("walltime", [held(47)], HoldPolicy(), 1, FAIL),
    ("memory", [MEMORY], HoldPolicy(), 1, FAIL),
    ("disk", [held(34, 104)], HoldPolicy(), 1, FAIL),
    ("launch_error", [held(6, 2)], HoldPolicy(), 1, FAIL),
    ("stage_error", [held(12, 2)], HoldPolicy(), 1, FAIL),
    ("no_limit_gets_its_grace", [OTHER], HoldPolicy(), 239, WAIT),
    ("no_limit_after_its_grace", [OTHER], HoldPolicy(), 240, FAIL),
    ("unknown_code_gets_its_grace", [held(77)], HoldPolicy(), 1, WAIT),
    ("site_releases_memory", [MEMORY], WAITS_FOR_MEMORY, 1, WAIT),
    ("site_did_not_release_memory", [MEMORY], WAITS_FOR_MEMORY, 240, FAIL),
    ("site_releases_memory_only", [held(47)], WAITS_FOR_MEMORY, 1, FAIL),
    ("held_again_after_two_releases", [*AGAIN, *AGAIN, MEMORY], WAITS_FOR_MEMORY, 1, WAIT),
    ("held_again_after_three_releases", [*AGAIN, *AGAIN, *AGAIN, MEMORY], WAITS_FOR_MEMORY, 1,
     FAIL),
    ("persons_releases_do_not_count", [*[PERSON, RELEASED, EXECUTE] * 4, OTHER], HoldPolicy(), 1,
     WAIT),
    ("person_for_ever", [PERSON], HoldPolicy(), 10**9, NEVER),
    ("person_after_many_releases", [*AGAIN * 5, PERSON], HoldPolicy(), 1, NEVER),
    ("person_with_a_grace", [PERSON], HoldPolicy(user_hold_grace_answers=5), 4, WAIT),
    ("person_after_the_grace", [PERSON], HoldPolicy(user_hold_grace_answers=5), 5, FAIL),
    ("spooling", [held(16)], HoldPolicy(user_hold_grace_answers=1, hold_grace_answers=1), 9, NEVER),
    ("nothing_fails_at_once", [MEMORY], HoldPolicy(fail_at_once=frozenset()), 1, WAIT),
    ("removed", [MEMORY, aborted("x")], HoldPolicy(), 1, NEVER),
]


@pytest.mark.parametrize("events, policy, held_answers, decision", [
    pytest.param(*row[1:], id=row[0]) for row in DECISIONS
])
def test_hold_decision(events, policy, held_answers, decision):
    """Cause, releases and grace decide."""
    summary = summarize_events([SUBMIT, EXECUTE, *events])
    assert hold_decision(summary, policy, held_answers) is decision


def test_waiting_for_a_policys_hold_is_stuck():
    """The judgement counts its answers, and knows what the job would be failed for."""
    view = view_of(summarize_events([SUBMIT, EXECUTE, MEMORY]), policy=WAITS_FOR_MEMORY)
    assert (view.phase, view.stuck_for, view.end) == (Phase.STUCK, Cause.MEMORY, None)


def test_waiting_for_a_person_is_queued():
    """A person's hold uses up no grace."""
    policy = HoldPolicy(user_hold_grace_answers=5)
    assert view_of(summarize_events([SUBMIT, EXECUTE, PERSON]), policy=policy).phase is Phase.QUEUED


def test_person_after_the_grace_is_held():
    """A person's hold that lasts too long ends as held, and names them."""
    policy = HoldPolicy(user_hold_grace_answers=5)
    view = view_of(summarize_events([SUBMIT, EXECUTE, PERSON]), policy=policy, held_answers=5)
    assert view.end is not None and view.job_state == "HELD"
    assert (view.end.ending, view.end.cause) == (Ending.INFRASTRUCTURE, Cause.HELD)
    assert "alice" in view.end.detail
