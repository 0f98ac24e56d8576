"""``check --galaxy`` with the Python of a real Galaxy, whole and with its library overwritten."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any, Dict, List, Set

import pulsar
import pytest
import yaml

from pulsar_failure_reasons.check.galaxy_source import OUR_NAMES
from tests.galaxy.galaxy import NEWEST, OLDEST, python_of

pytestmark = pytest.mark.galaxy

OURS = "pulsar_failure_reasons.galaxy_runners:PulsarRESTJobRunner"
STOCK = "galaxy.jobs.runners.pulsar:PulsarRESTJobRunner"


def job_conf(home: Path, load: str) -> str:
    """Write a job_conf.yml whose one rule names its target as ``destination``."""
    path = home / "job_conf.yml"
    path.write_text(yaml.safe_dump({
        "runners": {"local": {"load": "galaxy.jobs.runners.local:LocalJobRunner"},
                    "pulsar": {"load": load}},
        "execution": {"environments": {
            "local": {"runner": "local"},
            "p": {"runner": "pulsar", "default_file_action": "copy", "resubmit": [
                {"condition": "tool_timelimit_reached", "destination": "local"}]},
        }},
    }))
    return str(path)


def check(release: str, conf: str, **environment: str) -> List[Dict[str, Any]]:
    """Return what the command finds in this Galaxy's environment."""
    done = subprocess.run(
        [python_of(release), "-m", "pulsar_failure_reasons", "check", "--galaxy", conf,
         "--format", "json"],
        env={**os.environ, **environment}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, universal_newlines=True, timeout=600,
    )
    assert "Traceback" not in done.stderr, done.stderr
    findings: List[Dict[str, Any]] = json.loads(done.stdout)["findings"]
    return findings


def codes(findings: List[Dict[str, Any]]) -> Set[str]:
    """Return the codes that were found."""
    return {str(finding["code"]) for finding in findings}


@pytest.mark.parametrize(
    "release, code",
    [
        # 26.1 reads `environment`; 25.1 reads both and has no such name.
        (NEWEST, "PFR524"),
        (OLDEST, "PFR521"),
    ],
)
def test_a_galaxy_as_it_is(tmp_path: Path, release: str, code: str) -> None:
    """The library will do; what the rules mean is read from this Galaxy."""
    found = codes(check(release, job_conf(tmp_path, STOCK)))
    assert {"PFR501", "PFR511", code} <= found
    assert not found & {"PFR503", "PFR504", "PFR505", "PFR512", "PFR199"}
    assert not found & ({"PFR521", "PFR524"} - {code})


def test_our_classes(tmp_path: Path) -> None:
    """PFR510 where the runner is ours, by its class or by the environment's opt-in (PFR514)."""
    assert "PFR510" in codes(check(NEWEST, job_conf(tmp_path, OURS)))
    opted_in = check(NEWEST, job_conf(tmp_path, STOCK), PULSAR_FAILURE_REASONS_GALAXY="1")
    assert "PFR514" in codes(opted_in)
    assert "PFR512" in codes(check(NEWEST, job_conf(tmp_path, f"{OURS}X")))


def test_our_names() -> None:
    """The names that are kept for hosts without Galaxy are those that our classes give."""
    code = ("import json; from pulsar_failure_reasons.galaxy_runners.conditions import values_for; "
            "print(json.dumps(list(values_for(None))))")
    done = subprocess.run(
        [python_of(NEWEST), "-c", code], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        universal_newlines=True, timeout=300, check=True)
    assert set(json.loads(done.stdout.splitlines()[-1])) == OUR_NAMES


def test_an_overwritten_library(tmp_path: Path) -> None:
    """The Pulsar of a server over Galaxy's: its runners cannot be imported, and we say why."""
    server = tmp_path / "site"
    shutil.copytree(Path(pulsar.__file__).parent, server / "pulsar")
    version = metadata.version("pulsar-app")
    info = server / f"pulsar_app-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: pulsar-app\nVersion: {version}\n")
    found = check(NEWEST, job_conf(tmp_path, STOCK), PYTHONPATH=str(server))
    assert {"PFR503", "PFR504"} <= codes(found)
    (line,) = [finding["do"] for finding in found if finding["code"] == "PFR503"]
    assert "pulsar-galaxy-lib==0.15." in line


def test_a_server_beside_the_library(tmp_path: Path) -> None:
    """PFR505: both are installed, and Galaxy's files are still there."""
    info = tmp_path / "site" / "pulsar_app-0.15.16.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: pulsar-app\nVersion: 0.15.16\n")
    found = codes(check(NEWEST, job_conf(tmp_path, STOCK), PYTHONPATH=str(tmp_path / "site")))
    assert "PFR505" in found and not found & {"PFR501", "PFR503", "PFR504"}
