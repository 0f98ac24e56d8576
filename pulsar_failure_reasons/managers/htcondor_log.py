"""Following one job's event log, a bounded number of files open at a time: none between looks.

Only ``JobEventLog.events(0)`` is used: every other call waits, and a wait holds a lock of the
whole process. The reader's position is kept in memory; after a restart of the server a log,
some KB of one job, is read from its start, which gives the same summary.
"""

from __future__ import annotations

import logging
import os
import pickle
from typing import Any, Dict, List, Optional, Tuple

from ..drm.htcondor import JobSummary, advance

log = logging.getLogger("pulsar.failure_reasons.htcondor")

#: What a finished event ends with: text, XML, JSON logs.
_EVENT_ENDS = (b"...\n", b"</c>\n", b"}\n")
#: The reader passes garbage in the middle of a log with an empty answer, at most two of them.
_EMPTY_ANSWERS = 3


class JobLog:
    """What one job's event log says.

    Args:
        path: The log; it need not be there yet, or any more.
        bindings: The module ``htcondor2``.
    """

    def __init__(self, path: str, bindings: Any) -> None:
        self.path = path
        self.summary = JobSummary()
        self._bindings = bindings
        self._position: Optional[bytes] = None
        self._seen: Optional[Tuple[int, int, int]] = None

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
        if self._seen is not None and (now[0], now[1] >= self._seen[1]) != (self._seen[0], True):
            self._position = None
        try:
            events = self._new_events()
        except Exception as error:  # the bindings' own exception, or a file that went away
            log.info("%s cannot be read now: %s", self.path, error)
            return self.summary
        self._seen = now
        for event in events:
            self.summary = advance(self.summary, event)
        return self.summary

    def _new_events(self) -> List[Dict[str, Any]]:
        reader = self._reader()
        events: List[Dict[str, Any]] = []
        empty_answers = 0
        while empty_answers < _EMPTY_ANSWERS:
            new = [dict(event.items()) for event in reader.events(0)]
            empty_answers = 0 if new else empty_answers + 1
            events.extend(new)
        # Before close(): a closed reader crashes the process when it is pickled.
        self._position = pickle.dumps(reader)
        reader.close()
        return events

    def _reader(self) -> Any:
        if self._position is None:
            return self._bindings.JobEventLog(self.path)
        return pickle.loads(self._position)


def _ends_whole(path: str, size: int) -> bool:
    try:
        with open(path, "rb") as handle:
            handle.seek(max(0, size - 8))
            return handle.read().endswith(_EVENT_ENDS)
    except OSError:
        return False
