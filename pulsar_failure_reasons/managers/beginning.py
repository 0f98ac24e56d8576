"""What a manager does when a server begins to serve, once in each process."""

from __future__ import annotations

import logging
import os
import threading
from typing import IO, TYPE_CHECKING, List, Optional

from .launch_scan import cut_short_launches, take_up_cut_short
from .server_lock import hold_as_server, lock_path

if TYPE_CHECKING:
    from .recording_manager import RecordingManager

log = logging.getLogger("pulsar.failure_reasons.recording")


class Beginning:
    """Tells commands that a server is at work, and takes up launches that a kill cut short.

    Without such launches no thread is started: web servers fork after loading.
    """

    def __init__(self, manager: RecordingManager) -> None:
        self._manager = manager
        self._lock: Optional[IO[bytes]] = None
        self._waits_for_lock = False
        self._cut_short: List[str] = []
        self._pid: Optional[int] = None
        self._over = False

    def begin(self) -> None:
        """Begin, in the manager's constructor."""
        # Searched now, and not in a thread: while Pulsar launches a job again, no index lists it.
        self._cut_short = cut_short_launches(self._manager)
        self._take_lock(wait=False)
        self.begin_in_this_process()

    def begin_in_this_process(self) -> None:
        """Go on where the constructor left off, here or in a process that was forked since."""
        if self._pid == os.getpid() or not (self._cut_short or self._waits_for_lock):
            return
        self._pid = os.getpid()
        name = f"failure-reasons-begin-{self._manager.name}"
        try:
            threading.Thread(name=name, target=self._go_on, daemon=True).start()
        except RuntimeError as error:
            log.warning("manager %s: launches cut short stay so: %s", self._manager.name, error)

    def _go_on(self) -> None:
        if self._waits_for_lock:
            self._take_lock(wait=True)
        if not self._over:
            take_up_cut_short(self._manager, self._cut_short)

    def _take_lock(self, wait: bool) -> None:
        persistence = self._manager.persistence_directory
        if not persistence:
            return
        try:
            lock = hold_as_server(lock_path(str(persistence), self._manager.name), wait)
        except BlockingIOError:
            log.warning(
                "manager %s: a command is changing its jobs; launches that were cut short wait",
                self._manager.name,
            )
            self._waits_for_lock = True
            return
        self._waits_for_lock = False
        self._lock = lock
        if self._over:
            self.end()

    def end(self) -> None:
        """End, when the manager is shut down."""
        self._over = True
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.close()
