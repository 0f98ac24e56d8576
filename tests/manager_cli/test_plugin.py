"""A job plugin that we do not know works with whatever it can tell."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Iterator, Optional

import pytest
from pulsar.managers.util.cli import job as stock_jobs
from pulsar.managers.util.cli.job import BaseJobExec, job_states

from tests.manager.harness import Pulsar, own_observers, reason_of, running
from tests.pulsar_server import wait_until

DRM = """\
#!/bin/sh
# A DRM of one folder: a job is a file with its state, and perhaps why.
cd FOLDER
case ${0##*/} in
homesub) echo running > 7; echo "$@" > submitted; echo 7; exit;;
esac
case $1 in
status) if [ -e down ]; then echo "no answer from the master" >&2; exit 1; fi
        if [ -e silent ]; then exit 0; fi
        if [ -e $2 ]; then cat $2; else echo "unknown job $2" >&2; exit 2; fi;;
why) cat why;;
kill) echo gone > killed;;
esac
"""


class Homemade(BaseJobExec):
    """A site's own plugin."""

    def job_script_kwargs(self, ofile: str, efile: str, job_name: str) -> Any:
        """Return headers."""
        return {"headers": f"#HOME out={ofile}\n"}

    def submit(self, script_file: str) -> str:
        """Return the command that submits."""
        return f"{self.params['drm']}/homesub {script_file}"

    def delete(self, job_id: str) -> str:
        """Return the command that deletes."""
        return f"{self.params['drm']}/drm kill {job_id}"

    def get_status(self, job_ids: Any = None) -> str:
        """Return a command that nobody asks for."""
        raise AssertionError("asked for all jobs")

    def get_single_status(self, job_id: str) -> str:
        """Return the command for one job."""
        return f"{self.params['drm']}/drm status {job_id}"

    def parse_status(self, status: str, job_ids: Any) -> Any:
        """See get_status."""
        raise AssertionError("asked for all jobs")

    def parse_single_status(self, status: str, job_id: str) -> Any:
        """Return the state, as stock's plugins do it: an empty text is an end."""
        words = {"running": job_states.RUNNING, "waiting": job_states.QUEUED,
                 "killed": job_states.ERROR, "": job_states.OK, "done": job_states.OK}
        return words.get(status.strip())

    def get_failure_reason(self, job_id: str) -> Optional[str]:
        """Return the command that tells why."""
        return f"{self.params['drm']}/drm why {job_id}"

    def parse_failure_reason(self, reason: str, job_id: str) -> Optional[str]:
        """Return Galaxy's token."""
        return reason.strip() or None


@pytest.fixture
def drm(tmp_path: Path) -> Path:
    """The plugin's DRM, in a folder of its own."""
    folder = tmp_path / "drm"
    folder.mkdir()
    (folder / "drm").write_text(DRM.replace("FOLDER", str(folder)))
    (folder / "drm").chmod(0o755)
    (folder / "homesub").symlink_to("drm")
    return folder


@pytest.fixture
def pulsar(tmp_path: Path, drm: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pulsar]:
    """A server whose Pulsar has the plugin among its own, where sites put theirs."""
    folder = tmp_path / "plugins"
    folder.mkdir()
    (folder / "homemade.py").write_text(
        f"from {__name__} import Homemade\n__all__ = ('Homemade',)\n"
    )
    monkeypatch.setattr(stock_jobs, "__path__", [*stock_jobs.__path__, str(folder)])
    monkeypatch.delitem(sys.modules, f"{stock_jobs.__name__}.homemade", raising=False)
    manager = {"type": "queued_cli_classified", "job_plugin": Homemade.__name__,
               "job_drm": str(drm)}
    with own_observers(), running(Pulsar(tmp_path, manager=manager)) as server:
        yield server


def test_it_runs_and_ends(pulsar: Pulsar, drm: Path) -> None:
    """States are the plugin's, the end is judged by them and by the tool's exit code."""
    assert pulsar.submit("1", "true", "-q 'a b'") == "7"
    assert (drm / "submitted").read_text() == f"-q a b {pulsar.directory('1')}/command.sh\n"
    pulsar.wait_for("1", "running")
    (drm / "7").write_text("waiting\n")
    pulsar.wait_for("1", "queued")
    (pulsar.directory("1") / "return_code").write_text("4\n")
    (drm / "7").write_text("done\n")
    payload = pulsar.end("1")
    assert (payload["status"], payload["returncode"], reason_of(payload)) == ("complete", 4, None)


@pytest.mark.parametrize(
    "why, cause, token",
    [
        ("memory_limit_reached", "memory", "memory_limit_reached"),
        ("walltime_reached", "walltime", "walltime_reached"),
        ("", "unknown", "unknown_error"),
        ("bad luck", "unknown", "unknown_error"),
    ],
)
def test_failure_reason(pulsar: Pulsar, drm: Path, why: str, cause: str, token: str) -> None:
    """What ``parse_failure_reason`` says is honoured where it is one of Galaxy's limits."""
    pulsar.submit("1", "true")
    (drm / "why").write_text(why)
    (drm / "7").write_text("killed\n")
    payload = pulsar.end("1")
    assert (payload["status"], reason_of(payload)) == ("failed", cause)
    assert payload["runner_state"] == token


def test_silence_is_no_end(pulsar: Pulsar, drm: Path) -> None:
    """An outage ends no job, though the plugin itself takes silence for an end."""
    pulsar.submit("1", "true")
    pulsar.wait_for("1", "running")
    (drm / "down").touch()
    counters = pulsar.observer().counters
    target = counters.failed_passes + 3
    wait_until(lambda: counters.failed_passes >= target, 60, "failed looks", 0.02)
    assert pulsar.status("1") == "running"
    (drm / "down").unlink()
    (pulsar.directory("1") / "return_code").write_text("0\n")
    (drm / "7").unlink()
    assert pulsar.end("1")["status"] == "complete"


@pytest.mark.parametrize("how", ["silent", "unknown"])
def test_a_job_that_is_gone(pulsar: Pulsar, drm: Path, how: str) -> None:
    """Gone without an exit code is lost after its grace, never complete."""
    pulsar.submit("1", "true")
    pulsar.wait_for("1", "running")
    if how == "silent":
        (drm / "silent").touch()
    else:
        (drm / "7").unlink()
    payload = pulsar.end("1")
    assert (payload["status"], reason_of(payload)) == ("failed", "lost")


def test_a_state_without_a_word(pulsar: Pulsar, drm: Path) -> None:
    """A state that the plugin does not know (None) changes nothing."""
    pulsar.submit("1", "true")
    pulsar.wait_for("1", "running")
    (drm / "7").write_text("hibernating\n")
    pulsar.wait_for_looks(8)
    assert pulsar.status("1") == "running"


def test_cancelled_by_galaxy(pulsar: Pulsar, drm: Path) -> None:
    """The plugin's own command takes a job out of its DRM."""
    pulsar.submit("1", "true")
    pulsar.proxy().kill("1")
    assert pulsar.status("1") == "cancelled"
    assert (drm / "killed").exists()
