"""Texts about PBS jobs as people copy them: "what does this say?" for ``explain``."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Dict, List, Optional

from ...errors import OutputParseError, SubmissionRefusedError
from ...reason import Cause, Confidence, Evidence
from ..base import End, JobView, Phase
from ..captured import (
    CANNOT_TELL,
    Captured,
    agreed,
    alive,
    ended,
    from_view,
    plain_copy,
    read_tool_lines,
    without_log_marks,
)
from ..external_ids import parse_external_id, same_job
from .captured_epilogue import read_epilogue
from .captured_lines import ended_view, is_log, may_be_mail, read_log, read_mail, requeued
from .classify import PbsJob, view_of
from .command_errors import error_from_command
from .flavour import Flavour, guess_flavour
from .qstat import attribute_lines, parse_qstat_json, parse_qstat_xml
from .stderr import classify_stderr

_LABEL = "PBS"
_LIMITS = frozenset({Cause.WALLTIME, Cause.MEMORY, Cause.CPU_TIME, Cause.DISK})
_JOB = re.compile(r"^\s*Job Id:\s*(?P<id>\S+)\s*$", re.MULTILINE)
#: The same in mails and epilogues.
_NAMED = re.compile(r"^\s*(?:PBS )?Job Id:\s*(?P<id>[0-9]\S*)\s*$", re.MULTILINE | re.IGNORECASE)
_ATTRIBUTES = re.compile(
    r"^\s*(?:job_state|exit_status|comment|substate|resources_used\.\w+) = ",
    re.MULTILINE | re.IGNORECASE,
)
#: Comments of a job that waits; they stay when it has begun to run.
_WAITS = re.compile(
    r"^Not Running|could not find appropriate|not enough|Insufficient amount|would conflict"
    r"|Queue .{0,60}limit|waiting|Can Never Run|no available resources|PrivatePolicy|Draining"
    r"|has reached .{0,60}limit|Job (?:is )?held|Job requeued|Starving",
    re.IGNORECASE,
)


def read_captured(
    text: str, source: str = "auto", external_id: Optional[str] = None
) -> Captured:
    """Return what a text from the wild says about a job's end. Never raises.

    Args:
        text: Output of qstat (short, -f, -x, JSON, XML), tracejob, a log, a mail of the server
            or of Moab, checkjob, or a job's stderr, with banners, colours and cuts.
        source: What it is. The forms are told by themselves; a flavour named in it
            (``torque``, ``openpbs``, ``pbspro``) decides what negative numbers mean, else the
            text must give it away.
        external_id: The job meant; None where the text is about one job. A text about several
            then tells only what all of them have in common.
    """
    text = plain_copy(text)
    flavour = guess_flavour(text, source)
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    if external_id is not None and _names_only_others(text, external_id):
        return CANNOT_TELL
    line_of_pbs = _from_stderr(text, external_id)
    if line_of_pbs is not None and line_of_pbs.cause in _LIMITS:
        return line_of_pbs
    found = _from_answer(text, flavour)
    if found:
        meant = [told for told in found if external_id is None or _is(told, external_id)]
        mail = read_mail(_moab_lines(lines), flavour) if meant else None
        return _better(agreed(meant), mail)
    told: Optional[Captured] = None
    if is_log(lines):
        told = read_log(lines, flavour, external_id)
    elif may_be_mail(text, source):
        told = read_mail(lines, flavour)
    told = told or line_of_pbs or read_epilogue(lines, flavour)
    told = told or _from_table(lines, external_id) or _refused(lines)
    if told is None and re.search(r"stderr|auto|stdout", source):
        told = read_tool_lines(lines)
    unmarked = without_log_marks(text) if told is None else None
    if unmarked is not None:
        return read_captured(unmarked, source, external_id)
    return told or CANNOT_TELL


def _is(captured: Captured, external_id: str) -> bool:
    return captured.external_id is None or _same(external_id, captured.external_id)


def _same(wanted: str, seen: str) -> bool:
    try:
        return same_job(wanted, seen)
    except OutputParseError:
        return False


def _names_only_others(text: str, external_id: str) -> bool:
    """Tell whether answers, mails or epilogues name their jobs, and this one is none of them."""
    named = [match.group("id") for match in _NAMED.finditer(text)]
    return bool(named) and not any(_same(external_id, seen) for seen in named)


def _from_stderr(text: str, external_id: Optional[str]) -> Optional[Captured]:
    finding = classify_stderr(text, external_id)
    if finding is None:
        return None
    return ended(finding.cause, finding.evidence, finding.detail, Confidence.STDERR)


def _moab_lines(lines: List[str]) -> List[str]:
    return [line for line in lines if re.search(r"MOAB_INFO|usage hard limit|Message\[", line)]


def _better(answer: Captured, mail: Optional[Captured]) -> Captured:
    """Moab deletes for a limit: its own word stands behind a cancellation."""
    if mail is not None and mail.ended and answer.cause in (Cause.CANCELLED, Cause.UNKNOWN):
        return mail
    return answer


# ---- what qstat shows -------------------------------------------------------------------------


def _from_answer(text: str, flavour: Flavour) -> List[Captured]:
    for marks, parse in (
        ('"Jobs"', parse_qstat_json), ("<Data", parse_qstat_xml),
    ):
        if marks in text:
            try:
                return [_of_view(view) for view in parse(text, flavour)]
            except OutputParseError:
                continue
    if not _ATTRIBUTES.search(text):
        return []
    starts = [match.start() for match in _JOB.finditer(text)]
    pieces = [text[a:b] for a, b in zip(starts, starts[1:] + [len(text)])] or [text]
    found = [_of_piece(piece, flavour) for piece in pieces]
    return [captured for captured in found if captured is not None]


def _of_piece(piece: str, flavour: Flavour) -> Optional[Captured]:
    """What one (perhaps cut) output of qstat -f says; the job's state may be missing."""
    head = _JOB.search(piece)
    attributes: Dict[str, str] = {}
    for name, value in attribute_lines(_folded_with_tabs(piece.split("\n"))):
        # A user's newline can add such a line, so two that differ tell nothing.
        if name == "exit_status" and attributes.get(name, value) != value:
            return CANNOT_TELL
        attributes.setdefault(name, value)
    external_id = _id(head.group("id") if head else None)
    if "job_state" in attributes:
        return _of_view(view_of(PbsJob(external_id, attributes), flavour))
    return _without_state(attributes, external_id, flavour)


#: Attributes that are too short to be folded: what follows them is something else.
_NEVER_FOLDED = re.compile(
    r"\s*(?:exit_status|job_state|substate|run_count|Hold_Types|Stageout_status|session_id"
    r"|\w+\.(?:walltime|cput|v?mem|ncpus)) = ", re.IGNORECASE,
)


def _folded_with_tabs(lines: List[str]) -> List[str]:
    """Copies turn the tab of a folded line into blanks, or lose it."""
    kept, may_fold = [], True
    for line in lines:
        is_attribute = re.match(r"\s*[A-Za-z][\w.]* = ", line)
        if is_attribute:
            may_fold = _NEVER_FOLDED.match(line) is None
        if is_attribute or may_fold:
            kept.append(("    " if is_attribute else "\t") + line.strip() if line.strip() else "")
    return kept


def _id(text: Optional[str]) -> str:
    try:
        return parse_external_id(text).text if text else ""
    except OutputParseError:
        return ""


def _without_state(
    attributes: Dict[str, str], external_id: str, flavour: Flavour
) -> Optional[Captured]:
    comment = attributes.get("comment", "")
    number = attributes.get("exit_status", "")
    tells_end = re.search(
        r"\b(?:finished|failed|terminated(?:\s*by\s*\S+)?|exceeded\s*resource.*)\s*$", comment
    )
    if re.search(r"too many failed attempts", comment, re.IGNORECASE):
        tells_end = re.search("^", comment)
    if re.fullmatch(r"-[0-9]{1,3}", number) and not tells_end:
        again = requeued(number, flavour, f"Exit_status = {number}", "qstat")
        if again is not None:
            return again
    if number or tells_end:
        return _of_view(ended_view(attributes, flavour, "qstat"))
    if comment:
        # What it waits for, or that it was started, and no word of an end.
        if _WAITS.search(comment) or re.match(r"Job (?:run|started|was sent)", comment):
            return alive(Evidence("qstat", "comment", comment), "", external_id or None)
    return None


def _of_view(view: JobView) -> Captured:
    captured = from_view(view, _LABEL)
    if captured.cause is Cause.TOOL_ERROR and view.end and view.end == End(view.end.ending):
        # F and C say that it ended, never how.
        return replace(captured, cause=Cause.UNKNOWN, detail="PBS does not say how it ended")
    if view.phase is Phase.STUCK and view.stuck_for is not Cause.HELD:
        return ended(
            view.stuck_for, view.evidence[0], view.stuck_detail, view.confidence,
            external_id=view.external_id or None,
        )
    return captured


# ---- tables and refusals ----------------------------------------------------------------------

#: ``13.pbshead  job.sh  alice  00:00:00 F workq`` and ``qstat -a``'s row with ``F`` before a time.
_SHORT_ROW = re.compile(
    r"^(?P<id>[0-9]+(?:\[[0-9]*\])?(?:\.[\w.-]*)?)\*?\s+.*\s(?P<time>[0-9:]{1,12}|--)\s+"
    r"(?P<state>[BCEFHMQRSTUWX])\s+(?P<queue>\S+)\s*$"
)
_WIDE_ROW = re.compile(
    r"^(?P<id>[0-9]+(?:\[[0-9]*\])?(?:\.[\w.-]*)?)\*?\s+.*\s(?P<state>[BCEFHMQRSTUWX])\s+"
    r"(?P<time>[0-9:]{4,12}|--)\s*$"
)


def _from_table(lines: List[str], external_id: Optional[str]) -> Optional[Captured]:
    found = []
    for line in lines:
        match = _SHORT_ROW.match(line) or _WIDE_ROW.match(line)
        if match:
            job = PbsJob(_id(match.group("id")), {"job_state": match.group("state")})
            if view_of(job, Flavour.UNKNOWN).phase is Phase.ENDED:
                # F and C say that it ended, never how.
                found.append(ended(Cause.UNKNOWN, Evidence("qstat", "S", line),
                                   external_id=job.external_id or None))
            else:
                found.append(_of_view(view_of(job, Flavour.UNKNOWN)))
    meant = [told for told in found if external_id is None or _is(told, external_id)]
    return agreed(meant) if found else None


def _refused(lines: List[str]) -> Optional[Captured]:
    for line in lines:
        if line.startswith("qsub: "):
            if isinstance(error_from_command(["qsub"], 1, line), SubmissionRefusedError):
                return ended(
                    Cause.LAUNCH_ERROR, Evidence("qsub", "line", line),
                    "its submission was refused",
                )
    return None
