"""What the DRM's successive answers about one job have said: pure, one value per job."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Optional, Tuple

from .drm.base import JobView, Phase


@dataclass(frozen=True)
class History:
    """What the DRM's answers about one job have said so far.

    ``job_name`` is the name the job was submitted with, or has been given since; None where we
    do not know it. ``job_directory`` is the folder in which the job works. ``view`` is what the
    newest answer says of the job, None where it does not know it. ``last`` is the newest view
    there was. ``missing``, ``stuck`` and ``ended`` count the successive answers
    that said so, the newest included. ``identity`` is the submission time and restart count of
    the first view that told both. ``running_at`` is when (monotonic seconds) the job was
    last seen running, ``missing_at`` when an answer first lacked it. ``has_run`` says that the job
    was seen running, now or before Pulsar was started. ``deleted`` says that it was being deleted
    when it was last seen alive. ``launch_cut_short`` says that Pulsar was killed while it
    submitted the job.
    """

    job_name: Optional[str] = None
    job_directory: Optional[str] = None
    view: Optional[JobView] = None
    last: Optional[JobView] = None
    identity: Optional[Tuple[str, int]] = None
    missing: int = 0
    stuck: int = 0
    ended: int = 0
    running_at: Optional[float] = None
    missing_at: Optional[float] = None
    has_run: bool = False
    deleted: bool = False
    launch_cut_short: bool = False

    def after(self, view: Optional[JobView], at: float) -> History:
        """Return the history with one more answer, given at ``at`` (monotonic seconds)."""
        if view is None or self.is_another_job(view):
            return replace(
                self,
                view=None,
                missing=self.missing + 1,
                stuck=0,
                ended=0,
                missing_at=at if self.missing_at is None else self.missing_at,
            )
        return replace(
            self,
            view=view,
            last=_with_known_limits(view, self.last),
            job_name=view.job_name or self.job_name,
            identity=self.identity or _identity(view),
            missing=0,
            stuck=self.stuck + 1 if view.phase is Phase.STUCK else 0,
            ended=self.ended + 1 if view.phase is Phase.ENDED else 0,
            running_at=at if view.phase is Phase.RUNNING else self.running_at,
            missing_at=None,
            has_run=self.has_run or view.phase in (Phase.RUNNING, Phase.ENDING),
            # A job that ended has no word of it any more; one that is seen alive was kept.
            deleted=view.deleted or (self.deleted and view.phase in (Phase.ENDED, Phase.UNKNOWN)),
        )

    def is_another_job(self, view: JobView) -> bool:
        """Tell whether the DRM has given the external id to another job since.

        Another submission time with the same restart count as first seen says so (a requeue
        resets the submission time and counts a restart). Clocks are not compared. Where that
        cannot be told, another name says so, unless the job works in our job directory: sites'
        submission plugins and administrators rename jobs, and operators change
        ``job_name_template`` while jobs are in flight.
        """
        first, now = self.identity, _identity(view)
        if first is not None and now is not None and first[1] == now[1]:
            return first[0] != now[0]
        if view.works_in(self.job_directory):
            return False
        return None not in (self.job_name, view.job_name) and self.job_name != view.job_name


def _identity(view: JobView) -> Optional[Tuple[str, int]]:
    # Not while a job is on its way out: slurmctld counts the restart of a requeued job before
    # it resets its submission time (seen on 22.05, COMPLETING).
    if view.phase is Phase.ENDING or view.submitted_at is None or view.restarts is None:
        return None
    return view.submitted_at, view.restarts


def _with_known_limits(view: JobView, before: Optional[JobView]) -> JobView:
    """Return the view with the limits that an earlier one showed and it lacks."""
    if before is None:
        return view
    kept = {
        name: getattr(before, name)
        for name in ("walltime_s", "memory_bytes")
        if getattr(view, name) is None and getattr(before, name) is not None
    }
    return replace(view, **kept) if kept else view
