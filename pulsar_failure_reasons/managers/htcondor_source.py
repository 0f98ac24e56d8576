"""How the observer and the manager look at HTCondor: its bindings and the jobs' event logs.

A pass reads the logs that grew, asks the schedd once for all our jobs, and history once for
those that have left the queue without a word in their log.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

from ..drm.base import JobView
from ..drm.external_ids import base_id
from ..drm.htcondor import HoldPolicy, JobState, view_of, view_of_history_ad
from ..drm.htcondor.events import JobSummary
from ..errors import ConfigurationError, DrmUnreachableError, SubmissionRefusedError
from ..reason import clean_text
from .htcondor_log import JobLog

log = logging.getLogger("pulsar.failure_reasons.htcondor")

PROJECTION = [
    "ClusterId", "ProcId", "JobStatus", "LastJobStatus", "JobBatchName", "QDate",
    "HoldReasonCode", "HoldReasonSubCode", "HoldReason", "LastHoldReasonCode",
    "LastHoldReasonSubCode", "LastHoldReason", "PeriodicRelease", "RemoveReason", "ExitBySignal",
    "ExitSignal", "ExitCode", "RemoteHost", "LastRemoteHost", "RequestMemory", "MemoryUsage",
    "ResidentSetSize", "ResidentSetSize_RAW", "RequestDisk", "DiskUsage_RAW",
    "AllowedExecuteDuration", "AllowedJobDuration", "JobCurrentStartDate",
    "LastRemoteWallClockTime",
]
#: HoldReasonSubCode and its like for our own removals; HTCondor keeps the number with the job.
REMOVE_CODE = 46000


def load_bindings(manager_name: str) -> ModuleType:
    """Return the module ``htcondor2``.

    Raises:
        ConfigurationError: it is not installed.
    """
    try:
        import htcondor2
    except ImportError as error:
        raise ConfigurationError(
            f"manager {manager_name}: the HTCondor bindings cannot be imported ({error}); "
            "install them with: pip install 'pulsar-failure-reasons[htcondor]'"
        ) from error
    return htcondor2  # type: ignore[no-any-return]


@dataclass
class FollowedJob:
    """One job whose log is followed, and how its manager wants its holds treated."""

    log: JobLog
    policy: Callable[[], HoldPolicy]
    sigkill_means_memory: bool = True
    held_answers: int = field(default=0)


class HTCondorSource:
    """One schedd (see ``drm.base.DrmSource``).

    Args:
        bindings: The module ``htcondor2``.
        schedd_name: As ``condor_status -schedd`` lists it; None for the local one.
        pool: Address of the collector; None for the configured one.
    """

    label = "HTCondor"

    def __init__(
        self, bindings: Any, schedd_name: Optional[str] = None, pool: Optional[str] = None
    ) -> None:
        self.bindings = bindings
        self._schedd_name = schedd_name
        self._pool = pool
        self._schedd: Any = None
        self._followed: Dict[str, FollowedJob] = {}

    def follow(self, external_id: str, job: FollowedJob) -> None:
        """Read this job's log in every pass."""
        self._followed[base_id(external_id)] = job

    def unfollow(self, external_id: str) -> None:
        """Read this job's log no more."""
        self._followed.pop(base_id(external_id), None)

    # ---- what the observer calls ------------------------------------------------------------

    def query_jobs(self) -> Sequence[JobView]:
        """See ``drm.base.DrmSource``; one query."""
        # The logs first, so that the ads are the newer of the two.
        followed = dict(self._followed)
        summaries = {cluster: job.log.read() for cluster, job in followed.items()}
        ads = {str(ad.get("ClusterId")): ad for ad in self._query()}
        views = [
            self._view(job, summaries[cluster], ads.pop(cluster, None))
            for cluster, job in followed.items()
            if cluster in ads or summaries[cluster].ended
        ]
        return views + [view_of(JobSummary(), ad) for ad in ads.values()]

    def _view(
        self, job: FollowedJob, summary: JobSummary, ad: Optional[Mapping[str, Any]]
    ) -> JobView:
        view = view_of(
            summary,
            ad,
            policy=job.policy(),
            held_answers=job.held_answers + 1,
            sigkill_means_memory=job.sigkill_means_memory,
        )
        job.held_answers = job.held_answers + 1 if view.job_state == JobState.HELD.value else 0
        return view

    def query_ended(self, external_ids: Sequence[str]) -> Optional[List[JobView]]:
        """See ``drm.base.DrmSource``; one history query."""
        clusters = sorted({base_id(external_id) for external_id in external_ids})
        constraint = " || ".join(f"ClusterId == {cluster}" for cluster in clusters)
        ads = self._call(
            "history",
            lambda schedd: schedd.history(constraint, PROJECTION, match=len(clusters)),
        )
        return [view_of_history_ad(plain_ad(ad)) for ad in ads]

    def cancel(self, external_ids: Sequence[str]) -> None:
        """See ``drm.base.DrmSource``; one act."""
        # As "cluster.proc": for a bare cluster act() does not tell a job that is gone.
        jobs = sorted({f"{base_id(external_id)}.0" for external_id in external_ids})
        # As a tuple: a plain text is lost in 25.14.1.
        reason = ("removed by Pulsar", REMOVE_CODE)
        action = self.bindings.JobAction.Remove
        self._call("remove", lambda schedd: schedd.act(action, jobs, reason=reason))

    def submit(self, commands: Mapping[str, str]) -> str:
        """Submit a job and return its external id, the cluster, as stock stores it.

        Raises:
            SubmissionRefusedError: with HTCondor's own words.
            DrmUnreachableError: the schedd did not answer.
        """
        try:
            description = self.bindings.Submit(dict(commands))
            schedd = self._located()
        except (ValueError, TypeError) as error:
            raise SubmissionRefusedError(f"HTCondor refused the submission: {error}") from error
        try:
            return str(int(schedd.submit(description).cluster()))
        except self.bindings.HTCondorException as error:
            self._schedd = None
            words = clean_text(str(error))
            if "Failed to connect" in words:
                raise DrmUnreachableError(f"the schedd did not answer: {words}") from error
            raise SubmissionRefusedError(f"HTCondor refused the submission: {words}") from error

    # ---- the schedd -------------------------------------------------------------------------

    def _query(self) -> List[Dict[str, Any]]:
        options = self.bindings.QueryOpt.DefaultMyJobsOnly
        ads = self._call(
            "query",
            lambda schedd: schedd.query(constraint="true", projection=PROJECTION, opts=options),
        )
        return [plain_ad(ad) for ad in ads]

    def _call(self, what: str, call: Callable[[Any], Any]) -> Any:
        schedd = self._located()
        try:
            return call(schedd)
        except self.bindings.HTCondorException as error:
            # A schedd that was restarted has another address: it is located again.
            self._schedd = None
            raise DrmUnreachableError(
                f"{what} at the schedd failed: {clean_text(str(error))}"
            ) from error

    def _located(self) -> Any:
        if self._schedd is None:
            self._schedd = self._locate()
        return self._schedd

    def _locate(self) -> Any:
        bindings = self.bindings
        try:
            collector = bindings.Collector(self._pool) if self._pool else bindings.Collector()
            ad = collector.locate(bindings.DaemonType.Schedd, self._schedd_name)
            if ad is None:
                raise DrmUnreachableError(
                    f"the collector knows no schedd {self._schedd_name or 'on this host'}"
                )
            return bindings.Schedd(ad)
        except bindings.HTCondorException as error:
            raise DrmUnreachableError(
                f"the schedd cannot be located: {clean_text(str(error))}"
            ) from error


def plain_ad(ad: Any) -> Dict[str, Any]:
    """Return a job ad as a dict; expressions such as MemoryUsage are evaluated in it."""
    plain = {}
    for name in ad.keys():
        value = ad[name]
        if type(value).__name__ == "ExprTree" and name != "PeriodicRelease":
            value = ad.eval(name)
        plain[name] = value
    return plain
