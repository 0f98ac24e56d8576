"""Attempts of one job on a Pulsar: an older one makes room for the next.

Galaxy resubmits a job under its old id, and a stock Pulsar that still has the job's directory
takes the new submission for a repeated one and drops it. For attempts that are numbered
(:mod:`~pulsar_failure_reasons.attempt`) the older one is removed, whatever manager ran it. That
is done only if it was the same Galaxy's and the same manager's, and is not active: managers and
Galaxies may share one staging folder. Where it may not be removed, the new attempt fails and says
why, instead of hanging or returning another attempt's results.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import shutil
import threading
import time
from typing import Any, Callable, Dict, Iterator, List, Optional

from . import attempt, job_record, wire
from .attempt import Attempt
from .reason import Cause, Confidence, FailureReason

log = logging.getLogger("pulsar.failure_reasons.attempts")

#: Pulsar tells Galaxy that a job has failed a moment before it notes that it is done with it.
POSTPROCESSING_ENDS_WITHIN_S = 60.0
_POLL_INTERVAL_S = 0.05

_FINAL_STATUS = "final_status"
#: Metadata of a job that never came to the DRM. Who only takes messages gives it no final status.
_NOT_LAUNCHED = "preprocessing_failed"
#: Metadata by which stock Pulsar takes a job for one that it has already.
_MARKS_OF_A_JOB = (_FINAL_STATUS, job_record.LAUNCH_CONFIG, _NOT_LAUNCHED)

_speaking = threading.local()


class AttemptRefused(Exception):
    """A new attempt cannot be taken; the message says why."""

    def __init__(self, job_id: str, new: Attempt, why: str) -> None:
        super().__init__(
            "(%s) attempt %d of this job cannot be taken: %s" % (job_id, new.number, why)
        )
        self.job_id = job_id
        self.number = new.number

    def payload(self) -> Dict[str, Any]:
        """Return the terminal payload that tells Galaxy; the job directory is another's."""
        reason = FailureReason(
            cause=Cause.LAUNCH_ERROR,
            message=str(self),
            confidence=Confidence.INFERRED,
            drm="pulsar",
            attempt=self.number,
        )
        return {
            "job_id": self.job_id, "complete": "true", "status": "failed", "returncode": None,
            wire.ATTEMPT: self.number, **wire.payload_keys(reason),
        }


def submit_job_by_attempt(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return Pulsar's ``submit_job`` so that an older attempt makes room before it."""

    @functools.wraps(original)
    def submit_job(manager: Any, job_config: Dict[str, Any]) -> Any:
        new = attempt.from_env(job_config.get("env"))
        job_id = job_config.get("job_id")
        if new is None or not job_id:
            return original(manager, job_config)
        try:
            if not make_room(manager, job_id, new):
                return None
        except AttemptRefused as refusal:
            with _speaking_of(refusal):
                manager.handle_failure_before_launch(job_id)
            raise
        return original(manager, _with_manager(job_config, new, manager))

    return submit_job


def setup_by_attempt(original: Any, make_controller: Callable[..., Any]) -> Any:
    """Return the controller of Pulsar's REST set-up so that an older attempt makes room first.

    Galaxy's REST client sends the attempt as arguments of the request, of which stock's
    controller takes no notice.
    """
    stock_setup = original.func

    def setup(
        manager: Any, job_id: str, tool_id: Any = None, tool_version: Any = None,
        use_metadata: str = "true", failure_reasons_attempt: Any = None,
        failure_reasons_galaxy: Any = None,
    ) -> Any:
        new = attempt.from_setup_arguments({
            attempt.ARGUMENT_NUMBER: failure_reasons_attempt,
            attempt.ARGUMENT_GALAXY: failure_reasons_galaxy,
        })
        if new is not None and not make_room(manager, job_id, new):
            raise AttemptRefused(job_id, new, "a later attempt is here")
        return stock_setup(manager, job_id, tool_id, tool_version, use_metadata)

    return make_controller(
        path=original.__path__, method=original.__method__, response_type=original.response_type
    )(setup)


def _with_manager(job_config: Dict[str, Any], new: Attempt, manager: Any) -> Dict[str, Any]:
    """Return the submission so that it stores which manager took it."""
    taken = Attempt(new.number, new.galaxy, str(manager.name))
    return {**job_config, "env": attempt.without_attempt(job_config["env"]) + taken.env()}


def make_room(manager: Any, job_id: str, new: Attempt) -> bool:
    """Remove an older attempt of the job; return False if the new one is the older one.

    Raises:
        AttemptRefused: what is in the job directory is not to be removed.
    """
    directory = manager.job_directory(job_id)
    old = job_record.load_attempt(directory)
    if old is None:
        if new.number > 1:
            if directory.has_metadata(job_record.LAUNCH_CONFIG):
                # From before an upgrade, perhaps: nothing tells whose it is.
                raise AttemptRefused(job_id, new, "its job directory holds one that has no number")
            _leave_indexes(manager, job_id, _indexes_with(manager, job_id))
        return True
    if old.number == new.number and old.galaxy == new.galaxy:
        # The same attempt again: stock tells a repeated submission.
        return True
    if old.galaxy != new.galaxy:
        raise AttemptRefused(job_id, new, "its job directory holds a job of another Galaxy")
    if old.number > new.number:
        log.info("(%s) ignoring attempt %d: attempt %d is here", job_id, new.number, old.number)
        return False
    if old.manager != manager.name:
        raise AttemptRefused(
            job_id, new,
            "its job directory holds attempt %d of the manager %s, which shares its staging "
            "folder with this one" % (old.number, old.manager),
        )
    if not _ends_soon(manager, job_id):
        raise AttemptRefused(job_id, new, "attempt %d is still active" % old.number)
    log.info("(%s) attempt %d makes room for attempt %d", job_id, old.number, new.number)
    _purge(manager, job_id, new)
    return True


def _ends_soon(manager: Any, job_id: str) -> bool:
    """Tell whether Pulsar is done with the job; wait for the last steps of one that is over."""
    if manager.job_directory(job_id).has_metadata(_NOT_LAUNCHED):
        _leave_indexes(manager, job_id, ["preprocessing"])
    deadline = time.monotonic() + POSTPROCESSING_ENDS_WITHIN_S
    while True:
        indexes = _indexes_with(manager, job_id)
        if not indexes:
            return _persists(manager) or _is_over(manager, job_id)
        if not _is_over(manager, job_id) or time.monotonic() > deadline:
            return False
        time.sleep(_POLL_INTERVAL_S)


def _indexes_with(manager: Any, job_id: str) -> List[str]:
    """Return in which of Pulsar's indexes of active jobs the job is."""
    from pulsar.managers.stateful import ACTIVE_STATUS_DIRECTORIES

    return [
        active_status for active_status in ACTIVE_STATUS_DIRECTORIES
        if job_id in manager.active_jobs.active_job_ids(active_status=active_status)
    ]


def _leave_indexes(manager: Any, job_id: str, indexes: List[str]) -> None:
    """Take a job that is over out of indexes in which stock leaves it, and takes it for active.

    That is one whose input could not be staged, and one whose directory Galaxy removed.
    """
    for active_status in indexes:
        manager.active_jobs.deactivate_job(job_id, active_status=active_status)


def _persists(manager: Any) -> bool:
    """Tell whether the indexes of active jobs are kept at all."""
    return bool(manager.persistence_directory)


def _is_over(manager: Any, job_id: str) -> bool:
    directory = manager.job_directory(job_id)
    return bool(directory.has_metadata(_FINAL_STATUS) or directory.has_metadata(_NOT_LAUNCHED))


def _purge(manager: Any, job_id: str, new: Attempt) -> None:
    """Remove the job directory, also where `debug: true` keeps those of other jobs."""
    manager.clean(job_id)
    directory = manager.job_directory(job_id)
    if directory.exists():
        shutil.rmtree(directory.job_directory, ignore_errors=True)
    if any(directory.has_metadata(name) for name in _MARKS_OF_A_JOB):
        raise AttemptRefused(job_id, new, "the directory of the older one cannot be removed")


@contextlib.contextmanager
def _speaking_of(refusal: AttemptRefused) -> Iterator[None]:
    """What Galaxy is told of the job by this thread in the block is the refusal."""
    _speaking.refusal = refusal
    try:
        yield
    finally:
        _speaking.refusal = None


def refusal_spoken_of(job_id: str) -> Optional[AttemptRefused]:
    """Return the refusal that this thread is telling of, None where there is none."""
    refusal: Optional[AttemptRefused] = getattr(_speaking, "refusal", None)
    return refusal if refusal is not None and refusal.job_id == job_id else None
