"""Galaxy and Pulsar with a relay between them, which has messages and no queues."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.galaxy.galaxy import Galaxy, times_resubmitted
from tests.galaxy.job_conf import OURS, QUICK, TIGHT, JobConf, make_slurm, rule
from tests.galaxy.relay import Relay
from tests.pulsar_server import PulsarServer
from tests.simulated import control

pytestmark = pytest.mark.galaxy


def job_conf(home: Path, pulsar: PulsarServer, relay: Relay) -> JobConf:
    """Return a configuration in which a job is killed twice on Pulsar, then goes elsewhere."""
    conf = JobConf()
    conf.runner("relay", f"{OURS}:PulsarMQJobRunner", relay_url=relay.url,
                relay_username=relay.username, relay_password=relay.password)
    conf.environment(
        "again", "relay",
        [rule("walltime_reached and attempt < 2", "again"), rule("walltime_reached")],
        jobs_directory=str(pulsar.staging), default_file_action="remote_copy",
        submit_native_specification=TIGHT)
    conf.tool("again__sleeps", "again")
    return conf


def test_over_a_relay(tmp_path: Path) -> None:
    """The reason comes through, and the second attempt at the same Pulsar is a run of its own."""
    slurm = make_slurm(tmp_path)
    try:
        with Relay() as relay:
            pulsar = PulsarServer(tmp_path / "pulsar", {
                "manager": QUICK, "message_queue_url": relay.url,
                "message_queue_username": relay.username,
                "message_queue_password": relay.password, "relay_long_poll_timeout": 5,
            }, control.environment(slurm))
            conf = job_conf(tmp_path, pulsar, relay)
            with pulsar, Galaxy(tmp_path / "galaxy", conf.content, conf.tools) as galaxy:
                job_id = galaxy.submit("again__sleeps")
                job = galaxy.wait_for_end(job_id)
            told = [message["payload"] for message in relay.messages["job_status_update"]]
    finally:
        control.stop_all(slurm)
    assert (job["state"], times_resubmitted(job), job["destination"]) == ("ok", 2, "local"), job
    failures = [payload for payload in told if payload["status"] == "failed"]
    assert [payload["attempt"] for payload in failures] == [1, 2]
    assert {payload["runner_state"] for payload in failures} == {"walltime_reached"}
