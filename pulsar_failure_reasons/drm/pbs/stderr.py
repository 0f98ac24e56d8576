"""What PBS's mom writes about a job's end into its stderr: ``=>> PBS: job killed: ...``."""

from __future__ import annotations

import re
from typing import List, NamedTuple, Optional, Pattern, Tuple

from ...reason import Cause, Evidence
from ..base import StderrFinding
from ..units import parse_memory

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
#: A tool's unfinished line may stand before it.
_PREFIX = re.compile(r"=>> PBS: (?P<said>job (?:killed|terminated|deleted).*)")
#: The cgroup hook of PBS Pro, with the job's id (or none) before it; NCI's names it in the line.
_CGROUP = re.compile(
    r"^\s*(?:(?P<id>[0-9]+\S*|<\w+>)[ :]+)?(?P<said>(?:Job )?(?:Killed:? ?)?"
    r"Cgroup (?:mem(?:ory)?|memsw|vmem) limit exceeded.*)"
    r"|^\s*(?P<other>Job (?P<job>[0-9]+\S*) has exceeded memory allocation on node .*)",
    re.IGNORECASE,
)


class _Rule(NamedTuple):
    pattern: Pattern[str]
    cause: Cause
    detail: str = ""


def _rule(pattern: str, cause: Cause, detail: str = "") -> _Rule:
    return _Rule(re.compile(pattern, re.IGNORECASE), cause, detail)


#: By priority; the sister moms' "requested job terminate" follows the real reason.
_RULES: Tuple[_Rule, ...] = (
    _rule(r"\bwall ?(?:time|clock)\b", Cause.WALLTIME),
    _rule(r"\bp?v?mem\b", Cause.MEMORY),
    _rule(
        r"memory oversubscription|Cgroup \w+ limit exceeded|exceeded memory allocation",
        Cause.MEMORY,
    ),
    _rule(r"\bp?cput\b", Cause.CPU_TIME),
    _rule(r"\bfile\b", Cause.DISK),
    _rule(r"\bncpus\b", Cause.UNKNOWN, "it used more CPUs than it asked for"),
    _rule(
        r"\bnode [0-9]+ .*requested job (?:terminate|die)|SISTER_|sister mom|mom restart"
        r"|lost (?:connection|contact)",
        Cause.NODE_FAILURE,
    ),
)
_SIZES = re.compile(
    r"(?P<used>[0-9]{1,18})\s*(?P<used_unit>[kmgt]?b)?\s+exceeded (?:its )?limit\s+"
    r"(?P<limit>[0-9]{1,18})\s*(?P<limit_unit>[kmgt]?b)?",
    re.IGNORECASE,
)


def classify_stderr(text: str, external_id: Optional[str]) -> Optional[StderrFinding]:
    """Return what PBS itself wrote about the job's end; None where it wrote nothing of it.

    A tool can print such a line as well; PBS gives no way to tell. Never raises.

    Args:
        text: The job's stderr, or the end of it.
        external_id: The job: only the cgroup hook's lines name one; None takes any.
    """
    lines = _said_by_pbs(text, external_id)
    for rule in _RULES:
        for line in lines:
            if rule.pattern.search(line):
                used, limit = _sizes(line) if rule.cause is Cause.MEMORY else (None, None)
                evidence = Evidence("stderr", "line", line)
                return StderrFinding(rule.cause, evidence, rule.detail, used, limit)
    if lines:
        detail = re.sub(r"^.*?job \w+:?\s*", "", lines[0])
        return StderrFinding(Cause.UNKNOWN, Evidence("stderr", "line", lines[0]), detail[:200])
    return None


def _said_by_pbs(text: str, external_id: Optional[str]) -> List[str]:
    said = []
    for line in re.split(r"[\r\n]+", _ANSI.sub("", text)):
        line = line[-2000:]
        match = _PREFIX.search(line)
        if match:
            said.append(f"=>> PBS: {match.group('said').strip()}")
            continue
        hook = _CGROUP.match(line)
        if hook and _is_of(hook.group("id") or hook.group("job"), external_id):
            said.append(line.strip())
    return said


def _is_of(found: Optional[str], external_id: Optional[str]) -> bool:
    if external_id is None or found is None or not found[0].isdigit():
        return True
    return found.partition(".")[0] == external_id.partition(".")[0]


def _sizes(line: str) -> Tuple[Optional[int], Optional[int]]:
    """Return (used, limit) in bytes; numbers without a unit are bytes."""
    match = _SIZES.search(line)
    if match is None:
        return None, None
    return (
        _bytes(match.group("used"), match.group("used_unit")),
        _bytes(match.group("limit"), match.group("limit_unit")),
    )


def _bytes(number: str, unit: Optional[str]) -> int:
    return parse_memory(f"{number}{unit or ''}") or 0
