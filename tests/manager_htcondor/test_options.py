"""The manager's options: good and bad values, and what they change."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Any, Dict

import pytest
from pulsar.core import PulsarApp

from pulsar_failure_reasons.errors import ConfigurationError
from tests.pulsar_in_process import reason_of

from .conftest import MakePulsar
from .harness import HELD, Pool, Pulsar

CAUSES = "walltime, memory, cpu_time, disk, launch_error, stage_error, held, unknown"
OVER = "Job has gone over cgroup memory limit of 2048 megabytes."


@pytest.mark.parametrize(
    "option, value, allowed",
    [
        ("schedd", "fake@localhost", None),
        ("schedd", "two words", "it must be a name or address without blanks"),
        ("schedd", "", "it must be a name or address without blanks"),
        ("schedd", "-name", "it must be a name or address without blanks"),
        ("pool", "cm.example.org:9618", None),
        ("pool", "<127.0.0.1:9618?addrs=127.0.0.1-9618&alias=cm>", None),
        ("pool", "cm1,cm2:9618", None),
        ("pool", "cm\n9618", "it must be a name or address without blanks"),
        ("status_poll_interval", 0, "it must be a number of seconds"),
        ("status_poll_interval", "soon", "it must be a number of seconds"),
        ("command_timeout", 0, "it must be a number of seconds"),
        ("missing_grace", -1, "it must be a number of seconds"),
        ("hold_grace", "1h", "it must be a number of seconds"),
        ("hold_grace", 0, None),
        ("user_hold_grace", None, None),
        ("user_hold_grace", 0, None),
        ("user_hold_grace", "never", "it must be a number of seconds"),
        ("hold_releases_max", 0, None),
        ("hold_releases_max", -1, "it must be a whole number, 0 or more"),
        ("hold_releases_max", 1.5, "it must be a whole number, 0 or more"),
        ("fail_at_once", [], None),
        ("fail_at_once", "memory, Disk", None),
        ("fail_at_once", ["memory", "oom"], f"it must be a list of: {CAUSES}"),
        ("fail_at_once", 60, f"it must be a list of: {CAUSES}"),
        ("wait_for_release", ["memory"], None),
        ("wait_for_release", "cancelled", f"it must be a list of: {CAUSES}"),
        ("sigkill_means_memory", "no", None),
        ("sigkill_means_memory", "rarely", "it must be true or false"),
        ("limit_with_zero_exit", "ok", "it must be one of: failed, complete"),
        ("observe_only", "perhaps", "it must be true or false"),
    ],
)
def test_value_is_checked_at_start(
    make_pulsar: MakePulsar, option: str, value: Any, allowed: Any
) -> None:
    """A bad value stops the start with one line: manager, option, what it is, what it may be."""
    if allowed is None:
        make_pulsar(**{option: value})
        return
    with pytest.raises(ConfigurationError) as caught:
        make_pulsar(**{option: value})
    text = str(caught.value)
    assert text.startswith(f"manager _default_: option {option} is ") and allowed in text
    assert "\n" not in text


@pytest.mark.parametrize(
    "options, said",
    [
        ({"request_walltime": "-5"}, "not a duration: '-5'"),
        ({"request_walltime": 0}, "0 is no limit"),
        ({"request_walltime": "1 hour; queue 5"}, "not a duration"),
        ({"request_walltime": True}, "not a duration: 'True'"),
        ({"submit_request_walltime": "1e9) || true"}, "not a duration"),
        ({"request_memory": "-4G"}, "not a memory size"),
        ({"request_memory": "0"}, "'0' is no limit"),
        ({"request_disk": "4 elephants"}, "not a memory size"),
        ({"submit_queue": "3"}, "'queue' cannot be given as a submit command"),
        ({"submit_two words": "3"}, "'two words' cannot be given as a submit command"),
        ({"submit_arguments": "a\nqueue 5"}, "the submit command arguments has a line break"),
        ({"submit_arguments": "a\rb"}, "the submit command arguments has a line break"),
    ],
)
def test_submission_of_the_manager_is_checked_at_start(
    make_pulsar: MakePulsar, options: Dict[str, Any], said: str
) -> None:
    """A limit or submit command that cannot work stops the start with one line."""
    with pytest.raises(ConfigurationError) as caught:
        make_pulsar(**options)
    assert str(caught.value).startswith("manager _default_: ") and said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_bindings_are_missing(
    make_pulsar: MakePulsar, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the bindings the start ends with one line that says what to install."""
    monkeypatch.setitem(sys.modules, "htcondor2", None)
    with pytest.raises(ConfigurationError) as caught:
        make_pulsar()
    assert "pip install 'pulsar-failure-reasons[htcondor]'" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_ini_file_of_text(tmp_path: Path, make_pulsar: MakePulsar, pool: Pool) -> None:
    """In job_managers.ini every value is text; a job runs with all options given so."""
    options = {
        "schedd": "fake@localhost",
        "pool": "localhost:9618",
        "status_poll_interval": "0.1",
        "min_polling_interval": "0.05",
        "command_timeout": "10",
        "missing_grace": "0.3",
        "hold_grace": "0.5",
        "user_hold_grace": "60",
        "hold_releases_max": "2",
        "fail_at_once": "walltime, memory",
        "wait_for_release": "disk",
        "sigkill_means_memory": "no",
        "limit_with_zero_exit": "Failed",
        "request_walltime": "00:01:00",
        "request_memory": "2G",
        "observe_only": "no",
        "submit_rank": "1",
    }
    ini = tmp_path / "managers.ini"
    lines = [f"{name} = {value}" for name, value in options.items()]
    ini.write_text(
        "\n".join(["[manager:_default_]", "type = queued_htcondor_classified", *lines]))
    pulsar = make_pulsar()
    pulsar.shutdown()
    conf = {**pulsar._conf, "job_managers_config": str(ini)}
    del conf["manager"]
    pulsar.app = PulsarApp(**conf)
    external_id = pulsar.submit("1", "sleep 600", f"0.1 hold 34 102 {OVER}")
    assert pool.attribute(external_id, "RequestMemory") == "2048"
    assert pool.attribute(external_id, "Rank") == "1"
    assert reason_of(pulsar.end("1")) == "memory"


def test_unknown_schedd_is_an_outage(
    make_pulsar: MakePulsar, caplog: pytest.LogCaptureFixture
) -> None:
    """A schedd that the collector does not know (yet) does not stop the start; it is told."""
    pulsar = make_pulsar(schedd="other@nowhere")
    pulsar.submit("1")
    payload = pulsar.end("1")
    assert (payload["status"], reason_of(payload)) == ("failed", "lost")
    assert "the collector knows no schedd other@nowhere" in payload["runner_state_message"]


def test_interval_is_not_below_stocks(make_pulsar: MakePulsar) -> None:
    """status_poll_interval below min_polling_interval is raised to it."""
    pulsar = make_pulsar(status_poll_interval=1, min_polling_interval=15)
    assert pulsar.observer().interval_s == 15


@pytest.mark.parametrize(
    "option, status, cause", [("failed", "failed", "memory"), ("complete", "complete", None)]
)
def test_limit_with_zero_exit(
    make_pulsar: MakePulsar, pool: Pool, option: str, status: str, cause: str
) -> None:
    """The option decides about a job at a limit whose tool had ended with 0."""
    pulsar = make_pulsar(limit_with_zero_exit=option)
    external_id = pulsar.submit(
        "1", "echo 0 > ../return_code; sleep 600", f"0.3 hold 34 102 {OVER}")
    payload = pulsar.end("1")
    assert (payload["status"], reason_of(payload), payload["returncode"]) == (status, cause, 0)
    pool.wait_gone(external_id)


@pytest.mark.parametrize(
    "option, memory_mb, cause",
    [
        (True, "1", "memory"),
        (True, "4096", "unknown"),
        (False, "1", "unknown"),
    ],
    ids=["near_the_request", "far_below_it", "switched_off"],
)
def test_sigkill_means_memory(
    make_pulsar: MakePulsar, pool: Pool, option: bool, memory_mb: str, cause: str
) -> None:
    """Signal 9 without a hold is memory, unless far less was used or the option says no."""
    pulsar = make_pulsar(sigkill_means_memory=option)
    for job_id, play in (("logged", None), ("unlogged", "0.1 lose_log")):
        pulsar.submit(job_id, "sleep 0.6; kill -9 $$", play, request_memory=memory_mb)
    for job_id in ("logged", "unlogged"):
        assert reason_of(pulsar.end(job_id)) == cause, job_id


def test_observe_only(make_pulsar: MakePulsar, caplog: pytest.LogCaptureFixture) -> None:
    """The reason is recorded and logged; nothing of it is sent."""
    caplog.set_level(logging.INFO, "pulsar.failure_reasons")
    pulsar = make_pulsar(observe_only=True)
    pulsar.submit("1", "sleep 600", f"0.1 hold 34 102 {OVER}")
    payload = pulsar.end("1")
    assert (payload["status"], reason_of(payload)) == ("failed", None)
    record = pulsar.record("1")
    assert record is not None and record["runner_state"] == "memory_limit_reached"
    assert "cgroup memory limit" in caplog.text


def test_misspelled_option_is_told(
    make_pulsar: MakePulsar, caplog: pytest.LogCaptureFixture
) -> None:
    """An unknown option is no error; a near miss is asked about."""
    make_pulsar(hold_release_max=5, submit_rank="1", env_FOO="bar")
    told = [r.getMessage() for r in caplog.records if r.name == "pulsar.failure_reasons.options"]
    assert told == [
        "manager _default_: option 'hold_release_max' is not known; is 'hold_releases_max' meant?"
    ]


def test_user_hold_grace(make_pulsar: MakePulsar, pool: Pool) -> None:
    """A person's hold comes to an end where the operator says so, and only there."""
    pulsar = make_pulsar(managers={"hasty": {"user_hold_grace": 0.4}, "patient": {}})
    play = "0.1 hold 1 0 via condor_hold (by user alice)"
    for name in ("hasty", "patient"):
        pulsar.submit(name, "sleep 600", play, manager=name)
    payload = pulsar.end("hasty", manager="hasty")
    assert (payload["status"], reason_of(payload)) == ("failed", "held")
    assert "held by alice" in payload["runner_state_message"]
    pool.wait_gone(pulsar.external_id("hasty") or "")
    assert pulsar.status("patient", "patient") == "queued"
    pool.wait_for(pulsar.external_id("patient") or "", HELD)


def test_two_policies_on_one_schedd(make_pulsar: MakePulsar, pool: Pool) -> None:
    """Managers share the look at a schedd and keep each their own patience with holds."""
    pulsar: Pulsar = make_pulsar(managers={
        "at_once": {}, "waits": {"wait_for_release": ["memory"], "hold_grace": 60}})
    for name in ("at_once", "waits"):
        pulsar.submit(name, "sleep 600", f"0.1 hold 34 102 {OVER}", manager=name)
    assert pulsar.observer("at_once") is pulsar.observer("waits")
    assert reason_of(pulsar.end("at_once", manager="at_once")) == "memory"
    pool.wait_gone(pulsar.external_id("at_once") or "")
    pool.wait_for(pulsar.external_id("waits") or "", HELD)
    pulsar.wait_for_looks(5, "waits")
    assert pulsar.status("waits", "waits") == "queued"
