"""The batched answers of squeue and sacct, as captured with our own commands."""

from __future__ import annotations

from typing import Dict, List, Optional

import pytest

from pulsar_failure_reasons.drm.base import Ending, JobView, Phase
from pulsar_failure_reasons.drm.slurm import parse_sacct, parse_squeue
from pulsar_failure_reasons.errors import OutputParseError
from pulsar_failure_reasons.reason import Cause, Confidence
from tests.drm.slurm_data import SEPARATOR, batched

MB = 1024 * 1024
VERSIONS = ["22.05", "24.11"]


def _by_id(views: List[JobView]) -> Dict[str, JobView]:
    assert len({view.external_id for view in views}) == len(views)
    return {view.external_id: view for view in views}


# job: state, ending, cause, exit code, signal, memory MB. Typed from the captures; the same jobs
# ran on both versions.
SQUEUE = {
    "1": ("FAILED", Ending.BADLY, None, 3, None, 100),
    "2": ("COMPLETED", Ending.WELL, None, 0, None, 100),
    "3": ("COMPLETED", Ending.WELL, None, 0, None, 100),
    "4": ("FAILED", Ending.BADLY, None, 3, None, 100),
    "5": ("COMPLETED", Ending.WELL, None, 0, None, 60),
    "6": ("OUT_OF_MEMORY", Ending.LIMIT, Cause.MEMORY, 0, 125, 50),
    "7_0": ("COMPLETED", Ending.WELL, None, 0, None, 100),
    "7_1": ("FAILED", Ending.BADLY, None, 1, None, 100),
    "8_[1-9%3]": ("PENDING", None, None, None, None, 100),
    "9": ("CANCELLED", Ending.CANCELLED, Cause.CANCELLED, 0, 15, 100),
    "10+0": ("COMPLETED", Ending.WELL, None, 0, None, 10),
    "10+1": ("COMPLETED", Ending.WELL, None, 0, None, 20),
    "12": ("TIMEOUT", Ending.LIMIT, Cause.WALLTIME, 0, 15, 20),
    "13": ("COMPLETED", Ending.WELL, None, 0, None, 100),
    "14": ("FAILED", Ending.BADLY, Cause.DISK, 0, 53, 100),
}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("answer", ["squeue_all", "squeue_cluster"])
def test_squeue(version: str, answer: str) -> None:
    """Every job of a real answer is there, with its end and the memory of the whole job."""
    views = _by_id(parse_squeue(batched(version, answer), SEPARATOR))
    told = {
        key: (
            view.job_state,
            view.end.ending if view.end else None,
            view.end.cause if view.end else None,
            view.end.exit_code if view.end else None,
            view.end.signal if view.end else None,
            (view.memory_bytes or 0) // MB,
        )
        for key, view in views.items()
    }
    assert told == SQUEUE
    assert {view.confidence for view in views.values()} == {Confidence.CONTROLLER}


@pytest.mark.parametrize("version", VERSIONS)
def test_squeue_details(version: str) -> None:
    """Names with newlines, limits, times and nodes come through as they are."""
    views = _by_id(parse_squeue(batched(version, "squeue_all"), SEPARATOR))
    assert views["3"].job_name == "two\nlines | x"
    assert views["4"].job_name == "JobState=COMPLETED Reason=None"
    assert (views["12"].walltime_s, views["12"].elapsed_s) == (60, 27)
    assert views["10+0"].walltime_s is None
    assert views["9"].elapsed_s == {"22.05": 30, "24.11": 31}[version]
    assert views["9"].node == "node1" and views["8_[1-9%3]"].node is None
    assert views["8_[1-9%3]"].phase is Phase.QUEUED
    assert views["1"].restarts == 0
    assert views["1"].submitted_at == {
        "22.05": "2026-11-29T14:07:46", "24.11": "2026-11-29T14:08:35"
    }[version]
    assert ("State", "FAILED") in [(e.field, e.value) for e in views["1"].evidence]


@pytest.mark.parametrize("version", VERSIONS)
def test_no_jobs_is_a_real_answer(version: str) -> None:
    """The row of headings proves that Slurm answered, so an empty list can be believed."""
    assert parse_squeue(batched(version, "squeue_no_jobs"), SEPARATOR) == []
    assert parse_sacct(batched(version, "sacct_unknown"), SEPARATOR) == []


# job: state, ending, cause, exit code, signal, memory MB, cancelled by
SACCT = {
    "1": ("FAILED", Ending.BADLY, None, 3, None, 100, None),
    "2": ("COMPLETED", Ending.WELL, None, 0, None, 100, None),
    "3": ("COMPLETED", Ending.WELL, None, 0, None, 100, None),
    "4": ("FAILED", Ending.BADLY, None, 3, None, 100, None),
    "5": ("COMPLETED", Ending.WELL, None, 0, None, 60, None),
    "6": ("OUT_OF_MEMORY", Ending.LIMIT, Cause.MEMORY, 0, 125, 50, None),
    "7_0": ("COMPLETED", Ending.WELL, None, 0, None, 100, None),
    "7_1": ("FAILED", Ending.BADLY, None, 1, None, 100, None),
    "8_[1-9%3]": ("PENDING", None, None, None, None, 100, None),
    "9": ("CANCELLED", Ending.CANCELLED, Cause.CANCELLED, 0, None, 100, "0"),
    "10+0": ("COMPLETED", Ending.WELL, None, 0, None, 10, None),
    "10+1": ("COMPLETED", Ending.WELL, None, 0, None, 20, None),
    "12": ("TIMEOUT", Ending.LIMIT, Cause.WALLTIME, 0, None, 20, None),
    "14": ("FAILED", Ending.BADLY, Cause.DISK, 0, 53, 100, None),
}


@pytest.mark.parametrize("version", VERSIONS)
def test_sacct(version: str) -> None:
    """One view per job; batch steps that say CANCELLED or 0:15 do not change the allocation."""
    views = _by_id(parse_sacct(batched(version, "sacct_all"), SEPARATOR))
    told = {
        key: (
            view.job_state,
            view.end.ending if view.end else None,
            view.end.cause if view.end else None,
            view.end.exit_code if view.end else None,
            view.end.signal if view.end else None,
            (view.memory_bytes or 0) // MB,
            view.end.cancelled_by if view.end else None,
        )
        for key, view in views.items()
    }
    assert told == SACCT
    assert {view.confidence for view in views.values()} == {Confidence.ACCOUNTING}
    assert views["3"].job_name == "two\nlines | x"
    assert views["6"].used_memory_bytes == {"22.05": 1088, "24.11": 1400}[version] * 1024
    assert (views["12"].walltime_s, views["12"].elapsed_s) == (60, 27)


def _squeue(rows: List[str], before: str = "", after: str = "") -> str:
    head = "JOBID@s@STATE@s@REASON@s@EXIT_CODE@s@NAME@s@\n"
    return before + head + "".join(row.replace("|", "@s@") + "@s@\n" for row in rows) + after


def _sacct(rows: List[str]) -> str:
    head = "JobID|State|ExitCode|ReqMem|AllocCPUS|NNodes|MaxRSS|JobName"
    return "".join(row.replace("|", "@s@") + "@s@\n" for row in [head, *rows])


def test_banners_and_cluster_lines_are_skipped() -> None:
    """Text before the headings, between and after is no part of a row."""
    text = _squeue(
        ["5|RUNNING|None|0|a"], "Welcome to 1999!\n\nCLUSTER: x\n", "Have a nice day\n"
    ) + _squeue(["6|PENDING|Priority|0|b"], "CLUSTER: y\n")
    views = parse_squeue(text, "@s@")
    assert [(v.external_id, v.job_state) for v in views] == [("5", "RUNNING"), ("6", "PENDING")]
    assert parse_squeue(text.replace("\n", "\r\n"), "@s@")[1].external_id == "6"


def test_columns_that_this_slurm_does_not_know_are_left_out() -> None:
    """An unknown field is an empty heading over empty cells (seen on 22.05 and 24.11)."""
    text = "JOBID@s@@s@STATE@s@REASON@s@NAME@s@\n5@s@@s@TIMEOUT@s@TimeLimit@s@x@s@\n"
    (view,) = parse_squeue(text, "@s@")
    assert view.job_state == "TIMEOUT" and view.memory_bytes is None and view.restarts is None


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("\n\n", id="blank"),
        pytest.param("Welcome to the cluster\n", id="banner_only"),
        pytest.param("CLUSTER: private\n", id="cluster_line_only"),
        pytest.param("slurm_load_jobs error: Unable to contact slurm controller\n", id="error"),
        pytest.param("5@s@RUNNING@s@None@s@0@s@a@s@\n", id="no_headings"),
        pytest.param(_squeue(["5|RUNNING|None|0"]), id="field_missing"),
        pytest.param(_squeue(["5|RUNNING|None|0|a|b"]), id="field_too_many"),
        pytest.param(_squeue(["5|RUNNING|None|0|a"])[:-8], id="cut_in_a_row"),
        pytest.param(_squeue(["x|RUNNING|None|0|a"]), id="no_id"),
        pytest.param(_squeue(["-5|RUNNING|None|0|a"]), id="id_like_an_option"),
        pytest.param(_squeue(["5||None|0|a"]), id="no_state"),
        pytest.param(_squeue(["5|FAILED|None|soon|a"]), id="no_exit_code"),
    ],
)
def test_what_is_no_answer_of_squeue_is_refused(text: str) -> None:
    """Unknown is never "no jobs": only a whole answer counts."""
    with pytest.raises(OutputParseError):
        parse_squeue(text, "@s@")


def test_a_name_cannot_end_its_field() -> None:
    """Whatever a job is called, only the random separator ends a field or a row."""
    name = "x\n6|COMPLETED|None|0|y\nJobState=COMPLETED State=COMPLETED @q7@COMPLETED@q7@"
    row = f"5@s@FAILED@s@None@s@768@s@{name}@s@\n"
    (view,) = parse_squeue(_squeue([]) + row, "@s@")
    assert view.job_name == name
    assert view.job_state == "FAILED" and view.external_id == "5"


def test_working_directory() -> None:
    """It tells whose job it is, where a site gives jobs names of its own."""
    head = "JOBID@s@STATE@s@REASON@s@WORK_DIR@s@NAME@s@\n"
    (view,) = parse_squeue(head + "5@s@RUNNING@s@None@s@/s/7/working@s@a@s@\n", "@s@")
    assert view.workdir == "/s/7/working"
    rows = ["JobID@s@State@s@ExitCode@s@WorkDir@s@JobName", "5@s@FAILED@s@1:0@s@/s/7@s@a"]
    (view,) = parse_sacct("".join(f"{row}@s@\n" for row in rows), "@s@")
    assert view.workdir == "/s/7"


def test_a_long_list_of_tasks_does_not_cost_the_answer() -> None:
    """Somebody's array waits with thousands of single tasks: every other job is still seen."""
    tasks = ",".join(str(number) for number in range(1, 3000, 2))
    head = "ARRAY_JOB_ID@s@ARRAY_TASK_ID@s@JOBID@s@STATE@s@REASON@s@NAME@s@\n"
    rows = f"9@s@{tasks}@s@9@s@PENDING@s@None@s@a@s@\n10@s@N/A@s@10@s@RUNNING@s@None@s@b@s@\n"
    views = parse_squeue(head + rows, "@s@")
    assert [(view.external_id, view.job_state) for view in views] == [
        ("9_[...]", "PENDING"), ("10", "RUNNING")]


def test_memory_without_tres_is_only_told_for_one_cpu() -> None:
    """MinMemory does not say whether it is per CPU, so with several CPUs nothing is told."""
    head = "JOBID@s@STATE@s@REASON@s@MIN_MEMORY@s@CPUS@s@NODES@s@NAME@s@\n"
    row = "5@s@RUNNING@s@None@s@2G@s@{}@s@1@s@a@s@\n"
    assert parse_squeue(head + row.format(1), "@s@")[0].memory_bytes == 2048 * MB
    assert parse_squeue(head + row.format(4), "@s@")[0].memory_bytes is None


# id, rows -> state, ending, cause, used bytes
STEPS = [
    (
        "batch_completed_before_the_job",
        ["5|RUNNING|0:0|1G|1|1||a", "5.batch|COMPLETED|0:0||1|1|22212K|batch"],
        "RUNNING", None, None, 22212 * 1024,
    ),
    (
        "timeout_with_completed_steps",
        ["5|TIMEOUT|0:0|1G|1|1||a", "5.extern|COMPLETED|0:0|||||", "5.0|COMPLETED|0:0||||9M|"],
        "TIMEOUT", Ending.LIMIT, Cause.WALLTIME, 9 * MB,
    ),
    (
        "batch_out_of_memory_under_failed",
        ["5|FAILED|1:0|1G|1|1||a", "5.batch|OUT_OF_MEMORY|0:125||1|1|900M|batch"],
        "FAILED", Ending.LIMIT, Cause.MEMORY, 900 * MB,
    ),
    (
        "step_out_of_memory_under_failed",
        ["5|FAILED|9:0|1G|1|1||a", "5.batch|FAILED|9:0|||||", "5.0|OUT_OF_MEMORY|0:125|||||"],
        "FAILED", Ending.LIMIT, Cause.MEMORY, None,
    ),
    (
        "step_out_of_memory_that_the_job_survived",
        ["5|COMPLETED|0:0|1G|1|1||a", "5.0|OUT_OF_MEMORY|0:125|||||"],
        "COMPLETED", Ending.WELL, None, None,
    ),
    (
        "extern_out_of_memory_is_not_the_job",
        ["5|FAILED|1:0|1G|1|1||a", "5.extern|OUT_OF_MEMORY|0:125|||||"],
        "FAILED", Ending.BADLY, None, None,
    ),
    (
        "cancelled_stays_cancelled",
        ["5|CANCELLED by 7|0:0|1G|1|1||a", "5.batch|OUT_OF_MEMORY|0:125|||||"],
        "CANCELLED", Ending.CANCELLED, Cause.CANCELLED, None,
    ),
    (
        "requeued_job_last_record_counts",
        ["5|NODE_FAIL|0:0|1G|1|1||a", "5.batch|CANCELLED|||||9M|", "5|PENDING|0:0|1G|1|1||a"],
        "PENDING", None, None, None,
    ),
    (
        "step_of_a_dead_node_has_no_exit_code",
        ["5|NODE_FAIL|1:0|1G|1|1||a", "5.batch|CANCELLED||||||batch"],
        "NODE_FAIL", Ending.INFRASTRUCTURE, Cause.NODE_FAILURE, None,
    ),
]


@pytest.mark.parametrize(
    "rows, state, ending, cause, used", [row[1:] for row in STEPS], ids=[row[0] for row in STEPS]
)
def test_steps(
    rows: List[str], state: str, ending: Optional[Ending], cause: Optional[Cause],
    used: Optional[int],
) -> None:
    """Only the allocation decides; a step adds its memory, and a memory end under FAILED."""
    (view,) = parse_sacct(_sacct(rows), "@s@")
    assert view.job_state == state
    assert (view.end.ending if view.end else None) is ending
    assert (view.end.cause if view.end else None) is cause
    assert view.used_memory_bytes == used


@pytest.mark.parametrize(
    "name, told",
    [("allocation", None), ("bl?tt", None), ("pulsar_7", "pulsar_7")],
)
def test_names_that_accounting_does_not_have_yet(name: str, told: Optional[str]) -> None:
    """sacct says "allocation" for some seconds, and "?" for letters its database lacks: None."""
    (view,) = parse_sacct(_sacct([f"5|FAILED|1:0|16?|1|1||{name}"]), "@s@")
    assert view.job_name == told and view.memory_bytes is None


@pytest.mark.parametrize(
    "requested, cpus, nodes, size_mb",
    [
        ("100M", 4, 2, 100), ("2Gc", 4, 1, 8192), ("2Gn", 4, 3, 6144), ("4000Mn", 1, 1, 4000),
        ("16?", 1, 1, None), ("", 1, 1, None), ("0", 1, 1, None),
    ],
)
def test_requested_memory(requested: str, cpus: int, nodes: int, size_mb: Optional[int]) -> None:
    """ReqMem is per CPU (c), per node (n) or, since 21.08, for the whole job."""
    (view,) = parse_sacct(_sacct([f"5|FAILED|1:0|{requested}|{cpus}|{nodes}||a"]), "@s@")
    assert view.memory_bytes == (size_mb * MB if size_mb else None)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("Slurm accounting storage is disabled\n", id="error"),
        pytest.param("5@s@FAILED@s@1:0@s@a@s@\n", id="no_headings"),
        pytest.param(_sacct(["5|FAILED|1:0|1G|1|1|a"]), id="field_missing"),
        pytest.param(_sacct(["5|FAILED|1:0|1G|1|1||a"])[:-9], id="cut"),
        pytest.param(_sacct(["x.y.z|FAILED|1:0|1G|1|1||a"]), id="no_id"),
        pytest.param(_sacct(["5||1:0|1G|1|1||a"]), id="no_state"),
    ],
)
def test_what_is_no_answer_of_sacct_is_refused(text: str) -> None:
    """Unknown is never "accounting does not know it"."""
    with pytest.raises(OutputParseError):
        parse_sacct(text, "@s@")
