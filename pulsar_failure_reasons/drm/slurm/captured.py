"""Texts about Slurm jobs as people copy them: "what does this say?" for ``explain``.

Unlike the parsers that the manager uses, these readers take any columns, cuts and mixtures, so
their answer is for people and tests, never for ending a job.
"""

from __future__ import annotations

import re
from typing import Dict, FrozenSet, List, Optional, Sequence

from ...errors import OutputParseError
from ...reason import Cause, Confidence, Evidence
from ..base import Ending, JobView, Phase
from ..captured import CANNOT_TELL, Captured, alive, cause_of_exit, plain_copy, without_log_marks
from ..combine import combine_views
from ..external_ids import parse_external_id, same_job
from .captured_json import read_json
from .captured_lines import (
    Ended,
    read_log,
    read_mails,
    read_other,
    read_scontrol,
    read_state_lines,
    read_stderr,
)
from .captured_rows import read_rows
from .captured_views import NO_ID
from .stderr import split_lines

_LABEL = "Slurm"
#: No end, and no sight of the job either: so it counts only where nothing else tells more.
_REQUEUED = re.compile(r"^\s*slurm\S*: .*CANCELLED AT .*DUE TO JOB REQUEUE.*$", re.MULTILINE)
#: How Slurm's lines in a stderr begin; those of its own logs do not.
_IN_STDERR = re.compile(r"^(?:(?:slurm\S*|srun|salloc): |error: \*\*\*)", re.MULTILINE)


def read_captured(
    text: str, source: str = "auto", external_id: Optional[str] = None
) -> Captured:
    """Return what a text from the wild says about a job's end. Never raises.

    Args:
        text: The text, with banners, colours and cuts.
        source: What it is: ``scontrol``, ``sacct``, ``squeue``, ``stderr``, ``state``, ``mail``,
            ``log``, ``sacct-json`` ..., several joined with ``+``, or ``auto``.
        external_id: The job meant; None where the text is about one job. A text about several
            then tells nothing.
    """
    text = plain_copy(text)
    kinds = _kinds(source)
    views = _views(text, kinds)
    if external_id is not None:
        views = {name: _of_job(found, external_id) for name, found in views.items()}
    elif _several_jobs([view for found in views.values() for view in found]):
        return CANNOT_TELL
    told = _weigh(_state(views), _line(text, kinds, external_id), external_id)
    requeued = _REQUEUED.search(text) if told.ended is None else None
    if requeued:
        return alive(Evidence("stderr", "line", requeued.group().strip()), "Slurm requeued it")
    unmarked = without_log_marks(text) if told.cause is Cause.UNKNOWN else None
    if unmarked is not None and _IN_STDERR.search(unmarked):
        behind = read_captured(unmarked, source, external_id)
        return told if behind.ended is None else behind
    return told


def _kinds(source: str) -> FrozenSet[str]:
    words = re.split(r"[^a-z]+", source.lower())
    return frozenset(word for word in words if word and word != "documented")


def _views(text: str, kinds: FrozenSet[str]) -> Dict[str, List[JobView]]:
    """What the DRM's own answers in the text show, by who answered; the first one decides."""
    from_json = read_json(text) if "{" in text else None
    if from_json is not None:
        return {"json": from_json}
    lines = split_lines(text)
    views = {
        "scontrol": read_scontrol(text) if "JobState=" in text else [],
        "mail": read_mails(lines),
    }
    if not views["scontrol"]:
        strict = not kinds & {"sacct", "squeue", "state", "auto", "rows"}
        rows = _without_slurms_lines(text)
        views["rows"] = read_rows(
            rows, needs_heading=strict or "JobState=" in text, squeue="squeue" in kinds
        )
    elif kinds & {"sacct", "auto"}:
        views["rows"] = read_rows(_without_records(text), needs_heading=False, squeue=False)
    views["seff"] = read_state_lines(lines)
    return views


def _without_slurms_lines(text: str) -> str:
    return "\n".join(
        line for line in text.split("\n")
        if not re.match(r"\s*(?:slurm\S*|srun|sacct|squeue|scontrol|scancel|sbatch|salloc): ", line)
    )


def _without_records(text: str) -> str:
    return "\n".join(line for line in text.split("\n") if "=" not in line or "|" in line)


def _of_job(views: Sequence[JobView], external_id: str) -> List[JobView]:
    kept = []
    for view in views:
        try:
            if view.external_id == NO_ID or same_job(external_id, view.external_id):
                kept.append(view)
        except OutputParseError:
            continue
    return kept


def _several_jobs(views: Sequence[JobView]) -> bool:
    return len({_base(view) for view in views} - {NO_ID}) > 1


def _base(view: JobView) -> str:
    try:
        return parse_external_id(view.external_id).base
    except OutputParseError:
        return NO_ID


def _state(views: Dict[str, List[JobView]]) -> Optional[JobView]:
    """The controller's view, or accounting's where it has none or only says COMPLETING."""
    folded = [combined for combined in map(_combined, views.values()) if combined is not None]
    if not folded:
        return None
    first = folded[0]
    if first.phase is Phase.ENDING:
        for other in folded[1:]:
            # NODE_FAIL and PREEMPTED are what accounting says of a job that is being requeued.
            if other.end is not None and other.end.ending is not Ending.INFRASTRUCTURE:
                return other
    return first


def _combined(views: Sequence[JobView]) -> Optional[JobView]:
    if not views:
        return None
    if len(views) == 1:
        return views[0]
    named = [view for view in views if view.external_id != NO_ID]
    try:
        return combine_views(named) if named else views[0]
    except OutputParseError:
        return None


def _line(text: str, kinds: FrozenSet[str], external_id: Optional[str]) -> Optional[Ended]:
    """What lines say: Slurm's in the stderr, else a log's, else those of shells and tools."""
    found = read_stderr(text, external_id)
    if found is None and ("log" in kinds or "auto" in kinds):
        found = read_log(text, external_id)
    if found is None and not kinds & {"sacct", "squeue", "scontrol"}:
        found = read_other(text)
    return found


def _weigh(
    view: Optional[JobView], line: Optional[Ended], external_id: Optional[str]
) -> Captured:
    if view is None:
        return _from_line(line, external_id) if line else CANNOT_TELL
    if view.end is None:
        alive = view.phase is not Phase.UNKNOWN
        if not alive and line is not None:
            return _from_line(line, external_id)
        return Captured(
            ended=False if alive else None,
            cause=None if alive else Cause.UNKNOWN,
            confidence=view.confidence,
            external_id=view.external_id or external_id,
            detail=view.stuck_detail,
            evidence=view.evidence,
        )
    if line is not None and _line_knows_better(view, line):
        told = _from_line(line, view.external_id or external_id)
        return Captured(**{**told.__dict__, "evidence": told.evidence + view.evidence})
    return _from_end(view, external_id)


def _line_knows_better(view: JobView, line: Ended) -> bool:
    """Tell whether Slurm's line says more than the state, which it must not contradict."""
    if view.end is None or line.confidence is Confidence.INFERRED and (
        view.end.ending is not Ending.BADLY or view.end.cause is not None
    ):
        return False
    if view.end.ending is Ending.WELL:
        # A script that swallows the kill of its step exits 0. But a job may get a signal
        # ("CANCELLED AT") and go on, and a step may have a time limit of its own.
        step_only = "STEP" in line.evidence.value
        return line.cause in (Cause.MEMORY, Cause.TOOL_ERROR) or (
            line.cause is Cause.WALLTIME and not step_only
        )
    if view.end.ending is Ending.BADLY:
        return view.end.cause is None and line.cause not in (None, Cause.UNKNOWN)
    if view.end.ending is Ending.CANCELLED:
        return line.cause in (
            Cause.MEMORY, Cause.WALLTIME, Cause.PREEMPTED, Cause.NODE_FAILURE
        )
    return False


def _from_line(line: Ended, external_id: Optional[str]) -> Captured:
    return Captured(
        ended=True,
        cause=line.cause,
        confidence=line.confidence,
        external_id=external_id or None,
        detail=line.detail,
        evidence=(line.evidence,),
    )


def _from_end(view: JobView, external_id: Optional[str]) -> Captured:
    end = view.end
    if end is None:
        return CANNOT_TELL
    cause, detail, confidence = end.cause, end.detail, view.confidence
    if end.ending is Ending.BADLY and cause is None:
        cause, detail = cause_of_exit(end.exit_code, end.signal, _LABEL)
        if cause is None:
            # FAILED with 0:0: Slurm failed it, not its script.
            cause, detail = Cause.UNKNOWN, "Slurm says that it failed, its script does not"
        if end.exit_code is None:
            confidence = Confidence.INFERRED
    return Captured(
        ended=True,
        cause=cause,
        confidence=confidence,
        external_id=view.external_id or external_id,
        detail=detail,
        cancelled_by=end.cancelled_by,
        evidence=view.evidence,
    )
