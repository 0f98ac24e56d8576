"""Failed infrastructure: back to the same place without a rule."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from .stub import MEMORY, Galaxy, States, because


def failed_again(
    galaxy: Galaxy, runner: Any, destination: Any, cause: str, resubmitted: int
) -> Any:
    """Return the job after it failed once more, and its state."""
    state = galaxy.watched(runner, destination, resubmitted=resubmitted)
    galaxy.poll(runner, state, "failed", because(cause))
    return galaxy.refreshed(state.job_wrapper.job_id), state


@pytest.mark.parametrize("cause, words", [
    ("node_failure", "because its node failed"),
    ("preempted", "because it had made way for another job"),
])
def test_up_to_n_times(galaxy: Galaxy, cause: str, words: str) -> None:
    """N failures go back to the same place, one more fails the job."""
    runner = galaxy.runner(infrastructure_retries="2")
    destination = galaxy.destination()
    for resubmitted in (0, 1):
        job, state = failed_again(galaxy, runner, destination, cause, resubmitted)
        assert (job.state, job.destination_id) == (States.RESUBMITTED, "cluster")
        assert (job.job_runner_name, job.job_runner_external_id) == ("rest", None)
        assert words in job.info
        assert f"({resubmitted + 1} of at most 2 times)" in job.info
        assert state.job_wrapper.cleared == 1
    job, state = failed_again(galaxy, runner, destination, cause, 2)
    assert job.state == States.ERROR


@pytest.mark.parametrize("cause", ["lost", "cancelled", "held", "stage_error", "launch_error"])
def test_only_node_failures_and_preemptions(galaxy: Galaxy, cause: str) -> None:
    """What is not certain to be the node's or the queue's doing needs a rule."""
    runner = galaxy.runner(infrastructure_retries=5)
    job, _ = failed_again(galaxy, runner, galaxy.destination(), cause, 0)
    assert job.state == States.ERROR


def test_off_by_default(galaxy: Galaxy) -> None:
    """Without the parameter a node failure is a failure."""
    job, _ = failed_again(galaxy, galaxy.runner(), galaxy.destination(), "node_failure", 0)
    assert job.state == States.ERROR


def test_rules_come_afterwards(galaxy: Galaxy) -> None:
    """Once they are used up, a rule about infrastructure decides."""
    runner = galaxy.runner(infrastructure_retries=1)
    galaxy.destination("elsewhere")
    destination = galaxy.destination(rules=[
        {"condition": "infrastructure_failure", "environment": "elsewhere"}])
    assert failed_again(galaxy, runner, destination, "node_failure", 0)[0].destination_id \
        == "cluster"
    assert failed_again(galaxy, runner, destination, "node_failure", 1)[0].destination_id \
        == "elsewhere"


def test_each_place_has_its_own(galaxy: Galaxy) -> None:
    """Galaxy 26.1 takes params along from place to place; another's retries do not count."""
    runner = galaxy.runner(infrastructure_retries=1)
    places = {
        name: galaxy.destination(name, rules=[
            {"condition": "infrastructure_failure", "environment": other}])
        for name, other in (("cluster", "elsewhere"), ("elsewhere", "cluster"))
    }
    went, taken_along = ["cluster"], {}
    for resubmitted in range(4):
        place = copy.deepcopy(places[went[-1]])
        place.params = {**taken_along, **place.params}
        job, _ = failed_again(galaxy, runner, place, "node_failure", resubmitted)
        went.append(job.destination_id)
        taken_along = dict(job.destination_params)
    assert went[1:] == ["cluster", "elsewhere", "elsewhere", "cluster"]


def test_a_memory_kill_in_between_does_not_count(galaxy: Galaxy) -> None:
    """Only retries of this kind are counted, not attempts."""
    runner = galaxy.runner(infrastructure_retries=1)
    destination = galaxy.destination(rules=[{"condition": "memory_limit_reached"}])
    state = galaxy.watched(runner, destination)
    galaxy.poll(runner, state, "failed", MEMORY)
    job, _ = failed_again(galaxy, runner, destination, "preempted", 1)
    assert job.state == States.RESUBMITTED
    job, _ = failed_again(galaxy, runner, destination, "preempted", 2)
    assert job.state == States.ERROR


@pytest.mark.parametrize("value", ["-1", "many", "1.5", None])
def test_a_parameter_that_is_no_number(galaxy: Galaxy, value: Any) -> None:
    """It is refused with its name; no TypeError, on which Galaxy drops all parameters."""
    with pytest.raises(ValueError, match="infrastructure_retries: expected 0, 1, 2"):
        galaxy.runner(infrastructure_retries=value)


def test_an_error_on_the_way_fails_the_job(galaxy: Galaxy) -> None:
    """The working directory cannot be moved away: the job is in error, not in limbo."""
    runner = galaxy.runner(infrastructure_retries=1)
    state = galaxy.watched(runner, galaxy.destination())

    def broken() -> None:
        raise OSError("Stale file handle")

    state.job_wrapper.clear_working_directory = broken
    galaxy.poll(runner, state, "failed", because("node_failure"))
    assert galaxy.refreshed(state.job_wrapper.job_id).state == States.ERROR
