"""One launch of a job: submitted once, whatever is killed meanwhile.

Between the submission and the moment when Pulsar notes that the launch has ended, a kill leaves a
job in the DRM that Pulsar's own recovery does not know, or launches again. It is found by its
stored id; where that was not stored yet, by its name and by where it works.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Callable, Optional, Sequence

from pulsar.managers.stateful import (
    JOB_FILE_FINAL_STATUS,
    JOB_FILE_PREPROCESSED,
    JOB_FILE_PREPROCESSING_FAILED,
)

from ..drm.base import IdSource, JobView, Phase
from ..drm.external_ids import parse_external_id
from ..errors import (
    ConfigurationError,
    DrmError,
    FailureReasonsError,
    OutputParseError,
    SubmissionRefusedError,
)
from ..job_record import store_record
from ..reason import Cause, Confidence, FailureReason, clean_text
from ..switch import reasons_are_off
from .launch_mark import launch_mark, remove_mark

if TYPE_CHECKING:
    from .recording_manager import RecordingManager

log = logging.getLogger("pulsar.failure_reasons.launch")

#: The job script. One without an external id beside it is the mark of a launch that was cut short.
JOB_SCRIPT = "command.sh"
#: Metadata of a launch that came to its end.
LAUNCH_ENDED = (JOB_FILE_PREPROCESSED, JOB_FILE_PREPROCESSING_FAILED, JOB_FILE_FINAL_STATUS)


class Launch:
    """The launch of one job by one manager."""

    def __init__(self, manager: RecordingManager, job_id: str) -> None:
        self._manager = manager
        self._job_id = job_id
        self._directory = manager.job_directory(job_id)

    def submit_once(self, submit: Callable[[], str]) -> None:
        """See ``RecordingManager.submit_once``."""
        manager, job_id = self._manager, self._job_id
        try:
            if self.takes_up():
                return
            manager.forget_earlier_attempt(job_id)
            with launch_mark(str(self._directory.job_directory), manager.name):
                external_id = submit()
                log.info("(%s/%s) submitted to %s", job_id, external_id, manager.drm_label)
                self.register(external_id)
        except (DrmError, ConfigurationError) as error:
            remove_mark(str(self._directory.job_directory))
            self._record_refused(error)
            raise

    def takes_up(self) -> bool:
        """Take up a launch that was cut short behind its submission; tell if there was one.

        Raises:
            DrmError: the list could not be had, so nobody knows whether to submit.
        """
        if any(self._directory.has_metadata(name) for name in LAUNCH_ENDED):
            return False
        external_id = self._manager._stored_external_id(self._job_id)
        if external_id is None and self._directory.contains_file(JOB_SCRIPT):
            external_id = self._living_job()
        if external_id is None:
            return False
        log.info(
            "(%s/%s) was submitted before Pulsar was killed; it is not submitted again",
            self._job_id, external_id,
        )
        self.register(external_id)
        return True

    def _living_job(self) -> Optional[str]:
        """Return the id of the one living job of this job's name; None where there is none.

        One that works in another directory is another server's.

        Raises:
            DrmError: the DRM gave no answer, or several jobs have the name.
        """
        manager, name = self._manager, self._manager.expected_job_name(self._job_id)
        directory = str(self._directory.job_directory)
        found = {
            manager.stored_form(_whole_job(view.external_id))
            for view in self._listed(name)
            if view.phase is not Phase.ENDED and _may_be(view, name, directory)
        }
        if len(found) > 1:
            raise OutputParseError(
                f"{manager.drm_label} has several jobs named {name} ({', '.join(sorted(found))})"
                "; one of them may be this job, so it is not submitted again"
            )
        return found.pop() if found else None

    def _listed(self, name: Optional[str]) -> Sequence[JobView]:
        source = self._manager.observer(None).source
        if not isinstance(source, IdSource):
            return source.query_jobs()
        return source.query_these((), (name,)) if name is not None else ()

    def register(self, external_id: str) -> None:
        """Store the id of a job that was just submitted, and look at it from now on."""
        manager, job_id = self._manager, self._job_id
        try:
            manager._register_external_id(job_id, external_id)
        except OSError:
            # A full disk: Pulsar reports a failure, so the job must not run on unseen.
            manager._kill_external(external_id)
            raise
        # Not at the watch of an earlier attempt that a request has made again meanwhile.
        manager._unwatch(job_id)
        manager._watch_of(job_id)
        manager._marked.add(job_id)
        if manager._was_cancelled(job_id):
            # Galaxy cancelled while the DRM was at it: then there was no id to cancel yet.
            manager.kill(job_id)

    def _record_refused(self, error: FailureReasonsError) -> None:
        """Record why a submission came to nothing; Pulsar reports the failure itself."""
        manager, job_id = self._manager, self._job_id
        refused = isinstance(error, (SubmissionRefusedError, ConfigurationError))
        reason = FailureReason(
            # Without an answer that is understood nobody knows whether there is such a job now.
            cause=Cause.LAUNCH_ERROR if refused else Cause.LOST,
            message=clean_text(str(error)),
            confidence=Confidence.CONTROLLER if refused else Confidence.INFERRED,
            drm=manager.drm,
            observe_only=manager.observe_only,
        )
        log.info("(%s) %s", job_id, reason.message)
        if reasons_are_off():
            return
        try:
            store_record(self._directory, reason.stamped())
        except OSError as store_error:
            log.error("(%s) the reason could not be stored: %s", job_id, store_error)
        manager.record_in_ledger(job_id, None, reason)


def _may_be(view: JobView, name: Optional[str], directory: str) -> bool:
    """Tell whether a job may be the one of this name; without a name its folder must say so."""
    if name is None:
        return bool(view.works_in(directory))
    return view.job_name == name and view.works_in(directory) is not False


def _whole_job(external_id: str) -> str:
    """Return the id of the job that an element belongs to, with its server where it has one."""
    parsed = parse_external_id(external_id)
    return parsed.base if parsed.is_element else parsed.text
