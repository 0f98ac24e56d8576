"""Submit commands: whose win, in which spelling, and the policy that our limits make."""

from __future__ import annotations

import pytest

from pulsar_failure_reasons.drm.htcondor.submit import (
    Limits,
    canonical_commands,
    quoted,
    submit_commands,
)
from pulsar_failure_reasons.errors import ConfigurationError

GB = 1024 * 1024 * 1024
WALLTIME = "((JobStatus == 2 && (time() - EnteredCurrentStatus) > 60) =?= true)"
MEMORY = "((JobStatus == 2 && MemoryUsage > RequestMemory) =?= true)"
DISK = "((JobStatus == 2 && DiskUsage > RequestDisk) =?= true)"
MEMORY_REASON = 'strcat("over its memory limit of ", RequestMemory, " MB")'
DISK_REASON = 'strcat("over its disk limit of ", (RequestDisk + 1023) / 1024, " MB")'


def _commands(limits=Limits(), **given):
    return submit_commands(
        executable="/j/command.sh", stdout="/j/out", stderr="/j/err", log="/j/log",
        initialdir="/j/working", job_name="pulsar_1", job_directory="/j", given=given,
        limits=limits)


def test_nothing_given():
    """What stock queued_condor submits with, and what tells the job from all others."""
    assert _commands() == {
        "universe": "vanilla", "getenv": "true", "notification": "NEVER",
        "batch_name": "pulsar_1", "initialdir": "/j/working", "executable": "/j/command.sh",
        "output": "/j/out", "error": "/j/err", "log": "/j/log", "My.PulsarJobDirectory": '"/j"',
    }


def test_given_wins_over_defaults_and_loses_where_it_must():
    """Universe and folder are the operator's to choose; program, streams and log are not."""
    commands = _commands(
        Universe="docker", initialdir="/elsewhere", executable="/bin/false", log="/dev/null",
        output="/dev/null", error="/dev/null", docker_image="alpine")
    assert commands["universe"] == "docker" and commands["initialdir"] == "/elsewhere"
    assert commands["docker_image"] == "alpine"
    assert [commands[name] for name in ("executable", "output", "error", "log")] == [
        "/j/command.sh", "/j/out", "/j/err", "/j/log"]


@pytest.mark.parametrize(
    "limits, requests, condition, subcode, reason",
    [
        (Limits(walltime_s=60), {"allowed_execute_duration": "60"}, WALLTIME, 46001,
         '"over its walltime limit of 60 s"'),
        (Limits(memory_bytes=2 * GB), {"request_memory": "2048"}, MEMORY, 46002,
         MEMORY_REASON),
        (Limits(memory_bytes=2 * GB - 1), {"request_memory": "2048"}, MEMORY, 46002,
         MEMORY_REASON),
        (Limits(disk_bytes=GB), {"request_disk": "1048576"}, DISK, 46003,
         DISK_REASON),
        (Limits(disk_bytes=GB - 1), {"request_disk": "1048576"}, DISK, 46003,
         DISK_REASON),
    ],
    ids=["walltime", "memory", "memory_rounded_up", "disk", "disk_rounded_up"],
)
def test_one_limit(limits, requests, condition, subcode, reason):
    """A limit is a request, and a periodic_hold with its own subcode and reason."""
    added = {k: v for k, v in _commands(limits).items() if k not in _commands()}
    assert added == {
        **requests,
        "periodic_hold": f"({condition})",
        "periodic_hold_reason": f"ifThenElse({condition}, {reason}, undefined)",
        "periodic_hold_subcode": f"ifThenElse({condition}, {subcode}, 0)",
    }


def test_all_limits_and_the_operators_hold():
    """All conditions hold; the first that is true gives reason and subcode, the operator's last."""
    commands = _commands(
        Limits(60, 2 * GB, GB), periodic_hold="Moon > 1", periodic_hold_reason='"moon"',
        periodic_hold_subcode="7", request_memory="1")
    assert commands["periodic_hold"] == f"({WALLTIME}) || ({MEMORY}) || ({DISK}) || (Moon > 1)"
    assert commands["periodic_hold_subcode"] == (
        f"ifThenElse({WALLTIME}, 46001, ifThenElse({MEMORY}, 46002, ifThenElse({DISK}, 46003, 7)))")
    assert commands["periodic_hold_reason"].endswith(', "moon")))')
    assert commands["request_memory"] == "2048"


def test_operators_hold_alone_is_left_alone():
    """Without a limit of ours the operator's periodic_hold is as it was."""
    commands = _commands(periodic_hold="Moon > 1")
    assert commands["periodic_hold"] == "Moon > 1"
    assert "periodic_hold_reason" not in commands and "periodic_hold_subcode" not in commands


@pytest.mark.parametrize(
    "given, command",
    [
        ("Request_Memory", "request_memory"),
        (" rank ", "rank"),
        ("RequestMemory", "request_memory"),
        ("+RequestMemory", "request_memory"),
        ("My.RequestMemory", "request_memory"),
        ("+PeriodicHold", "periodic_hold"),
        ("my.PeriodicHoldReason", "periodic_hold_reason"),
        ("PeriodicHoldSubCode", "periodic_hold_subcode"),
        ("+PeriodicRelease", "periodic_release"),
        ("AllowedExecuteDuration", "allowed_execute_duration"),
        ("requestdisk", "request_disk"),
        ("+Project", "+project"),
        ("My.Project", "my.project"),
        ("myproxy_host", "myproxy_host"),
    ],
)
def test_one_spelling(given, command):
    """What we look at has one name, whether it comes as a command or as an attribute."""
    assert canonical_commands({given: 5}) == {command: "5"}


@pytest.mark.parametrize(
    "given", ["Cmd", "+Cmd", "My.Out", "+Err", "UserLog", "+PulsarJobDirectory"]
)
def test_attributes_that_are_ours(given):
    """An attribute that would replace ours is passed over."""
    assert canonical_commands({given: '"x"'}) == {}


def test_no_value_is_no_command():
    """YAML's null is left out; no, 0 and an empty text are values."""
    assert canonical_commands({"a": None, "b": False, "c": 0, "d": ""}) == {
        "b": "False", "c": "0", "d": ""}


@pytest.mark.parametrize("name", ["", "queue", "Queue", "two words", "a=b", "#c", "1st", "++a", 5])
def test_names_that_are_no_commands(name):
    """What could be read as anything but one command's name is refused."""
    with pytest.raises(ConfigurationError, match="cannot be given as a submit command"):
        canonical_commands({name: "1"})


@pytest.mark.parametrize("value", ["a\nqueue 5", "a\rb", "a\0b", "\n"])
def test_line_breaks(value):
    """A value of several lines would be commands of its own."""
    with pytest.raises(ConfigurationError, match="submit command rank has a line break"):
        canonical_commands({"rank": value})


def test_quoted():
    """A ClassAd's text: quotes and backslashes are escaped."""
    assert quoted('a "b" \\c') == '"a \\"b\\" \\\\c"'
