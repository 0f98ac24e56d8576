"""Launches that a kill cut short and that no index of Pulsar's lists: found by their marks.

Pulsar indexes a job that Galaxy stages itself (REST) only after its launch. If it is killed between
the submission and that, stock shows the job as preprocessing for ever, whatever becomes of it.
"""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, List, Sequence

from pulsar.managers.stateful import ACTIVE_STATUS_DIRECTORIES, ACTIVE_STATUS_PREPROCESSING

from .launch import LAUNCH_ENDED
from .launch_mark import dead_launch

if TYPE_CHECKING:
    from .recording_manager import RecordingManager

log = logging.getLogger("pulsar.failure_reasons.launch")


def cut_short_launches(manager: RecordingManager) -> List[str]:
    """Return the jobs whose launch by this manager was cut short; changes nothing.

    Those in Pulsar's index of preprocessing are left out: Pulsar launches them again.
    """
    staging = str(manager.staging_directory)
    try:
        names = sorted(os.listdir(staging))
    except OSError as error:
        log.warning("%s cannot be searched for launches that were cut short: %s", staging, error)
        return []
    launched_again = set(indexed_jobs(manager, ACTIVE_STATUS_PREPROCESSING))
    return [
        name for name in names
        if dead_launch(os.path.join(staging, name)) == manager.name
        and name not in launched_again and not _has_ended(manager, name)
    ]


def _has_ended(manager: RecordingManager, job_id: str) -> bool:
    directory = manager.job_directory(job_id)
    return any(directory.has_metadata(name) for name in LAUNCH_ENDED)


def indexed_jobs(manager: RecordingManager, index: str) -> List[str]:
    """Return the jobs in one of Pulsar's indexes of a manager; none without persistence."""
    folder = index_directory(manager, index)
    try:
        return sorted(os.listdir(folder)) if folder else []
    except FileNotFoundError:
        return []


def index_directory(manager: RecordingManager, index: str) -> str:
    """Return the folder of an index (pulsar.managers.stateful.ActiveJobs); empty without one."""
    if not manager.persistence_directory:
        return ""
    name = f"{manager.name}-{ACTIVE_STATUS_DIRECTORIES[index]}"
    return os.path.join(str(manager.persistence_directory), name)


def take_up_cut_short(manager: RecordingManager, job_ids: Sequence[str]) -> None:
    """Have those of the jobs looked after whose launch is still cut short. Never raises."""
    for job_id in job_ids:
        try:
            if not _has_ended(manager, job_id):
                _take_up(manager, job_id)
        except Exception:  # it runs in a thread of its own
            log.exception("(%s) its launch, which was cut short, is not taken up", job_id)


def _take_up(manager: RecordingManager, job_id: str) -> None:
    """Look after one such job.

    Its id tells that it was submitted. Else a job of its name is looked for, and only what the
    DRM's answers say concludes the launch: until then Galaxy may launch the job again.
    """
    external_id = manager._stored_external_id(job_id)
    log.info(
        "(%s/%s) Pulsar was killed while it launched this job; it is looked for",
        job_id, external_id,
    )
    if external_id is None:
        manager._cut_short.add(job_id)
    else:
        manager.conclude_launch(job_id)
        if manager.was_cancelled(job_id):
            manager.kill(job_id)
            return
    manager._watch_of(job_id)
