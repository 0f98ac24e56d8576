"""What a text from the wild says of a job: the shape of the answer, and what all readers share.

A reader of captured texts takes any columns, cuts and mixtures, so its answer is for people and
tests (``explain``), never for ending a job.
"""

from __future__ import annotations

import html
import re
import textwrap
from dataclasses import dataclass, replace
from typing import List, Optional, Sequence, Tuple

from ..reason import CAUSE_TABLE, Cause, Confidence, Evidence, Fault
from .base import Ending, JobView, Phase

LARGEST_TEXT = 2_000_000
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00\x07\x08\ufeff]")

#: The shell's own exit codes for a command that cannot be run, that cannot be found.
CANNOT_RUN_EXIT_CODES = {
    126: "a command of it could not be executed (exit code 126)",
    127: "a command of it was not found (exit code 127)",
}
#: Signals that a program brings upon itself: quit, trap, abort, bus, FPE, segfault, pipe ...
_OWN_SIGNALS = frozenset({3, 4, 5, 6, 7, 8, 11, 13, 14, 31})
_SIGXCPU = 24
_SIGXFSZ = 25


@dataclass(frozen=True)
class Captured:
    """What a text says about the end of a job.

    ``ended`` is None where the text does not tell. With True, ``cause`` is None for a job that
    ended well; else it is ``Cause.UNKNOWN`` where nothing says why. ``confidence`` is None
    where nothing was found.
    """

    ended: Optional[bool]
    cause: Optional[Cause]
    confidence: Optional[Confidence] = None
    external_id: Optional[str] = None
    detail: str = ""
    cancelled_by: Optional[str] = None
    evidence: Tuple[Evidence, ...] = ()

    @property
    def fault(self) -> Optional[Fault]:
        """Whose fault it is; None for a job that ended well or has not ended."""
        return CAUSE_TABLE[self.cause].fault if self.ended and self.cause else None


CANNOT_TELL = Captured(ended=None, cause=Cause.UNKNOWN)


def clean_captured(text: str) -> str:
    """Return the text without colours and control characters, with ``\\n`` at the line ends."""
    kept = _CONTROL.sub("", text[-LARGEST_TEXT:])
    return kept.replace("\r\n", "\n").replace("\r", "\n").replace("\xa0", " ")


_FENCE = re.compile(r"\s*(?:```|~~~)\s*\w*\s*")
_QUOTATION = re.compile(r"\s{0,3}(?:>[ ]?)+(?!>)")


def plain_copy(text: str) -> str:
    """Return a text as its DRM wrote it, without what the place where it was posted added.

    That is, beside what :func:`clean_captured` takes out: fences, a quotation mark before each
    line, the mark of a list, entities of HTML in a text without any tag, indentation of the whole.
    """
    lines = [line for line in clean_captured(text).split("\n") if not _FENCE.fullmatch(line)]
    if all(_QUOTATION.match(line) for line in lines if line.strip()):
        lines = [_QUOTATION.sub("", line, count=1) for line in lines]
    plain = re.sub(r"\A\s*[-*] +", "", textwrap.dedent("\n".join(lines)))
    if "<" not in plain and re.search(r"&(?:lt|gt);", plain):
        return html.unescape(plain)
    return plain


#: A time, a level, a name in brackets, a task's number (``srun --label``), one or several.
_LOG_MARKS = re.compile(
    r"\s*(?:(?:\[?[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.,]{5,15}(?:Z|[+-][0-9]{2}:?[0-9]{2})?\]?"
    r"|\[[\w.:/ -]{1,60}\]|DEBUG|INFO|WARN(?:ING)?|ERROR|[0-9]{1,5}(?=:))[:,]?[ \t]+)+"
)


def without_log_marks(text: str) -> Optional[str]:
    """Return a text without what a log put before each of its lines; None where that is not so."""
    lines = [line for line in text.split("\n") if line.strip()]
    if not lines or not all(_LOG_MARKS.match(line) for line in lines):
        return None
    return "\n".join(_LOG_MARKS.sub("", line, count=1) for line in lines)


def alive(view_or_line: Evidence, detail: str = "", external_id: Optional[str] = None) -> Captured:
    """Return that a line shows a job that has not ended."""
    return Captured(
        False, None, Confidence.CONTROLLER, external_id, detail, evidence=(view_or_line,)
    )


def ended(
    cause: Optional[Cause],
    evidence: Evidence,
    detail: str = "",
    confidence: Confidence = Confidence.INFERRED,
    cancelled_by: Optional[str] = None,
    external_id: Optional[str] = None,
) -> Captured:
    """Return that a job ended for this cause (None: well), by the one line that says so."""
    return Captured(True, cause, confidence, external_id, detail, cancelled_by, (evidence,))


def from_view(view: JobView, label: str) -> Captured:
    """Return what one sight of a job says; ``label`` is the DRM's name for people."""
    external_id = view.external_id or None
    if view.end is None:
        is_alive = view.phase is not Phase.UNKNOWN
        return Captured(
            ended=False if is_alive else None,
            cause=None if is_alive else Cause.UNKNOWN,
            confidence=view.confidence,
            external_id=external_id,
            detail=view.stuck_detail,
            evidence=view.evidence,
        )
    end = view.end
    cause, detail, confidence = end.cause, end.detail, view.confidence
    if cause is None and end.ending is not Ending.WELL:
        cause, said = cause_of_exit(end.exit_code, end.signal, label)
        cause, detail = cause or Cause.UNKNOWN, detail or said
        confidence = confidence if end.exit_code is not None else Confidence.INFERRED
    return Captured(
        True, cause, confidence, external_id, detail, end.cancelled_by, view.evidence
    )


def cause_of_exit(
    code: Optional[int], signal: Optional[int], label: str
) -> Tuple[Optional[Cause], str]:
    """Return (cause, detail) of a job script's own end; cause None for exit code 0.

    Without the file ``return_code`` a non-zero exit code is the tool's. Signals 9 and 15 come
    from outside, nobody knows from whom; 137 and 143 are how a shell passes them on.
    """
    if not signal and code is not None and 128 < code <= 128 + 64:
        signal = code - 128
    if signal:
        if signal in _OWN_SIGNALS:
            return Cause.TOOL_ERROR, f"it crashed (signal {signal})"
        if signal == _SIGXFSZ:
            return Cause.DISK, "it wrote a file larger than its limit (signal 25)"
        if signal == _SIGXCPU:
            return Cause.CPU_TIME, "it used more CPU time than its limit (signal 24)"
        return Cause.UNKNOWN, f"it was ended by signal {signal}, and nothing says by whom"
    if code is None:
        return Cause.TOOL_ERROR, f"{label} only says that it failed"
    if code in CANNOT_RUN_EXIT_CODES:
        return Cause.LAUNCH_ERROR, CANNOT_RUN_EXIT_CODES[code]
    return (Cause.TOOL_ERROR, f"exit code {code}") if code else (None, "")


def agreed(found: Sequence[Captured]) -> Captured:
    """Return what all of several jobs have in common; nothing where they differ.

    Asked of a text about several jobs when none was named.
    """
    if not found:
        return CANNOT_TELL
    first = found[0]
    if len(found) == 1:
        return first
    if any((other.ended, other.cause) != (first.ended, first.cause) for other in found):
        return CANNOT_TELL
    ids = {other.external_id for other in found}
    return first if len(ids) == 1 else replace(first, external_id=None)


_FULL = re.compile(r"No space left on device|Disk quota exceeded|File size limit exceeded", re.I)
_CANNOT_RUN = re.compile(
    r"(?:line [0-9]+): .*(?:command not found|Permission denied|Exec format error"
    r"|cannot execute|bad interpreter|No such file or directory)|execve\(\)"
    r"|: command not found\s*$|bad interpreter: "
)
_SHELL_KILLED = re.compile(
    r": line [0-9]+:\s+[0-9]+ (?:Killed|Terminated|Aborted)\b|^Killed\s*$|std::bad_alloc"
)
_TOOL_FAILED = re.compile(
    r"^Traceback \(most recent call last\)|\[Exception type: |^Exception in thread "
    r"|terminate called after throwing|core dumped|Segmentation fault"
)
#: Toil's leader says this of a job that came to its end, whatever it used.
_RAN_TO_ITS_END = re.compile(r"\(.* used, .* requested\) at the end of its run")


def read_tool_lines(lines: Sequence[str]) -> Optional[Captured]:
    """Return what shells and tools wrote about the end: the weakest evidence.

    Never a limit: a tool that prints "out of memory" or "time limit reached" proves nothing.
    """
    rules: List[Tuple["re.Pattern[str]", Optional[Cause], str]] = [
        (_FULL, Cause.DISK, ""),
        (_SHELL_KILLED, Cause.UNKNOWN, "it was killed or had no memory; nothing says by whom"),
        (_CANNOT_RUN, Cause.LAUNCH_ERROR, "a command of it could not be run"),
        (_TOOL_FAILED, Cause.TOOL_ERROR, "the tool reports an error of its own"),
        (_RAN_TO_ITS_END, None, ""),
    ]
    for pattern, cause, detail in rules:
        for line in lines:
            if pattern.search(line[:2000]):
                return ended(cause, Evidence("stderr", "line", line), detail)
    return None
