"""What a payload's reason does to a job: message, rules, what is kept."""

from __future__ import annotations

import logging
from typing import Any, Dict

import pytest

from .stub import MEMORY, WALLTIME, Galaxy, States, because

TO_BIG = {"condition": "memory_limit_reached", "environment": "big"}


def test_a_memory_kill_is_resubmitted(galaxy: Galaxy) -> None:
    """A rule about memory fires for Pulsar's token, and the job waits for the new destination."""
    runner = galaxy.runner()
    galaxy.destination("big")
    state = galaxy.watched(runner, galaxy.destination(rules=[TO_BIG]))
    assert galaxy.poll(runner, state, "failed", MEMORY) is None
    job = galaxy.refreshed(state.job_wrapper.job_id)
    assert job.state == States.RESUBMITTED
    assert job.destination_id == "big"
    assert state.job_wrapper.failures == []


def test_walltime_is_not_memory(galaxy: Galaxy) -> None:
    """A rule about memory leaves a walltime kill alone; the user reads both our sentences."""
    runner = galaxy.runner()
    galaxy.destination("big")
    state = galaxy.watched(runner, galaxy.destination(rules=[TO_BIG]))
    galaxy.poll(runner, state, "failed", WALLTIME)
    assert galaxy.refreshed(state.job_wrapper.job_id).state == States.ERROR
    ((message, _),) = state.job_wrapper.failures
    assert message == (
        "The job took longer than it was allowed to and was ended by the cluster. Details: killed "
        "after 1 h: the job's walltime limit is 1 h (Slurm job 5, n1)"
    )


def test_one_request_a_poll(galaxy: Galaxy) -> None:
    """Reading the reason costs no request more than stock's poll."""
    runner = galaxy.runner()
    state = galaxy.watched(runner, galaxy.destination())
    assert galaxy.poll(runner, state, "running") is state
    assert len(galaxy.pulsar.requests) == 1
    galaxy.poll(runner, state, "failed", WALLTIME)
    assert len(galaxy.pulsar.requests) == 2


@pytest.mark.parametrize("keys", [
    {},
    {"runner_state": "of_a_later_version", "runner_state_message": "x"},
    {"runner_state": ["memory_limit_reached"]},
    {"runner_state": "output_size_limit"},
    {"runner_state": None, "runner_state_message": None, "failure_reason": None},
], ids=["none", "unknown", "no_text", "galaxys_own_but_not_for_the_wire", "null"])
def test_without_a_token_that_is_known_all_is_as_in_stock(
    galaxy: Galaxy, keys: Dict[str, Any]
) -> None:
    """Galaxy's own message, and only rules about unknown errors fire."""
    runner = galaxy.runner()
    state = galaxy.watched(runner, galaxy.destination(rules=[
        {"condition": "memory_limit_reached or walltime_reached", "environment": "cluster"}]))
    galaxy.poll(runner, state, "failed", keys)
    ((message, _),) = state.job_wrapper.failures
    assert message == "Remote job server indicated a problem running or monitoring this job."
    state = galaxy.watched(runner, galaxy.destination(rules=[
        {"condition": "unknown_error", "environment": "cluster"}]))
    galaxy.poll(runner, state, "failed", keys)
    assert galaxy.refreshed(state.job_wrapper.job_id).state == States.RESUBMITTED


def test_an_unknown_token_is_logged_once(
    galaxy: Galaxy, caplog: pytest.LogCaptureFixture
) -> None:
    """A thousand jobs of a newer Pulsar are one line, under a logger that Galaxy shows."""
    caplog.set_level(logging.INFO)
    runner = galaxy.runner()
    for _ in range(3):
        state = galaxy.watched(runner, galaxy.destination())
        galaxy.poll(runner, state, "failed", {"runner_state": "seen_thrice"})
    lines = [record for record in caplog.records if "seen_thrice" in record.getMessage()]
    assert len(lines) == 1
    assert lines[0].name.startswith("galaxy.")


@pytest.mark.parametrize("details", [
    {"cause": "of_a_later_version", "confidence": "controller", "drm": "slurm"},
    {"cause": ["memory"]}, "text", ["list"], {"evidence": 3},
], ids=repr)
def test_a_reason_that_cannot_be_read_leaves_the_token(galaxy: Galaxy, details: Any) -> None:
    """Token and message count, whatever the details are."""
    runner = galaxy.runner()
    galaxy.destination("big")
    state = galaxy.watched(runner, galaxy.destination(rules=[TO_BIG]))
    galaxy.poll(runner, state, "failed", {**MEMORY, "failure_reason": details})
    assert galaxy.refreshed(state.job_wrapper.job_id).destination_id == "big"


def test_control_characters_do_not_reach_the_user(galaxy: Galaxy) -> None:
    """Text of a foreign server is one clean line."""
    runner = galaxy.runner()
    state = galaxy.watched(runner, galaxy.destination())
    galaxy.poll(runner, state, "failed", {**MEMORY, "runner_state_message": "a\x1b[31m\nb"})
    ((message, _),) = state.job_wrapper.failures
    assert message.endswith("Details: a [31m b")


@pytest.mark.parametrize("status", ["running", "queued", "preprocessing", "postprocessing"])
def test_only_failed_and_lost_tell_why(galaxy: Galaxy, status: str) -> None:
    """A reason in any other payload is ignored, and the job goes on."""
    runner = galaxy.runner()
    state = galaxy.watched(runner, galaxy.destination(rules=[TO_BIG]))
    assert galaxy.poll(runner, state, status, MEMORY) is state
    assert state.runner_state is None
    assert "failure_reason" not in galaxy.refreshed(state.job_wrapper.job_id).destination_params


def test_a_lost_job_is_resubmitted_by_reason(galaxy: Galaxy) -> None:
    """`lost` with a reason is as `failed` with one."""
    runner = galaxy.runner()
    state = galaxy.watched(runner, galaxy.destination(rules=[
        {"condition": "infrastructure_failure", "environment": "cluster"}]))
    galaxy.poll(runner, state, "lost", because("lost"))
    assert galaxy.refreshed(state.job_wrapper.job_id).state == States.RESUBMITTED


def test_the_reason_is_kept_with_the_job(galaxy: Galaxy) -> None:
    """It is in destination_params as it came, with token and sentence, before any rule."""
    runner = galaxy.runner()
    state = galaxy.watched(runner, galaxy.destination())
    galaxy.poll(runner, state, "failed", MEMORY)
    kept = galaxy.refreshed(state.job_wrapper.job_id).destination_params["failure_reason"]
    assert kept == {
        "runner_state": "memory_limit_reached",
        "message": "killed for memory: the job's memory limit is 2 GB (Slurm job 5, n1)",
        "cause": "memory", "fault": "job", "confidence": "controller", "drm": "slurm",
        "node": "n1", "requested": {"memory_bytes": 2000000000, "walltime_s": 3600},
        "used": {"memory_bytes": 1900000000, "walltime_s": 61},
    }


def test_the_reason_goes_along_to_the_next_destination(galaxy: Galaxy) -> None:
    """A dynamic rule that maps the next attempt reads why the last one failed."""
    runner = galaxy.runner()
    galaxy.destination("big")
    state = galaxy.watched(runner, galaxy.destination(rules=[TO_BIG]))
    galaxy.poll(runner, state, "failed", MEMORY)
    params = galaxy.refreshed(state.job_wrapper.job_id).destination_params
    assert params["failure_reason"]["used"]["memory_bytes"] == 1900000000


def test_the_reason_of_the_last_failure_wins(galaxy: Galaxy) -> None:
    """Back at the same place, a second failure's reason replaces the first's."""
    runner = galaxy.runner()
    rules = [{"condition": "attempt < 3"}]
    state = galaxy.watched(runner, galaxy.destination(rules=rules))
    galaxy.poll(runner, state, "failed", MEMORY)
    job = galaxy.refreshed(state.job_wrapper.job_id)
    assert job.destination_params["failure_reason"]["cause"] == "memory"
    again = galaxy.watched(runner, state.job_destination, resubmitted=1)
    galaxy.poll(runner, again, "failed", WALLTIME)
    job = galaxy.refreshed(again.job_wrapper.job_id)
    assert job.destination_params["failure_reason"]["cause"] == "walltime"


def test_a_failure_without_reason_removes_an_older_one(galaxy: Galaxy) -> None:
    """What an earlier attempt died of is no reason for this one."""
    runner = galaxy.runner()
    state = galaxy.watched(runner, galaxy.destination(failure_reason={"cause": "memory"}))
    galaxy.poll(runner, state, "failed")
    assert "failure_reason" not in galaxy.refreshed(state.job_wrapper.job_id).destination_params
