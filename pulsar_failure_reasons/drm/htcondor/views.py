"""A job as the shared judgement reads it: from its log's summary, its ad, or history."""

from __future__ import annotations

from dataclasses import replace
from typing import Dict, NamedTuple, Optional, Tuple

from ...reason import Cause, Confidence, Evidence
from ..base import End, Ending, JobView, Phase
from .classify import HoldFinding, HoldKind, classify_hold, classify_removal, name_hold
from .codes import JobStatus
from .events import KILOBYTE, MEGABYTE, JobState, JobSummary, memory_used, times
from .hold_policy import DEFAULT_HOLD_POLICY, HoldDecision, HoldPolicy, hold_decision
from .submit import JOB_DIRECTORY_ATTRIBUTE
from .values import Attributes, Reader

SIGKILL = 9
#: A job killed by signal 9 that used less than this part of its request was killed by
#: something else. Usage is sampled every few minutes, so a steep rise may be missed: half.
SIGKILL_MEMORY_SHARE = 0.5

_SOURCES = {
    Confidence.EVENT_LOG: "event log",
    Confidence.CONTROLLER: "condor_q",
    Confidence.ACCOUNTING: "condor_history",
}
_STATE_BY_STATUS: Dict[int, JobState] = {
    JobStatus.IDLE: JobState.IDLE,
    JobStatus.RUNNING: JobState.RUNNING,
    JobStatus.REMOVED: JobState.REMOVED,
    JobStatus.COMPLETED: JobState.COMPLETED,
    JobStatus.HELD: JobState.HELD,
    JobStatus.TRANSFERRING_OUTPUT: JobState.RUNNING,
    JobStatus.SUSPENDED: JobState.SUSPENDED,
}
_PHASES = {
    JobState.UNKNOWN: Phase.UNKNOWN,
    JobState.IDLE: Phase.QUEUED,
    JobState.RUNNING: Phase.RUNNING,
    JobState.SUSPENDED: Phase.RUNNING,
    JobState.REMOVING: Phase.ENDING,
}
_LIMITS = frozenset({Cause.WALLTIME, Cause.MEMORY, Cause.CPU_TIME, Cause.DISK})


class EndFinding(NamedTuple):
    """How a job ended. ``confidence`` is None where it is that of the source."""

    end: End
    confidence: Optional[Confidence] = None


def view_of(
    summary: JobSummary,
    ad: Optional[Attributes] = None,
    *,
    policy: HoldPolicy = DEFAULT_HOLD_POLICY,
    held_answers: int = 1,
    sigkill_means_memory: bool = True,
) -> JobView:
    """Return the job as log and queue show it.

    A hold that is waited for is STUCK (a person's: QUEUED); one that is not is ENDED although
    the job is still in the queue: ``job_state`` is HELD then, and it must be removed.

    Args:
        summary: What its log says.
        ad: Its ad in the queue, asked for *after* the log was read, so that the ad is the newer
            of the two; None where the queue was not asked or does not have it.
        policy: How holds are treated.
        held_answers: How many answers in succession showed it held, this one included.
        sigkill_means_memory: Whether signal 9 without a hold is taken for memory.
    """
    told = with_ad(summary, ad) if ad is not None else summary
    decision = hold_decision(told, policy, held_answers)
    if told.state is JobState.HELD and decision is HoldDecision.FAIL and told.hold is not None:
        finding: Optional[EndFinding] = _end_by_hold(told.hold)
    else:
        finding = classify_end(told, sigkill_means_memory=sigkill_means_memory)
        if finding is not None and ad is not None:
            # It stayed in the queue (leave_in_queue, spooled output).
            finding = finding._replace(end=replace(finding.end, remains=True))
    return _view(told, decision, finding)


def view_of_history_ad(ad: Attributes, *, sigkill_means_memory: bool = True) -> JobView:
    """Return the job as its history ad (``Schedd.history()``) shows it."""
    summary = with_ad(JobSummary(), ad, from_history=True)
    finding = classify_end(summary, sigkill_means_memory=sigkill_means_memory)
    return _view(summary, HoldDecision.NEVER, finding)


def _view(
    summary: JobSummary, decision: HoldDecision, finding: Optional[EndFinding]
) -> JobView:
    confidence = finding.confidence if finding and finding.confidence else summary.told_by
    hold = summary.hold
    return JobView(
        external_id=summary.external_id,
        job_state=summary.state.value,
        phase=Phase.ENDED if finding else _phase(summary, decision),
        confidence=confidence,
        end=finding.end if finding else None,
        stuck_for=hold.cause if hold else Cause.HELD,
        stuck_detail=hold.detail if hold else "",
        job_name=summary.job_name,
        submitted_at=summary.submitted_at,
        # QDate survives a requeue, so no restart explains another one.
        restarts=None if summary.submitted_at is None else 0,
        elapsed_s=summary.run_s,
        walltime_s=summary.walltime_limit_s,
        memory_bytes=summary.memory_request_bytes,
        used_memory_bytes=summary.memory_used_bytes,
        node=summary.node,
        evidence=_evidence(summary),
    )


def _phase(summary: JobSummary, decision: HoldDecision) -> Phase:
    if summary.state is not JobState.HELD:
        return _PHASES.get(summary.state, Phase.UNKNOWN)
    waits = decision is HoldDecision.WAIT
    failure = summary.hold is not None and summary.hold.kind is HoldKind.FAILURE
    return Phase.STUCK if waits and failure else Phase.QUEUED


def classify_end(
    summary: JobSummary, *, sigkill_means_memory: bool = True
) -> Optional[EndFinding]:
    """Return how a job ended that HTCondor is done with; None where it is not done."""
    if summary.state is JobState.REMOVED:
        removal = classify_removal(summary.remove_reason, summary.hold)
        # CANCELLED is the row for every removal: whatever the job left, it failed.
        end = End(Ending.CANCELLED, removal.cause, removal.detail, cancelled_by=removal.by)
        return EndFinding(end, removal.confidence)
    if summary.state is not JobState.COMPLETED:
        return None
    if summary.signal is not None:
        return _end_by_signal(summary, summary.signal, sigkill_means_memory)
    if summary.return_value == 0:
        return EndFinding(End(Ending.WELL, exit_code=0))
    return EndFinding(End(Ending.BADLY, exit_code=summary.return_value))


def _end_by_signal(
    summary: JobSummary, signal: int, sigkill_means_memory: bool
) -> EndFinding:
    if signal == SIGKILL and sigkill_means_memory and not _used_far_less(summary):
        detail = "signal 9 without a hold, as the kernel kills for memory"
        return EndFinding(
            End(Ending.BADLY, Cause.MEMORY, detail, signal=signal), Confidence.INFERRED
        )
    return EndFinding(End(Ending.BADLY, detail=f"killed by signal {signal}", signal=signal))


def _used_far_less(summary: JobSummary) -> bool:
    used, request = summary.memory_used_bytes, summary.memory_request_bytes
    if used is None or request is None:
        return False
    return used < SIGKILL_MEMORY_SHARE * request


def _end_by_hold(hold: HoldFinding) -> EndFinding:
    # INFRASTRUCTURE is the row that fails whatever the job left; BADLY would let the file
    # return_code make it complete although its output never came back.
    ending = Ending.LIMIT if hold.cause in _LIMITS else Ending.INFRASTRUCTURE
    return EndFinding(End(ending, hold.cause, hold.detail, remains=True), hold.confidence)


# --- job ads ------------------------------------------------------------------------------


def with_ad(summary: JobSummary, ad: Attributes, *, from_history: bool = False) -> JobSummary:
    """Return the summary with what a job ad adds. An end in the log stands.

    In a history ad ``ExitSignal`` 15 of a removed job means nothing: JobStatus decides.
    """
    attributes = Reader(ad)
    told = _with_ad_values(summary, attributes)
    if told.ended:
        return told
    state = _state_of(attributes, from_history)
    if state is None:
        return told
    told = replace(
        told,
        state=state,
        told_by=Confidence.ACCOUNTING if from_history else Confidence.CONTROLLER,
    )
    return _with_ad_state(told, attributes)


def _state_of(ad: Reader, from_history: bool) -> Optional[JobState]:
    """Return the state that an ad shows; None where its JobStatus is none that we know."""
    state = _STATE_BY_STATUS.get(ad.whole("JobStatus") or 0)
    if state is not JobState.REMOVED:
        return state
    if ad.whole("LastJobStatus") == JobStatus.COMPLETED:
        # It had ended and stayed in the queue (spooled, leave_in_queue) until it was removed.
        return JobState.COMPLETED
    return JobState.REMOVED if from_history else JobState.REMOVING


def _with_ad_values(summary: JobSummary, ad: Reader) -> JobSummary:
    limit_s = ad.whole("AllowedExecuteDuration")
    return replace(
        summary,
        cluster=summary.cluster if summary.cluster is not None else ad.whole("ClusterId"),
        proc=summary.proc if summary.proc is not None else ad.whole("ProcId"),
        node=ad.text("RemoteHost") or ad.text("LastRemoteHost") or summary.node,
        run_s=_run_s(ad, summary.run_s),
        # Not JobBatchName: operators, destinations and condor_qedit change it.
        job_name=ad.text(JOB_DIRECTORY_ATTRIBUTE) or summary.job_name,
        submitted_at=_submission(ad) or summary.submitted_at,
        walltime_limit_s=limit_s if limit_s is not None else ad.whole("AllowedJobDuration"),
        releases_itself=ad.is_set("PeriodicRelease"),
        memory_request_bytes=times(ad.whole("RequestMemory"), MEGABYTE)
        or summary.memory_request_bytes,
        memory_used_bytes=_most_memory(summary, ad),
        disk_request_bytes=times(ad.whole("RequestDisk"), KILOBYTE) or summary.disk_request_bytes,
        disk_used_bytes=summary.disk_used_bytes or times(ad.whole("DiskUsage_RAW"), KILOBYTE),
    )


def _most_memory(summary: JobSummary, ad: Reader) -> Optional[int]:
    """Return the most that a run is known to have used, in bytes; None where nobody measured."""
    logged = summary.memory_used_bytes
    if logged is None:
        return memory_used(ad)
    if summary.executions > 1:
        return logged  # an ad has the most of all runs
    # The ad is newer than the log. Its other values are rounded up, which the log's are not.
    return max(logged, times(ad.whole("ResidentSetSize_RAW"), KILOBYTE) or 0)


def _submission(ad: Reader) -> Optional[str]:
    """Return what tells one submission from all others; None where the ad does not say when."""
    submitted, directory = ad.whole("QDate"), ad.text(JOB_DIRECTORY_ATTRIBUTE)
    # Both: two jobs are submitted in one second, and one directory sees several attempts.
    return None if submitted is None else " ".join(filter(None, (str(submitted), directory)))


def _run_s(ad: Reader, logged_s: Optional[int]) -> Optional[int]:
    """Return how long the job runs, or ran the last time (as logged, if so), in seconds."""
    started, now = ad.whole("JobCurrentStartDate"), ad.whole("ServerTime")
    if ad.whole("JobStatus") in (JobStatus.RUNNING, JobStatus.TRANSFERRING_OUTPUT):
        return max(0, now - started) if started is not None and now is not None else None
    return logged_s if logged_s is not None else ad.whole("LastRemoteWallClockTime")


def _with_ad_state(summary: JobSummary, ad: Reader) -> JobSummary:
    if summary.state is JobState.HELD:
        held = _hold_in(ad, "HoldReason") or summary.hold or classify_hold(None, None, None)
        if held.kind is HoldKind.VACATE:
            # Held it is, whatever its code says: not to be waited for without an end.
            held = replace(held, kind=HoldKind.FAILURE, cause=Cause.HELD)
        return replace(summary, hold=held, last_hold=held)
    last_hold = summary.last_hold or _hold_in(ad, "LastHoldReason")
    if summary.state is JobState.REMOVED:
        # Absent only in excerpts that people made: they kept the hold because it matters.
        was_held = ad.whole("LastJobStatus") in (JobStatus.HELD, None)
        hold = _hold_in(ad, "HoldReason") or _hold_in(ad, "LastHoldReason") or summary.hold
        return replace(
            summary,
            hold=hold if was_held else None,
            last_hold=last_hold,
            remove_reason=ad.text("RemoveReason"),
        )
    summary = replace(summary, hold=None, last_hold=last_hold)
    if summary.state is JobState.COMPLETED:
        by_signal = ad.flag("ExitBySignal")
        # ExitSignal of an earlier, evicted run stays in the ad: ExitBySignal decides.
        return replace(
            summary,
            signal=ad.whole("ExitSignal") if by_signal else None,
            return_value=ad.whole("ExitCode") if not by_signal else None,
        )
    return summary


def _hold_in(ad: Reader, name: str) -> Optional[HoldFinding]:
    """Return the hold in ``HoldReason*`` or ``LastHoldReason*``; None where there is none."""
    code, reason = ad.whole(f"{name}Code"), ad.text(name)
    if code is None and reason is None:
        return None
    return classify_hold(code, ad.whole(f"{name}SubCode"), reason)


# --- evidence -----------------------------------------------------------------------------


def _evidence(summary: JobSummary) -> Tuple[Evidence, ...]:
    source = _SOURCES.get(summary.told_by, summary.told_by.value)
    said: Dict[str, object] = {"JobStatus": summary.state.value}
    if summary.state is JobState.REMOVED:
        said["RemoveReason"] = summary.remove_reason
    hold = summary.hold
    if hold is not None:
        said["HoldReasonCode"] = name_hold(hold.code, hold.subcode)
        said["HoldReason"] = hold.reason or None
    said["ReturnValue"] = summary.return_value
    said["TerminatedBySignal"] = summary.signal
    said["MemoryUsage"] = _megabytes(summary.memory_used_bytes)
    said["EventTypeNumber"] = ", ".join(map(str, summary.unknown_events)) or None
    if not summary.ended and hold is None:
        said["trouble"] = summary.trouble or None
    return tuple(
        Evidence(source, field, str(value)) for field, value in said.items() if value is not None
    )


def _megabytes(size_bytes: Optional[int]) -> Optional[str]:
    return None if size_bytes is None else f"{size_bytes // MEGABYTE} MB"
