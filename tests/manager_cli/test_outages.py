"""A DRM or a shell that is down, slow or says something odd: no status changes, nobody waits."""

from __future__ import annotations

import logging
from typing import Any, Callable, List, Optional

import pytest

from tests.manager.harness import Pulsar, Slurm, reason_of
from tests.pulsar_server import wait_until

from .conftest import MakePulsar

OddCommand = Callable[[str, Optional[str]], None]
DOWN = "Unable to contact slurm controller (connect failure)"


def _messages(caplog: pytest.LogCaptureFixture, part: str) -> List[str]:
    return [r.getMessage() for r in caplog.records if part in r.getMessage()]


def _failed_looks(pulsar: Pulsar, count: int) -> None:
    """Wait until so many more looks were without an answer."""
    counters = pulsar.observer().counters
    target = counters.failed_passes + count
    wait_until(lambda: counters.failed_passes >= target, 60, f"{count} failed looks", 0.02)


@pytest.mark.parametrize(
    "down, said",
    [
        ({"delay": 0.1, "text": DOWN}, DOWN),
        ({"delay": 30, "text": DOWN}, "did not answer within 1 s"),
    ],
    ids=["refused", "hangs"],
)
def test_controller_down(
    make_pulsar: MakePulsar, slurm: Slurm, caplog: pytest.LogCaptureFixture, down: Any, said: str
) -> None:
    """An outage changes no status, delays no request, and is logged once, as is its end."""
    pulsar = make_pulsar(missing_grace=0)
    pulsar.submit("1", "while [ ! -e ../go ]; do sleep 0.1; done", "-t 6000")
    pulsar.wait_for("1", "running")
    with pulsar.unseen():
        slurm.set(controller_down=down)
        if "did not answer" in said:
            pulsar.manager()._link._timeout_s = 1
    _failed_looks(pulsar, 2)
    told = pulsar.wait_for_an_answer_during_a_look(lambda: pulsar.manager().get_status("1"))
    assert told == "running"
    (pulsar.directory("1") / "go").touch()
    wait_until((pulsar.directory("1") / "return_code").exists, 60, "the tool to end", 0.02)
    assert pulsar.status("1") == "running"
    assert len(_messages(caplog, "Slurm gave no usable answer")) == 1
    assert said in _messages(caplog, "Slurm gave no usable answer")[0]
    pulsar.manager()._link._timeout_s = 60
    slurm.set(controller_down=None)
    assert pulsar.end("1")["status"] == "complete"
    assert len(_messages(caplog, "Slurm answers again")) == 1


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("exit 0", id="nothing_and_success"),
        pytest.param("echo 'Welcome to the cluster'", id="a_banner_only"),
        pytest.param("echo JOBID ST; echo 1 CD", id="other_columns"),
        pytest.param("echo 'slurm_load_jobs error: Socket timed out'; exit 0", id="error_as_text"),
        pytest.param("head -c 3000 /dev/urandom", id="noise"),
        pytest.param("kill -9 $$", id="killed"),
        pytest.param("exit 127", id="broken"),
        pytest.param('shift 3; echo "$*" | head -c 30; exit 0', id="cut_short"),
    ],
)
def test_unusable_answer(
    make_pulsar: MakePulsar, odd_command: OddCommand, script: str,
    caplog: pytest.LogCaptureFixture
) -> None:
    """What cannot be read is no answer: no status changes; logged once."""
    pulsar = make_pulsar(missing_grace=0)
    odd_command("squeue", script)
    pulsar.submit("1", "true")
    wait_until((pulsar.directory("1") / "return_code").exists, 60, "the tool to end", 0.02)
    _failed_looks(pulsar, 2)
    assert pulsar.status("1") == "queued"
    assert len(_messages(caplog, "Slurm gave no usable answer")) == 1


def test_banners_with_digits(pulsar: Pulsar, slurm: Slurm) -> None:
    """Site banners around every answer, digits in them, are read past."""
    slurm.set(banner="Welcome to node 7\nJob queue 12: 99 jobs waiting\n12345")
    assert pulsar.submit("1", "sleep 600", "-t 1") == "1"
    assert reason_of(pulsar.end("1")) == "walltime"


def test_words_on_stderr(pulsar: Pulsar, odd_command: OddCommand) -> None:
    """A good answer with a warning beside it and a bad exit code of a wrapper's is read."""
    odd_command("squeue", '$REAL "$@"; echo "lua: warning: module cache is old" >&2')
    pulsar.submit("1", "sleep 600", "-t 1")
    assert reason_of(pulsar.end("1")) == "walltime"


def test_a_job_named_in_latin_1(
    make_pulsar: MakePulsar, slurm: Slurm, odd_command: OddCommand
) -> None:
    """Another job of ours with bytes in its name that are no UTF-8 hides none of Pulsar's."""
    pulsar = make_pulsar()
    odd_command("squeue", r"""$REAL "$@" | LC_ALL=C sed 's/odd_name/Fran\xe7ois/'""")
    pulsar.submit("1", "sleep 600", "-t 1")
    pulsar.submit("2", "sleep 600", "-J odd_name")
    assert reason_of(pulsar.end("1")) == "walltime"


def test_unknown_there_and_in_accounting(
    make_pulsar: MakePulsar, slurm: Slurm
) -> None:
    """A job that nobody knows and that left no exit code is lost, never complete."""
    pulsar = make_pulsar(accounting="none")
    pulsar.submit("1", "kill -9 $$", "--comment=fake:min_job_age=0")
    payload = pulsar.end("1")
    assert (payload["status"], reason_of(payload)) == ("failed", "lost")


def test_one_command_for_all_jobs(make_pulsar: MakePulsar, slurm: Slurm) -> None:
    """A look costs one command, whatever the number of jobs."""
    pulsar = make_pulsar(status_poll_interval=0.5)
    for number in range(12):
        pulsar.submit(str(number), "sleep 600")
    pulsar.wait_for_looks(1)
    passes = pulsar.observer().counters.passes
    commands = len(slurm.commands("squeue"))
    pulsar.wait_for_looks(3)
    made = len(slurm.commands("squeue")) - commands
    # The last look may be under way.
    assert made <= pulsar.observer().counters.passes - passes + 1
    assert slurm.commands("sacct") == []


def test_two_managers_share_a_look(slurm: Slurm, tmp_path: Any) -> None:
    """Managers with the same shell and DRM ask once for both; another shell asks for itself."""
    from tests.manager.harness import own_observers, running

    from .conftest import CLI

    managers = {"a": CLI, "b": CLI, "c": {**CLI, "shell_plugin": "LocalShell", "shell_x": "1"}}
    with own_observers(), running(Pulsar(tmp_path, managers=managers)) as pulsar:
        assert pulsar.observer("a") is pulsar.observer("b")
        assert pulsar.observer("a") is not pulsar.observer("c")


def test_start_line(make_pulsar: MakePulsar, caplog: pytest.LogCaptureFixture) -> None:
    """The log says at the start what the manager talks to, and how."""
    caplog.set_level(logging.INFO, "pulsar.failure_reasons")
    make_pulsar(observe_only=True)
    assert _messages(caplog, "queued_cli_classified submits to Slurm by LocalShell")
