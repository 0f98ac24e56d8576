"""The classes: Galaxy's names, loaded as Galaxy loads them, or put into stock's in place."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any, Optional

import pytest
from galaxy.jobs.runners import BaseJobRunner
from galaxy.jobs.runners import pulsar as stock

from pulsar_failure_reasons import galaxy_runners, switch

from .stub import MEMORY, Galaxy, States

ALL = sorted(
    name for name in vars(stock)
    if name.startswith("Pulsar") and name.endswith("JobRunner") and name != "PulsarJobRunner"
)
MIXIN = "FailureReasonsMixin"


def test_every_runner_of_galaxy_has_one() -> None:
    """Galaxy's Pulsar runners are those of the issue, and each has a class of ours."""
    assert ALL == [
        "PulsarCoexecutionJobRunner", "PulsarEmbeddedJobRunner", "PulsarEmbeddedMQJobRunner",
        "PulsarGcpBatchJobRunner", "PulsarKubernetesJobRunner", "PulsarLegacyJobRunner",
        "PulsarMQJobRunner", "PulsarRESTJobRunner", "PulsarTesJobRunner",
    ]


@pytest.mark.parametrize("name", ALL)
def test_loaded_as_galaxy_loads(galaxy: Galaxy, name: str) -> None:
    """`__import__`, getattr, a subclass of Galaxy's base; what stock says of a runner stays."""
    module = __import__("pulsar_failure_reasons.galaxy_runners")
    runner_class = getattr(getattr(module, "galaxy_runners"), name)
    stock_class = getattr(stock, name)
    assert issubclass(runner_class, BaseJobRunner) and issubclass(runner_class, stock_class)
    assert runner_class.runner_name == "PulsarJobRunner"
    assert runner_class.use_mq == stock_class.use_mq and runner_class.poll == stock_class.poll
    assert runner_class.destination_defaults is stock_class.destination_defaults
    runner = runner_class(galaxy, 1, infrastructure_retries="3")
    assert runner.infrastructure_retries == 3


def test_a_parameter_that_galaxy_does_not_know_is_refused(galaxy: Galaxy) -> None:
    """Ours is the only one that is added."""
    with pytest.raises(Exception, match="infrastructure_retry"):
        galaxy.runner(infrastructure_retry="3")


def python(code: str, **env: str) -> str:
    """Return what a new Python of this environment prints; fail unless it exits with 0."""
    environment = {
        k: v for k, v in os.environ.items() if not k.startswith(("PULSAR_FAILURE", "PYTHON"))}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], env={**environment, **env}, timeout=600,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
    assert done.returncode == 0, done.stdout
    return done.stdout


SHOW = """
from galaxy.jobs.runners import pulsar as stock
for name in %r:
    print(name, %r in [c.__name__ for c in getattr(stock, name).__mro__])
""" % (ALL, MIXIN)


def test_put_into_stocks_classes() -> None:
    """With the variable set every stock class has the mixin as soon as Galaxy imports it.

    Our own names beside it have one mixin, not two.
    """
    printed = python(SHOW + """
from pulsar_failure_reasons.galaxy_runners import PulsarEmbeddedMQJobRunner as ours
print([c.__name__ for c in ours.__mro__].count(%r))
""" % MIXIN, PULSAR_FAILURE_REASONS_GALAXY="1")
    assert printed == "".join(f"{name} True\n" for name in ALL) + "1\n"


@pytest.mark.parametrize("value, asked", [
    ("1", True), ("on", True), (" TRUE ", True), ("yes", True),
    ("0", False), ("", False), ("off", False), (None, False),
])
def test_how_it_is_asked_for(
    value: Optional[str], asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By any of the usual words for yes."""
    if value is None:
        monkeypatch.delenv("PULSAR_FAILURE_REASONS_GALAXY", raising=False)
    else:
        monkeypatch.setenv("PULSAR_FAILURE_REASONS_GALAXY", value)
    assert switch.galaxy_opted_in() is asked


def test_without_it_nothing_changes() -> None:
    """Installed and not asked for, stock's classes are stock's, and nothing is printed."""
    assert python(SHOW) == "".join(f"{name} False\n" for name in ALL)


def test_a_package_of_ours_that_is_broken_stops_no_galaxy() -> None:
    """The variable is set and our package cannot be imported: one warning, stock's classes."""
    printed = python(
        "import sys; sys.modules['pulsar_failure_reasons.galaxy_runners'] = None\n" + SHOW,
        PULSAR_FAILURE_REASONS_GALAXY="1")
    warning, *lines = printed.splitlines()
    assert "could not be put into galaxy.jobs.runners.pulsar, Galaxy goes on" in warning
    assert lines == [f"{name} False" for name in ALL]


def test_in_place_it_resubmits(galaxy: Galaxy, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stock class with the mixin in place does what our class does."""
    from pulsar_failure_reasons.galaxy_runners import mixin, opt_in

    class Site(stock.PulsarJobRunner):  # type: ignore[misc, name-defined]
        """A runner as stock's are: a direct subclass of their base."""

        destination_defaults: Any = {}

    opt_in._insert(Site, stock.PulsarJobRunner, mixin.FailureReasonsMixin)
    monkeypatch.setattr(galaxy_runners, "Site", Site, raising=False)
    runner = galaxy.runner("Site", infrastructure_retries=1)
    state = galaxy.watched(runner, galaxy.destination(rules=[{"condition": "any_failure"}]))
    galaxy.poll(runner, state, "failed", MEMORY)
    assert galaxy.refreshed(state.job_wrapper.job_id).state == States.RESUBMITTED
