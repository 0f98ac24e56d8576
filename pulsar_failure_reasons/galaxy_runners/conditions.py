"""Names for `condition:` and `delay:` of Galaxy's resubmit rules that no runner has.

They are there for the jobs of all runners: false, 0 or empty where nothing is known. Galaxy's own
names are left as they are.
"""

from __future__ import annotations

import logging
from typing import Any, Dict, Mapping, Optional, Union

from ..reason import Cause, FailureReason, Fault
from .payload import reason_of
from .prose import OUTPUT_NOT_RETURNED

log = logging.getLogger("galaxy.pulsar_failure_reasons.conditions")

Value = Union[bool, int, float, str]

CAUSE_BY_CONDITION: Mapping[str, Cause] = {
    "node_failure": Cause.NODE_FAILURE,
    "preempted": Cause.PREEMPTED,
    "cancelled_externally": Cause.CANCELLED,
    "disk_limit_reached": Cause.DISK,
    "cpu_time_reached": Cause.CPU_TIME,
    "launch_error": Cause.LAUNCH_ERROR,
}

_CONTEXT = "_ExpressionContext"
_MARK = "_pulsar_failure_reasons"


def values_for(reason: Optional[FailureReason]) -> Dict[str, Value]:
    """Return our names with their values for a job that failed for this reason."""
    cause = reason.cause if reason else None
    used = reason.used if reason else {}
    requested = reason.requested if reason else {}
    values: Dict[str, Value] = {
        name: cause is named for name, named in CAUSE_BY_CONDITION.items()
    }
    values["infrastructure_failure"] = bool(reason and reason.fault is Fault.INFRASTRUCTURE)
    values["used_memory_bytes"] = used.get("memory_bytes", 0)
    values["requested_memory_bytes"] = requested.get("memory_bytes", 0)
    values["used_walltime_s"] = used.get("walltime_s", 0)
    values["requested_walltime_s"] = requested.get("walltime_s", 0)
    values["failed_node"] = (reason.node if reason else None) or ""
    return values


def install(handler: Any) -> None:
    """Give the names to Galaxy's resubmit handler, the module ``resubmit``, once.

    Also words for its log line about a job whose output did not come back: it has none, and a
    condition that matches raises a KeyError (Galaxy 25.1 to 26.1).
    """
    stock = getattr(handler, _CONTEXT, None)
    if stock is None:
        log.warning("this Galaxy has no %s.%s: the conditions of pulsar-failure-reasons "
                    "are not known to its rules", handler.__name__, _CONTEXT)
    elif not hasattr(stock, _MARK):
        setattr(handler, _CONTEXT, _with_our_names(stock))
    messages = getattr(handler, "MESSAGES", None)
    if isinstance(messages, dict):
        messages.setdefault(
            handler.JobState.runner_states.JOB_OUTPUT_NOT_RETURNED_FROM_CLUSTER,
            OUTPUT_NOT_RETURNED,
        )


def _with_our_names(stock: Any) -> Any:
    class ExpressionContext(stock):  # type: ignore[misc]
        """Galaxy's context of a rule with our names in it."""

        def safe_eval(self, condition: str) -> Any:
            """See Galaxy's."""
            if self._lazy_context is None:
                super().safe_eval("attempt")  # has stock make its names
                self._add_our_names()
            return super().safe_eval(condition)

        def _add_our_names(self) -> None:
            names: Any = self._lazy_context
            for name, value in values_for(reason_of(self._job_state)).items():
                # One that a later Galaxy has itself is its own.
                names.setdefault(name, value)

    setattr(ExpressionContext, _MARK, True)
    return ExpressionContext
