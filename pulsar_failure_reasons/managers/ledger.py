"""What a manager tells the failure ledger, which must never be in a job's way."""

from __future__ import annotations

import logging
from typing import Any, Mapping, Optional, Set

from pulsar.managers.base import JobDirectory
from pulsar.managers.base.directory import JOB_FILE_TOOL_ID
from pulsar.managers.stateful import JOB_FILE_FINAL_STATUS

from ..job_record import load_record
from ..ledger.entry import make_entry
from ..ledger.settings import OPTIONS, NoLedger, ledger_settings
from ..ledger.writer import LedgerWriter, shared_writer
from ..reason import FailureReason
from ..switch import reasons_are_off
from .options import Options

log = logging.getLogger("pulsar.failure_reasons.ledger")

#: What was logged of managers without a ledger: once in a process.
_told: Set[str] = set()


class ManagerLedger:
    """The ledger of one manager, if it has one.

    Args:
        manager_name: As in ``app.yml``.
        given: The manager's options.
        persistence_directory: Pulsar's, None where it has none.

    Raises:
        ConfigurationError: an option has a value that cannot work.
    """

    def __init__(
        self, manager_name: str, given: Mapping[str, Any], persistence_directory: Optional[str]
    ) -> None:
        self._manager_name = manager_name
        self._writer: Optional[LedgerWriter] = None
        Options(manager_name, given).warn_of_misspellings(OPTIONS, ())
        settings = ledger_settings(manager_name, given, persistence_directory)
        if isinstance(settings, NoLedger):
            _log_once(settings)
        else:
            self._writer = shared_writer(settings)
            log.info("manager %s: failure ledger %s", manager_name, settings)

    def record_end(
        self,
        job_id: str,
        job_directory: JobDirectory,
        external_id: Optional[str],
        reason: Optional[FailureReason],
    ) -> None:
        """Have an end stored, its record written before; ``reason`` is for where that failed.

        Never raises.
        """
        if self._writer is None or reasons_are_off():
            return
        try:
            if job_directory.has_metadata(JOB_FILE_FINAL_STATUS):
                # Another process of the web server was first, and has told it.
                return
            stored = load_record(job_directory) if reason is not None else None
            tool_id = _tool_id(job_directory)
            self._writer.add(
                make_entry(self._manager_name, job_id, external_id, tool_id, stored or reason)
            )
        except Exception:  # whatever it is, the job has ended and must be reported
            log.exception("(%s/%s) its end is not in the failure ledger", job_id, external_id)

    def flush(self, timeout_s: Optional[float]) -> None:
        """Write what waits, at a shutdown."""
        if self._writer is not None:
            self._writer.flush(timeout_s)


def _log_once(no_ledger: NoLedger) -> None:
    if no_ledger.why in _told:
        return
    _told.add(no_ledger.why)
    level = logging.WARNING if no_ledger.wanted else logging.INFO
    log.log(level, "no failure ledger is kept: %s", no_ledger.why)


def _tool_id(job_directory: JobDirectory) -> Optional[str]:
    """Return Galaxy's id of the tool, None where Galaxy did not say or it cannot be read."""
    try:
        tool_id = job_directory.load_metadata(JOB_FILE_TOOL_ID)
    except (ValueError, OSError):
        return None
    return tool_id if isinstance(tool_id, str) and tool_id else None
