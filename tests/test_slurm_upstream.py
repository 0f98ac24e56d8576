"""The three functions of Pulsar's own plan, over a Slurm that is a list of answers."""

from __future__ import annotations

from pathlib import Path
from typing import List, Optional, Sequence

import pytest

from pulsar_failure_reasons.errors import (
    AccountingDisabledError,
    DrmUnreachableError,
    OutputParseError,
)
from pulsar_failure_reasons.execute import CommandResult
from pulsar_failure_reasons.managers.slurm_upstream import (
    check_memory_limit,
    classify_slurm_state,
    slurm_job_state,
)
from tests.drm.slurm_data import SEPARATOR, batched, capture

UNKNOWN_JOB = CommandResult(1, "", "slurm_load_jobs error: Invalid job id specified\n")


class Slurm:
    """Answers commands by their first word, and keeps what was asked."""

    def __init__(self, scontrol: CommandResult, sacct: Optional[CommandResult] = None) -> None:
        self._answers = {"scontrol": scontrol, "sacct": sacct}
        self.asked: List[Sequence[str]] = []

    def __call__(self, argv: Sequence[str], timeout_s: float) -> CommandResult:
        assert 0 < timeout_s <= 60
        self.asked.append(argv)
        answer = self._answers[argv[0]]
        assert answer is not None, f"not expected: {argv}"
        separator = next((a.partition("=")[2] for a in argv if a.startswith("--delimiter=")), "")
        return answer._replace(stdout=answer.stdout.replace(SEPARATOR, separator))


def _shown(case: str, version: str = "22.05") -> CommandResult:
    return CommandResult(0, capture(version, case, "scontrol_o_show_job"), "")


@pytest.mark.parametrize(
    "case, state",
    [
        ("success", "COMPLETED"), ("timeout_fast", "TIMEOUT"), ("completing_fail", "COMPLETING"),
        ("requeuehold", "PENDING"), ("spoof", "FAILED"), ("oom_cgroup", "OUT_OF_MEMORY"),
    ],
)
def test_the_controller_decides(case: str, state: str) -> None:
    """As long as the controller knows the job, accounting is not asked."""
    slurm = Slurm(_shown(case))
    assert slurm_job_state("4", execute=slurm) == state
    assert [argv[0] for argv in slurm.asked] == ["scontrol"]


@pytest.mark.parametrize(
    "job, state",
    [
        ("12", "TIMEOUT"), ("9", "CANCELLED"), ("7", "FAILED"), ("7_0", "COMPLETED"),
        ("99", "NOT_FOUND"),
    ],
)
@pytest.mark.parametrize("forgotten", [UNKNOWN_JOB, CommandResult(1, "Job 7_0 not found\n", "")])
def test_accounting_after_the_controller_forgot(
    job: str, state: str, forgotten: CommandResult
) -> None:
    """Accounting is asked for the job by its id; another job's row is not its own."""
    slurm = Slurm(forgotten, CommandResult(0, batched("22.05", "sacct_all"), ""))
    assert slurm_job_state(job, execute=slurm) == state


def test_the_cluster_is_asked() -> None:
    """The cluster is the caller's, or the one that slurm-drmaa put into the id."""
    for job, cluster in (("12", "east"), ("12.east", None)):
        slurm = Slurm(UNKNOWN_JOB, CommandResult(0, batched("22.05", "sacct_all"), ""))
        assert slurm_job_state(job, cluster, slurm) == "TIMEOUT"
        assert all("--clusters=east" in argv for argv in slurm.asked)


@pytest.mark.parametrize(
    "scontrol, sacct, error",
    [
        pytest.param(
            CommandResult(1, "", "slurm_load_jobs error: Unable to contact slurm controller"),
            None, DrmUnreachableError, id="controller_down",
        ),
        pytest.param(
            UNKNOWN_JOB, CommandResult(1, "", "Slurm accounting storage is disabled\n"),
            AccountingDisabledError, id="accounting_off",
        ),
        pytest.param(
            UNKNOWN_JOB, CommandResult(1, "", "sacct: error: Problem talking to the database\n"),
            DrmUnreachableError, id="database_down",
        ),
        pytest.param(UNKNOWN_JOB, CommandResult(0, "", ""), OutputParseError, id="no_answer"),
        pytest.param(CommandResult(0, "Welcome\n", ""), None, OutputParseError, id="banner_only"),
    ],
)
def test_no_answer_is_no_state(
    scontrol: CommandResult, sacct: Optional[CommandResult], error: type
) -> None:
    """What Slurm did not say is an error, never a state and never "not found"."""
    with pytest.raises(error):
        slurm_job_state("12", execute=Slurm(scontrol, sacct))


def test_no_id_can_be_an_option() -> None:
    """An id that is none does not become a command."""
    slurm = Slurm(UNKNOWN_JOB)
    with pytest.raises(OutputParseError):
        slurm_job_state("--help", execute=slurm)
    assert slurm.asked == []


def _file(folder: Path, text: str) -> str:
    path = folder / "stderr"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_memory_limit(tmp_path: Path) -> None:
    """Slurm's own line counts, also behind much output; a warning and a tool's words do not."""
    kill = "slurmstepd-n1: error: Exceeded job memory limit\n"
    told = check_memory_limit(_file(tmp_path, "tool output\n" * 20000 + kill))
    assert told is not None and "memory" in told
    assert check_memory_limit(_file(tmp_path, "out of memory\n")) is None
    warning = "slurmstepd: error: Exceeded job memory limit at some point.\n"
    assert check_memory_limit(_file(tmp_path, warning)) is None
    assert check_memory_limit(str(tmp_path / "missing")) is None


KILL = "slurmstepd: error: Exceeded job memory limit\n"
TIME = "slurmstepd: error: *** JOB 1 ON n1 CANCELLED AT 2026-01-01T00:00:00 DUE TO TIME LIMIT ***\n"


@pytest.mark.parametrize(
    "state, stderr, token, words",
    [
        pytest.param("TIMEOUT", "", "walltime_reached", "longer", id="timeout"),
        pytest.param("TO", "", "walltime_reached", "longer", id="compact"),
        pytest.param("DEADLINE", "", "walltime_reached", "deadline", id="deadline"),
        pytest.param("OUT_OF_MEMORY", "", "memory_limit_reached", "memory", id="memory"),
        pytest.param("OUT_OF_ME+", "", "memory_limit_reached", "memory", id="cut"),
        pytest.param("CANCELLED by 0", "", "unknown_error", "cancelled", id="cancelled"),
        pytest.param("CANCELLED", KILL, "memory_limit_reached", "memory", id="cancelled_memory"),
        pytest.param("FAILED", KILL, "memory_limit_reached", "memory", id="failed_memory"),
        pytest.param("FAILED", TIME, "walltime_reached", "longer", id="failed_time"),
        pytest.param("NODE_FAIL", "", "unknown_error", "node", id="node"),
        pytest.param("NODE_FAIL", KILL, "unknown_error", "node", id="node_whatever_stderr_says"),
        pytest.param("PREEMPTED", "", "unknown_error", "preempted", id="preempted"),
        pytest.param("FAILED", "", None, None, id="the_tools_own_exit"),
        pytest.param("COMPLETED", KILL, None, None, id="ended_well"),
        pytest.param("RUNNING", KILL, None, None, id="running"),
        pytest.param("COMPLETING", KILL, None, None, id="completing"),
        pytest.param("HIBERNATED", KILL, None, None, id="invented"),
        pytest.param("", "", None, None, id="nothing"),
    ],
)
def test_classify(
    tmp_path: Path, state: str, stderr: str, token: Optional[str], words: Optional[str]
) -> None:
    """A state and Slurm's own lines become Galaxy's token and a sentence."""
    runner_state, message = classify_slurm_state(state, _file(tmp_path, stderr))
    assert runner_state == token
    assert message is None if words is None else message is not None and words in message


def test_classify_without_a_file() -> None:
    """No stderr is needed where the state says all."""
    assert classify_slurm_state("TIMEOUT")[0] == "walltime_reached"
    assert classify_slurm_state("CANCELLED")[0] == "unknown_error"
