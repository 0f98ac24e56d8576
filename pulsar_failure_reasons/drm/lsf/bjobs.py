"""The batched answer of bjobs, as rows of fields and as JSON."""

from __future__ import annotations

import json
import re
from typing import Any, Dict, List, Mapping, Optional

from ...errors import OutputParseError
from ...reason import Confidence, Evidence
from ..base import JobView, directory_of_streams
from ..external_ids import parse_external_id
from .classify import describe_state
from .command_errors import says_not_found
from .commands import BJOBS_FIELDS
from .fields import memory, run_limit, seconds, text_or_none, whole_number
from .states import LsfState, canonical_state


def parse_bjobs(stdout: str, separator: str = "^", stderr: str = "") -> List[JobView]:
    """Return all jobs of an answer to :func:`.commands.bjobs_command`.

    Lines that are no rows (``LSF is processing your request``, a site's banner) are skipped. A
    job that LSF does not know is told on stderr; an empty list means that it said so of all.

    Raises:
        OutputParseError: no row, and no word of LSF's that it does not know the jobs; or two
            rows of one job that differ.
    """
    rows = [row for row in map(lambda line: _row(line, separator), _lines(stdout)) if row]
    if not rows and not says_not_found(f"{stderr}\n{stdout}"):
        raise OutputParseError(f"bjobs printed neither a job nor why: {stdout[:200]!r}")
    return _unique([view_of(row, "bjobs") for row in rows])


def _lines(text: str) -> List[str]:
    return text.replace("\r\n", "\n").split("\n")


def _row(line: str, separator: str) -> Optional[Dict[str, str]]:
    cells = line.split(separator, len(BJOBS_FIELDS) - 1)
    if len(cells) != len(BJOBS_FIELDS):
        return None
    row = {name: cell.strip() for name, cell in zip(BJOBS_FIELDS, cells)}
    is_row = re.fullmatch(r"[0-9]{1,18}(?:\[[0-9]+\])?", row["jobid"]) and row["stat"]
    return row if is_row else None


def _unique(views: List[JobView]) -> List[JobView]:
    seen: Dict[str, JobView] = {}
    for view in views:
        if seen.setdefault(view.external_id, view) != view:
            raise OutputParseError(f"bjobs printed two different jobs {view.external_id}")
    return list(seen.values())


def parse_bjobs_json(stdout: str) -> List[JobView]:
    """Return all jobs of an answer to :func:`.commands.bjobs_json_command`.

    A record with ``ERROR`` is that of a job that LSF does not know.

    Raises:
        OutputParseError: the text holds no such answer.
    """
    start = stdout.find("{")
    try:
        answer = json.loads(stdout[start:] if start >= 0 else stdout, strict=False)
    except (ValueError, RecursionError) as error:
        raise OutputParseError(f"bjobs -json printed no JSON: {stdout[:200]!r}") from error
    records = answer.get("RECORDS") if isinstance(answer, dict) else None
    if not isinstance(records, list) or not all(isinstance(r, dict) for r in records):
        raise OutputParseError(f"bjobs -json printed no RECORDS: {stdout[:200]!r}")
    return _unique([view_of(_named(r), "bjobs") for r in records if not _is_unknown_job(r)])


def _is_unknown_job(record: Mapping[str, Any]) -> bool:
    return "ERROR" in record and "STAT" not in record


def _named(record: Mapping[str, Any]) -> Dict[str, str]:
    return {str(k).lower(): "" if v is None else str(v) for k, v in record.items()}


def view_of(row: Mapping[str, str], source: str) -> JobView:
    """Return the job of one row by the names of its fields; all but id and state may lack.

    Raises:
        OutputParseError: no id or no state.
    """
    state = row.get("stat", "").strip()
    if not state:
        raise OutputParseError(f"{source} printed a job without a state: {dict(row)!r:.200}")
    elapsed_s, walltime_s = seconds(row.get("run_time")), run_limit(row.get("runtimelimit"))
    described = describe_state(
        state,
        text_or_none(row.get("exit_reason")) or "",
        whole_number(row.get("exit_code")),
        started=_started(row),
        elapsed_s=elapsed_s,
        walltime_s=walltime_s,
    )
    return JobView(
        external_id=_external_id(row),
        job_state=described.word,
        phase=described.phase,
        confidence=Confidence.INFERRED if described.inferred else Confidence.CONTROLLER,
        end=described.end,
        job_name=text_or_none(row.get("job_name")),
        workdir=directory_of_streams(row.get("error_file"), row.get("output_file")),
        submitted_at=text_or_none(row.get("submit_time")),
        elapsed_s=elapsed_s,
        walltime_s=walltime_s,
        memory_bytes=memory(row.get("memlimit")),
        used_memory_bytes=memory(row.get("max_mem")),
        node=text_or_none(row.get("exec_host")),
        evidence=_evidence(row, source),
    )


def _started(row: Mapping[str, str]) -> Optional[bool]:
    """Tell whether the job ever had a host; None where no such field was asked for."""
    if "exec_host" not in row and "start_time" not in row:
        return None
    return any(text_or_none(row.get(name)) is not None for name in ("exec_host", "start_time"))


def _external_id(row: Mapping[str, str]) -> str:
    """``123``, or ``123[5]`` for an array element (its index is 0 for a job that is none)."""
    base = row.get("jobid", "").strip()
    index = whole_number(row.get("jobindex"))
    if index and "[" not in base:
        base = f"{base}[{index}]"
    return parse_external_id(base).text


def _evidence(row: Mapping[str, str], source: str) -> "tuple[Evidence, ...]":
    shown = (("stat", row.get("stat")), ("exit_reason", row.get("exit_reason")),
             ("exit_code", row.get("exit_code")))
    return tuple(Evidence(source, key, said) for key, said in shown if said and text_or_none(said))


def is_state(word: str) -> bool:
    """Tell whether a word is one of LSF's states, as bjobs writes them."""
    return word == word.upper() and canonical_state(word) is not LsfState.UNKNOWN
