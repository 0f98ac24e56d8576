"""Following one job's event log, a bounded number of files open at a time: none between looks.

Only ``JobEventLog.events(0)`` is used: every other call waits, and a wait holds a lock of the
whole process. The reader's position is kept in memory; after a restart of the server a log,
some KB of one job, is read from its start, which gives the same summary.
"""

from __future__ import annotations

import logging
import os
import pickle
from typing import Any, Dict, List, Mapping, Optional, Tuple

from ..drm.external_ids import base_id
from ..drm.htcondor import JobEvent, JobSummary, advance
from ..drm.htcondor.log_text import read_records

log = logging.getLogger("pulsar.failure_reasons.htcondor")

#: What a finished event ends with: text, XML, JSON logs.
_EVENT_ENDS = (b"...\n", b"</c>\n", b"}\n")
#: What is read of a log that the bindings cannot read: one is some KB, an event every few minutes.
_LONGEST_DAMAGED_LOG = 2 * 1024 * 1024

Event = Mapping[str, Any]


class JobLog:
    """What one job's event log says.

    Args:
        path: The log; it need not be there yet, or any more.
        bindings: The module ``htcondor2``.
        external_id: Events of other clusters are not this job's.
        job_name: By what the job is told from another that got its id since (a schedd that was
            set up anew counts from 1); None where it is not known.
    """

    def __init__(
        self, path: str, bindings: Any, external_id: str, job_name: Optional[str] = None
    ) -> None:
        self.path = path
        self._nothing = JobSummary(cluster=int(base_id(external_id)), job_name=job_name)
        self.summary = self._nothing
        self._bindings = bindings
        self._position: Optional[bytes] = None
        self._seen: Optional[Tuple[int, int, int]] = None
        self._told_unreadable = False

    def read(self) -> JobSummary:
        """Return the summary after what was written since the last call. Never raises."""
        try:
            stat = os.stat(self.path)
        except OSError:
            # Not written yet, deleted, or on a file system that is away: the queue tells.
            return self.summary
        now = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
        if now == self._seen or not _ends_whole(self.path, stat.st_size):
            # A half-written event would cost a second of waiting; it is whole at the next look.
            return self.summary
        if self._seen is not None and (now[0] != self._seen[0] or now[1] < self._seen[1]):
            self._position = None
        try:
            events, from_start = self._new_events(stat.st_size)
        except Exception as error:  # the bindings' own exception, or a file that went away
            if not self._told_unreadable:
                log.info("%s cannot be read now, trying again: %s", self.path, error)
            self._told_unreadable = True
            return self.summary
        self._told_unreadable = False
        self._seen = now
        self._fold(events, from_start)
        return self.summary

    def _fold(self, events: List[Event], from_start: bool) -> None:
        # A log that was written anew with all its events (a restore, a copy) is not counted
        # twice; one that was cut loses nothing of what was known.
        complete = bool(events) and events[0].get("EventTypeNumber") == JobEvent.SUBMIT
        summary = self._nothing if from_start and complete else self.summary
        for event in events:
            summary = advance(summary, event)
        self.summary = summary

    def _new_events(self, size: int) -> Tuple[List[Event], bool]:
        """Return what was written since the last time; or all there is, and True."""
        from_start = self._position is None
        reader = self._reader()
        try:
            events = _read_all(reader, size)
            # Before close(): a closed reader crashes the process when it is pickled.
            self._position = pickle.dumps(reader)
        except Exception as error:
            # A reason in another encoding (a file's name), an event that lacks a part: this one
            # and, for the first, all that follow would be lost.
            if not self._told_unreadable:
                log.info("%s is damaged, it is read without the bindings: %s", self.path, error)
            self._position = None
            return _read_damaged(self.path), True
        finally:
            reader.close()
        return events, from_start

    def _reader(self) -> Any:
        if self._position is None:
            return self._bindings.JobEventLog(self.path)
        return pickle.loads(self._position)


def _read_all(reader: Any, size: int) -> List[Event]:
    """Return all events to the end; garbage in the middle is passed with empty answers."""
    events: List[Event] = []
    before = -1
    while True:
        new: List[Dict[str, Any]] = [dict(event.items()) for event in reader.events(0)]
        events.extend(new)
        position = reader.__getstate__()[1]
        if position >= size or position == before:
            return events
        before = position


def _read_damaged(path: str) -> List[Event]:
    with open(path, "rb") as handle:
        text = handle.read(_LONGEST_DAMAGED_LOG).decode("utf-8", errors="replace")
    events, _ = read_records(text)
    return list(events)


def _ends_whole(path: str, size: int) -> bool:
    try:
        with open(path, "rb") as handle:
            handle.seek(max(0, size - 8))
            return handle.read().endswith(_EVENT_ENDS)
    except OSError:
        return False
