"""A server is killed between the submission and Pulsar's own record of it, for each DRM.

The job is in no index of Pulsar's then (a REST job never is before its launch has ended), so stock
shows it as preprocessing for ever.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Optional

import pytest

from tests import simulated
from tests.manager.harness import Pulsar, own_observers, reason_of
from tests.pulsar_server import wait_until

from fake_drm import control  # isort: skip

assert simulated.FAKES  # it puts fake_drm on the path

MARK = "failure_reasons_launch"
BEGAN = "touch ../began; sleep 600"


class Site(NamedTuple):
    """A DRM, its job plugin, and the command that submits."""

    flavour: str
    plugin: str
    submit: str


SITES = {
    "slurm": Site("slurm", "Slurm", "sbatch"),
    "lsf": Site("lsf", "LSF", "bsub"),
    "openpbs": Site("openpbs", "OpenPBS", "qsub"),
    "torque": Site("torque", "Torque", "qsub"),
    "gridengine": Site("sge", "SGE", "qsub"),
}


class Killed:
    """Servers, one after the other, on the same folders and DRM."""

    def __init__(self, site: Site, home: Path, state: str) -> None:
        self.site, self.home, self.state = site, home, state
        self.servers: List[Pulsar] = []

    def of_another(self, home: Path) -> Killed:
        """Return another's servers on the same DRM; they end with ours."""
        other = Killed(self.site, home, self.state)
        other.servers = self.servers
        return other

    def start(self, **options: Any) -> Pulsar:
        """Start a server."""
        manager = {"type": "queued_cli_classified", "job_plugin": self.site.plugin, **options}
        self.servers.append(Pulsar(self.home, manager=manager))
        return self.servers[-1]

    def submissions(self) -> int:
        """Return how many jobs were submitted to the DRM."""
        return len(control.commands(self.state, self.site.submit))

    def kill_in_launch(self, pulsar: Pulsar, job_id: str, *forgotten: str) -> None:
        """Leave the job as a kill leaves it that comes before the launch is noted."""
        pulsar.shutdown()
        for name in ("preprocessed", *forgotten):
            (pulsar.directory(job_id) / name).unlink()
        pulsar.proxy().active_jobs.deactivate_job(job_id)

    def indexed(self, pulsar: Pulsar) -> List[str]:
        """Return the jobs that Pulsar itself would look after from now on."""
        return list(pulsar.proxy().active_jobs.active_job_ids())


def _site(site: Site, home: Path) -> Iterator[Killed]:
    if site.flavour == "slurm":
        state = simulated.control.create(home / "drm", time_scale=120, kill_wait=0.1)
        environment = simulated.control.environment(state)
    else:
        state = control.create(
            home / "drm", site.flavour, time_scale=120, kill_wait=0.1, accounting_lag=0)
        environment = control.environment(state)
    with contextlib.ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        for name, value in environment.items():
            patch.setenv(name, value)
        stack.callback(control.stop_all, state)
        stack.enter_context(own_observers())
        killed = Killed(site, home, state)
        yield killed
        for server in killed.servers:
            server.shutdown()


@pytest.fixture(params=SITES)
def killed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Killed]:
    """Each DRM in turn."""
    yield from _site(SITES[request.param], tmp_path)


@pytest.fixture
def slurm(tmp_path: Path) -> Iterator[Killed]:
    """Slurm, for what is the same with every DRM."""
    yield from _site(SITES["slurm"], tmp_path)


def _began(pulsar: Pulsar, job_id: str) -> None:
    wait_until((pulsar.directory(job_id) / "began").exists, 60, f"{job_id} to begin", 0.02)


def test_job_is_found_again(killed: Killed) -> None:
    """Its id was not stored yet: found by its name and where it works, not submitted again."""
    first = killed.start()
    external_id = first.submit("1", BEGAN)
    _began(first, "1")
    killed.kill_in_launch(first, "1", "external_id")
    assert (first.directory("1") / MARK).exists()
    again = killed.start()
    payload = again.wait_for("1", "running")
    assert (again.external_id("1"), reason_of(payload)) == (external_id, None)
    assert killed.submissions() == 1
    assert killed.indexed(again) == ["1"]
    assert not (again.directory("1") / MARK).exists()
    again.proxy().kill("1")
    assert again.status("1") == "cancelled"


def test_two_jobs_of_the_name(killed: Killed) -> None:
    """Two servers of one user: ours is told from theirs by where it works."""
    theirs = killed.of_another(killed.home / "other").start()
    their_id = theirs.submit("1", BEGAN)
    first = killed.start()
    external_id = first.submit("1", BEGAN)
    for server in (theirs, first):
        _began(server, "1")
    killed.kill_in_launch(first, "1", "external_id")
    again = killed.start()
    again.wait_for("1", "running")
    assert again.external_id("1") == external_id != their_id
    again.proxy().kill("1")
    assert theirs.wait_for("1", "running")["status"] == "running"
    theirs.proxy().kill("1")


def test_job_of_another_server_is_left_alone(killed: Killed) -> None:
    """A job of the same name that works elsewhere is not taken for ours, nor cancelled."""
    first = killed.of_another(killed.home / "other").start()
    theirs = first.submit("1", BEGAN)
    _began(first, "1")
    ours = killed.start(missing_grace=0.3)
    (ours.staging / "1" / "metadata").mkdir(parents=True)
    for name in ("launch_config", "command.sh", "tool_id", "tool_version"):
        source = first.directory("1") / name
        (ours.staging / "1" / name).write_bytes(source.read_bytes())
    (ours.staging / "1" / MARK).write_text(json.dumps({"manager": "_default_"}))
    ours.shutdown()
    again = killed.start(missing_grace=0.3)
    payload = again.end("1")
    assert (payload["status"], reason_of(payload)) == ("failed", "lost")
    assert "Pulsar was killed while it submitted the job" in payload["runner_state_message"]
    assert first.external_id("1") == theirs
    assert first.wait_for("1", "running")["status"] == "running"
    first.proxy().kill("1")


@pytest.mark.parametrize("command, code", [("sh -c 'exit 3'", 3), ("true", 0)])
def test_id_was_stored(slurm: Killed, command: str, code: int) -> None:
    """The id tells all: the job is judged as any other."""
    first = slurm.start()
    first.submit("1", command)
    wait_until((first.directory("1") / "return_code").exists, 60, "its end", 0.02)
    slurm.kill_in_launch(first, "1")
    payload = slurm.start().end("1")
    assert (payload["status"], payload["returncode"]) == ("complete", code)
    assert slurm.submissions() == 1


def test_ended_and_forgotten_meanwhile(slurm: Killed) -> None:
    """Nobody knows its id nor its name any more, but it left an exit code."""
    first = slurm.start()
    first.submit("1", "sh -c 'exit 4'", "--comment=fake:min_job_age=0")
    wait_until((first.directory("1") / "return_code").exists, 60, "its end", 0.02)
    simulated.control.forget_all(slurm.state)
    slurm.kill_in_launch(first, "1", "external_id")
    payload = slurm.start().end("1")
    assert (payload["status"], payload["returncode"]) == ("complete", 4)


def test_never_submitted(slurm: Killed) -> None:
    """No job of its name after the grace: it ends, and the message says how it came to that."""
    first = slurm.start()
    external_id = first.submit("1", "sleep 600", "--comment=fake:start_delay=600")
    slurm.kill_in_launch(first, "1", "external_id")
    simulated.control.forget(slurm.state, external_id)
    again = slurm.start()
    assert again.status("1") == "preprocessing"
    payload = again.end("1")
    assert (payload["status"], reason_of(payload)) == ("failed", "lost")
    assert payload["runner_state_message"] == (
        "the job was lost: Pulsar was killed while it submitted the job, and Slurm knows no job of "
        "its name; it left no exit code (Slurm, no job id known)")
    assert slurm.submissions() == 1


def test_slurm_is_down_at_the_start(slurm: Killed) -> None:
    """Without an answer nothing is concluded: Galaxy may launch the job again."""
    first = slurm.start()
    external_id = first.submit("1", BEGAN)
    _began(first, "1")
    slurm.kill_in_launch(first, "1", "external_id")
    simulated.control.set_settings(slurm.state, controller_down=True)
    again = slurm.start(missing_grace=0)
    wait_until(lambda: again.observer().counters.failed_passes >= 2, 60, "two looks", 0.02)
    assert again.status("1") == "preprocessing"
    simulated.control.set_settings(slurm.state, controller_down=None)
    again.wait_for("1", "running")
    assert again.external_id("1") == external_id


def test_cancelled_by_galaxy_meanwhile(slurm: Killed) -> None:
    """Galaxy cancels before the job is found: it is killed as soon as it is."""
    first = slurm.start()
    external_id = first.submit("1", BEGAN)
    _began(first, "1")
    slurm.kill_in_launch(first, "1", "external_id")
    (first.directory("1") / "cancelled").write_text("true")
    slurm.start()
    simulated.control.wait_for(slurm.state, external_id, "CANCELLED", timeout=20)


def test_named_by_its_options(slurm: Killed) -> None:
    """A job that its native specification names is found by where it works alone."""
    first = slurm.start()
    external_id = first.submit("1", BEGAN, "-J hamlet")
    _began(first, "1")
    slurm.kill_in_launch(first, "1", "external_id")
    again = slurm.start()
    again.wait_for("1", "running")
    assert again.external_id("1") == external_id


def test_launch_under_way_is_left_alone(slurm: Killed) -> None:
    """The mark of a launch that another process of the server is making is locked."""
    first = slurm.start()
    first.submit("1", BEGAN)
    slurm.kill_in_launch(first, "1")
    mark = first.directory("1") / MARK
    with open(mark, "r+") as stream:
        fcntl.flock(stream.fileno(), fcntl.LOCK_EX)
        again = slurm.start()
        again.submit("2", "true")
        assert again.end("2")["status"] == "complete"
        assert again.status("1") == "preprocessing"
    assert slurm.start().wait_for("1", "running")["status"] == "running"


@pytest.mark.parametrize(
    "told",
    [None, "", "{", json.dumps({"manager": "other"}), json.dumps(["manager"])],
    ids=["absent", "empty", "damaged", "of another manager", "no mark of ours"],
)
def test_other_directories_are_left_alone(slurm: Killed, told: Optional[str]) -> None:
    """Several managers share a staging folder: each takes up its own launches."""
    first = slurm.start()
    first.submit("1", BEGAN)
    _began(first, "1")
    slurm.kill_in_launch(first, "1")
    mark = first.directory("1") / MARK
    mark.unlink()
    if told is not None:
        mark.write_text(told)
    before = _contents(first.directory("1"))
    again = slurm.start()
    again.submit("2", "true")
    assert again.end("2")["status"] == "complete"
    assert again.status("1") == "preprocessing"
    assert _contents(first.directory("1")) == before


def _contents(folder: Path) -> Dict[str, bytes]:
    return {
        str(path): path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()
    }


def test_marks_do_not_stay(slurm: Killed) -> None:
    """Once Pulsar asks for the job the mark has done its work; a refusal needs none."""
    pulsar = slurm.start()
    pulsar.submit("1", "true")
    assert os.path.exists(pulsar.directory("1") / MARK)
    pulsar.end("1")
    assert not os.path.exists(pulsar.directory("1") / MARK)
    pulsar.submit("2", "true", "--partition=nosuch")
    assert not os.path.exists(pulsar.directory("2") / MARK)
