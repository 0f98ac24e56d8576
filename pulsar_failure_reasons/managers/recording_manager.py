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
    ACTIVE_STATUS_LAUNCHED,
    JOB_FILE_FINAL_STATUS,
    JOB_FILE_PREPROCESSED,
    JOB_METADATA_RUNNING,
    ActiveJobs,
)

from ..drm.base import StderrFinding
from ..drm.external_ids import parse_external_id
from ..errors import OutputParseError
from ..job_record import clear_record, load_record
from ..judgement import QUEUED, RUNNING, JobFiles, Policy
from ..observer import Observer
from ..reason import FailureReason
from ..stderr_tail import read_tail
from .beginning import Beginning
from .job_directory import AtomicJobDirectory, has_begun, read_return_code
from .launch import Launch
from .launch_mark import remove_mark
from .launch_scan import index_directory
from .ledger import ManagerLedger
from .recording import Graces, JobWatch

log = logging.getLogger("pulsar.failure_reasons.recording")


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
        self._cut_short: Set[str] = set()
        #: Launched by this process, with a mark that is needed until Pulsar asks for the job.
        self._marked: Set[str] = set()
        self._beginning: Optional[Beginning] = None

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
            began=bool(stderr) or has_begun(str(self.job_directory(job_id).job_directory)),
        )

    def let_go(self, watch: JobWatch) -> None:
        """Know nothing of a job any more; who asks for it begins a new watch."""
        if self._watches_of_this_process().get(watch.job_id) is watch:
            self._unwatch(watch.job_id)

    def is_indexed(self, job_id: str) -> bool:
        """Tell whether Pulsar lists the job among those that it has launched and not told of."""
        folder = index_directory(self, ACTIVE_STATUS_LAUNCHED)
        return bool(folder) and os.path.lexists(os.path.join(folder, job_id))

    def rebuild_directory(self, job_id: str) -> bool:
        """Make the directory of a job anew that was deleted while the job ran, to end the job.

        Stock reports such a job as lost to those who ask, and to a message queue never. Left
        alone is a job that Pulsar does not list any more (Galaxy has cleaned up), and a staging
        folder that is empty: it is not mounted now.

        Raises:
            OSError: it cannot be made.
        """
        if not self.is_indexed(job_id) or not os.listdir(self.staging_directory):
            return False
        self._setup_job_directory(job_id)
        self.job_directory(job_id).store_metadata(JOB_FILE_PREPROCESSED, True)
        log.warning("(%s) its job directory is gone; made anew to report its end", job_id)
        return True

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
        if job_id in self._marked:
            # Asked for, so Pulsar has noted that the launch ended.
            self._marked.discard(job_id)
            remove_mark(str(self.job_directory(job_id).job_directory))
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
        if self._beginning is not None:
            self._beginning.end()

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
        if not self.job_directory(job_id).exists():
            # Stock asks nobody about such a job, so it would never end.
            self._watch_of(job_id)

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
        Launch(self, job_id).submit_once(submit)

    def takes_up_launch(self, job_id: str) -> bool:
        """Take up a launch that a crash cut short behind its submission; tell if there was one.

        Pulsar launches a job again if it was killed before it noted that the launch had ended,
        and the DRM may have the job already. Its stored id tells that; if the id was not stored
        yet, a living job of its name in the DRM's list does.

        Raises:
            DrmError: the list could not be had, so nobody knows whether to submit.
        """
        return Launch(self, job_id).takes_up()

    def forget_earlier_attempt(self, job_id: str) -> None:
        """Remove what an earlier attempt of this job_id recorded."""
        self._cut_short.discard(job_id)
        self._unwatch(job_id)
        job_directory = self.job_directory(job_id)
        clear_record(job_directory)
        job_directory.remove_file("return_code")

    # ---- launches that were cut short ------------------------------------------------------

    def begin(self, app: Any) -> None:
        """Begin to serve; what a kill cut short is taken up, in the background.

        To be called at the end of the constructor. A command that only looks says so by an
        attribute of its stand-in for Pulsar's app.
        """
        if not getattr(app, "only_looks", False):
            self._beginning = Beginning(self)
            self._beginning.begin()

    def is_cut_short(self, job_id: str) -> bool:
        """Tell whether the job's launch was cut short and is not concluded."""
        return job_id in self._cut_short

    def conclude_launch(self, job_id: str) -> None:
        """Write down what Pulsar does at the end of a launch, so that it asks for the job.

        Raises:
            OSError: the disk is full, or the like.
        """
        self.job_directory(job_id).store_metadata(JOB_FILE_PREPROCESSED, True)
        ActiveJobs.from_manager(self).activate_job(job_id)
        self._cut_short.discard(job_id)
        remove_mark(str(self.job_directory(job_id).job_directory))

    # ---- looking ---------------------------------------------------------------------------

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
            if self._beginning is not None:
                self._beginning.begin_in_this_process()
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
