"""Tables of bjobs as people copy them: any columns, any separator, rows over several lines."""

from __future__ import annotations

import re
from typing import Dict, List, Optional, Sequence

from ...errors import OutputParseError
from ..base import JobView
from .bjobs import is_state, view_of
from .termination import find_termination

_SEPARATORS = ("|", "^", "\x1f", ";", "\t", ",", ":")
_HEADINGS = {
    "jobid": "jobid", "id": "jobid", "stat": "stat", "status": "stat", "exitcode": "exit_code",
    "exitreason": "exit_reason", "termreason": "exit_reason", "exechost": "exec_host",
    "starttime": "start_time", "runtime": "run_time", "runlimit": "runtimelimit",
    "runtimelimit": "runtimelimit", "memlimit": "memlimit", "maxmem": "max_mem",
    "submittime": "submit_time", "jobindex": "jobindex", "jobname": "job_name",
}
_ID = re.compile(r"[0-9]{1,18}(?:\[[0-9]+\])?")


def read_rows(text: str) -> List[JobView]:
    """Return the jobs of a table; lines that are no rows are skipped. Never raises."""
    views: List[JobView] = []
    heading: Optional[List[str]] = None
    separator: Optional[str] = None
    for line in text.split("\n"):
        names, found_separator = _heading(line)
        if names:
            heading, separator = names, found_separator
            continue
        row = _row(line[:4000], heading, separator)
        if row is not None:
            try:
                views.append(view_of(row, "bjobs"))
            except OutputParseError:
                continue
    return views


def _letters(cell: str) -> str:
    return re.sub(r"[^a-z]", "", cell.lower())


def _heading(line: str) -> "tuple[Optional[List[str]], Optional[str]]":
    for separator in (*_SEPARATORS, None):
        if separator is None or separator in line:
            cells = map(_letters, line.split(separator))
            names = [_HEADINGS.get(cell, cell) for cell in cells]
            if "jobid" in names and "stat" in names:
                return names, separator
    return None, None


def _row(
    line: str, heading: Optional[Sequence[str]], separator: Optional[str]
) -> Optional[Dict[str, str]]:
    if heading and separator:
        cells = [cell.strip() for cell in line.split(separator)]
        if len(cells) == len(heading):
            return _named(cells, heading)
    for separator_seen in _SEPARATORS[:5]:
        if line.count(separator_seen) >= 2:
            return _by_looks([cell.strip() for cell in line.split(separator_seen)])
    if heading and not separator:
        cells = line.split(None, len(heading) - 1)
        if len(cells) == len(heading):
            row = _named([cell.strip() for cell in cells], heading)
            if row is not None and _is_plausible(row):
                return row
    return _by_blanks(line)


def _is_plausible(row: Dict[str, str]) -> bool:
    """Blanks inside a field would have moved all that follow: then an exit code is none."""
    return re.fullmatch(r"[0-9]{1,3}|-", row.get("exit_code", "-")) is not None


def _named(cells: Sequence[str], heading: Sequence[str]) -> Optional[Dict[str, str]]:
    row = dict(zip(heading, cells))
    return row if _ID.fullmatch(row["jobid"]) and is_state(row["stat"]) else None


def _by_looks(cells: Sequence[str]) -> Optional[Dict[str, str]]:
    """A row without headings: the id first, one state, the number after it its exit code."""
    ids = [cell for cell in cells[:3] if _ID.fullmatch(cell)]
    states = [i for i, cell in enumerate(cells) if is_state(cell)]
    if not ids or not states or len({cells[i] for i in states}) != 1:
        return None
    at = states[0]
    row = {"jobid": ids[0], "stat": cells[at]}
    after = cells[at + 1] if at + 1 < len(cells) else ""
    if re.fullmatch(r"[0-9]{1,3}", after):
        row["exit_code"] = after
    reasons = [c for c in cells if "TERM_" in c or (" " in c and find_termination(c))]
    row["exit_reason"] = reasons[0] if reasons else ""
    return row


#: ``bjobs -w``, ``bjobs -W``: id, user, state, queue, host, execution host ...
_PLAIN_ROW = re.compile(
    r"^\s*(?P<id>[0-9]{1,18}(?:\[[0-9]+\])?)\s+(?P<user>\S+)\s+(?P<stat>[A-Z_]{2,9})(?=\s|$)"
    r"(?:\s+(?P<queue>\S+)\s+(?P<from>\S+)\s+(?P<host>\S+))?(?P<rest>.*)$"
)
_DATE = re.compile(r"[0-9]{2}/[0-9]{2}-[0-9]{2}:[0-9]{2}|[0-9]{3}:[0-9]{2}:[0-9]{2}\.[0-9]{2}")


def _by_blanks(line: str) -> Optional[Dict[str, str]]:
    match = _PLAIN_ROW.match(line)
    if match is None or not is_state(match.group("stat")):
        bare = re.match(r"^\s*(?P<id>[0-9]{1,18}(?:\[[0-9]+\])?)\s+(?P<stat>[A-Z_]{3,9})\b", line)
        if bare is None or not is_state(bare.group("stat")):
            return None
        cut = line[line.index("TERM_"):] if "TERM_" in line else ""
        return {"jobid": bare.group("id"), "stat": bare.group("stat"), "exit_reason": cut}
    row = {"jobid": match.group("id"), "stat": match.group("stat")}
    rest = match.group("rest")
    if "TERM_" in rest:
        row["exit_reason"] = rest[rest.index("TERM_"):]
    if match.group("host") == "-" and _DATE.search(rest):
        # bjobs -W writes "-" where there never was a host; the short form leaves it empty.
        row["exec_host"] = "-"
    return row
