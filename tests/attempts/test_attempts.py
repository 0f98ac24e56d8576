"""A later attempt is let in, an earlier one or another Galaxy's job is not touched for it."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any, Iterator

import pytest

import pulsar_failure_reasons
from pulsar_failure_reasons import pulsar_attempts
from tests.pulsar_server import wait_until

from .server import ONE, PATIENCE_S, TWO, Server


@pytest.fixture(autouse=True)
def _seams() -> None:
    pulsar_failure_reasons.install()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A stock server with stock's default manager."""
    made = Server(tmp_path)
    yield made
    made.shutdown()


def out(payload: Any) -> str:
    """Return what the job printed."""
    return str(payload["job_stdout"]).strip()


# ---- over REST --------------------------------------------------------------------------------


def test_rest_again(server: Server) -> None:
    """The second attempt of a job runs in a fresh directory and its own result is returned."""
    server.rest_job("7", "echo first; touch left_over; exit 3", 1)
    assert out(server.rest_end("7")) == "first"
    server.rest_job("7", "echo second; ls left_over", 2)
    payload = server.rest_end("7")
    assert out(payload) == "second"
    assert payload["returncode"] != 0
    assert payload["attempt"] == 2


def test_rest_stock(server: Server) -> None:
    """What is mended: without numbers a stock Pulsar returns the first run's result again."""
    server.rest_job("7", "echo first", None)
    assert out(server.rest_end("7")) == "first"
    server.rest_job("7", "echo second", None)
    payload = server.rest_end("7")
    assert out(payload) == "first"
    assert "attempt" not in payload


def test_rest_other_galaxy(server: Server) -> None:
    """A colliding id of a second Galaxy is refused at its set-up, and the first's job stays."""
    server.rest_job("7", "echo first", 1)
    server.rest_end("7")
    with pytest.raises(pulsar_attempts.AttemptRefused, match="a job of another Galaxy"):
        server.rest_job("7", "echo second", 2, galaxy=TWO)
    assert out(server.rest_end("7")) == "first"


def test_rest_an_older_attempt_comes_late(server: Server) -> None:
    """Its set-up is refused; the later attempt goes on."""
    server.rest_job("7", "echo second", 2)
    with pytest.raises(pulsar_attempts.AttemptRefused, match="a later attempt is here"):
        server.rest_job("7", "echo first", 1)
    assert out(server.rest_end("7")) == "second"


@pytest.mark.parametrize("arguments", [
    {"failure_reasons_attempt": "many", "failure_reasons_galaxy": ONE},
    {"failure_reasons_attempt": "0", "failure_reasons_galaxy": ONE},
    {"failure_reasons_attempt": "2"},
    {"failure_reasons_galaxy": ONE},
    {"of_a_later_version": "1"},
])
def test_rest_arguments_that_are_no_attempt(server: Server, arguments: Any) -> None:
    """They are as if they were not there."""
    server.rest_job("7", "echo first", 1)
    server.rest_end("7")
    answer = server.rest("POST", "/jobs", job_id="7", tool_id="cat1", **arguments)
    assert answer.status_int == 200
    assert out(server.rest_end("7")) == "first"


# ---- by message -------------------------------------------------------------------------------


def test_message_again(server: Server) -> None:
    """The next attempt's message is not taken for a repeated one."""
    server.message("7", "echo first; exit 3", 1)
    assert server.end("7")["attempt"] == 1
    server.message("7", "echo second", 2)
    payload = server.end("7")
    assert (out(payload), payload["attempt"]) == ("second", 2)


def test_message_stock(server: Server) -> None:
    """What is mended: without numbers the second message is dropped."""
    server.message("7", "echo first", None)
    server.end("7")
    server.message("7", "echo second", None)
    assert out(server.end("7")) == "first"


@pytest.mark.parametrize("ended", [True, False], ids=["ended", "runs"])
def test_message_twice(server: Server, tmp_path: Path, ended: bool) -> None:
    """A redelivered message of the same attempt is ignored, as by stock."""
    count = tmp_path / "count"
    command = f"echo x >> {count}; while [ ! -e {tmp_path}/go ]; do sleep 0.05; done; echo only"
    server.message("7", command, 1)
    wait_until(count.exists, PATIENCE_S, "the job to start", 0.03)
    if ended:
        (tmp_path / "go").touch()
        server.end("7")
    server.message("7", command, 1)
    (tmp_path / "go").touch()
    assert out(server.end("7")) == "only"
    assert count.read_text() == "x\n"


def test_message_of_an_older_attempt(server: Server) -> None:
    """It comes after the later one's: it is ignored, nobody is told anything."""
    server.message("7", "echo second", 2)
    server.end("7")
    told = len(server.told)
    server.message("7", "echo first", 1)
    assert out(server.end("7")) == "second"
    assert len(server.told) == told


def test_message_of_another_galaxy(server: Server) -> None:
    """It is refused, its Galaxy is told why, and the other's directory is as it was."""
    server.message("7", "echo first", 1)
    server.end("7")
    before = sorted(path.name for path in server.directory("7").rglob("*"))
    with pytest.raises(pulsar_attempts.AttemptRefused):
        server.message("7", "echo second", 1, galaxy=TWO)
    assert sorted(path.name for path in server.directory("7").rglob("*")) == before
    assert server.told[-1] == {
        "job_id": "7", "complete": "true", "status": "failed", "returncode": None, "attempt": 1,
        "runner_state": "unknown_error",
        "runner_state_message": "(7) attempt 1 of this job cannot be taken: its job directory "
        "holds a job of another Galaxy",
        "failure_reason": {
            "cause": "launch_error", "fault": "job", "confidence": "inferred", "drm": "pulsar",
            "attempt": 1},
    }


def test_an_attempt_that_is_still_active(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not removed for the next one, which fails with its own number, and at once."""
    monkeypatch.setattr(pulsar_attempts, "POSTPROCESSING_ENDS_WITHIN_S", 3600)
    command = f"while [ ! -e {tmp_path}/go ]; do sleep 0.05; done; echo first"
    server.message("7", command, 1)
    with pytest.raises(pulsar_attempts.AttemptRefused, match="attempt 1 is still active"):
        server.message("7", "echo second", 2)
    assert (server.told[-1]["status"], server.told[-1]["attempt"]) == ("failed", 2)
    (tmp_path / "go").touch()
    assert out(server.end("7")) == "first"


def test_an_attempt_that_pulsar_is_about_to_finish(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pulsar tells of an end before it is done with the job: the next attempt waits for that."""
    server.message("7", "echo first; exit 3", 1)
    server.end("7")
    active = server.seems_postprocessed("7")
    looked = threading.Event()
    stock_ids = active.active_job_ids

    def active_job_ids(*args: Any, **kwargs: Any) -> Any:
        looked.set()
        return stock_ids(*args, **kwargs)

    monkeypatch.setattr(active, "active_job_ids", active_job_ids)
    submission = threading.Thread(target=server.message, args=("7", "echo second", 2))
    submission.start()
    assert looked.wait(PATIENCE_S)
    assert server.directory("7").exists()
    active.deactivate_job("7", active_status="postprocessing")
    submission.join(PATIENCE_S)
    assert out(server.end("7")) == "second"


def test_one_that_is_never_finished(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The wait has an end, and the next attempt then fails."""
    server.message("7", "echo first; exit 3", 1)
    server.end("7")
    server.seems_postprocessed("7")
    monkeypatch.setattr(pulsar_attempts, "POSTPROCESSING_ENDS_WITHIN_S", 0.2)
    with pytest.raises(pulsar_attempts.AttemptRefused, match="still active"):
        server.message("7", "echo second", 2)


def test_a_job_from_before_the_upgrade(server: Server) -> None:
    """A first attempt without a number: nobody knows whose it is, the second is refused."""
    server.message("7", "echo first", None)
    server.end("7")
    with pytest.raises(pulsar_attempts.AttemptRefused, match="one that has no number"):
        server.message("7", "echo second", 2)
    assert (server.told[-1]["status"], server.told[-1]["attempt"]) == ("failed", 2)


def test_another_manager_on_the_same_folder(tmp_path: Path) -> None:
    """Managers may share a staging folder: one does not remove the other's job."""
    server = Server(tmp_path, managers={"long": {}, "short": {}})
    try:
        server.message("7", "echo first", 1, manager="long")
        server.end("7", manager="long")
        with pytest.raises(pulsar_attempts.AttemptRefused, match="attempt 1 of the manager long"):
            server.message("7", "echo second", 2, manager="short")
        server.message("7", "echo second", 2, manager="long")
        assert out(server.end("7", manager="long")) == "second"
    finally:
        server.shutdown()


def test_a_server_that_keeps_directories(tmp_path: Path) -> None:
    """`debug: true` keeps those of other jobs; an older attempt makes room all the same."""
    server = Server(tmp_path, manager={"debug": True})
    try:
        server.message("7", "echo first; touch left_over", 1)
        server.end("7")
        server.message("7", "ls left_over; echo second", 2)
        assert out(server.end("7")) == "second"
    finally:
        server.shutdown()


def test_a_directory_that_cannot_be_removed(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next attempt fails and says so, instead of being taken for the older one."""
    server.message("7", "echo first", 1)
    server.end("7")
    monkeypatch.setattr("shutil.rmtree", lambda *_, **__: None)
    monkeypatch.setattr("pulsar.managers.base.rmtree", lambda *_, **__: None)
    with pytest.raises(pulsar_attempts.AttemptRefused, match="cannot be removed"):
        server.message("7", "echo second", 2)
    assert server.told[-1]["attempt"] == 2


def test_a_server_without_persistence(tmp_path: Path) -> None:
    """Without indexes of active jobs the final status alone tells that an attempt is over."""
    server = Server(tmp_path, persistence_directory="__none__")
    try:
        server.message("7", f"while [ ! -e {tmp_path}/go ]; do sleep 0.05; done; echo first", 1)
        with pytest.raises(pulsar_attempts.AttemptRefused, match="still active"):
            server.message("7", "echo second", 2)
        (tmp_path / "go").touch()
        assert out(server.end("7")) == "first"
        server.message("7", "echo second", 2)
        assert out(server.end("7")) == "second"
    finally:
        server.shutdown()


# ---- an input that cannot be fetched ----------------------------------------------------------


#: Of a manager that soon gives up to fetch one, and of one that never does.
HASTY = {"preprocess_action_max_retries": 1, "preprocess_action_interval_start": 0.01}
PATIENT = {"preprocess_action_max_retries": 10 ** 6, "preprocess_action_interval_start": 0.05,
           "preprocess_action_interval_max": 0.05, "preprocess_action_interval_step": 0}


@pytest.mark.parametrize("persistence", [{}, {"persistence_directory": "__none__"}],
                         ids=["persistent", "without_persistence"])
def test_message_after_an_input_that_was_missing(tmp_path: Path, persistence: Any) -> None:
    """Stock leaves such a job among those that it fetches inputs for; the next attempt runs."""
    server = Server(tmp_path, manager=HASTY, **persistence)
    try:
        server.message("7", "echo first", 1, stages=tmp_path / "input")
        wait_until(lambda: [told["status"] for told in server.told] == ["failed"], PATIENCE_S,
                   "the failure to be told", 0.03)
        (tmp_path / "input").touch()
        server.message("7", "echo second", 2, stages=tmp_path / "input")
        assert out(server.end("7")) == "second"
    finally:
        server.shutdown()


@pytest.mark.parametrize("cleaned", [True, False])
def test_rest_after_an_input_that_was_missing(tmp_path: Path, cleaned: bool) -> None:
    """The same over REST, also where Galaxy has removed the first attempt's directory."""
    server = Server(tmp_path, manager=HASTY)
    try:
        server.rest_job("7", "echo first", 1, stages=tmp_path / "input")
        assert server.rest_end("7")["status"] == "failed"
        if cleaned:
            server.rest("DELETE", "/jobs/7")
            assert not server.directory("7").exists()
        (tmp_path / "input").touch()
        server.rest_job("7", "echo second", 2, stages=tmp_path / "input")
        assert out(server.rest_end("7")) == "second"
    finally:
        server.shutdown()


def test_an_input_that_is_still_being_fetched(tmp_path: Path) -> None:
    """Such an attempt is active: the next one does not take its place."""
    server = Server(tmp_path, manager=PATIENT)
    try:
        server.message("7", "echo first", 1, stages=tmp_path / "input")
        with pytest.raises(pulsar_attempts.AttemptRefused, match="attempt 1 is still active"):
            server.message("7", "echo second", 2)
        (tmp_path / "input").touch()
        assert out(server.end("7")) == "first"
    finally:
        server.shutdown()


# ---- the number in payloads -------------------------------------------------------------------


def test_every_payload_has_the_number(server: Server, tmp_path: Path) -> None:
    """While the job runs and when it has ended, asked for and published."""
    command = f"while [ ! -e {tmp_path}/go ]; do sleep 0.05; done"
    server.message("7", command, 3)
    assert server.wait_for("7", "running")["attempt"] == 3
    (tmp_path / "go").touch()
    assert server.end("7")["attempt"] == 3
    wait_until(lambda: len(server.told) >= 2, PATIENCE_S, "the end to be published", 0.03)
    assert {payload["attempt"] for payload in server.told} == {3}
    assert {payload["status"] for payload in server.told} == {"running", "complete"}


def test_the_jobs_environment(server: Server) -> None:
    """The job sees Galaxy's variables as they were sent, the stored submission the manager."""
    server.message("7", "echo $MINE $PULSAR_FAILURE_REASONS_ATTEMPT", 2)
    assert out(server.end("7")) == "kept 2"
    stored = json.loads((server.directory("7") / "launch_config").read_text())
    found = {entry["name"]: entry["value"] for entry in stored["env"]}
    assert len(stored["env"]) == 4
    assert found == {
        "MINE": "kept", "PULSAR_FAILURE_REASONS_ATTEMPT": "2",
        "PULSAR_FAILURE_REASONS_ATTEMPT_OF": ONE, "PULSAR_FAILURE_REASONS_ATTEMPT_AT": "_default_",
    }


def test_no_file_of_ours(server: Server) -> None:
    """Nothing new lies in the job directory or in the staging folder."""
    for job_id, number in (("7", 1), ("8", None)):
        server.message(job_id, "true", number)
        server.end(job_id)
    # "running" is there if somebody asked while the job ran.
    numbered, plain = (
        {path.name for path in server.directory(job_id).iterdir()} - {"running"}
        for job_id in ("7", "8"))
    assert numbered == plain
    assert {path.name for path in server.staging.iterdir()} == {"7", "8"}
