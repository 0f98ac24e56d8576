"""Jobs of message-driven runners: their rules travel with them, late messages change nothing."""

from __future__ import annotations

from typing import Any, Dict

import pytest
from galaxy import model
from galaxy.jobs.runners import pulsar as stock

from .stub import MEMORY, Galaxy, States, Wrapper, because

AGAIN = {"condition": "memory_limit_reached and attempt <= 3"}
TO_BIG = {"condition": "memory_limit_reached", "environment": "big"}


def sent(galaxy: Galaxy, runner: Any, destination: Any, **job: Any) -> Any:
    """Return a job that was put into the runner's queue and sent to Pulsar."""
    made = galaxy.job(destination, **job)
    wrapper = galaxy.wrapper(made, destination)
    runner.put(wrapper)
    method, _ = runner.work_queue.get_nowait()
    assert method.__name__ == "queue_job"
    wrapper.set_job_destination(destination, external_id=str(made.id))
    wrapper.change_state(States.RUNNING)
    return made


@pytest.mark.parametrize("configured", [True, False], ids=["job_conf", "dynamic"])
def test_a_message_resubmits_a_job(galaxy: Galaxy, configured: bool) -> None:
    """A memory kill told by message fires the rule, also where no job_conf knows the place."""
    runner = galaxy.runner("PulsarMQJobRunner")
    galaxy.destination("big", "mq")
    destination = galaxy.destination("tpv", "mq", rules=[TO_BIG], configured=configured)
    job = sent(galaxy, runner, destination)
    galaxy.message(runner, job, "failed", MEMORY)
    job = galaxy.refreshed(job)
    assert (job.state, job.destination_id) == (States.RESUBMITTED, "big")


def test_back_to_the_same_place(galaxy: Galaxy) -> None:
    """Without an environment the job goes back, and still has a runner there."""
    runner = galaxy.runner("PulsarMQJobRunner")
    destination = galaxy.destination("tpv", "mq", rules=[AGAIN], configured=False)
    job = sent(galaxy, runner, destination)
    galaxy.message(runner, job, "failed", MEMORY)
    job = galaxy.refreshed(job)
    assert (job.state, job.destination_id) == (States.RESUBMITTED, "tpv")
    assert job.job_runner_name == "mq"


def test_the_second_time_too(galaxy: Galaxy) -> None:
    """The rules of a dynamic destination last for the job's later attempts (galaxy#15208)."""
    runner = galaxy.runner("PulsarMQJobRunner")
    destination = galaxy.destination(
        "tpv", "mq", rules=[AGAIN], configured=False)
    destination.env = [{"name": "A", "value": "1"}]
    job = sent(galaxy, runner, destination)
    for attempt in (1, 2, 3):
        galaxy.message(runner, job, "failed", {**MEMORY, "attempt": attempt})
        job = galaxy.refreshed(job)
        assert job.state == States.RESUBMITTED, attempt
        # As Galaxy's handler does when it takes the job up again: id and params are all it has.
        from galaxy.jobs import JobDestination

        again = JobDestination(runner=job.job_runner_name, from_job=job)
        wrapper = galaxy.wrapper(job, again)
        runner.put(wrapper)
        assert again.env == [{"name": "A", "value": "1"}]
        wrapper.set_job_destination(again, external_id=str(job.id))
        wrapper.change_state(States.RUNNING)
    galaxy.message(runner, job, "failed", {**MEMORY, "attempt": 4})
    assert galaxy.refreshed(job).state == States.ERROR


def test_a_destination_with_the_jobs_own_column(galaxy: Galaxy) -> None:
    """Galaxy 25.1 makes one so, and stock then writes to params of an expired job."""
    from galaxy.jobs import JobDestination

    runner = galaxy.runner("PulsarMQJobRunner")
    job = sent(galaxy, runner, galaxy.destination("cluster", "mq"))
    again = JobDestination(runner="mq", from_job=job)
    runner.put(galaxy.wrapper(job, again))
    galaxy.model.context.expire(job)
    again.params["of_stock"] = "x"


def test_the_older_key_of_tpv(galaxy: Galaxy) -> None:
    """TPV up to 3.2.1 writes `destination`, which Galaxy 26.1 does not read."""
    runner = galaxy.runner("PulsarMQJobRunner")
    galaxy.destination("big", "mq")
    rule = {"condition": "memory_limit_reached", "destination": "big"}
    job = sent(galaxy, runner, galaxy.destination("tpv", "mq", rules=[rule], configured=False))
    galaxy.message(runner, job, "failed", MEMORY)
    assert galaxy.refreshed(job).destination_id == "big"


def test_the_older_key_in_job_conf(galaxy: Galaxy) -> None:
    """Also where the rule is looked up in job_conf, for a message or after a restart."""
    runner = galaxy.runner("PulsarMQJobRunner")
    galaxy.destination("big", "mq")
    rule = {"condition": "memory_limit_reached", "destination": "big"}
    job = sent(galaxy, runner, galaxy.destination("cluster", "mq", rules=[rule]))
    galaxy.message(runner, job, "failed", MEMORY)
    assert galaxy.refreshed(job).destination_id == "big"


def test_rules_that_the_operator_took_away(galaxy: Galaxy) -> None:
    """For a place in job_conf its present rules count, not those that the job was sent with."""
    runner = galaxy.runner("PulsarMQJobRunner")
    job = sent(galaxy, runner, galaxy.destination("cluster", "mq", rules=[AGAIN]))
    galaxy.destination("cluster", "mq")
    galaxy.message(runner, job, "failed", MEMORY)
    assert galaxy.refreshed(job).state == States.ERROR


def test_rules_of_another_place(galaxy: Galaxy) -> None:
    """What a resubmitted job still has of its earlier place does not count at the next one."""
    runner = galaxy.runner("PulsarMQJobRunner")
    earlier = galaxy.destination("tpv_one", "mq", rules=[AGAIN], configured=False)
    sent(galaxy, runner, earlier)
    now = galaxy.destination("tpv_two", "mq", configured=False)
    now.params = {**earlier.params, **now.params}
    job = sent(galaxy, runner, now, resubmitted=1)
    galaxy.message(runner, job, "failed", {**MEMORY, "attempt": 2})
    assert galaxy.refreshed(job).state == States.ERROR


def test_rules_that_cannot_be_kept(galaxy: Galaxy) -> None:
    """A rule that is no plain data is not kept, and the job is sent all the same."""
    runner = galaxy.runner("PulsarMQJobRunner")
    destination = galaxy.destination(
        "tpv", "mq", rules=[{"condition": object()}], configured=False)
    job = sent(galaxy, runner, destination)
    assert galaxy.refreshed(job).state == States.RUNNING
    galaxy.message(runner, job, "failed", MEMORY)
    assert galaxy.refreshed(job).state == States.ERROR


@pytest.mark.parametrize("attempt", [{"attempt": 1}, {}], ids=["numbered", "old_pulsar"])
def test_a_second_failed_of_the_same_attempt(galaxy: Galaxy, attempt: Dict[str, int]) -> None:
    """A redelivered message finds the job waiting for its next attempt, and does nothing."""
    runner = galaxy.runner("PulsarMQJobRunner")
    job = sent(galaxy, runner, galaxy.destination("cluster", "mq", rules=[AGAIN]))
    galaxy.message(runner, job, "failed", {**MEMORY, **attempt})
    galaxy.message(runner, job, "failed", {**MEMORY, **attempt})
    assert galaxy.refreshed(job).state == States.RESUBMITTED
    assert sum(wrapper.cleared for wrapper in galaxy.wrappers) == 1


@pytest.mark.parametrize("status", ["failed", "lost", "complete", "cancelled"])
def test_a_late_message_of_an_older_attempt(galaxy: Galaxy, status: str) -> None:
    """It neither ends nor fails the attempt that runs now at the same Pulsar."""
    runner = galaxy.runner("PulsarMQJobRunner")
    job = sent(galaxy, runner, galaxy.destination("cluster", "mq"), resubmitted=1)
    galaxy.message(runner, job, status, {**MEMORY, "attempt": 1})
    assert galaxy.refreshed(job).state == States.RUNNING
    assert runner.work_queue.empty()
    galaxy.message(runner, job, "failed", {**MEMORY, "attempt": 2})
    assert galaxy.refreshed(job).state == States.ERROR


@pytest.mark.parametrize("status", ["complete", "failed", "lost"])
def test_an_end_that_is_told_again_later(galaxy: Galaxy, status: str) -> None:
    """A job that Galaxy has finished well stays so, rules or not."""
    runner = galaxy.runner("PulsarMQJobRunner")
    rules = [{"condition": "any_failure"}]
    job = sent(galaxy, runner, galaxy.destination("cluster", "mq", rules=rules))
    job.set_final_state(States.OK)
    galaxy.model.context.commit()
    galaxy.message(runner, job, status, {**MEMORY, "attempt": 1})
    assert galaxy.refreshed(job).state == States.OK
    assert runner.work_queue.empty()


@pytest.mark.parametrize("status", ["failed", "lost", "complete"])
def test_a_job_that_runs_elsewhere_now(galaxy: Galaxy, status: str) -> None:
    """A message that comes again once the job is with another runner changes nothing."""
    runner = galaxy.runner("PulsarMQJobRunner")
    job = sent(galaxy, runner, galaxy.destination("here", "local"), resubmitted=1)
    galaxy.message(runner, job, status, MEMORY)
    assert galaxy.refreshed(job).state == States.RUNNING
    assert runner.work_queue.empty()


def test_two_runners_on_one_queue(galaxy: Galaxy) -> None:
    """A message that another runner of the same queue has got is for the job all the same."""
    url = {"amqp_url": "amqp://guest@localhost//one"}
    first = galaxy.runner("PulsarMQJobRunner", "first", **url)
    second = galaxy.runner("PulsarMQJobRunner", "second", **url)
    elsewhere = galaxy.runner(
        "PulsarMQJobRunner", "elsewhere", amqp_url="amqp://guest@localhost//two")
    job = sent(galaxy, first, galaxy.destination("cluster", "first"))
    galaxy.message(elsewhere, job, "failed", MEMORY)
    assert galaxy.refreshed(job).state == States.RUNNING
    galaxy.message(second, job, "failed", MEMORY)
    assert galaxy.refreshed(job).state == States.ERROR


def test_a_failed_job_is_not_killed(galaxy: Galaxy) -> None:
    """A kill on the way could come after the next attempt's submission."""
    runner = galaxy.runner("PulsarMQJobRunner")
    job = sent(galaxy, runner, galaxy.destination("cluster", "mq", rules=[AGAIN]))
    galaxy.message(runner, job, "failed", MEMORY)
    assert [name for name, _ in galaxy.pulsar.messages] == []


def test_a_lost_job_is_killed_unless_it_is_resubmitted(galaxy: Galaxy) -> None:
    """It may still run: as in stock it is killed, where no next attempt can be hit."""
    runner = galaxy.runner("PulsarMQJobRunner")
    rules = [{"condition": "infrastructure_failure"}]
    job = sent(galaxy, runner, galaxy.destination("cluster", "mq", rules=rules))
    galaxy.message(runner, job, "lost", because("lost"))
    assert galaxy.refreshed(job).state == States.RESUBMITTED
    assert galaxy.pulsar.messages == []
    job = sent(galaxy, runner, galaxy.destination("cluster", "mq", rules=rules))
    galaxy.message(runner, job, "lost")
    assert galaxy.refreshed(job).state == States.ERROR
    assert galaxy.pulsar.messages == [("kill", {"job_id": str(job.id)})]


def test_the_end_is_read_from_the_message_that_told_it(galaxy: Galaxy) -> None:
    """A late message of an older attempt in the client's cache is not taken for the result."""
    runner = galaxy.runner("PulsarMQJobRunner")
    job = sent(galaxy, runner, galaxy.destination("cluster", "mq"), resubmitted=1)
    galaxy.message(runner, job, "complete", {"attempt": 2, "returncode": 0})
    galaxy.message(runner, job, "failed", {**MEMORY, "attempt": 1})
    _, state = runner.work_queue.get_nowait()
    told = runner.get_client_from_state(state).full_status()
    assert (told["status"], told["attempt"]) == ("complete", 2)


def test_running_is_told_as_ever(galaxy: Galaxy) -> None:
    """A status that ends nothing does what it does in stock."""
    runner = galaxy.runner("PulsarMQJobRunner")
    destination = galaxy.destination("cluster", "mq")
    job = galaxy.job(destination, state=States.QUEUED)
    galaxy.message(runner, job, "running", {"attempt": 1})
    assert galaxy.refreshed(job).state == States.RUNNING


def test_a_deleted_job_is_not_resubmitted(galaxy: Galaxy) -> None:
    """Rules or not: whom the user deletes does not come back."""
    runner = galaxy.runner("PulsarMQJobRunner")
    rules = [{"condition": "any_failure"}]
    for state in (States.DELETING, States.DELETED):
        job = sent(galaxy, runner, galaxy.destination("cluster", "mq", rules=rules))
        session = galaxy.model.context
        job.state = state
        session.commit()
        galaxy.message(runner, job, "failed", MEMORY)
        assert galaxy.refreshed(job).state == state
        assert "failure_reason" not in galaxy.refreshed(job).destination_params


def test_a_galaxy_that_is_killed_while_it_resubmits(
    galaxy: Galaxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database has the job at the old place until it has it as resubmitted to the new one.

    In between a later Galaxy would take the failure that comes again for one at the new place.
    """
    class Killed(BaseException):
        """The end of the process."""

    def mark_as_resubmitted(*_: Any, **__: Any) -> None:
        raise Killed

    runner = galaxy.runner("PulsarMQJobRunner")
    galaxy.destination("big", "mq")
    job = sent(galaxy, runner, galaxy.destination("cluster", "mq", rules=[TO_BIG]))
    job_id = job.id
    with monkeypatch.context() as patch:
        patch.setattr(Wrapper, "mark_as_resubmitted", mark_as_resubmitted)
        with pytest.raises(Killed):
            galaxy.message(runner, job, "failed", {**MEMORY, "attempt": 1})
    galaxy.model.context.rollback()
    killed = galaxy.refreshed(job_id)
    assert (killed.state, killed.destination_id, killed.job_runner_external_id) == (
        States.RUNNING, "cluster", str(job_id))
    galaxy.message(runner, killed, "failed", {**MEMORY, "attempt": 1})
    job = galaxy.refreshed(job_id)
    assert (job.state, job.destination_id) == (States.RESUBMITTED, "big")
    assert job.job_runner_external_id is None


def test_two_handlers_are_told_of_the_same_end(
    galaxy: Galaxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by a relay: what the faster one has done, and that the job is sent again, stays."""
    runner = galaxy.runner("PulsarMQJobRunner")
    galaxy.destination("big", "mq")
    job = sent(galaxy, runner, galaxy.destination("cluster", "mq", rules=[TO_BIG]))
    look = runner._not_current

    def look_before_the_other_acts(*args: Any, **kwargs: Any) -> Any:
        seen = look(*args, **kwargs)
        monkeypatch.setattr(runner, "_not_current", look)
        table, history = model.Job.__table__, model.JobStateHistory.__table__
        galaxy.model.context.commit()
        with galaxy.model.engine.begin() as other:
            other.execute(history.insert().values(job_id=job.id, state="resubmitted", info=None))
            other.execute(table.update().where(table.c.id == job.id).values(
                state="queued", destination_id="of the other"))
        return seen

    monkeypatch.setattr(runner, "_not_current", look_before_the_other_acts)
    galaxy.message(runner, job, "failed", {**MEMORY, "attempt": 1})
    found = galaxy.refreshed(job)
    assert (found.state, found.destination_id) == (States.QUEUED, "of the other")
    assert not any(wrapper.failures or wrapper.cleared for wrapper in galaxy.wrappers)


def test_a_job_is_locked_while_it_is_resubmitted(
    galaxy: Galaxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its row, in databases that have such locks: another handler's look waits for the commit."""
    runner = galaxy.runner("PulsarMQJobRunner")
    galaxy.destination("big", "mq")
    job = sent(galaxy, runner, galaxy.destination("cluster", "mq", rules=[TO_BIG]))
    refresh, locked = galaxy.model.context.refresh, []

    def note(one: Any, *args: Any, **kwargs: Any) -> None:
        locked.append(bool(kwargs.get("with_for_update")) and one is job)
        refresh(one, *args, **kwargs)

    monkeypatch.setattr(galaxy.model.context, "refresh", note)
    galaxy.message(runner, job, "failed", {**MEMORY, "attempt": 1})
    assert any(locked)
    assert galaxy.refreshed(job).state == States.RESUBMITTED


def test_the_end_comes_before_galaxy_has_noted_the_submission(
    galaxy: Galaxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job stays where its failure has put it; what was sent is over."""
    def queue_job(runner: Any, wrapper: Any) -> None:
        """Stock's, without the files."""
        runner.get_client_from_wrapper(wrapper)
        job = wrapper.get_job()
        if ends:
            galaxy.message(runner, job, "failed", {**MEMORY, "attempt": 1})
        if state == States.RUNNING:  # its next attempt, at the same Pulsar, is faster still
            job.set_state(state)
            galaxy.model.context.commit()
        wrapper.set_job_destination(
            wrapper.job_destination, external_id=str(job.id), flush=True, job=job)

    monkeypatch.setattr(stock.PulsarJobRunner, "queue_job", queue_job)
    runner = galaxy.runner("PulsarMQJobRunner")
    galaxy.destination("big", "mq", native="--mem=99")
    for ends, (state, destination) in (
        (False, (States.QUEUED, "cluster")), (True, (States.RESUBMITTED, "big")),
        (True, (States.RUNNING, "big")),
    ):
        place = galaxy.destination("cluster", "mq", rules=[TO_BIG])
        made = galaxy.job(place, state=States.QUEUED)
        runner.put(galaxy.wrapper(made, place))
        method, wrapper = runner.work_queue.get_nowait()
        method(wrapper)
        job = galaxy.refreshed(made)
        assert (job.state, job.destination_id) == (state, destination)
        assert job.job_runner_external_id == (None if ends else str(job.id))
        assert job.destination_params.get("native") == ("--mem=99" if ends else None)


def test_the_job_is_asked_of_the_database(galaxy: Galaxy) -> None:
    """Another handler has sent it elsewhere, although this session has loaded it before."""
    runner = galaxy.runner("PulsarMQJobRunner")
    job = sent(galaxy, runner, galaxy.destination("cluster", "mq"))
    assert job.job_runner_name == "mq"
    with galaxy.model.engine.begin() as other:
        table = model.Job.__table__
        other.execute(table.update().where(table.c.id == job.id).values(job_runner_name="local"))
    galaxy.message(runner, job, "failed", MEMORY)
    assert galaxy.refreshed(job).state == States.RUNNING


def test_history_is_asked_of_the_database(galaxy: Galaxy) -> None:
    """Another handler's resubmission counts, although this session has loaded the job before."""
    runner = galaxy.runner("PulsarMQJobRunner")
    job = sent(galaxy, runner, galaxy.destination("cluster", "mq"))
    assert job.state_history
    with galaxy.model.engine.begin() as other:
        other.execute(model.JobStateHistory.__table__.insert().values(
            job_id=job.id, state="resubmitted", info=None))
    galaxy.message(runner, job, "failed", {**MEMORY, "attempt": 1})
    assert galaxy.refreshed(job).state == States.RUNNING
