"""Whether a held job is waited for or failed: what an operator chooses, as a pure function."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import FrozenSet, Optional

from ...reason import Cause
from .classify import HoldKind
from .events import JobState, JobSummary


class HoldDecision(Enum):
    """What to do with a held job."""

    #: Give it (more) time.
    WAIT = "wait"
    #: Take it out of the queue and report it failed.
    FAIL = "fail"
    #: Nothing to decide, now or later: it is not held, or held by somebody who will go on.
    NEVER = "never"


@dataclass(frozen=True)
class HoldPolicy:
    """How holds are treated.

    Graces are counted in successive answers that showed the job held, as all graces are.

    Attributes:
        fail_at_once: Causes that fail a held job without any grace.
        wait_for_release: Causes that get the grace in spite of that, at sites that release
            such jobs by themselves (with more memory, say).
        hold_grace_answers: How long everything else may be held.
        hold_releases_max: A job that was released so often and is held again is failed.
        user_hold_grace_answers: How long a person may hold a job; None for ever.
    """

    fail_at_once: FrozenSet[Cause] = frozenset(
        {
            Cause.WALLTIME, Cause.MEMORY, Cause.CPU_TIME, Cause.DISK, Cause.LAUNCH_ERROR,
            Cause.STAGE_ERROR,
        }
    )
    wait_for_release: FrozenSet[Cause] = frozenset()
    hold_grace_answers: int = 240
    hold_releases_max: int = 3
    user_hold_grace_answers: Optional[int] = None


DEFAULT_HOLD_POLICY = HoldPolicy()


def hold_decision(
    summary: JobSummary, policy: HoldPolicy = DEFAULT_HOLD_POLICY, held_answers: int = 1
) -> HoldDecision:
    """Return what to do with a job.

    Args:
        summary: What log and queue say of it.
        policy: The operator's choice.
        held_answers: How many answers in succession showed it held, this one included.
    """
    hold = summary.hold
    if summary.state is not JobState.HELD or hold is None:
        return HoldDecision.NEVER
    if hold.kind is HoldKind.PERSON:
        return _after(policy.user_hold_grace_answers, held_answers)
    if hold.kind is not HoldKind.FAILURE:
        return HoldDecision.NEVER
    if summary.releases >= policy.hold_releases_max:
        return HoldDecision.FAIL
    will_be_released = summary.releases_itself or hold.cause in policy.wait_for_release
    if hold.cause in policy.fail_at_once and not will_be_released:
        return HoldDecision.FAIL
    return _after(policy.hold_grace_answers, held_answers)


def _after(grace_answers: Optional[int], held_answers: int) -> HoldDecision:
    if grace_answers is None:
        return HoldDecision.NEVER
    return HoldDecision.FAIL if held_answers >= grace_answers else HoldDecision.WAIT
