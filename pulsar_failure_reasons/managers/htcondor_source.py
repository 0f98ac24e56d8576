"""How the observer and the manager look at HTCondor: its bindings and the jobs' event logs.

A pass reads the logs that grew, asks the schedd once for all our jobs, and history once for
those that have left the queue without a word in their log. Every call of the bindings is made
in a process of its own (see :mod:`.htcondor_call`).
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from ..drm.base import JobView, Phase
from ..drm.external_ids import base_id
from ..drm.htcondor import (
    HoldPolicy,
    JobState,
    JobStatus,
    JobSummary,
    view_of,
    view_of_history_ad,
)
from ..drm.htcondor.submit import JOB_DIRECTORY_ATTRIBUTE
from ..errors import (
    ConfigurationError,
    DrmError,
    DrmUnreachableError,
    OutputParseError,
    SubmissionRefusedError,
)
from ..execute import DEFAULT_TIMEOUT_S, run
from ..reason import Confidence, clean_text
from .htcondor_log import JobLog

log = logging.getLogger("pulsar.failure_reasons.htcondor")

PROJECTION = [
    "ClusterId", "ProcId", "JobStatus", "LastJobStatus", JOB_DIRECTORY_ATTRIBUTE, "QDate",
    "HoldReasonCode", "HoldReasonSubCode", "HoldReason", "LastHoldReasonCode",
    "LastHoldReasonSubCode", "LastHoldReason", "PeriodicRelease", "RemoveReason", "ExitBySignal",
    "ExitSignal", "ExitCode", "RemoteHost", "LastRemoteHost", "RequestMemory", "MemoryUsage",
    "ResidentSetSize", "ResidentSetSize_RAW", "RequestDisk", "DiskUsage_RAW",
    "AllowedExecuteDuration", "AllowedJobDuration", "JobCurrentStartDate",
    "LastRemoteWallClockTime",
]
#: HoldReasonSubCode and its like for our own removals; HTCondor keeps the number with the job.
REMOVE_CODE = 46000
#: Not "-m", which would look for modules in the folder that Pulsar was started from.
_CHILD = (
    "import sys; sys.path[:1] = [] if sys.path[0] == '' else sys.path[:1]; "
    f"from {__package__}.htcondor_call import main; sys.exit(main())"
)
#: By this and not by owner: the user that we are at the schedd need not have our name.
OUR_JOBS = f"{JOB_DIRECTORY_ATTRIBUTE} =!= undefined"

Ad = Dict[str, Any]


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
    held_answers: int = 0
    #: Summary and ad of the last view, the ad's time, and that view.
    last: Optional[Tuple[JobSummary, Ad, Optional[int], JobView]] = field(default=None, repr=False)

    def view(self, summary: JobSummary, ad: Optional[Ad]) -> JobView:
        """Return the job as its log and its ad show it; an unchanged job's view is used again."""
        now = ad.pop("ServerTime", None) if ad is not None else None
        if self.last is not None and ad is not None and (summary, ad) == self.last[:2]:
            view = _later(self.last[3], self.last[2], now)
        else:
            view = self._new_view(summary, ad, now)
        # Held answers are counted, so a held job is looked at anew each time.
        held = view.job_state == JobState.HELD.value
        self.held_answers = self.held_answers + 1 if held else 0
        self.last = None if held or ad is None else (summary, ad, now, view)
        return view

    def _new_view(self, summary: JobSummary, ad: Optional[Ad], now: Optional[int]) -> JobView:
        view = view_of(
            summary,
            ad if ad is None or now is None else {**ad, "ServerTime": now},
            policy=self.policy(),
            held_answers=self.held_answers + 1,
            sigkill_means_memory=self.sigkill_means_memory,
        )
        if ad is not None:
            return view
        # A log names no job, but it lies in its directory, which is the name our jobs have: else
        # its end could be taken for that of an older job that had the same id.
        return replace(view, job_name=os.path.realpath(os.path.dirname(self.log.path)))


def _later(view: JobView, before: Optional[int], now: Optional[int]) -> JobView:
    """Return the view of a job that is as it was; a running one has run for longer."""
    if view.job_state != JobState.RUNNING.value or None in (view.elapsed_s, before, now):
        return view
    assert view.elapsed_s is not None and before is not None and now is not None
    return replace(view, elapsed_s=view.elapsed_s + max(0, now - before))


class HTCondorSource:
    """One schedd (see ``drm.base.DrmSource``).

    Args:
        schedd_name: As ``condor_status -schedd`` lists it; None for the local one.
        pool: Address of the collector; None for the configured one.
        timeout_s: How long a call may take.
    """

    label = "HTCondor"

    def __init__(
        self,
        schedd_name: Optional[str] = None,
        pool: Optional[str] = None,
        timeout_s: float = DEFAULT_TIMEOUT_S,
    ) -> None:
        self._schedd_name = schedd_name
        self._pool = pool
        self._timeout_s = timeout_s
        self._location: Optional[Mapping[str, Any]] = None
        self._followed: Dict[str, FollowedJob] = {}
        self._looking = threading.Lock()

    def follow(self, external_id: str, job: FollowedJob) -> None:
        """Read this job's log in every pass."""
        self._followed[base_id(external_id)] = job

    def unfollow(self, external_id: str, log_path: str) -> None:
        """Read this job's log no more (another job that got its id since is followed on)."""
        job = self._followed.get(base_id(external_id))
        if job is not None and job.log.path == log_path:
            del self._followed[base_id(external_id)]

    # ---- what the observer calls ------------------------------------------------------------

    def query_jobs(self) -> Sequence[JobView]:
        """See ``drm.base.DrmSource``; one query, two while jobs of ``queued_condor`` live."""
        # A launch that looks for its job meets the observer's look here: a log is read by one.
        if not self._looking.acquire(timeout=self._timeout_s):
            raise DrmUnreachableError("another look at HTCondor's logs has not come to its end")
        try:
            return self._look()
        finally:
            self._looking.release()

    def _look(self) -> List[JobView]:
        # The logs first, so that the ads are the newer of the two.
        followed = dict(self._followed)
        summaries = {cluster: job.log.read() for cluster, job in followed.items()}
        ads = _by_cluster(self._ads("query", OUR_JOBS))
        # What left the queue after its log was read has its end in the log by now, and what was
        # held after that, what it had used by then.
        left = [cluster for cluster in followed if cluster not in ads]
        held = [cluster for cluster, ad in ads.items() if cluster in followed and _newly_held(
            summaries[cluster], ad)]
        summaries.update({cluster: followed[cluster].log.read() for cluster in left + held})
        absent = [cluster for cluster in left if not summaries[cluster].ended]
        if absent:
            # Submitted by stock queued_condor, without our attribute; or gone without a word.
            ads.update(_by_cluster(self._ads("query", _one_of(absent))))
        views = [
            _view_or_unknown(cluster, job, summaries[cluster], ads.pop(cluster, None))
            for cluster, job in followed.items()
            if cluster in ads or summaries[cluster].ended
        ]
        return views + [view_of(JobSummary(), ad) for ad in ads.values()]

    def query_ended(self, external_ids: Sequence[str]) -> Optional[List[JobView]]:
        """See ``drm.base.DrmSource``; one history query."""
        clusters = sorted({base_id(external_id) for external_id in external_ids})
        return [
            view_of_history_ad(
                ad, sigkill_means_memory=self._sigkill_means_memory(str(ad["ClusterId"]))
            )
            for ad in self._ads("history", _one_of(clusters), match=len(clusters))
            if "ClusterId" in ad
        ]

    def _sigkill_means_memory(self, cluster: str) -> bool:
        job = self._followed.get(cluster)
        return job is None or job.sigkill_means_memory

    def cancel(self, external_ids: Sequence[str]) -> None:
        """See ``drm.base.DrmSource``; one act."""
        # As "cluster.proc": for a bare cluster act() does not tell a job that is gone.
        jobs = sorted({f"{base_id(external_id)}.0" for external_id in external_ids})
        answer = self._ask("remove", jobs=jobs, reason="removed by Pulsar", code=REMOVE_CODE)
        totals = answer.get("totals", {})
        refused = int(totals.get("TotalPermissionDenied", 0)) + int(totals.get("TotalError", 0))
        if refused:
            raise DrmError(
                f"HTCondor did not remove {refused} of the jobs {', '.join(jobs)[:200]}: {totals}; "
                "is their owner the user that Pulsar is at the schedd?"
            )

    def submit(self, commands: Mapping[str, str]) -> str:
        """Submit a job and return its external id, the cluster, as stock stores it.

        Raises:
            SubmissionRefusedError: with HTCondor's own words.
            DrmUnreachableError: the schedd did not answer.
        """
        answer = self._ask("submit", commands=dict(commands))
        if "refused" in answer:
            words = clean_text(str(answer["refused"]))
            raise SubmissionRefusedError(f"HTCondor refused the submission: {words}")
        return str(int(answer["cluster"]))

    # ---- the schedd -------------------------------------------------------------------------

    def _ads(self, what: str, constraint: str, **more: Any) -> List[Ad]:
        answer = self._ask(what, constraint=constraint, projection=PROJECTION, **more)
        ads: List[Ad] = answer["ads"]
        return ads

    def _ask(self, what: str, **request: Any) -> Dict[str, Any]:
        """Return the answer to one call of the bindings.

        Raises:
            DrmUnreachableError: there was none.
            OutputParseError: it is none.
        """
        request.update(
            do=what, schedd=self._schedd_name, pool=self._pool, location=self._location
        )
        done = run(
            [_python(), "-c", _CHILD],
            self._timeout_s,
            stdin_text=json.dumps(request),
            called=f"{what} at HTCondor's schedd",
        )
        answer = _answer_in(done.stdout)
        if answer is None:
            raise OutputParseError(
                f"{what} at HTCondor's schedd ended with {done.returncode} and without an answer: "
                f"{clean_text(done.stderr)!r:.300}"
            )
        if "error" in answer:
            self._location = None
            words = clean_text(str(answer["error"]))
            raise DrmUnreachableError(f"{what} at HTCondor's schedd failed: {words}")
        self._location = answer.get("location")
        return answer


def _python() -> str:
    # Inside uWSGI sys.executable is uWSGI.
    if os.path.basename(sys.executable or "").startswith("python"):
        return sys.executable
    return os.path.join(sys.prefix, "bin", "python3")


def _answer_in(stdout: str) -> Optional[Dict[str, Any]]:
    try:
        answer = json.loads(stdout.rstrip("\n").rpartition("\n")[2])
    except ValueError:
        return None
    return answer if isinstance(answer, dict) else None


def _one_of(clusters: Sequence[str]) -> str:
    """Return a constraint for these clusters; the bounds spare most jobs the long list."""
    numbers = sorted(map(int, clusters))
    listed = ", ".join(map(str, numbers))
    return (
        f"ClusterId >= {numbers[0]} && ClusterId <= {numbers[-1]} "
        f"&& member(ClusterId, {{{listed}}})"
    )


def _by_cluster(ads: Iterable[Ad]) -> Dict[str, Ad]:
    """Return the ads by cluster; of a cluster with several processes the first one's."""
    found: Dict[str, Ad] = {}
    for ad in sorted(ads, key=lambda ad: int(ad.get("ProcId", 0))):
        found.setdefault(str(ad.get("ClusterId")), ad)
    return found


def _newly_held(summary: JobSummary, ad: Ad) -> bool:
    """Tell whether an ad shows a job held whose log, read before, does not."""
    return ad.get("JobStatus") == JobStatus.HELD and summary.state is not JobState.HELD


def _view_or_unknown(
    cluster: str, job: FollowedJob, summary: JobSummary, ad: Optional[Ad]
) -> JobView:
    """Return the job's view; what cannot be read is a job state that we do not know."""
    try:
        return job.view(summary, ad)
    except Exception:  # one odd job must not hide all others
        log.exception("(%s) its ad or log could not be read; it keeps its last status", cluster)
        return JobView(cluster, "UNREADABLE", Phase.UNKNOWN, Confidence.CONTROLLER)
