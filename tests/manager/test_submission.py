"""How jobs reach Slurm and leave it: sbatch or DRMAA, names, clusters, refusals."""

from __future__ import annotations

import errno
import json
import logging
import os
import threading
from pathlib import Path
from typing import Any, List

import pytest

from pulsar_failure_reasons.managers.job_directory import AtomicJobDirectory as JobDirectory
from tests.pulsar_server import wait_until
from tests.simulated import control

from .conftest import MakePulsar
from .harness import Pulsar, Slurm, reason_of


def _sbatch_options(slurm: Slurm) -> List[str]:
    return slurm.commands("sbatch")[-1]


def test_native_specification_of_the_job(pulsar: Pulsar, slurm: Slurm) -> None:
    """submit_native_specification of Galaxy's destination reaches sbatch, split as a shell does."""
    pulsar.submit("1", "true", "-t 5 --comment='two words' --mem=50")
    argv = _sbatch_options(slurm)
    assert argv[argv.index("-t"):][:4] == ["-t", "5", "--comment=two words", "--mem=50"]


def test_native_specification_of_the_manager_wins(
    make_pulsar: MakePulsar, slurm: Slurm, caplog: pytest.LogCaptureFixture
) -> None:
    """The operator's native_specification replaces the job's, as in stock."""
    pulsar = make_pulsar(native_specification="-t 7")
    pulsar.submit("1", "true", "-t 5 --mem=50")
    assert "7" in _sbatch_options(slurm) and "5" not in _sbatch_options(slurm)
    assert "being overridden by manager specification" in caplog.text


def test_output_files_are_ours_whatever_the_operator_says(pulsar: Pulsar) -> None:
    """-e and -o of a native specification cannot hide what Slurm writes about the end."""
    pulsar.submit("1", "sleep 600", "-t 1 -e /dev/null -o /dev/null")
    payload = pulsar.end("1")
    assert "DUE TO TIME LIMIT" in payload["job_stderr"]


def test_job_name_of_the_operator(pulsar: Pulsar) -> None:
    """A job that the operator named is not taken for another one, nor after a restart."""
    natives = ("-J mine", "-Jmine", "--job-name=mine", "--job-na mine", "--job=mine", "")
    for number, native in enumerate(natives):
        pulsar.submit(str(number), "sleep 600", f"-t 6000 {native}")
    for number in range(len(natives)):
        pulsar.wait_for(str(number), "running")
    pulsar.shutdown()
    again = Pulsar(pulsar.staging.parent, manager={"missing_grace": 0})
    try:
        for number in range(len(natives)):
            again.status(str(number))
        again.wait_for_looks(2)
        for number, native in enumerate(natives):
            assert again.status(str(number)) == "running", native
    finally:
        again.shutdown()


def test_job_name_template(make_pulsar: MakePulsar, slurm: Slurm) -> None:
    """Stock's job_name_template is honoured, and the job is known by that name."""
    pulsar = make_pulsar(job_name_template="galaxy $job_id of $tool", missing_grace=0)
    pulsar.submit("1", "sleep 600", "-t 1")
    assert control.job(slurm.state, 1)["name"] == "galaxy 1 of $tool"
    assert reason_of(pulsar.end("1")) == "walltime"


def test_cluster(make_pulsar: MakePulsar, slurm: Slurm) -> None:
    """With cluster every command has -M, and the id is stored as slurm-drmaa writes it."""
    pulsar = make_pulsar(cluster="private")
    assert pulsar.submit("1", "sleep 600", "-t 6000") == "1.private"
    pulsar.wait_for("1", "running")
    pulsar.proxy().kill("1")
    slurm.wait_for("1", "CANCELLED")
    for name in ("sbatch", "squeue", "scancel"):
        assert all("--clusters=private" in argv for argv in slurm.commands(name)), name


def test_cluster_of_the_id(pulsar: Pulsar, slurm: Slurm) -> None:
    """A job whose id names a cluster (from slurm-drmaa with -M) is looked for there."""
    assert pulsar.submit("1", "sleep 600", "-t 1 -M private") == "1.private"
    assert reason_of(pulsar.end("1")) == "walltime"
    assert all("--clusters=private" in argv for argv in slurm.commands("squeue"))


@pytest.mark.parametrize(
    "reject, message",
    [
        ("qos_limit", "a limit of the QOS or the association was reached"),
        ("bad_account", "the account is not usable"),
        ("bad_partition", "the partition is not usable"),
        ("made up by the site", "made up by the site"),
    ],
)
def test_refused_submission(
    pulsar: Pulsar, slurm: Slurm, reject: str, message: str
) -> None:
    """Failed as in stock, with Slurm's own words, and a QOS limit told from a bad account."""
    slurm.set(reject=reject)
    pulsar.submit("1", "true")
    payload = pulsar.end("1")
    assert (payload["status"], reason_of(payload)) == ("failed", "launch_error")
    assert message in payload["runner_state_message"]
    assert payload["runner_state"] == "unknown_error"
    assert pulsar.external_id("1") is None


def test_bad_option(pulsar: Pulsar) -> None:
    """An option that sbatch does not know is told with sbatch's words."""
    pulsar.submit("1", "true", "--no-such-option=1")
    assert "--no-such-option" in pulsar.end("1")["runner_state_message"]


def test_quotes_that_do_not_close(make_pulsar: MakePulsar, pulsar: Pulsar) -> None:
    """In the job's specification: refused with a reason; in the manager's: no start."""
    from pulsar_failure_reasons.errors import ConfigurationError

    pulsar.submit("1", "true", "--comment='half")
    assert "check its quotes" in pulsar.end("1")["runner_state_message"]
    with pytest.raises(ConfigurationError, match="native_specification"):
        make_pulsar(native_specification="--comment='half")


def _without_slurm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Leave the programs of the system on PATH, and no command of Slurm."""
    folder = tmp_path / "no-slurm"
    folder.mkdir()
    for name in ("sh", "bash", "env"):
        (folder / name).symlink_to(f"/bin/{name}")
    monkeypatch.setenv("PATH", str(folder))


@pytest.mark.parametrize("submit, said", [
    ("auto", "sbatch is not on PATH; DRMAA: Attempt to use DRMAA, but DRMAA Python library"),
    ("sbatch", "cannot run sbatch: it is not on PATH"),
    ("drmaa", "DRMAA: Attempt to use DRMAA, but DRMAA Python library cannot be loaded"),
])
def test_no_slurm_at_all(
    make_pulsar: MakePulsar, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture, submit: str, said: str
) -> None:
    """Neither sbatch nor DRMAA: the server starts and says so; a job fails with one clear line."""
    from pulsar.managers.util import drmaa

    monkeypatch.setattr(drmaa, "Session", None)
    monkeypatch.setattr(drmaa, "LOAD_ERROR_MESSAGE", "no module", raising=False)
    _without_slurm(monkeypatch, tmp_path)
    pulsar = make_pulsar(submit=submit)
    assert "squeue is not on PATH" in caplog.text
    pulsar.submit("1", "true")
    payload = pulsar.end("1")
    assert (payload["status"], reason_of(payload)) == ("failed", "launch_error")
    assert said in payload["runner_state_message"]
    assert "\n" not in payload["runner_state_message"]


@pytest.mark.parametrize("submit", ["auto", "drmaa"])
def test_submit_by_drmaa(
    make_pulsar: MakePulsar, slurm: Slurm, fake_drmaa: Any, submit: str
) -> None:
    """submit: drmaa submits through the DRMAA library though sbatch is there; auto does not."""
    pulsar = make_pulsar(submit=submit)
    assert pulsar.submit("1", "sleep 600", "-t 1") == "1"
    assert len(fake_drmaa.submitted) == (1 if submit == "drmaa" else 0)
    assert reason_of(pulsar.end("1")) == "walltime"
    pulsar.submit("2", "sleep 600", "-t 6000")
    pulsar.wait_for("2", "running")
    pulsar.proxy().kill("2")
    slurm.wait_for("2", "CANCELLED")
    assert pulsar.end("2")["status"] == "cancelled"
    assert len(fake_drmaa.killed) == (1 if submit == "drmaa" else 0)


def test_refused_by_drmaa(make_pulsar: MakePulsar, slurm: Slurm, fake_drmaa: Any) -> None:
    """What DRMAA says of a refusal is the reason's message."""
    slurm.set(reject="qos_limit")
    pulsar = make_pulsar(submit="drmaa")
    pulsar.submit("1", "true")
    payload = pulsar.end("1")
    assert reason_of(payload) == "launch_error"
    assert "DRMAA: code 17" in payload["runner_state_message"]


def test_kill_by_drmaa_while_the_controller_is_down(
    make_pulsar: MakePulsar, slurm: Slurm, fake_drmaa: Any
) -> None:
    """DRMAA raises when Slurm is down; the job is cancelled later all the same."""
    pulsar = make_pulsar(submit="drmaa")
    pulsar.submit("1", "sleep 600", "-t 600")
    pulsar.wait_for("1", "running")
    slurm.set(controller_down=True)
    pulsar.proxy().kill("1")
    assert pulsar.status("1") == "cancelled"
    slurm.set(controller_down=None)
    slurm.wait_for("1", "CANCELLED")


def test_kill_of_unknown_and_ended_jobs(
    pulsar: Pulsar, slurm: Slurm, caplog: pytest.LogCaptureFixture
) -> None:
    """A kill of a job that never was or is over raises nothing and cancels nobody's job."""
    pulsar.proxy().kill("never")
    external_id = pulsar.submit("1", "true")
    assert pulsar.end("1")["status"] == "complete"
    control.change(slurm.state, external_id, state="running")
    pulsar.proxy().kill("1")
    assert slurm.commands("scancel") == []
    assert [r for r in caplog.records if r.levelno >= logging.ERROR] == []


def test_kill_while_the_job_is_being_submitted(pulsar: Pulsar, slurm: Slurm) -> None:
    """Galaxy cancels while sbatch has not answered yet: the job is cancelled in Slurm too."""
    slurm.set(latency={"sbatch": 0.7})
    submission = threading.Thread(target=pulsar.submit, args=("1", "sleep 600", "-t 600"))
    submission.start()
    wait_until(lambda: slurm.commands("sbatch"), 60, "sbatch to start", 0.01)
    pulsar.proxy().kill("1")
    submission.join(60)
    slurm.wait_for("1", "CANCELLED")
    assert pulsar.end("1")["status"] == "cancelled"


def test_full_disk_at_the_submission(
    pulsar: Pulsar, slurm: Slurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The id cannot be stored: Pulsar says failed, and the job does not run on unseen."""
    store = JobDirectory.store_metadata

    def full(self: Any, name: str, value: Any, atomic: bool = False) -> None:
        if name == "external_id":
            raise OSError(errno.ENOSPC, "No space left on device")
        store(self, name, value, atomic=atomic)

    monkeypatch.setattr(JobDirectory, "store_metadata", full)
    pulsar.submit("1", "sleep 600", "-t 600")
    assert pulsar.end("1")["status"] == "failed"
    slurm.wait_for("1", "CANCELLED")


def test_kill_of_a_job_that_another_process_submitted(pulsar: Pulsar, slurm: Slurm) -> None:
    """With several web workers a kill may come to one that has not submitted the job."""
    external_id = pulsar.submit("1", "sleep 600", "-t 600")
    other = Pulsar(pulsar.staging.parent)
    other.manager()._external_ids.clear()
    try:
        other.proxy().kill("1")
        slurm.wait_for(external_id, "CANCELLED")
        assert pulsar.status("1") == other.status("1") == "cancelled"
    finally:
        other.shutdown()


def test_job_script_of_a_folder_with_a_blank(tmp_path: Path, slurm: Slurm) -> None:
    """The guard against a stale return_code is stock's own script otherwise."""
    pulsar = Pulsar(tmp_path)
    try:
        pulsar.submit("1", "true")
        script = (pulsar.directory("1") / "command.sh").read_text().splitlines()
        assert script[0].startswith("#!")
        statements = [line for line in script if line and not line.startswith("#")]
        assert statements[0] == f"rm -f {pulsar.directory('1')}/return_code"
    finally:
        pulsar.shutdown()


def test_external_id_is_stored_as_stock_does(pulsar: Pulsar) -> None:
    """A JSON string, byte for byte what queued_drmaa writes."""
    pulsar.submit("1", "true")
    raw = (pulsar.directory("1") / "external_id").read_bytes()
    assert raw == b'"1"' == json.dumps("1").encode()
    assert int(json.loads(raw)) == 1
    assert os.listdir(pulsar.staging) == ["1"]


def test_no_look_before_the_job_is_there(make_pulsar: MakePulsar, slurm: Slurm) -> None:
    """An answer to a query that began before the submission says nothing of the job."""
    slurm.set(latency={"squeue": 1.0})
    pulsar = make_pulsar(missing_grace=0, accounting="none")
    pulsar.submit("0", "sleep 600", "-t 600")
    wait_until(lambda: slurm.commands("squeue"), 60, "a query to begin", 0.01)
    pulsar.submit("1", "sleep 600", "-t 600")
    assert pulsar.wait_for("1", "running", "failed")["status"] == "running"
