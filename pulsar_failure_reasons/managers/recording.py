"""Judge a job's end and record it: what the three managers share.

:class:`RecordingManager` is mixed into a Pulsar manager. It hands every job to the shared
observer as a :class:`JobWatch` and answers ``get_status`` from what the watch knows, so no
request waits for a DRM. A reason is written into the job directory before the status that
goes with it becomes visible, so a server killed between the two loses nothing.

This is the one place that catches: a classification that goes wrong is logged, leaves the last
status standing and never reaches Pulsar's monitor.
"""

from __future__ import annotations

import errno
import json
import logging
import math
import os
import re
import shlex
import threading
import time
from dataclasses import dataclass, replace
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

from ..drm.base import Ending, IdSource, JobView, Phase, StderrFinding
from ..drm.external_ids import parse_external_id
from ..errors import (
    ConfigurationError,
    DrmError,
    FailureReasonsError,
    OutputParseError,
    SubmissionRefusedError,
)
from ..job_record import clear_record, load_record, store_record
from ..judgement import (
    AS_BEFORE,
    COMPLETE,
    FAILED,
    QUEUED,
    RUNNING,
    History,
    JobFiles,
    JobId,
    Judgement,
    Policy,
    judge,
)
from ..observer import Observer
from ..reason import Cause, Confidence, FailureReason, clean_text
from ..stderr_tail import read_tail
from ..switch import reasons_are_off

log = logging.getLogger("pulsar.failure_reasons.recording")

#: How often a reason that cannot be stored (a full disk) is tried before the job ends without.
STORE_ATTEMPTS = 240
#: The job script. One without an external id beside it is the mark of a launch that was cut short.
JOB_SCRIPT = "command.sh"
#: Metadata of a launch that came to its end.
LAUNCH_ENDED = (JOB_FILE_PREPROCESSED, JOB_FILE_PREPROCESSING_FAILED, JOB_FILE_FINAL_STATUS)
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
        )
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
        if self.status in (COMPLETE, FAILED) or manager.was_cancelled(self.job_id):
            return True
        self._history = self._history.after(view, at)
        if self.external_id is None and view is not None:
            self._adopt(view.external_id)
        judgement = judge(
            JobId(manager.drm, manager.drm_label, self.external_id),
            self._history,
            lambda: manager.read_job_files(self.job_id, self.external_id),
            manager.policy(self.external_id),
        )
        self._log_waiting(judgement)
        judgement = self._unless_recorded(judgement)
        ends = judgement.remove or judgement.status in (COMPLETE, FAILED)
        if ends and not self._directory().exists():
            # Deleted, or a file system that is not mounted now. In the second case the job is
            # looked at again when somebody asks for it.
            log.info("(%s/%s) has no job directory now", self.job_id, self.external_id)
            manager.let_go(self)
            return True
        return self._take(self._with_removal(judgement))

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
        log.info("(%s/%s) found again by its job name", self.job_id, self.external_id)

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


class AtomicJobDirectory(JobDirectory):  # type: ignore[misc]
    """A Pulsar job directory whose metadata files are never half written.

    Stock writes ``final_status`` in place: a server killed in the middle leaves an empty file,
    and then does not start again.
    """

    def store_metadata(self, metadata_name: str, metadata_value: Any, atomic: bool = True) -> None:
        """See Pulsar's; always atomic, also with other server processes on the same folder."""
        # Stock's temporary name is by thread alone, which two workers of a web server share.
        part = f"{metadata_name}.tmp.{os.getpid()}.{threading.get_ident()}"
        try:
            self.write_file(part, json.dumps(metadata_value))
            os.replace(self._job_file(part), self._job_file(metadata_name))
        except OSError:
            self.remove_file(part)
            raise


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
        return_code = _read_return_code(self._return_code_path(job_id))
        stderr = read_tail(self._job_stderr_path(job_id))
        return JobFiles(
            return_code=return_code,
            stderr=self.classify_stderr(stderr, external_id) if stderr else None,
        )

    def let_go(self, watch: JobWatch) -> None:
        """Know nothing of a job any more; who asks for it begins a new watch."""
        if self._watches_of_this_process().get(watch.job_id) is watch:
            self._unwatch(watch.job_id)

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
        try:
            store_record(self.job_directory(job_id), reason.stamped())
        except OSError as store_error:
            log.error("(%s) the reason could not be stored: %s", job_id, store_error)

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
_ABSENT = frozenset(
    {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EACCES, errno.EPERM, errno.ELOOP}
)


def _read_return_code(path: str) -> Optional[int]:
    """Return the integer in the file, None where there is none.

    Raises:
        OSError: whether there is one cannot be told now.
    """
    try:
        with open(path, "rb") as stream:
            return int(stream.read())
    except ValueError:
        return None
    except OSError as error:
        if error.errno in _ABSENT:
            return None
        raise


def _whole_job(external_id: str) -> str:
    """Return the id of the job that an element belongs to, with its server where it has one."""
    parsed = parse_external_id(external_id)
    return parsed.base if parsed.is_element else parsed.text
