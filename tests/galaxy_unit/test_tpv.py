"""The TPV example of docs/galaxy.md, run by TPV itself, and its rules by our runner."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Dict, Optional

import pytest
import yaml

from .stub import MEMORY, Galaxy, States

tpv_mapper = pytest.importorskip("tpv.core.mapper")

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "galaxy.md"


def example() -> Dict[str, Any]:
    """Return the TPV configuration that the page shows."""
    found = re.findall(r"```yaml\n(global:.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(found) == 1
    return dict(yaml.safe_load(found[0]))


def mapped(destination_params: Optional[Dict[str, Any]]) -> Any:
    """Return the destination on which TPV puts a job with these params."""
    from tpv.commands.test import mock_galaxy
    from tpv.core.loader import TPVConfigLoader

    mapper = tpv_mapper.EntityToDestinationMapper(TPVConfigLoader(example()))
    job = mock_galaxy.Job()
    job.destination_params = destination_params
    return mapper.map_to_destination(
        None, mock_galaxy.Tool("cat1"), mock_galaxy.User("ford", "ford@example.org"), job)


def memory(requested: Optional[int], used: Optional[int] = None) -> Dict[str, Any]:
    """Return what is kept with a job that was killed for memory."""
    reason: Dict[str, Any] = {"cause": "memory", "runner_state": "memory_limit_reached"}
    if requested is not None:
        reason["requested"] = {"memory_bytes": requested}
    if used is not None:
        reason["used"] = {"memory_bytes": used}
    return {"failure_reason": reason, "url": "http://pulsar.test"}


@pytest.mark.parametrize("params, mem", [
    (None, 2048),
    ({}, 2048),
    ({"failure_reason": {"cause": "walltime"}}, 2048),
    (memory(3 * 2 ** 30), 4608),                      # 1.5 * 3 GiB
    (memory(3 * 2 ** 30, used=4 * 2 ** 30), 6144),    # 1.5 * 4 GiB
    (memory(None), 4096),                             # no amount told: the rule's least
    (memory(2 * 2 ** 30), 4096),
], ids=["first", "no_reason", "walltime", "requested", "used_more", "unknown", "small"])
def test_memory_grows(params: Optional[Dict[str, Any]], mem: int) -> None:
    """The native specification asks for 1.5 times what was needed, in MiB."""
    destination = mapped(params)
    assert destination.params["submit_native_specification"] == f"--cpus-per-task=1 --mem={mem}"
    assert destination.params["default_file_action"] == "transfer"


@pytest.mark.parametrize("name", ["PulsarMQJobRunner", "PulsarRESTJobRunner"])
def test_its_rules_send_the_job_back_to_tpv(galaxy: Galaxy, name: str) -> None:
    """In the form in which this TPV writes them, told by message or by polling."""
    destination = mapped(None)
    runner = galaxy.runner(name, "pulsar")
    dispatcher = galaxy.destination("tpv_dispatcher", "dynamic")
    destination.params["jobs_directory"] = "/staging"
    job = galaxy.job(destination, state=States.QUEUED)
    wrapper = galaxy.wrapper(job, destination)
    runner.put(wrapper)
    wrapper.set_job_destination(destination, external_id=str(job.id))
    wrapper.change_state(States.RUNNING)
    if runner.use_mq:
        galaxy.message(runner, job, "failed", MEMORY)
    else:
        galaxy.poll(runner, runner._job_state(galaxy.refreshed(job), wrapper), "failed", MEMORY)
    job = galaxy.refreshed(job)
    assert (job.state, job.destination_id) == (States.RESUBMITTED, dispatcher.id)
    assert job.destination_params["failure_reason"]["cause"] == "memory"
