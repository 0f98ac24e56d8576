"""Conditions of resubmit rules: what Galaxy evaluates, which names, when they are true."""

from __future__ import annotations

from typing import Optional

import pytest

from pulsar_failure_reasons.check.conditions import (
    cancelled_situations,
    is_true_in,
    names_in,
    situations,
    unknown_names,
    why_no_condition,
)
from pulsar_failure_reasons.check.galaxy_source import (
    GALAXY_NAMES,
    condition_names,
    reads_destination,
)


@pytest.mark.parametrize(
    "text",
    [
        "walltime_reached", "memory_limit_reached and attempt <= 3", "not walltime_reached",
        "(any_failure or unknown_error) and seconds_running > 60 * 60", "attempt * 30", "30",
        "min(attempt, 3) * 60", "attempt in [1, 2]", "attempt is not None",
        "failed_node == 'node7'",
    ],
)
def test_what_galaxy_evaluates(text: str) -> None:
    """Names, numbers, comparisons, arithmetic and its functions."""
    assert why_no_condition(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "walltime_reached &&  attempt", "attempt = 1", "", "attempt > -1", "1 if attempt else 2",
        "(lambda: 1)()", "attempt // 2", "{1: 2}", "f'{attempt}'",
    ],
)
def test_what_galaxy_does_not_evaluate(text: str) -> None:
    """What its _safe_eval of 26.1.2 refuses, tried there."""
    assert why_no_condition(text)


def test_names() -> None:
    """Names come in their order, without functions."""
    assert names_in("min(attempt, 3) > 1 and walltime_reached or attempt") == [
        "attempt", "walltime_reached"]
    assert unknown_names("waltime_reached or attempt", GALAXY_NAMES) == ["waltime_reached"]


@pytest.mark.parametrize(
    "text, ours, expected",
    [
        ("walltime_reached", False, True),
        ("walltime_reached and memory_limit_reached", True, False),
        ("attempt < 1", True, False),
        ("attempt == 3", False, True),
        ("attempt <= 3 and unknown_error and not cancelled_externally", True, True),
        ("node_failure", True, True),
        ("node_failure", False, False),
        ("node_failure and walltime_reached", True, False),
        ("cpu_time_reached and walltime_reached", True, True),
        ("infrastructure_failure and preempted", True, True),
        ("seconds_running > 7200", False, True),
        ("failed_node == 'node1' and attempt < 3", True, True),
        ("failed_node > 3", True, False),
        ("max(attempt, 3) > 5", True, None),
        # Values that only the condition itself knows.
        ("memory_limit_reached and requested_memory_bytes > 8589934592", True, True),
        ("memory_limit_reached and requested_memory_bytes < 8 * 1024 * 1024 * 1024", True, True),
        ("used_memory_bytes == 3 * 1000 and memory_limit_reached", True, True),
        ("walltime_reached and requested_walltime_s > 86400 and attempt < 3", True, True),
        ("walltime_reached and requested_walltime_s > 86400", False, False),
        ("memory_limit_reached and used_memory_bytes > requested_memory_bytes", True, True),
        ("infrastructure_failure and failed_node == 'node7'", True, True),
        ("walltime_reached and failed_node in ['big1', 'big2']", True, True),
        ("disk_limit_reached and attempt == 7", True, True),
        ("unknown_error and seconds_running > 5000000", False, True),
        ("seconds_since_queued < 0", True, False),
        ("attempt < 2.5 and attempt > 2.2", True, False),
        # Lost jobs and failed transfers.
        ("infrastructure_failure and not node_failure and not preempted", True, True),
        ("infrastructure_failure and launch_error", True, False),
        # Arithmetic with names: tried, and where nothing is found nothing is claimed.
        ("used_memory_bytes / 1024 > 8 and memory_limit_reached", True, True),
        ("used_memory_bytes / 7 == 8", True, None),
        ("used_memory_bytes < 1 / 0", True, False),
        ("walltime_reached and used_memory_bytes < 1e999", True, True),
    ],
)
def test_when_it_is_true(text: str, ours: bool, expected: Optional[bool]) -> None:
    """Conditions that exclude each other are true nowhere; calls are not tried."""
    assert is_true_in(text, situations(ours)) is expected


@pytest.mark.parametrize(
    "text, expected",
    [
        ("unknown_error", True), ("any_failure", True), ("cancelled_externally", True),
        ("unknown_error and not cancelled_externally", False), ("walltime_reached", False),
        ("unknown_error and attempt <= 5", True), ("infrastructure_failure", False),
    ],
)
def test_cancelled_jobs(text: str, expected: bool) -> None:
    """Which conditions rerun a job that an administrator cancelled."""
    assert is_true_in(text, cancelled_situations()) is expected


# The shape of galaxy/jobs/runners/state_handlers/resubmit.py.
HANDLER = """
def failure(resubmit, state):
    target = resubmit.get("environment") {destination}
    context = {{"walltime_reached": state == 1, "any_failure": True, "attempt": 1, "new_name": 0}}
"""


def test_galaxys_source() -> None:
    """The names and the target's key are read from the handler's source."""
    both = HANDLER.format(destination='or resubmit.get("destination")')
    one = HANDLER.format(destination="")
    assert condition_names(one) == {"walltime_reached", "any_failure", "attempt", "new_name"}
    assert (reads_destination(both), reads_destination(one)) == (True, False)
    assert condition_names("x = {'attempt': 1}") == frozenset()
