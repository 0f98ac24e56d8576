"""The sentence of a failure reason: what limit, used against requested, where."""

from __future__ import annotations

from typing import Optional

from .drm.base import JobView
from .drm.units import format_duration, format_memory
from .reason import Cause

#: What is said of a cause that has no numbers of its own, after "the job ".
_PLAIN = {
    Cause.CPU_TIME: "was killed: it used more CPU time than its limit",
    Cause.DISK: "failed for disk space or output",
    Cause.PREEMPTED: "was preempted: it made way for another job",
    Cause.NODE_FAILURE: "failed because its node failed",
    Cause.LOST: "was lost",
    Cause.HELD: "was stuck in the queue and has been removed",
    Cause.LAUNCH_ERROR: "never came to the tool",
    Cause.STAGE_ERROR: "failed in {drm}'s own file transfer",
    Cause.TOOL_ERROR: "ended with the tool's own exit code",
    Cause.UNKNOWN: "was killed, and {drm} does not say by what",
}


def write_message(
    drm: str,
    cause: Cause,
    detail: str,
    view: Optional[JobView],
    *,
    external_id: Optional[str],
    used_memory_bytes: Optional[int] = None,
    memory_limit_bytes: Optional[int] = None,
    cancelled_by: Optional[str] = None,
) -> str:
    """Return one sentence that a scientist can act on.

    ``drm`` is the name for people. ``detail`` is a phrase that says more than the cause; empty
    where there is none. ``view`` is the last sight of the job, None where there was none.
    """
    if cause is Cause.WALLTIME:
        said = _walltime(view, detail)
    elif cause is Cause.MEMORY:
        said = _memory(used_memory_bytes, memory_limit_bytes)
    elif cause is Cause.CANCELLED:
        said = "cancelled outside Galaxy" + _by(cancelled_by)
    else:
        said = "the job " + _PLAIN[cause].format(drm=drm)
    if detail and cause is not Cause.WALLTIME:
        said = f"{said}: {detail}"
    return f"{said} ({_where(drm, external_id, view)})"


def _by(person: Optional[str]) -> str:
    if not person:
        return ""
    return f" by uid {person}" if person.isdigit() else f" by {person}"


def _walltime(view: Optional[JobView], detail: str) -> str:
    elapsed_s = view.elapsed_s if view else None
    walltime_s = view.walltime_s if view else None
    after = f" after {format_duration(elapsed_s)}" if elapsed_s else ""
    if detail:
        return f"killed{after}: {detail}"
    limit = f" is {format_duration(walltime_s)}" if walltime_s is not None else " was reached"
    return f"killed{after}: the job's walltime limit{limit}"


def _memory(used_bytes: Optional[int], limit_bytes: Optional[int]) -> str:
    limit = f" is {format_memory(limit_bytes)}" if limit_bytes is not None else " was exceeded"
    used = f" (it used {format_memory(used_bytes)})" if used_bytes is not None else ""
    return f"killed for memory: the job's memory limit{limit}{used}"


def _where(drm: str, external_id: Optional[str], view: Optional[JobView]) -> str:
    job = f"{drm} job {external_id}" if external_id else f"{drm}, no job id known"
    return f"{job}, {view.node}" if view is not None and view.node else job
