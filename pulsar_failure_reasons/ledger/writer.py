"""The queue and the thread that write the ledger, so that no job ever waits for a database.

Entries wait in memory, bounded: while the database is away the oldest are kept and new ones
dropped and counted. The thread is started by the first entry and ends when all is written, so a
web server may fork at any time. A server that is killed loses what waits, a second's worth as a
rule.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, Deque, Dict, List, Optional

from ..errors import LedgerError
from .entry import Entry
from .settings import LedgerSettings

if TYPE_CHECKING:
    from .database import LedgerDatabase

log = logging.getLogger("pulsar.failure_reasons.ledger")

#: Entries that wait at most; about 2 KB each.
QUEUE_MAX = 10_000
BATCH_MAX = 2_000
#: How long the first entry waits for others to share its transaction.
GATHER_S = 0.5
FIRST_BACK_OFF_S = 2.0
LONGEST_BACK_OFF_S = 300.0
PRUNE_EVERY_S = 3600.0
FLUSH_TIMEOUT_S = 5.0
#: Several managers are shut down one after another: not each is to wait for what is away.
OUTAGE_FLUSH_TIMEOUT_S = 0.5


class LedgerWriter:
    """Writes one ledger for all managers of this process."""

    def __init__(self, settings: LedgerSettings) -> None:
        self.settings = settings
        self.start_anew()

    def start_anew(self) -> None:
        """Forget all that waits; in a forked child, where it is the parent's to write."""
        self._condition = threading.Condition()
        self._queue: Deque[Entry] = deque()
        self._thread: Optional[threading.Thread] = None
        self._hurry = False
        self._failures = 0
        self._dropped = 0
        self._pruned_at: Optional[float] = None
        self._database: Optional[LedgerDatabase] = None

    def add(self, entry: Entry) -> None:
        """Have an entry written soon. Neither waits nor raises."""
        with self._condition:
            if len(self._queue) >= QUEUE_MAX:
                self._dropped += 1
                return
            self._queue.append(entry)
            if self._thread is None:
                self._start_thread()

    def _start_thread(self) -> None:
        thread = threading.Thread(target=self._run, name="failure-ledger", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            # No more threads, or an interpreter on its way out: the next entry tries again.
            self._outage_begins(f"the thread that writes it could not be started: {error}")
            return
        self._thread = thread

    def flush(self, timeout_s: Optional[float] = None) -> bool:
        """Wait until all is written; return False where that takes longer than the timeout."""
        limit_s = FLUSH_TIMEOUT_S if timeout_s is None else min(timeout_s, FLUSH_TIMEOUT_S)
        with self._condition:
            if self._failures > 1:
                limit_s = min(limit_s, OUTAGE_FLUSH_TIMEOUT_S)
            self._hurry = self._thread is not None
            self._condition.notify_all()
            done = self._condition.wait_for(lambda: self._thread is None, limit_s)
            waiting = len(self._queue)
        if not done:
            log.warning(
                "failure ledger %s: %d rows were not written within %g s", self.settings,
                waiting, limit_s,
            )
        return done

    # ---- the thread -------------------------------------------------------------------------

    def _run(self) -> None:
        self._pause(GATHER_S)
        while True:
            batch = self._next_batch()
            if not batch:
                return
            if self._write(batch):
                self._written(len(batch))
            else:
                self._pause(self._back_off_s())

    def _pause(self, seconds: float) -> None:
        with self._condition:
            self._condition.wait_for(lambda: self._hurry, seconds)
            # Once: at a shutdown a database that is away is tried once more, and that is all.
            self._hurry = False

    def _next_batch(self) -> List[Entry]:
        """Return the entries to write; none where the thread has to end."""
        with self._condition:
            batch = list(islice(self._queue, BATCH_MAX))
            if not batch:
                self._thread = None
                self._condition.notify_all()
            return batch

    def _written(self, count: int) -> None:
        with self._condition:
            for _ in range(count):
                self._queue.popleft()
        if self._failures or self._dropped:
            dropped, self._dropped, self._failures = self._dropped, 0, 0
            log.info(
                "failure ledger %s is written again; %d rows were dropped meanwhile",
                self.settings, dropped,
            )

    def _write(self, batch: List[Entry]) -> bool:
        """Write a batch; return False where the database is not to be had now. Never raises."""
        try:
            if self._database is None:
                from .database import LedgerDatabase  # SQLAlchemy takes a while to import

                self._database = LedgerDatabase(self.settings.url)
            self._write_or_drop(self._database, batch)
            self._prune(self._database)
        except LedgerError as error:
            self._outage_begins(str(error))
            return False
        except Exception as error:  # the thread must outlive a mistake of ours
            log.debug("failure ledger: %s", error, exc_info=True)
            self._outage_begins(repr(error))
            return False
        return True

    def _write_or_drop(self, database: LedgerDatabase, batch: List[Entry]) -> None:
        try:
            database.write(batch)
        except ValueError as error:
            if len(batch) == 1:
                log.info("(%s) its end is left out of the ledger: %s", batch[0].job_id, error)
                return
            half = len(batch) // 2
            self._write_or_drop(database, batch[:half])
            self._write_or_drop(database, batch[half:])

    def _prune(self, database: LedgerDatabase) -> None:
        now = time.monotonic()
        if self._pruned_at is not None and now - self._pruned_at < PRUNE_EVERY_S:
            return
        self._pruned_at = now
        removed = database.prune(self.settings.retention_s, time.time())
        if removed:
            log.info("failure ledger %s: removed %d rows, for their age", self.settings, removed)

    def _outage_begins(self, what: str) -> None:
        self._failures += 1
        if self._failures == 1:
            log.warning(
                "failure ledger %s cannot be written now: %s. Jobs are not affected; up to %d "
                "rows wait in memory", self.settings, what, QUEUE_MAX,
            )

    def _back_off_s(self) -> float:
        return float(min(FIRST_BACK_OFF_S * 2.0 ** min(self._failures, 16), LONGEST_BACK_OFF_S))


_writers: Dict[str, LedgerWriter] = {}
_writers_lock = threading.Lock()


def shared_writer(settings: LedgerSettings) -> LedgerWriter:
    """Return this process's writer of a ledger; the first manager's retention holds."""
    with _writers_lock:
        writer = _writers.get(settings.url)
        if writer is None:
            writer = _writers[settings.url] = LedgerWriter(settings)
        return writer


def _after_fork() -> None:
    # Another thread may have held a lock at the moment of the fork.
    global _writers_lock
    _writers_lock = threading.Lock()
    for writer in _writers.values():
        writer.start_anew()


os.register_at_fork(after_in_child=_after_fork)
