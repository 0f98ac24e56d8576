"""From stock ``queued_drmaa`` to ``queued_slurm`` and back, with jobs in flight."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Iterator

import pytest

from tests.simulated import control

from .harness import Pulsar, Slurm, own_observers, reason_of, running


@pytest.fixture(autouse=True)
def _observers() -> Iterator[None]:
    with own_observers():
        yield


def _stock(home: Path) -> Pulsar:
    return Pulsar(home, manager={"type": "queued_drmaa"})


def test_from_queued_drmaa(tmp_path: Path, slurm: Slurm, fake_drmaa: Any) -> None:
    """Jobs that stock submitted end under ours, with their reasons and return codes."""
    with running(_stock(tmp_path)) as stock:
        stock.submit("limit", "sleep 600", "--time=00:02:00")
        stock.submit("well", "sleep 1; sh -c 'exit 3'", "--time=50:00:00")
        stock.submit("cancelled", "sleep 600", "--time=50:00:00")
        stock.submit("killed", "sleep 1; kill -9 $$", "--time=50:00:00")
        stock.submit("by_galaxy", "sleep 600", "--time=50:00:00")
        for job_id in ("cancelled", "by_galaxy"):
            stock.wait_for(job_id, "running")
        raw = (stock.directory("limit") / "external_id").read_bytes()
        assert raw == b'"1"'
    with running(Pulsar(tmp_path)) as ours:
        slurm.scancel(ours.external_id("cancelled") or "")
        assert reason_of(ours.end("limit")) == "walltime"
        assert (ours.end("well")["status"], ours.end("well")["returncode"]) == ("complete", 3)
        assert reason_of(ours.end("cancelled")) == "cancelled"
        assert reason_of(ours.end("killed")) == "unknown"
        ours.proxy().kill("by_galaxy")
        assert ours.end("by_galaxy")["status"] == "cancelled"
        slurm.wait_for(ours.external_id("by_galaxy") or "", "CANCELLED")


def test_back_to_queued_drmaa(tmp_path: Path, slurm: Slurm, fake_drmaa: Any) -> None:
    """Jobs that ours submitted end under stock as if it had submitted them itself."""
    with running(Pulsar(tmp_path)) as ours:
        ours.submit("limit", "sleep 600", "--time=50:00:00")
        ours.submit("well", "sleep 1; sh -c 'exit 3'", "--time=50:00:00")
        ours.submit("queued", "true", "--comment=fake:start_delay=600")
        ours.submit("by_galaxy", "sleep 600", "--time=50:00:00")
        ours.wait_for("by_galaxy", "running")
        assert (ours.directory("limit") / "external_id").read_bytes() == b'"1"'
    with running(_stock(tmp_path)) as stock:
        assert stock.status("queued") == "queued"
        control.change(slurm.state, stock.external_id("queued"), options={})
        control.change(slurm.state, stock.external_id("limit"), time_limit=60)
        limit = stock.end("limit")
        assert (limit["status"], reason_of(limit)) == ("failed", None)
        assert (stock.end("well")["status"], stock.end("well")["returncode"]) == ("complete", 3)
        assert stock.end("queued")["returncode"] == 0
        stock.proxy().kill("by_galaxy")
        assert stock.end("by_galaxy")["status"] == "cancelled"
        slurm.wait_for(stock.external_id("by_galaxy") or "", "CANCELLED")


def test_cluster_ids_both_ways(tmp_path: Path, slurm: Slurm, fake_drmaa: Any) -> None:
    """Ids with a cluster are written alike by both, and each reads the other's."""
    with running(_stock(tmp_path)) as stock:
        stock.submit("1", "sleep 600", "-M private")
        stock.wait_for("1", "running")
    with running(Pulsar(tmp_path)) as ours:
        ours.submit("2", "sleep 600", "-M private")
        written = [(ours.directory(j) / "external_id").read_bytes() for j in ("1", "2")]
        assert written == [b'"1.private"', b'"2.private"']
        ours.wait_for("2", "running")
        slurm.scancel("1")
        assert reason_of(ours.end("1")) == "cancelled"
    with running(_stock(tmp_path)) as stock:
        assert stock.wait_for("2", "running")
        stock.proxy().kill("2")
        slurm.wait_for("2", "CANCELLED")


def test_job_that_ended_while_nobody_looked(
    tmp_path: Path, slurm: Slurm, fake_drmaa: Any
) -> None:
    """The server is down, the job hits its limit and is forgotten: only stock calls it complete."""
    with running(_stock(tmp_path)) as stock:
        stock.submit("1", "sleep 600", "--time=00:01:00 --comment=fake:min_job_age=0")
        stock.submit("2", "sleep 600", "--time=00:01:00 --comment=fake:min_job_age=0")
    for external_id in ("1", "2"):
        slurm.wait_for(external_id, "TIMEOUT")
    with running(Pulsar(tmp_path)) as ours:
        assert reason_of(ours.end("1")) == "walltime"
    with running(_stock(tmp_path)) as stock:
        assert stock.end("2")["status"] == "complete"
        assert reason_of(stock.payload("1")) == "walltime"
