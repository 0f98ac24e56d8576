"""A Pulsar manager that records why its jobs ended: what the three managers inherit.

:class:`RecordingManager` hands every job to the shared observer as a
:class:`~pulsar_failure_reasons.managers.recording.JobWatch` and answers ``get_status`` from what
the watch knows, so no request waits for a DRM.
"""

from __future__ import annotations

import logging
import os
import re
import shlex
from typing import Any, Callable, Dict, List, Optional, Set

from pulsar.managers import PULSAR_UNKNOWN_RETURN_CODE, status
from pulsar.managers.base import JobDirectory
from pulsar.managers.base.external import JOB_FILE_EXTERNAL_ID, ExternalBaseManager
from pulsar.managers.stateful import (
    JOB_FILE_FINAL_STATUS,
    JOB_FILE_PREPROCESSED,
    JOB_FILE_PREPROCESSING_FAILED,
    JOB_METADATA_RUNNING,
)

from ..drm.base import IdSource, Phase, StderrFinding
from ..drm.external_ids import parse_external_id
from ..errors import (
    ConfigurationError,
    DrmError,
    FailureReasonsError,
    OutputParseError,
    SubmissionRefusedError,
)
from ..job_record import clear_record, load_record, store_record
from ..judgement import QUEUED, RUNNING, JobFiles, Policy
from ..observer import Observer
from ..reason import Cause, Confidence, FailureReason, clean_text
from ..stderr_tail import read_tail
from ..switch import reasons_are_off
from .job_directory import AtomicJobDirectory, read_return_code
from .ledger import ManagerLedger
from .recording import Graces, JobWatch

log = logging.getLogger("pulsar.failure_reasons.recording")

#: The job script. One without an external id beside it is the mark of a launch that was cut short.
JOB_SCRIPT = "command.sh"
#: Metadata of a launch that came to its end.
LAUNCH_ENDED = (JOB_FILE_PREPROCESSED, JOB_FILE_PREPROCESSING_FAILED, JOB_FILE_FINAL_STATUS)


class RecordingManager(ExternalBaseManager):  # type: ignore[misc]
    """What a manager gets that records why its jobs ended.

    To be mixed in before one of Pulsar's external managers. The manager gives
    ``drm``, ``drm_label``, ``graces``, ``observe_only``, :meth:`observer`,
    :meth:`classify_stderr` and :meth:`submits_under_our_name`.
    """

    drm: str
    drm_label: str
    graces: Graces
    observe_only: bool

    def __init__(self, name: str, app: Any, **kwds: Any) -> None:
        super().__init__(name, app, **kwds)
        self._ledger = ManagerLedger(name, kwds, self.persistence_directory)

    def observer(self, external_id: Optional[str]) -> Observer:
        """Return the observer that looks at the DRM or cluster of this job."""
        raise NotImplementedError

    def classify_stderr(self, text: str, external_id: Optional[str]) -> Optional[StderrFinding]:
        """Return what the DRM wrote about the job's end into its stderr."""
        raise NotImplementedError

    def submits_under_our_name(self, job_id: str) -> bool:
        """Tell whether the job's name in the DRM is the one that Pulsar gives it."""
        raise NotImplementedError

    def stored_form(self, external_id: str) -> str:
        """Return an id that the DRM showed in the form in which the submission stores it."""
        return external_id

    def watch_begins(self, watch: JobWatch) -> None:
        """Do what this DRM needs to look at a job (HTCondor: follow its log)."""

    def watch_ends(self, watch: JobWatch) -> None:
        """Undo :meth:`watch_begins`."""

    # ---- for JobWatch ---------------------------------------------------------------------

    def policy(self, external_id: Optional[str]) -> Policy:
        """Return the policy, its graces counted in answers of the job's observer."""
        return self.graces.policy(self.observer(external_id).interval_s)

    def was_cancelled(self, job_id: str) -> bool:
        """Tell whether Galaxy has cancelled the job."""
        return bool(self._was_cancelled(job_id))

    def expected_job_name(self, job_id: str) -> Optional[str]:
        """Return the name under which the job was submitted, None where we cannot tell."""
        try:
            return str(self._job_name(job_id)) if self.submits_under_our_name(job_id) else None
        except Exception as error:  # stock code over files of the job directory
            log.info("(%s) its job name in the DRM is not known: %s", job_id, error)
            return None

    def status_before(self, job_id: str) -> str:
        """Return the status of a job of which no answer has told yet."""
        was_running = self.job_directory(job_id).has_metadata(JOB_METADATA_RUNNING)
        return RUNNING if was_running else QUEUED

    def read_job_files(self, job_id: str, external_id: Optional[str]) -> JobFiles:
        """Return what the job left in its directory.

        Raises:
            OSError: nobody can tell now what is there (a stale handle, a file server that is
                away, no more file descriptors), which is not to be taken for absent.
        """
        return_code = read_return_code(self._return_code_path(job_id))
        stderr = read_tail(self._job_stderr_path(job_id))
        return JobFiles(
            return_code=return_code,
            stderr=self.classify_stderr(stderr, external_id) if stderr else None,
        )

    def let_go(self, watch: JobWatch) -> None:
        """Know nothing of a job any more; who asks for it begins a new watch."""
        if self._watches_of_this_process().get(watch.job_id) is watch:
            self._unwatch(watch.job_id)

    def record_in_ledger(
        self, job_id: str, external_id: Optional[str], reason: Optional[FailureReason]
    ) -> None:
        """Have an end stored in the failure ledger; one that Galaxy asked for is none."""
        if not self.was_cancelled(job_id):
            self._ledger.record_end(job_id, self.job_directory(job_id), external_id, reason)

    def is_new_mistake(self, error: Exception) -> bool:
        """Tell whether an error of ours is of a kind that was not seen before."""
        seen: Set[str] = self.__dict__.setdefault("_mistakes", set())
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        kind = f"{type(error).__name__} {trace and (trace.tb_frame.f_code, trace.tb_lineno)}"
        if kind in seen:
            return False
        seen.add(kind)
        return True

    # ---- what Pulsar calls ----------------------------------------------------------------

    def _job_directory(self, job_id: str) -> JobDirectory:
        return AtomicJobDirectory(
            self.staging_directory, job_id, self.lock_manager, self._directory_maker
        )

    job_directory = _job_directory

    def get_status(self, job_id: str) -> str:
        """Return what the observer last learned of the job; never waits for the DRM."""
        if self._was_cancelled(job_id):
            return str(status.CANCELLED)
        return self._watch_of(job_id).status

    def return_code(self, job_id: str) -> Any:
        """Return the tool's exit code, or Pulsar's word for unknown.

        Stock returns the bytes of an empty file (a full disk leaves one), which breaks the
        JSON of the status.
        """
        try:
            raw = self.job_directory(job_id).read_file("return_code", default=b"")
            return int(raw)
        except ValueError:
            return PULSAR_UNKNOWN_RETURN_CODE

    def runner_state(self, job_id: str) -> Optional[Dict[str, Any]]:
        """Return the stored record of why the job failed, None where there is none."""
        reason = load_record(self.job_directory(job_id))
        return None if reason is None else reason.to_dict()

    def clean(self, job_id: str) -> None:
        """See Pulsar's manager; the job is looked at no more."""
        self._unwatch(job_id)
        super().clean(job_id)

    def kill(self, job_id: str) -> None:
        """See Pulsar's manager. Where the DRM does not answer now, it is asked again later."""
        super().kill(job_id)
        self._unwatch(job_id)

    def shutdown(self, timeout: Optional[float] = None) -> None:
        """See Pulsar's manager; stops looking."""
        for observer in self._observers():
            observer.release(self, timeout)
        self._ledger.flush(timeout)
        super().shutdown(timeout)

    def _setup_job_for_job_id(self, job_id: str, *args: Any) -> str:
        # Here and not only at the launch: staging may fail before it, and must not be reported
        # with the reason of an earlier attempt.
        clear_record(self.job_directory(job_id))
        return str(super()._setup_job_for_job_id(job_id, *args))

    def _external_id(self, job_id: str) -> Optional[str]:
        # Another process of the same web server may have submitted the job. What has ended is
        # not looked up: its id may be another job's by now.
        known: Optional[str] = self._external_ids.get(job_id)
        if known or self.job_directory(job_id).has_metadata(JOB_FILE_FINAL_STATUS):
            return known
        return self._stored_external_id(job_id)

    def _recover_active_job(self, job_id: str) -> None:
        # Stock raises where the id is lost, and the job is then LOST to Galaxy, whatever it
        # left behind. The observer judges it, by its files or by its name.
        external_id = self._stored_external_id(job_id)
        if external_id is not None:
            self._external_ids[job_id] = external_id

    def _deactivate_job(self, job_id: str) -> None:
        self._external_ids.pop(job_id, None)
        self._unwatch(job_id)

    def _write_job_script(self, job_id: str, contents: str) -> str:
        """Write the job script so that a DRM may run it twice.

        A requeued script that is killed in its second run must not be blessed by the return
        code of its first.
        """
        guard = f"rm -f {shlex.quote(self._return_code_path(job_id))}\n"
        # Behind the comments at the top: sbatch and qsub read no #SBATCH, #PBS after a command.
        top = re.match(r"(?:[ \t]*(?:#.*)?\n)*", contents)
        end = top.end() if top else 0
        script = contents[:end] + guard + contents[end:]
        return str(super()._write_job_script(job_id, script))

    # ---- for the manager ------------------------------------------------------------------

    def submit_once(self, job_id: str, submit: Callable[[], str]) -> None:
        """Submit a job by ``submit``, which returns its external id, and look at it from now on.

        A refusal is recorded before it is raised. A job that a launch which was cut short has
        submitted already is taken up instead.

        Raises:
            DrmError: it was refused, or nobody knows whether it was submitted.
            ConfigurationError: its options cannot work.
        """
        try:
            if self.takes_up_launch(job_id):
                return
            self.forget_earlier_attempt(job_id)
            external_id = submit()
        except (DrmError, ConfigurationError) as error:
            self.record_refused_submission(job_id, error)
            raise
        log.info("(%s/%s) submitted to %s", job_id, external_id, self.drm_label)
        self.register_submitted_job(job_id, external_id)

    def takes_up_launch(self, job_id: str) -> bool:
        """Take up a launch that a crash cut short behind its submission; tell if there was one.

        Pulsar launches a job again if it was killed before it noted that the launch had ended,
        and the DRM may have the job already. Its stored id tells that; if the id was not stored
        yet, a living job of its name in the DRM's list does.

        Raises:
            DrmError: the list could not be had, so nobody knows whether to submit.
        """
        directory = self.job_directory(job_id)
        if any(directory.has_metadata(name) for name in LAUNCH_ENDED):
            return False
        external_id = self._stored_external_id(job_id)
        if external_id is None and directory.contains_file(JOB_SCRIPT):
            external_id = self._living_job_named(
                self.expected_job_name(job_id), str(directory.job_directory)
            )
        if external_id is None:
            return False
        log.info(
            "(%s/%s) was submitted before Pulsar was killed; it is not submitted again",
            job_id, external_id,
        )
        self.register_submitted_job(job_id, external_id)
        return True

    def _living_job_named(self, job_name: Optional[str], job_directory: str) -> Optional[str]:
        """Return the id of the one living job of this name; None where there is none.

        One that works in another directory is another server's.

        Raises:
            DrmError: the DRM gave no answer, or several jobs have the name.
        """
        if job_name is None:
            return None
        source = self.observer(None).source
        if isinstance(source, IdSource):
            views = source.query_these((), (job_name,))
        else:
            views = source.query_jobs()
        found = {
            self.stored_form(_whole_job(view.external_id))
            for view in views
            if view.job_name == job_name and view.phase is not Phase.ENDED
            and view.works_in(job_directory) is not False
        }
        if len(found) > 1:
            raise OutputParseError(
                f"{self.drm_label} has several jobs named {job_name} ({', '.join(sorted(found))})"
                "; one of them may be this job, so it is not submitted again"
            )
        return found.pop() if found else None

    def forget_earlier_attempt(self, job_id: str) -> None:
        """Remove what an earlier attempt of this job_id recorded."""
        self._unwatch(job_id)
        job_directory = self.job_directory(job_id)
        clear_record(job_directory)
        job_directory.remove_file("return_code")

    def register_submitted_job(self, job_id: str, external_id: str) -> None:
        """Store the id of a job that was just submitted, and look at it from now on."""
        try:
            self._register_external_id(job_id, external_id)
        except OSError:
            # A full disk: Pulsar reports a failure, so the job must not run on unseen.
            self._kill_external(external_id)
            raise
        # Not at the watch of an earlier attempt that a request has made again meanwhile.
        self._unwatch(job_id)
        self._watch_of(job_id)
        if self._was_cancelled(job_id):
            # Galaxy cancelled while the DRM was at it: then there was no id to cancel yet.
            self.kill(job_id)

    def record_refused_submission(self, job_id: str, error: FailureReasonsError) -> None:
        """Record why a submission came to nothing; Pulsar reports the failure itself."""
        refused = isinstance(error, (SubmissionRefusedError, ConfigurationError))
        reason = FailureReason(
            # Without an answer that is understood nobody knows whether there is such a job now.
            cause=Cause.LAUNCH_ERROR if refused else Cause.LOST,
            message=clean_text(str(error)),
            confidence=Confidence.CONTROLLER if refused else Confidence.INFERRED,
            drm=self.drm,
            observe_only=self.observe_only,
        )
        log.info("(%s) %s", job_id, reason.message)
        if reasons_are_off():
            return
        reason = reason.stamped()
        try:
            store_record(self.job_directory(job_id), reason)
        except OSError as store_error:
            log.error("(%s) the reason could not be stored: %s", job_id, store_error)
        self.record_in_ledger(job_id, None, reason)

    def _watch_of(self, job_id: str) -> JobWatch:
        watches = self._watches_of_this_process()
        watch = watches.get(job_id)
        if watch is None:
            self._forget_old_watches(watches)
            watch = JobWatch(self, job_id, self._stored_external_id(job_id))
            watch = watches.setdefault(job_id, watch)
            self.watch_begins(watch)
            if not self.observer(watch.external_id).watch((self, job_id), watch):
                # Nobody looks at it yet: tried again when the job is asked for again.
                self._unwatch(job_id)
        return watch

    def _forget_old_watches(self, watches: Dict[str, JobWatch]) -> None:
        """Forget the ends that another process of the same web server has told."""
        # Not with each of the thousands of jobs that are watched after a restart.
        self._new_watches: int = self.__dict__.get("_new_watches", 0) + 1
        if self._new_watches <= len(watches) // 8:
            return
        self._new_watches = 0
        for job_id, watch in list(watches.items()):
            if watch.over and self._was_told(job_id):
                self._unwatch(job_id)

    def _was_told(self, job_id: str) -> bool:
        directory = self.job_directory(job_id)
        return directory.has_metadata(JOB_FILE_FINAL_STATUS) or not directory.exists()

    def _unwatch(self, job_id: str) -> None:
        watch = self._watches_of_this_process().pop(job_id, None)
        if watch is not None:
            self.observer(watch.external_id).forget((self, job_id))
            self.watch_ends(watch)

    def _watches_of_this_process(self) -> Dict[str, JobWatch]:
        # Web servers fork after loading: the parent's watches belong to a thread that the
        # child does not have.
        pid = os.getpid()
        if self.__dict__.get("_watches_pid") != pid:
            self._watches: Dict[str, JobWatch] = {}
            self._watches_pid = pid
        return self._watches

    def _observers(self) -> List[Observer]:
        watches = list(self._watches_of_this_process().values())
        ids = {watch.external_id for watch in watches}
        return list({id(o): o for o in map(self.observer, ids | {None})}.values())

    def _stored_external_id(self, job_id: str) -> Optional[str]:
        try:
            stored = self.job_directory(job_id).load_metadata(JOB_FILE_EXTERNAL_ID)
            if not stored:
                return None
            parse_external_id(str(stored))
        except (ValueError, OSError, OutputParseError) as error:
            log.warning("(%s) its file external_id cannot be read: %s", job_id, error)
            return None
        return str(stored)


#: What a file is taken for absent for. Anything else (ESTALE, EIO, EMFILE ...) may pass.


def _whole_job(external_id: str) -> str:
    """Return the id of the job that an element belongs to, with its server where it has one."""
    parsed = parse_external_id(external_id)
    return parsed.base if parsed.is_element else parsed.text
