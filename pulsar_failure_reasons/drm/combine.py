"""Several records of one job (an array's tasks, a heterogeneous job's components) as one."""

from __future__ import annotations

from dataclasses import replace
from typing import Optional, Sequence, Tuple

from ..reason import Evidence
from .base import Ending, JobView, Phase
from .external_ids import parse_external_id

#: Which element speaks for the job while not all of them have ended. A stuck one comes last:
#: as long as another one moves, the job does.
_ALIVE_FIRST = (Phase.RUNNING, Phase.QUEUED, Phase.ENDING, Phase.UNKNOWN, Phase.STUCK)

#: Which end is told when all have ended: the worst.
_WORST_FIRST = (
    Ending.LIMIT,
    Ending.INFRASTRUCTURE,
    Ending.CANCELLED,
    Ending.BADLY,
    Ending.WELL,
)


def combine_views(views: Sequence[JobView]) -> JobView:
    """Return one view of a job from those of its elements.

    The job is alive as long as any element is; when all have ended, the worst end decides, and
    its evidence names the element. The submission that tells one job from the next under a
    reused id (``submitted_at`` and ``restarts`` together) is that of the element with the
    fewest restarts, so that it does not change with the element that speaks.

    Raises:
        ValueError: there is no view (a mistake of the caller).
    """
    if not views:
        raise ValueError("no views to combine")
    if len(views) == 1:
        return views[0]
    speaker = min(views, key=_rank)
    identity = min(views, key=lambda v: (v.restarts or 0, v.submitted_at or ""))
    return replace(
        speaker,
        external_id=_common_id(views),
        job_name=identity.job_name,
        submitted_at=identity.submitted_at,
        restarts=identity.restarts,
        evidence=_naming(speaker) + speaker.evidence,
    )


def _rank(view: JobView) -> Tuple[int, int]:
    if view.phase is not Phase.ENDED:
        return (0, _ALIVE_FIRST.index(view.phase))
    return (1, _WORST_FIRST.index(view.end.ending) if view.end else 0)


def _common_id(views: Sequence[JobView]) -> str:
    first = parse_external_id(views[0].external_id)
    return f"{first.base}.{first.suffix}" if first.suffix else first.base


def _naming(speaker: JobView) -> Tuple[Evidence, ...]:
    source: Optional[str] = speaker.evidence[0].source if speaker.evidence else None
    return (Evidence(source or speaker.confidence.value, "element", speaker.external_id),)
