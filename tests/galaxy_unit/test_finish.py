"""Tools that end badly by themselves: the rules are asked, as by other runners."""

from __future__ import annotations

from typing import Any, Dict, List

import pytest
from galaxy.jobs.runners import pulsar as stock
from galaxy.tool_util.output_checker import DETECTED_JOB_STATE

from .stub import Galaxy, States

TOOL_RULE = [{"condition": "tool_detected_failure", "environment": "big"}]
MEMORY_RULE = [{"condition": "memory_limit_reached", "environment": "big"}]
ANY_RULE = [{"condition": "any_failure", "environment": "big"}]


@pytest.fixture(autouse=True)
def _stock_finish(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stock's finish_job without the files: outputs are collected, then the wrapper finishes."""

    def finish_job(runner: Any, job_state: Any) -> None:
        results = runner.get_client_from_state(job_state).full_status()
        job_state.job_wrapper.finish(
            results["stdout"], results["stderr"], results["returncode"],
            job_stdout="", job_stderr="", remote_metadata_directory=None,
            job_metrics_directory="metadata",
        )

    monkeypatch.setattr(stock.PulsarJobRunner, "finish_job", finish_job)


def ended(
    galaxy: Galaxy, rules: List[Dict[str, str]], detected: Any, status: str = "complete",
    state: Any = States.RUNNING,
) -> Any:
    """Return the job's state after Pulsar told its end and the worker finished it."""
    runner = galaxy.runner()
    galaxy.destination("big")
    job_state = galaxy.watched(runner, galaxy.destination(rules=rules))
    job_state.job_wrapper.detected = detected
    job = galaxy.refreshed(job_state.job_wrapper.job_id)
    job.state = state
    galaxy.model.context.commit()
    assert galaxy.poll(runner, job_state, status, {"returncode": 1}) is None
    method, argument = runner.work_queue.get_nowait()
    method(argument)
    return job_state


def outcome(galaxy: Galaxy, job_state: Any) -> Any:
    """Return the job's state and destination, and how often its wrapper finished it."""
    job = galaxy.refreshed(job_state.job_wrapper.job_id)
    return job.state, job.destination_id, len(job_state.job_wrapper.finished)


@pytest.mark.parametrize("rules", [TOOL_RULE, ANY_RULE], ids=["tool", "any"])
def test_a_tool_error_is_resubmitted(galaxy: Galaxy, rules: Any) -> None:
    """A bad exit code is tool_detected_failure, and any_failure too."""
    state = ended(galaxy, rules, DETECTED_JOB_STATE.GENERIC_ERROR)
    assert outcome(galaxy, state) == (States.RESUBMITTED, "big", 0)


def test_out_of_memory_that_the_tool_told(galaxy: Galaxy) -> None:
    """What the tool's own error patterns take for memory is memory_limit_reached."""
    state = ended(galaxy, MEMORY_RULE, DETECTED_JOB_STATE.OUT_OF_MEMORY_ERROR)
    assert outcome(galaxy, state) == (States.RESUBMITTED, "big", 0)
    state = ended(galaxy, MEMORY_RULE, DETECTED_JOB_STATE.GENERIC_ERROR)
    assert outcome(galaxy, state)[2] == 1


def test_a_good_end(galaxy: Galaxy) -> None:
    """A tool that ended well is finished, whatever the rules."""
    state = ended(galaxy, ANY_RULE, DETECTED_JOB_STATE.OK)
    assert outcome(galaxy, state) == (States.RUNNING, "cluster", 1)


@pytest.mark.parametrize("job_state", [
    States.DELETED, States.DELETING, States.STOPPED, States.STOPPING, States.ERROR])
def test_a_job_that_somebody_ended(galaxy: Galaxy, job_state: Any) -> None:
    """It is finished as in stock: nobody wants it back."""
    state = ended(galaxy, ANY_RULE, DETECTED_JOB_STATE.GENERIC_ERROR, state=job_state)
    assert outcome(galaxy, state) == (job_state, "cluster", 1)


def test_a_cancelled_job(galaxy: Galaxy) -> None:
    """Pulsar says that Galaxy cancelled it."""
    state = ended(galaxy, ANY_RULE, DETECTED_JOB_STATE.GENERIC_ERROR, status="cancelled")
    assert outcome(galaxy, state) == (States.RUNNING, "cluster", 1)


def test_no_rule_fits(galaxy: Galaxy) -> None:
    """It is finished, and what was detected is there without a second look."""
    state = ended(galaxy, MEMORY_RULE, DETECTED_JOB_STATE.GENERIC_ERROR)
    assert outcome(galaxy, state) == (States.RUNNING, "cluster", 1)
    assert state.job_wrapper.finished[0]["job_metrics_directory"] == "metadata"


@pytest.mark.parametrize("error", [ValueError("a bug"), RuntimeError("of the tool's")])
def test_an_error_of_the_check(galaxy: Galaxy, error: Exception) -> None:
    """Whatever the check of the output raises, the job is finished as in stock."""
    state = ended(galaxy, ANY_RULE, error)
    assert outcome(galaxy, state)[2] == 1


def test_it_is_not_killed_on_the_way(galaxy: Galaxy) -> None:
    """The remote job is over; a kill might hit the next attempt."""
    ended(galaxy, TOOL_RULE, DETECTED_JOB_STATE.GENERIC_ERROR)
    assert galaxy.pulsar.asked_for("PUT", "/cancel") == []
    assert len(galaxy.pulsar.asked_for("DELETE")) == 1


def test_an_older_reason_does_not_stay(galaxy: Galaxy) -> None:
    """The next attempt is not sized by what an earlier one died of."""
    runner = galaxy.runner()
    galaxy.destination("big")
    state = galaxy.watched(
        runner, galaxy.destination(rules=TOOL_RULE, failure_reason={"cause": "memory"}))
    state.job_wrapper.detected = DETECTED_JOB_STATE.GENERIC_ERROR
    galaxy.poll(runner, state, "complete", {"returncode": 1})
    method, argument = runner.work_queue.get_nowait()
    method(argument)
    assert "failure_reason" not in galaxy.refreshed(state.job_wrapper.job_id).destination_params


def test_results_that_cannot_be_collected(
    galaxy: Galaxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stock's failure on the way to the results is an unknown error, which rules may catch."""

    def finish_job(runner: Any, job_state: Any) -> None:
        runner.fail_job(job_state, message="Failed to communicate", exception=True)

    monkeypatch.setattr(stock.PulsarJobRunner, "finish_job", finish_job)
    state = ended(
        galaxy, [{"condition": "unknown_error", "environment": "big"}], DETECTED_JOB_STATE.OK)
    assert outcome(galaxy, state) == (States.RESUBMITTED, "big", 0)
    # Over as it is; by a message queue a kill might hit the next attempt.
    assert galaxy.pulsar.asked_for("PUT", "/cancel") == []
