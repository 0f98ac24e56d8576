"""The observer: one query for N jobs, silence changes nothing, threads and forks."""

from __future__ import annotations

import logging
import os
import threading
import time
from typing import Dict, List, Optional, Sequence

import pytest

from pulsar_failure_reasons.drm.base import End, Ending, JobView, Phase
from pulsar_failure_reasons.errors import DrmUnreachableError, OutputParseError
from pulsar_failure_reasons.observer import Observer, shared_observer
from pulsar_failure_reasons.reason import Cause, Confidence


def view(external_id: str, phase: Phase = Phase.RUNNING, **more: object) -> JobView:
    end = End(Ending.LIMIT, Cause.WALLTIME) if phase is Phase.ENDED else None
    return JobView(external_id, "X", phase, Confidence.CONTROLLER, end=end, **more)  # type: ignore


class Source:
    """A DRM whose answers the test writes; an exception as answer is raised."""

    label = "Test"

    def __init__(self) -> None:
        self.jobs: object = []
        self.ended: object = []
        self.asked: List[Sequence[str]] = []
        self.cancelled: List[str] = []
        self.queries = 0

    def query_jobs(self) -> Sequence[JobView]:
        self.queries += 1
        if isinstance(self.jobs, Exception):
            raise self.jobs
        return self.jobs  # type: ignore

    def query_ended(self, external_ids: Sequence[str]) -> Optional[List[JobView]]:
        self.asked.append(list(external_ids))
        if isinstance(self.ended, Exception):
            raise self.ended
        return self.ended  # type: ignore

    def cancel(self, external_ids: Sequence[str]) -> None:
        self.cancelled.extend(external_ids)


class Seen:
    """A watch that keeps what it was shown."""

    def __init__(self, external_id: Optional[str], name: Optional[str] = None, since: float = -1.0):
        self.external_id, self.job_name, self.since = external_id, name, since
        self.views: List[Optional[JobView]] = []

    def recognises(self, one: JobView) -> bool:
        return self.job_name is None or one.job_name in (None, self.job_name)

    def see(self, one: Optional[JobView], at: float) -> bool:
        self.views.append(one)
        return one is not None and one.phase is Phase.ENDED


class Clock:
    """Monotonic seconds that the test moves."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
def observer(source: Source, monkeypatch: pytest.MonkeyPatch) -> Observer:
    made = Observer(source, 15.0, clock=Clock())
    monkeypatch.setattr(made, "_ensure_thread", lambda: True)  # the test makes the passes
    return made


def watch_all(observer: Observer, watches: Dict[str, Seen]) -> None:
    for job_id, watch in watches.items():
        observer.watch(("owner", job_id), watch)


def test_one_query_for_many_jobs(observer: Observer, source: Source) -> None:
    """A thousand jobs cost one query, and each is shown its own view."""
    watches = {str(n): Seen(str(n)) for n in range(1, 1001)}
    watch_all(observer, watches)
    source.jobs = [view(str(n)) for n in range(1, 1001)]
    observer.look()
    assert (source.queries, source.asked) == (1, [])
    assert all(len(w.views) == 1 and w.views[0].external_id == n for n, w in watches.items())


def test_one_accounting_query_for_all_forgotten_jobs(observer: Observer, source: Source) -> None:
    """Jobs that the controller has forgotten are asked of accounting together."""
    watches = {"1": Seen("1"), "2": Seen("2"), "3": Seen("3")}
    watch_all(observer, watches)
    source.jobs, source.ended = [view("2")], [view("1", Phase.ENDED)]
    observer.look()
    assert source.asked == [["1", "3"]]
    assert watches["1"].views[0] is not None
    assert watches["3"].views == [None]


def test_accounting_is_not_asked_while_the_controller_knows(
    observer: Observer, source: Source
) -> None:
    """A requeued job is pending for the controller and NODE_FAIL for accounting."""
    watch_all(observer, {"1": Seen("1")})
    source.jobs, source.ended = [view("1", Phase.QUEUED)], [view("1", Phase.ENDED)]
    observer.look()
    assert source.asked == []


def test_accounting_that_still_sees_it_running_does_not_know(
    observer: Observer, source: Source
) -> None:
    """After slurmctld -c accounting shows RUNNING for ever: that is no answer."""
    watch = Seen("1")
    watch_all(observer, {"1": watch})
    source.ended = [view("1", Phase.RUNNING)]
    observer.look()
    assert watch.views == [None]


@pytest.mark.parametrize("error", [DrmUnreachableError("down"), OutputParseError("odd")])
def test_silence_shows_nothing_to_anybody(
    observer: Observer, source: Source, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    """An outage touches no job, is logged once, and so is its end."""
    caplog.set_level(logging.INFO, "pulsar.failure_reasons.observer")
    watch = Seen("1")
    watch_all(observer, {"1": watch})
    source.jobs = error
    for _ in range(5):
        observer.look()
    assert watch.views == []
    source.jobs = [view("1")]
    observer.look()
    observer.look()
    assert len(watch.views) == 2
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]
    assert "answers again" in caplog.records[1].message


def test_accounting_outage_uses_up_no_grace(observer: Observer, source: Source) -> None:
    """A job that only accounting could tell of is shown nothing while accounting is down."""
    gone, alive = Seen("1"), Seen("2")
    watch_all(observer, {"1": gone, "2": alive})
    source.jobs, source.ended = [view("2")], DrmUnreachableError("slurmdbd")
    observer.look()
    assert gone.views == [] and len(alive.views) == 1


def test_answers_older_than_the_submission_say_nothing(
    observer: Observer, source: Source
) -> None:
    """A job submitted while the query ran is not missing from its answer."""
    watch = Seen("1", since=100.0)
    watch_all(observer, {"1": watch})
    observer.look()
    assert watch.views == []
    observer.clock.now = 115.0  # type: ignore
    observer.look()
    assert watch.views == [None]


def test_ended_jobs_are_not_asked_for_again(observer: Observer, source: Source) -> None:
    """An ended job leaves the watch list, and no job at all costs no query."""
    watch_all(observer, {"1": Seen("1")})
    source.jobs = [view("1", Phase.ENDED)]
    observer.look()
    observer.look()
    assert (source.queries, observer.watched()) == (1, 0)


def test_a_reused_id_is_looked_up_in_accounting(observer: Observer, source: Source) -> None:
    """Another job under our id does not hide ours from accounting."""
    watch = Seen("4", name="pulsar_1")
    watch_all(observer, {"1": watch})
    source.jobs = [view("4", job_name="pulsar_2")]
    source.ended = [view("4", Phase.ENDED, job_name="pulsar_1")]
    observer.look()
    assert watch.views[0] is not None and watch.views[0].job_name == "pulsar_1"


def test_a_job_without_id_is_found_by_its_name(observer: Observer, source: Source) -> None:
    """The id was lost with a crash: the name finds the job."""
    watch = Seen(None, name="pulsar_7")
    watch_all(observer, {"7": watch})
    source.jobs = [view("41", job_name="pulsar_6"), view("42", job_name="pulsar_7")]
    observer.look()
    assert watch.views[0] is not None and watch.views[0].external_id == "42"


def test_a_failed_cancel_is_repeated_when_the_drm_answers(
    observer: Observer, source: Source
) -> None:
    """A job that Galaxy cancelled during an outage is taken out of the DRM afterwards."""
    observer.cancel_later("9")
    source.jobs = DrmUnreachableError("down")
    observer.look()
    assert source.cancelled == []
    source.jobs = []
    observer.look()
    observer.look()
    assert source.cancelled == ["9"]


def test_back_off_grows_and_has_an_end(observer: Observer, source: Source) -> None:
    """A DRM that is down is asked less often, yet at least every five minutes."""
    watch_all(observer, {"1": Seen("1")})
    source.jobs = DrmUnreachableError("down")
    pauses = []
    for _ in range(12):
        observer.look()
        pauses.append(observer._pause_s())
    assert pauses[0] >= 15.0
    assert pauses[3] > pauses[0]
    assert max(pauses) <= 300.0


def test_a_mistake_of_ours_does_not_end_the_thread(source: Source) -> None:
    """Whatever is raised, the next pass comes."""
    observer = Observer(source, 0.01)
    source.jobs = RuntimeError("a bug")
    watch = Seen("1")
    observer.watch(("owner", "1"), watch)
    deadline = time.monotonic() + 60
    while source.queries < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    source.jobs = [view("1")]
    while not watch.views and time.monotonic() < deadline:
        time.sleep(0.01)
    observer.stop(60)
    assert watch.views


def test_managers_share_an_observer_and_the_last_one_stops_it(source: Source) -> None:
    """One thread for a cluster, whatever the number of managers; it ends with the last."""
    first = shared_observer(("t", "share"), 15.0, lambda: source)
    second = shared_observer(("t", "share"), 5.0, Source)
    assert first is second and first.interval_s == 5.0
    one, two = object(), object()
    first.watch((one, "1"), Seen("1"))
    first.watch((two, "2"), Seen("2"))
    name = "failure-reasons-Test"
    first.release(one, 60)
    assert any(t.name == name for t in threading.enumerate())
    first.release(two, 60)
    assert not any(t.name == name for t in threading.enumerate())


def test_a_job_that_comes_as_the_last_manager_leaves_is_looked_at(source: Source) -> None:
    """The thread that is being stopped is not taken for one that will look at it."""
    observer, late = Observer(source, 15.0), Seen("2")
    source.jobs = [view("2")]
    one, two = object(), object()
    observer.watch((one, "1"), Seen("1"))
    deadline = time.monotonic() + 60
    while not observer.counters.passes and time.monotonic() < deadline:
        time.sleep(0.01)
    lock, comes = observer._lock, [lambda: observer.watch((two, "2"), late)]

    class Lock:
        """The observer's; a job comes the moment that it is free again."""

        def __enter__(self) -> None:
            lock.acquire()

        def __exit__(self, *unused: object) -> None:
            lock.release()
            if threading.current_thread() is threading.main_thread() and comes:
                comes.pop()()

    observer._lock = Lock()  # type: ignore
    observer.release(one, 60)
    while not late.views and time.monotonic() < deadline:
        time.sleep(0.01)
    observer.stop(60)
    assert late.views


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_forked_process_has_an_observer_of_its_own() -> None:
    """A web server that forks after loading must not share a dead thread."""
    parent = shared_observer(("t", "fork"), 15.0, Source)
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        mine = shared_observer(("t", "fork"), 15.0, Source)
        os.write(write_end, b"1" if mine is not parent else b"0")
        os._exit(0)
    os.waitpid(pid, 0)
    assert os.read(read_end, 1) == b"1"


def test_stop_does_not_wait_for_ever(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server is stopped without a timeout while a command hangs: the stop comes to its end."""
    hangs, go_on = threading.Event(), threading.Event()

    def hang() -> Sequence[JobView]:
        hangs.set()
        go_on.wait(600)
        return []

    monkeypatch.setattr(source, "query_jobs", hang)
    monkeypatch.setattr("pulsar_failure_reasons.observer.LONGEST_STOP_S", 0.1)
    observer = Observer(source, 0.1)
    observer.watch(("owner", "1"), Seen("1"))
    assert hangs.wait(60)
    stopped = threading.Thread(target=observer.stop, daemon=True)
    stopped.start()
    stopped.join(60)
    still_waits = stopped.is_alive()
    go_on.set()
    assert not still_waits
