"""Attempts are numbered on their way to Pulsar, and the one that is over makes room."""

from __future__ import annotations

from typing import Any, Dict
from urllib.parse import parse_qs, urlsplit

import pytest

from .stub import MEMORY, WALLTIME, Galaxy, States

AGAIN = [{"condition": "attempt < 3"}]


def client_of(galaxy: Galaxy, runner: Any, resubmitted: int = 0) -> Any:
    """Return the client with which a job is sent."""
    destination = galaxy.destination("cluster", "mq" if runner.use_mq else "rest")
    destination.env = [{"name": "MINE", "value": "1", "raw": False}]
    job = galaxy.job(destination, resubmitted=resubmitted, state=States.QUEUED)
    return runner.get_client_from_wrapper(galaxy.wrapper(job, destination))


def variables(client: Any) -> Dict[str, str]:
    """Return the environment that goes with the submission."""
    return {entry["name"]: entry["value"] for entry in client.env}


@pytest.mark.parametrize("name", ["PulsarRESTJobRunner", "PulsarMQJobRunner"])
@pytest.mark.parametrize("resubmitted, number", [(0, "1"), (1, "2"), (4, "5")])
def test_the_number_is_in_the_jobs_environment(
    galaxy: Galaxy, name: str, resubmitted: int, number: str
) -> None:
    """It counts from 1 as Galaxy's condition `attempt` does; other variables stay."""
    found = variables(client_of(galaxy, galaxy.runner(name), resubmitted))
    assert found["PULSAR_FAILURE_REASONS_ATTEMPT"] == number
    assert found["MINE"] == "1"


def test_the_destinations_own_list_is_left_alone(galaxy: Galaxy) -> None:
    """What one attempt adds does not pile up in the destination."""
    runner = galaxy.runner()
    destination = galaxy.destination()
    job = galaxy.job(destination)
    client = runner.get_client_from_wrapper(galaxy.wrapper(job, destination))
    client.env.append({"name": "OF_THE_TOOL", "value": "x"})
    assert destination.env == []


def test_a_set_up_over_rest_says_it_too(galaxy: Galaxy) -> None:
    """The set-up comes before the submission, and an older attempt must make room before it."""
    runner = galaxy.runner()
    galaxy.pulsar.status = {"working_directory": "/staging/1/working"}
    client_of(galaxy, runner, resubmitted=1).setup("cat1", "1.0")
    (url,) = galaxy.pulsar.asked_for("POST", "/jobs")
    arguments = parse_qs(urlsplit(url).query)
    assert arguments["failure_reasons_attempt"] == ["2"]
    assert arguments["tool_id"] == ["cat1"]


def test_each_galaxy_has_a_word_of_its_own(galaxy: Galaxy) -> None:
    """Same for all jobs of one, other for another secret or another address; not the secret."""
    def word() -> str:
        return variables(client_of(galaxy, galaxy.runner()))["PULSAR_FAILURE_REASONS_ATTEMPT_OF"]

    from galaxy.security.idencoding import IdEncodingHelper

    first = word()
    assert word() == first
    assert "unit" not in first
    galaxy.config.galaxy_infrastructure_url = "http://other.test"
    second = word()
    galaxy.security = IdEncodingHelper(id_secret="of another Galaxy")
    assert len({first, second, word()}) == 3


def test_the_remote_directory_is_removed_before_the_next_attempt(galaxy: Galaxy) -> None:
    """Over REST Galaxy cleans up, also on a Pulsar that knows nothing of attempts."""
    runner = galaxy.runner()
    state = galaxy.watched(runner, galaxy.destination(rules=AGAIN))
    galaxy.poll(runner, state, "failed", WALLTIME)
    assert galaxy.refreshed(state.job_wrapper.job_id).state == States.RESUBMITTED
    assert len(galaxy.pulsar.asked_for("DELETE", f"/jobs/{state.job_wrapper.job_id}")) == 1
    assert galaxy.pulsar.asked_for("PUT", "/cancel") == []


def test_a_pulsar_that_is_away_then_is_no_obstacle(galaxy: Galaxy) -> None:
    """Removing it is an attempt: the job is resubmitted all the same."""
    runner = galaxy.runner()
    state = galaxy.watched(runner, galaxy.destination(rules=AGAIN))
    stock_execute = galaxy.pulsar.execute

    def only_status(url: str, method: Any = None, **more: Any) -> str:
        galaxy.pulsar.down = method is not None
        return stock_execute(url, method, **more)

    galaxy.pulsar.execute = only_status  # type: ignore[method-assign]
    galaxy.poll(runner, state, "failed", WALLTIME)
    assert galaxy.refreshed(state.job_wrapper.job_id).state == States.RESUBMITTED


def test_three_kills_then_local(galaxy: Galaxy) -> None:
    """`attempt < 3` to the same Pulsar, then somewhere else."""
    runner = galaxy.runner()
    galaxy.destination("here", "local")
    rules = [*AGAIN, {"condition": "any_failure", "environment": "here"}]
    destination = galaxy.destination(rules=rules)
    for resubmitted, goes_to in ((0, "cluster"), (1, "cluster"), (2, "here")):
        state = galaxy.watched(runner, destination, resubmitted=resubmitted)
        galaxy.poll(runner, state, "failed", {**MEMORY, "attempt": resubmitted + 1})
        job = galaxy.refreshed(state.job_wrapper.job_id)
        assert (job.state, job.destination_id) == (States.RESUBMITTED, goes_to)


def test_a_stale_status_of_an_older_attempt_is_waited_out(galaxy: Galaxy) -> None:
    """A poll that still gets the older attempt's end changes nothing and goes on watching."""
    runner = galaxy.runner()
    state = galaxy.watched(runner, galaxy.destination(), resubmitted=1)
    assert galaxy.poll(runner, state, "failed", {**MEMORY, "attempt": 1}) is state
    assert galaxy.refreshed(state.job_wrapper.job_id).state == States.RUNNING
    assert galaxy.poll(runner, state, "failed", {**MEMORY, "attempt": 2}) is None
    assert galaxy.refreshed(state.job_wrapper.job_id).state == States.ERROR


def test_a_job_that_has_moved_on_is_watched_no_more(galaxy: Galaxy) -> None:
    """The state of an attempt that is over is dropped, whatever Pulsar says."""
    runner = galaxy.runner()
    state = galaxy.watched(runner, galaxy.destination())
    job = galaxy.refreshed(state.job_wrapper.job_id)
    job.job_runner_name = "local"
    galaxy.model.context.commit()
    assert galaxy.poll(runner, state, "failed", MEMORY) is None
    assert galaxy.refreshed(job).state == States.RUNNING


def test_a_lost_job_over_rest_is_killed_first(galaxy: Galaxy) -> None:
    """As in stock: the kill is over before the next attempt is sent."""
    runner = galaxy.runner()
    state = galaxy.watched(runner, galaxy.destination(rules=AGAIN))
    galaxy.poll(runner, state, "lost")
    assert len(galaxy.pulsar.asked_for("PUT", "/cancel")) == 1
    assert galaxy.refreshed(state.job_wrapper.job_id).state == States.RESUBMITTED
