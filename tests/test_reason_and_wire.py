"""A failure reason: its cause table, its stored form, its keys on the wire."""

from __future__ import annotations

import json
import logging
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Dict, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_failure_reasons import pulsar_hooks, switch, wire
from pulsar_failure_reasons.attempt import Attempt
from pulsar_failure_reasons.errors import RecordError
from pulsar_failure_reasons.job_record import (
    clear_record,
    load_current_record,
    load_record,
    store_record,
)
from pulsar_failure_reasons.reason import (
    CAUSE_TABLE,
    Cause,
    Confidence,
    Evidence,
    FailureReason,
    clean_text,
)

WHEN = datetime(2026, 11, 29, 12, 30, 5, tzinfo=timezone.utc)

REASON = FailureReason(
    cause=Cause.WALLTIME,
    message="killed after 62 s: the job's walltime limit is 60 s (Slurm job 4, node1)",
    confidence=Confidence.CONTROLLER,
    drm="slurm",
    external_id="4",
    node="node1",
    requested={"walltime_s": 60},
    used={"walltime_s": 62},
    evidence=(Evidence("squeue", "State", "TIMEOUT"),),
).stamped(WHEN)

#: DESIGN section 1, typed from there.
DESIGN_TABLE = {
    "walltime": ("job", "walltime_reached"),
    "memory": ("job", "memory_limit_reached"),
    "cpu_time": ("job", "walltime_reached"),
    "disk": ("job", "unknown_error"),
    "cancelled": ("user", "unknown_error"),
    "preempted": ("infrastructure", "unknown_error"),
    "node_failure": ("infrastructure", "unknown_error"),
    "lost": ("infrastructure", "unknown_error"),
    "held": ("unknown", "unknown_error"),
    "launch_error": ("job", "unknown_error"),
    "stage_error": ("infrastructure", "unknown_error"),
    "tool_error": ("job", None),
    "unknown": ("unknown", "unknown_error"),
}


def test_cause_table_is_the_designs() -> None:
    """Every cause has the fault and the token of the design."""
    ours = {c.value: (row.fault.value, row.runner_state) for c, row in CAUSE_TABLE.items()}
    assert ours == DESIGN_TABLE
    assert {cause.value for cause in Cause} == set(DESIGN_TABLE)


def test_stored_form() -> None:
    """The record has the design's names, units in them, UTC, and no key that says nothing."""
    assert REASON.to_dict() == {
        "runner_state": "walltime_reached",
        "message": "killed after 62 s: the job's walltime limit is 60 s (Slurm job 4, node1)",
        "cause": "walltime",
        "fault": "job",
        "confidence": "controller",
        "drm": "slurm",
        "external_id": "4",
        "node": "node1",
        "requested": {"walltime_s": 60},
        "used": {"walltime_s": 62},
        "evidence": [{"source": "squeue", "field": "State", "value": "TIMEOUT"}],
        "recorded_at": "2026-11-29T12:30:05Z",
    }


def test_zero_is_not_unknown() -> None:
    """A number that is zero is kept: only what nobody said is absent."""
    reason = FailureReason(Cause.LOST, "m", Confidence.INFERRED, "slurm", attempt=0)
    assert reason.to_dict()["attempt"] == 0


def test_wire_keys() -> None:
    """The payload gains three keys, and the details repeat neither token nor sentence."""
    keys = wire.payload_keys(REASON)
    assert set(keys) == {"runner_state", "runner_state_message", "failure_reason"}
    assert keys["runner_state"] == "walltime_reached"
    assert not {"runner_state", "message"} & set(keys["failure_reason"])


@pytest.mark.parametrize(
    "changes", [{"cause": Cause.TOOL_ERROR}, {"observe_only": True}], ids=["tool", "observe_only"]
)
def test_what_may_not_be_sent(changes: dict) -> None:
    """A tool's own exit code and an observe-only reason put nothing on the wire."""
    assert wire.payload_keys(FailureReason.from_dict({**REASON.to_dict(), **{
        key: getattr(value, "value", value) for key, value in changes.items()
    }})) == {}


def test_wire_both_ways() -> None:
    """What is read from a payload is what was put there."""
    payload = {"status": "failed", **json.loads(json.dumps(wire.payload_keys(REASON)))}
    assert wire.runner_state_of(payload) == "walltime_reached"
    assert wire.reason_from_payload(payload) == REASON


@pytest.mark.parametrize("status", ["complete", "cancelled", "running"])
def test_only_failures_carry_a_reason(status: str) -> None:
    """A payload of any other status has no reason, whatever keys it holds."""
    payload = {"status": status, **wire.payload_keys(REASON)}
    assert wire.runner_state_of(payload) is None
    assert wire.reason_from_payload(payload) is None


def test_unknown_token_is_logged_once_and_ignored(caplog: pytest.LogCaptureFixture) -> None:
    """A newer server's token changes nothing here and does not fill the log."""
    caplog.set_level(logging.INFO, "pulsar.failure_reasons.wire")
    payload = {"status": "failed", "runner_state": "new_in_2030"}
    assert wire.runner_state_of(payload) is None
    assert wire.runner_state_of(payload) is None
    assert sum("new_in_2030" in record.message for record in caplog.records) == 1


@pytest.mark.parametrize(
    "stored",
    [
        None, [], "text", {}, {"cause": "walltime"},
        {**REASON.to_dict(), "cause": "boredom"},
        {**REASON.to_dict(), "message": 7},
        {**REASON.to_dict(), "evidence": [1]},
        {**REASON.to_dict(), "used": {"walltime_s": "62"}},
        {**REASON.to_dict(), "attempt": "1"},
    ],
)
def test_what_is_no_record(stored: object) -> None:
    """Anything that is no record of ours is told from one."""
    with pytest.raises(RecordError):
        FailureReason.from_dict(stored)


def test_a_newer_records_unknown_keys_are_ignored() -> None:
    """Rolling back to this version must not lose the reasons of the newer one."""
    assert FailureReason.from_dict({**REASON.to_dict(), "weather": "rain"}) == REASON


class Directory:
    """The part of Pulsar's JobDirectory that records use, over a real folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def store_metadata(self, name: str, value: object, atomic: bool = False) -> None:
        assert atomic
        (self.path / name).write_text(json.dumps(value))

    def load_metadata(self, name: str, default: object = None) -> object:
        path = self.path / name
        return json.loads(path.read_bytes().decode()) if path.exists() else default

    def has_metadata(self, name: str) -> bool:
        return (self.path / name).exists()

    def remove_metadata(self, name: str) -> None:
        (self.path / name).unlink(missing_ok=True)


def test_record_in_a_job_directory(tmp_path: Path) -> None:
    """A record is stored under one name, read back, and cleared."""
    directory = Directory(tmp_path)
    assert load_record(directory) is None
    store_record(directory, REASON)
    assert [path.name for path in tmp_path.iterdir()] == ["runner_state"]
    assert load_record(directory) == REASON
    clear_record(directory)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "stored, current", [('"4"', True), ("4", True), ('"5"', False), ("{", True), (None, True)]
)
def test_a_record_of_an_earlier_attempt_is_not_current(
    tmp_path: Path, stored: object, current: bool
) -> None:
    """After a rollback the job may run again under another id: the old reason is not its."""
    directory = Directory(tmp_path)
    store_record(directory, REASON)
    if stored is not None:
        (tmp_path / "external_id").write_text(str(stored))
    assert load_current_record(directory) == (REASON if current else None)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b'{"cause": 1}'])
def test_corrupt_record_is_one_line_and_no_reason(
    tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """A corrupt file costs a log line, is left as it is and raises nothing."""
    (tmp_path / "runner_state").write_bytes(content)
    assert load_record(Directory(tmp_path)) is None
    assert len(caplog.records) == 1
    assert "\n" not in caplog.records[0].getMessage()
    assert (tmp_path / "runner_state").read_bytes() == content


@given(st.text())
def test_cleaned_text_can_always_be_sent(text: str) -> None:
    """Text from a DRM is one line of valid UTF-8 without control characters, and cut."""
    cleaned = clean_text(text, 50)
    assert len(cleaned) <= 50
    assert cleaned.isprintable() or all(ord(c) > 31 and ord(c) != 127 for c in cleaned)
    cleaned.encode("utf-8")
    assert clean_text(cleaned, 50) == cleaned


def test_undecodable_and_control_characters() -> None:
    """Escape sequences and broken UTF-8 of a node's message do not reach log or wire."""
    assert clean_text("a\x1b[31m\tb\ud800\nc\x00") == "a [31m b? c"


@pytest.mark.parametrize("payload, attempt", [
    ({"attempt": 2}, 2), ({}, None), ({"attempt": "2"}, None), ({"attempt": True}, None),
    ({"attempt": None}, None), ({"attempt": [2]}, None),
])
def test_the_attempt_of_a_payload(payload: Dict[str, Any], attempt: Optional[int]) -> None:
    """A number and nothing else, whatever the status."""
    assert wire.attempt_of(payload) == attempt


def test_a_token_that_is_no_text_is_ignored() -> None:
    """A foreign server may send anything."""
    assert wire.runner_state_of({"status": "failed", "runner_state": ["walltime_reached"]}) is None


@pytest.mark.parametrize("launch_config, attempt", [
    ({"env": [{"name": "A", "value": "1"},
              {"name": "PULSAR_FAILURE_REASONS_ATTEMPT", "value": "3", "raw": False},
              {"name": "PULSAR_FAILURE_REASONS_ATTEMPT_OF", "value": "g"}]}, 3),
    ({"env": [{"name": "PULSAR_FAILURE_REASONS_ATTEMPT", "value": "three"},
              {"name": "PULSAR_FAILURE_REASONS_ATTEMPT_OF", "value": "g"}]}, None),
    ({"env": [{"file": "/etc/profile"}, "text", None]}, None),
    ({"env": "text"}, None), ({}, None), ("text", None), (None, None),
])
def test_the_stored_reason_has_the_number_of_the_attempt(
    tmp_path: Path, launch_config: Any, attempt: Optional[int]
) -> None:
    """It is the one that Pulsar stored with the submission, None where nobody numbered it."""
    directory = Directory(tmp_path)
    if launch_config is not None:
        (tmp_path / "launch_config").write_text(json.dumps(launch_config))
    store_record(directory, REASON)
    loaded = load_record(directory)
    assert loaded is not None and loaded.attempt == attempt


def test_the_names_in_a_jobs_environment_are_no_switches() -> None:
    """A job that starts a Galaxy or a Pulsar itself does not switch anything there."""
    names = {entry["name"] for entry in Attempt(1, "g", "m").env()}
    assert len(names) == 3
    assert names.isdisjoint({switch.VARIABLE, switch.GALAXY_VARIABLE, pulsar_hooks.OVERRIDE})
