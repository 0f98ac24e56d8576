"""The command as an operator runs it: a process, its stdout, stderr and exit code apart."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Iterator, List

import pytest

from tests.manager.harness import QUICK, Slurm
from tests.pulsar_server import wait_until
from tests.simulated import control

from .harness import slurm_app

COMMAND = [sys.executable, "-m", "pulsar_failure_reasons", "check"]
TIMEOUT_S = 600


@pytest.fixture
def slurm(tmp_path: Path) -> Iterator[Slurm]:
    """A simulated Slurm; a minute of a time limit takes half a second."""
    with Slurm(tmp_path / "slurm").in_use() as simulated:
        yield simulated


def check(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run the command to its end."""
    return subprocess.run(
        [*COMMAND, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, universal_newlines=True, timeout=TIMEOUT_S,
    )


def test_a_healthy_host(tmp_path: Path, slurm: Slurm) -> None:
    """Text on stdout, nothing on stderr, exit code 0, the numbers in the last line."""
    done = check(slurm_app(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert "ok      PFR120  _default_: type queued_slurm, from " in done.stdout
    as_root = os.geteuid() == 0
    assert lines[-1].startswith(f"0 error, {1 if as_root else 0} warning, ")
    assert ("PFR218" in done.stdout) is as_root


def test_what_to_do(tmp_path: Path, slurm: Slurm) -> None:
    """Under each finding that has some advice, whatever its level; under no other."""
    lines = check(slurm_app(tmp_path, observe_only=True)).stdout.splitlines()
    after = {line.split()[1]: following for line, following in zip(lines, lines[1:])
             if line.split()[1].startswith("PFR")}
    assert after["PFR104"].strip().startswith("-> compare with the service: systemctl show pulsar")
    assert after["PFR141"] == " " * 16 + "-> remove observe_only when you have seen enough"
    assert after["PFR314"].strip().startswith("-> --server-ini FILE")
    assert "->" not in after["PFR101"] + after["PFR120"] + after["PFR220"]


def test_problems(tmp_path: Path, slurm: Slurm) -> None:
    """An error is shown with what to do, and the exit code is 1."""
    slurm.set(controller_down=True)
    done = check(slurm_app(tmp_path, accounting="sacct"))
    assert (done.returncode, done.stderr) == (1, "")
    problem = next(i for i, line in enumerate(done.stdout.splitlines()) if "PFR221" in line)
    assert done.stdout.splitlines()[problem + 1].strip().startswith("-> run the command by hand")


def test_json(tmp_path: Path, slurm: Slurm) -> None:
    """One JSON object with all findings, their advice and their counts."""
    done = check(slurm_app(tmp_path, observe_only=True), "--format", "json")
    told = json.loads(done.stdout)
    assert set(told) == {"findings", "counts"} and told["counts"]["error"] == 0
    by_code = {finding["code"]: finding for finding in told["findings"]}
    assert by_code["PFR141"] == {
        "code": "PFR141", "level": "info", "about": "_default_", "what": "observe_only: true",
        "do": "remove observe_only when you have seen enough",
    }
    assert by_code["PFR220"]["numbers"]["seconds"] > 0


def test_server_ini_beside(tmp_path: Path, slurm: Slurm) -> None:
    """server.ini is found beside app.yml; another one can be named."""
    path = slurm_app(tmp_path)
    (tmp_path / "server.ini").write_text("no section\n")
    assert "PFR315" in check(path).stdout
    (tmp_path / "other.ini").write_text("[app:main]\n")
    done = check(path, "--server-ini", str(tmp_path / "other.ini"))
    assert done.returncode == 0 and "PFR314" in done.stdout


@pytest.mark.parametrize(
    "arguments, words",
    [
        ([], "name Pulsar's app.yml"),
        (["no-such.yml"], "no-such.yml"),
        (["BAD"], "cannot be read as an app.yml"),
        (["--submit", "--galaxy", "no-such.yml"], "--submit needs Pulsar's app.yml"),
        (["APP", "--submit", "--manager", "other"], "has no manager 'other'; it has: _default_"),
        (["APP", "--deadline", "0"], "deadline"),
        (["APP", "--format", "xml"], "format"),
        (["--galaxy", "no-such.yml"], "no-such.yml cannot be read: No such file"),
        (["--galaxy", "BAD"], "BAD"),
        (["--galaxy-config", "GALAXY"], "has no section `galaxy`"),
    ],
)
def test_what_cannot_run(
    tmp_path: Path, slurm: Slurm, arguments: List[str], words: str
) -> None:
    """Exit code 2, nothing on stdout, and a line on stderr without a traceback."""
    app = slurm_app(tmp_path)
    bad = tmp_path / "BAD"
    bad.write_text("a: [b\n")
    galaxy = tmp_path / "galaxy.yml"
    galaxy.write_text("gravity: {}\n")
    places = {"APP": app, "BAD": str(bad), "GALAXY": str(galaxy)}
    done = check(*(places.get(argument, argument) for argument in arguments))
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr and "Traceback" not in done.stderr


def test_submit(tmp_path: Path, slurm: Slurm) -> None:
    """Progress goes to stderr, the finding to stdout."""
    done = check(slurm_app(tmp_path, **QUICK), "--submit")
    assert done.returncode == 0, done
    assert "PFR401" in done.stdout and "is running" not in done.stdout
    assert "_default_: submitting a job that sleeps, to Slurm" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted(tmp_path: Path, slurm: Slurm, number: signal.Signals) -> None:
    """Ctrl-C cancels the job and removes the folder; what was found is still told."""
    slurm.set(time_scale=1)
    with open(tmp_path / "stderr", "w") as stderr:
        process = subprocess.Popen(
            [*COMMAND, slurm_app(tmp_path, **QUICK), "--submit"], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=stderr, universal_newlines=True,
        )
        try:
            log = tmp_path / "stderr"
            wait_until(lambda: "is running" in log.read_text(), TIMEOUT_S, "the job to run")
            os.kill(process.pid, number)
            stdout, _ = process.communicate(timeout=TIMEOUT_S)
        finally:
            process.kill()
            process.wait()
    assert process.returncode == 1
    assert "PFR406" in stdout and "Traceback" not in log.read_text()
    assert [job["state"] for job in control.jobs(slurm.state)] == ["ended"]
    assert list(tmp_path.glob(".pulsar-failure-reasons-check-*")) == []


@pytest.mark.parametrize(
    "content",
    [
        "execution: {environments: {a: {runner: 3, tags: 4, resubmit: [{condition: 5}]}}}",
        "execution: {environments: {a: {runner: [b], params: 7, resubmit: {x: y}}}}",
        "runners: {1: {load: null}, 2: null}",
        "execution: [1]",
        "execution: {environments: {a: {tpv_config_files: {b: 1}, tpv_configs: [[]]}}}",
        "execution: {environments: {a: {tpv_configs: [{destinations: {x: {inherits: x, "
        "resubmit: {1: {condition: [2], delay: {}}}}}, global: 3}]}}}",
        "runners: {p: {load: 'galaxy.jobs.runners.pulsar:'}}",
    ],
)
def test_odd_job_configurations(tmp_path: Path, content: str) -> None:
    """Whatever stands in the file, there is no traceback, and no check fails."""
    path = tmp_path / "job_conf.yml"
    path.write_text(content)
    done = check("--galaxy", str(path))
    assert done.returncode in (0, 1, 2) and done.stdout + done.stderr
    assert "Traceback" not in done.stderr and "PFR199" not in done.stdout, done.stdout
