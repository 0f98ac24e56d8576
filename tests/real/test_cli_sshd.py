"""``queued_cli_classified`` over a real sshd, with a simulated Slurm behind it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List

import pytest

from tests.manager.harness import Pulsar, Slurm, own_observers, reason_of
from tests.pulsar_server import wait_until
from tests.real.sshd import PLUGINS, PrivateSshd
from tests.simulated import control

pytestmark = [pytest.mark.real, pytest.mark.slow]

CUT_AFTER = 200
NOISE = "Welcome to login1!\nJOBID ST\n1 CD\nb=0\no=0=0\n"

MakePulsar = Callable[..., Pulsar]


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The folder of a simulated Slurm that only the far side knows."""
    slurm = Slurm(tmp_path_factory.mktemp("ssh") / "slurm")
    yield slurm.state
    control.stop_all(slurm.state)


@pytest.fixture(scope="module")
def running_sshd(make_sshd: Callable[..., PrivateSshd], state: str) -> PrivateSshd:
    """An sshd whose logins find Slurm's commands."""
    path = os.pathsep.join((control.BIN, "/usr/bin", "/bin"))
    return make_sshd(env={**control.environment(state), "PATH": path})


@pytest.fixture
def sshd(running_sshd: PrivateSshd) -> Iterator[PrivateSshd]:
    """The sshd, whose logins do nothing odd at first."""
    running_sshd.plain()
    yield running_sshd
    running_sshd.thaw()
    running_sshd.plain()


@pytest.fixture
def make_pulsar(tmp_path: Path, sshd: PrivateSshd) -> Iterator[MakePulsar]:
    """Start a server: ``make_pulsar("SecureShell", command_timeout=3)``."""
    servers: List[Pulsar] = []

    def make(plugin: str, **options: Any) -> Pulsar:
        manager = {
            "type": "queued_cli_classified", "job_plugin": "Slurm", "command_timeout": 60,
            **sshd.shell_options(plugin), **options,
        }
        servers.append(Pulsar(tmp_path, manager=manager))
        return servers[-1]

    with own_observers():
        try:
            yield make
        finally:
            for server in servers:
                server.shutdown()


def _failed_looks(pulsar: Pulsar, count: int, timeout_s: float = 180) -> None:
    counters = pulsar.observer().counters
    target = counters.failed_passes + count
    wait_until(lambda: counters.failed_passes >= target, timeout_s, f"{count} failed looks")


def _outages(caplog: pytest.LogCaptureFixture) -> List[str]:
    return [r.getMessage() for r in caplog.records if "no usable answer" in r.getMessage()]


@pytest.mark.parametrize("plugin", PLUGINS)
def test_jobs(make_pulsar: MakePulsar, sshd: PrivateSshd, plugin: str) -> None:
    """Jobs go out, their ends come back, through each of Pulsar's shells, whatever a login says."""
    sshd.set_banner(NOISE)
    sshd.set_bashrc(f"printf '{NOISE}'; echo on stderr >&2")
    pulsar = make_pulsar(plugin)
    pulsar.submit("tool", "sh -c 'exit 3'")
    pulsar.submit("limit", "sleep 600", "-t 1")
    tool, limit = pulsar.end("tool", 180), pulsar.end("limit", 180)
    assert (tool["status"], tool["returncode"], reason_of(tool)) == ("complete", 3, None)
    assert (limit["status"], reason_of(limit)) == ("failed", "walltime")


@pytest.mark.parametrize("plugin", ["SecureShell", "ParamikoShell"])
def test_bad_exit_with_good_output(
    make_pulsar: MakePulsar, sshd: PrivateSshd, plugin: str
) -> None:
    """A login whose own exit code is bad, with words behind the answer, is read."""
    sshd.set_wrapper('"$SHELL" -c "$SSH_ORIGINAL_COMMAND"; echo logout; exit 7')
    pulsar = make_pulsar(plugin)
    pulsar.submit("1", "sleep 600", "-t 1")
    assert reason_of(pulsar.end("1", 180)) == "walltime"


def test_one_command_over_the_link_for_all_jobs(
    make_pulsar: MakePulsar, sshd: PrivateSshd
) -> None:
    """A look is one command over ssh, whatever the number of jobs."""
    pulsar = make_pulsar("SecureShell", status_poll_interval=1)
    for number in range(5):
        pulsar.submit(str(number), "sleep 600")
    pulsar.wait_for_looks(1)
    passes, commands = pulsar.observer().counters.passes, len(sshd.commands())
    pulsar.wait_for_looks(3)
    commands = len(sshd.commands()) - commands
    made = pulsar.observer().counters.passes - passes
    assert 2 <= commands <= made + 1  # a look may be under way at either end


@pytest.mark.parametrize("plugin", ["SecureShell", "ParamikoShell"])
def test_cut_in_the_middle_of_a_look(
    make_pulsar: MakePulsar, sshd: PrivateSshd, caplog: pytest.LogCaptureFixture, plugin: str
) -> None:
    """A link that dies in the middle of an answer ends no job, is logged once, and is made anew."""
    pulsar = make_pulsar(plugin, command_timeout=300, missing_grace=0)
    pulsar.submit("1", "sleep 600", "-t 6000")
    pulsar.wait_for("1", "running", timeout_s=180)
    sshd.stall_output(CUT_AFTER)
    sshd.wait_stalled()
    counters = pulsar.observer().counters
    failed = counters.failed_passes
    sshd.plain()  # for the looks to come: this one is stuck
    sshd.cut()
    wait_until(lambda: counters.failed_passes > failed, 180, "the cut look to be given up")
    assert pulsar.status("1") == "running"
    pulsar.wait_for_looks(2)
    assert pulsar.status("1") == "running"
    assert len(_outages(caplog)) == 1
    pulsar.proxy().kill("1")


@pytest.mark.parametrize("plugin", ["SecureShell", "ParamikoShell"])
def test_sshd_down(
    make_pulsar: MakePulsar, sshd: PrivateSshd, caplog: pytest.LogCaptureFixture, plugin: str
) -> None:
    """A host that refuses connections ends no job; stock's look calls the same job complete."""
    pulsar = make_pulsar(plugin, missing_grace=0)
    external_id = pulsar.submit("1", "sleep 600", "-t 6000")
    pulsar.wait_for("1", "running", timeout_s=180)
    sshd.down()
    try:
        _failed_looks(pulsar, 2)
        assert pulsar.manager().get_status("1") == "running"
        if plugin == "SecureShell":  # ParamikoShell's own retries take hours
            assert _stock_says(sshd, plugin, external_id) == "complete"
    finally:
        sshd.up()
    pulsar.wait_for_looks(2)
    assert pulsar.status("1") == "running"
    assert len(_outages(caplog)) == 1
    pulsar.proxy().kill("1")


def _stock_says(sshd: PrivateSshd, plugin: str, external_id: str) -> Any:
    """Return what stock queued_cli's look makes of a job."""
    from pulsar.managers.util.cli import CliInterface, split_params

    options: Dict[str, Any] = {"job_plugin": "Slurm", **sshd.shell_options(plugin)}
    shell, job = CliInterface().get_plugins(*split_params(options))
    answer = shell.execute(job.get_single_status(external_id))
    return job.parse_single_status(answer.stdout, external_id).value


@pytest.mark.parametrize("plugin", ["SecureShell", "ParamikoShell"])
def test_frozen_link(
    make_pulsar: MakePulsar, sshd: PrivateSshd, caplog: pytest.LogCaptureFixture, plugin: str
) -> None:
    """A link that hangs is given up after the timeout, and is used again when it answers."""
    # So long that no look fails before the link is frozen, on a machine that stalls.
    pulsar = make_pulsar(plugin, command_timeout=25, missing_grace=0)
    pulsar.submit("1", "sleep 600", "-t 6000")
    pulsar.wait_for("1", "running", timeout_s=180)
    sshd.freeze()
    _failed_looks(pulsar, 1)
    waited = pulsar.observer().counters.failed_passes
    assert [pulsar.manager().get_status("1") for _ in range(20)] == ["running"] * 20
    # Each look takes the timeout here: had get_status waited for one, there would be 20.
    assert pulsar.observer().counters.failed_passes - waited < 10
    sshd.thaw()
    pulsar.wait_for_looks(2)
    assert pulsar.status("1") == "running"
    assert len(_outages(caplog)) == 1
    assert "did not answer within 25 s" in _outages(caplog)[0]
    pulsar.proxy().kill("1")


@pytest.mark.parametrize("plugin", ["SecureShell", "ParamikoShell"])
def test_command_missing_there(
    make_pulsar: MakePulsar, sshd: PrivateSshd, caplog: pytest.LogCaptureFixture, tmp_path: Path,
    plugin: str,
) -> None:
    """A login without Slurm on its PATH is told from a link that is down."""
    pulsar = make_pulsar(plugin, missing_grace=0)
    pulsar.submit("1", "sleep 600", "-t 6000")
    pulsar.wait_for("1", "running", timeout_s=180)
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare/sh").symlink_to("/bin/sh")
    sshd.set_bashrc(f"PATH={tmp_path}/bare")
    wait_until(lambda: _outages(caplog), 180, "an outage")
    assert "cannot run squeue" in _outages(caplog)[0]
    assert pulsar.status("1") == "running"
    sshd.plain()
    pulsar.wait_for_looks(2)
    pulsar.proxy().kill("1")


def test_cancelled_while_the_link_is_down(
    make_pulsar: MakePulsar, sshd: PrivateSshd, state: str
) -> None:
    """A cancel that does not get through is said again when the link is there."""
    pulsar = make_pulsar("SecureShell")
    external_id = pulsar.submit("1", "sleep 600", "-t 6000")
    pulsar.wait_for("1", "running", timeout_s=180)
    sshd.down()
    try:
        pulsar.proxy().kill("1")
        assert pulsar.status("1") == "cancelled"
    finally:
        sshd.up()
    control.wait_for(state, external_id, "CANCELLED", timeout=180)
