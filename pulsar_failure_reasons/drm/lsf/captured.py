"""Texts about LSF jobs as people copy them: "what does this say?" for ``explain``."""

from __future__ import annotations

import re
from typing import Dict, List, Optional

from ...errors import OutputParseError, SubmissionRefusedError
from ...reason import Cause, Confidence, Evidence
from ..base import End, Ending, JobView, Phase
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
from .bhist import History, read_histories, view_of_history
from .bjobs import parse_bjobs_json
from .captured_rows import read_rows
from .classify import RUN_LIMIT_EXIT_CODES, describe_state
from .command_errors import error_from_command, says_not_found
from .report import Report, find_report, read_reports
from .states import LsfState, canonical_state
from .termination import Termination, find_termination

_LABEL = "LSF"


def read_captured(
    text: str, source: str = "auto", external_id: Optional[str] = None
) -> Captured:
    """Return what a text from the wild says about a job's end. Never raises.

    Args:
        text: Output of bjobs (short, -l, -o, -json), bhist, bacct, the report in a job's
            output or mail, an error of bsub, with banners, colours and cuts.
        source: What it is. LSF's forms are told by themselves, so little depends on it:
            ``stderr`` lets shells and tools have a word.
        external_id: The job meant; None where the text is about one job. A text about several
            then tells only what all of them have in common.
    """
    text = plain_copy(text)
    found = _from_json(text)
    reported = not found and _has_report(text)
    if reported:
        report = find_report(text, external_id)
        if report is not None:
            found = [_without_output_file(report, text) or _from_report(report)]
    if not found:
        found = _from_histories(text, external_id)
    if not found:
        found = [_from_job_view(view) for view in read_rows(text)]
    if external_id is not None and (found or reported):
        # Lines by themselves name no job: in a text about other jobs they are those jobs'.
        return agreed([captured for captured in found if _is(captured, external_id)])
    return agreed(found) if found else _from_words(text, source)


def _is(captured: Captured, external_id: str) -> bool:
    try:
        return captured.external_id is None or same_job(external_id, captured.external_id)
    except OutputParseError:
        return False


def _from_json(text: str) -> List[Captured]:
    if '"RECORDS"' not in text:
        return []
    try:
        return [_from_job_view(view) for view in parse_bjobs_json(text)]
    except OutputParseError:
        return []


def _from_job_view(view: JobView) -> Captured:
    if canonical_state(view.job_state) is LsfState.ZOMBI:
        return ended(
            Cause.NODE_FAILURE, view.evidence[0], "its host cannot be reached",
            view.confidence, external_id=view.external_id or None,
        )
    captured = from_view(view, _LABEL)
    end = view.end
    if captured.cause is Cause.UNKNOWN and end and end.exit_code in RUN_LIMIT_EXIT_CODES:
        return _sigusr2(captured)
    return captured


def _sigusr2(captured: Captured) -> Captured:
    return Captured(**{
        **captured.__dict__, "cause": Cause.WALLTIME, "confidence": Confidence.INFERRED,
        "detail": "it was ended by SIGUSR2, which LSF sends at the run limit",
    })


# ---- reports --------------------------------------------------------------------------------


def _has_report(text: str) -> bool:
    return re.search(
        r"^\s*(?:Sender: LSF System|Subject: .*Job [0-9]|Exited with |Exited by signal"
        r"|Successfully completed\.|# LSBATCH: User input)", text, re.MULTILINE
    ) is not None and bool(read_reports(text))


#: Of a mail, since the report had no file to be in. What the tool printed stands behind "follows".
_NO_OUTPUT_FILE = re.compile(
    r"^(?:PS: *)?(?:(?:Fail(?:ed)? to open|Unable to open|Can(?:not|'t) open) "
    r"(?:output|stdout|stderr|error|input) file|Unable to read output data from the stdout"
    r" buffer file).*", re.MULTILINE
)


def _without_output_file(report: Report, text: str) -> Optional[Captured]:
    """Return that LSF could not open a file of the job, which gave no reason of its own."""
    said = _NO_OUTPUT_FILE.search(text[report.offset:])
    if said is None or report.well or report.reason:
        return None
    detail = "its output file could not be opened"
    evidence = Evidence("report", "line", said.group())
    return ended(Cause.DISK, evidence, detail, external_id=report.external_id)


def _from_report(report: Report) -> Captured:
    evidence = Evidence("report", "line", report.reason or report.verdict)
    if report.well:
        end = End(Ending.WELL)
    else:
        described = describe_state(
            "EXIT", report.reason, report.exit_code, signal=report.signal, started=True
        )
        end = described.end or End(Ending.BADLY)
    return _from_job_view(
        JobView(
            external_id=report.external_id or "",
            job_state="DONE" if report.well else "EXIT",
            phase=Phase.ENDED,
            confidence=Confidence.CONTROLLER,
            end=end,
            evidence=(evidence,),
        )
    )


# ---- bhist, bacct, bjobs -l -----------------------------------------------------------------


def _from_histories(text: str, external_id: Optional[str]) -> List[Captured]:
    found: List[Captured] = []
    for history in read_histories(text):
        view = view_of_history(history, "bhist") or _from_header(history)
        if view is not None:
            found.append(_requeued(history) or _from_job_view(_with_header_end(view, history)))
    return found


def _requeued(history: History) -> Optional[Captured]:
    reason = find_termination(history.reason) if history.reason else None
    if reason is None or not reason.requeues:
        return None
    evidence = Evidence("bhist", "line", history.reason)
    return _from_termination(reason, evidence, history.external_id)


def _header_state(history: History) -> Optional[str]:
    squeezed = re.sub(r"\s+", "", history.header)
    states = re.findall(r",Status<([A-Z_]{3,9})>(?=,|$|;)", squeezed)
    return states[-1] if states else None


def _from_header(history: History) -> Optional[JobView]:
    state = _header_state(history)
    if state is None:
        return None
    described = describe_state(state)
    return JobView(
        history.external_id or "", described.word, described.phase, Confidence.CONTROLLER,
        end=described.end, evidence=(Evidence("bjobs", "Status", state),),
    )


def _with_header_end(view: JobView, history: History) -> JobView:
    """Prefer the Status of the header where the dated lines end before the end (a cut text)."""
    header = _from_header(history)
    if header is None or view.phase is Phase.ENDED:
        return view
    return header if header.phase is not Phase.UNKNOWN else view


# ---- single lines ---------------------------------------------------------------------------


def _from_words(text: str, source: str) -> Captured:
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    seen: Dict[str, Captured] = {}
    for line in lines:
        reason = find_termination(line) if _may_be_reason(line) else None
        if reason is not None:
            seen.setdefault(
                reason.keyword, _from_termination(reason, Evidence("bjobs", "exit_reason", line))
            )
        state = canonical_state(line)
        if state is not LsfState.UNKNOWN and line == line.upper():
            described = describe_state(line)
            seen[line] = _from_job_view(
                JobView("", described.word, described.phase, Confidence.CONTROLLER,
                        end=described.end, evidence=(Evidence("bjobs", "stat", line),))
            )
    if seen:
        return agreed(list(seen.values()))
    if says_not_found(text):
        return CANNOT_TELL
    refused = _refused(lines)
    if refused is not None:
        return refused
    return (read_tool_lines(lines) if re.search(r"stderr|auto|stdout", source) else None) or (
        CANNOT_TELL
    )


def _may_be_reason(line: str) -> bool:
    return re.search(r"TERM_[A-Z]", line) is not None or re.match(
        r"[Jj]ob (?:was )?(?:killed|exited|terminated|removed)\b", line
    ) is not None


def _from_termination(
    reason: Termination, evidence: Evidence, external_id: Optional[str] = None
) -> Captured:
    if reason.requeues and reason.cause is not Cause.PREEMPTED:
        return alive(evidence, reason.detail, external_id)
    cause = reason.cause or Cause.UNKNOWN
    return ended(
        cause, evidence, reason.detail, Confidence.CONTROLLER, reason.cancelled_by, external_id
    )


def _refused(lines: List[str]) -> Optional[Captured]:
    for line in lines:
        if not re.search(r"Job not submitted|Request aborted by esub", line):
            continue
        if isinstance(error_from_command(["bsub"], 255, line), SubmissionRefusedError):
            return ended(
                Cause.LAUNCH_ERROR, Evidence("bsub", "line", line), "its submission was refused"
            )
    return None
