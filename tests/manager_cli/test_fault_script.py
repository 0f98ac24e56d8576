"""One fault script, played to stock ``queued_cli`` and to ours at once, over ssh.

Both managers of one server watch jobs of the same Slurm through the same ``SecureShell``; each step
says what happens and what each of the two then tells of a job.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional

import pytest

from tests.manager.harness import Pulsar, Slurm, own_observers, reason_of, running
from tests.pulsar_server import wait_until
from tests.simulated import control

from .conftest import CLI

BEGAN = "touch ../began; sleep 600"
OVER_SSH = {
    "shell_plugin": "SecureShell", "shell_username": "galaxy", "shell_hostname": "login1",
}
#: Gives its last argument to the login shell, as sshd does, while the link is not cut.
SSH = """#!/bin/sh
for command; do :; done
if [ -e "{cut}" ]; then
  echo "ssh: connect to host login1 port 22: Connection refused" >&2
  exit 255
fi
exec sh -c "$command"
"""


class Site:
    """The server, its Slurm, and the link between them."""

    def __init__(self, home: Path, slurm: Slurm, pulsar: Pulsar) -> None:
        self.slurm, self.pulsar = slurm, pulsar
        self.cut = home / "cut"
        self.ids: Dict[str, str] = {}

    def submit(self, name: str, command: str, native: str) -> None:
        """Submit a job by ours; stock's look at it needs the id alone."""
        self.ids[name] = self.pulsar.submit(name, command, native, manager="ours")

    def stock_says(self, name: str) -> Optional[str]:
        """Return what stock's look returns of a job."""
        look = self.pulsar.manager("stock")._get_status_external
        told: Optional[str] = look(self.ids[name])
        return told

    def ours_says(self, name: str) -> List[Optional[str]]:
        """Return status, cause and token that Galaxy is told by ours now."""
        payload = self.pulsar.payload(name, manager="ours")
        return [payload["status"], reason_of(payload), payload.get("runner_state")]

    def wait_for_failed_looks(self) -> None:
        """Wait until ours has looked twice without an answer."""
        counters = self.pulsar.observer("ours").counters
        target = counters.failed_passes + 2
        wait_until(lambda: counters.failed_passes >= target, 60, "two failed looks", 0.02)

    def wait_for_looks(self) -> None:
        """Wait until ours has had two answers more."""
        counters = self.pulsar.observer("ours").counters
        good = counters.passes - counters.failed_passes + 2
        wait_until(
            lambda: counters.passes - counters.failed_passes >= good, 60, "two looks", 0.02)

    def wait_for_end(self, name: str) -> None:
        """Wait until ours has made up its mind."""
        self.pulsar.end(name, manager="ours")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Both managers, and a job that lives through the whole script."""
    home = tmp_path_factory.mktemp("faults")
    (home / "bin").mkdir()
    (home / "bin" / "ssh").write_text(SSH.format(cut=home / "cut"))
    (home / "bin" / "ssh").chmod(0o755)
    stock = {"type": "queued_cli", "job_plugin": "Slurm", **OVER_SSH}
    managers = {"ours": {**CLI, **OVER_SSH}, "stock": stock}
    with Slurm(home / "slurm").in_use() as slurm, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}")
        with own_observers(), running(Pulsar(home, managers=managers)) as pulsar:
            site = Site(home, slurm, pulsar)
            site.submit("lives", BEGAN, "-t 6000")
            pulsar.wait_for("lives", "running", manager="ours")
            wait_until((pulsar.directory("lives") / "began").exists, 60, "it to begin", 0.02)
            yield site


def _ssh_dies(site: Site) -> None:
    site.cut.touch()
    site.wait_for_failed_looks()


def _ssh_is_back(site: Site) -> None:
    site.cut.unlink()
    site.wait_for_looks()


def _controller_down(site: Site) -> None:
    site.slurm.set(controller_down=True)
    site.wait_for_failed_looks()


def _controller_back(site: Site) -> None:
    site.slurm.set(controller_down=None)
    site.wait_for_looks()


def _timeout(site: Site) -> None:
    site.submit("timeout", "sleep 600", "-t 1")
    site.wait_for_end("timeout")


def _aged_out(site: Site) -> None:
    site.submit("aged_out", "kill -9 $$", "-t 6000 --comment=fake:min_job_age=0")
    site.wait_for_end("aged_out")


def _suspended(site: Site) -> None:
    control.event(site.slurm.state, site.ids["lives"], "suspend")
    site.slurm.wait_for(site.ids["lives"], "SUSPENDED")
    site.wait_for_looks()


def _resumed(site: Site) -> None:
    control.event(site.slurm.state, site.ids["lives"], "resume")
    site.slurm.wait_for(site.ids["lives"], "RUNNING")
    site.wait_for_looks()


class Step(NamedTuple):
    """What happens, to which job, and what stock's look and ours then say of it."""

    name: str
    happens: Callable[[Site], None]
    job: str
    stock: Optional[str]
    ours: List[Optional[str]]


RUNNING: List[Optional[str]] = ["running", None, None]
SCRIPT = (
    Step("ssh dies", _ssh_dies, "lives", "complete", RUNNING),
    Step("ssh is back", _ssh_is_back, "lives", "running", RUNNING),
    Step("controller down", _controller_down, "lives", "complete", RUNNING),
    Step("controller back", _controller_back, "lives", "running", RUNNING),
    Step("TIMEOUT", _timeout, "timeout", "complete", ["failed", "walltime", "walltime_reached"]),
    Step("aged out", _aged_out, "aged_out", "complete", ["failed", "unknown", "unknown_error"]),
    # Stock's plugin has no word for S; get_status then returns None, which is none of Pulsar's.
    Step("suspended", _suspended, "lives", None, RUNNING),
    Step("resumed", _resumed, "lives", "running", RUNNING),
)


def test_fault_script(site: Site) -> None:
    """Stock calls a job complete that runs, was killed or is unreachable; ours tells each."""
    told: Dict[str, Any] = {}
    for step in SCRIPT:
        step.happens(site)
        told[step.name] = (site.stock_says(step.job), site.ours_says(step.job))
    assert told == {step.name: (step.stock, step.ours) for step in SCRIPT}
