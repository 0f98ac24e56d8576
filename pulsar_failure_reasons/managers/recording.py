"""Judge a job's end and record it: what the three managers share.

A :class:`JobWatch` is one job as the observer shows it and ``get_status`` asks for it. A reason is
written into the job directory before the status that goes with it becomes visible, so a server
killed between the two loses nothing.

This is the one place that catches: a classification that goes wrong is logged, leaves the last
status standing and never reaches Pulsar's monitor.
"""

from __future__ import annotations

import errno
import logging
import math
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Optional

from pulsar.managers.stateful import JOB_FILE_FINAL_STATUS

from ..drm.base import Ending, JobView, Phase
from ..errors import DrmError
from ..history import History
from ..job_record import clear_record, load_record, store_record
from ..judgement import (
    AS_BEFORE,
    COMPLETE,
    FAILED,
    QUEUED,
    RUNNING,
    JobFiles,
    JobId,
    Judgement,
    Policy,
    judge,
)
from ..reason import Cause, FailureReason
from ..switch import reasons_are_off

if TYPE_CHECKING:
    from .recording_manager import RecordingManager

log = logging.getLogger("pulsar.failure_reasons.recording")

#: How often a reason that cannot be stored (a full disk) is tried before the job ends without.
STORE_ATTEMPTS = 240
#: How many answers may show a job that we take out of the DRM before it is reported all the same.
REMOVAL_ANSWERS = 20


@dataclass(frozen=True)
class Graces:
    """An operator's patience, in seconds of successful answers."""

    missing_s: float = 60.0
    hold_s: float = 3600.0
    limit_with_zero_exit: str = FAILED

    def policy(self, interval_s: float) -> Policy:
        """Return the policy for an observer that gets an answer every ``interval_s`` seconds.

        The first answer that counts begins a grace, so one more must come a whole grace later.
        """
        return Policy(
            missing_answers=1 + math.ceil(self.missing_s / interval_s),
            stuck_answers=1 + math.ceil(self.hold_s / interval_s),
            limit_with_zero_exit=self.limit_with_zero_exit,
        )


class JobWatch:
    """One job as the observer and ``get_status`` see it."""

    def __init__(self, manager: RecordingManager, job_id: str, external_id: Optional[str]) -> None:
        self.job_id = job_id
        self.external_id = external_id
        self.job_name = manager.expected_job_name(job_id)
        self.since = time.monotonic()
        self.status: str = manager.status_before(job_id)
        self._manager = manager
        self._history = History(
            job_name=self.job_name,
            job_directory=str(manager.job_directory(job_id).job_directory),
            has_run=self.status == RUNNING,
            launch_cut_short=manager.is_cut_short(job_id),
        )
        #: Successive answers at which the job directory could not be read.
        self._unreadable = 0
        self._waits_for = ""
        self._store_attempts = 0
        #: The observer looks at it no more.
        self.over = False
        self._old_record = load_record(manager.job_directory(job_id))
        self._removal: Optional[Judgement] = None
        self._removal_answers = 0

    def recognises(self, view: JobView) -> bool:
        """See :class:`pulsar_failure_reasons.observer.Watch`."""
        if self.external_id is None and view.works_in(self._history.job_directory) is False:
            # Of the same name, but of another server of this user: adopted, a cancel of our job
            # would hit it.
            return False
        return not self._history.is_another_job(view)

    def works_here(self, view: JobView) -> bool:
        """See :class:`pulsar_failure_reasons.observer.Watch`."""
        return bool(view.works_in(self._history.job_directory))

    def see(self, view: Optional[JobView], at: float) -> bool:
        """See :class:`pulsar_failure_reasons.observer.Watch`."""
        try:
            self.over = self._see(view, at)
            return self.over
        except (DrmError, OSError) as error:
            self._log_waiting(Judgement(waits_for=f"an end of this: {error}"))
        except Exception as error:
            log.log(
                logging.ERROR if self._manager.is_new_mistake(error) else logging.DEBUG,
                "(%s/%s) could not judge this job; it keeps the status %s",
                self.job_id, self.external_id, self.status, exc_info=True,
            )
        return False

    def _see(self, view: Optional[JobView], at: float) -> bool:
        manager = self._manager
        if manager.was_cancelled(self.job_id):
            return self._is_cancelled(view)
        if self.status in (COMPLETE, FAILED):
            return True
        self._history = self._history.after(view, at)
        if self.external_id is None and view is not None:
            self._adopt(view.external_id)
        judgement = judge(
            JobId(manager.drm, manager.drm_label, self.external_id),
            self._history,
            self._read_files,
            self._policy(),
        )
        self._log_waiting(judgement)
        judgement = self._unless_recorded(judgement)
        ends = judgement.remove or judgement.status in (COMPLETE, FAILED)
        if ends and not self._directory().exists() and not self._rebuild_directory():
            # Deleted, or a file system that is not mounted now. In the second case the job is
            # looked at again when somebody asks for it.
            log.info("(%s/%s) has no job directory now", self.job_id, self.external_id)
            manager.let_go(self)
            return True
        return self._take(self._with_removal(judgement))

    def _policy(self) -> Policy:
        return self._manager.policy(self.external_id)

    def _rebuild_directory(self) -> bool:
        return self._manager.rebuild_directory(self.job_id)

    def _is_cancelled(self, view: Optional[JobView]) -> bool:
        """Take a job that Galaxy cancelled; what was found by its name only now is killed."""
        if self.external_id is None and view is not None and view.phase is not Phase.ENDED:
            self._adopt(view.external_id)
            self._manager.kill(self.job_id)
        return True

    def _read_files(self) -> JobFiles:
        """Return what the job left, or that nobody can tell, once that has been so for long.

        Raises:
            OSError: nobody can tell now; to be asked again at the next answer.
        """
        manager = self._manager
        try:
            files = manager.read_job_files(self.job_id, self.external_id)
            if not self._directory().exists() and manager.is_indexed(self.job_id):
                raise FileNotFoundError(errno.ENOENT, "it is gone or not mounted")
        except OSError as error:
            self._unreadable += 1
            if self._unreadable < self._policy().stuck_answers:
                raise
            why = error.strerror or str(error)
            return JobFiles(unreadable=f"its job directory could not be read ({why})")
        self._unreadable = 0
        return files

    def _unless_recorded(self, judgement: Judgement) -> Judgement:
        """Return the end that a former life of this server recorded and was killed before telling.

        That is needed where the DRM has forgotten the job since: a return code alone would make
        a success of a recorded kill. A record of a removal (held) tells no end: somebody may
        have released the job.
        """
        old = self._old_record
        if judgement.status != COMPLETE or self._history.view is not None or old is None:
            return judgement
        if old.external_id is None or old.external_id != self.external_id:
            return judgement
        return judgement if old.cause is Cause.HELD else Judgement(FAILED, old)

    def _adopt(self, external_id: str) -> None:
        """Take the id of the job that was found by its name."""
        self.external_id = self._manager.stored_form(external_id)
        self._manager._register_external_id(self.job_id, self.external_id)
        self._manager.watch_begins(self)
        log.info("(%s/%s) found again by its name or where it works", self.job_id, self.external_id)
        if self._manager.is_cut_short(self.job_id):
            self._manager.conclude_launch(self.job_id)

    def _log_waiting(self, judgement: Judgement) -> None:
        if judgement.waits_for and judgement.waits_for != self._waits_for:
            log.info(
                "(%s/%s) keeps the status %s and waits for: %s",
                self.job_id, self.external_id, judgement.status or self.status,
                judgement.waits_for,
            )
        self._waits_for = judgement.waits_for

    def _with_removal(self, judgement: Judgement) -> Judgement:
        """Return what holds of a job that we take out of the DRM, if this is one.

        The removal is left to the observer, which takes out any number of jobs with one
        command. The reason is stored before, so that a server killed after the removal does not
        take its own work for a cancellation. The job has failed once the DRM shows that it is
        gone; if somebody releases it before, it goes on.
        """
        manager, view = self._manager, self._history.view
        if judgement.remove and self.external_id is not None:
            if self._store(judgement.reason):
                self._removal = judgement
                manager.observer(self.external_id).cancel_later(self.external_id)
            if self._removal_takes_too_long():
                return judgement
            return Judgement(QUEUED) if view is None or view.phase is Phase.STUCK else AS_BEFORE
        if self._removal is None:
            return judgement
        if view is None or (view.end is not None and view.end.ending is Ending.CANCELLED):
            return self._removal
        if view.phase in (Phase.QUEUED, Phase.RUNNING, Phase.ENDED):
            self._removal, self._removal_answers = None, 0
            if self.external_id is not None:
                # A removal that the DRM has refused so far is not to hit the job that goes on.
                manager.observer(self.external_id).keep(self.external_id)
            clear_record(self._directory())
        elif self._removal_takes_too_long():
            return self._removal
        return judgement

    def _removal_takes_too_long(self) -> bool:
        """Count an answer that still shows the job; tell whether it was one too many."""
        self._removal_answers += 1
        if self._removal_answers != REMOVAL_ANSWERS + 1:
            return self._removal_answers > REMOVAL_ANSWERS
        log.error(
            "(%s/%s) is still in %s after %d answers although it was told to remove it; it is "
            "reported as ended now, remove it by hand",
            self.job_id, self.external_id, self._manager.drm_label, REMOVAL_ANSWERS,
        )
        return True

    def _take(self, judgement: Judgement) -> bool:
        """Make the judgement visible, its record first; return True for an end."""
        if judgement.status is None:
            return False
        if judgement.status not in (COMPLETE, FAILED):
            if self._removal is None:
                self._forget_record_of_a_living_job()
            self.status = judgement.status
            return False
        if not self._store(judgement.reason):
            return False
        log.info(
            "(%s/%s) judged %s%s", self.job_id, self.external_id, judgement.status,
            f": {judgement.reason.message}" if judgement.reason else "",
        )
        self._manager.record_in_ledger(self.job_id, self.external_id, judgement.reason)
        if self._manager.is_cut_short(self.job_id):
            self._manager.conclude_launch(self.job_id)
        self.status = judgement.status
        return True

    def _forget_record_of_a_living_job(self) -> None:
        # A record of this attempt beside a job that lives: the server was killed between record
        # and status, and the DRM has requeued the job since. Nothing was sent of it. A record
        # that is younger than this watch is another server process's, which knows more.
        old, self._old_record = self._old_record, None
        if old is not None and load_record(self._directory()) == old:
            clear_record(self._directory())

    def _directory(self) -> Any:
        return self._manager.job_directory(self.job_id)

    def _store(self, reason: Optional[FailureReason]) -> bool:
        """Store the record that belongs to an end; return False to try again at the next look."""
        job_directory = self._directory()
        if job_directory.has_metadata(JOB_FILE_FINAL_STATUS):
            # Another server process on this folder was first, and what it sent must stand.
            return True
        try:
            if reason is None:
                clear_record(job_directory)
            elif not reasons_are_off():
                self._store_once(reason)
            if self._manager.was_cancelled(self.job_id):
                clear_record(job_directory)
        except OSError as error:
            self._store_attempts += 1
            if not job_directory.exists() or self._store_attempts >= STORE_ATTEMPTS:
                log.error(
                    "(%s/%s) the reason could not be stored (%s) and is lost: %s",
                    self.job_id, self.external_id, error, reason.message if reason else "",
                )
                return True
            log.info(
                "(%s/%s) the reason could not be stored, trying again: %s",
                self.job_id, self.external_id, error,
            )
            return False
        return True

    def _store_once(self, reason: FailureReason) -> None:
        """Store a reason, unless this end has one already: what was sent of it must agree."""
        manager = self._manager
        job_directory = manager.job_directory(self.job_id)
        reason = replace(reason.stamped(), observe_only=manager.observe_only)
        before = load_record(job_directory)
        if before is not None and before.external_id == reason.external_id:
            reason = replace(before, observe_only=manager.observe_only)
            if reason == before:
                return
        store_record(job_directory, reason)
