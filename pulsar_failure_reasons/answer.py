"""One answer of a DRM, asked for single jobs: by id, by name, by where they work. Pure."""

from __future__ import annotations

from typing import Dict, List, Optional, Protocol, Sequence

from .drm.base import JobView, Phase
from .drm.combine import combine_views
from .drm.external_ids import alive_ids, base_id, same_job


class Watch(Protocol):
    """A job that the observer looks at. No method may raise."""

    #: The DRM's id; None where it was lost, then the job is looked for by its name, and where
    #: nobody knows that either, by where it works.
    external_id: Optional[str]
    job_name: Optional[str]
    #: When the job was known to be submitted: answers to earlier queries say nothing of it.
    since: float

    def recognises(self, view: JobView) -> bool:
        """Tell whether the view is of this job, not of another that got its id since."""

    def works_here(self, view: JobView) -> bool:
        """Tell whether the view is known to work in the directory of this job."""

    def see(self, view: Optional[JobView], at: float) -> bool:
        """Take one answer about the job (None: not known); return True once it has ended."""


class Answer:
    """What one query said, ready to be asked for single jobs."""

    def __init__(self, views: Sequence[JobView]) -> None:
        self.size = len(views)
        self._views = views
        self._by_base_id: Dict[str, List[JobView]] = {}
        self._by_name: Dict[str, List[JobView]] = {}
        for view in views:
            self._by_base_id.setdefault(base_id(view.external_id), []).append(view)
            if view.job_name is not None:
                self._by_name.setdefault(view.job_name, []).append(view)

    def find(self, watch: Watch) -> Optional[JobView]:
        """Return the job as the answer shows it, its elements folded into one; None if absent."""
        views = [view for view in self._candidates(watch) if watch.recognises(view)]
        if watch.external_id is None:
            views = _one_job(views)
        return combine_views(views) if views else None

    def _candidates(self, watch: Watch) -> Sequence[JobView]:
        external_id = watch.external_id
        if external_id is not None:
            candidates = self._by_base_id.get(base_id(external_id), [])
            return [view for view in candidates if same_job(external_id, view.external_id)]
        if watch.job_name is not None:
            return self._by_name.get(watch.job_name, [])
        return [view for view in self._views if watch.works_here(view)]

    def is_alive(self, external_id: str) -> bool:
        """Tell whether the answer shows any element of the job that has not ended."""
        return bool(alive_ids(external_id, self._by_base_id.get(base_id(external_id), [])))


def _one_job(views: Sequence[JobView]) -> List[JobView]:
    """Return the one job that these are, a living one before those that have ended.

    None where there are several: an earlier attempt, or another server's job.
    """
    views = [view for view in views if view.phase is not Phase.ENDED] or list(views)
    return views if len({base_id(view.external_id) for view in views}) == 1 else []
