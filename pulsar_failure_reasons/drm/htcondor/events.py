"""What a job's event log says now: events folded one by one into a :class:`JobSummary`.

No end: JOB_EVICTED, SHADOW_EXCEPTION, JOB_DISCONNECTED, REMOTE_ERROR, a hold that is released.
The first end counts: with ``leave_in_queue`` JOB_ABORTED follows JOB_TERMINATED much later.
The events: https://htcondor.readthedocs.io/en/latest/codes-other-values/job-event-log-codes.html
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from typing import Callable, Dict, Iterable, Optional, Tuple

from ...reason import Confidence
from .classify import HoldFinding, HoldKind, classify_hold
from .codes import JobEvent
from .values import Attributes, Reader

MEGABYTE = 1024 * 1024
KILOBYTE = 1024

_MAX_UNKNOWN_EVENTS = 8


class JobState(Enum):
    """Where in its life a job is, in HTCondor's words."""

    UNKNOWN = "UNKNOWN"
    IDLE = "IDLE"
    RUNNING = "RUNNING"
    SUSPENDED = "SUSPENDED"
    HELD = "HELD"
    COMPLETED = "COMPLETED"
    REMOVED = "REMOVED"
    #: JobStatus 3 in the queue: a removal is under way (the execute side does not answer).
    REMOVING = "REMOVING"


ENDED_STATES = frozenset({JobState.COMPLETED, JobState.REMOVED})


@dataclass(frozen=True)
class JobSummary:
    """What is known of a job. None always means: nobody said.

    Attributes:
        state: Where the job is now.
        told_by: Where the state was read.
        hold: The hold that the job is in, or was in when it was removed.
        last_hold: The newest hold there was, released or not.
        releases: How often it was released from a hold that was no person's.
        releases_itself: Its ad has a PeriodicRelease.
        executions: How often it was started.
        remove_reason: Why it was removed.
        return_value: Exit code of the job script, signal: what killed it.
        node: Slot of the last start.
        started_at: Time of the last start, local and without a zone.
        run_s: How long the last run took, in seconds; None while it runs.
        requeued_by: The event that sent it back to the queue, until it is started again.
        trouble: The newest event that is trouble but no end, for people; "" for none.
        unknown_events: Numbers of events that we do not know, the first few.
    """

    cluster: Optional[int] = None
    proc: Optional[int] = None
    state: JobState = JobState.UNKNOWN
    told_by: Confidence = Confidence.EVENT_LOG
    hold: Optional[HoldFinding] = None
    last_hold: Optional[HoldFinding] = None
    releases: int = 0
    releases_itself: bool = False
    executions: int = 0
    remove_reason: Optional[str] = None
    return_value: Optional[int] = None
    signal: Optional[int] = None
    node: Optional[str] = None
    started_at: Optional[datetime] = None
    run_s: Optional[int] = None
    job_name: Optional[str] = None
    submitted_at: Optional[str] = None
    walltime_limit_s: Optional[int] = None
    memory_request_bytes: Optional[int] = None
    memory_used_bytes: Optional[int] = None
    disk_request_bytes: Optional[int] = None
    disk_used_bytes: Optional[int] = None
    requeued_by: Optional[JobEvent] = None
    trouble: str = ""
    unknown_events: Tuple[int, ...] = ()

    @property
    def ended(self) -> bool:
        """Tell whether HTCondor is done with the job."""
        return self.state in ENDED_STATES

    @property
    def external_id(self) -> str:
        """Cluster and process as HTCondor writes them; "" where no event named them."""
        if self.cluster is None or self.cluster < 0:
            # Events of no job carry (-01.-01.-01).
            return ""
        return f"{self.cluster}.{self.proc or 0}"


def summarize_events(events: Iterable[Attributes]) -> JobSummary:
    """Return what these events of one job say together; others' events are passed over."""
    summary = JobSummary()
    for event in events:
        summary = advance(summary, event)
    return summary


def advance(summary: JobSummary, event: Attributes) -> JobSummary:
    """Return the summary after one more event.

    Events of another job, events without a number and what follows an end change nothing.
    """
    attributes = Reader(event)
    number = attributes.whole("EventTypeNumber")
    if number is None or _is_another_jobs(summary, attributes):
        return summary
    if summary.cluster is None or summary.proc is None:
        # Of a cluster of several processes the first one that is mentioned is followed.
        summary = replace(
            summary,
            cluster=summary.cluster if summary.cluster is not None else attributes.whole("Cluster"),
            proc=attributes.whole("Proc"),
        )
    try:
        known = JobEvent(number)
    except ValueError:
        return _with_unknown_event(summary, number)
    fold = _FOLDS.get(known)
    return summary if fold is None or summary.ended else fold(summary, attributes)


def _is_another_jobs(summary: JobSummary, event: Reader) -> bool:
    for known, given in (
        (summary.cluster, event.whole("Cluster")),
        (summary.proc, event.whole("Proc")),
    ):
        if known is not None and given is not None and known != given:
            return True
    return False


def _with_unknown_event(summary: JobSummary, number: int) -> JobSummary:
    if number in summary.unknown_events or len(summary.unknown_events) >= _MAX_UNKNOWN_EVENTS:
        return summary
    return replace(summary, unknown_events=summary.unknown_events + (number,))


# --- one function per event that means something ------------------------------------------


def _submit(summary: JobSummary, event: Reader) -> JobSummary:
    return replace(summary, state=JobState.IDLE, told_by=Confidence.EVENT_LOG)


def _execute(summary: JobSummary, event: Reader) -> JobSummary:
    # It can come twice with nothing between (a shadow was killed), and after a hold whose
    # release was not logged.
    return replace(
        summary,
        state=JobState.RUNNING,
        told_by=Confidence.EVENT_LOG,
        hold=None,
        executions=summary.executions + 1,
        node=event.text("SlotName") or event.text("ExecuteHost"),
        started_at=_time_of(event),
        run_s=None,
        memory_used_bytes=None,
        disk_used_bytes=None,
        requeued_by=None,
        trouble="",
    )


def _image_size(summary: JobSummary, event: Reader) -> JobSummary:
    return _with_usage(_running_at_least(summary), event)


def _job_ad_information(summary: JobSummary, event: Reader) -> JobSummary:
    return replace(_with_usage(summary, event), node=event.text("RemoteHost") or summary.node)


def _evicted(summary: JobSummary, event: Reader) -> JobSummary:
    reason = event.text("Reason")
    said = "evicted" + (f": {reason}" if reason else "")
    return _back_in_queue(summary, event, JobEvent.JOB_EVICTED, said)


def _shadow_exception(summary: JobSummary, event: Reader) -> JobSummary:
    said = f"shadow exception: {event.text('Message') or ''}"
    return _back_in_queue(summary, event, JobEvent.SHADOW_EXCEPTION, said)


def _reconnect_failed(summary: JobSummary, event: Reader) -> JobSummary:
    said = f"reconnect failed: {event.text('Reason') or ''}"
    return _back_in_queue(summary, event, JobEvent.JOB_RECONNECT_FAILED, said)


def _disconnected(summary: JobSummary, event: Reader) -> JobSummary:
    # It keeps running for JobLeaseDuration (40 minutes) while the shadow tries to reconnect.
    said = f"disconnected: {event.text('DisconnectReason') or ''}"
    return replace(_running_at_least(summary), trouble=said)


def _reconnected(summary: JobSummary, event: Reader) -> JobSummary:
    return replace(_running_at_least(summary), trouble="")


def _remote_error(summary: JobSummary, event: Reader) -> JobSummary:
    # Its code may differ from the one of the JOB_HELD that follows; only that one counts.
    return replace(summary, trouble=f"error from starter: {event.text('ErrorMsg') or ''}")


def _executable_error(summary: JobSummary, event: Reader) -> JobSummary:
    # Only logs of old versions have it; a hold or an end follows.
    return replace(summary, trouble="executable error")


def _suspended(summary: JobSummary, event: Reader) -> JobSummary:
    return replace(summary, state=JobState.SUSPENDED, told_by=Confidence.EVENT_LOG)


def _unsuspended(summary: JobSummary, event: Reader) -> JobSummary:
    return replace(summary, state=JobState.RUNNING, told_by=Confidence.EVENT_LOG)


def _held(summary: JobSummary, event: Reader) -> JobSummary:
    hold = classify_hold(
        event.whole("HoldReasonCode"), event.whole("HoldReasonSubCode"), event.text("HoldReason")
    )
    if hold.kind is HoldKind.VACATE:
        return _back_in_queue(summary, event, JobEvent.JOB_EVICTED, f"vacated: {hold.reason}")
    return replace(
        _after_run(summary, event),
        state=JobState.HELD,
        told_by=Confidence.EVENT_LOG,
        hold=hold,
        last_hold=hold,
    )


def _released(summary: JobSummary, event: Reader) -> JobSummary:
    from_failure = summary.hold is not None and summary.hold.kind is HoldKind.FAILURE
    return replace(
        summary,
        state=JobState.IDLE,
        told_by=Confidence.EVENT_LOG,
        hold=None,
        releases=summary.releases + (1 if from_failure else 0),
    )


def _terminated(summary: JobSummary, event: Reader) -> JobSummary:
    normally = event.flag("TerminatedNormally")
    return replace(
        _with_usage(_after_run(summary, event), event),
        state=JobState.COMPLETED,
        told_by=Confidence.EVENT_LOG,
        hold=None,
        return_value=event.whole("ReturnValue") if normally is not False else None,
        signal=event.whole("TerminatedBySignal") if not normally else None,
    )


def _aborted(summary: JobSummary, event: Reader) -> JobSummary:
    return replace(
        _after_run(summary, event),
        state=JobState.REMOVED,
        told_by=Confidence.EVENT_LOG,
        remove_reason=event.text("Reason"),
    )


_FOLDS: Dict[JobEvent, Callable[[JobSummary, Reader], JobSummary]] = {
    JobEvent.SUBMIT: _submit,
    JobEvent.EXECUTE: _execute,
    JobEvent.EXECUTABLE_ERROR: _executable_error,
    JobEvent.JOB_EVICTED: _evicted,
    JobEvent.JOB_TERMINATED: _terminated,
    JobEvent.IMAGE_SIZE: _image_size,
    JobEvent.SHADOW_EXCEPTION: _shadow_exception,
    JobEvent.JOB_ABORTED: _aborted,
    JobEvent.JOB_SUSPENDED: _suspended,
    JobEvent.JOB_UNSUSPENDED: _unsuspended,
    JobEvent.JOB_HELD: _held,
    JobEvent.JOB_RELEASED: _released,
    JobEvent.REMOTE_ERROR: _remote_error,
    JobEvent.JOB_DISCONNECTED: _disconnected,
    JobEvent.JOB_RECONNECTED: _reconnected,
    JobEvent.JOB_RECONNECT_FAILED: _reconnect_failed,
    JobEvent.JOB_AD_INFORMATION: _job_ad_information,
}


def _back_in_queue(
    summary: JobSummary, event: Reader, requeued_by: JobEvent, trouble: str
) -> JobSummary:
    if summary.state is JobState.HELD:
        # The shadow's last words may come after the schedd's hold.
        return replace(summary, trouble=trouble)
    return replace(
        _after_run(summary, event),
        state=JobState.IDLE,
        told_by=Confidence.EVENT_LOG,
        # An eviction follows a failed reconnect, which says more.
        requeued_by=summary.requeued_by or requeued_by,
        trouble=summary.trouble if summary.requeued_by else trouble,
    )


def _running_at_least(summary: JobSummary) -> JobSummary:
    """Return the summary of a log whose beginning is missing as that of a running job."""
    if summary.state is not JobState.UNKNOWN:
        return summary
    return replace(summary, state=JobState.RUNNING, told_by=Confidence.EVENT_LOG)


def _after_run(summary: JobSummary, event: Reader) -> JobSummary:
    """Note how long the run took that this event ends, if one was under way."""
    now = _time_of(event)
    if summary.state not in (JobState.RUNNING, JobState.SUSPENDED):
        return summary
    if now is None or summary.started_at is None or now < summary.started_at:
        return summary
    return replace(summary, run_s=int((now - summary.started_at).total_seconds()))


def _time_of(event: Reader) -> Optional[datetime]:
    """Return when the event was written, in the log's own zone; None where it does not say."""
    try:
        return datetime.strptime((event.text("EventTime") or "")[:19], "%Y-%m-%dT%H:%M:%S")
    except ValueError:
        return None


def _with_usage(summary: JobSummary, event: Reader) -> JobSummary:
    """Take over what an event says of memory (MB, or KB of the resident set) and disk (KB)."""
    request_mb, request_kb = event.whole("RequestMemory"), event.whole("RequestDisk")
    return replace(
        summary,
        memory_used_bytes=_most(summary.memory_used_bytes, memory_used(event)),
        disk_used_bytes=_most(summary.disk_used_bytes, times(event.whole("DiskUsage"), KILOBYTE)),
        memory_request_bytes=times(request_mb, MEGABYTE) or summary.memory_request_bytes,
        disk_request_bytes=times(request_kb, KILOBYTE) or summary.disk_request_bytes,
    )


def memory_used(attributes: Reader) -> Optional[int]:
    """Return the memory that an event or ad says was used, in bytes.

    ``MemoryUsage`` of an ad is an expression over ``ResidentSetSize``, which is rounded up by
    up to a quarter; the unrounded value is in ``ResidentSetSize_RAW``. 0 means that the job
    ended before it was first measured.
    """
    for name, unit in (
        ("MemoryUsage", MEGABYTE),
        ("ResidentSetSize_RAW", KILOBYTE),
        ("ResidentSetSize", KILOBYTE),
    ):
        used = times(attributes.whole(name), unit)
        if used:
            return used
    return None


def times(amount: Optional[int], unit: int) -> Optional[int]:
    """Return the amount in bytes; None for none and for what no amount can be."""
    return amount * unit if amount is not None and amount >= 0 else None


def _most(a: Optional[int], b: Optional[int]) -> Optional[int]:
    return max(a, b) if a is not None and b is not None else (b if a is None else a)
