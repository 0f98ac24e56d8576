"""What the two seams do, on the stock Pulsar of the test environment."""

from __future__ import annotations

import logging
import pathlib
import types
from typing import Any, Dict, Iterator, List, Optional

import pytest
from pulsar import manager_endpoint_util, manager_factory

import pulsar_failure_reasons
from pulsar_failure_reasons import pulsar_hooks

RECORD: Dict[str, Any] = {
    "runner_state": "memory_limit_reached", "message": "used too much memory", "cause": "memory",
    "fault": "job", "confidence": "controller", "drm": "slurm",
}


class JobDirectory:
    """A job directory whose `runner_state` file holds this, of a job that nobody numbered."""

    job_id = "7"

    def __init__(self, stored: Any) -> None:
        self._stored = stored

    def load_metadata(self, name: str, default: Any = None) -> Any:
        """Return the file's content, or raise as a file that is no JSON does."""
        if name == "launch_config":
            return {"env": [{"name": "TOOL", "value": "x", "raw": False}]}
        assert name == "runner_state"
        if isinstance(self._stored, Exception):
            raise self._stored
        return self._stored


class Manager:
    """As much of a manager as stock's fallback path needs: nothing can be read of the job."""

    def __init__(self, stored: Any) -> None:
        self._stored = stored

    def job_directory(self, job_id: str) -> JobDirectory:
        """Return the job's directory."""
        return JobDirectory(self._stored)


@pytest.fixture(autouse=True)
def _seams(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """All seams in place, and no message counted as said before."""
    pulsar_failure_reasons.install()
    monkeypatch.setattr(pulsar_hooks, "_logged", set())
    yield


@pytest.fixture
def log_lines() -> Iterator[List[str]]:
    """The lines that we log, as they come; whatever Pulsar has done to the loggers above ours."""
    lines: List[str] = []

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage())

    logger, collector = logging.getLogger("pulsar.failure_reasons"), Collector(logging.INFO)
    logger.addHandler(collector)
    try:
        yield lines
    finally:
        logger.removeHandler(collector)


@pytest.mark.parametrize("status", ["failed", "lost"])
def test_the_fallback_payload_carries_the_reason(status: str) -> None:
    """Stock's short payload, for a job directory it cannot read, gets the keys too."""
    payload = manager_endpoint_util.full_status(Manager(RECORD), status, "7")
    assert payload == {
        "job_id": "7", "complete": "true", "status": status, "returncode": None,
        "runner_state": "memory_limit_reached",
        "runner_state_message": "used too much memory",
        "failure_reason": {
            "cause": "memory", "fault": "job", "confidence": "controller", "drm": "slurm"},
    }


@pytest.mark.parametrize("status", ["queued", "running", "preprocessing", "postprocessing"])
def test_a_job_that_is_not_done_carries_none(status: str) -> None:
    """Only `failed` and `lost` tell why; the record may be there before the status is."""
    payload = manager_endpoint_util.full_status(Manager(RECORD), status, "7")
    assert payload == {"complete": "false", "status": status, "job_id": "7"}


@pytest.mark.parametrize("stored", [
    None, ValueError("Expecting value"), OSError("Input/output error"), {}, [], "x",
    RuntimeError("a bug of ours"), dict(RECORD, cause=["memory"]), dict(RECORD, evidence=3),
], ids=repr)
def test_nothing_that_is_stored_can_damage_the_payload(stored: Any) -> None:
    """Whatever the record file holds or raises, the payload is stock's."""
    payload = manager_endpoint_util.full_status(Manager(stored), "failed", "7")
    assert payload == {"job_id": "7", "complete": "true", "status": "failed", "returncode": None}


def test_an_error_is_logged_once_per_kind(log_lines: List[str]) -> None:
    """A thousand failed jobs on a broken disk are one line, with the first job's id."""
    for job_id in ("7", "8", "9"):
        manager_endpoint_util.full_status(Manager(RuntimeError("a bug")), "failed", job_id)
    manager_endpoint_util.full_status(Manager(ZeroDivisionError("another")), "failed", "10")
    ours = [line for line in log_lines if "cannot be added" in line]
    assert len(ours) == 2
    assert "job 7" in ours[0] and "RuntimeError: a bug" in ours[0]
    assert "job 10" in ours[1]


def test_a_later_pulsar_that_sends_the_reason_itself_is_left_alone() -> None:
    """Where the payload has a runner_state already, none of our keys is added."""
    module = types.ModuleType("pulsar.manager_endpoint_util")
    module.full_status = (  # type: ignore[attr-defined]
        lambda manager, job_status, job_id: {"runner_state": "walltime_reached"})
    module.submit_job = print  # type: ignore[attr-defined]
    pulsar_hooks.patch_module(module)
    payload = module.full_status(Manager(RECORD), "failed", "7")
    assert payload == {"runner_state": "walltime_reached"}


def test_a_key_that_stock_sends_is_never_overwritten() -> None:
    """A key of the payload that happens to have one of our names keeps stock's value."""
    module = types.ModuleType("pulsar.manager_endpoint_util")
    module.full_status = (  # type: ignore[attr-defined]
        lambda manager, job_status, job_id: {"failure_reason": "stock's own"})
    module.submit_job = print  # type: ignore[attr-defined]
    pulsar_hooks.patch_module(module)
    payload = module.full_status(Manager(RECORD), "failed", "7")
    assert payload["failure_reason"] == "stock's own"
    assert payload["runner_state"] == "memory_limit_reached"


@pytest.mark.parametrize("value", ["off", "OFF", " off "])
def test_switched_off(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """PULSAR_FAILURE_REASONS=off is looked at for each payload."""
    monkeypatch.setenv("PULSAR_FAILURE_REASONS", value)
    payload = manager_endpoint_util.full_status(Manager(RECORD), "failed", "7")
    assert "runner_state" not in payload
    monkeypatch.setenv("PULSAR_FAILURE_REASONS", "on")
    payload = manager_endpoint_util.full_status(Manager(RECORD), "failed", "7")
    assert payload["runner_state"] == "memory_limit_reached"


def test_our_manager_is_registered_beside_all_of_stock() -> None:
    """The entry point of this distribution is merged into stock Pulsar's types."""
    found = manager_factory._get_managers_dict()
    assert found["queued_slurm"].manager_type == "queued_slurm"
    assert set(manager_factory._get_managers_dict.__wrapped__()) < set(found)


def add_distribution(folder: pathlib.Path, name: str, entry_points: str) -> None:
    """Put a distribution's metadata there, as pip does."""
    info = folder / ("%s-1.0.dist-info" % name)
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: %s\nVersion: 1.0\n" % name)
    (info / "entry_points.txt").write_text(entry_points)


@pytest.mark.parametrize("override", [False, True])
def test_a_name_of_stock(
    override: bool, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, log_lines: List[str]
) -> None:
    """Stock keeps its name unless the operator says otherwise, and the log tells which it is."""
    monkeypatch.syspath_prepend(str(tmp_path))
    add_distribution(tmp_path, "greedy", "[pulsar.managers]\nqueued_cli = decimal:Decimal\n")
    if override:
        monkeypatch.setenv("PULSAR_FAILURE_REASONS_OVERRIDE", "1")
    found = manager_factory._get_managers_dict()["queued_cli"]
    assert found.__name__ == ("Decimal" if override else "CliQueueManager")
    (line,) = [line for line in log_lines if "greedy" in line]
    assert ("decimal:Decimal of greedy is used" in line) == override


@pytest.mark.parametrize("entry_point, error", [
    ("no_such_module:Manager", "ModuleNotFoundError"),
    ("decimal:NoSuchName", "AttributeError"),
    ("decimal:ROUND_UP", "TypeError: it is no class but 'ROUND_UP'"),
    ("exits:Manager", "SystemExit: 3"),
    ("raises:Manager", "ZeroDivisionError: division by zero"),
])
def test_a_broken_foreign_entry_point(
    entry_point: str, error: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch,
    log_lines: List[str],
) -> None:
    """It is left out with one line that names distribution and error; the rest is there."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "exits.py").write_text("raise SystemExit(3)\n")
    (tmp_path / "raises.py").write_text("1 / 0\n")
    add_distribution(tmp_path, "rotten", "[pulsar.managers]\nrotten = %s\n" % entry_point)
    found = manager_factory._get_managers_dict()
    assert "rotten" not in found
    assert {"queued_slurm", "queued_cli"} < set(found)
    (line,) = [line for line in log_lines if "rotten" in line]
    assert error in line and "of rotten" in line
    with pytest.raises(KeyError, match=error):
        found["rotten"]


def test_entry_points_that_cannot_be_parsed(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One distribution's damaged metadata file keeps no manager from being found."""
    monkeypatch.syspath_prepend(str(tmp_path))
    add_distribution(tmp_path, "damaged", "[pulsar.managers\n= = =\n\x00")
    assert "queued_slurm" in manager_factory._get_managers_dict()


def test_two_distributions_want_one_name(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, log_lines: List[str]
) -> None:
    """The first on the path has it, and the log names both."""
    monkeypatch.syspath_prepend(str(tmp_path))
    add_distribution(tmp_path, "aaa", "[pulsar.managers]\nmine = decimal:Decimal\n")
    add_distribution(tmp_path, "bbb", "[pulsar.managers]\nmine = fractions:Fraction\n")
    found = manager_factory._get_managers_dict()["mine"]
    (line,) = [line for line in log_lines if "'mine'" in line]
    assert "aaa" in line and "bbb" in line
    used = line.split(" is used")[0]
    assert used.endswith("decimal:Decimal of aaa" if found.__name__ == "Decimal"
                         else "fractions:Fraction of bbb")


def test_an_unknown_type_names_the_nearest_and_all_known() -> None:
    """Where stock raises a bare KeyError, ours is one and says what there is."""
    with pytest.raises(KeyError) as caught:
        manager_factory._get_managers_dict()["queued_slrum"]
    message = str(caught.value)
    assert message.startswith(
        "Pulsar has no manager type 'queued_slrum' (did you mean 'queued_slurm'?); it has: ")
    assert "queued_drmaa," in message


@pytest.mark.parametrize("version, refused", [
    ("0.15.15", True), ("0.14.13", True), ("0.9.9", True), ("0.15.15.dev0", True),
    ("0.15.16", False), ("0.15.16.dev0", False), ("0.15.100", False), ("0.16.0", False),
    ("1.0.0", False), ("unknown", False), (None, False),
])
def test_which_pulsar_is_refused(
    version: Optional[str], refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Versions are compared as numbers; text that is none is let pass."""
    monkeypatch.setattr("pulsar.__version__", version)
    refusal = pulsar_hooks.pulsar_refusal()
    assert (refusal is not None) == refused
    if refusal is not None:
        assert "\n" not in refusal and "pip install 'pulsar-app>=0.15.16'" in refusal


def test_a_refused_pulsar_keeps_its_own_types(
    monkeypatch: pytest.MonkeyPatch, log_lines: List[str]
) -> None:
    """On a too old Pulsar its own managers work; asking for ours says why not."""
    monkeypatch.setattr("pulsar.__version__", "0.15.14")
    found = manager_factory._get_managers_dict()
    assert "queued_drmaa" in found and "queued_slurm" not in found
    with pytest.raises(KeyError, match="pulsar-app 0.15.14 is too old"):
        found["queued_slurm"]


@pytest.mark.parametrize("module_name, lost", [
    ("pulsar.manager_factory", ["its manager types are not known to this Pulsar"]),
    ("pulsar.manager_endpoint_util", [
        "no failure reason reaches Galaxy",
        "a job that Galaxy sends to this Pulsar a second time is not run"]),
    ("pulsar.web.routes", [
        "a job that Galaxy sends to this Pulsar a second time may not be run"]),
])
def test_a_seam_that_is_gone_is_said_once(
    module_name: str, lost: List[str], log_lines: List[str]
) -> None:
    """A later Pulsar without the function is one error line that says what does not work."""
    module = types.ModuleType(module_name)
    pulsar_hooks.patch_module(module)
    pulsar_hooks.patch_module(module)
    assert not [name for name in vars(module) if not name.startswith("__")]
    assert len(log_lines) == len(lost)
    for line, what in zip(log_lines, lost):
        assert what in line
