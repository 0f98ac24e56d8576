"""What every DRM's module says in the same words.

A DRM module turns text (or ads) into :class:`JobView` values: one job as the DRM shows it at
one moment. :mod:`pulsar_failure_reasons.judgement` reads nothing else of a DRM.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import List, Optional, Protocol, Sequence, Tuple, runtime_checkable

from ..reason import Cause, Confidence, Evidence


class Phase(Enum):
    """Where in its life the DRM sees a job."""

    #: Waits, or will wait again: pending, requeued, held by a person.
    QUEUED = "queued"
    #: Will not run unless somebody does something: held by the DRM, dependency never satisfied.
    STUCK = "stuck"
    #: Holds its resources: running, suspended.
    RUNNING = "running"
    #: On its way out, the end not yet told (Slurm's COMPLETING). Look again.
    ENDING = "ending"
    #: Ended; :attr:`JobView.end` says how.
    ENDED = "ended"
    #: A job state that we do not know. Never taken for an end.
    UNKNOWN = "unknown"


class Ending(Enum):
    """How the DRM says a job ended: the rows of the judgement table."""

    WELL = "ended well"
    BADLY = "ended badly, no limit"
    LIMIT = "a limit"
    CANCELLED = "cancelled"
    INFRASTRUCTURE = "node failure or preemption"


@dataclass(frozen=True)
class End:
    """How a job ended, as far as the DRM says.

    ``cause`` is None where the DRM's answer does not tell (always for WELL). ``detail`` is a
    phrase for the message, such as "its output file could not be opened"; empty where the
    cause says all. ``exit_code`` and ``signal`` are those of the job script, None where the
    DRM did not say. ``cancelled_by`` is a uid, a user name or "admin", None where unknown.
    ``remains`` says that the job is over and yet in the DRM's queue (a final hold of HTCondor),
    so that it must be taken out.
    """

    ending: Ending
    cause: Optional[Cause] = None
    detail: str = ""
    exit_code: Optional[int] = None
    signal: Optional[int] = None
    cancelled_by: Optional[str] = None
    remains: bool = False


@dataclass(frozen=True)
class JobView:
    """One job as the DRM shows it at one moment. None always means: it did not say.

    ``external_id`` is in the DRM's own form (``13_1``, ``13_[4-10%3]``, ``123+1``).
    ``job_state`` is the DRM's word in its long form (``OUT_OF_MEMORY``), or its raw text where
    unknown. ``end`` is there only with Phase.ENDED. ``stuck_for`` says, with Phase.STUCK, what
    a job would be failed for after its grace; ``stuck_detail`` what a stuck or held job waits
    for, in words. ``submitted_at`` is the DRM's text, fit only to
    be compared with another answer of the same DRM, never with a clock. ``workdir`` is the
    working directory as it was submitted. ``deleted`` says that the DRM shows that somebody has
    told it to remove the job, which is still there. Times are seconds, memory is bytes for the
    whole job.
    """

    external_id: str
    job_state: str
    phase: Phase
    confidence: Confidence
    end: Optional[End] = None
    stuck_for: Cause = Cause.HELD
    stuck_detail: str = ""
    job_name: Optional[str] = None
    workdir: Optional[str] = None
    submitted_at: Optional[str] = None
    restarts: Optional[int] = None
    elapsed_s: Optional[int] = None
    walltime_s: Optional[int] = None
    memory_bytes: Optional[int] = None
    used_memory_bytes: Optional[int] = None
    node: Optional[str] = None
    deleted: bool = False
    evidence: Tuple[Evidence, ...] = ()

    def works_in(self, directory: Optional[str]) -> Optional[bool]:
        """Tell whether the job was submitted to work in a directory; None where nobody knows."""
        if not directory or not self.workdir:
            return None
        return f"{self.workdir}/".startswith(f"{directory.rstrip('/')}/")


#: Where Pulsar lets the DRM write a job's streams, below the job directory.
STREAMS = ("metadata/job_stderr", "metadata/job_stdout")


def directory_of_streams(*paths: Optional[str]) -> Optional[str]:
    """Return the Pulsar job directory in which a job's streams lie; None where they tell none.

    For DRMs that show where the streams go and not where a job works. A host before the path
    (PBS, Grid Engine) is no part of it. Streams that somebody sent elsewhere tell nothing.
    """
    for path in paths:
        _, slash, tail = (path or "").strip().partition("/")
        for stream in STREAMS:
            if slash and tail.endswith(f"/{stream}"):
                return slash + tail[: -len(stream) - 1]
    return None


@dataclass(frozen=True)
class StderrFinding:
    """What the DRM itself wrote about the end into the job's stderr.

    Only lines with the DRM's own prefix (and this job's id, where the line has one) count.
    ``used_bytes`` and ``limit_bytes`` are memory as that line gives it, None where it does not.
    """

    cause: Cause
    evidence: Evidence
    detail: str = ""
    used_bytes: Optional[int] = None
    limit_bytes: Optional[int] = None


class DrmSource(Protocol):
    """How the observer looks at one DRM (the thin edge that runs commands or calls bindings).

    Every method may take seconds, is called from the observer's thread or from ``launch``
    and ``kill`` only, and raises :class:`~pulsar_failure_reasons.errors.DrmError` where it got
    no answer. An answer without a job means that the DRM does not know the job.
    """

    #: For people: "Slurm", "HTCondor".
    label: str

    def query_jobs(self) -> Sequence[JobView]:
        """Return all jobs of our user that the controller knows, the ended ones included."""

    def query_ended(self, external_ids: Sequence[str]) -> Optional[List[JobView]]:
        """Return what accounting knows of these jobs; None where there is no accounting."""

    def cancel(self, external_ids: Sequence[str]) -> None:
        """Take these jobs out of the DRM; a job that is gone already is no error."""


@runtime_checkable
class IdSource(Protocol):
    """A :class:`DrmSource` that cannot list a user's jobs cheaply and is asked for these alone.

    What is said there of all methods holds here too.
    """

    label: str

    def query_these(
        self, external_ids: Sequence[str], job_names: Sequence[str]
    ) -> Sequence[JobView]:
        """Return what the controller knows of these jobs.

        Args:
            external_ids: Jobs by their ids.
            job_names: Jobs whose id was lost, by their names.
        """

    def query_ended(self, external_ids: Sequence[str]) -> Optional[List[JobView]]:
        """See :meth:`DrmSource.query_ended`."""

    def cancel(self, external_ids: Sequence[str]) -> None:
        """See :meth:`DrmSource.cancel`."""
