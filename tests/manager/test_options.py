"""The manager's options, as app.yml (typed) and an ini file (text) give them."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, Dict

import pytest
from pulsar.core import PulsarApp

from pulsar_failure_reasons.errors import ConfigurationError

from .conftest import MakePulsar
from .harness import reason_of


@pytest.mark.parametrize(
    "option, value, allowed",
    [
        ("submit", "qsub", "it must be one of: auto, sbatch, drmaa"),
        ("submit", True, "it must be one of: auto, sbatch, drmaa"),
        ("accounting", "slurmdbd", "it must be one of: auto, sacct, none"),
        ("accounting", None, None),  # YAML's null is the word none
        ("limit_with_zero_exit", "ok", "it must be one of: failed, complete"),
        ("cluster", "one two", "it must be a single word"),
        ("cluster", "one,two", "it must be a single word"),
        ("cluster", "", "it must be a single word"),
        ("cluster", "-rf", "it must be a single word"),
        ("cluster", "a;b", "it must be a single word"),
        ("status_poll_interval", 0, "it must be a number of seconds"),
        ("status_poll_interval", "quick", "it must be a number of seconds"),
        ("command_timeout", 0, "it must be a number of seconds"),
        ("command_timeout", "1m", "it must be a number of seconds"),
        ("missing_grace", -1, "it must be a number of seconds"),
        ("missing_grace", 0, None),
        ("hold_grace", "1h", "it must be a number of seconds"),
        ("hold_grace", [1], "it must be a number of seconds"),
        ("observe_only", "perhaps", "it must be true or false"),
        ("native_specification", ["--mem=1G"], "it must be one text"),
        ("native_specification", {"mem": "1G"}, "it must be one text"),
    ],
)
def test_value_is_checked_at_start(
    make_pulsar: MakePulsar, option: str, value: Any, allowed: str
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


def test_ini_file_of_text(tmp_path: Path, make_pulsar: MakePulsar) -> None:
    """In job_managers.ini every value is text; a job runs with all options given so."""
    options: Dict[str, str] = {
        "submit": "sbatch",
        "cluster": "private",
        "status_poll_interval": "0.1",
        "min_polling_interval": "0.05",
        "accounting": "SACCT",
        "missing_grace": "0.3",
        "hold_grace": "10",
        "limit_with_zero_exit": "Failed",
        "command_timeout": "5",
        "observe_only": "no",
        "native_specification": "-t 1",
    }
    ini = tmp_path / "managers.ini"
    lines = [f"{name} = {value}" for name, value in options.items()]
    ini.write_text("\n".join(["[manager:_default_]", "type = queued_slurm", *lines]))
    pulsar = make_pulsar()
    pulsar.shutdown()
    conf = {**pulsar._conf, "job_managers_config": str(ini)}
    del conf["manager"]
    pulsar.app = PulsarApp(**conf)
    pulsar.submit("1", "sleep 600")
    assert reason_of(pulsar.end("1")) == "walltime"


def test_interval_is_not_below_stocks(make_pulsar: MakePulsar) -> None:
    """status_poll_interval below min_polling_interval is raised to it; 15 s where not given."""
    pulsar = make_pulsar(status_poll_interval=1, min_polling_interval=15)
    assert pulsar.observer().interval_s == 15
    defaults = make_pulsar(status_poll_interval=15, min_polling_interval=0.5)
    assert defaults.manager()._interval_s == 15


@pytest.mark.parametrize(
    "limit_with_zero_exit, status, cause", [("failed", "failed", "memory"),
                                            ("complete", "complete", None)]
)
def test_limit_with_zero_exit(
    make_pulsar: MakePulsar, limit_with_zero_exit: str, status: str, cause: str
) -> None:
    """The option decides about a job at a limit whose tool had ended with 0."""
    pulsar = make_pulsar(limit_with_zero_exit=limit_with_zero_exit)
    hog = "python3 -c 'x = bytes([1]) * 99000000; import time; time.sleep(600)' || true"
    pulsar.submit("1", hog, "--mem=40")
    payload = pulsar.end("1")
    assert (payload["status"], reason_of(payload), payload["returncode"]) == (status, cause, 0)


def test_observe_only(make_pulsar: MakePulsar, caplog: pytest.LogCaptureFixture) -> None:
    """The reason is recorded and logged; nothing of it is sent, the status is as without it."""
    caplog.set_level(logging.INFO, "pulsar.failure_reasons")
    pulsar = make_pulsar(observe_only=True)
    pulsar.submit("1", "sleep 600", "-t 1")
    payload = pulsar.end("1")
    assert (payload["status"], reason_of(payload)) == ("failed", None)
    record = pulsar.record("1")
    assert record is not None and record["runner_state"] == "walltime_reached"
    assert "walltime limit is 60 s" in caplog.text


def test_switch_off(make_pulsar: MakePulsar, monkeypatch: pytest.MonkeyPatch) -> None:
    """PULSAR_FAILURE_REASONS=off: jobs run and end, nothing is recorded and nothing is sent."""
    monkeypatch.setenv("PULSAR_FAILURE_REASONS", "off")
    pulsar = make_pulsar()
    pulsar.submit("1", "sleep 600", "-t 1")
    pulsar.submit("2")
    payload = pulsar.end("1")
    assert (payload["status"], reason_of(payload)) == ("failed", None)
    assert pulsar.record("1") is None
    assert pulsar.end("2")["status"] == "complete"


def test_misspelled_option_is_told(
    make_pulsar: MakePulsar, caplog: pytest.LogCaptureFixture
) -> None:
    """An unknown option is no error (stock's are open-ended); a near miss is asked about."""
    make_pulsar(hold_grase=5, env_FOO="bar", preprocess_action_max_retries=3, num_jobs=2)
    told = [r.getMessage() for r in caplog.records if r.name == "pulsar.failure_reasons.options"]
    assert told == ["manager _default_: option 'hold_grase' is not known; is 'hold_grace' meant?"]
