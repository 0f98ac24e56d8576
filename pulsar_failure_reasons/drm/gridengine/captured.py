"""Texts about Grid Engine jobs as people copy them: "what does this say?" for ``explain``."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Dict, List, Optional

from ...errors import OutputParseError, SubmissionRefusedError
from ...reason import Cause, Confidence, Evidence
from ..captured import (
    CANNOT_TELL,
    Captured,
    agreed,
    alive,
    ended,
    from_view,
    plain_copy,
    read_tool_lines,
)
from ..external_ids import same_job
from .captured_lines import of_view, read_log, read_mail, read_qstat
from .command_errors import error_from_command
from .failed import FAILED_CODES, parse_failed
from .limits import Usage
from .qacct import Record, goes_on, read_fields, read_records, usage_of, view_of
from .qstat import parse_error_reasons, parse_qstat, with_error_reasons

_LABEL = "Grid Engine"
_KILL_EXIT_STATUS = 137
_HOUR_S = 3600
_HALF_GB = 512 * 1024**2
_QACCT = re.compile(
    r"^\s*(?:failed|exit_status|maxvmem|ru_wallclock|deleted_by)\s+\S", re.MULTILINE
)


def read_captured(
    text: str, source: str = "auto", external_id: Optional[str] = None
) -> Captured:
    """Return what a text from the wild says about a job's end. Never raises.

    Args:
        text: Output of qacct -j (a piece will do), qstat (table, -j, -xml), lines of execd's
            or qmaster's messages, a mail, or a job's stderr, with banners, colours and cuts.
        source: What it is. The forms are told by themselves, so nothing depends on it but
            that ``stderr`` lets shells and tools have a word.
        external_id: The job meant; None where the text is about one job. A text about several
            then tells only what all of them have in common.
    """
    text = plain_copy(text)
    lines = [line for line in text.split("\n") if line.strip()]
    found = _from_xml(text) or _from_qacct(text, external_id) or _from_accounting(lines)
    if not found:
        found = read_log(lines, needs_prefix="log" not in source) or read_qstat(lines)
    if found:
        # Lines by themselves name no job: in a text about other jobs they are those jobs'.
        return agreed([told for told in found if external_id is None or _is(told, external_id)])
    told = read_mail(lines) or _from_failed_lines(lines) or _refused(lines)
    if told is None and re.search(r"stderr|auto|stdout", source):
        told = read_tool_lines(lines)
    if told is None or external_id is not None and not _is(told, external_id):
        return CANNOT_TELL
    return told


def _is(captured: Captured, external_id: str) -> bool:
    try:
        return captured.external_id is None or same_job(external_id, captured.external_id)
    except OutputParseError:
        return False


def _from_xml(text: str) -> List[Captured]:
    if "<job_info" not in text and "<detailed_job_info" not in text:
        return []
    reasons: Dict[str, str] = {}
    try:
        if "<detailed_job_info" in text:
            reasons = parse_error_reasons(text[text.index("<detailed_job_info"):])
        if "<job_info" in text:
            part = text[text.index("<job_info"):].partition("<detailed_job_info")[0]
            return [of_view(view) for view in with_error_reasons(parse_qstat(part), reasons)]
    except OutputParseError:
        return []
    return read_qstat([f"error reason 1: {reason}" for reason in reasons.values()])


# ---- qacct ------------------------------------------------------------------------------------


def _from_qacct(text: str, external_id: Optional[str]) -> List[Captured]:
    records = read_records(text)
    if not records:
        piece = read_fields(text)
        records = [piece] if piece and _QACCT.search(text) else []
    by_job: Dict[str, Captured] = {}
    for number, record in enumerate(records):
        captured = _of_record(record)
        if captured is not None:
            key = captured.external_id or f"?{number}"
            # The last start of a job decides.
            by_job.pop(key, None)
            by_job[key] = captured
    return list(by_job.values())


#: accounting(5): where the fields of a line of the accounting file stand.
_ACCOUNTING = {
    5: "jobnumber", 11: "failed", 12: "exit_status", 13: "ru_wallclock", 34: "slots", 36: "cpu",
    39: "category", 42: "maxvmem",
}
_ACCOUNTING_FIELDS = 43


def _from_accounting(lines: List[str]) -> List[Captured]:
    """Lines of the accounting file: fields between colons, a job's last start decides."""
    by_job: Dict[str, Captured] = {}
    for line in lines:
        cells = line.split(":")
        if len(cells) < _ACCOUNTING_FIELDS or not all(cells[i].isdigit() for i in (5, 11, 12)):
            continue
        captured = _of_record({name: cells[at].strip() for at, name in _ACCOUNTING.items()})
        if captured is not None:
            by_job[cells[5]] = captured
    return list(by_job.values())


def _of_record(record: Record) -> Optional[Captured]:
    shown = {"jobnumber": "0", **record}
    if not {"failed", "exit_status", "deleted_by"} & set(record):
        return None
    try:
        view = view_of(shown)
    except OutputParseError:
        view = view_of({**shown, "jobnumber": "0", "taskid": ""})
    external_id = view.external_id if "jobnumber" in record else ""
    view = replace(view, external_id=external_id)
    if goes_on(record):
        row = FAILED_CODES[parse_failed(record["failed"]) or 0]
        return alive(view.evidence[0], row.detail, external_id or None)
    captured = from_view(view, _LABEL)
    killed = view.end is not None and (
        view.end.exit_code == _KILL_EXIT_STATUS
        or (view.end.exit_code is None and "exit_status" not in record)
    )
    if killed and captured.cause is Cause.UNKNOWN:
        return _who_killed(captured, usage_of(record))
    return captured


def _who_killed(captured: Captured, usage: Usage) -> Captured:
    """What the numbers of a bare SIGKILL suggest: people set round limits, where none is shown."""
    cause, detail = Cause.UNKNOWN, captured.detail
    elapsed_s = 0 if usage.has("h_rt", "s_rt") else usage.elapsed_s
    used_bytes = 0 if usage.has("h_vmem", "s_vmem") else usage.max_vmem_bytes
    if elapsed_s and elapsed_s >= _HOUR_S and elapsed_s % _HOUR_S <= 5:
        cause, detail = Cause.WALLTIME, "it was killed after a whole number of hours"
    elif used_bytes and used_bytes >= 2 * _HALF_GB and used_bytes % _HALF_GB <= used_bytes // 200:
        cause, detail = Cause.MEMORY, "it was killed with just over a round amount of memory"
    elif usage.requests_limits is False:
        # Its requests are shown and hold no limit: Grid Engine had nothing to enforce.
        cause, detail = Cause.CANCELLED, "it was killed, and it had asked for no limit"
    return replace(captured, cause=cause, detail=detail, confidence=Confidence.INFERRED)


def _from_failed_lines(lines: List[str]) -> Optional[Captured]:
    """``failed 8 : in prolog`` in the middle of a line, as people quote it."""
    for line in lines:
        match = re.search(r"\bfailed\s+[0-9]{1,3}\s*:\s*[a-zA-Z].*", line)
        if match:
            record = {"failed": match.group().partition("failed")[2].strip()}
            return _of_record(record)
    return None


def _refused(lines: List[str]) -> Optional[Captured]:
    for line in lines:
        if line.strip().startswith("Unable to run job:"):
            if isinstance(error_from_command(["qsub"], 1, line), SubmissionRefusedError):
                return ended(
                    Cause.LAUNCH_ERROR, Evidence("qsub", "line", line),
                    "its submission was refused",
                )
    return None
