"""``queued_cli_classified`` on a real Grid Engine, by the job plugin that this package adds."""

from __future__ import annotations

from typing import Any, Iterator

import pytest

from tests.manager.harness import Pulsar, own_observers, reason_of, running
from tests.pulsar_server import wait_until
from tests.real.gridengine import PrivateGridEngine

pytestmark = [pytest.mark.real, pytest.mark.slow]

BEGAN = "touch ../began; sleep 600"
TWO_HOGS = (
    "python3 -c 'import time; block = bytes([1]) * 150_000_000; time.sleep(600)' & "
    "python3 -c 'import time; block = bytes([1]) * 150_000_000; time.sleep(600)'"
)


@pytest.fixture(scope="module")
def pulsar(
    real_gridengine: PrivateGridEngine, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pulsar]:
    """A server on the cell."""
    manager = {
        "type": "queued_cli_classified", "job_plugin": "SGE", "status_poll_interval": 0.5,
        "missing_grace": 5, "hold_grace": 2,
    }
    with pytest.MonkeyPatch.context() as patch, own_observers():
        for name, value in real_gridengine.env.items():
            patch.setenv(name, value)
        home = tmp_path_factory.mktemp("gridengine")
        with running(Pulsar(home, manager=manager)) as server:
            yield server
    real_gridengine.delete_all()


def _began(pulsar: Pulsar, name: str) -> str:
    """Wait until the tool has begun; return the external id."""
    wait_until((pulsar.directory(name) / "began").exists, 180, f"{name} to begin")
    pulsar.wait_for(name, "running", timeout_s=180)
    return pulsar.external_id(name) or ""


def _end(pulsar: Pulsar, name: str) -> Any:
    """Return status, cause and the tool's exit code of the job's end."""
    payload = pulsar.end(name, timeout_s=600)
    return payload["status"], reason_of(payload), payload["returncode"]


def test_success(pulsar: Pulsar) -> None:
    """A job that ends well is complete; its id is the number that stock would store."""
    assert pulsar.submit("well", "true").isdigit()
    assert _end(pulsar, "well") == ("complete", None, 0)


def test_tool_exit_3(pulsar: Pulsar) -> None:
    """The tool's exit code is Galaxy's to judge."""
    pulsar.submit("three", "sh -c 'exit 3'")
    assert _end(pulsar, "three") == ("complete", None, 3)


def test_h_rt(pulsar: Pulsar) -> None:
    """h_rt is walltime: failed 37 with a wallclock of the limit."""
    pulsar.submit("h_rt", "sleep 600", "-l h_rt=5")
    assert _end(pulsar, "h_rt") == ("failed", "walltime", None)
    assert "the job's walltime limit is 5 s" in pulsar.payload("h_rt")["runner_state_message"]


def test_s_rt(pulsar: Pulsar) -> None:
    """s_rt is walltime too: SIGUSR1 ends the script."""
    pulsar.submit("s_rt", "sleep 600", "-l s_rt=5")
    status, cause, _ = _end(pulsar, "s_rt")
    assert (status, cause) == ("failed", "walltime")


def test_h_vmem(pulsar: Pulsar) -> None:
    """h_vmem over several processes is memory: the same failed 37, told by maxvmem."""
    pulsar.submit("h_vmem", TWO_HOGS, "-l h_vmem=250M")
    status, cause, _ = _end(pulsar, "h_vmem")
    assert (status, cause) == ("failed", "memory")


def test_qdel(pulsar: Pulsar, real_gridengine: PrivateGridEngine) -> None:
    """A job that is seen being deleted is cancelled, though qacct only tells a kill."""
    pulsar.submit("qdel", BEGAN)
    real_gridengine.qdel(_began(pulsar, "qdel"))
    status, cause, _ = _end(pulsar, "qdel")
    assert status == "failed"
    assert cause in ("cancelled", "unknown")  # where no look fell into its deletion


def test_qdel_force(pulsar: Pulsar, real_gridengine: PrivateGridEngine) -> None:
    """``qdel -f`` by root looks like success to qacct; without a return code it is none."""
    pulsar.submit("force", BEGAN)
    real_gridengine.qdel(_began(pulsar, "force"), force=True)
    status, cause, _ = _end(pulsar, "force")
    assert (status, cause in ("lost", "cancelled")) == ("failed", True)


def test_error_state(pulsar: Pulsar, real_gridengine: PrivateGridEngine) -> None:
    """A job in Eqw is failed with its reason after its grace, and taken out of the queue."""
    external_id = pulsar.submit("folder", "true", "-wd /nonexistent")
    assert _end(pulsar, "folder") == ("failed", "disk", None)
    real_gridengine.wait_gone(external_id)


def test_killed(pulsar: Pulsar) -> None:
    """A script that is killed by nobody knows whom has an unknown cause."""
    pulsar.submit("killed", "kill -9 $$")
    assert _end(pulsar, "killed") == ("failed", "unknown", None)


def test_requeued(pulsar: Pulsar, real_gridengine: PrivateGridEngine) -> None:
    """A job that is run again is not taken for ended by the record of its first run."""
    pulsar.submit(
        "again", "if [ -e ../began ]; then exit 0; fi; " + BEGAN, "-r yes")
    external_id = _began(pulsar, "again")
    real_gridengine.requeue(external_id)
    status, cause, _ = _end(pulsar, "again")
    # The tool's "exit 0" leaves the script before it writes a return code.
    assert (status, cause) == ("failed", "lost")


def test_qmaster_stopped_and_started(
    pulsar: Pulsar, real_gridengine: PrivateGridEngine
) -> None:
    """An outage ends no job; the job that ended in it is told afterwards."""
    pulsar.submit("outage", "touch ../began; until [ -e ../go ]; do sleep 0.2; done")
    external_id = _began(pulsar, "outage")
    counters = pulsar.observer().counters
    real_gridengine.qmaster_stop()
    try:
        target = counters.failed_passes + 3
        wait_until(lambda: counters.failed_passes >= target, 180, "failed looks")
        assert pulsar.status("outage") == "running"
        (pulsar.directory("outage") / "go").touch()
        real_gridengine.wait_ended(external_id)
    finally:
        real_gridengine.qmaster_start()
    assert _end(pulsar, "outage") == ("complete", None, 0)


def test_cancelled_by_galaxy(pulsar: Pulsar, real_gridengine: PrivateGridEngine) -> None:
    """Galaxy's cancel takes the job out."""
    pulsar.submit("galaxy", BEGAN)
    external_id = _began(pulsar, "galaxy")
    pulsar.proxy().kill("galaxy")
    real_gridengine.wait_gone(external_id)
    assert pulsar.status("galaxy") == "cancelled"
