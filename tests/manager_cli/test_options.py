"""The manager's options: stock's stay as they are, ours are checked at the start."""

from __future__ import annotations

import logging
from typing import Any, Optional

import pytest

from pulsar_failure_reasons.errors import ConfigurationError

from .conftest import MakePulsar


@pytest.mark.parametrize(
    "option, value, allowed",
    [
        ("job_plugin", "Slrum", "it must be one of: LSF, OpenPBS, SGE, Slurm, SlurmTorque, Torque"),
        ("job_plugin", None, "it must be one of: LSF, OpenPBS, SGE, Slurm, SlurmTorque, Torque"),
        ("shell_plugin", "ssh", "it must be one of: GlobusSecureShell, LocalShell, "),
        ("accounting", "sacct", "it must be one of: auto, none"),
        ("limit_with_zero_exit", "ok", "it must be one of: failed, complete"),
        ("status_poll_interval", 0, "it must be a number of seconds"),
        ("command_timeout", "1m", "it must be a number of seconds"),
        ("missing_grace", -1, "it must be a number of seconds"),
        ("missing_grace", 0, None),
        ("hold_grace", "1h", "it must be a number of seconds"),
        ("observe_only", "perhaps", "it must be true or false"),
        ("native_specification", ["--mem=1G"], "it must be one text"),
        ("native_specification", {"mem": "1G"}, "it must be one text"),
    ],
)
def test_value_is_checked_at_start(
    make_pulsar: MakePulsar, option: str, value: Any, allowed: Optional[str]
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
    "spelling, drm, label",
    [
        ("Slurm", "slurm", "Slurm"),
        ("slurm", "slurm", "Slurm"),
        ("SlurmTorque", "slurm", "Slurm"),
        ("LSF", "lsf", "LSF"),
        ("lsf", "lsf", "LSF"),
        ("Torque", "pbs", "PBS"),
        ("OpenPBS", "pbs", "PBS"),
        ("PBSPro", "pbs", "PBS"),
        ("SGE", "gridengine", "Grid Engine"),
        ("GridEngine", "gridengine", "Grid Engine"),
        ("UGE", "gridengine", "Grid Engine"),
    ],
)
def test_which_drm(make_pulsar: MakePulsar, spelling: str, drm: str, label: str) -> None:
    """Each job plugin, in the spellings that people use, is looked at as the DRM it is for."""
    manager = make_pulsar(job_plugin=spelling).manager()
    assert (manager.drm, manager.drm_label) == (drm, label)


def test_quotes_of_the_native_specification(make_pulsar: MakePulsar) -> None:
    """A native specification that cannot be split stops the start."""
    with pytest.raises(ConfigurationError, match="native_specification .* cannot be split"):
        make_pulsar(native_specification="--comment='open")


def test_misspelled(make_pulsar: MakePulsar, caplog: pytest.LogCaptureFixture) -> None:
    """An option that looks like one of ours is a warning; stock's open-ended ones are none."""
    make_pulsar(comand_timeout=5, job_time=60, shell_hostname="x")
    told = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert ["manager _default_: option 'comand_timeout' is not known; is 'command_timeout' meant?"
            ] == [line for line in told if "is not known" in line]


def test_pulsars_own_job_options_are_not_the_plugins(
    make_pulsar: MakePulsar, caplog: pytest.LogCaptureFixture
) -> None:
    """``job_name_template`` and ``job_directory_mode`` are Pulsar's: no warning of the plugin."""
    pulsar = make_pulsar(job_name_template="gx_$job_id")
    pulsar.submit("1", "true")
    assert "#SBATCH -J gx_1\n" in (pulsar.directory("1") / "command.sh").read_text()
    assert [r for r in caplog.records if "Unrecognized" in r.getMessage()] == []


@pytest.mark.parametrize(
    "options, native, ours",
    [
        ({}, None, True),
        ({}, "-t 5 -p short", True),
        ({}, "-J other", False),
        ({}, "--job-name=other", False),
        ({"job_-J": "other"}, None, False),
        ({"native_specification": "-J other"}, None, False),
        ({"job_name_template": "two words $job_id"}, None, False),
    ],
)
def test_whose_name(
    make_pulsar: MakePulsar, options: Any, native: Optional[str], ours: bool
) -> None:
    """A job whose options name it, or whose name a DRM may change, is not told by its name."""
    pulsar = make_pulsar(**options)
    pulsar.submit("1", "true", native)
    assert pulsar.manager().submits_under_our_name("1") is ours
