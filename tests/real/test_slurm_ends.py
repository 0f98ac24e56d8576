"""How a job's end on a real Slurm reaches Galaxy, through a stock Pulsar server.

The first seven ends on Slurm 22.05 and on 24.11.
"""

from __future__ import annotations

from typing import Iterator

import pytest

from tests.real.site import HOG, UNTIL_LET_GO, Site, outcome
from tests.real.slurm import PrivateSlurm

pytestmark = pytest.mark.real

NOTHING = {"runner_state", "runner_state_message", "failure_reason"}


@pytest.fixture(scope="module", params=["22.05", "24.11"])
def site(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    name = "real_slurm" if request.param == "22.05" else "real_slurm_24"
    slurm: PrivateSlurm = request.getfixturevalue(name)
    with Site(slurm, tmp_path_factory.mktemp("pulsar")) as made:
        yield made


def test_success(site: Site) -> None:
    """A job that ends well is complete, and its payload has no new key."""
    payload = site.end(site.submit("echo hello"))
    assert outcome(payload) == {
        "status": "complete", "returncode": 0, "runner_state": None, "cause": None,
    }
    assert not NOTHING & set(payload)


def test_tool_exit_3(site: Site) -> None:
    """The tool's own exit code is Galaxy's to judge: complete, and no new key."""
    payload = site.end(site.submit("sh -c 'exit 3'"))
    assert (payload["status"], payload["returncode"]) == ("complete", 3)
    assert not NOTHING & set(payload)


def test_timeout(site: Site) -> None:
    """A job over its time limit says so, with limit, time used and place."""
    job_id = site.submit("sleep 600", "--time=1 --mem=100")
    external_id = site.running(job_id)
    site.slurm.expire(external_id)
    payload = site.end(job_id)
    assert outcome(payload) == {
        "status": "failed", "returncode": None,
        "runner_state": "walltime_reached", "cause": "walltime",
    }
    assert f"limit is 60 s (Slurm job {external_id}, {site.slurm.nodes[0][:-2]}" in (
        payload["runner_state_message"]
    )
    assert payload["failure_reason"]["requested"]["walltime_s"] == 60


def test_out_of_memory_by_cgroup(site: Site) -> None:
    """A job that its cgroup kills is over its memory limit."""
    if not site.slurm.cgroup:
        pytest.skip("no cgroups here: see test_overmemorykill")
    payload = site.end(site.submit(HOG, "--time=5 --mem=60"))
    assert (payload["status"], payload["runner_state"]) == ("failed", "memory_limit_reached")
    assert payload["failure_reason"]["requested"]["memory_bytes"] == 60 * 1024**2


def test_scancel_of_a_running_job(site: Site) -> None:
    """Somebody's scancel is no limit, and the reason says who it was where Slurm tells."""
    job_id = site.submit("sleep 600")
    site.slurm.run(["scancel", site.running(job_id)])
    payload = site.end(job_id)
    assert outcome(payload) == {
        "status": "failed", "returncode": None,
        "runner_state": "unknown_error", "cause": "cancelled",
    }
    assert payload["failure_reason"]["fault"] == "user"


def test_node_failure_without_requeue(site: Site) -> None:
    """A job that dies with its node is the infrastructure's fault."""
    slurm = site.slurm
    job_id = site.submit(
        "touch started; sleep 600", f"--time=5 --mem=100 --no-requeue -w {slurm.nodes[1]}"
    )
    site.running(job_id)
    site.tool_has_started(job_id)
    slurm.crash_node(slurm.nodes[1])
    try:
        payload = site.end(job_id)
    finally:
        slurm.node_up(slurm.nodes[1])
    assert outcome(payload) == {
        "status": "failed", "returncode": None,
        "runner_state": "unknown_error", "cause": "node_failure",
    }
    assert payload["failure_reason"]["fault"] == "infrastructure"


@pytest.mark.parametrize("version", ["22.05", "24.11"])
def test_aged_out(
    version: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A job whose end Pulsar slept through, and slurmctld forgot, is told by accounting."""
    name = "real_slurm_fast_forget" if version == "22.05" else "real_slurm_24_fast_forget"
    slurm: PrivateSlurm = request.getfixturevalue(name)
    site = Site(slurm, tmp_path_factory.mktemp("pulsar"))
    with site:
        killed, well = site.submit("sleep 600"), site.submit(UNTIL_LET_GO)
        ids = [site.running(killed), site.running(well)]
    site.let_go(well)
    slurm.expire(ids[0])
    for external_id in ids:
        slurm.wait_forgotten(external_id)
    slurm.wait_accounted(ids[0], "TIMEOUT")
    with site:
        assert outcome(site.end(killed)) == {
            "status": "failed", "returncode": None,
            "runner_state": "walltime_reached", "cause": "walltime",
        }
        assert site.end(well)["status"] == "complete"
        confidence = site.pulsar.payload(killed)["failure_reason"]["confidence"]
    assert confidence == "accounting"


def test_overmemorykill(
    real_slurm_no_cgroup: PrivateSlurm, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Without cgroups Slurm says FAILED 0:9; its own line in stderr tells memory, with numbers."""
    with Site(real_slurm_no_cgroup, tmp_path_factory.mktemp("pulsar")) as site:
        payload = site.end(site.submit(HOG, "--time=5 --mem=60"))
    assert (payload["status"], payload["runner_state"]) == ("failed", "memory_limit_reached")
    reason = payload["failure_reason"]
    assert reason["confidence"] == "stderr"
    assert reason["used"]["memory_bytes"] > reason["requested"]["memory_bytes"] == 60 * 1024**2
