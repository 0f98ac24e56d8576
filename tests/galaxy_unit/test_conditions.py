"""The names that rules may use, for the jobs of every runner."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Dict

import pytest
from galaxy.jobs.runners import AsynchronousJobState, JobState
from galaxy.jobs.runners.state_handlers import resubmit

from pulsar_failure_reasons.galaxy_runners import conditions

from .stub import MEMORY, WALLTIME, Galaxy, States, because

NAMES = (
    "infrastructure_failure", "node_failure", "preempted", "cancelled_externally",
    "disk_limit_reached", "cpu_time_reached", "launch_error",
)
VALUES = (
    "used_memory_bytes", "requested_memory_bytes", "used_walltime_s", "requested_walltime_s",
)


def fires(galaxy: Galaxy, condition: str, keys: Dict[str, Any]) -> bool:
    """Tell whether a rule with this condition resubmits a job that failed with these keys."""
    runner = galaxy.runner()
    state = galaxy.watched(runner, galaxy.destination(rules=[{"condition": condition}]))
    galaxy.poll(runner, state, "failed", keys)
    return bool(galaxy.refreshed(state.job_wrapper.job_id).state == States.RESUBMITTED)


@pytest.mark.parametrize("cause, true_names", [
    ("node_failure", {"infrastructure_failure", "node_failure"}),
    ("preempted", {"infrastructure_failure", "preempted"}),
    ("lost", {"infrastructure_failure"}),
    ("stage_error", {"infrastructure_failure"}),
    ("cancelled", {"cancelled_externally"}),
    ("disk", {"disk_limit_reached"}),
    ("launch_error", {"launch_error"}),
    ("held", set()),
])
def test_which_names_are_true(galaxy: Galaxy, cause: str, true_names: Any) -> None:
    """Each cause makes its names true and no other; all are unknown errors for Galaxy's own."""
    keys = because(cause)
    true = " and ".join(sorted(true_names) or ["unknown_error"])
    false = " or ".join(sorted(set(NAMES) - true_names))
    assert fires(galaxy, f"unknown_error and {true} and not ({false})", keys)


def test_cpu_time(galaxy: Galaxy) -> None:
    """Galaxy has no token for it: it is a walltime, and a name of ours tells it apart."""
    keys = {**because("cpu_time"), "runner_state": "walltime_reached"}
    keys["failure_reason"]["fault"] = "job"
    assert fires(galaxy, "walltime_reached and cpu_time_reached", keys)
    assert not fires(galaxy, "cpu_time_reached", WALLTIME)


def test_values(galaxy: Galaxy) -> None:
    """Used and requested amounts, in bytes and seconds, and the node."""
    assert fires(
        galaxy, "used_memory_bytes == 1900000000 and requested_memory_bytes == 2000000000 "
        "and used_walltime_s == 61 and requested_walltime_s == 3600 and failed_node == 'n1'",
        MEMORY,
    )
    assert fires(galaxy, "used_memory_bytes * 2 < 4 * 2 ** 30 and failed_node in ['n1']", MEMORY)


@pytest.mark.parametrize("keys", [{}, because("held")], ids=["no_reason", "no_amounts"])
def test_what_is_unknown(galaxy: Galaxy, keys: Dict[str, Any]) -> None:
    """Names are false, amounts 0, the node empty."""
    nothing = " or ".join([*NAMES, *VALUES, "failed_node"])
    assert fires(galaxy, f"not ({nothing})", keys)
    assert fires(galaxy, " and ".join(f"{name} == 0" for name in VALUES), keys)
    assert fires(galaxy, "failed_node == ''", keys)


def test_a_delay(galaxy: Galaxy) -> None:
    """A rule's delay may be made of them."""
    runner = galaxy.runner()
    state = galaxy.watched(runner, galaxy.destination(rules=[
        {"condition": "memory_limit_reached", "delay": "used_walltime_s * 2"}]))
    galaxy.poll(runner, state, "failed", MEMORY)
    params = galaxy.refreshed(state.job_wrapper.job_id).destination_params
    assert params["__resubmit_delay_seconds"] == "122"


@pytest.mark.parametrize("kind", [JobState, AsynchronousJobState])
def test_jobs_of_other_runners(galaxy: Galaxy, kind: Any) -> None:
    """A local or Slurm runner's job has the names too, false, and its own as ever."""
    galaxy.runner()
    destination = galaxy.destination("here", "local", rules=[
        {"condition": "walltime_reached and not infrastructure_failure "
                      "and not cancelled_externally and used_memory_bytes == 0"}])
    job = galaxy.job(destination)
    state = kind(job_wrapper=galaxy.wrapper(job, destination), job_destination=destination)
    state.runner_state = "walltime_reached"
    other_runner = SimpleNamespace(
        sa_session=galaxy.model.context, mark_as_resubmitted=lambda *_, **__: None)
    resubmit.failure(galaxy, other_runner, state)
    assert state.runner_state_handled


@pytest.mark.parametrize("condition, value", [
    ("walltime_reached", False), ("memory_limit_reached", True), ("unknown_error", False),
    ("tool_detected_failure", False), ("any_failure", True), ("any_potential_job_failure", True),
    ("attempt", 1), ("3", 3), ("attempt < 3", True),
])
def test_galaxys_own_names(galaxy: Galaxy, condition: str, value: Any) -> None:
    """They mean what they meant."""
    runner = galaxy.runner()
    state = galaxy.watched(runner, galaxy.destination())
    state.runner_state = "memory_limit_reached"
    assert resubmit._ExpressionContext(state).safe_eval(condition) == value


def test_a_name_that_nobody_knows(galaxy: Galaxy) -> None:
    """A misspelt condition fails the job, as in stock, and it does not hang."""
    runner = galaxy.runner()
    state = galaxy.watched(runner, galaxy.destination(rules=[{"condition": "node_failed"}]))
    galaxy.poll(runner, state, "failed", because("node_failure"))
    assert galaxy.refreshed(state.job_wrapper.job_id).state == States.ERROR


def test_output_that_did_not_come_back(galaxy: Galaxy) -> None:
    """Stock's handler has no words for it and raises a KeyError when a condition matches."""
    runner = galaxy.runner()
    state = galaxy.watched(runner, galaxy.destination(rules=[{"condition": "any_failure"}]))
    state.runner_state = state.runner_states.JOB_OUTPUT_NOT_RETURNED_FROM_CLUSTER
    runner.fail_job(state)
    assert galaxy.refreshed(state.job_wrapper.job_id).state == States.RESUBMITTED


def test_a_later_galaxy_that_has_a_name_itself(galaxy: Galaxy) -> None:
    """Its own meaning counts."""
    class Context:
        """A context of a rule, as a later Galaxy may have it."""

        def __init__(self, job_state: Any) -> None:
            self._job_state, self._lazy_context = job_state, None

        def safe_eval(self, condition: str) -> Any:
            """Look the name up."""
            self._lazy_context = self._lazy_context or {"attempt": 1, "preempted": "its own"}
            return self._lazy_context[condition]

    later = SimpleNamespace(
        __name__="later", _ExpressionContext=Context, JobState=JobState, MESSAGES={})
    conditions.install(later)
    context = later._ExpressionContext(SimpleNamespace())
    assert context.safe_eval("preempted") == "its own"
    assert context.safe_eval("node_failure") is False


def test_a_later_galaxy_without_the_seam(caplog: pytest.LogCaptureFixture) -> None:
    """One warning says that rules do not know the names."""
    conditions.install(SimpleNamespace(__name__="later"))
    (record,) = [r for r in caplog.records if "are not known to its rules" in r.getMessage()]
    assert record.name == "galaxy.pulsar_failure_reasons.conditions"


def test_put_in_once(galaxy: Galaxy) -> None:
    """Several runners in one handler do not pile up contexts."""
    galaxy.runner()
    first = resubmit._ExpressionContext
    galaxy.runner("PulsarMQJobRunner")
    assert resubmit._ExpressionContext is first
