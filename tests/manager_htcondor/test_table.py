"""DESIGN section 3 and the hold codes, row by row: what HTCondor does, and what Galaxy is told.

All jobs run at once on one server. Expected values are typed from the tables in
``docs/htcondor-holds.md`` and the design.
"""

from __future__ import annotations

from typing import Dict, Iterator, NamedTuple, Optional

import pytest

from tests.pulsar_in_process import own_observers, reason_of, running
from tests.pulsar_server import wait_until

from .harness import Pool, Pulsar

LONG = "sleep 600"
UNKNOWN = "unknown_error"
WALLTIME = "walltime_reached"
MEMORY = "memory_limit_reached"


class Row(NamedTuple):
    """One situation and what is told of it.

    ``play`` is what the pool does to the job, ``then`` what it does once the file ``return_code``
    is there, ``commands`` are submit commands. A job that waits for the file ``go`` gets it once
    its log is lost.
    """

    command: str
    status: str
    cause: Optional[str] = None
    runner_state: Optional[str] = None
    message: str = ""
    returncode: Optional[int] = None
    confidence: str = "event_log"
    play: Optional[str] = None
    commands: Dict[str, str] = {}
    then: Optional[str] = None


def _held(code: str, text: str, cause: str, token: str, **more: object) -> Row:
    return Row(  # type: ignore[arg-type]
        LONG, "failed", cause, token, more.pop("message", text), play=f"0.2 hold {code} {text}",
        confidence="controller",
        **more)


def _well(play: str, **more: object) -> Row:
    return Row("sleep 0.5", "complete", returncode=0, play=play, **more)  # type: ignore[arg-type]


CGROUP = "Job has gone over cgroup memory limit of 2048 megabytes. Last measured usage: 2047 MB."
DISK = "Job has gone over its allocated disk limit of 1 GB"

ROWS: Dict[str, Row] = {
    # The tool's own end
    "well_0": Row("true", "complete", returncode=0),
    "well_3": Row("sh -c 'exit 3'", "complete", returncode=3),
    "well_absent": Row(
        "exit 0", "failed", "lost", UNKNOWN, "left no exit code", confidence="inferred"),
    "badly_present": Row("echo 5 > ../return_code; kill -11 $$", "complete", returncode=5),
    "badly_absent_11": Row("kill -11 $$", "failed", "unknown", UNKNOWN, "signal 11"),
    "sigkill": Row(
        "kill -9 $$", "failed", "memory", MEMORY, "signal 9", confidence="inferred",
        commands={"request_memory": "1"}),
    "sigkill_after_the_tool": Row("echo 0 > ../return_code; kill -9 $$", "complete", returncode=0),
    "guard": Row(
        "exit 7", "failed", "launch_error", UNKNOWN, "exited with 7", confidence="inferred"),
    # Limits, with and without return_code
    "memory_34_102": _held("34 102", CGROUP, "memory", MEMORY, message="memory limit"),
    "memory_34_102_return_code_0": Row(
        "echo 0 > ../return_code; sleep 600", "failed", "memory", MEMORY, returncode=0,
        confidence="controller", then=f"0 hold 34 102 {CGROUP}"),
    "memory_34_102_return_code_137": Row(
        "echo 137 > ../return_code; sleep 600", "failed", "memory", MEMORY, returncode=137,
        confidence="controller", then=f"0 hold 34 102 {CGROUP}"),
    "disk_34_104": _held("34 104", DISK, "disk", UNKNOWN, message="disk"),
    "memory_34_0_by_text": _held("34 0", CGROUP, "memory", MEMORY, message="memory"),
    "disk_34_0_by_text": _held("34 0", DISK, "disk", UNKNOWN, message="disk"),
    "memory_34_0_no_text": _held("34 0", "", "memory", MEMORY),
    "memory_21_102": _held("21 102", "memory usage exceeded request_memory", "memory", MEMORY),
    "walltime_21_103": _held("21 103", "runtime exceeded maximum (8 s)", "walltime", WALLTIME),
    "disk_21_104": _held("21 104", "disk usage exceeded request_disk", "disk", UNKNOWN),
    "cpus_21_101": _held("21 101", "cpu usage exceeded request_cpus", "held", UNKNOWN),
    "walltime_46": _held("46 0", "exceeded allowed job duration of 00:05", "walltime", WALLTIME),
    "walltime_47": _held("47 0", "exceeded allowed execute duration of 5", "walltime", WALLTIME),
    "memory_6_666670": _held("6 666670", "Failed to start, out of memory", "memory", MEMORY),
    # Rules of job and site: by our subcode, or by their words
    "own_walltime": _held("3 46001", "moon", "walltime", WALLTIME),
    "own_memory": _held("3 46002", "moon", "memory", MEMORY),
    "own_disk": _held("3 46003", "moon", "disk", UNKNOWN),
    "own_cpu_time": _held("3 46004", "moon", "cpu_time", WALLTIME),
    "job_rule_no_words": _held("3 7", "the moon", "held", UNKNOWN),
    "site_memory": _held("26 0", "MEMORY EXCEEDED", "memory", MEMORY),
    "site_cpu": _held("26 0", "CPU time limit exceeded", "cpu_time", WALLTIME),
    "site_wasting": _held("26 0", "Job is wasting memory, it used less than 10 %", "held", UNKNOWN),
    # Defects
    "executable_6": _held("6 2", "Failed to execute '/x': No such file", "launch_error", UNKNOWN),
    "output_12": _held("12 2", "Transfer output files failure", "stage_error", UNKNOWN),
    "input_13": _held("13 2", "Transfer input files failure", "stage_error", UNKNOWN),
    "input_size_32": _held("32 0", "input is larger than the limit", "stage_error", UNKNOWN),
    "output_size_33": _held("33 0", "output is larger than the limit", "stage_error", UNKNOWN),
    "output_12_no_space": _held("12 28", "No space left on device", "disk", UNKNOWN),
    "working_directory_14": _held("14 2", "Cannot access", "launch_error", UNKNOWN),
    "unknown_99": _held("99 3", "a new kind", "unknown", UNKNOWN, message="99/3"),
    # No ends
    "released_once": _well("0.1 hold 26 0 the moon; 0.1 release full moon"),
    "vacate_code_as_hold": Row(
        "sleep 0.4", "complete", returncode=0,
        play="0.1 hold 1004 0 vacated; 0.2 release vacate is over"),
    "evicted": _well("0.1 evict preempted"),
    "shadow_exception": _well("0.1 shadow_exception"),
    "executed_twice": _well("0.1 execute_again"),
    "reconnected": _well("0.1 disconnect; 0.4 reconnect"),
    "reconnect_failed": _well("0.1 disconnect; 0.3 reconnect_failed"),
    # Removed
    "removed": Row(
        LONG, "failed", "cancelled", UNKNOWN, "cancelled outside Galaxy",
        play="0.2 remove via condor_rm (by user alice)"),
    "removed_return_code_0": Row(
        "echo 0 > ../return_code; sleep 600", "failed", "cancelled", UNKNOWN, returncode=0,
        then="0 remove via condor_rm (by user alice)"),
    "usegalaxy_eu": Row(
        LONG, "failed", "memory", MEMORY,
        play=(
            f"0.1 hold 34 0 {CGROUP}; 0.2 release more memory; 0.1 hold 34 0 {CGROUP}; "
            "0.2 remove running out of memory (by user condor)"),
        commands={"periodic_release": "(HoldReasonCode =?= 4711)"}),
    # Found without a word in the log
    "no_log_well": Row(
        "sleep 0.3", "complete", returncode=0, play="0.1 lose_log"),
    "no_log_signal": Row(
        "while [ ! -e ../go ]; do sleep 0.1; done; kill -11 $$", "failed", "unknown", UNKNOWN,
        "signal 11", play="0.1 lose_log", confidence="accounting"),
    "no_log_held": Row(
        LONG, "failed", "memory", MEMORY, confidence="controller",
        play=f"0.1 lose_log; 0.1 hold 34 102 {CGROUP}"),
    "forgotten_well": Row(
        "echo 0 > ../return_code; sleep 600", "complete", returncode=0, then="0 forget"),
    "forgotten": Row(
        LONG, "failed", "lost", UNKNOWN, "forgot it", confidence="inferred", play="0.3 forget"),
    "same_id_as_the_forgotten": Row("kill -11 $$", "failed", "unknown", UNKNOWN, "signal 11"),
    # It stays in the queue of itself
    "leave_in_queue": Row(
        "true", "complete", returncode=0, commands={"leave_in_queue": "true"}),
    "leave_in_queue_signal": Row(
        "kill -11 $$", "failed", "unknown", UNKNOWN, "signal 11",
        commands={"leave_in_queue": "true"}),
}

#: Held for good, but nobody is told so: rows that stay queued.
WAITING: Dict[str, str] = {
    "person_1": "0.1 hold 1 0 via condor_hold (by user alice)",
    "spooling_16": "0.1 hold 16 0 Spooling input data files",
}


class Table(NamedTuple):
    """The server and the pool of all rows."""

    pulsar: Pulsar
    pool: Pool


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Table]:
    """A server with a job for each row, all submitted."""
    home = tmp_path_factory.mktemp("table")
    with Pool(home / "pool").in_use() as pool, own_observers():
        with running(Pulsar(home)) as pulsar:
            for name, row in ROWS.items():
                pulsar.submit(name, row.command, row.play, **row.commands)
            for name in ROWS:
                _interfere(pulsar, pool, name)
            for name, play in WAITING.items():
                pulsar.submit(name, LONG, play)
            pulsar.submit("on_hold_15", hold="true")
            yield Table(pulsar, pool)


def _interfere(pulsar: Pulsar, pool: Pool, name: str) -> None:
    row, external_id, directory = ROWS[name], pulsar.external_id(name), pulsar.directory(name)
    assert external_id is not None
    if row.then:
        wait_until((directory / "return_code").exists, 60, f"{name} to write it", 0.02)
        pool.do("play", external_id, row.then)
    if "../go" in row.command:
        wait_until(
            lambda: "nowhere" in (pool.attribute(external_id, "UserLog") or ""), 60,
            f"{name} to lose its log", 0.02)
        (directory / "go").touch()


@pytest.mark.parametrize("name", ROWS)
def test_row(table: Table, name: str) -> None:
    """Each row has its status, reason, token and message in the payload, and leaves the queue."""
    row = ROWS[name]
    payload = table.pulsar.end(name)
    assert (payload["status"], reason_of(payload)) == (row.status, row.cause), payload
    assert payload.get("runner_state") == row.runner_state
    assert payload["returncode"] == row.returncode
    if row.cause is not None:
        assert row.message in payload["runner_state_message"]
        assert payload["failure_reason"]["confidence"] == row.confidence
        assert payload["failure_reason"]["external_id"] == table.pulsar.external_id(name)
    external_id = table.pulsar.external_id(name)
    assert external_id is not None
    table.pool.wait_gone(external_id)


@pytest.mark.parametrize("name", [*WAITING, "on_hold_15"])
def test_waits(table: Table, name: str) -> None:
    """A person's hold and a spooling job wait: queued, and still in HTCondor's queue."""
    external_id = table.pulsar.external_id(name)
    assert external_id is not None
    table.pool.wait_for(external_id, 5)
    table.pulsar.wait_for_looks(10)
    assert table.pulsar.status(name) == "queued"
    assert int(external_id) in table.pool.queue()
