"""``explain`` as a person runs it: texts from the wild, hold codes, and wrong use."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

import pytest

from pulsar_failure_reasons.cli import main

DATA = Path(__file__).parent / "data"

#: corpus/README: its words for the truth, in ours.
CAUSES = {
    "walltime_reached": {"walltime", "cpu_time"},
    "memory_limit_reached": {"memory"},
    "cancelled": {"cancelled"},
    "node_failure": {"node_failure"},
    "preempted": {"preempted"},
    "disk_or_output_failure": {"disk", "stage_error", "launch_error"},
    "executable_error": {"launch_error"},
    "tool_error": {"tool_error"},
    "unknown": {"unknown", "lost", "tool_error"},
}
DRM_OPTION = {"slurm (spur)": "slurm", "tool log": "slurm", "sge/uge 8": "sge"}


def explain(capsys: pytest.CaptureFixture[str], *argv: str) -> Tuple[int, str, str]:
    """Run the command; return exit code, stdout and stderr."""
    code = main(["explain", *argv])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def corpus() -> Iterator[Any]:
    """Yield the strict cases of all DRMs that the repository holds."""
    for path in sorted(DATA.glob("*/corpus.jsonl")):
        for line in path.read_text().splitlines():
            case = json.loads(line)
            if case["strict"]:
                yield pytest.param(case, id=case["id"])


@pytest.mark.parametrize("case", list(corpus()))
def test_corpus(case: Dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each strict case of the corpus is told right, through the command."""
    path = tmp_path / "text"
    path.write_text(case["text"])
    drm = DRM_OPTION.get(case["drm"], case["drm"].split("+")[0].split("/")[0])
    code, out, _ = explain(
        capsys, "--drm", drm, "--source", case["kind"], "--format", "json", str(path)
    )
    answer = json.loads(out)
    assert code == 0
    if case["truth"] == "success":
        assert (answer["ended"], answer["cause"]) == (True, None)
    elif case["truth"] == "still_running/pending":
        assert answer["ended"] is False
    else:
        assert answer["cause"] in CAUSES[case["truth"]], answer


def test_the_corpus_is_there() -> None:
    """The table above is not empty for any DRM."""
    found = {case.values[0]["drm"].split("/")[0] for case in corpus()}
    assert {"slurm", "htcondor", "lsf", "sge"} <= found


def test_text_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The sentence, the words, what Galaxy sees and what was read, line by line."""
    path = tmp_path / "sacct.txt"
    path.write_text("JobID|State|ExitCode\n7|TIMEOUT|0:0\n")
    code, out, err = explain(capsys, "--drm", "slurm", "--source", "sacct", str(path))
    lines = out.splitlines()
    assert (code, err) == (0, "")
    assert lines[0].startswith("killed: the job's walltime limit was reached (Slurm job 7")
    assert "  Galaxy sees:  walltime_reached" in lines
    assert any(line.startswith("  evidence:") and "TIMEOUT" in line for line in lines)


@pytest.mark.parametrize(
    "hold, cause, ended",
    [
        (["--hold-code", "46"], "walltime", True),
        (["--hold-code", "34", "--hold-subcode", "102"], "memory", True),
        (["--hold-code", "26", "--hold-reason", "MEMORY EXCEEDED"], "memory", True),
        (["--hold-code", "16"], None, False),
        (["--hold-code", "1"], None, False),
    ],
)
def test_hold_codes(
    hold: List[str], cause: object, ended: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """A DRM admin asks how a hold code of the pool will be read."""
    code, out, _ = explain(capsys, "--drm", "htcondor", "--format", "json", *hold)
    answer = json.loads(out)
    assert (code, answer["cause"], answer["ended"]) == (0, cause, ended)


@pytest.mark.parametrize("drm", ["slurm", "htcondor", "lsf", "pbs", "torque", "sge"])
@pytest.mark.parametrize("text", ["gibberish \x00\x1b[31m\n", "Segmentation fault\n", "{", "<a/>"])
def test_text_that_says_nothing_is_never_a_success(
    drm: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever the text, there is an answer, no traceback, and no success out of nothing."""
    path = tmp_path / "text"
    path.write_text(text)
    code, out, _ = explain(capsys, "--drm", drm, "--format", "json", str(path))
    answer = json.loads(out)
    assert code == 0
    assert not (answer["ended"] is True and answer["cause"] is None)
    assert not answer["ended"] is False


@pytest.mark.parametrize("name", ["missing", "empty"])
def test_nothing_to_read(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit 2 and one line where there is nothing to read."""
    (tmp_path / "empty").write_text("\n")
    code, out, err = explain(capsys, "--drm", "slurm", str(tmp_path / name))
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1


def test_standard_input_and_exit_code_of_the_command() -> None:
    """The installed command reads a pipe."""
    done = subprocess.run(
        [sys.executable, "-m", "pulsar_failure_reasons", "explain", "--drm", "slurm", "-"],
        input="JobID|State\n7|OUT_OF_MEMORY\n", capture_output=True, text=True, timeout=600,
    )
    assert done.returncode == 0
    assert "Galaxy sees:  memory_limit_reached" in done.stdout
