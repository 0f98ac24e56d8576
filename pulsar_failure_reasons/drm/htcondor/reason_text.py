"""What a hold or removal reason says in words: HTCondor's own texts and those of sites.

Needed where the code does not decide: 3 and 26 (any rule of the job or the site), 34 of old
versions, removal reasons, and texts quoted without a code. A text decides only if one of its
clauses states one limit as exceeded; a mere mention of memory or disk does not.
"""

from __future__ import annotations

import re
from typing import List, NamedTuple, Optional, Pattern, Set, Tuple

from ...reason import Cause

#: Longest reason we look at; HTCondor itself cuts at 8191.
_LONGEST_REASON = 10_000

#: Colours and control characters, but not the ends of lines.
_NOISE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0e-\x1f\x7f]")
_FROM_STARTER = re.compile(r"^\s*error from \S+:\s*", re.IGNORECASE)
_BY_USER = re.compile(r"\(by user ([^\s)]+)\)")


class TextFinding(NamedTuple):
    """A limit that a text states, and whether only the expression of a policy was read."""

    cause: Cause
    from_expression: bool = False


def clean_reason(reason: Optional[str]) -> str:
    """Return a reason without "Error from slot1@node:", on one line; "" for none."""
    one_line = " ".join(_NOISE.sub(" ", (reason or "")[:_LONGEST_REASON]).split())
    without = _FROM_STARTER.sub("", one_line)
    return "" if without.lower() == "reason unspecified" else without


def person_in(reason: Optional[str]) -> Optional[str]:
    """Return who acted, from "via condor_rm (by user alice)"; None where it does not say."""
    found = _BY_USER.findall(reason or "")
    return found[-1].partition("@")[0] if found else None


def is_by_person(reason: Optional[str]) -> bool:
    """Tell whether a tool in somebody's hands wrote the reason, not a policy or a daemon."""
    text = reason or ""
    return bool(
        person_in(text)
        or re.search(r"\bvia condor_(hold|rm|qedit|release)\b", text)
        or re.search(r"submitted on hold at user's request", text, re.IGNORECASE)
        or re.search(r"^python-initiated action\b", text.strip(), re.IGNORECASE)
        or re.search(r"^job was aborted by the user", text.strip(), re.IGNORECASE)
    )


def is_by_policy(reason: Optional[str]) -> bool:
    """Tell whether a rule of the job or the site acted, whatever it looked at."""
    text = reason or ""
    return bool(
        re.search(r"\bput on hold by\b|SYSTEM_PERIODIC_|SYSTEM_ON_EXIT_", text)
        or re.search(r"\b(?:Periodic|OnExit)(?:Hold|Remove)\b|\bby (?:site )?policy\b", text)
        or re.search(r"\bwast(?:e|es|ed|ing)\b|\brequest_cpus\b", text, re.IGNORECASE)
        or re.search(r"\b(?:re)?start(?:ed|s) (?:too many|\d+) times\b", text, re.IGNORECASE)
    )


# --- limits in words ---------------------------------------------------------------------

#: "over" alone is no word for it: "memory averaged over 5 minutes".
_OVER = (
    r"(?:exceed\w*\b(?!\s+(?:any|what|all)\b)|excess\w*|overus\w*|above|beyond|reached|hit"
    r"|surpass\w*|>=?"
    r"|too\s+(?:much|large|big|high|long|many)"
    r"|(?:more|greater|larger|longer|higher|bigger)\s+(?:\w+\s+){0,3}than"
    r"|(?:gone|went|goes|going|usage|use|is|was)\s+over"
    r"|over\s+(?:the|its|request\w*|limit\w*|memory|disk|quota|allow\w*|alloc\w*|wall\w*"
    r"|[\d.]+\s*[kmgt]i?b)"
    r"|ran\s+out|out\s+of|violat\w*\s+(?:\w+\s+){0,3}(?:limit|quota|request)\w*)"
)
#: "due to memory usage 3000000" has no word for "exceeded".
_DUE_TO = (
    r"\b(?:due\s+to|because\s+of|(?:held|killed|removed|stopped)\s+(?:for|by))\s+"
    r"(?:(?:its|the|high|excessive|cgroup)\s+)*"
)
_NEAR = r"[^.;|]{0,80}?"


def _either_way(subject: str, over: str = _OVER) -> str:
    """Return a pattern for the subject and a word for "exceeded" in one clause, in any order."""
    return (
        rf"(?:\b{subject}{_NEAR}(?<![\w-]){over}|(?<![\w-]){over}{_NEAR}\b{subject}"
        rf"|\bmore\s+{subject}\s+than\b)"
    )


_MEMORY = (
    r"(?:mem(?:ory)?(?:\s*usage)?\b|memoryusage|request_?memory|rss\b|resident\s*set\s*size"
    r"|image\s*size|vmem\b|pss\b|virtual\s+(?:memory|size)|ram\b)"
)
_DISK = (
    r"(?:disk(?:\s*(?:usage|space|quota))?\b|diskusage|request_?disk|scratch(?:\s*space)?\b|quota\b"
    r"|file\s?system\b|sandbox(?:\s*size)?\b|/tmp\b)"
)
_CPU_TIME = r"(?:cpu[- ]?(?:time|seconds|minutes|hours|hrs|secs)\b|cputime\b|cput\b)"
_WALL_CLOCK = (
    r"(?:wall[- ]?(?:clock)?[- ]?(?:time|limit|hours)?\b|run[- ]?time\b|time\s+limit\b"
    r"|execut(?:e|ion)\s+(?:duration|time)\b|job\s+duration\b|life\s?time\b|elapsed\s+time\b"
    r"|time\s+allow(?:ed|ance)\b|maximum\s+time\b|max\w*\s*run\w*\b|allowed\s+time\b)"
)
_RAN_LONG = (
    r"(?:\b(?:ran|run|runs|running|been\s+running|executing)\b[^.;|]{0,30}?"
    r"\b(?:limit\s+\d|too\s+long|longer\s+than|for\s+(?:more|longer)\s+than|(?:for\s+)?over\s+\d"
    r"|more\s+than\s+[\d.]+\s*(?:s|sec\w*|m|min\w*|h|hour\w*|hr\w*|d|day\w*)\b|past\s+its))"
)

_LIMIT_RULES: Tuple[Tuple[Cause, Pattern[str]], ...] = tuple(
    (cause, re.compile(pattern, re.IGNORECASE))
    for cause, pattern in (
        (
            Cause.MEMORY,
            _either_way(_MEMORY)
            + r"|\bout[- ]of[- ]memory\b|\boom(?:[- ]?kill\w*)?\b"
            + rf"|{_DUE_TO}{_MEMORY}|\bhigh\s+{_MEMORY}",
        ),
        (
            Cause.DISK,
            _either_way(_DISK)
            + r"|\bno\s+space\s+left\b|\b(?:disk|file\s?system)\s+(?:is\s+)?full\b"
            + r"|errno\s*=?:?\s*(?:28|122)\b|\bENOSPC\b|\bEDQUOT\b"
            + rf"|{_DUE_TO}{_DISK}",
        ),
        (Cause.CPU_TIME, _either_way(_CPU_TIME)),
        (
            Cause.WALLTIME,
            _either_way(_WALL_CLOCK)
            + rf"|{_RAN_LONG}|{_DUE_TO}{_WALL_CLOCK}"
            + r"|^\W*(?:wall[- ]?(?:clock)?[- ]?time|time)(?:[- ]?(?:limit|out))?\W*$",
        ),
    )
)

#: A clause with one of these states no limit as exceeded, whatever else it names.
_NO_LIMIT = re.compile(
    r"\bwast\w+|\bless\s+than|\bunder[- ]?(?:us|util)\w*|\bbelow\b"
    r"|\btoo\s+(?:little|few|small|low|short)\b"
    r"|\b(?:not|never|no|nor|without|hasn't|didn't|doesn't|isn't|wasn't)\s+(?:\w+\s+){0,3}?"
    r"(?:exceed\w*|over|reach\w*|hit|due|because|for|memory|disk|wall|time|limit|out\s+of)"
    r"|\bwithin\s+(?:its|the|all|limits?)\b|\bidle\b|\b(?:held|hold)\s+(?:status|state)\b"
    r"|\b(?:being\s+held|on\s+hold\s+for)\b|\bnumber\s+of\s+(?:restarts|starts|holds)\b"
    r"|\bretir\w+|\b(?:must|should|need(?:s|ed)?\s+to|please)\s+(?:be\s+)?"
    r"(?:specif\w+|set|request\w*|define\w*|give\w*)"
    r"|\b(?:invalid|missing|undefined|unspecified|bad)\s+(?:request|memory|disk|wall|run|time)"
    r"|\b(?:more|greater|larger|higher)\s+(?:\w+\s+)?than\s+(?:is\s+)?(?:any|available|offered)"
    r"|\bno\s+(?:machine|slot|node|resource|matching)\w*",
    re.IGNORECASE,
)
_ADVICE = re.compile(
    r"\b(?:consider|please|try|hint|you\s+(?:may|can|should)"
    r"|increas\w+\s+(?:the\s+)?(?:value|request))\b.*$",
    re.IGNORECASE,
)
_CLAUSE_ENDS = re.compile(r"[.;|](?=\s|$|\D)|\s+-\s+|\s*\n\s*")


def limit_in_text(reason: Optional[str]) -> Optional[TextFinding]:
    """Return the one limit that a reason states as exceeded; None where it states none.

    The first clause that states exactly one decides; advice ("consider a higher
    request_memory") is not read. A policy's bare expression counts only if all its
    alternatives compare the same resource.
    """
    text = clean_reason(reason)
    expression = _EXPRESSION.search(text)
    if expression:
        cause = _limit_in_expression(expression.group("expression"))
        return TextFinding(cause, from_expression=True) if cause else None
    for clause in _CLAUSE_ENDS.split(text):
        stated = _ADVICE.sub("", clause)
        causes = _limits_in_clause(stated)
        if len(causes) > 1:
            causes = set().union(*map(_limits_in_clause, stated.split(",")))
        if len(causes) == 1:
            return TextFinding(causes.pop())
    return None


def _limits_in_clause(clause: str) -> Set[Cause]:
    if _NO_LIMIT.search(clause):
        return set()
    found = {cause for cause, pattern in _LIMIT_RULES if pattern.search(clause)}
    if Cause.CPU_TIME in found:
        # "CPU time limit" also has the words for a time limit.
        found.discard(Cause.WALLTIME)
    return found


# --- limits in a policy's expression -----------------------------------------------------

_EXPRESSION = re.compile(
    r"\b(?:(?:Periodic|OnExit)(?:Hold|Remove)\b|SYSTEM_(?:PERIODIC|ON_EXIT)_(?:HOLD|REMOVE)\w*)"
    r"\s+expression\s+'(?P<expression>.*)'\s+evaluated to TRUE",
    re.IGNORECASE,
)
_ABOVE = r"[^<>=!&|]*>=?(?!=)"
_RESOURCES_IN_EXPRESSION: Tuple[Tuple[Cause, Pattern[str]], ...] = tuple(
    (cause, re.compile(rf"(?:{names}){_ABOVE}|<=?[^<>=!&|]*(?:{names})", re.IGNORECASE))
    for cause, names in (
        (
            Cause.MEMORY,
            r"\bMemoryUsage\b|\bResidentSetSize\w*|\bImageSize\w*|\bProportionalSetSize\w*",
        ),
        (Cause.DISK, r"\bDiskUsage\w*|\bScratchDirFileCount\b"),
        (Cause.CPU_TIME, r"\b(?:Cumulative)?Remote(?:User|Sys)Cpu\b"),
        (
            Cause.WALLTIME,
            r"\b(?:time\(\)|CurrentTime|ServerTime)\s*-\s*\(?\s*"
            r"Job(?:Current)?Start(?:Executing)?Date\b\)?"
            r"|\bRemoteWallClockTime\b|\bJobDurationSeconds\b",
        ),
    )
)
_SINCE_STATUS = re.compile(
    r"\b(?:time\(\)|CurrentTime|ServerTime)\s*-\s*\(?\s*EnteredCurrentStatus\b[^<>=!&|]*>=?", re.I
)
_IS_RUNNING = re.compile(r"\bJobStatus\s*(?:==|=\?=)\s*2\b", re.IGNORECASE)


def _limit_in_expression(expression: str) -> Optional[Cause]:
    """Return the resource that every alternative of the expression bounds from above."""
    if len(expression) > 2000:
        return None
    found: Set[Optional[Cause]] = set()
    for alternative in _alternatives(expression):
        found.add(_limit_in_conjunction(alternative))
    return found.pop() if len(found) == 1 else None


def _limit_in_conjunction(conjunction: str) -> Optional[Cause]:
    causes = {cause for cause, pattern in _RESOURCES_IN_EXPRESSION if pattern.search(conjunction)}
    if _IS_RUNNING.search(conjunction) and _SINCE_STATUS.search(conjunction):
        causes.add(Cause.WALLTIME)
    return causes.pop() if len(causes) == 1 else None


def _alternatives(expression: str) -> List[str]:
    """Split at every "||", however deep; "JobStatus == 2" before a bracket is passed on."""
    parts = expression.split("||")
    running = _IS_RUNNING.search(parts[0])
    prefix = f"{running.group(0)} && " if running else ""
    return parts[:1] + [prefix + part for part in parts[1:]]


# --- other causes, where there is no code ------------------------------------------------

_OTHER_RULES: Tuple[Tuple[Cause, Pattern[str]], ...] = tuple(
    (cause, re.compile(pattern, re.IGNORECASE))
    for cause, pattern in (
        (
            Cause.DISK,
            r"failed to open '.*' as standard (?:output|error)"
            r"|(?:can ?not|unable to|failed to) open"
            r" (?:standard )?(?:output|stdout|stderr|log)\b",
        ),
        (
            Cause.LAUNCH_ERROR,
            r"failed to execute|exec format error|create_process"
            r"|failed to start (?:job|executable)"
            r"|(?:initial )?working director|failed to open '.*' as standard input"
            r"|executable .*(?:not found|missing|cannot|does not exist)|not executable"
            r"|docker|singularity|apptainer|container|invalid image|\bimage\b.*(?:pull|not found)"
            r"|credential|proxy|x509|scitoken|no such user|user account"
            r"|account.* (?:invalid|expired)|setuid|SetEffectiveOwner"
            r"|prepare_?(?:job )?hook|hook.*prepare",
        ),
        (
            Cause.STAGE_ERROR,
            r"transfer\w* (?:input|output|checkpoint|of |files?\b)"
            r"|fail\w* to (?:transfer|send|receive)"
            r"|file transfer|FILETRANSFER|error (?:reading|writing|sending|receiving)"
            r"|(?:reading|writing|sending|receiving) (?:from |to )?file"
            r"|MAX_TRANSFER_|TransferInputSizeMB|max total (?:up|down)load bytes"
            r"|(?:SHADOW|STARTER) (?:at \S+ )?(?:failed|- )|stage[- ]?(?:in|out)",
        ),
    )
)


def other_cause_in_text(reason: Optional[str]) -> Optional[Cause]:
    """Return disk (output), launch_error or stage_error where HTCondor's texts say so."""
    text = clean_reason(reason)
    # A transfer that broke for a full disk is a full disk.
    for cause, pattern in _OTHER_RULES:
        if pattern.search(text):
            return cause
    return None


def says_no_space(reason: Optional[str]) -> bool:
    """Tell whether a text names a full file system or quota."""
    return bool(
        re.search(
            r"no space left|quota exceeded|errno\s*=?:?\s*(?:28|122)\b|ENOSPC|EDQUOT"
            r"|disk (?:is )?full",
            reason or "",
            re.IGNORECASE,
        )
    )


def is_plugin_failure(reason: Optional[str]) -> bool:
    """Tell whether a file transfer plugin failed: its exit code is no errno (28 is a timeout)."""
    return bool(re.search(r"FILETRANSFER|plugin|://", reason or ""))
