"""Lines about a job's end that are no table: scontrol's fields, mails, seff, logs, shells.

Each reader returns what it found or nothing; :mod:`.captured` weighs them.
"""

from __future__ import annotations

import re
from typing import List, NamedTuple, Optional, Tuple

from ...errors import OutputParseError
from ...reason import Cause, Confidence, Evidence
from ..base import JobView
from ..captured import cause_of_exit, read_tool_lines
from .captured_views import sighting
from .classify import OUTPUT_NOT_OPENED
from .scontrol import parse_record
from .states import SlurmState, canonical_state
from .stderr import classify_stderr, find_in_lines, names_job, split_lines


#: Longer lines are no message of Slurm's, and patterns are slow on them.
_LONGEST_LINE = 2000


class Ended(NamedTuple):
    """That a job ended, for this cause (None: well), with the line that says so.

    ``used`` and ``limit`` are bytes, None where the line does not tell.
    """

    cause: Optional[Cause]
    evidence: Evidence
    detail: str = ""
    confidence: Confidence = Confidence.STDERR
    used: Optional[int] = None
    limit: Optional[int] = None


# ---- scontrol -------------------------------------------------------------------------------

_STATE_FIELD = re.compile(
    r"(?:^|(?<=\s))JobState=(?P<state>[A-Za-z_,+]+)(?:\s+Reason=(?P<reason>\S+))?"
    r"(?P<dependency>\s+(?:FailedNode=\S*\s+)?Dependency=)?",
    re.MULTILINE,
)


def read_scontrol(text: str) -> List[JobView]:
    """Return the jobs that a (perhaps cut) output of ``scontrol show job`` shows.

    A record in which more than one state could be meant is left out.
    """
    starts = [m.start() for m in re.finditer(r"^[ \t]*JobId=", text, re.MULTILINE)]
    pieces = [text[a:b] for a, b in zip(starts, starts[1:] + [len(text)])] or [text]
    if starts and starts[0] > 0 and "JobState=" in text[: starts[0]]:
        pieces.insert(0, text[: starts[0]])
    return [view for view in map(_read_record, pieces) if view is not None]


def _read_record(record: str) -> Optional[JobView]:
    try:
        return parse_record(record.strip() + "\n")
    except OutputParseError:
        pass
    found = list(_STATE_FIELD.finditer(record))
    if len(found) > 1:
        found = [m for m in found if m.group("dependency")]
    if len(found) != 1:
        return None
    before = record[: found[0].start()].rpartition("\n")[2]
    if "JobName=" in before and "UserId=" not in before and not found[0].group("reason"):
        # What looks like a state may be a part of the job's name.
        return None
    rest = record[found[0].end():]
    exit_field = re.search(r"(?:^|\s)ExitCode=([0-9]+:[0-9]+)", rest)
    job = re.match(r"\s*JobId=(\S+)", record)
    task = re.match(r"\s*JobId=\S+\s+ArrayJobId=([0-9]+)\s+ArrayTaskId=([0-9]+)\b", record)
    return sighting(
        "scontrol",
        Confidence.CONTROLLER,
        found[0].group("state"),
        job=f"{task.group(1)}_{task.group(2)}" if task else job.group(1) if job else None,
        reason=found[0].group("reason") or "",
        exit_text=exit_field.group(1) if exit_field else "",
    )


# ---- mails and seff -------------------------------------------------------------------------

_MAIL = re.compile(
    r"slurm (?:array )?(?:summary |task )?job_?id=(?P<id>\S+)(?: \([0-9]+\))? name=.* "
    r"(?P<what>began|ended|failed|requeued|reached time limit|reached [0-9]+% of time limit"
    r"|invalid dependency|staged out|completed|cancelled)(?P<rest>(?:, .*)?)$",
    re.IGNORECASE,
)
_STATE_LINE = re.compile(
    r"^\W*(?:job )?state\s*[:=]\s*(?P<state>[A-Za-z_]+(?: by \S+)?\+?)"
    r"\s*(?:\(exit code:? (?P<code>[0-9]{1,3})\))?\W*$",
    re.IGNORECASE,
)
_ID_LINE = re.compile(r"^\W*job ?id\s*[:=]\s*(?P<id>\S+)", re.IGNORECASE)


def read_mails(lines: List[str]) -> List[JobView]:
    """Return the jobs of Slurm's own mails (their subjects say all)."""
    return [view for view in map(_read_mail, lines) if view is not None]


def _read_mail(line: str) -> Optional[JobView]:
    match = _MAIL.search(line.strip())
    if match is None:
        return None
    what = match.group("what").lower()
    state, code = "", None
    for part in match.group("rest").split(", "):
        number = re.fullmatch(r"ExitCode \[?([0-9]{1,3})\]?", part.strip(), re.IGNORECASE)
        if number:
            code = int(number.group(1))
        elif canonical_state(part) is not SlurmState.UNKNOWN and part.strip().isupper():
            state = part.strip()
    if not state:
        # A failed array (Mixed) or a mail without a state says only what its word says.
        state = {
            "began": "RUNNING", "ended": "COMPLETED" if code == 0 else "FAILED",
            "failed": "FAILED", "requeued": "REQUEUED", "reached time limit": "TIMEOUT",
            "completed": "COMPLETED", "cancelled": "CANCELLED", "invalid dependency": "PENDING",
        }.get(what, "RUNNING")
    reason = "DependencyNeverSatisfied" if what == "invalid dependency" else ""
    return sighting(
        "mail", Confidence.CONTROLLER, state, job=match.group("id"), reason=reason,
        exit_code=code if state == "FAILED" else None,
    )


def read_state_lines(lines: List[str]) -> List[JobView]:
    """Return the jobs of seff and its like: ``State: FAILED (exit code 1)``."""
    views: List[JobView] = []
    job: Optional[str] = None
    for line in lines:
        named = _ID_LINE.match(line)
        if named:
            job = named.group("id")
        match = _STATE_LINE.match(line)
        if match and canonical_state(match.group("state")) is not SlurmState.UNKNOWN:
            code = match.group("code")
            views.append(
                sighting(
                    "seff", Confidence.ACCOUNTING, match.group("state"), job=job,
                    exit_code=int(code) if code else None,
                )
            )
    return views


# ---- stderr and logs ------------------------------------------------------------------------

_WARNING = re.compile(r"exceeded (?:\w+ )?memory limit at some point", re.IGNORECASE)
_KILLED = re.compile(r"(?:^|\s)Killed(?:\s|$)")
_SRUN_TASK = re.compile(
    r"(?:srun|slurmstepd\S*): error: .*tasks? [0-9,-]+: (?P<how>.+?)\s*(?:\(core dumped\))?$"
)
_CRASHES = re.compile(
    r"Segmentation fault|Aborted|Bus error|Floating point exception|Illegal instruction",
    re.IGNORECASE,
)


def read_stderr(text: str, external_id: Optional[str]) -> Optional[Ended]:
    """Return what Slurm's lines in a stderr say of the end, srun's on its tasks included."""
    finding = classify_stderr(text, external_id)
    lines = [line[:_LONGEST_LINE] for line in split_lines(text)]
    lines = [line for line in lines if names_job(line, external_id, silent=True)]
    killed = any(_KILLED.search(line) for line in lines)
    warnings = [line for line in lines if _WARNING.search(line) and "slurm" in line]
    if warnings and killed and (finding is None or finding.cause is Cause.CANCELLED):
        return Ended(
            Cause.MEMORY, Evidence("stderr", "line", warnings[-1]),
            "it exceeded its memory limit at some point, and was killed", Confidence.INFERRED,
        )
    if finding is not None and finding.cause is not Cause.CANCELLED:
        return Ended(
            finding.cause, finding.evidence, finding.detail,
            used=finding.used_bytes, limit=finding.limit_bytes,
        )
    task = _read_srun_task(lines)
    if finding is not None:
        # srun tears the other tasks down after one has failed by itself.
        torn_down = task is not None and "STEP" in finding.evidence.value
        if torn_down and task is not None and task.cause is not Cause.UNKNOWN:
            return task
        return Ended(finding.cause, finding.evidence, finding.detail)
    return task


def _read_srun_task(lines: List[str]) -> Optional[Ended]:
    unknown = None
    for line in lines:
        match = _SRUN_TASK.search(line)
        if match is None:
            continue
        evidence = Evidence("stderr", "line", line)
        code = re.match(r"Exited with exit code ([0-9]{1,3})$", match.group("how"))
        if code:
            return _by_exit_code(int(code.group(1)), evidence, Confidence.STDERR)
        if _CRASHES.match(match.group("how")):
            return Ended(Cause.TOOL_ERROR, evidence, f"it crashed: {match.group('how')}")
        if match.group("how").startswith(("Killed", "Terminated")):
            unknown = Ended(Cause.UNKNOWN, evidence, "it was killed, and nothing says by what")
    return unknown


def _by_exit_code(code: int, evidence: Evidence, confidence: Confidence) -> Ended:
    cause, detail = cause_of_exit(code, None, "Slurm")
    return Ended(cause, evidence, detail, confidence)


_LOG_PREFIX = re.compile(
    r"^\s*(?:\S+ )?(?:[A-Z][a-z]{2} +[0-9]+ [0-9:]{8} \S+ )?"
    r"(?:slurm(?:ctld|d|stepd)(?:\[[0-9]+\])?: )?"
    r"(?:\[[0-9T:. -]+(?:[+-][0-9:]+)?\]\s*)?"
    r"(?P<step>\[(?P<id>[0-9_+]+)(?:\.[a-z0-9]+)?\]\s*)?"
)
_REQUEUED = re.compile(r"requeu", re.IGNORECASE)
_LOG_RULES = (
    (r"JobId=\S+ OOM failure|oom[-_ ]kill", Cause.MEMORY, ""),
    (r"Time limit exhausted for JobId=|DUE TO TIME LIMIT", Cause.WALLTIME, ""),
    (r"deadline\b.*JobId=|JobId=\S+.*\bdeadline\b", Cause.WALLTIME, "the job's deadline"),
    (r"preempted JobId=\S+ has been killed|DUE TO PREEMPTION", Cause.PREEMPTED, ""),
    (
        r"Killing JobId=\S+ on (?:failed|DOWN) node|missing from (?:batch )?node|on failed node"
        r"|DUE TO NODE FAIL|JobId=\S+ .*due to failure of node",
        Cause.NODE_FAILURE, "",
    ),
    (r"(?:job_rc|slurm_rc|error|status)\s?[=:]\s?4021\b|could not open std(?:out|err)",
     Cause.DISK, OUTPUT_NOT_OPENED),
    (r"prolog (?:failed|error|launch failure)|slurm_rc\s?[=:]\s?4020\b",
     Cause.LAUNCH_ERROR, "the prolog failed"),
    (r"REQUEST_KILL_JOB JobId=\S+ uid|REQUEST_CANCEL_JOB|_job_signal: 9 of", Cause.CANCELLED, ""),
)
_STATUS = re.compile(r"(?:job_rc|job status|status)\s?[=:]?\s?(?P<status>[0-9]{1,5})\s*$")


def read_log(text: str, external_id: Optional[str]) -> Optional[Ended]:
    """Return what slurmctld's or slurmd's log says of one job's end.

    None where it says nothing, or speaks of the ends of several jobs and none was asked for.
    """
    found: List[Tuple[str, Ended]] = []
    for line in (line[:_LONGEST_LINE] for line in split_lines(text)):
        prefix = _LOG_PREFIX.match(line)
        said = line[prefix.end():] if prefix else line
        named = re.search(r"Job(?:Id=|_?id[= ])([0-9]+)|\b(?:JOB|STEP) ([0-9]+)", said)
        job = (prefix.group("id") if prefix and prefix.group("id") else "") or (
            next(filter(None, named.groups())) if named else ""
        )
        if not names_job(f"JobId={job}" if job else line, external_id, silent=True):
            continue
        ended = _log_line(said)
        if ended is not None:
            found.append((re.sub(r"[^0-9].*", "", job), ended))
    if external_id is None and len({job for job, _ in found if job}) > 1:
        return None
    causes = [ended for _, ended in found]
    decisive = [e for e in causes if e.confidence is not Confidence.INFERRED]
    ordered = decisive or causes
    return ordered[0] if ordered else None


def _log_line(said: str) -> Optional[Ended]:
    evidence = Evidence("log", "line", said)
    if _REQUEUED.search(said):
        return None
    finding = find_in_lines([said]) if re.search(r"error: |, being killed", said) else None
    for pattern, cause, detail in _LOG_RULES:
        if re.search(pattern, said, re.IGNORECASE):
            return Ended(cause, evidence, detail, Confidence.EVENT_LOG)
    if finding is not None:
        return Ended(finding.cause, evidence, finding.detail, Confidence.EVENT_LOG)
    left = re.search(r"\bWEXITSTATUS ([0-9]{1,3})\b", said)
    if left:
        return _by_exit_code(int(left.group(1)), evidence, Confidence.INFERRED)
    killed = re.search(r"\bWTERMSIG ([0-9]{1,3})\b", said)
    status = _STATUS.search(said)
    if killed or (status and re.search(r"slurm_rc|REQUEST_COMPLETE_BATCH_SCRIPT", said)):
        raw = int(killed.group(1)) if killed else int(status.group("status")) if status else 0
        if raw & 0x7F == 53:
            return Ended(Cause.DISK, evidence, OUTPUT_NOT_OPENED, Confidence.EVENT_LOG)
        own_cause, own_detail = cause_of_exit(raw >> 8, raw & 0x7F or None, "Slurm")
        return Ended(own_cause, evidence, own_detail, Confidence.INFERRED)
    return None


# ---- what is not Slurm's --------------------------------------------------------------------

_REFUSED = re.compile(
    r"(?:sbatch|srun|salloc): (?:error: )?(?:Batch job submission failed"
    r"|Unable to allocate resources|Job submit/allocate failed): (?P<why>.*)"
)
_CLIENT_OUTAGE = re.compile(
    r"contact slurm controller|timed out|authentication|connect|try again|temporarily|database"
    r"|not responding|standby|communicat",
    re.IGNORECASE,
)


def read_other(text: str) -> Optional[Ended]:
    """Return what shells, tools and engines wrote about the end: the weakest evidence.

    Never a limit: a tool that prints "out of memory" or "time limit reached" proves nothing.
    """
    lines = split_lines(text)
    for line in lines:
        refused = _REFUSED.search(line)
        if refused and _CLIENT_OUTAGE.search(refused.group("why")):
            return None
        if refused:
            detail = f"submission refused: {refused.group('why')}"
            evidence = Evidence("stderr", "line", line)
            return Ended(Cause.LAUNCH_ERROR, evidence, detail, Confidence.INFERRED)
    told = read_tool_lines(lines)
    if told is None:
        return None
    return Ended(told.cause, told.evidence[0], told.detail, Confidence.INFERRED)
