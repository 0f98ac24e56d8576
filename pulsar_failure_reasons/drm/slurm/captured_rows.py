"""Tables of sacct and squeue as people copy them: any columns, any separator, cut words.

The manager never reads these; it asks for columns and separators of its own (see ``rows``).
"""

from __future__ import annotations

import re
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from ...reason import Confidence
from ..base import JobView
from .captured_views import clean_id, sighting
from .fields import memory
from .sacct import with_step
from .states import COMPACT_CODES, SlurmState, canonical_state

_SEPARATORS = ("\x1f", "|", "^", "\t", ";", ",")
_ID_HEADINGS = ("jobid", "jobidraw", "job", "id", "arrayjobid")
_STATE_HEADINGS = ("state", "st", "jobstate", "statecompact")
_HEADINGS = frozenset(
    _ID_HEADINGS
    + _STATE_HEADINGS
    + (
        "jobname", "name", "partition", "account", "alloccpus", "exitcode", "user", "elapsed",
        "time", "timelimit", "nodes", "nodelist", "nodelistreason", "reason", "start", "end",
        "submit", "reqmem", "maxrss", "ncpus", "cpus", "cluster", "qos", "derivedexitcode",
        "timeleft", "priority", "alloctres", "workdir", "comment",
    )
)
_STEP = re.compile(r"(?P<job>[0-9][0-9_+\[\]%,-]*)\.(?P<step>[A-Za-z0-9]*\+?(?:[0-9]+)?)")
_EXIT = re.compile(r"[0-9]{1,3}:[0-9]{1,3}")
_TIME = r"(?:[0-9]+-)?[0-9]{1,3}(?::[0-9]{2}){1,2}|INVALID|UNLIMITED|NOT_SET|N/A"
_STATE_THEN_TIME = re.compile(rf"\s(\S+)\s+(?:{_TIME})(?=\s|$)")
_STATE_THEN_EXIT = re.compile(r"(?:^|\s)(\S+)\s+([0-9]{1,3}:[0-9]{1,3})(?=\s|$)")
_BLANK = "\x00"


class Row(NamedTuple):
    """One row: a job or, with ``step``, a step of it. Empty texts were not there."""

    job: str
    step: Optional[str]
    state: str
    reason: str = ""
    exit_text: str = ""
    max_rss: str = ""


def read_rows(text: str, *, needs_heading: bool, squeue: bool) -> List[JobView]:
    """Return the jobs of a table, steps folded in; rows without an id in their order.

    Args:
        text: The whole text; lines that are no rows are skipped.
        needs_heading: Read rows only below a row of headings (the text may be a tool's).
        squeue: The rows are squeue's, so ``0:15`` is a time and no exit code.
    """
    rows: List[Row] = []
    heading: Optional[_Heading] = None
    for line in _lines(text):
        found = _heading_of(line)
        if found:
            heading = found
        elif heading is not None and set(line.strip()) <= set("- "):
            heading = heading._replace(spans=[m.span() for m in re.finditer("-+", line)])
        elif heading is not None or not needs_heading:
            row = _row(line, heading, squeue)
            if row:
                rows.append(row)
    is_squeue = squeue or (heading is not None and "exitcode" not in heading.names
                           and "nodelistreason" in heading.names)
    return _fold(rows, "squeue" if is_squeue else "sacct")


def _lines(text: str) -> List[str]:
    # A job name may hold newlines, but then the rest of its row is no row, or has no id.
    kept = []
    for line in re.split(r"[\r\n]+", text):
        line = re.sub(r"^\s*(?:>|\$ .*|#)\s?", "", line)
        stripped = line.strip()
        if len(stripped) > 1 and stripped[0] == stripped.rstrip(",")[-1:] and stripped[0] in "\"'`":
            line = " " + stripped.rstrip(",")[1:-1]
        if line.strip():
            kept.append(line[:4000])
    return kept


class _Heading(NamedTuple):
    names: List[str]
    separator: Optional[str]
    spans: List[Tuple[int, int]] = []


def _heading_of(line: str) -> Optional[_Heading]:
    for separator in _SEPARATORS:
        if separator in line:
            names = [_letters(cell) for cell in line.split(separator)]
            if _is_heading(names):
                return _Heading(names, separator)
    names = [_letters(cell) for cell in line.split()]
    return _Heading(names, None) if _is_heading(names) else None


def _letters(cell: str) -> str:
    return re.sub(r"[^a-z]", "", cell.lower())


def _is_heading(names: Sequence[str]) -> bool:
    known = [name for name in names if name in _HEADINGS]
    told = any(name in _STATE_HEADINGS for name in names)
    return told and (len(known) >= 2 or len([name for name in names if name]) == 1)


def _row(line: str, heading: Optional[_Heading], squeue: bool) -> Optional[Row]:
    separator = heading.separator if heading else _separator_of(line)
    if separator is not None and separator in line:
        cells = [cell.strip() for cell in line.split(separator)]
        if heading:
            return _by_names(_aligned(cells, heading.names))
        return _by_looks(cells, squeue)
    sliced = _sliced(line, heading) if heading and heading.spans else None
    return (_by_names(sliced) if sliced else None) or _by_blanks(line, heading, squeue)


def _separator_of(line: str) -> Optional[str]:
    for separator in _SEPARATORS[:4]:
        if line.count(separator) >= 1:
            return separator
    return None


def _aligned(cells: List[str], names: List[str]) -> Dict[str, str]:
    """Map cells to headings; a separator inside the job name shifts only what is around it."""
    extra = len(cells) - len(names)
    if extra <= 0 or not any(cells[len(names):]):
        return dict(zip(names, cells))
    at = next((i for i, name in enumerate(names) if name in ("jobname", "name", "comment")), None)
    if at is None:
        return {}
    joined = cells[:at] + ["|".join(cells[at:at + extra + 1])] + cells[at + extra + 1:]
    return dict(zip(names, joined))


def _sliced(line: str, heading: _Heading) -> Optional[Dict[str, str]]:
    """Cut a line of sacct's at the dashes under its headings; None where words cross a cut."""
    cells: Dict[str, str] = {}
    for name, (start, end) in zip(heading.names, heading.spans):
        if line[end:end + 1].strip():
            return None
        cells[name] = line[start:end].strip()
    return cells


def _by_names(cells: Dict[str, str]) -> Optional[Row]:
    state = next((cells[name] for name in _STATE_HEADINGS if cells.get(name)), "")
    if canonical_state(state) is SlurmState.UNKNOWN:
        return None
    job = next((cells[name] for name in _ID_HEADINGS if cells.get(name)), "")
    task = cells.get("arraytaskid", "")
    if cells.get("arrayjobid") and task not in ("", "N/A"):
        job = f"{cells['arrayjobid']}_{task if task.isdigit() else '[' + task + ']'}"
    base, step = _split(job)
    reason = cells.get("reason") or _in_parentheses(cells.get("nodelistreason", ""))
    return Row(base, step, state, reason, cells.get("exitcode", ""), cells.get("maxrss", ""))


def _by_looks(cells: List[str], squeue: bool) -> Optional[Row]:
    """A row without headings: what is a state, an id, an exit code, by its looks."""
    at = _state_at(cells)
    if at is None:
        return None
    job, step = "", None
    for cell in cells:
        base, part = _split(cell)
        if base:
            job, step = base, part
            break
    exits = [cell for cell in cells if _EXIT.fullmatch(cell)]
    exit_text = exits[0] if exits and not squeue else ""
    after = cells[at + 1] if at + 1 < len(cells) else ""
    reason = _in_parentheses(cells[-1]) or (after if squeue else "")
    return Row(job, step, cells[at], reason, exit_text)


def _state_at(cells: Sequence[str]) -> Optional[int]:
    """Where the one state is; None where there is none, or two that differ (a job's name)."""
    full = [i for i, cell in enumerate(cells) if _is_full_state(cell)]
    if full:
        states = {canonical_state(cells[i]) for i in full}
        return full[-1] if len(states) == 1 else None
    codes = [i for i, cell in enumerate(cells) if cell in COMPACT_CODES]
    return codes[-1] if codes and len({cells[i] for i in codes}) == 1 else None


def _is_full_state(cell: str) -> bool:
    return (
        len(cell) > 4
        and cell == cell.upper().replace(" BY ", " by ")
        and canonical_state(cell) is not SlurmState.UNKNOWN
    )


def _by_blanks(line: str, heading: Optional[_Heading], squeue: bool) -> Optional[Row]:
    """A row of blanks: the state stands before the time (squeue) or the exit code (sacct)."""
    line = re.sub(
        r"CANCELLED by? ?(?:[0-9]\S*|\+)", lambda m: m.group().replace(" ", _BLANK), line
    )
    line = re.sub(r"(?<=[A-Z])(?=(?:INVALID|UNLIMITED)(?:\s|$))", " ", line)
    cells = line.split()
    job, step = _split(cells[0]) if cells else ("", None)
    exit_text, reason = "", _in_parentheses(line)
    names = heading.names if heading else []
    state = ""
    if names and len(cells) == len(names):
        row = _by_names(dict(zip(names, (cell.replace(_BLANK, " ") for cell in cells))))
        if row:
            return row
    before_time = [m for m in _STATE_THEN_TIME.finditer(line) if _may_be_state(m.group(1))]
    before_exit = [m for m in _STATE_THEN_EXIT.finditer(line) if _is_full_state(_plain(m.group(1)))]
    if before_exit and not squeue:
        state, exit_text = _plain(before_exit[-1].group(1)), before_exit[-1].group(2)
    elif before_time and job:
        state = _plain(before_time[-1].group(1))
    else:
        plain = [_plain(cell) for cell in cells]
        # A line of prose may hold a word such as FAILED; a row has an id or nothing else.
        at = _state_at(plain) if job or len(plain) <= 2 else None
        if at is None or (not job and at != 0):
            return None
        state = plain[at]
        if len(plain) > at + 1 and _EXIT.fullmatch(plain[at + 1]) and not squeue:
            exit_text = plain[at + 1]
        elif not job and len(plain) > 1:
            return None
    return Row(job, step, state, reason, exit_text)


def _plain(cell: str) -> str:
    return re.sub(r"CANCELLED b[^y]*\+$", "CANCELLED+", cell.replace(_BLANK, " "))


def _may_be_state(cell: str) -> bool:
    return cell in COMPACT_CODES or _is_full_state(_plain(cell))


def _split(cell: str) -> Tuple[str, Optional[str]]:
    job = clean_id(cell)
    if job:
        return job, None
    match = _STEP.fullmatch(cell.strip())
    job = clean_id(match.group("job")) if match else None
    return (job, match.group("step") or "+") if job and match else ("", None)


def _in_parentheses(text: str) -> str:
    match = re.search(r"\(([^()]*(?:\([^()]*\)[^()]*)*)\)\s*$", text)
    return match.group(1) if match else ""


def _fold(rows: List[Row], source: str) -> List[JobView]:
    """One view per job: the allocation decides; of several records of one id the last."""
    jobs: Dict[str, JobView] = {}
    orphans: Dict[str, List[Row]] = {}
    confidence = Confidence.CONTROLLER if source == "squeue" else Confidence.ACCOUNTING
    without_id: List[JobView] = []
    for row in rows:
        if row.step is not None:
            if row.job in jobs:
                jobs[row.job] = with_step(jobs[row.job], row.step, row.state, memory(row.max_rss))
            else:
                orphans.setdefault(row.job, []).append(row)
            continue
        view = sighting(
            source, confidence, row.state, job=row.job, reason=row.reason, exit_text=row.exit_text
        )
        if row.job:
            jobs[row.job] = view
        else:
            without_id.append(view)
    for job, steps in orphans.items():
        if job not in jobs:
            # Only steps were asked for: the batch step is the job script; extern's is none of the
            # job's own processes.
            own = [s for s in steps if not (s.step or "").startswith("ex")]
            if not own:
                continue
            step = next((s for s in own if (s.step or "").startswith("ba")), own[0])
            jobs[job] = sighting(
                source, Confidence.INFERRED, step.state, job=job, exit_text=step.exit_text
            )
    # "sacct -o state" has a line per job and step: only the first is the job.
    return list(jobs.values()) or without_id[:1]
