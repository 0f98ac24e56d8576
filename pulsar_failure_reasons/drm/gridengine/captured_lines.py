"""Lines about a Grid Engine job that are no record: message files, mails, qstat's table."""

from __future__ import annotations

import re
from typing import Dict, List, Optional, Sequence, Tuple

from ...reason import Cause, Confidence, Evidence
from ..base import Ending, JobView, Phase
from ..captured import Captured, alive, ended, from_view
from .classify import classify_error_reason, how_it_ended
from .failed import FAILED_CODES, code_of_text
from .limits import Usage
from .qstat import stuck_for
from .states import canonical_state, is_being_deleted, phase_of

_LABEL = "Grid Engine"

# ---- message files and mails ------------------------------------------------------------------

#: ``05/04/2011 03:36:38|  main|host|W|job ...``, perhaps without its beginning.
_LOG_PREFIX = re.compile(r"^(?:[^|]{0,60}\|){1,3}[DIPWEC]\|(?P<said>.*)$")
_JOB = re.compile(r"\b[Jj]ob(?:-array task)? (?P<id>[0-9]{1,18}(?:\.[0-9]{1,9})?)\b")
_LIMITS: Tuple[Tuple[str, Cause, str], ...] = (
    (r"exceed(?:ed|s) (?:job )?hard wall ?clock time", Cause.WALLTIME, ""),
    (r"exceed(?:ed|s) (?:\w+ ){0,3}hard limit \"?h_(?:vmem|rss|data|stack)", Cause.MEMORY, ""),
    (r"exceed(?:ed|s) (?:\w+ ){0,3}hard limit \"?h_cpu", Cause.CPU_TIME, ""),
    (r"exceed(?:ed|s) (?:\w+ ){0,3}hard limit \"?h_rt", Cause.WALLTIME, ""),
    (r"exceed(?:ed|s) (?:\w+ ){0,3}hard limit \"?h_fsize", Cause.DISK, ""),
    (r"exceed(?:ed|s) (?:job )?soft wall ?clock time", Cause.WALLTIME, "its soft limit"),
    (r"exceed(?:ed|s) (?:\w+ ){0,3}soft limit \"?s_(?:vmem|rss|data|stack)", Cause.MEMORY,
     "its soft limit"),
    (r"exceed(?:ed|s) (?:\w+ ){0,3}soft limit \"?s_cpu", Cause.CPU_TIME, "its soft limit"),
)
_DELETED = re.compile(
    r"(?P<who>\S+) (?:has registered the job(?:-array task)? \S+ for deletion|has deleted job"
    r"|forced the deletion of job)|(?P<owner>)job .{1,40} (?:was|has been) deleted",
    re.IGNORECASE,
)
_FAILED = re.compile(
    r"failed on host \S+ (?:general )?(?P<what>.*?) because:?\s*(?P<why>.*)$", re.IGNORECASE
)
_SHEPHERD = re.compile(
    r"shepherd (?:of job \S+ )?exited with exit status(?: =)? (?P<code>[0-9]{1,3})"
    r"|(?P<crash>abnormal termination of shepherd|exit_status\" file is empty"
    r"|shepherd of job \S+ (?:died through signal|was killed))",
    re.IGNORECASE,
)
_SIGNAL = re.compile(r"died through signal \w+ \((?P<number>[0-9]{1,2})\)")


def read_log(lines: Sequence[str], needs_prefix: bool = True) -> List[Captured]:
    """Return what execd's or qmaster's messages (or a mail) say of each job in them.

    Args:
        lines: The text's lines.
        needs_prefix: Read only lines with the date and the bars of a message file; any line
            else, as a mail has them.
    """
    found: Dict[str, List[Tuple[int, Captured]]] = {}
    for line in lines:
        prefix = _LOG_PREFIX.match(line)
        if prefix is None and needs_prefix:
            continue
        said = prefix.group("said") if prefix else line
        named = _JOB.search(said)
        job = named.group("id").partition(".")[0] if named else ""
        told = _log_line(said, job or None)
        if told is not None:
            found.setdefault(job, []).append(told)
    unnamed = found.pop("", [])
    if not found and unnamed:
        return [min(unnamed, key=lambda item: item[0])[1]]
    # What killed a job stands before how its end was told.
    return [min(told, key=lambda item: item[0])[1] for told in found.values()]


def _log_line(said: str, job: Optional[str]) -> Optional[Tuple[int, Captured]]:
    evidence = Evidence("messages", "line", said)
    for pattern, cause, detail in _LIMITS:
        if re.search(pattern, said, re.IGNORECASE):
            rank = 1 if detail else 0
            return rank, ended(cause, evidence, detail, Confidence.EVENT_LOG, external_id=job)
    deleted = _DELETED.search(said)
    if deleted:
        return 2, ended(
            Cause.CANCELLED, evidence, "", Confidence.EVENT_LOG, deleted.group("who"), job
        )
    if re.match(r"rescheduling job|job .* rescheduled", said):
        return 5, alive(evidence, "it will be started again", job)
    failed = _FAILED.search(said)
    if failed:
        told = _failed(failed.group("what"), failed.group("why"), evidence, job)
        # Who then deletes a job in error only clears it away; but qdel kills by a signal.
        return (3 if _SIGNAL.search(failed.group("why")) else 1), told
    shepherd = _SHEPHERD.search(said)
    if shepherd:
        code = 19 if shepherd.group("crash") else int(shepherd.group("code"))
        return 4, _of_code(code, None, evidence, job)
    signal = _SIGNAL.search(said)
    if signal:
        return 6, _of_code(100, 128 + int(signal.group("number")), evidence, job)
    return None


def _failed(what: str, why: str, evidence: Evidence, job: Optional[str]) -> Captured:
    code = code_of_text(what)
    signal = _SIGNAL.search(why)
    cause, detail = classify_error_reason(why)
    if code is None and cause is not Cause.HELD:
        return ended(cause, evidence, detail, Confidence.EVENT_LOG, external_id=job)
    return _of_code(code, 128 + int(signal.group("number")) if signal else None, evidence, job)


def _of_code(
    code: Optional[int], exit_status: Optional[int], evidence: Evidence, job: Optional[str]
) -> Captured:
    row = FAILED_CODES.get(code) if code is not None else None
    if row is not None and row.requeues:
        return alive(evidence, row.detail, job)
    end, inferred = how_it_ended(code, exit_status, Usage())
    if end.ending is Ending.WELL:
        return ended(Cause.UNKNOWN, evidence, external_id=job)
    confidence = Confidence.INFERRED if inferred else Confidence.EVENT_LOG
    return from_view(
        JobView(job or "", "", Phase.ENDED, confidence, end=end, evidence=(evidence,)), _LABEL
    )


_MAIL_SUBJECT = re.compile(
    r"(?:Subject: )?Job(?:-array task)? (?P<id>[0-9.]+) \(.*\) (?P<how>Complete|Aborted|Started"
    r"|Suspended|Set in error state)",
)
_MAIL_EXIT = re.compile(r"^\s*Exit Status\s*=\s*(?P<code>[0-9]{1,3})\b", re.IGNORECASE)


def read_mail(lines: Sequence[str]) -> Optional[Captured]:
    """Return what Grid Engine's mail about a job says; None for a text that is none."""
    subjects = [m for m in map(_MAIL_SUBJECT.search, lines) if m]
    if not subjects:
        return None
    how, job = subjects[-1].group("how"), subjects[-1].group("id").partition(".")[0]
    evidence = Evidence("mail", "line", subjects[-1].group())
    if how in ("Started", "Suspended"):
        return alive(evidence, external_id=job)
    told = read_log([re.sub(r"^failed (?!on host)", "failed on host ? ", line) for line in lines],
                    needs_prefix=False)
    if told:
        return told[0]
    codes = [m for m in map(_MAIL_EXIT.search, lines) if m]
    if codes:
        return _complete(int(codes[-1].group("code")), how, evidence, job)
    return ended(Cause.UNKNOWN, evidence, external_id=job)


def _complete(code: int, how: str, evidence: Evidence, job: str) -> Captured:
    end, inferred = how_it_ended(0 if how == "Complete" else 100, code, Usage())
    confidence = Confidence.INFERRED if inferred else Confidence.CONTROLLER
    return from_view(
        JobView(job, "", Phase.ENDED, confidence, end=end, evidence=(evidence,)), _LABEL
    )


# ---- qstat ------------------------------------------------------------------------------------

_ROW = re.compile(
    r"^\s*(?P<id>[0-9]{1,18})\s+[0-9.]{3,9}\s+.*\s(?P<state>[A-Za-z]{1,8})\s+"
    r"(?:[0-9]{2}/[0-9]{2}/[0-9]{4}|[0-9]{4}-[0-9]{2}-[0-9]{2})[ T][0-9:]{8}"
)
_ERROR_REASON = re.compile(r"^\s*error reason\s+(?:[0-9,:-]+\s*:)?\s*(?P<why>.+)$")
_JOB_NUMBER = re.compile(r"^\s*job_number:\s+(?P<id>[0-9]{1,18})\s*$")


def read_qstat(lines: Sequence[str]) -> List[Captured]:
    """Return the jobs of qstat's table and of ``qstat -j``; error reasons beside them count."""
    reasons, job = [], ""
    for line in lines:
        number = _JOB_NUMBER.match(line)
        job = number.group("id") if number else job
        reason = _ERROR_REASON.match(line)
        if reason:
            reasons.append(reason.group("why"))
    views = [view for view in map(_row, lines) if view is not None]
    if not views and reasons:
        views = [_sight(job, "Eqw")]
    elif not views and job:
        return [alive(Evidence("qstat", "job_number", job), "", job)]
    if len(views) == 1 and reasons and views[0].phase is Phase.STUCK:
        views = [stuck_for(views[0], reasons[-1])]
    return [of_view(view) for view in views]


def _row(line: str) -> Optional[JobView]:
    match = _ROW.match(line)
    if match is None or canonical_state(match.group("state")) is None:
        return None
    return _sight(match.group("id"), match.group("state"))


def _sight(job: str, state: str) -> JobView:
    evidence = (Evidence("qstat", "state", state),)
    return JobView(job, state, phase_of(state), Confidence.CONTROLLER, evidence=evidence)


def of_view(view: JobView) -> Captured:
    """Return what one view says; an error with a known reason is an end here."""
    if view.phase is Phase.STUCK and view.stuck_for is not Cause.HELD:
        return ended(
            view.stuck_for, view.evidence[-1], view.stuck_detail, view.confidence,
            external_id=view.external_id or None,
        )
    captured = from_view(view, _LABEL)
    if view.end is None and is_being_deleted(view.job_state):
        return alive(view.evidence[0], "somebody has deleted it", view.external_id or None)
    return captured
