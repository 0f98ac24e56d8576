"""What holds for any text, whatever Slurm, a site or a job puts into it."""

from __future__ import annotations

import json
import time
from typing import Callable, List

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_failure_reasons.drm.base import Ending, Phase
from pulsar_failure_reasons.drm.external_ids import base_id, parse_external_id, same_job
from pulsar_failure_reasons.drm.slurm import (
    SlurmState,
    canonical_state,
    classify_stderr,
    describe_state,
    error_from_command,
    parse_exit_code,
    parse_sacct,
    parse_scontrol,
    parse_squeue,
    parse_submission,
    read_captured,
)
from pulsar_failure_reasons.drm.units import (
    format_duration,
    format_memory,
    parse_duration,
    parse_memory,
)
from pulsar_failure_reasons.errors import DrmError, OutputParseError
from tests.drm.slurm_data import SEPARATOR, batched, capture, corpus

SEED_TEXTS = [
    batched("22.05", "squeue_all"),
    batched("24.11", "sacct_all"),
    batched("22.05", "scontrol_array"),
    capture("22.05", "spoof", "scontrol_o_show_job"),
    capture("22.05", "overmem_kill", "job.stderr"),
    *[case["text"] for case in corpus()],
]
#: Pieces that the parsers look for, between which anything may stand.
PIECES = [
    "JobId=", "5", " JobName=", "JobState=", "COMPLETED", "FAILED", "TIMEOUT", "CANCELLED by 7",
    " Reason=", "None", " Dependency=", "(null)", " UserId=u(1) GroupId=g(1) MCS_label=N/A",
    " Priority=1 Nice=0 Account=a QOS=q ", "ExitCode=", "0:0", "3:0", SEPARATOR, "\n", "|", "^",
    "\x1f", "JobID", "State", "JOBID", "STATE", "REASON", "NAME", "JobName", ".batch", "_[1-3%2]",
    "+1", "slurmstepd: error: ", "*** JOB 5 ON n1 CANCELLED AT 2026-01-01T00:00:00 ***", " ",
    "Slurm Job_id=5 Name=", " Ended, Run time 00:00:01, ", "State: ", "------- -------", "\r",
    "[2026-01-01T00:00:00.000] ", '{"jobs": [', '{"job_state": ["COMPLETED"]}', "]}", "\x1b[31m",
    "\ud800", "\x00", "٣", "²",
]


@st.composite
def damaged(draw: Callable[..., object]) -> str:
    """A real text with a part cut out, doubled or replaced."""
    text = str(draw(st.sampled_from(SEED_TEXTS)))
    start = int(str(draw(st.integers(0, len(text)))))
    end = int(str(draw(st.integers(start, len(text)))))
    between = str(draw(st.one_of(st.just(""), st.just(text[start:end] * 2), st.text(max_size=20))))
    return text[:start] + between + text[end:]


TEXTS = st.one_of(
    st.text(max_size=300),
    st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=25).map("".join),
    damaged(),
)

PARSERS = {
    "squeue": lambda text: parse_squeue(text, SEPARATOR),
    "sacct": lambda text: parse_sacct(text, SEPARATOR),
    "scontrol": parse_scontrol,
    "submission": parse_submission,
    "exit_code": parse_exit_code,
    "external_id": parse_external_id,
    "base_id": base_id,
    "same_job": lambda text: same_job(text, "5"),
    "duration": parse_duration,
    "memory": parse_memory,
}


@pytest.mark.parametrize("name", list(PARSERS))
def test_parsers_raise_nothing_but_output_parse_error(name: str) -> None:
    """Any text is a value or an OutputParseError."""

    @given(TEXTS)
    def check(text: str) -> None:
        try:
            PARSERS[name](text)
        except OutputParseError as error:
            assert str(error)

    check()


@given(TEXTS, st.sampled_from(["auto", "sacct", "squeue", "scontrol", "stderr+state", "log", "x"]))
def test_classifiers_are_total(text: str, source: str) -> None:
    """The functions that must not raise do not, and what they return can be encoded."""
    canonical_state(text)
    describe_state(text, text, 0, 9)
    finding = classify_stderr(text, "5")
    captured = read_captured(text, source)
    read_captured(text, source, "5")
    for evidence in [*captured.evidence, *([finding.evidence] if finding else [])]:
        evidence.value.encode("utf-8")
    assert captured.ended is not True or captured.evidence


@given(TEXTS, st.integers(-64, 255), st.sampled_from(["squeue", "sacct", "sbatch", ""]))
def test_failed_commands_are_total(text: str, returncode: int, command: str) -> None:
    """Every end of a command is an answer or one of our errors."""
    error = error_from_command([command], returncode, text)
    assert error is None or isinstance(error, DrmError)
    if command == "sbatch" and returncode != 0:
        assert error is not None


WELL = {state.value for state in SlurmState if state is SlurmState.COMPLETED}


@given(st.text(max_size=30) | st.lists(st.sampled_from(PIECES), max_size=3).map("".join))
def test_nothing_unknown_becomes_success(text: str) -> None:
    """Only COMPLETED, in one of its spellings, ends a job well."""
    described = describe_state(text)
    if described.end is not None and described.end.ending is Ending.WELL:
        assert described.word in WELL
        letters = "".join(c for c in text.upper() if c.isalpha())
        assert "COMPLETE" in letters or "CD" in letters
    if described.state is SlurmState.UNKNOWN:
        assert described.phase is Phase.UNKNOWN and described.end is None


@given(st.text(max_size=40) | st.sampled_from(PIECES))
def test_canonicalisation_is_idempotent(text: str) -> None:
    """The name of what a spelling means is a spelling of the same."""
    state = canonical_state(text)
    assert canonical_state(state.value) is state
    assert describe_state(describe_state(text).word).phase is describe_state(text).phase


@given(st.lists(st.sampled_from(sorted(s.value for s in SlurmState)), min_size=1, max_size=4))
def test_lists_of_states_do_not_depend_on_order(words: List[str]) -> None:
    """A base state and its flags mean the same in any order and either spelling of a list."""
    forward = canonical_state(",".join(words))
    assert canonical_state("+".join(reversed(words))) is forward
    assert canonical_state(json.dumps(words)) is forward


WHOLE_FAKE = (
    "x UserId=u(1) GroupId=g(1) MCS_label=N/A Priority=1 Nice=0 Account=a QOS=q "
    "JobState=COMPLETED Reason=None Dependency=(null) Requeue=1 Restarts=7 ExitCode=0:0 "
)
NAMES = st.lists(
    st.sampled_from([piece for piece in PIECES if piece not in (SEPARATOR, "\ud800")])
    | st.just(WHOLE_FAKE)
    | st.text(max_size=8).filter(lambda t: SEPARATOR not in t),
    max_size=12,
).map("".join).filter(lambda name: SEPARATOR not in name and not name.endswith(SEPARATOR[:-1]))


@given(NAMES)
def test_a_name_cannot_change_a_batched_row(name: str) -> None:
    """Whatever the job is called, squeue's and sacct's rows say what Slurm said."""
    head = ["JOBID", "STATE", "REASON", "EXIT_CODE", "NAME"]
    row = ["5", "FAILED", "NonZeroExitCode", "768", name]
    text = "".join(SEPARATOR.join(cells) + SEPARATOR + "\n" for cells in (head, row, row[:]))
    views = parse_squeue(text, SEPARATOR)
    assert [(v.external_id, v.job_state, v.job_name) for v in views] == [("5", "FAILED", name)] * 2
    head = ["JobID", "State", "ExitCode", "JobName"]
    row = ["5", "FAILED", "3:0", name]
    text = "".join(SEPARATOR.join(cells) + SEPARATOR + "\n" for cells in (head, row))
    (view,) = parse_sacct(text, SEPARATOR)
    assert (view.external_id, view.job_state) == ("5", "FAILED")


RECORD = (
    "JobId=5 JobName={name} UserId=u(1) GroupId=g(1) MCS_label=N/A Priority=1 Nice=0 Account=a "
    "QOS=q JobState=FAILED Reason=NonZeroExitCode Dependency=(null) Requeue=1 Restarts=0 "
    "ExitCode=3:0 RunTime=00:00:01 TimeLimit=00:10:00 SubmitTime=2026-11-29T11:46:18 "
    "NodeList=n1 NumNodes=1 Comment={comment} StdErr=/x\n"
)


@given(NAMES, NAMES)
def test_a_name_or_comment_cannot_change_a_record(name: str, comment: str) -> None:
    """scontrol's record says what Slurm said, or is refused: never anything else."""
    try:
        view = parse_scontrol(RECORD.format(name=name, comment=comment))
    except OutputParseError:
        return
    assert view.external_id == "5" and view.job_state == "FAILED"
    assert view.end is not None and view.end.exit_code == 3 and view.restarts == 0


@given(st.integers(0, 10**7))
def test_durations_come_back(seconds: int) -> None:
    """What Slurm prints for a number of seconds is read as that number."""
    days, rest = divmod(seconds, 86400)
    clock = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
    assert parse_duration(f"{days}-{clock}") == seconds
    if not days:
        assert parse_duration(clock) == seconds
    assert format_duration(seconds) and format_memory(seconds)


@pytest.mark.parametrize(
    "text",
    [
        "x" * 65536, "JobId=5 JobName=" * 4000, "slurmstepd: hello\n" * 4000,
        "abc slurmstepd: error: " * 3000, "1" * 65536, " " * 65536, "|" * 65536, "(" * 65536,
        "Slurm Job_id=1 Name=x Ended, " * 2000, "[" * 65536, "1." * 30000, "{" * 65536,
    ],
    ids=lambda text: repr(text[:12]),
)
def test_long_texts_take_no_time(text: str) -> None:
    """No pattern goes wild on 64 KB of anything."""
    started = time.process_time()
    classify_stderr(text, "5")
    read_captured(text)
    error_from_command(["squeue"], 1, text)
    for parse in PARSERS.values():
        try:
            parse(text)
        except OutputParseError:
            pass
    assert time.process_time() - started < 10
