"""The report that LSF writes into a job's output file (or mails): the job's last words.

Its own text is between ``Sender: LSF System`` and ``The output (if any)``; what the tool printed
stands before it (``... is above this job summary``, with LSB_STDOUT_DIRECT) or after it
(``... follows:``). A tool can print the same words, so which report is LSF's is told by its
place: where the output follows, the first in the file; else the last, with nothing behind it.
That leaves a tool no way to forge one, but for an output file that several runs append to.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import List, Optional

from ...reason import Cause, Evidence
from ..base import Ending, StderrFinding
from ..captured import clean_captured
from .classify import describe_state
from .termination import Termination, find_termination

_SENDER = re.compile(r"^Sender: LSF System\b.*$", re.MULTILINE)
_SUBJECT = re.compile(
    r"^Subject: (?:Re: )?(?:\S+ )?Job (?P<id>[0-9]{1,18}(?:\[[0-9]+\])?): .*?"
    r"(?P<how>Exited|Done)?\s*$",
    re.MULTILINE,
)
_OUTPUT = re.compile(r"^The output \(if any\) (?P<where>follows|is above)", re.MULTILINE)
#: ``PS: Read file <x> for stderr output of this job.`` may follow LSF's report.
_AFTERWORD = re.compile(r"\s*(?:PS:\s*)?(?:Read file <.*> for stderr output of this job\.\s*)*")

_VERDICT = re.compile(
    r"^[ \t]*(?:(?P<well>Successfully completed)"
    r"|Exited with exit code (?P<code>[0-9]{1,3})"
    r"|Exited (?:with|by) signal(?: termination)?:? ?(?P<signal>[0-9]{1,3}|[A-Za-z0-9 ]{2,40})"
    r"|(?P<bare>Exited|Terminated))[.;]?(?:[^\S\n].*)?$",
    re.MULTILINE,
)
_SIGNAL_NAMES = {"killed": 9, "terminated": 15, "segmentation fault": 11, "aborted": 6,
                 "interrupt": 2, "bus error": 7, "cpu time limit exceeded": 24,
                 "file size limit exceeded": 25}


@dataclass(frozen=True)
class Report:
    """One report. ``external_id`` is None where its Subject was cut off.

    ``verdict`` is LSF's line on the exit, ``reason`` the TERM_ line above it; both may be
    empty. ``offset`` and ``end`` are its place in the text; ``output_follows`` is None where
    the report does not say.
    """

    external_id: Optional[str]
    verdict: str
    reason: str
    well: bool
    exit_code: Optional[int]
    signal: Optional[int]
    offset: int
    end: int
    output_follows: Optional[bool]

    @property
    def termination(self) -> Optional[Termination]:
        """The termination reason, None where the report gives none."""
        return find_termination(self.reason) if self.reason else None


def classify_report(text: str, external_id: Optional[str]) -> Optional[StderrFinding]:
    """Return what LSF's report in the job's output says of its end; None where it says nothing.

    None also for a job that ended well, and where the report names no termination reason and
    no cause follows from the exit code. Never raises.

    Args:
        text: The job's output file, whole or its end.
        external_id: The job; None takes any job's report.
    """
    report = find_report(clean_captured(text), external_id)
    if report is None or report.well:
        return None
    described = describe_state(
        "EXIT", report.reason, report.exit_code, signal=report.signal, started=True
    )
    end = described.end
    if end is None or end.cause in (None, Cause.UNKNOWN) and end.ending is not Ending.LIMIT:
        return None
    return StderrFinding(
        cause=end.cause or Cause.UNKNOWN,
        evidence=Evidence("stdout", "line", report.reason or report.verdict),
        detail=end.detail,
    )


def classify_stderr(text: str, external_id: Optional[str]) -> Optional[StderrFinding]:
    """Return what LSF wrote into the job's error file: only a report, where both are one."""
    return classify_report(text, external_id)


def find_report(text: str, external_id: Optional[str] = None) -> Optional[Report]:
    """Return the one report that LSF must have written, see above; None where there is none."""
    reports = [r for r in read_reports(text) if _is_of(r, external_id)]
    if not reports:
        return None
    first, last = reports[0], reports[-1]
    if first.output_follows and not text[: first.offset].strip():
        return first
    if len(reports) > 1 and not last.output_follows and _says_more(text[last.end:]):
        # Something behind what would have to be the last words: the tool's own print.
        return None
    return last


def _says_more(rest: str) -> bool:
    return _AFTERWORD.fullmatch(rest) is None


def _is_of(report: Report, external_id: Optional[str]) -> bool:
    if external_id is None or report.external_id is None:
        return True
    wanted, found = external_id.partition("@")[0], report.external_id
    return wanted == found or ("[" not in wanted and wanted == found.partition("[")[0])


def read_reports(text: str) -> List[Report]:
    """Return all reports in a text, LSF's or not; a verdict without a Sender is one as well."""
    starts = [match.start() for match in _SENDER.finditer(text)]
    if not starts:
        starts = [match.start() for match in _SUBJECT.finditer(text)] or [0]
    pieces = zip(starts, starts[1:] + [len(text)])
    found = [_read_report(text, start, stop) for start, stop in pieces]
    return [report for report in found if report is not None]


def _read_report(text: str, start: int, stop: int) -> Optional[Report]:
    body = text[start:stop]
    output = _OUTPUT.search(body)
    where = output.group("where") if output else None
    if output:
        # Nothing that the tool printed is looked at.
        stop = start + output.end() if where == "follows" else _line_end(text, start + output.end())
        body = body[: output.start()]
    subject = _SUBJECT.search(body)
    verdicts = list(_VERDICT.finditer(body))
    # The last one: the job's own script is printed above it.
    verdict = verdicts[-1] if verdicts else None
    if verdict is None and (subject is None or not subject.group("how")):
        return None
    above = body[: verdict.start()].rstrip("\n").rpartition("\n")[2].strip() if verdict else ""
    reason = above if above.startswith("TERM_") or find_termination(above) else ""
    return Report(
        external_id=subject.group("id") if subject else None,
        verdict=verdict.group().strip() if verdict else subject.group().strip() if subject else "",
        reason=reason,
        well=_went_well(verdict, subject),
        exit_code=int(verdict.group("code")) if verdict and verdict.group("code") else None,
        signal=_signal(verdict.group("signal")) if verdict and verdict.group("signal") else None,
        offset=start,
        end=stop if output else start + (verdict.end() if verdict else len(body)),
        output_follows=None if where is None else where == "follows",
    )


def _line_end(text: str, at: int) -> int:
    newline = text.find("\n", at)
    return len(text) if newline < 0 else newline


def _went_well(
    verdict: Optional["re.Match[str]"], subject: Optional["re.Match[str]"]
) -> bool:
    if verdict is not None:
        return verdict.group("well") is not None
    return subject is not None and subject.group("how") == "Done"


def _signal(text: str) -> Optional[int]:
    word = text.strip().rstrip(".").lower()
    return int(word) if word.isdigit() else _SIGNAL_NAMES.get(word)
