"""The batched answer of sacct: a row per allocation and per step, folded into one per job."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Dict, List, Mapping, Optional, Tuple

from ...errors import OutputParseError
from ...reason import Cause, Confidence, Evidence
from ..base import End, Ending, JobView
from ..external_ids import parse_external_id
from .classify import describe_state, parse_exit_code
from .fields import duration, memory, text_or_none, whole_job_memory, whole_number
from .rows import parse_rows
from .states import SlurmState, canonical_state

_REQUIRED = ("JobID", "State", "ExitCode", "JobName")
# "13_1.batch", "5.extern", "176+0.0", "12.3+1" (a step over components), "5.interactive".
_STEP = re.compile(r"(?P<job>[^.]+)\.(?P<step>[A-Za-z]+\+?|[0-9]+(?:\+[0-9]+)?)")


def parse_sacct(text: str, separator: str) -> List[JobView]:
    """Return the jobs of an answer to :func:`.commands.sacct_command`, one view each.

    Only the allocation's row decides. Steps give the memory used, and the out-of-memory end
    that Slurm itself leaves out of a FAILED allocation. Of several records under one id (a
    requeued job, a reused id) the last counts. An empty list is a real answer: accounting does
    not know the jobs.

    Raises:
        OutputParseError: the text is no such answer, is cut short, or a row of it is no job.
    """
    views: Dict[str, JobView] = {}
    for row in parse_rows(text, separator, _REQUIRED, "sacct"):
        job, step = split_step(row["JobID"])
        if step is None:
            views[job] = _view(job, row)
        elif job in views:
            views[job] = with_step(views[job], step, row["State"], memory(row.get("MaxRSS")))
    return list(views.values())


def split_step(job_id: str) -> Tuple[str, Optional[str]]:
    """Return (job, step) of sacct's ``JobID``; the step is None for the allocation itself.

    Raises:
        OutputParseError: it is neither.
    """
    word = job_id.strip()
    match = _STEP.fullmatch(word)
    if match:
        return parse_external_id(match.group("job")).text, match.group("step")
    return parse_external_id(word).text, None


def _view(job: str, row: Mapping[str, str]) -> JobView:
    exit_code, signal = parse_exit_code(row["ExitCode"])
    state = describe_state(row["State"], "", exit_code, signal)
    if not state.word:
        raise OutputParseError(f"sacct printed a job without a state: {dict(row)!r:.200}")
    cpus, nodes = whole_number(row.get("AllocCPUS")), whole_number(row.get("NNodes"))
    name: Optional[str] = row["JobName"]
    if name == "allocation" or "?" in row["JobName"]:
        # "allocation" is what sacct prints for about 5 s until slurmdbd has the name (22.05), "?"
        # what a database without UTF-8 makes of other letters. Neither may pass for another job.
        name = None
    return JobView(
        external_id=job,
        job_state=state.word,
        phase=state.phase,
        confidence=Confidence.ACCOUNTING,
        end=state.end,
        stuck_detail=state.stuck_detail,
        job_name=name,
        workdir=text_or_none(row.get("WorkDir")),
        submitted_at=text_or_none(row.get("Submit")),
        elapsed_s=duration(row.get("Elapsed")),
        walltime_s=duration(row.get("Timelimit")),
        memory_bytes=whole_job_memory(row.get("ReqMem"), cpus, nodes),
        node=text_or_none(row.get("NodeList")),
        evidence=(
            Evidence("sacct", "State", row["State"]),
            Evidence("sacct", "ExitCode", row["ExitCode"]),
        ),
    )


def with_step(
    view: JobView, step: str, state_text: str, max_rss_bytes: Optional[int] = None
) -> JobView:
    """Return the job's view with what one of its steps adds.

    An allocation that is FAILED for a step that ran out of memory ended for memory. The
    extern step does not count: nothing of the job runs there.
    """
    used = max((n for n in (view.used_memory_bytes, max_rss_bytes) if n), default=None)
    view = replace(view, used_memory_bytes=used)
    end = view.end
    out_of_memory = canonical_state(state_text) is SlurmState.OUT_OF_MEMORY
    if end is None or not out_of_memory or step.startswith("ext"):
        return view
    if view.job_state != SlurmState.FAILED.value or end.ending is not Ending.BADLY:
        return view
    return replace(
        view,
        end=End(Ending.LIMIT, Cause.MEMORY, exit_code=end.exit_code, signal=end.signal),
        evidence=view.evidence + (Evidence("sacct", f"State of step {step}", state_text),),
    )
