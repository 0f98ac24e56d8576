"""Lines about a PBS job's end that are no attributes: mails, logs, Moab's words.

Each reader returns what it found or nothing; :mod:`.captured` weighs them.
"""

from __future__ import annotations

import re
from typing import List, NamedTuple, Optional, Pattern, Sequence, Tuple

from ...reason import Cause, Confidence, Evidence
from ..base import JobView
from ..captured import Captured, alive, ended, from_view
from .classify import PbsJob, view_of
from .exit_status import exit_code_of
from .fields import plain_name
from .flavour import Flavour


class _Rule(NamedTuple):
    """``cause`` None with ``is_alive`` says that the job goes on."""

    pattern: Pattern[str]
    cause: Optional[Cause]
    detail: str = ""
    is_alive: bool = False


def _rule(
    pattern: str, cause: Optional[Cause], detail: str = "", is_alive: bool = False
) -> _Rule:
    return _Rule(re.compile(pattern, re.IGNORECASE), cause, detail, is_alive)


_USAGE = r"(?:exceed(?:ed|s|ing)|over|violat(?:ed|es)) (?:its |the |a )?(?:requested |maximum )?"

#: What Moab, Maui and the server say of why; by priority, since "deleted at request of root" is
#: how all of it is done. A soft limit is a warning.
_WHY: Tuple[_Rule, ...] = (
    _rule(r"exceeded .*\bsoft limit", None, "a warning", is_alive=True),
    _rule(
        rf"{_USAGE}(?:wall ?clock|wall ?time)(?: time)?(?: usage)? ?(?:hard )?limit"
        r"|wall ?(?:clock|time) (?:limit|violation|overrun)|exceeded resource walltime"
        r"|\bwalltime [0-9:.]+ exceeded limit",
        Cause.WALLTIME,
    ),
    _rule(
        rf"{_USAGE}(?:\w+ ){{0,2}}?(?:mem(?:ory)?|swap|vmem|pmem|pvmem|virtual memory)\b.*\blimit"
        r"|exceeded resource p?v?mem\b|\bp?v?mem\b.* exceeded limit [0-9]",
        Cause.MEMORY,
    ),
    _rule(
        rf"{_USAGE}(?:\w+ ){{0,2}}?(?:cpu ?time|cput|pcput|cpu)\b.*\blimit"
        r"|exceeded resource p?cput|\bp?cput [0-9:.]+ exceeded limit",
        Cause.CPU_TIME,
    ),
    _rule(rf"{_USAGE}(?:\w+ ){{0,2}}?(?:disk|file(?: size)?)\b.*\blimit", Cause.DISK),
    _rule(rf"{_USAGE}\w+ usage (?:hard )?limit|exceeded resource ncpus", Cause.UNKNOWN,
          "it used more of a resource than its limit"),
    _rule(
        r"node failure|could not connect to MOM|node .{0,60}(?:failed|went down|is down)"
        r"|lost contact with|sister .{0,40}(?:failed|died|error)|requested job (?:terminate|die)",
        Cause.NODE_FAILURE,
    ),
    _rule(r"job (?:was )?preempted|preempting job|preempted by", Cause.PREEMPTED),
    _rule(
        r"Post job file processing error|Unable to copy file|unable to stage out"
        r"|File .{0,200}(?:could not be|not) copied|cannot (?:open|create) (?:std)?(?:out|err)put",
        Cause.DISK, "its output files could not be delivered",
    ),
    _rule(
        r"too many failed attempts to (?:run|start)",
        Cause.NODE_FAILURE, "PBS could not start it, several times",
    ),
    _rule(
        r"(?:deleted|rejected) .{0,40}(?:as result of|because of) dependency|dependency .{0,40}"
        r"(?:rejected|failed|never)",
        Cause.CANCELLED, "a job that it depended on failed",
    ),
    _rule(
        r"job cannot be executed|cannot execute|Unable to run job|no password entry"
        r"|Bad UID for job execution|could not be started|exec\(\) of user command failed",
        Cause.LAUNCH_ERROR,
    ),
    _rule(r"^job was rejected", Cause.CANCELLED, "the scheduler removed it before it ran"),
)

_DELETED = re.compile(
    r"(?:^|;|\s)Job (?:to be )?deleted(?: as result of)?(?: at request of (?P<who>[^\s;,]+))?"
    r"|^job (?:deleted|cancell?ed)\b|Job purged|delete job request from (?P<other>[^\s;,]+)"
    r"|job cancelled by (?P<third>\S+)",
    re.IGNORECASE,
)
_EXIT_STATUS = re.compile(
    r"(?:^|[\s;(])exit[_ ]?(?:status|code)\s*[=:]\s*(?P<number>-?[0-9]{1,4})(?![0-9:])",
    re.IGNORECASE,
)
_USED = re.compile(
    r"(?P<name>(?:resources_used|Resource_List)\.(?:walltime|cput|mem|vmem))\s*=\s*(?P<value>\S+)"
)
_BEGAN = re.compile(
    r"^Begun execution|^Job (?:started|began) |;Job Run at request|\sJob Run at request"
    r"|^\s*State:\s+(?:Running|Idle|Starting|Deferred|Hold|Suspended|BatchHold|UserHold)\b",
    re.IGNORECASE,
)
_RERUN = re.compile(
    r"Job Rerun at request of (?P<who>\S+)|requeu(?:ed|eing) job|Job requeued|job rerun\b",
    re.IGNORECASE,
)
_CHECKJOB_END = re.compile(
    r"\b(?:Completion Code|Exit Code):\s*(?P<number>-?[0-9]{1,4})\b", re.IGNORECASE
)
_LOG_LINE = re.compile(
    r"^[0-9]{2}/[0-9]{2}/[0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?"
    r"(?:\s+(?P<who>[SLMA])\s+|;[0-9a-f]{4};(?P<daemon>[^;]*);(?P<kind>\w*);(?P<id>[^;]*);)"
    r"(?P<said>.*)$"
)


#: ``04/05/2019 12:00:00;E;123.server;user=...``: the server's accounting.
_ACCOUNTING_LINE = re.compile(
    r"^[0-9]{2}/[0-9]{2}/[0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2};(?P<letter>[ADEQRS]);(?P<id>[^;]*);"
    r"(?P<said>.*)$"
)
#: What its letters say, in the words of the server's log.
_LETTERS = {
    "A": "Job was aborted by the server", "Q": "Job Queued",
    "R": "Job Rerun at request of server", "S": "Job Run at request of server",
}


def _log_said(line: str) -> "Optional[tuple[Optional[str], str]]":
    """Return (id, what was said) of a line of a log or of accounting; None for any other."""
    match = _LOG_LINE.match(line)
    if match:
        return match.group("id"), match.group("said").strip()
    record = _ACCOUNTING_LINE.match(line)
    if record is None:
        return None
    said = record.group("said").strip()
    if record.group("letter") == "D":
        who = re.search(r"\brequestor=(\S+)", said)
        return record.group("id"), "Job deleted" + (f" at request of {who.group(1)}" if who else "")
    return record.group("id"), _LETTERS.get(record.group("letter"), said)


def read_mail(lines: Sequence[str], flavour: Flavour) -> Optional[Captured]:
    """Return what the server's or Moab's mail, or ``checkjob``, says; None: nothing."""
    why = _why(lines, Confidence.CONTROLLER, "mail")
    status = _exit_status(lines, flavour, "mail")
    if why is not None and why.cause is not Cause.UNKNOWN and not _is_aftermath(why, status):
        return why
    deleted = _deleted(lines, "mail")
    if status is not None and not (deleted and status.cause in (None, Cause.UNKNOWN)):
        return status
    if deleted or why:
        return deleted or why
    for line in lines:
        if _BEGAN.search(line):
            return alive(Evidence("mail", "line", line))
    return None


def _is_aftermath(why: Captured, status: Optional[Captured]) -> bool:
    """A job that PBS could not start leaves no output to deliver."""
    return (
        why.cause is Cause.DISK
        and status is not None
        and status.cause not in (None, Cause.UNKNOWN, Cause.TOOL_ERROR)
    )


def _why(
    lines: Sequence[str], confidence: Confidence, source: str
) -> Optional[Captured]:
    for rule in _WHY:
        for line in lines:
            if rule.pattern.search(line[:2000]) and not _is_only_soft(rule, line):
                if rule.is_alive:
                    continue
                return ended(
                    rule.cause, Evidence(source, "line", line), rule.detail, confidence
                )
    return None


def _is_only_soft(rule: _Rule, line: str) -> bool:
    return not rule.is_alive and re.search(r"\bsoft limit", line, re.IGNORECASE) is not None


def _deleted(lines: Sequence[str], source: str) -> Optional[Captured]:
    found: Optional[Captured] = None
    for line in lines:
        match = _DELETED.search(line)
        if match is None or re.search(r"cannot be cancelled", line, re.IGNORECASE):
            continue
        who = match.group("who") or match.group("other") or match.group("third")
        if found is None or who:
            found = ended(
                Cause.CANCELLED, Evidence(source, "line", line), "", Confidence.CONTROLLER,
                plain_name(who) if who else None,
            )
    return found


def _exit_status(
    lines: Sequence[str], flavour: Flavour, source: str
) -> Optional[Captured]:
    """The last Exit_status with the usage beside it, judged as that of an ended job."""
    attributes = {}
    evidence: Optional[str] = None
    for line in lines:
        match = _EXIT_STATUS.search(line) or _CHECKJOB_END.search(line)
        if match:
            attributes["exit_status"] = match.group("number")
            evidence = line
        for used in _USED.finditer(line):
            attributes[used.group("name").lower()] = used.group("value")
    if evidence is None:
        return None
    view = ended_view(attributes, flavour, source)
    captured = requeued(attributes["exit_status"], flavour, evidence, source)
    return captured or from_view(view, "PBS")


def ended_view(attributes: "dict[str, str]", flavour: Flavour, source: str) -> JobView:
    """Return the view of a job of which only the end is told (no state, no id)."""
    # It has run: it has an exit status.
    job = PbsJob("", {"job_state": "C", "stime": "said", **attributes})
    return view_of(job, flavour, source)


def requeued(
    number: str, flavour: Flavour, line: str, source: str
) -> Optional[Captured]:
    """Return that the job goes on, where its Exit_status says that PBS starts it again."""
    meaning = exit_code_of(int(number), flavour) if number.startswith("-") else None
    if meaning is None or not meaning.requeues:
        return None
    return alive(Evidence(source, "Exit_status", line), meaning.detail)


_MAIL_MARKS = re.compile(
    r"PBS Job Id|MOAB_INFO|\bexceeded \w+ usage (?:hard|soft) limit|at request of \S+@"
    r"|^\s*Message\[|Completion Code:|^\s*State: +[A-Z]|^\s*(?:Aborted by PBS|Execution termin)"
    r"|exit_status\s?=\s?-?[0-9]",
    re.MULTILINE | re.IGNORECASE,
)


def may_be_mail(text: str, source: str) -> bool:
    """Tell whether a text is a mail or checkjob's, and not a tool's that has words of them."""
    told = re.search(r"mail|checkjob|moab|exit_status|tracejob|\blog", source.lower())
    return told is not None or _MAIL_MARKS.search(text) is not None


# ---- tracejob and server logs -----------------------------------------------------------------


def is_log(lines: Sequence[str]) -> bool:
    """Tell whether any line is one of a log of PBS, or of tracejob."""
    return any(_log_said(line) is not None for line in lines)


def read_log(
    lines: Sequence[str], flavour: Flavour, external_id: Optional[str]
) -> Optional[Captured]:
    """Return what the log lines say in the end; the newest run of the job decides."""
    run: List[str] = []
    rerun: Optional[Captured] = None
    for line in lines:
        told = _log_said(line)
        if told is None or not _is_of(told[0], external_id):
            continue
        said = told[1]
        again = _RERUN.search(said)
        if again and not said.lower().startswith("exit_status"):
            run, rerun = [], _rerun(again, said)
        elif re.search(r"\bJob Run at request", said):
            run, rerun = [said], None
        else:
            run.append(said)
    preempted = _preempted(run) if rerun is not None else None
    if preempted is not None:
        return preempted
    found = _end_of_run(run, flavour)
    return found or rerun


def _is_of(found: Optional[str], external_id: Optional[str]) -> bool:
    if not found or external_id is None or not found[0].isdigit():
        return True
    return found.partition(".")[0] == external_id.partition(".")[0]


def _rerun(match: "re.Match[str]", said: str) -> Captured:
    return alive(Evidence("tracejob", "line", said), "PBS took it back to start it again")


def _preempted(run: Sequence[str]) -> Optional[Captured]:
    for said in run:
        if re.search(r"preempt", said, re.IGNORECASE):
            return ended(
                Cause.PREEMPTED, Evidence("tracejob", "line", said),
                "PBS took it back to start it again", Confidence.EVENT_LOG,
            )
    return None


def _end_of_run(run: Sequence[str], flavour: Flavour) -> Optional[Captured]:
    why = _why(run, Confidence.EVENT_LOG, "tracejob")
    status = _exit_status(run, flavour, "tracejob")
    deleted = _deleted(run, "tracejob")
    if why is not None and why.cause is not Cause.UNKNOWN and not _is_aftermath(why, status):
        return why
    if status is not None and status.cause not in (None, Cause.UNKNOWN, Cause.TOOL_ERROR):
        return status if status.cause is not Cause.CANCELLED or deleted is None else deleted
    if deleted is not None:
        return deleted
    if status is not None or why is not None:
        return status or why
    for said in run:
        if said.startswith("Job Run at request") or re.match(r"(?:enqueuing|Job Queued)", said):
            return alive(Evidence("tracejob", "line", said))
    return None
