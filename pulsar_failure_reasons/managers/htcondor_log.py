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
#: The reader passes garbage in the middle of a log with an empty answer, at most two of them.
_EMPTY_ANSWERS = 3
#: A log is some KB, one event every few minutes; of a longer one nobody could read all at once.
_LONGEST_UNDECODABLE_LOG = 4 * 1024 * 1024

Event = Mapping[str, Any]


class JobLog:
    """What one job's event log says.

    Args:
        path: The log; it need not be there yet, or any more.
        bindings: The module ``htcondor2``.
        external_id: Events of other clusters are not this job's.
    """

    def __init__(self, path: str, bindings: Any, external_id: str) -> None:
        self.path = path
        self._nothing = JobSummary(cluster=int(base_id(external_id)))
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
        anew = self._position is None
        try:
            events = self._new_events()
        except Exception as error:  # the bindings' own exception, or a file that went away
            if not self._told_unreadable:
                log.info("%s cannot be read now, trying again: %s", self.path, error)
            self._told_unreadable = True
            return self.summary
        self._told_unreadable = False
        self._seen = now
        self._fold(events, anew)
        return self.summary

    def _fold(self, events: List[Event], anew: bool) -> None:
        # A log that was written anew with all its events (a restore, a copy) is not counted
        # twice; one that was cut loses nothing of what was known.
        complete = bool(events) and events[0].get("EventTypeNumber") == JobEvent.SUBMIT
        summary = self._nothing if anew and complete else self.summary
        for event in events:
            summary = advance(summary, event)
        self.summary = summary

    def _new_events(self) -> List[Event]:
        reader = self._reader()
        try:
            events = _read_all(reader)
            # Before close(): a closed reader crashes the process when it is pickled.
            self._position = pickle.dumps(reader)
        except UnicodeDecodeError:
            # A reason in another encoding (a file's name); the reader cannot get past it.
            self._position = None
            return _read_undecodable(self.path)
        finally:
            reader.close()
        return events

    def _reader(self) -> Any:
        if self._position is None:
            return self._bindings.JobEventLog(self.path)
        return pickle.loads(self._position)


def _read_all(reader: Any) -> List[Event]:
    events: List[Event] = []
    empty_answers = 0
    while empty_answers < _EMPTY_ANSWERS:
        new: List[Dict[str, Any]] = [dict(event.items()) for event in reader.events(0)]
        empty_answers = 0 if new else empty_answers + 1
        events.extend(new)
    return events


def _read_undecodable(path: str) -> List[Event]:
    with open(path, "rb") as handle:
        text = handle.read(_LONGEST_UNDECODABLE_LOG).decode("utf-8", errors="replace")
    events, _ = read_records(text)
    return list(events)


def _ends_whole(path: str, size: int) -> bool:
    try:
        with open(path, "rb") as handle:
            handle.seek(max(0, size - 8))
            return handle.read().endswith(_EVENT_ENDS)
    except OSError:
        return False
