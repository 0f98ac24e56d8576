"""Jobs that failed for their node, or made way for another, go back without any rule.

Runner parameter ``infrastructure_retries``: how often, for one job at one destination; 0 is never.
"""

from __future__ import annotations

import logging
from typing import Any, Dict, Mapping

from ..reason import Cause
from . import prose
from .payload import reason_of

log = logging.getLogger("galaxy.pulsar_failure_reasons.retries")

RUNNER_PARAM = "infrastructure_retries"
#: The key of ``destination_params`` under which they are counted, by the destination's id: Galaxy
#: 26.1 takes these params along when a rule sends the job elsewhere.
PARAM_RETRIES = "__failure_reasons_infrastructure_retries"

WHY_BY_CAUSE: Mapping[Cause, str] = {
    Cause.NODE_FAILURE: "its node failed",
    Cause.PREEMPTED: "it had made way for another job",
}


def parse_retries(value: object) -> int:
    """Return the runner parameter as a number.

    Raises:
        ValueError: it is none, or negative.
    """
    try:
        number = int(str(value))
    except ValueError:
        number = -1
    if number < 0:
        raise ValueError(f"runner parameter {RUNNER_PARAM}: expected 0, 1, 2 ..., got {value!r}")
    return number


def send_again(runner: Any, job_state: Any, at_most: int) -> bool:
    """Send a job back to its destination if its failure calls for it; tell whether it was."""
    reason = reason_of(job_state)
    why = WHY_BY_CAUSE.get(reason.cause) if reason is not None else None
    if why is None or at_most <= 0:
        return False
    wrapper, destination = job_state.job_wrapper, job_state.job_destination
    job = wrapper.get_job()
    params: Dict[str, Any] = dict(job.destination_params or {})
    counts = _counts(params.get(PARAM_RETRIES))
    done = counts.get(str(destination.id), 0)
    if done >= at_most:
        return False
    destination.params = {**params, PARAM_RETRIES: {**counts, str(destination.id): done + 1}}
    log.info(
        "(%s) %s at '%s': sent there again, %d of at most %d times",
        job.id, why, destination.id, done + 1, at_most,
    )
    wrapper.clear_working_directory()
    wrapper.set_job_destination(destination)
    job_state.runner_state_handled = True
    runner.mark_as_resubmitted(
        job_state, info=prose.SENT_AGAIN % (why, done + 1, at_most)
    )
    return True


def _counts(value: object) -> Dict[str, int]:
    return dict(value) if isinstance(value, dict) else {}
