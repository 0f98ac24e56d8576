"""The command ``reconcile``: what it says, that it changes nothing, and what Pulsar makes of it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

import pytest
import yaml

from pulsar_failure_reasons.cli import main
from tests.manager.harness import QUICK, Pulsar, Slurm, own_observers, reason_of, running
from tests.manager_htcondor.harness import QUICK as CONDOR
from tests.manager_htcondor.harness import Pool
from tests.manager_htcondor.harness import Pulsar as HTCondorPulsar
from tests.pulsar_server import wait_until
from tests.simulated import control

BEGAN = "touch ../began; sleep 600"
FORGOTTEN = "--comment=fake:min_job_age=0"
CLI = {**QUICK, "type": "queued_cli_classified", "job_plugin": "Slurm"}


class Told(NamedTuple):
    """What the command left: exit code, lines of stdout, stderr."""

    code: int
    lines: List[str]
    err: str


class Site:
    """A Pulsar that can be stopped and started, and its app.yml."""

    def __init__(
        self, home: Path, slurm: Any, managers: Dict[str, Any], **app: Any
    ) -> None:
        self.home, self.slurm = home, slurm
        self._app: Dict[str, Any] = {"managers": managers, **app}
        self.app_yml = home / "app.yml"
        self.app_yml.write_text(yaml.safe_dump({
            "staging_directory": str(home / "staging"),
            "persistence_directory": str(home / "persisted"),
            **self._app,
        }))
        self.servers: List[Pulsar] = []

    def start(self) -> Pulsar:
        """Start a server."""
        app = dict(self._app)
        if "job_managers_config" in app:
            app["managers"] = {}
        self.servers.append(Pulsar(self.home, **app))
        return self.servers[-1]

    def contents(self) -> Dict[str, Tuple[bytes, float]]:
        """Return every file and folder, with contents and time of change."""
        found = {}
        for folder in ("staging", "persisted"):
            for path in sorted((self.home / folder).rglob("*")):
                data = path.read_bytes() if path.is_file() else b""
                found[str(path)] = (data, path.lstat().st_mtime)
        return found


@pytest.fixture
def make_site(tmp_path: Path) -> Iterator[Callable[..., Site]]:
    """Make a site with a simulated Slurm: ``make_site({"_default_": {...}})``."""
    with contextlib.ExitStack() as stack:
        slurm = stack.enter_context(Slurm(tmp_path / "slurm").in_use())
        stack.enter_context(own_observers())
        sites: List[Site] = []

        def make(managers: Optional[Dict[str, Any]] = None, **app: Any) -> Site:
            sites.append(Site(tmp_path, slurm, managers or {"_default_": QUICK}, **app))
            return sites[-1]

        yield make
        for site in sites:
            for server in site.servers:
                server.shutdown()


@pytest.fixture
def reconcile(capsys: pytest.CaptureFixture[str]) -> Callable[..., Told]:
    """Run the command on a site, as an administrator does: in a process without a server."""

    def run(site: Site, *options: str) -> Told:
        with own_observers():
            code = main(["reconcile", str(site.app_yml), *options])
        captured = capsys.readouterr()
        return Told(code, captured.out.splitlines(), captured.err)

    return run


Reconcile = Callable[..., Told]
MakeSite = Callable[..., Site]


def _play(site: Site, manager: str = "_default_") -> Dict[str, str]:
    """Have jobs run, stop Pulsar, and let the DRM forget most of them; return their ids."""
    pulsar = site.start()
    ids = {
        "runs": pulsar.submit("runs", BEGAN, "-t 6000", manager),
        "ran": pulsar.submit("ran", BEGAN, "-t 6000", manager),
        "waited": pulsar.submit("waited", BEGAN, "--comment=fake:start_delay=600", manager),
        "well": pulsar.submit("well", "sh -c 'exit 3'", FORGOTTEN, manager),
        "limit": pulsar.submit("limit", "sleep 600", "-t 1", manager),
    }
    for name in ("runs", "ran"):
        pulsar.wait_for(name, "running", manager=manager)
        wait_until((pulsar.directory(name) / "began").exists, 60, f"{name} to begin", 0.02)
    wait_until((pulsar.directory("well") / "return_code").exists, 60, "well to end", 0.02)
    pulsar.shutdown()
    site.slurm.wait_for(ids["limit"], "TIMEOUT")
    site.slurm.set(accounting="off")
    for name in ("ran", "waited", "well"):
        control.forget(site.slurm.state, ids[name])
    return ids


@pytest.mark.parametrize("manager", [QUICK, CLI], ids=["queued_slurm", "queued_cli_classified"])
def test_what_would_change(
    make_site: MakeSite, reconcile: Reconcile, manager: Dict[str, Any]
) -> None:
    """One line a job that would change; not a byte of the folders does."""
    site = make_site({"_default_": manager})
    ids = _play(site)
    before = site.contents()
    told = reconcile(site)
    assert site.contents() == before
    assert told.code == 1
    assert told.err == "4 jobs would change; --apply does it while Pulsar is stopped\n"
    begins = [re.split(": the |: killed after", line)[0] for line in told.lines]
    assert begins == [
        f"_default_/limit {ids['limit']}: queued -> failed (walltime)",
        f"_default_/ran {ids['ran']}: running -> failed (lost)",
        f"_default_/waited {ids['waited']}: queued -> failed (cancelled): cancelled outside Galaxy:"
        f" it had not begun when Slurm forgot it (Slurm job {ids['waited']})",
        f"_default_/well {ids['well']}: queued -> complete: it left an exit code",
    ]


def test_apply_and_start(make_site: MakeSite, reconcile: Reconcile) -> None:
    """What is written down is what Pulsar then tells; the job that lives is left to it."""
    site = make_site()
    ids = _play(site)
    dry = reconcile(site, "--format", "json")
    told = reconcile(site, "--apply", "--format", "json")
    assert told.code == 0
    assert "4 jobs changed" in told.err
    said, jobs = json.loads("\n".join(told.lines)), json.loads("\n".join(dry.lines))["jobs"]
    assert (said["applied"], said["jobs"]) == (True, jobs)
    assert reconcile(site).code == 0
    pulsar = site.start()
    ends = {name: pulsar.end(name) for name in ("ran", "waited", "well", "limit")}
    assert {name: (end["status"], reason_of(end)) for name, end in ends.items()} == {
        "ran": ("failed", "lost"), "waited": ("failed", "cancelled"), "well": ("complete", None),
        "limit": ("failed", "walltime"),
    }
    assert ends["well"]["returncode"] == 3
    assert pulsar.status("runs") == "running"
    assert pulsar.external_id("runs") == ids["runs"]
    # Stock's recovery took them out of its index, as after any end.
    wait_until(lambda: _indexed(pulsar) == ["runs"], 60, "the others to be told", 0.05)


def test_the_ledger_hears_of_it(make_site: MakeSite) -> None:
    """What is applied is in the ledger before the command is gone."""
    site = make_site()
    _play(site)
    ledger = site.home / "persisted" / "failure-ledger.sqlite"
    done = subprocess.run(
        [sys.executable, "-m", "pulsar_failure_reasons", "reconcile", "--apply", str(site.app_yml)],
        env={**os.environ, **control.environment(site.slurm.state)}, timeout=120,
    )
    assert done.returncode == 0
    with contextlib.closing(sqlite3.connect(str(ledger))) as rows:
        found = dict(rows.execute("SELECT job_id, cause FROM ledger_failures"))
    assert found == {"ran": "lost", "waited": "cancelled", "limit": "walltime"}


def _indexed(pulsar: Pulsar) -> List[str]:
    return list(pulsar.proxy().active_jobs.active_job_ids())


def test_nothing_to_change(make_site: MakeSite, reconcile: Reconcile) -> None:
    """A job that lives is no line."""
    site = make_site()
    pulsar = site.start()
    pulsar.submit("1", BEGAN, "-t 6000")
    pulsar.shutdown()
    told = reconcile(site)
    assert (told.code, told.lines, told.err) == (0, [], "nothing to change\n")


def test_beside_a_running_pulsar(make_site: MakeSite, reconcile: Reconcile) -> None:
    """Looking is safe; changing is refused, in a line that says what to do."""
    site = make_site()
    pulsar = site.start()
    pulsar.submit("1", BEGAN, "-t 6000")
    wait_until((pulsar.directory("1") / "began").exists, 60, "it to begin", 0.02)
    before = site.contents()
    assert reconcile(site).code == 0
    told = reconcile(site, "--apply")
    assert (told.code, told.lines) == (2, [])
    assert "a Pulsar with the manager _default_ is running on" in told.err
    assert "stop it first" in told.err and "nothing was changed" in told.err
    assert site.contents() == before
    pulsar.shutdown()
    assert reconcile(site, "--apply").code == 0


def test_no_answer(make_site: MakeSite, reconcile: Reconcile) -> None:
    """A DRM that is down tells nothing of any job: nothing is said to have ended."""
    site = make_site()
    _play(site)
    site.slurm.set(controller_down=True)
    before = site.contents()
    for options in ((), ("--apply",)):
        told = reconcile(site, *options)
        assert (told.code, told.lines) == (2, [])
        assert "Unable to contact slurm controller" in told.err
    assert site.contents() == before


def test_apply_waits_for_the_grace(
    make_site: MakeSite, reconcile: Reconcile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A controller that has lost its state for a moment ends no job."""
    site = make_site()
    pulsar = site.start()
    ids = [pulsar.submit(str(n), BEGAN, "-t 6000") for n in range(3)]
    for n in range(3):
        pulsar.wait_for(str(n), "running")
    pulsar.shutdown()
    site.slurm.set(accounting="off")
    for external_id in ids:
        control.change(site.slurm.state, external_id, forgotten=True)
    looks: List[float] = []

    def pause(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 2:
            for external_id in ids:
                control.change(site.slurm.state, external_id, forgotten=False)

    assert reconcile(site).code == 1
    monkeypatch.setattr("pulsar_failure_reasons.managers.reconciling._pause", pause)
    told = reconcile(site, "--apply")
    assert (told.code, told.lines) == (0, [])
    assert looks == [QUICK["status_poll_interval"]] * 2


def test_launch_that_was_cut_short(make_site: MakeSite, reconcile: Reconcile) -> None:
    """Found by its name: a line; with --apply Pulsar knows it again when it is started."""
    site = make_site()
    pulsar = site.start()
    external_id = pulsar.submit("1", BEGAN, "-t 6000")
    wait_until((pulsar.directory("1") / "began").exists, 60, "it to begin", 0.02)
    site.slurm.wait_for(external_id, "RUNNING")
    pulsar.shutdown()
    for name in ("preprocessed", "external_id"):
        (pulsar.directory("1") / name).unlink()
    pulsar.proxy().active_jobs.deactivate_job("1")
    before = site.contents()
    line = f"_default_/1 {external_id}: preprocessing -> running: it was found in the DRM"
    assert reconcile(site).lines == [line]
    assert site.contents() == before
    assert reconcile(site, "--apply").lines == [line]
    again = site.start()
    assert again.wait_for("1", "running")["status"] == "running"
    assert (again.external_id("1"), _indexed(again)) == (external_id, ["1"])


def test_directory_that_is_gone(make_site: MakeSite, reconcile: Reconcile) -> None:
    """A job whose directory was deleted while it ran ends too, and its message says so."""
    site = make_site()
    pulsar = site.start()
    external_id = pulsar.submit("1", "sleep 600", "-t 6000")
    pulsar.submit("2", BEGAN, "-t 6000")
    pulsar.wait_for("1", "running")
    wait_until((pulsar.directory("2") / "began").exists, 60, "the other to begin", 0.02)
    pulsar.shutdown()
    site.slurm.scancel(external_id)
    site.slurm.wait_for(external_id, "CANCELLED")
    site.slurm.set(accounting="off")
    control.forget(site.slurm.state, external_id)
    pulsar.directory("1").rename(site.home / "deleted")
    before = site.contents()
    told = reconcile(site)
    assert site.contents() == before
    assert len(told.lines) == 1 and told.lines[0].startswith("_default_/1 -: ")
    assert "its job directory could not be read (it is gone or not mounted)" in told.lines[0]
    assert reconcile(site, "--apply").code == 0
    payload = site.start().end("1")
    assert (payload["status"], reason_of(payload)) == ("failed", "lost")
    assert "it is gone or not mounted" in payload["runner_state_message"]


def test_several_managers(make_site: MakeSite, reconcile: Reconcile) -> None:
    """Each manager's own jobs, by Pulsar's indexes, though they share a staging folder."""
    site = make_site({"a": QUICK, "b": CLI, "local": {"type": "queued_python"}})
    pulsar = site.start()
    for name, manager in (("1", "a"), ("2", "b")):
        pulsar.submit(name, BEGAN, "-t 6000", manager)
        pulsar.wait_for(name, "running", manager=manager)
    pulsar.shutdown()
    site.slurm.set(accounting="off")
    control.forget_all(site.slurm.state)
    assert [line.partition(":")[0] for line in reconcile(site).lines] == ["a/1 1", "b/2 2"]


def test_job_managers_ini(make_site: MakeSite, reconcile: Reconcile, tmp_path: Path) -> None:
    """Managers in an ini file of their own are read as Pulsar reads them."""
    ini = tmp_path / "job_managers.ini"
    options = "\n".join(f"{key} = {value}" for key, value in QUICK.items())
    ini.write_text(f"[manager:cluster]\n{options}\n")
    site = make_site({"cluster": QUICK})
    pulsar = site.start()
    pulsar.submit("1", BEGAN, "-t 6000", "cluster")
    pulsar.wait_for("1", "running", manager="cluster")
    pulsar.shutdown()
    site.app_yml.write_text(yaml.safe_dump({
        "staging_directory": str(tmp_path / "staging"),
        "persistence_directory": str(tmp_path / "persisted"),
        "job_managers_config": str(ini),
    }))
    site.slurm.set(accounting="off")
    control.forget_all(site.slurm.state)
    assert [line.partition(":")[0] for line in reconcile(site).lines] == ["cluster/1 1"]


def test_cannot_run(make_site: MakeSite, reconcile: Reconcile, tmp_path: Path) -> None:
    """What it needs and does not have is told in one line, with exit code 2."""
    site = make_site()
    told = reconcile(site)
    assert told.code == 2 and "there is no staging folder" in told.err
    (tmp_path / "staging").mkdir()
    told = reconcile(site, "--apply")
    assert told.code == 2 and "nobody can tell whether a Pulsar is running" in told.err
    assert not (tmp_path / "persisted").exists()
    assert reconcile(site, "--apply", "--server-is-stopped").code == 0
    site.app_yml.write_text(yaml.safe_dump({
        "staging_directory": str(tmp_path / "staging"), "persistence_directory": "__none__",
        "manager": QUICK,
    }))
    told = reconcile(site, "--apply")
    assert told.code == 2 and "switches persistence off" in told.err
    site.app_yml.write_text(yaml.safe_dump({"manager": {"type": "queued_python"}}))
    told = reconcile(site)
    assert told.code == 2 and "has no manager of the types queued_cli_classified" in told.err
    assert os.listdir(tmp_path / "staging") == []


def test_htcondor(tmp_path: Path, reconcile: Reconcile) -> None:
    """A job that left the pool without a word is lost; one in the queue is left alone."""
    with contextlib.ExitStack() as stack:
        pool = stack.enter_context(Pool(tmp_path / "pool").in_use())
        stack.enter_context(own_observers())
        pulsar = stack.enter_context(running(HTCondorPulsar(tmp_path)))
        ids = {name: pulsar.submit(name, BEGAN) for name in ("gone", "runs", "removed")}
        for name in ids:
            wait_until((pulsar.directory(name) / "began").exists, 60, f"{name} to begin", 0.02)
            pulsar.wait_for(name, "running")
        pulsar.shutdown()
        pool.do("forget", ids["gone"])
        pool.do("remove", ids["removed"])
        pool.wait_gone(ids["removed"])
        site = Site(tmp_path, None, {"_default_": CONDOR})
        before = site.contents()
        dry = reconcile(site)
        assert site.contents() == before
        begins = [line.partition(": the ")[0] for line in dry.lines]
        assert begins[0] == f"_default_/gone {ids['gone']}: running -> failed (lost)"
        assert begins[1].startswith(
            f"_default_/removed {ids['removed']}: running -> failed (cancelled): cancelled outside")
        assert len(begins) == 2
        assert reconcile(site, "--apply").lines == dry.lines
        again = stack.enter_context(running(HTCondorPulsar(tmp_path)))
        assert {name: reason_of(again.end(name)) for name in ("gone", "removed")} == {
            "gone": "lost", "removed": "cancelled"}
        assert again.status("runs") == "running"
        again.proxy().kill("runs")
