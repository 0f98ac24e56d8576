"""The answers of qstat: the list of a user's jobs, and the details of jobs in error."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Dict, List, Mapping, Sequence
from xml.etree import ElementTree

from ...errors import OutputParseError
from ...reason import Cause, Confidence, Evidence
from ..base import JobView, Phase, directory_of_streams
from ..external_ids import parse_external_id
from .classify import classify_error_reason
from .limits import Usage
from .states import is_being_deleted, phase_of


def parse_qstat(stdout: str) -> List[JobView]:
    """Return all jobs of an answer to :func:`.commands.qstat_command`, in XML.

    An empty list is a real answer: the frame was there, and no job in it. Of an array there is
    a view for each running task and one for each range of waiting ones.

    Raises:
        OutputParseError: the text is no such answer, or is cut short.
    """
    root = _root(stdout, "job_info")
    views: List[JobView] = []
    for element in root.iter("job_list"):
        views.extend(_views(element))
    return views


def _root(stdout: str, tag: str) -> "ElementTree.Element":
    start = stdout.find("<" + tag)
    # Entities could make a small text large; qstat writes none.
    if start < 0 or "<!" in stdout[start:]:
        raise OutputParseError(f"qstat -xml printed no <{tag}>: {stdout[:200]!r}")
    # Bytes that XML does not allow (a job's name may hold them) are no reason to lose the rest.
    clean = re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "?", stdout[start:])
    try:
        return ElementTree.fromstring(clean.strip())
    except (ElementTree.ParseError, ValueError) as error:
        raise OutputParseError(f"qstat -xml printed broken XML: {stdout[-200:]!r}") from error


def _text(element: "ElementTree.Element", *names: str) -> str:
    for name in names:
        found = element.findtext(name)
        if found is not None and found.strip():
            return found.strip()
    return ""


def _views(element: "ElementTree.Element") -> List[JobView]:
    base, state = _text(element, "JB_job_number"), _text(element, "state")
    if not state:
        raise OutputParseError(f"qstat -xml printed a job without a state: {base!r:.80}")
    requests = {
        request.get("name", ""): (request.text or "").strip()
        for request in element.iter("hard_request")
    }
    slots = _text(element, "slots")
    usage = Usage(requests, slots=int(slots) if re.fullmatch("[0-9]{1,9}", slots) else 1)
    tasks = _text(element, "tasks")
    ids = [f"{base}.{part}" for part in tasks.split(",")] if tasks else [base]
    return [_view(element, parse_external_id(i).text, state, usage) for i in ids]


def _view(
    element: "ElementTree.Element", external_id: str, state: str, usage: Usage
) -> JobView:
    phase = phase_of(state)
    return JobView(
        external_id=external_id,
        job_state=state,
        phase=phase,
        confidence=Confidence.CONTROLLER,
        stuck_detail=f"job state {state}" if phase is Phase.STUCK else "",
        job_name=_text(element, "full_job_name", "JB_name") or None,
        submitted_at=_text(element, "JB_submission_time") or None,
        walltime_s=usage.time("h_rt") or usage.time("s_rt"),
        memory_bytes=usage.size("h_vmem") or usage.size("s_vmem"),
        node=_text(element, "queue_name").partition("@")[2] or None,
        deleted=is_being_deleted(state),
        evidence=(Evidence("qstat", "state", state),),
    )


def parse_error_reasons(stdout: str) -> Dict[str, str]:
    """Return the error reasons by job number of an answer to ``qstat -xml -j``.

    Jobs that the qmaster does not know are left out, with exit code 0, and so are jobs without
    an error.

    Raises:
        OutputParseError: the text is no such answer, or is cut short.
    """
    if "<unknown_jobs" in stdout and "<detailed_job_info" not in stdout:
        return {}
    root = _root(stdout, "detailed_job_info")
    reasons: Dict[str, str] = {}
    for element in root.iter("JB_job_number"):
        reasons.setdefault((element.text or "").strip(), "")
    for job in root.iter():
        number = job.findtext("JB_job_number")
        messages = [m.text or "" for m in job.iter("QIM_message")]
        if number and messages:
            reasons[number.strip()] = "; ".join(dict.fromkeys(messages))
    return {number: reason for number, reason in reasons.items() if reason}


def parse_workdirs(stdout: str) -> Dict[str, str]:
    """Return the Pulsar job directories by job number of an answer to ``qstat -xml -j``.

    They are told by where the jobs' streams go (the first of several paths); jobs whose streams
    go elsewhere are left out, and so are those that the qmaster does not know.

    Raises:
        OutputParseError: the text is no such answer, or is cut short.
    """
    if "<unknown_jobs" in stdout and "<detailed_job_info" not in stdout:
        return {}
    found: Dict[str, str] = {}
    for job in _root(stdout, "detailed_job_info").iter():
        number = job.findtext("JB_job_number")
        paths = [_text(job, f"JB_{name}_path_list//PN_path") for name in ("stderr", "stdout")]
        directory = directory_of_streams(*paths)
        if number and directory is not None:
            found[number.strip()] = directory
    return found


def with_error_reasons(
    views: Sequence[JobView], reasons: Mapping[str, str]
) -> List[JobView]:
    """Return the views with what :func:`parse_error_reasons` tells of those that are stuck."""
    told = []
    for view in views:
        reason = reasons.get(parse_external_id(view.external_id).base)
        told.append(stuck_for(view, reason) if reason and view.phase is Phase.STUCK else view)
    return told


def stuck_for(view: JobView, reason: str) -> JobView:
    """Return the view of a job in error with the reason of it."""
    cause, detail = classify_error_reason(reason)
    return replace(
        view,
        stuck_for=cause,
        stuck_detail=detail if cause is not Cause.HELD else reason,
        evidence=(*view.evidence, Evidence("qstat", "error reason", reason)),
    )
