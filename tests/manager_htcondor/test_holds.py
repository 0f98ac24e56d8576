"""Holds over time: what is waited for, for how long, and what becomes of it."""

from __future__ import annotations

import logging

import pytest

from tests.pulsar_in_process import reason_of
from tests.pulsar_server import wait_until

from .conftest import MakePulsar
from .harness import HELD, Pool, Pulsar

OVER = "Job has gone over cgroup memory limit of 2048 megabytes."
HOLD = f"hold 34 102 {OVER}"
#: Ends well once the test lets it, also a second time.
UNTIL_GO = "while [ ! -e ../go ]; do sleep 0.1; done"
LARGE = (
    "import os, time; block = bytes([1]) * 99_000_000\n"
    "while not os.path.exists('../go'): time.sleep(0.1)"
)


def test_released_with_more_memory_then_well(make_pulsar: MakePulsar, pool: Pool) -> None:
    """Where memory holds are waited for, a release lets the job go on to a good end."""
    pulsar = make_pulsar(wait_for_release="memory", hold_grace=60)
    external_id = pulsar.submit("1", UNTIL_GO, f"0.1 {HOLD}")
    pool.wait_for(external_id, HELD)
    pulsar.wait_for("1", "queued")
    pulsar.wait_for_looks(3)
    assert pulsar.status("1") == "queued" and pulsar.record("1") is None
    pool.do("edit", external_id, RequestMemory=4096)
    pool.do("release", external_id)
    (pulsar.directory("1") / "go").touch()
    payload = pulsar.end("1")
    assert (payload["status"], reason_of(payload), pulsar.record("1")) == ("complete", None, None)


def test_usegalaxy_eu(make_pulsar: MakePulsar, pool: Pool) -> None:
    """Held for memory, released with more, held again, removed by the site's cron: memory."""
    pulsar = make_pulsar(wait_for_release="memory", hold_grace=60)
    external_id = pulsar.submit("1", "sleep 600", f"0.1 {HOLD}; 600 evict")
    pool.wait_for(external_id, HELD)
    pulsar.wait_for_looks(2)
    pool.do("edit", external_id, RequestMemory=6144)
    pool.do("release", external_id)
    pulsar.wait_for("1", "running")
    pool.do("hold", external_id, 34, 102, OVER)
    pulsar.wait_for("1", "queued")
    pool.do("remove", external_id, "The job is running out of memory (by user condor)")
    payload = pulsar.end("1")
    assert (payload["status"], payload["runner_state"]) == ("failed", "memory_limit_reached")
    assert payload["failure_reason"]["requested"]["memory_bytes"] == 6144 * 1024 * 1024
    assert "cancelled_by" not in payload["failure_reason"]


def test_our_memory_limit_follows_the_request(make_pulsar: MakePulsar, pool: Pool) -> None:
    """A job over the option request_memory is released with more, and is held no more."""
    pulsar = make_pulsar(wait_for_release="memory", hold_grace=60, request_memory="20M")
    external_id = pulsar.submit("1", f'python3 -c "{LARGE}"')
    pool.wait_for(external_id, HELD)
    pulsar.wait_for("1", "queued")
    assert "memory limit of 20 MB" in str(pool.attribute(external_id, "HoldReason"))
    pool.do("edit", external_id, RequestMemory=500)
    pool.do("release", external_id)
    pulsar.wait_for("1", "running")
    pulsar.wait_for_looks(3)
    assert int(str(pool.attribute(external_id, "ResidentSetSize_RAW"))) > 90 * 1024
    (pulsar.directory("1") / "go").touch()
    assert pulsar.end("1")["status"] == "complete"


def test_our_disk_limit_follows_the_request(make_pulsar: MakePulsar, pool: Pool) -> None:
    """A job over request_disk is held, told with the limit of that moment, and fails."""
    pulsar = make_pulsar(request_disk="20M")
    external_id = pulsar.submit("1", "sleep 600")
    pulsar.wait_for("1", "running")
    pool.do("edit", external_id, RequestDisk=30_001)
    pool.do("edit", external_id, DiskUsage=30_001)
    pulsar.wait_for_looks(3)
    assert pulsar.status("1") == "running"
    pool.do("edit", external_id, DiskUsage=30_002)
    payload = pulsar.end("1")
    assert (payload["status"], reason_of(payload)) == ("failed", "disk")
    assert "over its disk limit of 30 MB" in payload["runner_state_message"]


@pytest.mark.parametrize("releases", [0, 1, 2])
def test_releases_are_counted(make_pulsar: MakePulsar, pool: Pool, releases: int) -> None:
    """A job that was released hold_releases_max times and is held again has failed."""
    pulsar = make_pulsar(
        wait_for_release="memory", hold_grace=60, hold_releases_max=releases)
    external_id = pulsar.submit("1", "sleep 600", f"0.1 {HOLD}; " * 3 + "600 evict")
    for _ in range(releases):
        pool.wait_for(external_id, HELD)
        pulsar.wait_for_looks(2)
        assert pulsar.status("1") == "queued"
        pool.do("release", external_id)
    payload = pulsar.end("1")
    assert (payload["status"], reason_of(payload)) == ("failed", "memory")
    pool.wait_gone(external_id)


def test_releases_are_counted_over_a_restart(make_pulsar: MakePulsar, pool: Pool) -> None:
    """The count is in the job's log, so that it is not lost with the server."""
    options = {"wait_for_release": "memory", "hold_grace": 60, "hold_releases_max": 1}
    pulsar = make_pulsar(**options)
    external_id = pulsar.submit("1", "sleep 600", f"0.1 {HOLD}; 600 evict")
    pool.wait_for(external_id, HELD)
    pulsar.wait_for_looks(2)
    pool.do("release", external_id)
    pulsar.wait_for("1", "running")
    pulsar.shutdown()
    again = make_pulsar(**options)
    pool.do("hold", external_id, 34, 102, OVER)
    assert reason_of(again.end("1")) == "memory"


def test_a_persons_releases_are_not_counted(make_pulsar: MakePulsar, pool: Pool) -> None:
    """Holding and releasing by hand uses up nothing."""
    pulsar = make_pulsar(hold_releases_max=1)
    external_id = pulsar.submit("1", UNTIL_GO)
    pulsar.wait_for("1", "running")
    for _ in range(2):
        pool.do("hold", external_id, 1, 0, "via condor_hold (by user alice)")
        pulsar.wait_for("1", "queued")
        pool.do("release", external_id)
        pulsar.wait_for("1", "running")
    (pulsar.directory("1") / "go").touch()
    assert pulsar.end("1")["status"] == "complete"


@pytest.mark.parametrize("spelling", ["periodic_release", "+PeriodicRelease", "My.PeriodicRelease"])
def test_periodic_release_in_the_ad(
    make_pulsar: MakePulsar, pool: Pool, spelling: str
) -> None:
    """A job whose ad releases itself is given hold_grace although its hold is a limit's."""
    pulsar = make_pulsar(hold_grace=3600)
    released = pulsar.submit(
        "released", "sleep 0.3", f"0.1 {HOLD}", **{spelling: "(HoldReasonCode =?= 34)"})
    kept = pulsar.submit(
        "kept", "sleep 600", f"0.1 {HOLD}", **{spelling: "(HoldReasonCode =?= 4711)"})
    pool.wait_for(kept, HELD)
    pulsar.wait_for_looks(3)
    assert pulsar.status("kept") == "queued" and int(kept) in pool.queue()
    pulsar.set_graces(hold_s=1.5)
    assert pulsar.end("released")["status"] == "complete"
    assert reason_of(pulsar.end("kept")) == "memory"
    pool.wait_gone(kept)
    assert int(released) not in pool.queue()


def test_periodic_release_that_is_false(pulsar: Pulsar) -> None:
    """``periodic_release = false`` releases nobody: the hold is final at once."""
    pulsar.submit("1", "sleep 600", f"0.1 {HOLD}", periodic_release="false")
    assert reason_of(pulsar.end("1")) == "memory"


def test_held_for_no_limit_waits_and_is_told(
    make_pulsar: MakePulsar, pool: Pool, caplog: pytest.LogCaptureFixture
) -> None:
    """A hold for no limit is given hold_grace, which is logged once when it begins."""
    caplog.set_level(logging.INFO, "pulsar.failure_reasons")
    pulsar = make_pulsar(hold_grace=3600)
    external_id = pulsar.submit("1", "sleep 600", "0.1 hold 26 0 the moon is full")
    pool.wait_for(external_id, HELD)
    pulsar.wait_for_looks(3)
    assert pulsar.status("1") == "queued" and int(external_id) in pool.queue()
    pulsar.set_graces(hold_s=1)
    payload = pulsar.end("1")
    assert (payload["status"], reason_of(payload)) == ("failed", "held")
    assert "the moon is full" in payload["runner_state_message"]
    waits = [r.getMessage() for r in caplog.records if "waits for" in r.getMessage()]
    assert len(waits) == 1 and "the moon is full" in waits[0]
    pool.wait_gone(external_id)


def test_fail_at_once_of_the_operator(make_pulsar: MakePulsar, pool: Pool) -> None:
    """The list is the operator's: what is not on it waits, what is on it does not."""
    pulsar = make_pulsar(fail_at_once="held", hold_grace=60)
    memory = pulsar.submit("memory", "sleep 600", f"0.1 {HOLD}")
    pulsar.submit("held", "sleep 600", "0.1 hold 26 0 the moon is full")
    assert reason_of(pulsar.end("held")) == "held"
    pool.wait_for(memory, HELD)
    pulsar.wait_for_looks(3)
    assert pulsar.status("memory") == "queued"


def test_final_hold_released_before_the_removal(
    make_pulsar: MakePulsar, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody who is quicker than our removal gets the job going: it goes on, without a record."""
    monkeypatch.setattr("pulsar_failure_reasons.managers.recording.REMOVAL_ANSWERS", 100_000)
    pulsar = make_pulsar()
    source = pulsar.observer().source
    monkeypatch.setattr(source, "cancel", lambda ids: None)
    external_id = pulsar.submit("1", UNTIL_GO, f"0.1 {HOLD}")
    wait_until(lambda: pulsar.record("1"), 60, "the record", 0.02)
    assert pulsar.status("1") in ("queued", "running")
    pool.do("release", external_id)
    (pulsar.directory("1") / "go").touch()
    payload = pulsar.end("1")
    assert (payload["status"], reason_of(payload), pulsar.record("1")) == ("complete", None, None)


def test_removal_that_is_not_allowed(
    make_pulsar: MakePulsar, pool: Pool, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture
) -> None:
    """A schedd that refuses to remove our job is told of once; the job's end is told all the same.
    """
    pulsar = make_pulsar()
    source = pulsar.observer().source
    ask = source._ask

    def refuse(what: str, **request: object) -> object:
        if what == "remove":
            return {"totals": {"TotalSuccess": 0, "TotalPermissionDenied": 1}}
        return ask(what, **request)

    monkeypatch.setattr(source, "_ask", refuse)
    external_id = pulsar.submit("1", "sleep 600", f"0.1 {HOLD}")
    payload = pulsar.end("1")
    assert (payload["status"], reason_of(payload)) == ("failed", "memory")
    assert int(external_id) in pool.queue()
    messages = [r.getMessage() for r in caplog.records]
    assert len([m for m in messages if "TotalPermissionDenied" in m]) == 1
    assert len([m for m in messages if "remove it by hand" in m]) == 1


def test_hold_text_that_is_odd(pulsar: Pulsar, pool: Pool) -> None:
    """Control characters, other encodings and a megabyte of text break nothing."""
    texts = {
        "control": "over its \x1b[31mmemory\x07 limit, exceeded",
        "long": "memory limit exceeded " + "x" * 1_000_000,
    }
    for name, text in texts.items():
        external_id = pulsar.submit(name, "sleep 600")
        pulsar.wait_for(name, "running")
        pool.do("hold", external_id, 26, 0, text)
    for name in texts:
        payload = pulsar.end(name)
        assert (payload["status"], reason_of(payload)) == ("failed", "memory"), name
        assert len(payload["runner_state_message"]) < 2000
        assert payload["runner_state_message"].isprintable()
