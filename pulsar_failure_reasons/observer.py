"""One batched, cached look at a DRM for all jobs of all managers that share it.

Nobody asks a REST-only or embedded Pulsar to look at its jobs, and no request may wait for a
DRM, so the observer owns a daemon thread. It is started by the first job that is watched in
the process that serves (web servers fork after loading) and makes passes: one query for all
jobs, one accounting query for those that the controller has forgotten. ``get_status`` answers
from what the passes left in memory.

Time is the monotonic clock throughout: an answer says nothing of a job that was submitted
after the query began.
"""

from __future__ import annotations

import logging
import os
import random
import threading
import time
from dataclasses import dataclass
from typing import (
    Callable,
    Dict,
    Hashable,
    List,
    Mapping,
    Optional,
    Sequence,
    Set,
    Tuple,
    Union,
)

from .answer import Answer, Watch
from .drm.base import DrmSource, IdSource, JobView, Phase
from .errors import DrmError

log = logging.getLogger("pulsar.failure_reasons.observer")

#: A DRM that is down is asked less and less often, but at least this often (seconds).
LONGEST_BACK_OFF_S = 300.0
#: A pass that hangs (a command on a file system that is away) is not waited for any longer.
LONGEST_STOP_S = 30.0
#: How often the cost of looking is logged (seconds).
COUNTERS_LOGGED_EVERY_S = 3600.0
#: One or two jobs may well end, and be forgotten, between two looks.
SMALLEST_BATCH = 3


#: Who watches a job, and the job_id.
Key = Tuple[object, str]
Source = Union[DrmSource, IdSource]


@dataclass
class Counters:
    """What looking cost and saw. Times are seconds."""

    passes: int = 0
    failed_passes: int = 0
    job_queries: int = 0
    accounting_queries: int = 0
    last_pass_s: float = 0.0
    slowest_pass_s: float = 0.0
    jobs_in_last_answer: int = 0


class Outage:
    """Whether a source is silent, so that this is logged once, and its end once."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.since: Optional[float] = None

    def began(self, error: Exception, now: float) -> None:
        """Note a failed query."""
        if self.since is None:
            self.since = now
            log.warning(
                "%s gave no usable answer: %s (jobs keep their last status; trying again)",
                self.what, error,
            )

    def ended(self, now: float) -> None:
        """Note an answer."""
        if self.since is not None:
            log.warning("%s answers again, after %.0f s", self.what, now - self.since)
            self.since = None


class Observer:
    """Looks at one DRM for every :class:`Watch`.

    Args:
        source: How to look at the DRM.
        interval_s: Seconds from the start of one pass to the start of the next. Managers that
            share an observer may lower it.
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        source: Source,
        interval_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.source = source
        self.interval_s = interval_s
        self.counters = Counters()
        self.clock = clock
        self._watches: Dict[Key, Watch] = {}
        self._cancels: Dict[str, float] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread: Optional[threading.Thread] = None
        self._controller = Outage(source.label)
        self._accounting = Outage(f"{source.label} accounting")
        self._threads = Outage(f"this server, asked for a thread to look at {source.label},")
        self._cancellation = Outage(f"{source.label}, asked to cancel jobs,")
        self._failures = 0
        #: The jobs that the newest answer listed.
        self._listed: Set[Key] = set()
        self._counters_logged_at = clock()

    def watch(self, key: Key, watch: Watch) -> bool:
        """Look at this job from the next pass on; starts the thread if none runs.

        Returns False where no thread can be started now.
        """
        with self._lock:
            self._watches[key] = watch
            return self._ensure_thread()

    def forget(self, key: Key) -> None:
        """Look at this job no more."""
        with self._lock:
            self._watches.pop(key, None)

    def release(self, owner: object, timeout_s: Optional[float] = None) -> None:
        """Look at none of this owner's jobs any more (keys are ``(owner, ...)``).

        The thread ends with the last owner's jobs; a pass in progress is waited for at most
        ``timeout_s`` seconds.
        """
        with self._lock:
            for key in [key for key in self._watches if key[0] is owner]:
                del self._watches[key]
            # Told to stop under the same lock: a job that is watched from now on gets a new one.
            thread = self._tell_to_stop() if not self._watches else None
        _wait_for(thread, timeout_s)

    def watched(self) -> int:
        """Return how many jobs are looked at."""
        return len(self._watches)

    def cancel_later(self, external_id: str) -> None:
        """Take a job out of the DRM as soon as it answers; tried until the job is gone."""
        with self._lock:
            self._cancels.setdefault(external_id, self.clock())
            self._ensure_thread()

    def keep(self, external_id: str) -> None:
        """Take back :meth:`cancel_later`, as far as it has not been done."""
        with self._lock:
            self._cancels.pop(external_id, None)

    def stop(self, timeout_s: Optional[float] = None) -> None:
        """End the thread; a pass in progress is waited for at most ``timeout_s`` seconds.

        None waits for 30 s: the launchers' shutdown gives no time, and must come to its end.
        """
        with self._lock:
            thread = self._tell_to_stop()
        _wait_for(thread, timeout_s)

    def _tell_to_stop(self) -> Optional[threading.Thread]:
        thread, self._thread = self._thread, None
        self._stop.set()
        return thread

    def _ensure_thread(self) -> bool:
        if self._thread is not None and self._thread.is_alive():
            return True
        # Each thread has an event of its own: one that was told to stop, but hangs in a query,
        # must not be revived by its successor.
        self._stop = threading.Event()
        self._thread = threading.Thread(
            name=f"failure-reasons-{self.source.label}",
            target=self._run,
            args=(self._stop,),
            daemon=True,
        )
        try:
            self._thread.start()
        except RuntimeError as error:
            # A limit of the system (TasksMax, ulimit -u), or an interpreter on its way out. Not
            # raised: a job that was just submitted must not fail for it.
            self._threads.began(error, self.clock())
            return False
        self._threads.ended(self.clock())
        return True

    def _run(self, stop: threading.Event) -> None:
        while not stop.is_set():
            began = self.clock()
            self.look()
            stop.wait(max(0.05, began + self._pause_s() - self.clock()))

    def _pause_s(self) -> float:
        if not self._failures:
            return self.interval_s
        longest = max(LONGEST_BACK_OFF_S, self.interval_s)
        back_off = min(self.interval_s * 2.0 ** min(self._failures, 16), longest)
        return back_off * random.uniform(0.75, 1.0)

    def look(self) -> None:
        """Make one pass. Never raises: whatever goes wrong leaves the last status standing."""
        began = self.clock()
        try:
            self._pass(began)
            self._failures = 0
        except DrmError as error:
            self._failures += 1
            self.counters.failed_passes += 1
            self._controller.began(error, began)
        except Exception:  # the thread must outlive a mistake of ours
            self._failures += 1
            self.counters.failed_passes += 1
            log.exception("a look at %s failed; jobs keep their last status", self.source.label)
        self._count(began)

    def _pass(self, began: float) -> None:
        watches = self._due(began)
        if not watches and not self._cancels:
            return
        answer = self.ask(watches, began)
        self._cancel(answer, began)

    def ask(self, watches: Mapping[Key, Watch], began: float) -> Answer:
        """Ask the DRM once about these jobs, and accounting about those that it lacks.

        Part of a pass; by itself it is for a command that looks once, without a thread.

        Raises:
            DrmError: the controller gave no answer; no job was told anything.
        """
        self.counters.job_queries += 1
        answer = Answer(self._query(watches))
        self._controller.ended(self.clock())
        self.counters.jobs_in_last_answer = answer.size
        missing: Dict[Key, Watch] = {}
        listed: Set[Key] = set()
        for key, watch in watches.items():
            view = answer.find(watch)
            if view is None:
                missing[key] = watch
            else:
                listed.add(key)
                self._show(key, watch, view, began)
        gone = self._look_into_accounting(missing, began) if missing else set()
        self._warn_of_a_batch_that_is_gone(listed, gone)
        return answer

    def _warn_of_a_batch_that_is_gone(self, listed: Set[Key], gone: Set[Key]) -> None:
        """Say so where all jobs vanish at once: a controller that lost its state looks like that.

        Each of them has its grace, which ends none that comes back.
        """
        if len(self._listed) >= SMALLEST_BATCH and self._listed <= gone:
            log.warning(
                "%s lists none of the %d jobs any more that it listed a moment ago, and does not "
                "say what became of them: was it started without its state? Those that do not "
                "come back end after their missing_grace",
                self.source.label, len(self._listed),
            )
        self._listed = listed

    def _query(self, watches: Mapping[Key, Watch]) -> Sequence[JobView]:
        if not isinstance(self.source, IdSource):
            return self.source.query_jobs()
        with self._lock:
            ids = set(self._cancels)
        names = set()
        for watch in watches.values():
            if watch.external_id is not None:
                ids.add(watch.external_id)
            elif watch.job_name is not None:
                names.add(watch.job_name)
        return self.source.query_these(sorted(ids), sorted(names))

    def _due(self, began: float) -> Dict[Key, Watch]:
        with self._lock:
            return {key: watch for key, watch in self._watches.items() if watch.since < began}

    def _cancel(self, answer: Answer, began: float) -> None:
        """Cancel what is to be cancelled, with one command; what is gone needs it no more."""
        with self._lock:
            for external_id, since in list(self._cancels.items()):
                if since < began and not answer.is_alive(external_id):
                    del self._cancels[external_id]
            ids = sorted(self._cancels)
        if not ids:
            return
        try:
            self.source.cancel(ids)
        except DrmError as error:
            # The jobs were seen, so this is no outage of the DRM.
            self._cancellation.began(error, began)
            return
        self._cancellation.ended(self.clock())
        with self._lock:
            for external_id in ids:
                self._cancels.pop(external_id, None)

    def _show(self, key: Key, watch: Watch, view: Optional[JobView], at: float) -> None:
        if watch.see(view, at):
            with self._lock:
                if self._watches.get(key) is watch:
                    del self._watches[key]

    def _look_into_accounting(self, missing: Mapping[Key, Watch], at: float) -> Set[Key]:
        """Tell the jobs what accounting knows; return those of which it does not know an end."""
        ids = sorted({w.external_id for w in missing.values() if w.external_id is not None})
        try:
            records = self._query_ended(ids) if ids else []
        except DrmError as error:
            # No answer about these jobs: neither a grace is used up nor a status changed.
            self._accounting.began(error, at)
            return set()
        self._accounting.ended(self.clock())
        answer = Answer(records)
        gone: Set[Key] = set()
        for key, watch in missing.items():
            view = answer.find(watch) if watch.external_id is not None else None
            # Accounting that takes a job for running which the controller has forgotten was
            # never told its end: it does not know.
            if view is None or view.phase is not Phase.ENDED:
                view = None
                gone.add(key)
            self._show(key, watch, view, at)
        return gone

    def _query_ended(self, external_ids: Sequence[str]) -> List[JobView]:
        records = self.source.query_ended(external_ids)
        if records is None:
            return []
        self.counters.accounting_queries += 1
        return records

    def _count(self, began: float) -> None:
        counters, now = self.counters, self.clock()
        counters.passes += 1
        counters.last_pass_s = now - began
        counters.slowest_pass_s = max(counters.slowest_pass_s, counters.last_pass_s)
        if now - self._counters_logged_at >= COUNTERS_LOGGED_EVERY_S:
            self._counters_logged_at = now
            log.info(
                "looking at %s for %d jobs: %d passes (%d without an answer), %d job queries, "
                "%d accounting queries, last pass %.3f s, slowest %.3f s, %d jobs in last answer",
                self.source.label, self.watched(), counters.passes, counters.failed_passes,
                counters.job_queries, counters.accounting_queries, counters.last_pass_s,
                counters.slowest_pass_s, counters.jobs_in_last_answer,
            )


def _wait_for(thread: Optional[threading.Thread], timeout_s: Optional[float]) -> None:
    if thread is not None and thread is not threading.current_thread():
        thread.join(LONGEST_STOP_S if timeout_s is None else timeout_s)


_shared: Dict[Tuple[int, Hashable], Observer] = {}
_shared_lock = threading.Lock()


def shared_observer(
    key: Hashable, interval_s: float, make_source: Callable[[], Source]
) -> Observer:
    """Return the observer of this process for a DRM, cluster and user; made when first asked for.

    Several managers ask with the same ``key``; the smallest ``interval_s`` of theirs holds. A
    process that was forked gets an observer of its own.
    """
    with _shared_lock:
        observer = _shared.get((os.getpid(), key))
        if observer is None:
            observer = _shared[(os.getpid(), key)] = Observer(make_source(), interval_s)
        observer.interval_s = min(observer.interval_s, interval_s)
        return observer


def _new_lock_after_fork() -> None:
    # Another thread may have held the lock at the moment of the fork.
    global _shared_lock
    _shared_lock = threading.Lock()


os.register_at_fork(after_in_child=_new_lock_after_fork)
