"""What slurmstepd and srun write about a job's end into its stderr."""

from __future__ import annotations

import re
from typing import Callable, List, NamedTuple, Optional, Pattern, Tuple

from ...errors import OutputParseError
from ...reason import Cause, Evidence
from ..base import StderrFinding
from ..external_ids import parse_external_id
from .classify import OUTPUT_NOT_OPENED

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_DAEMON = r"slurm(?:step)?d(?:-[^\s:]+|\[[^\]\s]+\])?"
#: A line that Slurm wrote: ``slurmstepd: error: ``, ``slurmstepd-node1: error: ``,
#: ``slurmd[node1]: `` (2.x), ``srun: ``, ``salloc: ``, or bare ``error: ***``.
_SLURMS_LINE = re.compile(rf"\s*(?:(?:{_DAEMON}|srun|salloc):\s+|(?=error:\s+\*\*\*))(?P<said>.*)")
#: The same after text of the tool that did not end in a newline. Only slurmstepd's, and only
#: for a line that names this very job (see _said_by_slurm).
_GLUED = re.compile(rf"(?P<before>\S.*?){_DAEMON}:\s+(?P<said>error:\s.*)")

_JOB_IN_LINE = re.compile(
    r"(?:StepId=|JobId=|\bjob_?id[ =]|\bJOB |\bSTEP |\b[Ss]tep |\b[Jj]ob )"
    r"(?P<id>[0-9][0-9_+\[\]]*|[A-Z<>_-]+\b)"
)

#: None of Slurm's messages is longer; a line of a tool may be.
_LONGEST_MESSAGE = 2000

_NUMBERS = re.compile(r"\(([0-9]{1,18}) > ([0-9]{1,18})\)")


class _Rule(NamedTuple):
    """``detail`` makes the phrase for the message from the match, empty where none is needed."""

    pattern: Pattern[str]
    cause: Cause
    detail: Callable[[str], str] = lambda said: ""


def _says(phrase: str) -> Callable[[str], str]:
    return lambda said: phrase


def _rule(
    pattern: str, cause: Cause, detail: Callable[[str], str] = lambda said: ""
) -> _Rule:
    return _Rule(re.compile(pattern, re.IGNORECASE), cause, detail)


def _signal_detail(said: str) -> str:
    match = re.search(r"DUE TO SIGNAL (.*?) \*\*\*", said, re.IGNORECASE)
    return f"signal {match.group(1)}" if match else "it was sent a signal"


def _exec_detail(said: str) -> str:
    match = re.search(r"(execve\(\).*)", said)
    return match.group(1) if match else ""


#: By priority: the first rule that any line fits is the finding. What killed the job stands
#: before how it was told, because an out-of-memory kill is followed by a bare CANCELLED line.
#: "at some point" lines are warnings (swapping, page cache), in all versions that have them.
_RULES: Tuple[_Rule, ...] = (
    _rule(
        r"exceeded (?:\w+ )?memory limit(?!.*at some point)"
        r"|exceeded \w+ memory limit \([0-9]+ > [0-9]+\), being killed",
        Cause.MEMORY,
    ),
    _rule(
        r"detected [0-9]+ oom[-_ ]?kill event|oom[-_ ]?kill(?:ed)? event|OOM Killed"
        r"|killed by the cgroup out-of-memory handler"
        r"|\btasks? [0-9,-]+: Out Of Memory|^(?:error: )?(?:\S+: )?Out Of Memory\b",
        Cause.MEMORY,
    ),
    _rule(
        r"DUE TO TIME ?LIMIT|exceeded (?:its )?(?:wall ?)?time ?limit|Time limit exhausted",
        Cause.WALLTIME,
    ),
    _rule(r"DUE TO PREEMPTION|has been preempted", Cause.PREEMPTED),
    _rule(r"DUE TO NODE FAIL|Node failure on|NODE FAILURE", Cause.NODE_FAILURE),
    _rule(
        r"(?:could ?not|couldn't|unable to) open (?:std(?:out|err|in)|output file)"
        r"|IO setup failed",
        Cause.DISK,
        _says(OUTPUT_NOT_OPENED),
    ),
    _rule(r"No space left on device|Disk quota exceeded", Cause.DISK),
    _rule(
        r"execve\(\)|bad interpreter|Batch script contains|Unable to exec|task launch failed"
        r"|Unable to create (?:TMPDIR|job step|step for job)|launch failed",
        Cause.LAUNCH_ERROR,
        _exec_detail,
    ),
    _rule(
        r"DUE TO TASK FAILURE|FAILED \(non-zero exit code",
        Cause.TOOL_ERROR,
        _says("one of its tasks failed"),
    ),
    _rule(r"CANCELLED AT .*DUE TO SIGNAL", Cause.CANCELLED, _signal_detail),
    # DUE TO JOB REQUEUE is no end: the job runs again.
    _rule(
        r"(?:CANCELLED|KILLED) AT (?!.*DUE TO)|Job allocation \S+ has been revoked",
        Cause.CANCELLED,
    ),
)


def classify_stderr(text: str, external_id: Optional[str]) -> Optional[StderrFinding]:
    """Return what Slurm itself wrote about the job's end; None where it wrote nothing of it.

    Only Slurm's own lines count, and of those that name a job only this job's. A tool that
    prints "out of memory" proves nothing. Never raises.

    Args:
        text: The job's stderr, or the end of it.
        external_id: The job; None where any job's lines count. An array task or component is
            not compared either: slurmstepd names those by an id that only slurmctld knows.
    """
    lines = [said for said in map(lambda line: _said_by_slurm(line, external_id), split_lines(text))
             if said]
    return find_in_lines(lines)


def find_in_lines(lines: List[str]) -> Optional[StderrFinding]:
    """Return the finding with the highest priority in lines that Slurm wrote, else None."""
    for rule in _RULES:
        for line in lines:
            if rule.pattern.search(line):
                used, limit = _memory_numbers(lines) if rule.cause is Cause.MEMORY else (None, None)
                return StderrFinding(
                    cause=rule.cause,
                    evidence=Evidence("stderr", "line", line),
                    detail=rule.detail(line),
                    used_bytes=used,
                    limit_bytes=limit,
                )
    return None


def split_lines(text: str) -> List[str]:
    """Return the lines without colours; a carriage return (progress bars) ends a line too."""
    return [line for line in re.split(r"[\r\n]+", _ANSI.sub("", text)) if line.strip()]


def _said_by_slurm(line: str, external_id: Optional[str]) -> str:
    """Return the line as Slurm wrote it, empty where it did not or where it is another job's."""
    start = line[:_LONGEST_MESSAGE]
    if _SLURMS_LINE.match(start):
        return start.strip() if names_job(start, external_id, silent=True) else ""
    end = line[-_LONGEST_MESSAGE:]
    glued = _GLUED.match(end) if external_id is not None and "slurm" in end else None
    said = end[len(glued.group("before")):] if glued else ""
    return said.strip() if said and names_job(said, external_id, silent=False) else ""


def names_job(line: str, external_id: Optional[str], silent: bool) -> bool:
    """Tell whether a line is about this job; ``silent`` is the answer where it names none.

    Ids that people have blacked out (``StepId=JOBID.13``) count as none.
    """
    if external_id is None:
        return True
    try:
        wanted = parse_external_id(external_id)
    except OutputParseError:
        return silent
    found = [m.group("id") for m in _JOB_IN_LINE.finditer(line) if m.group("id")[0].isdigit()]
    if not found:
        return silent
    if wanted.is_element:
        return True
    numbers = {str(int(match.group())) for match in map(_leading_number, found) if match}
    return wanted.base in numbers


def _leading_number(text: str) -> Optional["re.Match[str]"]:
    return re.match(r"[0-9]{1,18}", text)


def _memory_numbers(lines: List[str]) -> Tuple[Optional[int], Optional[int]]:
    """Return (used, limit) in bytes from ``(168075264 > 52428800)``, None where not told.

    The unit changed with 18.08, from KB to bytes. ``StepId=`` (20.02 and newer) is bytes; for
    the older wording the size must tell: 20971520 is 20 GB or 20 MB, and nobody has a limit of
    20 MB. Between 128 MB and 8 GB, read as bytes, it could be either.
    """
    for line in lines:
        match = _NUMBERS.search(line)
        if match:
            used, limit = int(match.group(1)), int(match.group(2))
            if "StepId=" in line or limit >= 2**33:
                return used, limit
            if limit < 2**27:
                return used * 1024, limit * 1024
    return None, None
