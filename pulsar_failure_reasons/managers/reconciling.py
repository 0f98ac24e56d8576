"""Bring Pulsar's jobs into line with the DRM, without a server: the command ``reconcile``.

The jobs are judged by the same watch, table and questions as in a server. The watch of this module
keeps what it would do; only :func:`apply` writes it down, in the form in which Pulsar finds it when
it is started: its own recovery then stages outputs back and tells Galaxy.
"""

from __future__ import annotations

import importlib
import math
import os
import time
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, Callable, Dict, List, Mapping, Optional

from pulsar.managers.stateful import (
    ACTIVE_STATUS_LAUNCHED,
    JOB_FILE_FINAL_STATUS,
    JOB_FILE_PREPROCESSED,
    JOB_FILE_PREPROCESSING_FAILED,
)

from ..drm.base import JobView
from ..errors import ConfigurationError
from ..judgement import AS_BEFORE, COMPLETE, FAILED, Judgement, Policy, without_graces
from ..observer import Key, Observer
from .launch_scan import cut_short_launches, indexed_jobs
from .recording import JobWatch
from .recording_manager import RecordingManager

#: Our managers, by their ``type:``.
MANAGERS = {
    "queued_slurm": "slurm:SlurmQueueManager",
    "queued_htcondor_classified": "htcondor:HTCondorQueueManager",
    "queued_cli_classified": "cli:CliQueueManager",
}


@dataclass(frozen=True)
class Change:
    """What becomes of one job.

    ``was`` and ``becomes`` are Pulsar's words. ``cause`` is None for a job that is complete, or
    that lives: such a one was found again, its launch cut short.
    """

    manager: str
    job_id: str
    external_id: Optional[str]
    was: str
    becomes: str
    cause: Optional[str]
    message: str


class LookingWatch(JobWatch):
    """A job as somebody sees it who looks and changes nothing.

    Args:
        manager: The job's manager.
        job_id: Pulsar's id.
        external_id: The stored one, None where it was lost.
        graceless: Judge at once what a server would give its grace.
    """

    def __init__(
        self, manager: RecordingManager, job_id: str, external_id: Optional[str], graceless: bool
    ) -> None:
        super().__init__(manager, job_id, external_id)
        # An answer to a query that begins now may be of use.
        self.since = -math.inf
        self.was = "preprocessing" if self.is_cut_short else self.status
        self.outcome: Optional[Judgement] = None
        self._stored_id = external_id
        self._graceless = graceless

    @property
    def is_cut_short(self) -> bool:
        """Whether Pulsar has not noted that the launch ended."""
        return not self._directory().has_metadata(JOB_FILE_PREPROCESSED) and bool(
            self._directory().exists()
        )

    @property
    def waits(self) -> bool:
        """Whether a further answer may end the job."""
        return not self.over and (self._history.missing > 0 or self._history.ended > 0)

    def change(self) -> Optional[Change]:
        """Return what becomes of the job; None where all is as it should be."""
        found = self.external_id is not None and self.is_cut_short
        if self.outcome is None and not found:
            return None
        reason = self.outcome.reason if self.outcome else None
        becomes = (self.outcome.status if self.outcome else None) or self.status
        message = "it left an exit code" if becomes == COMPLETE else "it was found in the DRM"
        return Change(
            self._manager.name, self.job_id, self.external_id, self.was, becomes,
            reason.cause.value if reason else None, reason.message if reason else message,
        )

    def apply(self) -> None:
        """Write the change down.

        Raises:
            OSError: it cannot be written.
        """
        manager, directory = self._manager, self._directory()
        if self.external_id is not None and self.external_id != self._stored_id:
            manager._register_external_id(self.job_id, self.external_id)
        if self.is_cut_short:
            manager.conclude_launch(self.job_id)
        if self.outcome is None or directory.has_metadata(JOB_FILE_FINAL_STATUS):
            return
        if not directory.exists():
            manager.rebuild_directory(self.job_id)
        if not self._store(self.outcome.reason):
            raise OSError("its reason could not be stored")
        manager.record_in_ledger(self.job_id, self.external_id, self.outcome.reason)
        directory.store_metadata(JOB_FILE_FINAL_STATUS, self.outcome.status)

    # ---- what a server's watch does, and this one only notes --------------------------------

    def _policy(self) -> Policy:
        policy = self._manager.policy(self.external_id)
        # A directory that cannot be read now is told now; held jobs are left to the server.
        policy = replace(policy, stuck_answers=1)
        return without_graces(policy) if self._graceless else policy

    def _adopt(self, external_id: str) -> None:
        self.external_id = self._manager.stored_form(external_id)
        self._manager.watch_begins(self)

    def _is_cancelled(self, view: Optional[JobView]) -> bool:
        return True

    def _rebuild_directory(self) -> bool:
        return self._manager.is_indexed(self.job_id)

    def _with_removal(self, judgement: Judgement) -> Judgement:
        return AS_BEFORE if judgement.remove else judgement

    def _take(self, judgement: Judgement) -> bool:
        if judgement.status is None:
            return False
        if judgement.status in (COMPLETE, FAILED):
            self.outcome = judgement
            return True
        self.status = judgement.status
        return False


def build_manager(
    manager_type: str,
    name: str,
    options: Mapping[str, Any],
    staging_directory: str,
    persistence_directory: Optional[str],
    writes: bool,
) -> Optional[RecordingManager]:
    """Return a manager of ours that serves nothing; None for one that is not ours.

    Args:
        manager_type: Its ``type:``.
        name: Its name.
        options: Its options.
        staging_directory: Where its job directories are.
        persistence_directory: Where Pulsar keeps its indexes; None for nowhere.
        writes: Whether ends go into the failure ledger.

    Raises:
        ConfigurationError: an option cannot work, or the staging folder is not there.
    """
    if manager_type not in MANAGERS:
        return None
    if not os.path.isdir(staging_directory):
        raise ConfigurationError(
            f"manager {name}: there is no staging folder {staging_directory}; a relative one in "
            "app.yml is taken from the current folder: run this in the one that Pulsar runs in"
        )
    module, _, class_name = MANAGERS[manager_type].partition(":")
    manager_class = getattr(importlib.import_module(f"{__package__}.{module}"), class_name)
    app = SimpleNamespace(
        only_looks=True, staging_directory=staging_directory,
        persistence_directory=persistence_directory, authorizer=None, user_auth_manager=None,
        dependency_manager=None, object_store=None,
        job_metrics=SimpleNamespace(default_job_instrumenter=None),
    )
    given = {**options, "staging_directory": staging_directory}
    if not writes:
        given["failure_ledger"] = "off"
    manager: RecordingManager = manager_class(name, app, **given)
    return manager


def watches_of(manager: RecordingManager, graceless: bool) -> List[LookingWatch]:
    """Return the jobs that the manager has to look after: the launched ones in Pulsar's index, and
    those whose launch was cut short."""
    cut_short = set(cut_short_launches(manager))
    watches = []
    for job_id in sorted(cut_short | set(indexed_jobs(manager, ACTIVE_STATUS_LAUNCHED))):
        directory = manager.job_directory(job_id)
        ended = (JOB_FILE_FINAL_STATUS, JOB_FILE_PREPROCESSING_FAILED)
        if any(directory.has_metadata(name) for name in ended) or manager.was_cancelled(job_id):
            continue
        external_id = manager._stored_external_id(job_id)
        if job_id in cut_short and external_id is None:
            manager._cut_short.add(job_id)
        watches.append(LookingWatch(manager, job_id, external_id, graceless))
    return watches


#: Waits some seconds between two looks.
_pause: Callable[[float], None] = time.sleep


def look(watches: List[LookingWatch]) -> None:
    """Ask the DRM about the jobs, for as long as a grace may still end one of them.

    Raises:
        DrmError: the DRM gave no answer.
    """
    by_observer: Dict[int, List[LookingWatch]] = {}
    observers: Dict[int, Observer] = {}
    for watch in watches:
        watch._manager.watch_begins(watch)
        observer = watch._manager.observer(watch.external_id)
        observers[id(observer)] = observer
        by_observer.setdefault(id(observer), []).append(watch)
    for number, asked in by_observer.items():
        _look_at(observers[number], asked)


def _look_at(observer: Observer, watches: List[LookingWatch]) -> None:
    patience = max(watch._policy().missing_answers for watch in watches)
    for answer in range(patience + 1):
        asked: Dict[Key, LookingWatch] = {
            (watch._manager, watch.job_id): watch for watch in watches if not watch.over
        }
        if not asked or (answer and not any(watch.waits for watch in asked.values())):
            return
        if answer:
            _pause(observer.interval_s)
        observer.ask(asked, time.monotonic())
