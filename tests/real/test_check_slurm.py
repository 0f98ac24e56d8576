"""``pulsar-failure-reasons check`` on a real Slurm, 22.05 and 24.11, with its trial job."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List

import pytest

from tests.check.harness import slurm_app
from tests.real.slurm import PrivateSlurm

pytestmark = pytest.mark.real

TIMEOUT_S = 900


@pytest.fixture
def slurm(real_slurm_each: PrivateSlurm) -> PrivateSlurm:
    """A cluster of each version."""
    return real_slurm_each


def check(
    slurm: PrivateSlurm, home: Path, app: str, *arguments: str
) -> "subprocess.Popen[str]":
    """Start the command; its stderr is to be read by the caller."""
    return subprocess.Popen(
        [sys.executable, "-m", "pulsar_failure_reasons", "check", app, "--format", "json",
         *arguments],
        env=slurm.env, cwd=str(home), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, universal_newlines=True,
    )


def findings_of(process: "subprocess.Popen[str]") -> List[Dict[str, Any]]:
    """Return the findings of a command, which is ended if it does not come to its end."""
    try:
        stdout, _ = process.communicate(timeout=TIMEOUT_S)
    finally:
        process.kill()
    findings: List[Dict[str, Any]] = json.loads(stdout)["findings"]
    return findings


def test_configuration_and_queries(slurm: PrivateSlurm, tmp_path: Path) -> None:
    """Slurm's own words about accounting, MinJobAge and JobFileAppend are understood."""
    found = findings_of(check(slurm, tmp_path, slurm_app(tmp_path)))
    by_code = {finding["code"]: finding for finding in found}
    shown = slurm.run(["scontrol", "show", "config"]).stdout
    age = re.search(r"^MinJobAge += (\d+) sec", shown, re.MULTILINE)
    assert age is not None
    # Fifteen seconds between two looks, and four looks are to be safe.
    assert ("PFR213" in by_code) is (int(age.group(1)) >= 60 or age.group(1) == "0")
    assert ("PFR210" in by_code) is ("accounting_storage/slurmdbd" in shown)
    assert "PFR217" not in by_code and "PFR216" not in by_code
    assert [f["code"] for f in found].count("PFR220") == 2
    assert not {"PFR199", "PFR202", "PFR221", "PFR223"} & set(by_code)


def test_no_accounting(real_slurm_no_accounting: PrivateSlurm, tmp_path: Path) -> None:
    """A cluster that forgets an ended job after two seconds, and keeps no accounting."""
    found = findings_of(check(real_slurm_no_accounting, tmp_path, slurm_app(tmp_path)))
    by_code = {finding["code"]: finding["what"] for finding in found}
    assert by_code["PFR211"] == "AccountingStorageType = accounting_storage/none"
    assert by_code["PFR215"].startswith("MinJobAge is 2 sec, and Slurm is looked at every 15 s")
    assert "PFR224" in by_code and "PFR213" not in by_code


def test_the_trial_job(slurm: PrivateSlurm, tmp_path: Path) -> None:
    """The reason arrives; the job's end is brought forward, to wait no minute."""
    app = slurm_app(tmp_path, status_poll_interval=1, native_specification="--mem=100")
    process = check(slurm, tmp_path, app, "--submit")
    assert process.stderr is not None
    for line in process.stderr:
        running = re.search(r"job (\d+) is running", line)
        if running:
            slurm.expire(running.group(1))
            break
    (trial,) = [f for f in findings_of(process) if f["code"].startswith("PFR4")]
    assert trial["code"] == "PFR401", trial
    assert "limit is 60 s" in trial["what"]
    assert process.returncode == 0
    assert list(tmp_path.glob(".pulsar-failure-reasons-check-*")) == []


def test_a_controller_that_is_away(slurm: PrivateSlurm, tmp_path: Path) -> None:
    """Nothing at the address of SLURM_CONF: the query fails, the configuration is not known."""
    conf = Path(slurm.env["SLURM_CONF"]).read_text()
    other = tmp_path / "slurm.conf"
    other.write_text(re.sub(r"(?m)^SlurmctldPort=.*$", "SlurmctldPort=1", conf))
    assert other.read_text() != conf
    done = subprocess.run(
        [sys.executable, "-m", "pulsar_failure_reasons", "check",
         slurm_app(tmp_path, command_timeout=30)],
        env={**slurm.env, "SLURM_CONF": str(other)}, cwd=str(tmp_path),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        universal_newlines=True, timeout=TIMEOUT_S,
    )
    assert done.returncode == 1
    assert re.search(r"error +PFR221 .*Unable to contact slurm controller", done.stdout)
    assert "PFR217" in done.stdout
