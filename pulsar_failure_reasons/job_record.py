"""A failure reason in a Pulsar job directory: the metadata file ``runner_state``.

No other file is written, and nothing in the staging folder itself: sites' cleaners and shared
folders trip over it.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any, Dict, Optional, Protocol

from . import attempt
from .attempt import Attempt
from .errors import RecordError
from .reason import FailureReason

log = logging.getLogger("pulsar.failure_reasons.job_record")

METADATA_NAME = "runner_state"
#: What Pulsar stores of a submission; it holds the job's environment.
LAUNCH_CONFIG = "launch_config"

#: What was told of unreadable files, by job directory.
_unreadable: Dict[str, str] = {}


class JobDirectory(Protocol):
    """What this module uses of ``pulsar.managers.base.JobDirectory``."""

    def store_metadata(self, metadata_name: str, metadata_value: Any, atomic: bool = ...) -> None:
        """Write a JSON file."""

    def load_metadata(self, metadata_name: str, default: Optional[Any] = None) -> Any:
        """Read a JSON file; the default where it cannot be opened."""

    def has_metadata(self, metadata_name: str) -> bool:
        """Tell whether the file is there."""

    def remove_metadata(self, metadata_name: str) -> None:
        """Remove the file, quietly."""


def store_record(job_directory: JobDirectory, reason: FailureReason) -> None:
    """Write the record atomically, with the number of the job's attempt if Galaxy gave it one.

    Raises:
        OSError: the job directory is gone, full or not writable.
    """
    number = load_attempt_number(job_directory)
    if number is not None:
        reason = replace(reason, attempt=number)
    job_directory.store_metadata(METADATA_NAME, reason.to_dict(), atomic=True)


def load_record(job_directory: JobDirectory) -> Optional[FailureReason]:
    """Return the stored reason, None where there is none that can be read.

    A file that is no record of ours is logged and left alone.
    """
    try:
        stored = job_directory.load_metadata(METADATA_NAME)
        return None if stored is None else FailureReason.from_dict(stored)
    except (RecordError, ValueError, OSError) as error:
        where = str(getattr(job_directory, "job_directory", "of a job"))
        log.log(
            # Galaxy asks for the payload again and again.
            logging.WARNING if _is_news(where, str(error)) else logging.DEBUG,
            "ignoring the unreadable file %s in the job directory %s: %s",
            METADATA_NAME, where, error,
        )
        return None


def _is_news(where: str, what: str) -> bool:
    if _unreadable.get(where) == what:
        return False
    if len(_unreadable) >= 1000:
        _unreadable.clear()
    _unreadable[where] = what
    return True


def load_current_record(job_directory: JobDirectory) -> Optional[FailureReason]:
    """Return the stored reason if it speaks of the job's present attempt, else None.

    A manager that knows nothing of this file (after a rollback) leaves the record of an earlier
    attempt lying there when it submits the job again: the DRM's id tells.
    """
    reason = load_record(job_directory)
    if reason is None or reason.external_id is None:
        return reason
    try:
        external_id = job_directory.load_metadata("external_id")
    except (ValueError, OSError):
        return reason
    return None if external_id and str(external_id) != reason.external_id else reason


def clear_record(job_directory: JobDirectory) -> None:
    """Remove the record of an earlier attempt, if there is one."""
    job_directory.remove_metadata(METADATA_NAME)


def load_attempt(job_directory: JobDirectory) -> Optional[Attempt]:
    """Return which attempt was submitted in this job directory, None where nobody numbered it."""
    try:
        stored = job_directory.load_metadata(LAUNCH_CONFIG)
    except (ValueError, OSError):
        return None
    return attempt.from_env(stored.get("env")) if isinstance(stored, dict) else None


def load_attempt_number(job_directory: JobDirectory) -> Optional[int]:
    """Return the number of the attempt, None where nobody numbered it."""
    found = load_attempt(job_directory)
    return None if found is None else found.number
