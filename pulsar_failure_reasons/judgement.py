"""How a job's end is judged: the table of the design, as pure functions.

:mod:`pulsar_failure_reasons.history` folds the DRM's successive answers about one job;
:func:`judge` reads them together with what the job left in its directory and says what Pulsar
should report. Rules that hold always: unknown is never success, only evidence ends a job, and the
controller decides as long as it knows the job (callers bring an accounting view only after that).

Present and absent are said of the file ``return_code``: Pulsar's job script writes it after
the tool, so present means that the tool ended by itself. The script then exits 0 whatever the
tool returned.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Callable, Dict, Optional, Tuple

from .drm.base import End, Ending, JobView, Phase, StderrFinding
from .history import History
from .message import write_message
from .reason import Cause, Confidence, Evidence, FailureReason

# Pulsar's words (pulsar.managers.status), of which this package reports these four.
QUEUED = "queued"
RUNNING = "running"
COMPLETE = "complete"
FAILED = "failed"

_INFERRED = Confidence.INFERRED
_LIMITS = frozenset({Cause.WALLTIME, Cause.MEMORY, Cause.CPU_TIME})
#: How a shell (a site's wrapper of job scripts) tells that what it ran was ended by a signal.
_SIGNAL_PASSED_ON = range(129, 193)


@dataclass(frozen=True)
class Policy:
    """What an operator may choose. Graces are counted in answers of the DRM, not in seconds.

    So an outage of the DRM uses up no grace.
    """

    missing_answers: int = 4
    stuck_answers: int = 240
    limit_with_zero_exit: str = FAILED


def without_graces(policy: Policy) -> Policy:
    """Return the policy of somebody who looks once and asks what holds if it stays like this."""
    return replace(policy, missing_answers=1)


@dataclass(frozen=True)
class JobFiles:
    """What the job left in its directory.

    ``return_code`` is None where the file is absent or holds no integer. ``began`` says that the
    job script has left traces. ``unreadable`` says why nobody can tell what is there; empty where
    it could be read.
    """

    return_code: Optional[int] = None
    stderr: Optional[StderrFinding] = None
    began: bool = False
    unreadable: str = ""


@dataclass(frozen=True)
class Judgement:
    """What Pulsar should report of a job.

    ``status`` is None for "as before". ``reason`` comes with ``failed`` only. ``remove`` asks
    that the job be taken out of the DRM before the status is reported. ``waits_for`` says, for
    the log, what the job is given time for; empty where it waits for nothing special.
    """

    status: Optional[str] = None
    reason: Optional[FailureReason] = None
    remove: bool = False
    waits_for: str = ""


AS_BEFORE = Judgement()


@dataclass(frozen=True)
class JobId:
    """What a judgement calls the job: the DRM's name for people and its registry name."""

    drm: str
    label: str
    external_id: Optional[str]


def judge(
    job: JobId, history: History, read_files: Callable[[], JobFiles], policy: Policy
) -> Judgement:
    """Return what the DRM's answers and the job's files say together.

    ``read_files`` is called only where the files matter, so a living job costs no file access.
    """
    view = history.view
    if view is None:
        return _judge_missing(job, history, read_files(), policy)
    if view.phase is Phase.ENDED and view.end is not None:
        judgement = _judge_end(job, history, view.end, read_files(), policy)
        return replace(judgement, remove=view.end.remains and judgement.status is not None)
    if view.phase is Phase.STUCK:
        return _judge_stuck(job, history, view, policy)
    if view.phase is Phase.QUEUED:
        return Judgement(QUEUED, waits_for=view.stuck_detail)
    if view.phase is Phase.RUNNING:
        return Judgement(RUNNING)
    if view.phase is Phase.UNKNOWN:
        return Judgement(waits_for=f"job state {view.job_state!r}, which we do not know")
    return AS_BEFORE


def _judge_stuck(job: JobId, history: History, view: JobView, policy: Policy) -> Judgement:
    if history.stuck < policy.stuck_answers:
        return Judgement(QUEUED, waits_for=view.stuck_detail or f"job state {view.job_state}")
    reason = _reason(job, history, view.stuck_for, view.confidence, view.stuck_detail)
    return Judgement(FAILED, reason, remove=True)


def _judge_end(
    job: JobId, history: History, end: End, files: JobFiles, policy: Policy
) -> Judgement:
    forced = end.ending is Ending.WELL and files.return_code is None
    if history.deleted and (forced or end.ending is Ending.BADLY):
        # Grid Engine's accounting never tells a deletion, and shows a forced one as a success.
        end = replace(end, ending=Ending.CANCELLED, cause=Cause.CANCELLED, detail="")
    if end.ending is Ending.WELL:
        return _judge_ended_well(job, history, end, files, policy)
    if end.ending is Ending.LIMIT:
        if files.return_code == 0 and policy.limit_with_zero_exit == COMPLETE:
            return Judgement(COMPLETE)
        return _failed(job, history, files, end.cause or Cause.UNKNOWN, end)
    if end.ending is Ending.BADLY:
        return _judge_ended_badly(job, history, end, files)
    return _failed(job, history, files, end.cause or Cause.UNKNOWN, end)


def _judge_ended_well(
    job: JobId, history: History, end: End, files: JobFiles, policy: Policy
) -> Judgement:
    if files.return_code is not None:
        return Judgement(COMPLETE)
    if history.ended < policy.missing_answers:
        # Shared file systems show a new file late on another host.
        return Judgement(waits_for="its file return_code")
    left = "it left no exit code"
    if files.unreadable:
        left = f"nobody knows its exit code: {files.unreadable}"
    end = replace(end, detail=f"{job.label} says that it ended well, but {left}")
    return _failed(job, history, files, Cause.LOST, end, _INFERRED)


def _judge_ended_badly(job: JobId, history: History, end: End, files: JobFiles) -> Judgement:
    if files.return_code is not None and not _limit_killed_the_tool(files):
        return Judgement(COMPLETE)
    if end.cause is not None:
        return _failed(job, history, files, end.cause, end)
    if end.exit_code and not end.signal and end.exit_code not in _SIGNAL_PASSED_ON:
        # The script ends with 0 whatever the tool returned: one of its own guards exited.
        guard = replace(end, detail=end.detail or f"the job script exited with {end.exit_code}")
        return _failed(job, history, files, Cause.LAUNCH_ERROR, guard, _INFERRED)
    return _failed(job, history, files, Cause.UNKNOWN, end)


def _limit_killed_the_tool(files: JobFiles) -> bool:
    # The DRM's own line says that it killed for a limit: that is the DRM saying a limit, also
    # where only a step died of it and the script lived on to write the tool's exit code.
    return bool(files.return_code) and files.stderr is not None and files.stderr.cause in _LIMITS


def _judge_missing(
    job: JobId, history: History, files: JobFiles, policy: Policy
) -> Judgement:
    if history.missing < policy.missing_answers:
        # Also with a return code: accounting may hear of a limit later than the controller
        # forgets it, and until then a killed job must not pass for a success.
        return Judgement(waits_for=f"{job.label} to know it again")
    if files.return_code is not None:
        return Judgement(COMPLETE)
    unseen = _with_unknown_run(history)
    if _ran_into_its_limit(history):
        end = End(Ending.LIMIT, detail=f"its walltime limit was over when {job.label} forgot it")
        return _failed(job, unseen, files, Cause.WALLTIME, end, _INFERRED)
    if history.deleted or _waited_to_the_last(job, history, files):
        end = End(Ending.CANCELLED, detail=_how_it_was_cancelled(job, history))
        return _failed(job, unseen, files, Cause.CANCELLED, end, _INFERRED)
    end = End(Ending.INFRASTRUCTURE, detail=_how_it_was_lost(job, history, files))
    return _failed(job, unseen, files, Cause.LOST, end, _INFERRED)


def _waited_to_the_last(job: JobId, history: History, files: JobFiles) -> bool:
    """Tell whether a forgotten job never began, as far as anybody saw: then it was cancelled.

    What may have run never counts as cancelled: a job can begin and die between two looks, and
    then its script has left traces. Of a job that no answer ever showed nobody knows that it
    waited, but for Pulsar's own word of an earlier look.
    """
    if job.external_id is None or history.has_run:
        return False
    return not files.began and not files.unreadable


def _how_it_was_cancelled(job: JobId, history: History) -> str:
    if history.deleted:
        return "it was being deleted when it was last seen"
    return f"it had not begun when {job.label} forgot it"


def _how_it_was_lost(job: JobId, history: History, files: JobFiles) -> str:
    left = f"nobody knows its exit code: {files.unreadable}" if files.unreadable else (
        "it left no exit code"
    )
    if job.external_id is not None:
        return f"{job.label} forgot it, and {left}"
    if history.launch_cut_short:
        return (
            f"Pulsar was killed while it submitted the job, and {job.label} knows no job of its "
            f"name; {left}"
        )
    return f"its id in {job.label} is not known, nor a job of its name there, and {left}"


def _with_unknown_run(history: History) -> History:
    # What was last seen of a forgotten job's run is not how long it ran.
    last = history.last
    return history if last is None else replace(history, last=replace(last, elapsed_s=None))


def _ran_into_its_limit(history: History) -> bool:
    """Tell whether a forgotten job had been running for its whole limit when last heard of."""
    last = history.last
    if last is None or last.phase not in (Phase.RUNNING, Phase.ENDING):
        return False
    if None in (last.elapsed_s, last.walltime_s, history.running_at, history.missing_at):
        return False
    assert last.elapsed_s is not None and last.walltime_s is not None
    assert history.running_at is not None and history.missing_at is not None
    return last.elapsed_s + (history.missing_at - history.running_at) >= last.walltime_s


def _failed(
    job: JobId,
    history: History,
    files: JobFiles,
    cause: Cause,
    end: Optional[End],
    confidence: Optional[Confidence] = None,
) -> Judgement:
    """Return the failure, after the DRM's own stderr line has had its word.

    The line decides where the DRM's record tells no cause, and turns a cancellation into the
    limit behind it; beside any other cause it only adds evidence and numbers.
    """
    finding = files.stderr
    detail = end.detail if end else ""
    if finding is not None and _line_decides(finding, cause, confidence):
        cause, detail, confidence = finding.cause, finding.detail, Confidence.STDERR
    reason = _reason(job, history, cause, confidence, detail, end, finding)
    if files.unreadable:
        said = Evidence("job_directory", "unreadable", files.unreadable)
        reason = replace(reason, evidence=(*reason.evidence, said))
    return Judgement(FAILED, reason)


def _line_decides(
    finding: StderrFinding, cause: Cause, confidence: Optional[Confidence]
) -> bool:
    if finding.cause in (Cause.CANCELLED, Cause.TOOL_ERROR, Cause.UNKNOWN):
        return False
    return cause in (Cause.CANCELLED, Cause.UNKNOWN, Cause.LOST) or (
        confidence is _INFERRED
    )


def _reason(
    job: JobId,
    history: History,
    cause: Cause,
    confidence: Optional[Confidence],
    detail: str,
    end: Optional[End] = None,
    finding: Optional[StderrFinding] = None,
) -> FailureReason:
    view = history.last
    requested, used = _amounts(view, finding if finding and finding.cause is cause else None)
    cancelled_by = end.cancelled_by if end and cause is Cause.CANCELLED else None
    return FailureReason(
        cause=cause,
        message=write_message(
            job.label,
            cause,
            detail,
            view,
            external_id=job.external_id,
            used_memory_bytes=_whole(used.get("memory_bytes")),
            memory_limit_bytes=_whole(requested.get("memory_bytes")),
            cancelled_by=cancelled_by,
        ),
        confidence=confidence or (view.confidence if view else Confidence.INFERRED),
        drm=job.drm,
        external_id=job.external_id,
        node=view.node if view else None,
        requested=requested,
        used=used,
        cancelled_by=cancelled_by,
        evidence=_evidence(view, finding),
    )


def _amounts(
    view: Optional[JobView], finding: Optional[StderrFinding]
) -> Tuple[Dict[str, float], Dict[str, float]]:
    """Return requested and used; the DRM's kill line knows best what it compared."""
    requested = {
        "walltime_s": view.walltime_s if view else None,
        "memory_bytes": (finding and finding.limit_bytes) or (view.memory_bytes if view else None),
    }
    used = {
        "walltime_s": view.elapsed_s if view else None,
        "memory_bytes": (finding and finding.used_bytes)
        or (view.used_memory_bytes if view else None),
    }
    return _known(requested), _known(used)


def _known(amounts: Dict[str, Optional[int]]) -> Dict[str, float]:
    return {name: amount for name, amount in amounts.items() if amount is not None}


def _whole(amount: Optional[float]) -> Optional[int]:
    return None if amount is None else int(amount)


def _evidence(
    view: Optional[JobView], finding: Optional[StderrFinding]
) -> Tuple[Evidence, ...]:
    return (view.evidence if view else ()) + ((finding.evidence,) if finding else ())
