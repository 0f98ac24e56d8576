"""The batched answer of squeue."""

from __future__ import annotations

from functools import lru_cache
from typing import List, Mapping, Optional, Tuple

from ...errors import OutputParseError
from ...reason import Confidence, Evidence
from ..base import JobView
from ..external_ids import parse_external_id
from .classify import describe_state, parse_exit_code, signal_from_reason
from .fields import duration, memory, text_or_none, tres_memory, whole_number
from .rows import parse_rows

#: Most jobs of an answer are in the same few states, and an answer may hold thousands of them.
_described = lru_cache(maxsize=512)(describe_state)

#: Longer lists of waiting tasks (SLURM_BITSTR_LEN=0 cuts none) are not searched for a task.
LONGEST_TASK_LIST = 4000

_REQUIRED = ("JOBID", "STATE", "REASON", "NAME")


def parse_squeue(text: str, separator: str) -> List[JobView]:
    """Return all jobs of an answer to :func:`.commands.squeue_command`.

    An empty list is a real answer: squeue printed its headings and no job below them.

    Raises:
        OutputParseError: the text is no such answer, is cut short, or a row of it is no job.
    """
    return [_view(row) for row in parse_rows(text, separator, _REQUIRED, "squeue")]


def _view(row: Mapping[str, str]) -> JobView:
    exit_code, signal = parse_exit_code(row.get("EXIT_CODE", ""))
    reason = row["REASON"]
    state = _described(row["STATE"], reason, exit_code, signal or signal_from_reason(reason))
    if not state.word:
        raise OutputParseError(f"squeue printed a job without a state: {dict(row)!r:.200}")
    cpus, nodes = whole_number(row.get("CPUS")), whole_number(row.get("NODES"))
    size = tres_memory(row.get("TRES_ALLOC"))
    if size is None and (cpus or 1) == 1 and (nodes or 1) == 1:
        size = memory(row.get("MIN_MEMORY")) or None
    return JobView(
        external_id=_external_id(row),
        job_state=state.word,
        phase=state.phase,
        confidence=Confidence.CONTROLLER,
        end=state.end,
        stuck_detail=state.stuck_detail,
        job_name=row["NAME"],
        workdir=text_or_none(row.get("WORK_DIR")),
        submitted_at=text_or_none(row.get("SUBMIT_TIME")),
        restarts=_restarts(row),
        elapsed_s=duration(row.get("TIME")),
        walltime_s=duration(row.get("TIME_LIMIT")),
        memory_bytes=size,
        node=text_or_none(row.get("NODELIST")),
        evidence=_evidence(row["STATE"], row["REASON"], row.get("EXIT_CODE", "")),
    )


def _external_id(row: Mapping[str, str]) -> str:
    """``13_1``, ``13_[4-10%3]``, ``7+1`` or ``13``; HET_... was PACK_... before 20.02."""
    task = text_or_none(row.get("ARRAY_TASK_ID"))
    het = text_or_none(row.get("HET_JOB_ID") or row.get("PACK_JOB_ID"))
    offset = text_or_none(row.get("HET_JOB_OFFSET") or row.get("PACK_JOB_OFFSET"))
    if task is not None:
        # One array of somebody's with a longer list must not cost the whole answer.
        listed = task if len(task) <= LONGEST_TASK_LIST else "..."
        shown = task if task.isdigit() else f"[{listed}]"
        external_id = f"{row.get('ARRAY_JOB_ID', '').strip()}_{shown}"
    elif het is not None and het != "0" and offset is not None:
        external_id = f"{het}+{offset}"
    else:
        external_id = row["JOBID"].strip()
    return parse_external_id(external_id).text


def _restarts(row: Mapping[str, str]) -> Optional[int]:
    for heading in ("RESTART_COUNT", "RESTARTS", "RESTART_CNT", "RESTARTCNT"):
        if heading in row:
            return whole_number(row[heading])
    return None


@lru_cache(maxsize=512)
def _evidence(state: str, reason: str, exit_code: str) -> Tuple[Evidence, ...]:
    named = (("State", state), ("Reason", reason), ("exit_code", exit_code))
    return tuple(Evidence("squeue", name, value) for name, value in named if value)
