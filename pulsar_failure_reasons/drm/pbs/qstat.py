"""The batched answers of qstat: OpenPBS's JSON, Torque's XML, and the plain text of both."""

from __future__ import annotations

import json
import re
from typing import Any, Dict, List, Mapping, Optional
from xml.etree import ElementTree

from ...errors import OutputParseError
from ..base import JobView
from ..external_ids import parse_external_id
from .classify import PbsJob, view_of
from .flavour import Flavour

#: Attributes that nobody here reads and that hold what users write.
_SKIPPED = frozenset({"variable_list", "submit_arguments", "job_owner"})
_ATTRIBUTE = re.compile(r"^(?: {4}|\t)?(?P<name>[A-Za-z][\w.]*) = (?P<value>.*)$")
_JOB = re.compile(r"^Job Id:\s*(?P<id>\S+)\s*$")
_UNKNOWN_JOB = re.compile(r"Unknown Job Id|Job has finished", re.IGNORECASE)


# ---- OpenPBS: qstat -f -F json ----------------------------------------------------------------


def parse_qstat_json(stdout: str, flavour: Flavour = Flavour.OPENPBS) -> List[JobView]:
    """Return all jobs of ``qstat [-x] -f -F json``.

    An answer without ``Jobs`` is an answer: qstat prints its header also when it knows none of
    the jobs. It prints it as well when the server is down, so the exit code and stderr come
    first (:func:`.command_errors.error_from_command`).

    Raises:
        OutputParseError: the text is no such answer, or is cut short.
    """
    start = stdout.find("{")
    try:
        # Control characters inside strings, as OpenPBS writes them, are let pass.
        answer = json.loads(stdout[start:] if start >= 0 else stdout, strict=False)
    except (ValueError, RecursionError) as error:
        raise OutputParseError(f"qstat -F json printed no JSON: {stdout[:200]!r}") from error
    if not isinstance(answer, dict) or "pbs_version" not in answer:
        raise OutputParseError(f"qstat -F json printed no pbs_version: {stdout[:200]!r}")
    jobs = answer.get("Jobs", {})
    if not isinstance(jobs, dict) or not all(isinstance(job, dict) for job in jobs.values()):
        raise OutputParseError(f"qstat -F json printed Jobs that are none: {jobs!r:.200}")
    return [
        view_of(PbsJob(_checked_id(external_id), _flat(shown)), flavour)
        for external_id, shown in jobs.items()
    ]


def _checked_id(text: str) -> str:
    return parse_external_id(text).text


def _flat(shown: Mapping[str, Any]) -> Dict[str, str]:
    """Return the attributes by lower-case names; JSON retypes values, so all are texts."""
    flat: Dict[str, str] = {}
    for name, value in shown.items():
        key = str(name).lower()
        if key in _SKIPPED or value is None:
            continue
        if isinstance(value, dict):
            for inner, inner_value in value.items():
                flat[f"{key}.{str(inner).lower()}"] = str(inner_value)
        else:
            flat[key] = str(value)
    return flat


# ---- Torque: qstat -x -------------------------------------------------------------------------


def parse_qstat_xml(stdout: str, flavour: Flavour = Flavour.TORQUE) -> List[JobView]:
    """Return all jobs of Torque's ``qstat -x``; an empty text is no answer.

    Raises:
        OutputParseError: the text is no such answer, or is cut short.
    """
    start = stdout.find("<Data")
    if start < 0 or "<!" in stdout[start:]:
        # Entities could make a small text large; Torque writes none.
        raise OutputParseError(f"qstat -x printed no <Data>: {stdout[:200]!r}")
    try:
        root = ElementTree.fromstring(stdout[start:].strip())
    except (ElementTree.ParseError, ValueError) as error:
        raise OutputParseError(f"qstat -x printed broken XML: {stdout[-200:]!r}") from error
    return [_xml_job(element, flavour) for element in root.iter("Job")]


def _xml_job(element: "ElementTree.Element", flavour: Flavour) -> JobView:
    attributes: Dict[str, str] = {}
    for child in element:
        key = child.tag.lower()
        if len(child):
            for inner in child:
                attributes[f"{key}.{inner.tag.lower()}"] = (inner.text or "").strip()
        elif key not in _SKIPPED:
            attributes[key] = (child.text or "").strip()
    return view_of(PbsJob(_checked_id(attributes.get("job_id", "")), attributes), flavour)


# ---- both: qstat -f ---------------------------------------------------------------------------


def parse_qstat_text(
    stdout: str, flavour: Flavour, stderr: str = ""
) -> List[JobView]:
    """Return all jobs of ``qstat -f``: the last resort, since users can forge lines of it.

    A newline in the value of a variable begins a new line, which may look like an attribute or
    a job. So an attribute or a job that is there twice and differs counts as not known; the
    job is then in no known state, which ends nothing.

    Raises:
        OutputParseError: no job, and no word of qstat's that it knows none.
    """
    jobs = read_records(stdout)
    if not jobs and not _UNKNOWN_JOB.search(stderr):
        raise OutputParseError(f"qstat -f printed neither a job nor why: {stdout[:200]!r}")
    by_id: Dict[str, PbsJob] = {}
    for job in jobs:
        known = by_id.get(job.external_id)
        if known is not None and known != job:
            job = PbsJob(job.external_id, {}, ("job_state",))
        by_id[job.external_id] = job
    return [view_of(job, flavour) for job in by_id.values()]


def read_records(text: str) -> List[PbsJob]:
    """Return the jobs in plain text, with folded lines put together.

    Raises:
        OutputParseError: an id is none.
    """
    jobs: List[PbsJob] = []
    lines: Optional[List[str]] = None
    external_id = ""
    for line in text.replace("\r\n", "\n").split("\n"):
        match = _JOB.match(line)
        if match:
            if lines is not None:
                jobs.append(_record(external_id, lines))
            external_id, lines = _checked_id(match.group("id")), []
        elif lines is not None:
            lines.append(line)
    if lines is not None:
        jobs.append(_record(external_id, lines))
    return jobs


def _record(external_id: str, lines: List[str]) -> PbsJob:
    attributes: Dict[str, str] = {}
    ambiguous: List[str] = []
    for name, value in attribute_lines(lines):
        if name in _SKIPPED:
            continue
        if attributes.get(name, value) != value:
            ambiguous.append(name)
        attributes.setdefault(name, value)
    return PbsJob(external_id, attributes, tuple(ambiguous))


def attribute_lines(lines: List[str]) -> "List[tuple[str, str]]":
    """Return (lower-case name, value) of each attribute; a tab begins what was folded."""
    found: List["tuple[str, str]"] = []
    for line in lines:
        match = _ATTRIBUTE.match(line)
        if line.startswith("\t") and found and not (match and match.group("name") in _KNOWN):
            name, value = found[-1]
            # Folded at a column, inside a word or behind a blank: nothing is put in between.
            found[-1] = (name, value + line[1:])
        elif match:
            found.append((match.group("name").lower(), match.group("value")))
    return [(name, value.strip()) for name, value in found]


#: Attributes that some copies show behind a tab; what is folded never begins like them.
_KNOWN = frozenset({"job_state", "Exit_status", "exit_status", "substate"})
