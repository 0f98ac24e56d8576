"""LSF, OpenPBS, Torque and Grid Engine, simulated: the same jobs by the same manager, and what
stock ``queued_cli`` says of them."""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Dict, Iterator, List, NamedTuple, Optional

import pytest
from pulsar.managers.util.cli import CliInterface

from tests import simulated
from tests.manager.harness import Pulsar, own_observers, reason_of, running
from tests.pulsar_server import wait_until

from fake_drm import control  # isort: skip

assert simulated.FAKES  # it puts fake_drm on the path

BEGAN = "touch ../began; sleep 600"


class Site(NamedTuple):
    """One DRM: its flavour in the simulation, its job plugin, and options for its submission.

    ``stock_*`` are what stock queued_cli's look returns; it has no plugin for Grid Engine.
    """

    flavour: str
    plugin: str
    walltime: str
    kill: str
    first_id: str
    stock_limit: Optional[str] = None
    stock_cancelled: Optional[str] = None
    stock_suspended: Optional[str] = None
    stock_down: Optional[str] = "complete"
    settings: Dict[str, Any] = {}
    #: What the DRM's own record tells of a job that somebody killed.
    cancelled: str = "cancelled"
    stock: bool = True


SITES = {
    # Stock compares "EXIT\n" with "EXIT".
    "lsf": Site("lsf", "LSF", "-W 1", "bkill", "1"),
    "openpbs": Site(
        "openpbs", "OpenPBS", "-l walltime=60", "qdel", "0.pbs1", "complete", "complete"),
    "torque": Site(
        "torque", "Torque", "-l walltime=60", "qdel", "0.server1", "complete", "complete"),
    "gridengine": Site(
        "sge", "SGE", "-l h_rt=60", "qdel", "1", settings={"accounting_lag": 0},
        cancelled="unknown", stock=False),
}


class Played(NamedTuple):
    """A server with all jobs of one DRM, and the state folder of that."""

    site: Site
    pulsar: Pulsar
    state: str
    ids: Dict[str, str]


@pytest.fixture(scope="module", params=SITES)
def played(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Played]:
    """Each DRM in turn, with its jobs submitted and disturbed."""
    site = SITES[request.param]
    home = tmp_path_factory.mktemp(request.param)
    state = control.create(
        home / "drm", site.flavour, **{"time_scale": 120, "kill_wait": 0.1, **site.settings})
    managers = {"ours": {"type": "queued_cli_classified", "job_plugin": site.plugin}}
    if site.stock:
        managers["stock"] = {"type": "queued_cli", "job_plugin": site.plugin}
    with contextlib.ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        for name, value in control.environment(state).items():
            patch.setenv(name, value)
        stack.callback(control.stop_all, state)
        stack.enter_context(own_observers())
        pulsar = stack.enter_context(running(Pulsar(home, managers=managers)))
        yield Played(site, pulsar, state, _submit(site, pulsar, state))


def _submit(site: Site, pulsar: Pulsar, state: str) -> Dict[str, str]:
    jobs: Dict[str, List[Optional[str]]] = {
        "well": ["true", None],
        "tool_3": ["sh -c 'exit 3'", None],
        "script_7": ["exit 7", None],
        "limit": ["sleep 600", site.walltime],
        "cancelled": [BEGAN, None],
        "suspended": [BEGAN, None],
    }
    ids = {
        name: pulsar.submit(name, command or "", native, manager="ours")
        for name, (command, native) in jobs.items()
    }
    for name in ("cancelled", "suspended"):
        wait_until((pulsar.directory(name) / "began").exists, 60, f"{name} to begin", 0.02)
    done = control.run(state, site.kill, ids["cancelled"], user="root:0")
    assert done.returncode == 0, done
    control.event(state, _number(ids["suspended"]), "suspend")
    return ids


def _number(external_id: str) -> int:
    return int(external_id.partition(".")[0])


def test_ids_are_stored_as_stock_does(played: Played) -> None:
    """The id is what the submit command printed, the server's name with it."""
    assert played.ids["well"] == played.site.first_id


@pytest.mark.parametrize(
    "name, status, cause, token, returncode",
    [
        ("well", "complete", None, None, 0),
        ("tool_3", "complete", None, None, 3),
        ("script_7", "failed", "launch_error", "unknown_error", None),
        ("limit", "failed", "walltime", "walltime_reached", None),
        ("cancelled", "failed", "cancelled", "unknown_error", None),
    ],
)
def test_end(
    played: Played, name: str, status: str, cause: Optional[str], token: Optional[str],
    returncode: Optional[int],
) -> None:
    """The judgement is the same on each DRM."""
    payload = played.pulsar.end(name, manager="ours")
    if name == "cancelled":
        cause = played.site.cancelled
    assert (payload["status"], reason_of(payload)) == (status, cause)
    assert payload.get("runner_state") == token
    assert payload["returncode"] == returncode
    if name == "limit":
        assert "the job's walltime limit is 60 s" in payload["runner_state_message"]


def test_suspended_is_running(played: Played) -> None:
    """A suspended job is running, on every DRM, and stays so."""
    payload = played.pulsar.wait_for("suspended", "running", manager="ours")
    played.pulsar.wait_for_looks(2, "ours")
    assert played.pulsar.status("suspended", manager="ours") == "running"
    assert reason_of(payload) is None


def test_stock_says(played: Played) -> None:
    """Stock calls a killed job complete, or has no word for it at all."""
    site, pulsar = played.site, played.pulsar
    if not site.stock:
        with pytest.raises(ValueError, match="Failed to find job_plugin of type SGE"):
            CliInterface().get_job_interface({"plugin": "SGE"})
        return
    for name in ("limit", "cancelled"):
        pulsar.end(name, manager="ours")
    asked = {
        "limit": site.stock_limit,
        "cancelled": site.stock_cancelled,
        "suspended": site.stock_suspended,
    }
    look = pulsar.manager("stock")._get_status_external
    with ThreadPoolExecutor(len(asked)) as pool:
        told = dict(zip(asked, pool.map(lambda name: look(played.ids[name]), asked)))
    assert told == asked


def test_controller_down(played: Played) -> None:
    """No answer ends nothing; stock calls the running job complete."""
    site, pulsar = played.site, played.pulsar
    counters = pulsar.observer("ours").counters
    target = counters.failed_passes + 2
    control.set_settings(played.state, controller_down=True)
    wait_until(lambda: counters.failed_passes >= target, 60, "two failed looks", 0.02)
    assert pulsar.status("suspended", manager="ours") == "running"
    if site.stock:
        look = pulsar.manager("stock")._get_status_external
        assert look(played.ids["suspended"]) == site.stock_down
    control.set_settings(played.state, controller_down=None)
    pulsar.wait_for_looks(1, "ours")
    assert pulsar.status("suspended", manager="ours") == "running"
    pulsar.proxy("ours").kill("suspended")
    control.wait_for(played.state, _number(played.ids["suspended"]), "ended")
    assert pulsar.status("suspended", manager="ours") == "cancelled"
