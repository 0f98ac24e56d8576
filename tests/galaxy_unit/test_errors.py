"""Errors on the way: no job is left in limbo, and a database that is away is waited for."""

from __future__ import annotations

from typing import Any, List

import pytest
from galaxy.jobs.runners.state_handlers import resubmit
from sqlalchemy import exc

from pulsar_failure_reasons.galaxy_runners import attempts, database

from .stub import MEMORY, Galaxy, States

AGAIN = [{"condition": "memory_limit_reached"}]


def database_error() -> Exception:
    """Return what SQLAlchemy raises when the server closes the connection."""
    return exc.OperationalError("SELECT 1", {}, Exception("server closed the connection"))


@pytest.fixture(autouse=True)
def _pauses(monkeypatch: pytest.MonkeyPatch) -> List[float]:
    """No real pauses; those that were asked for."""
    pauses: List[float] = []
    monkeypatch.setattr(database, "_pause", lambda runner, pause_s: pauses.append(pause_s))
    return pauses


def test_a_message_waits_for_the_database(galaxy: Galaxy, _pauses: List[float]) -> None:
    """A `failed` that comes while the database is away is handled when it is back, in order."""
    runner = galaxy.runner("PulsarMQJobRunner")
    job = galaxy.job(galaxy.destination("cluster", "mq", rules=AGAIN))
    answers = [database_error(), database_error(), database_error()]
    stock_pair = galaxy.queue.pairs

    def pair(job_id: int) -> Any:
        if answers:
            raise answers.pop()
        return stock_pair(job_id)

    galaxy.queue.pairs = pair
    galaxy.message(runner, job, "failed", MEMORY)
    assert galaxy.refreshed(job).state == States.RESUBMITTED
    assert _pauses == [0.5, 1.0, 2.0]


@pytest.mark.parametrize("method", [
    "set_job_destination", "mark_as_resubmitted", "clear_working_directory"])
def test_the_database_goes_away_in_the_middle(
    galaxy: Galaxy, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever it is lost during the resubmission, the job is resubmitted once it is back."""
    runner = galaxy.runner("PulsarMQJobRunner")
    job = galaxy.job(galaxy.destination("cluster", "mq", rules=AGAIN))
    from .stub import Wrapper

    stock_method = getattr(Wrapper, method)
    errors = [database_error()]

    def once_broken(wrapper: Any, *args: Any, **kwargs: Any) -> Any:
        if errors:
            raise errors.pop()
        return stock_method(wrapper, *args, **kwargs)

    monkeypatch.setattr(Wrapper, method, once_broken)
    galaxy.message(runner, job, "failed", {**MEMORY, "attempt": 1})
    found = galaxy.refreshed(job)
    assert (found.state, found.destination_id) == (States.RESUBMITTED, "cluster")
    assert errors == []


def test_a_shutdown_ends_the_waiting(galaxy: Galaxy) -> None:
    """Galaxy stops: the message's error goes to the client manager as in stock."""
    runner = galaxy.runner("PulsarMQJobRunner")
    job = galaxy.job(galaxy.destination("cluster", "mq", rules=AGAIN))
    runner._should_stop = True

    def pair(job_id: int) -> Any:
        raise database_error()

    galaxy.queue.pairs = pair
    with pytest.raises(exc.OperationalError):
        galaxy.message(runner, job, "failed", MEMORY)


class Message:
    """A message of kombu's, as far as its state goes."""

    def __init__(self) -> None:
        self.history: List[str] = []

    @property
    def acknowledged(self) -> bool:
        """Tell whether its state is final."""
        return bool(self.history)

    def _end(self, what: str) -> None:
        if self.acknowledged:
            raise RuntimeError("Message already acknowledged with state: %s" % self.history[0])
        self.history.append(what)

    def ack(self) -> None:
        """Acknowledge it."""
        self._end("acknowledged")

    def requeue(self) -> None:
        """Put it back."""
        self._end("requeued")


@pytest.mark.parametrize("error, state", [
    (None, "acknowledged"), (ValueError("a bug"), "acknowledged"), (database_error(), "requeued"),
], ids=["handled", "bug", "database"])
def test_a_message_that_the_database_kept_from_being_handled(
    galaxy: Galaxy, error: Any, state: str
) -> None:
    """It goes back to its queue; any other is acknowledged, as in stock."""
    runner = galaxy.runner("PulsarMQJobRunner", amqp_url="memory://unit")
    runner._init_client_manager()
    message = Message()

    def callback(full_status: Any) -> None:
        if error is not None:
            raise error

    runner.client_manager.callback_wrapper(callback, {"job_id": "1"}, message)
    assert message.history == [state]


@pytest.mark.parametrize("method", ["set_job_destination", "mark_as_resubmitted"])
def test_an_error_in_the_handler_fails_the_job(galaxy: Galaxy, method: str) -> None:
    """Also after stock has noted that it was handled: the job is in error, with our message."""
    runner = galaxy.runner()
    state = galaxy.watched(runner, galaxy.destination(rules=AGAIN))

    def broken(*_: Any, **__: Any) -> None:
        raise ValueError("a bug")

    setattr(state.job_wrapper, method, broken)
    assert galaxy.poll(runner, state, "failed", MEMORY) is None
    assert galaxy.refreshed(state.job_wrapper.job_id).state == States.ERROR
    ((message, _),) = state.job_wrapper.failures
    assert message.startswith("The job needed more memory than it was given")


def test_a_destination_that_does_not_exist(galaxy: Galaxy) -> None:
    """A rule that names no environment of this Galaxy fails the job, as in stock."""
    runner = galaxy.runner()
    state = galaxy.watched(runner, galaxy.destination(rules=[
        {"condition": "any_failure", "environment": "no_such"}]))
    galaxy.poll(runner, state, "failed", MEMORY)
    assert galaxy.refreshed(state.job_wrapper.job_id).state == States.ERROR


def test_a_mistake_of_ours_goes_stocks_way(
    galaxy: Galaxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If our look at the attempt breaks, the job fails as any job does."""
    runner = galaxy.runner()
    state = galaxy.watched(runner, galaxy.destination())

    def broken(*_: Any) -> None:
        raise ZeroDivisionError("a bug of ours")

    monkeypatch.setattr(attempts, "other_attempt", broken)
    galaxy.poll(runner, state, "failed", MEMORY)
    assert galaxy.refreshed(state.job_wrapper.job_id).state == States.ERROR


@pytest.mark.parametrize("ended", [States.DELETING, States.DELETED, States.STOPPING, States.OK])
def test_a_failure_of_a_job_that_somebody_ended(galaxy: Galaxy, ended: Any) -> None:
    """Whatever fails it, a worker's error too, no rule brings it back."""
    runner = galaxy.runner()
    state = galaxy.watched(runner, galaxy.destination(rules=[{"condition": "any_failure"}]))
    galaxy.refreshed(state.job_wrapper.job_id).state = ended
    galaxy.model.context.commit()
    runner.fail_job(state)
    assert galaxy.refreshed(state.job_wrapper.job_id).state != States.RESUBMITTED
    assert len(state.job_wrapper.failures) == 1


def test_failing_itself_fails_once(galaxy: Galaxy) -> None:
    """A job whose failing raises is failed again, without the rules."""
    runner = galaxy.runner()
    state = galaxy.watched(runner, galaxy.destination())
    state.job_wrapper.fails_with.append(RuntimeError("an output that cannot be updated"))
    galaxy.poll(runner, state, "failed", MEMORY)
    assert galaxy.refreshed(state.job_wrapper.job_id).state == States.ERROR


def test_a_pulsar_that_is_away_is_asked_again(galaxy: Galaxy) -> None:
    """An error of the transport keeps the job watched, as in stock."""
    from pulsar.client import PulsarClientTransportError

    runner = galaxy.runner()
    state = galaxy.watched(runner, galaxy.destination())

    def away(*_: Any, **__: Any) -> str:
        raise PulsarClientTransportError(None, transport_message="away")

    stock_execute, galaxy.pulsar.execute = galaxy.pulsar.execute, away  # type: ignore
    assert galaxy.poll(runner, state, "failed", MEMORY) is state
    galaxy.pulsar.execute = stock_execute  # type: ignore[method-assign]
    assert galaxy.poll(runner, state, "failed", MEMORY) is None


def test_all_handlers_are_asked(galaxy: Galaxy) -> None:
    """Other handlers that Galaxy has loaded are asked in its order, until one has handled it."""
    runner = galaxy.runner()
    asked: List[str] = []

    def note(name: str) -> Any:
        return lambda *_: asked.append(name)

    runner.runner_state_handlers = {"failure": [note("first"), resubmit.failure, note("last")]}
    state = galaxy.watched(runner, galaxy.destination(rules=AGAIN))
    galaxy.poll(runner, state, "failed", MEMORY)
    assert asked == ["first"]
    assert galaxy.refreshed(state.job_wrapper.job_id).state == States.RESUBMITTED
