"""Texts from the wild: what a pasted log, ad, queue listing or hold reason says of the end.

Made for ``explain`` and the corpus: there is no ``return_code``, no grace and no second look,
so the newest thing that a text says decides. A hold that was released is not it. Ended means
that the run is over: a hold is an end here, and so is an eviction after which HTCondor starts the
job again (the detail says so).
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Dict, List, Optional, Tuple

from ...reason import Cause, Confidence, Evidence, clean_text
from ..captured import CANNOT_TELL, Captured, plain_copy
from .classify import HoldFinding, HoldKind, classify_hold
from .codes import HoldReasonCode, JobEvent, JobStatus, VacateReasonCode
from .events import JobState, JobSummary, summarize_events
from .log_text import Record, read_records
from .queue_text import read_dagman, read_queue_listing
from .reason_text import clean_reason
from .values import Reader
from .views import SIGKILL, classify_end, with_ad

#: Colours, control characters and the quoting of mails.
_NOISE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00\x07\x08\ufeff]|^(?:> ?)+", re.MULTILINE)
_SIGXCPU = 24
_SIGXFSZ = 25
#: Signals that a program brings upon itself: quit, trap, abort, bus, FPE, segfault, pipe ...
_OWN_SIGNALS = frozenset({3, 4, 5, 6, 7, 8, 11, 13, 14, 31})
#: Signal 9 is memory only with the use to show for it: this part of the request.
_SIGKILL_MEMORY_SHARE = 0.9


def read_captured(
    text: str, source: str = "auto", external_id: Optional[str] = None
) -> Captured:
    """Return what a text from the wild says about a job's end. Never raises.

    Args:
        text: Job event log (text, XML, JSON), job ad (long form, XML, JSON), ``condor_q`` or
            ``condor_history`` listing, ``dagman.out``, or a hold reason alone; a piece will do.
        source: What it is. HTCondor's forms are told by themselves, so nothing depends on it.
        external_id: The job meant: "123.0", or "123" for any process of the cluster. None
            means, where the text has several, the first that failed, or else that lives.
    """
    jobs = read_jobs(_NOISE.sub("", plain_copy(text)))
    if external_id is not None:
        jobs = [job for job in jobs if _is(job.external_id, external_id)]
    return min(jobs, key=_rank, default=CANNOT_TELL)


def _rank(job: Captured) -> int:
    if job.ended is None:
        return 3
    return 0 if job.ended and job.cause else (2 if job.ended else 1)


def _is(found: Optional[str], wanted: str) -> bool:
    return found is None or found == wanted or found.partition(".")[0] == wanted


def read_jobs(text: str) -> List[Captured]:
    """Return what a text says of each job in it, in the order of their first mention."""
    events, ads = read_records(text)
    if not events:
        events = read_dagman(text)
    if events:
        return [_of_events(group) for group in _by_job(events)]
    known = [_of_ad(ad) for ad in ads if _is_job_ad(ad)]
    if known:
        return known
    listed = read_queue_listing(text)
    if listed:
        return [_of_ad(ad) for ad in listed]
    return _of_piece(text)


def _by_job(events: List[Record]) -> List[List[Record]]:
    groups: Dict[Tuple[object, object], List[Record]] = {}
    for event in events:
        groups.setdefault((event.get("Cluster"), event.get("Proc")), []).append(event)
    return list(groups.values())


# --- one job ------------------------------------------------------------------------------


def _of_events(events: List[Record]) -> Captured:
    summary = summarize_events(events)
    last = Reader(events[-1])
    if summary.state in (JobState.IDLE, JobState.UNKNOWN) and not summary.hold:
        stopped = _stopped_by_starter(last) or _requeued(summary, events)
        if stopped:
            return replace(stopped, external_id=summary.external_id or None)
    return _of_summary(summary)


def _stopped_by_starter(last: Reader) -> Optional[Captured]:
    """Return what a last REMOTE_ERROR, SHADOW_EXCEPTION or eviction with a hold's code says.

    The hold that follows in the log is missing in the text.
    """
    reason = last.text("ErrorMsg") or last.text("Message") or last.text("Reason")
    code = last.whole("HoldReasonCode") or last.whole("ReasonCode")
    if last.whole("EventTypeNumber") not in (
        JobEvent.REMOTE_ERROR, JobEvent.SHADOW_EXCEPTION, JobEvent.JOB_EVICTED
    ) or (last.flag("TerminatedAndRequeued") is True):
        return None
    subcode = last.whole("HoldReasonSubCode") or last.whole("ReasonSubCode")
    hold = classify_hold(code, subcode, reason)
    if hold.kind is not HoldKind.FAILURE or hold.cause in (Cause.UNKNOWN, Cause.HELD):
        return None
    return _of_hold(hold, Confidence.EVENT_LOG)


_NODE_VACATES = frozenset(
    {
        VacateReasonCode.ShadowException, VacateReasonCode.FailedToActivateClaim,
        VacateReasonCode.StarterError, VacateReasonCode.ReconnectFailed,
        VacateReasonCode.StartdException, VacateReasonCode.VMError,
        VacateReasonCode.ContainerError, VacateReasonCode.ScratchDirError,
        VacateReasonCode.ActivationRefusedBroken, VacateReasonCode.ActivationRefusedUnhealthy,
    }
)


def _requeued(summary: JobSummary, events: List[Record]) -> Optional[Captured]:
    """Return what sent the job back to the queue; None where nothing did but its own policy."""
    if summary.requeued_by is None:
        return None
    evicted = [event for event in events if event.get("EventTypeNumber") == JobEvent.JOB_EVICTED]
    newest = Reader(evicted[-1] if evicted else {})
    if newest.flag("TerminatedAndRequeued") is True:
        return None
    by_node = (
        summary.requeued_by is not JobEvent.JOB_EVICTED
        or newest.whole("ReasonCode") in _NODE_VACATES
    )
    cause = Cause.NODE_FAILURE if by_node else Cause.PREEMPTED
    return Captured(
        True,
        cause,
        Confidence.EVENT_LOG,
        detail=f"{summary.trouble}; HTCondor starts it again",
        evidence=(Evidence("event log", "EventTypeNumber", summary.trouble),),
    )


def _of_ad(ad: Record) -> Captured:
    status = Reader(ad).whole("JobStatus")
    if status is None:
        ad = {**ad, "JobStatus": _status_without_status(Reader(ad))}
        status = ad["JobStatus"]
    in_history = status in (JobStatus.REMOVED, JobStatus.COMPLETED)
    return _of_summary(with_ad(JobSummary(), ad, from_history=in_history))


def _is_job_ad(ad: Record) -> bool:
    values = Reader(ad)
    return _status_without_status(values) is not None or values.whole("JobStatus") is not None


def _status_without_status(ad: Reader) -> Optional[int]:
    """Return the JobStatus that an excerpt without one implies; None where none."""
    if ad.text("RemoveReason"):
        return JobStatus.REMOVED
    if ad.text("HoldReason") or ad.whole("HoldReasonCode") is not None:
        return JobStatus.HELD
    if ad.whole("ExitCode") is not None or ad.flag("ExitBySignal"):
        return JobStatus.COMPLETED
    return JobStatus.IDLE if ad.text("LastHoldReason") else None


def _of_summary(summary: JobSummary) -> Captured:
    told = _verdict(summary)
    return replace(told, external_id=summary.external_id or None)


def _verdict(summary: JobSummary) -> Captured:
    if summary.state is JobState.HELD and summary.hold is not None:
        return _of_hold(summary.hold, summary.told_by)
    if summary.state is JobState.REMOVED:
        return _of_removed(summary)
    if summary.state is JobState.COMPLETED:
        return _of_completed(summary)
    if summary.state in (JobState.UNKNOWN, JobState.REMOVING):
        return replace(CANNOT_TELL, detail=summary.trouble)
    return Captured(False, None, summary.told_by, detail=summary.trouble)


def _of_hold(hold: HoldFinding, source: Confidence) -> Captured:
    if hold.kind in (HoldKind.TRANSIENT, HoldKind.VACATE):
        return Captured(False, None, source, detail=hold.detail)
    cause = hold.cause
    if cause is Cause.HELD and _somebody_stopped_it(hold):
        # Nobody waits here for a release: somebody, or somebody's rule, took it from running.
        cause = Cause.CANCELLED
    evidence = (
        Evidence(source.value, "HoldReasonCode", f"{hold.code}/{hold.subcode}"),
        Evidence(source.value, "HoldReason", hold.reason),
    )
    return Captured(
        True,
        cause,
        hold.confidence or source,
        detail=hold.detail,
        cancelled_by=hold.held_by,
        evidence=evidence,
    )


def _somebody_stopped_it(hold: HoldFinding) -> bool:
    return hold.kind is HoldKind.PERSON or hold.code in (
        None, HoldReasonCode.Unspecified, HoldReasonCode.JobPolicy, HoldReasonCode.SystemPolicy,
        HoldReasonCode.StartdHeldJob,
    )


def _of_removed(summary: JobSummary) -> Captured:
    finding = classify_end(summary)
    assert finding is not None
    end = finding.end
    return Captured(
        True,
        end.cause,
        finding.confidence or summary.told_by,
        detail=end.detail,
        cancelled_by=end.cancelled_by if end.cause is Cause.CANCELLED else None,
        evidence=(Evidence(summary.told_by.value, "RemoveReason", summary.remove_reason or ""),),
    )


def _of_completed(summary: JobSummary) -> Captured:
    source = summary.told_by
    if summary.signal is not None:
        cause, confidence = _cause_of_signal(summary, summary.signal)
        return _ended(
            cause, confidence or source, f"killed by signal {summary.signal}",
            Evidence(source.value, "TerminatedBySignal", str(summary.signal)),
        )
    if summary.return_value is None:
        return Captured(True, Cause.UNKNOWN, source, detail="it ended, and nothing says how")
    evidence = Evidence(source.value, "ReturnValue", str(summary.return_value))
    if summary.return_value == 0:
        return _ended(None, source, "", evidence)
    return _ended(Cause.TOOL_ERROR, source, f"exit code {summary.return_value}", evidence)


def _ended(
    cause: Optional[Cause], confidence: Confidence, detail: str, evidence: Evidence
) -> Captured:
    return Captured(True, cause, confidence, detail=detail, evidence=(evidence,))


def _cause_of_signal(summary: JobSummary, signal: int) -> Tuple[Cause, Optional[Confidence]]:
    used, request = summary.memory_used_bytes, summary.memory_request_bytes
    if signal == SIGKILL and used and request and used >= _SIGKILL_MEMORY_SHARE * request:
        return Cause.MEMORY, Confidence.INFERRED
    if signal == _SIGXCPU:
        return Cause.CPU_TIME, Confidence.INFERRED
    if signal == _SIGXFSZ:
        return Cause.DISK, Confidence.INFERRED
    return (Cause.TOOL_ERROR if signal in _OWN_SIGNALS else Cause.UNKNOWN), None


# --- pieces without a frame ---------------------------------------------------------------

_HOLD_LABEL = re.compile(r"^\W*(?:Hold ?Reason|Reason(?: for hold)?)\W*[:=]\W*", re.IGNORECASE)
_CODE = re.compile(r"\b(?:Code|HoldReasonCode)\W{1,3}(-?[0-9]{1,9})\b", re.IGNORECASE)
_SUBCODE = re.compile(r"\b(?:Subcode|HoldReasonSubCode)\W{1,3}(-?[0-9]{1,9})\b", re.IGNORECASE)
#: ``condor_q -analyze`` has it below other lines; ``-af HoldReasonCode ...`` is bare numbers.
_HOLD_LINE = re.compile(r"^.{0,60}?\bHold ?reason:[ \t]*(?P<reason>\S.*)$", re.I | re.MULTILINE)
_AUTOFORMAT = re.compile(
    r"^\s*(?:[0-9]+\.[0-9]+\s+)?(?P<code>[0-9]{1,4})\s+(?P<subcode>-?[0-9]{1,7}|undefined)\s+"
    r"(?P<reason>[A-Za-z][^\n]{7,})$",
    re.MULTILINE,
)


_ENDED_AT = r"terminated (?:of its own accord )?at \S+ with"
#: With its bracket: of "(return value 137)" a cut text may have no more than "(return value 1".
_VALUE = re.compile(
    r"(?:Normal termination \(return value (?=-?[0-9]+\))"
    rf"|{_ENDED_AT} exit-code )(-?[0-9]{{1,9}})\b"
)
_SIGNAL = re.compile(
    rf"(?:Abnormal termination \(signal (?=[0-9]+\))|{_ENDED_AT} signal )([0-9]{{1,4}})\b"
)


def _of_piece(text: str) -> List[Captured]:
    """Return what an event's body without its header, or a reason alone, says."""
    value, signal = _VALUE.search(text), _SIGNAL.search(text)
    if value or signal:
        return [_of_summary(JobSummary(
            state=JobState.COMPLETED,
            return_value=int(value.group(1)) if value else None,
            signal=int(signal.group(1)) if signal else None,
        ))]
    return _of_reason(text)


def _of_reason(text: str) -> List[Captured]:
    code, subcode, reason = _split_reason(text)
    if not reason and code is None:
        return []
    if re.match(r"Job was aborted|via condor_rm|.*\bPERIODIC_?REMOVE\b", reason, re.IGNORECASE):
        return [_of_summary(JobSummary(state=JobState.REMOVED, remove_reason=reason))]
    hold = classify_hold(code, subcode, reason)
    if code is None and hold.cause is Cause.UNKNOWN:
        return [replace(CANNOT_TELL, detail=clean_text(reason))]
    return [_of_hold(hold, Confidence.EVENT_LOG)]


def _split_reason(text: str) -> Tuple[Optional[int], Optional[int], str]:
    """Return code, subcode and words of a hold reason that stands alone."""
    listed = _AUTOFORMAT.search(text)
    if listed:
        subcode = listed.group("subcode")
        known = None if subcode == "undefined" else int(subcode)
        return int(listed.group("code")), known, listed.group("reason")
    code, sub = _CODE.search(text), _SUBCODE.search(text)
    line = _HOLD_LINE.search(text)
    words = line.group("reason") if line else (text[: code.start()] if code else text)
    return (
        int(code.group(1)) if code else None,
        int(sub.group(1)) if sub else None,
        clean_reason(_HOLD_LABEL.sub("", words.strip())),
    )
