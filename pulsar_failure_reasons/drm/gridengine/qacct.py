"""The records that ``qacct -j`` shows, one for each start of a job or of an array's task.

qacct reads a plain file, so it answers while the qmaster is down; it lags behind qstat by the
flush time (9 to 12 s as Debian ships it).
"""

from __future__ import annotations

import re
from datetime import date
from typing import Dict, List, Mapping, Optional

from ...errors import OutputParseError
from ...reason import Confidence, Evidence
from ..base import JobView, Phase
from ..external_ids import parse_external_id
from .classify import how_it_ended
from .failed import FAILED_CODES, parse_failed
from .limits import Usage, duration, memory, parse_requests

_BAR = re.compile(r"^={20,}\s*$", re.MULTILINE)
#: What ``qacct -o USER -j`` prints behind the records, or alone where there is none (8.1.9).
_SUMMARY = re.compile(r"^OWNER\s.*\bWALLCLOCK\s.*\n={20,}\s*$", re.MULTILINE)
_FIELD = re.compile(r"^(?P<name>[a-z][a-z_]{1,30})(?:[ \t]+(?P<value>.*))?$")
_NOT_FOUND = re.compile(
    r"job (?:id|name|-?array tasks?)? ?.{0,60} not found|no jobs running since startup"
    r"|Job-array tasks .{1,40} not found",
    re.IGNORECASE,
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")

Record = Mapping[str, str]


def parse_qacct(stdout: str, stderr: str = "") -> List[JobView]:
    """Return the ended jobs of an answer of ``qacct -j``: of several records of one the last.

    A record that says "rescheduling" is no end; where there is no other one, accounting does
    not know how the job ended, and it is left out.

    Raises:
        OutputParseError: no record, and no word of qacct's that it knows none; or a record
            that is cut short.
    """
    records = read_records(stdout)
    answered = _NOT_FOUND.search(f"{stderr}\n{stdout}") or _SUMMARY.search(_plain(stdout))
    if not records and not answered:
        raise OutputParseError(f"qacct printed neither a record nor why: {stdout[:200]!r}")
    views: Dict[str, JobView] = {}
    for record in records:
        if not {"jobnumber", "failed", "exit_status"} <= set(record):
            raise OutputParseError(f"qacct printed a record that is cut short: {record!r:.200}")
        if not goes_on(record):
            view = view_of(record)
            # Of an array's tasks each has its own record; the last start of each counts.
            views.pop(view.external_id, None)
            views[view.external_id] = view
    return list(views.values())


def read_records(text: str) -> List[Record]:
    """Return the records in a text by the names of their fields; the first of equal names.

    What a user could write with a newline (Univa's ``submit_cmd``) stands behind what counts.
    """
    text = _plain(text)
    summaries = list(_SUMMARY.finditer(text))
    pieces = _BAR.split(text[: summaries[-1].start()] if summaries else text)
    records = [read_fields(piece) for piece in (pieces[1:] if len(pieces) > 1 else [])]
    return [record for record in records if record]


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n")


def read_fields(piece: str) -> Dict[str, str]:
    """Return the fields of one record, also of one without its bar."""
    fields: Dict[str, str] = {}
    for line in piece.split("\n"):
        match = _FIELD.match(line.strip())
        if match:
            fields.setdefault(match.group("name"), (match.group("value") or "").strip())
    return fields


def goes_on(record: Record) -> bool:
    """Tell whether a record says that the job is started again (codes 24 and 25)."""
    row = FAILED_CODES.get(parse_failed(record.get("failed", "")) or 0)
    return row is not None and row.requeues


def view_of(record: Record) -> JobView:
    """Return the job of one record; fields may lack but not the id.

    Raises:
        OutputParseError: the id is none.
    """
    usage = usage_of(record)
    failed = parse_failed(record["failed"]) if "failed" in record else None
    end, inferred = how_it_ended(
        failed, _number(record.get("exit_status")), usage, deleted_by(record)
    )
    return JobView(
        external_id=external_id(record),
        job_state=f"failed {failed}" if failed is not None else "?",
        phase=Phase.ENDED,
        confidence=Confidence.INFERRED if inferred else Confidence.ACCOUNTING,
        end=end,
        job_name=record.get("jobname") or None,
        submitted_at=record.get("qsub_time") or None,
        elapsed_s=usage.elapsed_s,
        walltime_s=usage.time("h_rt") or usage.time("s_rt"),
        memory_bytes=usage.size("h_vmem") or usage.size("s_vmem"),
        used_memory_bytes=usage.max_vmem_bytes or None,
        node=record.get("hostname") or None,
        evidence=evidence(record),
    )


def evidence(record: Record) -> "tuple[Evidence, ...]":
    """Return what decided, as evidence."""
    names = ("failed", "exit_status", "ru_wallclock", "maxvmem", "category", "deleted_by")
    return tuple(Evidence("qacct", name, record[name]) for name in names if record.get(name))


def external_id(record: Record) -> str:
    """Return ``46``, or ``46.2`` for an array's task.

    Raises:
        OutputParseError: the record has no id.
    """
    task = record.get("taskid", "")
    base = record.get("jobnumber", "")
    return parse_external_id(f"{base}.{task}" if task.isdigit() else base).text


def deleted_by(record: Record) -> Optional[str]:
    """Return who deleted the job, as Univa's records tell; None for NONE."""
    who = record.get("deleted_by", "").strip()
    return None if who.upper() in ("", "NONE", "UNDEFINED", "-") else who.partition("@")[0]


def usage_of(record: Record) -> Usage:
    """Return requested and used of a record."""
    requests = parse_requests(record["category"]) if "category" in record else None
    for name in ("hard_resources", "granted_req"):
        if name in record:
            requests = {**parse_requests(record[name]), **(requests or {})}
    elapsed_s = duration(record.get("ru_wallclock"))
    if not elapsed_s:
        elapsed_s = duration(record.get("wallclock")) or _between(record) or elapsed_s
    cpu = re.match(r"[0-9]{1,12}(?:\.[0-9]+)?", record.get("cpu", ""))
    return Usage(
        requests=requests,
        elapsed_s=elapsed_s,
        cpu_s=float(cpu.group()) if cpu else None,
        max_vmem_bytes=memory(record.get("maxvmem")),
        slots=_number(record.get("slots")) or 1,
    )


def _number(text: Optional[str]) -> Optional[int]:
    match = re.match(r"\s*([0-9]{1,9})(?![0-9])", text or "")
    return int(match.group(1)) if match else None


def _between(record: Record) -> Optional[int]:
    start, end = (_seconds(record.get(name, "")) for name in ("start_time", "end_time"))
    return end - start if start is not None and end is not None and end >= start else None


def _seconds(text: str) -> Optional[int]:
    """Seconds since some day, of ``Wed Mar 23 13:33:31 2022`` or ``06/30/2015 15:24:59.247``."""
    english = re.fullmatch(
        r"\w{3} (?P<m>\w{3}) +(?P<d>[0-9]{1,2}) (?P<t>[0-9:]{8})(?:\.[0-9]+)? (?P<y>[0-9]{4})",
        text.strip(),
    )
    digits = re.fullmatch(
        r"(?P<m>[0-9]{2})/(?P<d>[0-9]{2})/(?P<y>[0-9]{4}) (?P<t>[0-9:]{8})(?:\.[0-9]+)?",
        text.strip(),
    )
    match = english or digits
    if match is None:
        return None
    word = match.group("m").lower()
    month = _MONTHS.index(word) + 1 if word in _MONTHS else int(word) if word.isdigit() else 0
    try:
        day = date(int(match.group("y")), month, int(match.group("d")))
    except ValueError:
        return None
    hours, minutes, seconds = (int(part) for part in match.group("t").split(":"))
    return day.toordinal() * 86400 + hours * 3600 + minutes * 60 + seconds
