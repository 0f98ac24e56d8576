"""Slurm that is down, slow, or says something odd: no status changes, nobody waits."""

from __future__ import annotations

import logging
from typing import Any, Callable, List

import pytest

from tests.pulsar_server import wait_until
from tests.simulated import control

from .conftest import MakePulsar
from .harness import Pulsar, Slurm, reason_of

UNTIL_GO = "while [ ! -e ../go ]; do sleep 0.1; done"
DOWN = "Unable to contact slurm controller (connect failure)"


def _messages(caplog: pytest.LogCaptureFixture, part: str) -> List[str]:
    return [r.getMessage() for r in caplog.records if part in r.getMessage()]


@pytest.mark.parametrize(
    "down, said",
    [
        ({"delay": 0.2, "text": DOWN}, DOWN),
        ({"delay": 18, "text": DOWN}, "did not answer within 0.5 s"),
        pytest.param(
            {"delay": 59, "text": DOWN}, "did not answer within 0.5 s", marks=pytest.mark.slow),
    ],
)
def test_controller_down(
    make_pulsar: MakePulsar, slurm: Slurm, caplog: pytest.LogCaptureFixture, down: Any, said: str
) -> None:
    """An outage changes no status, delays no request, and is logged once, as is its end."""
    pulsar = make_pulsar(missing_grace=0)
    pulsar.submit("1", UNTIL_GO, "-t 6000")
    pulsar.wait_for("1", "running")
    with pulsar.unseen():
        slurm.set(controller_down=down)
        if "did not answer" in said:
            pulsar.observer().source._commands._timeout_s = 0.5
    failed = pulsar.observer().counters.failed_passes
    wait_until(lambda: pulsar.observer().counters.failed_passes >= failed + 2, 60, "two looks")
    told = pulsar.wait_for_an_answer_during_a_look(lambda: pulsar.manager().get_status("1"))
    assert told == "running"
    (pulsar.directory("1") / "go").touch()
    wait_until((pulsar.directory("1") / "return_code").exists, 60, "the tool to end", 0.02)
    assert pulsar.status("1") == "running"
    assert len(_messages(caplog, "Slurm gave no usable answer")) == 1
    assert said in _messages(caplog, "Slurm gave no usable answer")[0]
    assert _messages(caplog, "answers again") == []
    pulsar.observer().source._commands._timeout_s = 60
    slurm.set(controller_down=None)
    assert pulsar.end("1")["status"] == "complete"
    assert len(_messages(caplog, "Slurm answers again")) == 1
    assert len(_messages(caplog, "Slurm gave no usable answer")) == 1


def test_controller_down_while_a_queued_job_waits(make_pulsar: MakePulsar, slurm: Slurm) -> None:
    """Queued stays queued over an outage, and over a restart of Pulsar in it."""
    pulsar = make_pulsar(missing_grace=0)
    pulsar.submit("1", "true", "--comment=fake:start_delay=600")
    pulsar.wait_for_looks(1)
    slurm.set(controller_down=True)
    pulsar.shutdown()
    again = make_pulsar(missing_grace=0)
    assert again.status("1") == "queued"
    wait_until(lambda: again.observer().counters.failed_passes >= 2, 60, "two looks")
    assert again.status("1") == "queued"


def test_running_stays_running_over_a_restart_in_an_outage(
    make_pulsar: MakePulsar, slurm: Slurm
) -> None:
    """As before, after a restart: running where Pulsar had told so."""
    pulsar = make_pulsar()
    pulsar.submit("1", "sleep 600", "-t 6000")
    pulsar.wait_for("1", "running")
    slurm.set(controller_down=True)
    pulsar.shutdown()
    assert make_pulsar().status("1") == "running"


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("exit 0", id="nothing_and_success"),
        pytest.param("echo 'Welcome to the cluster'", id="a_banner_only"),
        pytest.param("echo JOBID STATE; echo 1 COMPLETED", id="other_columns"),
        pytest.param("echo 'slurm_load_jobs error: Socket timed out'; exit 0", id="error_as_text"),
        pytest.param("head -c 3000 /dev/urandom", id="noise"),
        pytest.param("kill -9 $$", id="killed"),
        pytest.param("exit 127", id="broken"),
        pytest.param(
            'shift 4; echo "$*" | head -c 30; exit 0', id="cut_short"),
    ],
)
def test_unusable_answer(
    make_pulsar: MakePulsar, odd_command: Callable[..., None], script: str,
    caplog: pytest.LogCaptureFixture
) -> None:
    """What cannot be read is no answer: no status changes; logged once."""
    pulsar = make_pulsar(missing_grace=0)
    odd_command("squeue", script)
    pulsar.submit("1", "true")
    wait_until((pulsar.directory("1") / "return_code").exists, 60, "the tool to end", 0.02)
    wait_until(lambda: pulsar.observer().counters.failed_passes >= 2, 60, "two looks")
    assert pulsar.status("1") == "queued"
    assert len(_messages(caplog, "Slurm gave no usable answer")) == 1


def _squeue_that_says(stderr: str) -> str:
    """Return a script: squeue with one more line on stderr."""
    return f'echo "{stderr}" >&2; PATH="${{PATH#*:}}" exec squeue "$@"'


def test_errors_on_stderr_beside_an_answer(
    make_pulsar: MakePulsar, odd_command: Callable[..., None], slurm: Slurm,
    caplog: pytest.LogCaptureFixture
) -> None:
    """A squeue that complains each time, and lists no job, has answered all the same."""
    pulsar = make_pulsar(missing_grace=0.5, accounting="none")
    odd_command("squeue", _squeue_that_says("squeue: error: Ignoring obsolete FastSchedule=1"))
    external_id = pulsar.submit("1", "sleep 600", "-t 6000")
    pulsar.wait_for("1", "running")
    control.forget(slurm.state, external_id)
    assert reason_of(pulsar.end("1")) == "lost"
    assert _messages(caplog, "no usable answer") == []


def test_a_user_that_the_host_does_not_know(
    make_pulsar: MakePulsar, odd_command: Callable[..., None], slurm: Slurm,
    caplog: pytest.LogCaptureFixture
) -> None:
    """Headings, no job and exit code 0 with "Invalid user" (22.05, 24.11) are no answer."""
    pulsar = make_pulsar(missing_grace=0, accounting="none")
    external_id = pulsar.submit("1", "sleep 600", "-t 6000")
    pulsar.wait_for("1", "running")
    odd_command("squeue", _squeue_that_says("squeue: error: Invalid user: galaxy"))
    control.forget(slurm.state, external_id)
    failed = pulsar.observer().counters.failed_passes
    wait_until(lambda: pulsar.observer().counters.failed_passes >= failed + 2, 60, "two looks")
    assert pulsar.status("1") == "running"
    assert "Invalid user" in _messages(caplog, "no usable answer")[0]


def test_banners_with_digits(pulsar: Pulsar, slurm: Slurm) -> None:
    """Site banners around every answer, digits in them, are read past."""
    slurm.set(banner="Welcome to node 7\nJob queue 12: 99 jobs waiting\n12345")
    assert pulsar.submit("1", "sleep 600", "-t 1") == "1"
    assert pulsar.external_id("1") == "1"
    assert reason_of(pulsar.end("1")) == "walltime"


def test_private_data(pulsar: Pulsar, slurm: Slurm) -> None:
    """Under PrivateData our own jobs are seen as always."""
    slurm.set(private_data=True)
    pulsar.submit("1", "sh -c 'exit 4'")
    assert pulsar.end("1")["returncode"] == 4


def test_completing_is_looked_at_again(pulsar: Pulsar, slurm: Slurm) -> None:
    """A job that is COMPLETING keeps its status, and others are not held up by it."""
    slow = pulsar.submit("slow", "true", "--comment=fake:completing=600")
    slurm.wait_for(slow, "COMPLETING")
    pulsar.wait_for_looks(2)
    assert pulsar.status("slow") in ("queued", "running")
    pulsar.submit("quick")
    assert pulsar.end("quick")["status"] == "complete"
    assert pulsar.status("slow") in ("queued", "running")


def test_kill_while_the_controller_is_down(
    make_pulsar: MakePulsar, slurm: Slurm, caplog: pytest.LogCaptureFixture
) -> None:
    """Galaxy cancels while Slurm is down: cancelled at once, taken out of Slurm later."""
    caplog.set_level(logging.INFO, "pulsar.failure_reasons")
    pulsar = make_pulsar()
    external_id = pulsar.submit("1", "sleep 600", "-t 6000")
    pulsar.wait_for("1", "running")
    slurm.set(controller_down=True)
    pulsar.proxy().kill("1")
    assert pulsar.status("1") == "cancelled"
    slurm.set(controller_down=None)
    slurm.wait_for(external_id, "CANCELLED")
    pulsar.wait_for_looks(2)
    payload = pulsar.payload("1")
    assert (payload["status"], reason_of(payload), pulsar.record("1")) == ("cancelled", None, None)


def test_a_cancel_that_is_needed_no_more(make_pulsar: MakePulsar, slurm: Slurm) -> None:
    """The job ended while Slurm was down: its id, soon another job's, is not cancelled."""
    pulsar = make_pulsar()
    external_id = pulsar.submit("1", "sleep 600", "-t 600 --no-requeue")
    pulsar.wait_for("1", "running")
    slurm.set(controller_down=True)
    wait_until(lambda: pulsar.observer().counters.failed_passes, 60, "the outage", 0.02)
    pulsar.proxy().kill("1")
    assert len(slurm.commands("scancel")) == 1
    # A look that began before the cancel says nothing about it: the next one must have failed.
    failed = pulsar.observer().counters.failed_passes
    wait_until(lambda: pulsar.observer().counters.failed_passes > failed + 1, 60, "looks", 0.02)
    control.event(slurm.state, external_id, "node_failure")
    slurm.wait_for(external_id, "NODE_FAIL")
    slurm.set(controller_down=None)
    pulsar.wait_for_looks(3)
    assert len(slurm.commands("scancel")) == 1


def test_a_cancel_that_slurm_refuses_is_no_outage(
    pulsar: Pulsar, slurm: Slurm, odd_command: Callable[..., None],
    caplog: pytest.LogCaptureFixture
) -> None:
    """scancel that fails while squeue answers holds up no job and is logged once."""
    external_id = pulsar.submit("1", "sleep 600", "-t 600")
    pulsar.wait_for("1", "running")
    odd_command("scancel", "echo 'scancel: error: Kill job error: Access denied' >&2; exit 1")
    pulsar.proxy().kill("1")
    pulsar.wait_for_looks(3)
    pulsar.submit("2")
    assert pulsar.end("2")["status"] == "complete"
    assert pulsar.observer().counters.failed_passes == 0
    assert len(_messages(caplog, "asked to cancel jobs, gave no usable answer")) == 1
    odd_command("scancel", None)
    slurm.wait_for(external_id, "CANCELLED")
