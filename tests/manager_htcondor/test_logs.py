"""The job's event log: cut, damaged, deleted, unwritable, written anew; what it costs to follow."""

from __future__ import annotations

import errno
import logging
import os
from pathlib import Path
from typing import Any, Dict, List

import pytest

from pulsar_failure_reasons.drm.base import JobView, Phase
from pulsar_failure_reasons.drm.htcondor import JobState
from pulsar_failure_reasons.managers.htcondor_log import JobLog
from pulsar_failure_reasons.managers.htcondor_source import _later
from pulsar_failure_reasons.reason import Confidence
from tests.pulsar_in_process import reason_of
from tests.pulsar_server import wait_until

from .harness import Pool, Pulsar, open_files

OVER = "Job has gone over cgroup memory limit of 2048 megabytes."
SUBMIT = """\
000 (7.000.000) 2026-11-29 11:08:40 Job submitted from host: <127.0.0.1:9618>
...
"""
EXECUTE = """\
001 (7.000.000) 2026-11-29 11:08:41 Job executing on host: <127.0.0.1:9618>
...
"""
HELD_EVENT = """\
012 (7.000.000) 2026-11-29 11:08:44 Job was held.
\tover its memory limit
\tCode 34 Subcode 102
...
"""
RELEASED = """\
013 (7.000.000) 2026-11-29 11:08:45 Job was released.
\tvia condor_release
...
"""
TERMINATED = """\
005 (7.000.000) 2026-11-29 11:08:50 Job terminated.
\t(1) Normal termination (return value 0)
\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  Run Remote Usage
\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  Run Local Usage
\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  Total Remote Usage
\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  Total Local Usage
\t0  -  Run Bytes Sent By Job
\t0  -  Run Bytes Received By Job
\t0  -  Total Bytes Sent By Job
\t0  -  Total Bytes Received By Job
...
"""
OTHERS_END = TERMINATED.replace("(7.", "(6.")


@pytest.fixture
def log(tmp_path: Path, pool: Pool) -> JobLog:
    """The reader of a log that is not there yet."""
    return JobLog(str(tmp_path / "job.log"), pool.bindings, "7")


def _write(log: JobLog, text: str, encoding: str = "utf-8") -> None:
    Path(log.path).write_bytes(text.encode(encoding))


def _append(log: JobLog, text: str) -> None:
    with open(log.path, "a") as handle:
        handle.write(text)


def test_event_by_event(log: JobLog) -> None:
    """Each event is folded once, however often one looks."""
    assert log.read().state is JobState.UNKNOWN
    states = [JobState.IDLE, JobState.RUNNING, JobState.HELD, JobState.IDLE, JobState.RUNNING]
    for text, state in zip((SUBMIT, EXECUTE, HELD_EVENT, RELEASED, EXECUTE), states):
        _append(log, text)
        assert [log.read().state for _ in range(3)] == [state] * 3
    assert (log.summary.releases, log.summary.executions) == (1, 2)


def test_half_written_event(log: JobLog) -> None:
    """What is half written is not read, and is not lost once it is whole."""
    _write(log, SUBMIT + EXECUTE + HELD_EVENT[:40])
    assert log.read().state is JobState.UNKNOWN
    _append(log, HELD_EVENT[40:])
    assert log.read().state is JobState.HELD


@pytest.mark.parametrize(
    "garbage",
    [
        "\0\0\0\0\0\0\n",
        "noise without a frame\n...\n",
        "999 what?\n...\n",
        "\n" * 9,
        "012 (7.000.000) 2026-11-29 11:08:44 Job was held.\n...\n",
        "999 (7.000.000) 2026-11-29 11:08:44 An event of a newer version\n...\n",
        "\u00e9" * 50 + "\n...\n",
    ],
)
def test_garbage_in_the_middle(log: JobLog, garbage: str) -> None:
    """The reader gets past what is no event."""
    _write(log, SUBMIT + EXECUTE)
    log.read()
    _append(log, garbage + TERMINATED)
    assert log.read().state is JobState.COMPLETED


def test_cut_log_loses_nothing_that_was_known(log: JobLog) -> None:
    """A log that was cut to nothing and grows again goes on from what was known."""
    _write(log, SUBMIT + EXECUTE + HELD_EVENT + RELEASED)
    assert log.read().releases == 1
    _write(log, EXECUTE)
    assert log.read().state is JobState.RUNNING
    _append(log, HELD_EVENT)
    assert (log.read().state, log.summary.releases) == (JobState.HELD, 1)


def test_log_written_anew_is_not_counted_twice(log: JobLog) -> None:
    """A copy in its place (a restore) has all events again: one release stays one."""
    _write(log, SUBMIT + EXECUTE + HELD_EVENT + RELEASED)
    assert log.read().releases == 1
    copy = Path(log.path).with_suffix(".new")
    copy.write_text(SUBMIT + EXECUTE + HELD_EVENT + RELEASED + EXECUTE)
    copy.rename(log.path)
    summary = log.read()
    assert (summary.state, summary.releases) == (JobState.RUNNING, 1)


def test_another_jobs_events(log: JobLog) -> None:
    """An earlier attempt's end, left in the log, is not this job's."""
    _write(log, OTHERS_END + SUBMIT)
    assert log.read().state is JobState.IDLE
    _append(log, OTHERS_END)
    assert log.read().state is JobState.IDLE


def test_other_processes_of_the_cluster(log: JobLog) -> None:
    """Of a cluster with several processes the first is followed."""
    _write(log, SUBMIT + EXECUTE + TERMINATED.replace("7.000", "7.001"))
    assert log.read().state is JobState.RUNNING


def test_other_encoding(log: JobLog) -> None:
    """A reason in Latin-1, which the bindings cannot decode, hides neither the hold nor more."""
    _write(log, SUBMIT + EXECUTE + HELD_EVENT.replace("its", "\u00e9t\u00e9"), "latin-1")
    assert log.read().state is JobState.HELD
    assert log.summary.hold is not None and log.summary.hold.code == 34
    with open(log.path, "ab") as handle:
        handle.write((RELEASED + EXECUTE).encode())
    assert (log.read().state, log.summary.releases) == (JobState.RUNNING, 1)


def test_damage_in_a_log_that_was_read_so_far(log: JobLog) -> None:
    """Where the bindings stumble later, nothing is counted twice, then or afterwards."""
    _write(log, SUBMIT + EXECUTE + HELD_EVENT + RELEASED)
    assert log.read().releases == 1
    with open(log.path, "ab") as handle:
        handle.write(HELD_EVENT.replace("its", "\u00e9t\u00e9").encode("latin-1"))
    assert (log.read().state, log.summary.releases) == (JobState.HELD, 1)
    _append(log, RELEASED)
    assert (log.read().state, log.summary.releases) == (JobState.IDLE, 2)
    _append(log, EXECUTE)
    assert (log.read().state, log.summary.releases) == (JobState.RUNNING, 2)


def test_unreadable_log_is_told_once(log: JobLog, caplog: pytest.LogCaptureFixture) -> None:
    """A log that cannot be read is told of once, until it could be read again."""
    caplog.set_level(logging.INFO, "pulsar.failure_reasons")
    _write(log, SUBMIT)
    for _ in range(2):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(log, "_new_events", _io_error)
            for _ in range(3):
                assert log.read() is log.summary
        _append(log, EXECUTE)
        assert log.read().state is JobState.RUNNING
        _append(log, EXECUTE)
    told = [r.getMessage() for r in caplog.records if "cannot be read now" in r.getMessage()]
    assert len(told) == 2


def _io_error(size: int) -> Any:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_no_file_is_held_open(log: JobLog) -> None:
    """Between two looks no descriptor is open, also after an error."""
    folder = Path(log.path).parent
    _write(log, SUBMIT + EXECUTE)
    log.read()
    _write(log, SUBMIT + EXECUTE + HELD_EVENT.replace("its", "\u00e9t\u00e9"), "latin-1")
    log.read()
    Path(log.path).unlink()
    Path(log.path).mkdir()
    log.read()
    assert open_files(folder) == 0


def test_unchanged_log_is_not_opened(log: JobLog, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look at a log that did not change is a stat."""
    _write(log, SUBMIT + EXECUTE)
    log.read()
    opened: List[str] = []
    with monkeypatch.context() as patch:
        patch.setattr("builtins.open", lambda path, *_: opened.append(str(path)))
        patch.setattr(log, "_reader", lambda: opened.append("reader"))
        assert log.read().state is JobState.RUNNING
    assert opened == []


@pytest.mark.parametrize(
    "state, before, now, elapsed_s",
    [
        ("RUNNING", 100, 130, 90),
        ("RUNNING", 100, 100, 60),
        ("RUNNING", 100, 90, 60),
        ("RUNNING", None, 130, 60),
        ("RUNNING", 100, None, 60),
        ("SUSPENDED", 100, 130, 60),
        ("IDLE", 100, 130, 60),
    ],
)
def test_elapsed_time_of_an_unchanged_job(
    state: str, before: Any, now: Any, elapsed_s: int
) -> None:
    """A view that is used again runs on by the schedd's clock, if the job runs."""
    view = JobView("7.0", state, Phase.RUNNING, Confidence.CONTROLLER, elapsed_s=60)
    assert _later(view, before, now).elapsed_s == elapsed_s


# --- through the manager ------------------------------------------------------------------


@pytest.mark.parametrize("damage", ["deleted", "cut", "garbage", "half", "directory"])
def test_damaged_log_of_a_living_job(pulsar: Pulsar, pool: Pool, damage: str) -> None:
    """Whatever happens to its log, a job's good end and a limit's hold are told right."""
    jobs: Dict[str, str] = {
        "well": pulsar.submit("well", "while [ ! -e ../go ]; do sleep 0.05; done"),
        "held": pulsar.submit("held", "sleep 600"),
    }
    for name in jobs:
        pulsar.wait_for(name, "running")
        pulsar.wait_for_events(name, 0, 1)
        _damage(pulsar.log(name), damage)
    pulsar.wait_for_looks(2)
    assert {pulsar.status(name) for name in jobs} == {"running"}
    pool.do("hold", jobs["held"], 34, 102, OVER)
    assert reason_of(pulsar.end("held")) == "memory"
    (pulsar.directory("well") / "go").touch()
    payload = pulsar.end("well")
    assert (payload["status"], payload["returncode"]) == ("complete", 0)


def _damage(log: Path, how: str) -> None:
    text = log.read_text()
    if how in ("deleted", "directory"):
        log.unlink()
    if how == "directory":
        log.mkdir()
    if how == "cut":
        log.write_text("")
    if how == "garbage":
        log.write_text(text.replace("001 (", "\0\0\0 ("))
    if how == "half":
        log.write_text(text + "012 (00")


def test_no_descriptors_between_passes(pulsar: Pulsar, pool: Pool) -> None:
    """A server that follows jobs holds no file of theirs open."""
    for number in range(6):
        pulsar.submit(str(number), "sleep 600")
    for number in range(6):
        pulsar.wait_for(str(number), "running")
    pulsar.wait_for_looks(2)
    logs = {str(pulsar.log(str(number))) for number in range(6)}
    assert not logs & set(_open_paths())


def _open_paths() -> List[str]:
    found = []
    for link in Path("/proc/self/fd").iterdir():
        try:
            found.append(str(link.readlink() if hasattr(link, "readlink") else link.resolve()))
        except OSError:
            continue
    return found


def test_unchanged_views_are_used_again(
    pulsar: Pulsar, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job's view is made anew only when its log or ad changed; its elapsed time goes on."""
    from pulsar_failure_reasons.managers import htcondor_source

    made: List[Any] = []
    view_of = htcondor_source.view_of

    def counted(*args: Any, **more: Any) -> Any:
        made.append(args)
        return view_of(*args, **more)

    external_id = pulsar.submit("1", "sleep 600")
    pulsar.wait_for("1", "running")
    pulsar.wait_for_events("1", 0, 1)
    pulsar.wait_for_looks(20)  # until its memory has been measured
    monkeypatch.setattr(htcondor_source, "view_of", counted)
    watch = pulsar.manager()._watch_of("1")

    def elapsed() -> int:
        last = watch._history.last
        return last.elapsed_s if last is not None and last.elapsed_s is not None else -1

    before = elapsed()
    assert before >= 0
    wait_until(lambda: elapsed() >= before + 2, 60, "two seconds to be told", 0.05)
    assert len(made) <= 3
    made.clear()
    pool.do("edit", external_id, RequestMemory=4711)
    wait_until(lambda: made, 60, "the change to be seen", 0.02)


def test_forgotten_after_its_limit(pulsar: Pulsar, pool: Pool) -> None:
    """A job that vanishes after it ran for its whole limit: walltime, inferred."""
    pool.set(policy_interval=6000)
    external_id = pulsar.submit("1", "sleep 600", allowed_job_duration="6000")
    pulsar.wait_for("1", "running")
    # After its first measurement nobody looks at its limits any more.
    wait_until(
        lambda: int(pool.attribute(external_id, "ResidentSetSize_RAW") or 0) > 0,
        60, "its first measurement", 0.02)
    with pool.store().change() as queue:
        job = queue.get(int(external_id))
        job.set(AllowedJobDuration=1)
        queue.put(job)
    watch = pulsar.manager()._watch_of("1")
    wait_until(
        lambda: (watch._history.last.elapsed_s or 0) >= 1 and watch._history.last.walltime_s == 1,
        60, "it to run for its limit", 0.05)
    pool.do("forget", external_id)
    payload = pulsar.end("1")
    assert (payload["status"], reason_of(payload)) == ("failed", "walltime")
    assert payload["failure_reason"]["confidence"] == "inferred"
