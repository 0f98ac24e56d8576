"""``explain`` by a Pulsar job id and by an external id, and the command as a whole."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

import pytest

from pulsar_failure_reasons.app_config import load_app_config
from pulsar_failure_reasons.cli import main

RECORD = {
    "runner_state": "walltime_reached",
    "message": "killed after 62 s: the job's walltime limit is 60 s (Slurm job 4, node1)",
    "cause": "walltime",
    "fault": "job",
    "confidence": "controller",
    "drm": "slurm",
    "external_id": "4",
    "node": "node1",
    "requested": {"walltime_s": 60},
    "evidence": [{"source": "squeue", "field": "State", "value": "TIMEOUT"}],
    "recorded_at": "2026-01-02T03:04:05Z",
}


@pytest.fixture
def app_yml(tmp_path: Path) -> Path:
    """An app.yml with two managers that share a staging folder."""
    path = tmp_path / "app.yml"
    path.write_text(json.dumps({
        "staging_directory": str(tmp_path / "staging"),
        "managers": {"_default_": {"type": "queued_slurm"}, "big": {
            "type": "queued_slurm", "staging_directory": str(tmp_path / "big")}},
    }))
    return path


def put_job(tmp_path: Path, job_id: str, place: str = "staging", **metadata: Any) -> Path:
    """Write a job directory as Pulsar does: each metadata file holds JSON."""
    folder = tmp_path / place / job_id
    folder.mkdir(parents=True)
    for name, value in metadata.items():
        (folder / name).write_text(json.dumps(value))
    return folder


def explain(capsys: pytest.CaptureFixture[str], *argv: str) -> Tuple[int, str, str]:
    """Run the command; return exit code, stdout and stderr."""
    code = main(["explain", *argv])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def answer(capsys: pytest.CaptureFixture[str], *argv: str) -> Dict[str, Any]:
    """Return the JSON answer."""
    code, out, err = explain(capsys, "--format", "json", *argv)
    assert (code, err) == (0, ""), err
    found: Dict[str, Any] = json.loads(out)
    return found


def test_a_recorded_reason(
    app_yml: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the manager recorded is told as it is, by whichever manager has the job."""
    put_job(tmp_path, "42", "big", runner_state=RECORD, external_id="4", final_status="failed")
    found = answer(capsys, "42", "--app", str(app_yml))
    assert found["ended"] is True
    assert found["manager"] == "big"
    for name in ("cause", "runner_state", "fault", "confidence", "message", "evidence"):
        assert found[name] == RECORD[name]
    code, out, _ = explain(capsys, "42", "--app", str(app_yml))
    assert code == 0
    assert out.splitlines()[0] == RECORD["message"]
    assert "  Galaxy sees:  walltime_reached" in out.splitlines()


@pytest.mark.parametrize(
    "metadata, ended, says",
    [
        ({"final_status": "complete"}, True, "ended well"),
        ({"final_status": "cancelled"}, True, "cancelled by Galaxy"),
        ({"final_status": "failed"}, None, "no reason was recorded"),
        ({"running": True}, False, "it is running"),
        ({"external_id": "7"}, False, "has not ended"),
        ({"runner_state": ["no", "record"], "final_status": "failed"}, None, "no reason"),
    ],
)
def test_a_job_without_a_reason(
    metadata: Dict[str, Any], ended: Optional[bool], says: str, app_yml: Path, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Ended well, by Galaxy, not yet, or nobody knows: never a made-up reason."""
    put_job(tmp_path, "42", **metadata)
    found = answer(capsys, "42", "--app", str(app_yml))
    assert found["ended"] is ended
    assert found["cause"] == ("unknown" if ended is None else None)
    assert says in found["message"]


def test_a_record_of_an_earlier_attempt_is_not_told(
    app_yml: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The DRM's id of the job is another by now: the old reason is not this attempt's."""
    put_job(tmp_path, "42", runner_state=RECORD, external_id="5", running=True)
    assert answer(capsys, "42", "--app", str(app_yml))["ended"] is False


@pytest.mark.parametrize("job_id", ["43", "../42", ".."])
def test_no_such_job(
    job_id: str, app_yml: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 2 and one line that names the folders looked at; nothing outside them is read."""
    put_job(tmp_path, "42", runner_state=RECORD)
    code, out, err = explain(capsys, job_id, "--app", str(app_yml))
    assert (code, out) == (2, "")
    assert str(tmp_path / "staging") in err and str(tmp_path / "big") in err
    assert "current" in err  # where relative folders begin
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    "text, says",
    [(None, "No such file"), (b"manager: [", "app.yml"), (b"manager: 3\n", "mapping"),
     (b"- manager\n", "mapping"), (b"\xff\xfe", "no UTF-8")],
)
def test_a_bad_app_yml(
    text: Optional[bytes], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 2 and one line, never a traceback."""
    path = tmp_path / "app.yml"
    if text is not None:
        path.write_bytes(text)
    code, out, err = explain(capsys, "42", "--app", str(path))
    assert (code, out) == (2, "")
    assert says in err and len(err.splitlines()) == 1


def test_no_such_manager(app_yml: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The error names the managers that there are."""
    code, _, err = explain(capsys, "42", "--app", str(app_yml), "--manager", "huge")
    assert code == 2
    assert "'huge'" in err and "_default_, big" in err


# --- by external id -----------------------------------------------------------------------------


@pytest.fixture
def slurm_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for commands, the only one on PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def put_command(folder: Path, name: str, stdout: str = "", stderr: str = "", code: int = 0) -> None:
    """Write a command that prints its arguments to a file and then says what it is told to."""
    path = folder / name
    path.write_text(
        f"#!{sys.executable}\nimport sys\n"
        f"open({str(folder / name)!r} + '.argv', 'w').write(' '.join(sys.argv[1:]))\n"
        f"import os; open({str(folder / name)!r} + '.lc', 'w').write(os.environ['LC_ALL'])\n"
        f"sys.stdout.write({stdout!r})\nsys.stderr.write({stderr!r})\nsys.exit({code})\n"
    )
    path.chmod(0o755)


SACCT = (
    "JobID|JobName|State|ExitCode|Elapsed|Timelimit|ReqMem|MaxRSS|NodeList\n"
    "4|sleep|OUT_OF_MEMORY|0:125|00:00:02|00:10:00|20M||node1\n"
    "4.batch|batch|OUT_OF_MEMORY|0:125|00:00:02|||19000K|node1\n"
)


def test_the_controller_is_asked_first(
    slurm_commands: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the controller tells is not asked of accounting too."""
    put_command(slurm_commands, "scontrol",
                "JobId=4 JobName=x JobState=TIMEOUT Reason=TimeLimit ExitCode=0:15\n")
    put_command(slurm_commands, "sacct", SACCT)
    assert answer(capsys, "--drm", "slurm", "4")["cause"] == "walltime"
    assert (slurm_commands / "scontrol.argv").read_text() == "--oneliner show job 4"
    assert not (slurm_commands / "sacct.argv").exists()


def test_the_drm_is_asked_in_english(
    slurm_commands: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever the operator's language: the readers know the C locale's words."""
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    put_command(slurm_commands, "scontrol", "JobId=4 JobState=TIMEOUT\n")
    answer(capsys, "--drm", "slurm", "4")
    assert (slurm_commands / "scontrol.lc").read_text() == "C"


def test_accounting_is_asked_where_the_controller_has_forgotten(
    slurm_commands: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As seen on Slurm 22.05: exit code 1 and "Invalid job id specified"."""
    put_command(slurm_commands, "scontrol",
                stderr="slurm_load_jobs error: Invalid job id specified\n", code=1)
    put_command(slurm_commands, "sacct", SACCT)
    assert answer(capsys, "--drm", "slurm", "4")["cause"] == "memory"


def test_a_drm_that_does_not_tell(
    slurm_commands: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the commands complained of is told; that is no answer."""
    put_command(slurm_commands, "scontrol", stderr="slurm_load_jobs error: Unable to contact\n",
                code=1)
    code, out, err = explain(capsys, "--drm", "slurm", "4")
    assert (code, out) == (2, "")
    assert "Unable to contact" in err


def test_no_drm_here(slurm_commands: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The error names the commands that it looked for, and the other way in."""
    code, _, err = explain(capsys, "--drm", "slurm", "4")
    assert code == 2
    assert "scontrol" in err and "give a file" in err


def test_an_id_is_never_an_option_or_a_shell_text(
    slurm_commands: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is no id is taken for a file, which is not there."""
    put_command(slurm_commands, "scontrol", "JobId=4 JobState=TIMEOUT\n")
    for target in ("4;id", "4 5", "$(id)"):
        assert explain(capsys, "--drm", "slurm", target)[0] == 2
    assert not (slurm_commands / "scontrol.argv").exists()


# --- the command as a whole ---------------------------------------------------------------------


def test_decisive_words_are_marked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The carets stand under the words that decide."""
    path = tmp_path / "stderr"
    path.write_text(
        "slurmstepd: error: *** JOB 4 ON node1 CANCELLED AT 2026-01-02T03:04:05 "
        "DUE TO TIME LIMIT ***\n"
    )
    _, out, _ = explain(capsys, "--drm", "slurm", "--source", "stderr", str(path))
    (line, marks), = [
        pair for pair in zip(out.splitlines(), out.splitlines()[1:]) if "TIME LIMIT" in pair[0]
    ]
    assert line[marks.index("^"):marks.rindex("^") + 1] == "DUE TO TIME LIMIT"


def test_a_short_value_is_marked_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A job state decides as a whole."""
    path = tmp_path / "sacct"
    path.write_text("JobID|State\n7|TIMEOUT\n")
    _, out, _ = explain(capsys, "--drm", "slurm", "--source", "sacct", str(path))
    (line, marks), = [
        pair for pair in zip(out.splitlines(), out.splitlines()[1:]) if "= TIMEOUT" in pair[0]
    ]
    assert line[marks.index("^"):marks.rindex("^") + 1] == "TIMEOUT"


@pytest.mark.parametrize("drm, walltime", [("torque", True), ("openpbs", False)])
def test_the_flavour_of_pbs_counts(
    drm: str, walltime: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit_status -11 is Torque's word for walltime; in OpenPBS (job.h) it is a rerun."""
    path = tmp_path / "job"
    path.write_text("Job Id: 7.server\n    job_state = C\n    exit_status = -11\n")
    found = answer(capsys, "--drm", drm, "--source", "qstat-f", str(path))
    assert (found["cause"] == "walltime") is walltime, found


def test_hold_codes_are_htcondors(capsys: pytest.CaptureFixture[str]) -> None:
    """No other DRM has them: said, instead of an answer about nothing."""
    code, out, err = explain(capsys, "--drm", "slurm", "--hold-code", "34")
    assert (code, out) == (2, "")
    assert "--drm htcondor" in err


def test_a_server_without_persistence(tmp_path: Path) -> None:
    """``__none__`` is Pulsar's way to switch persistence off, no folder of that name."""
    path = tmp_path / "app.yml"
    path.write_text("persistence_directory: __none__\nmanager: {type: queued_slurm}\n")
    assert load_app_config(str(path)).persistence_directory is None


def test_without_the_extra_one_line_says_what_to_install(tmp_path: Path) -> None:
    """In the base install there is no Click: a line, exit 2; `run` does its work all the same."""
    (tmp_path / "click.py").write_text("raise ModuleNotFoundError('no', name='click')\n")

    def run(*argv: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "pulsar_failure_reasons", *argv], capture_output=True,
            text=True, timeout=600, env={**os.environ, "PYTHONPATH": str(tmp_path)},
        )

    missing = run("explain", "42")
    assert (missing.returncode, missing.stdout) == (2, "")
    assert len(missing.stderr.splitlines()) == 1
    assert "pip install 'pulsar-failure-reasons[tools]'" in missing.stderr
    assert run("run", "--help").stdout.startswith("Usage: pulsar-failure-reasons run")


@pytest.mark.parametrize("argv", [["explane"], ["explain", "--drm", "cobalt", "-"], ["explain"],
                                  ["explain", "--drm", "slurm", ""]])
def test_wrong_use(argv: List[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Exit 2, nothing on stdout."""
    assert main(argv) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    """Each command of the table is listed and has help with an example."""
    from pulsar_failure_reasons.cli.commands import COMMANDS

    assert main(["--help"]) == 0
    listed = capsys.readouterr().out
    for name in COMMANDS:
        assert f"  {name} " in listed
        assert main([name, "--help"]) == 0
        assert "Example" in capsys.readouterr().out
