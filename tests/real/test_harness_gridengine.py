"""The Grid Engine harness itself, against the real cell: each helper does what its name says.

Expected values are those of the captures under captures/gridengine, SGE 8.1.9.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

import pytest

from tests.real.conftest import CellFactory, SshdFactory
from tests.real.gridengine import PrivateGridEngine, why_missing
from tests.real.processes import PATIENCE_S, HarnessError, process_start, wait_until
from tests.real.require import require_real

REPOSITORY = Path(__file__).resolve().parents[2]
#: For a cell to start or end, in a process of its own.
TIMEOUT_S = 600
needs_gridengine = [pytest.mark.real, pytest.mark.slow]
LIMIT_TEXT = "37  : qmaster enforced h_rt, h_cpu, or h_vmem limit"
AFTER_JOB = "100 : assumedly after job"
THREE_OF_90_MB = (
    f"for n in 1 2 3; do {sys.executable} -c 'x = bytearray(90_000_000); import time; "
    "time.sleep(60)' & done; wait"
)
IO_TEXT = "26  : opening input/output file"
# name: (script, options of qsub, failed, exit_status)
ENDS: Dict[str, Tuple[str, List[str], str, str]] = {
    "success": ("exit 0", [], "0", "0"),
    "exit_3": ("exit 3", [], "0", "3"),
    "h_rt": ("sleep 600", ["-l", "h_rt=0:0:2"], LIMIT_TEXT, "137"),
    "s_rt": ("sleep 600", ["-l", "s_rt=0:0:2"], AFTER_JOB, "138"),
    "h_vmem_of_several": (THREE_OF_90_MB, ["-l", "h_vmem=150M"], LIMIT_TEXT, "137"),
    "exit_100": ("exit 100", [], "30  : application error returned", "100"),
    "unwritable_output": ("true", ["-o", "/no/x", "-j", "y"], IO_TEXT, "0"),
    "no_folder": ("true", ["-wd", "/no/such"], "28  : changing into working directory", "0"),
}
STUCK = ["exit_100", "unwritable_output", "no_folder"]


@pytest.fixture(scope="module")
def ends(real_gridengine: PrivateGridEngine) -> Iterator[Dict[str, str]]:
    """The ids of jobs that end in all the ways of ENDS, submitted at once."""
    yield {name: real_gridengine.submit(row[0], *row[1]) for name, row in ENDS.items()}
    real_gridengine.delete_all()


@pytest.fixture
def home() -> Iterator[Path]:
    """A path for one cell; what runs in it at the end of the test is ended."""
    require_real("Grid Engine", why_missing())
    folder = Path(f"/tmp/real-gridengine-{os.geteuid()}-{os.getpid()}-x")
    yield folder
    PrivateGridEngine(folder).stop()
    subprocess.run(["rm", "-rf", str(folder)], timeout=60)


def running(cell: PrivateGridEngine, script: str = "sleep 600") -> str:
    """Submit a job that sleeps, or does something else, and return its id once it runs.

    qstat says r before there is a process; killed then, the job ends otherwise.
    """
    job = cell.submit(f"echo started; {script}")
    cell.wait_state(job, "r")
    wait_until(lambda: cell.output(job) == "started\n", PATIENCE_S, "the job's first words")
    return job


class TestJobs:
    """What jobs and their ends look like."""

    pytestmark = needs_gridengine

    @pytest.mark.parametrize("name", ENDS)
    def test_accounting_tells_the_end(
        self, real_gridengine: PrivateGridEngine, ends: Dict[str, str], name: str
    ) -> None:
        """qacct's failed and exit_status are those of the captures."""
        _, _, failed, exit_status = ENDS[name]
        end = real_gridengine.wait_accounted(ends[name])[0]
        assert end["failed"] == failed
        assert end["exit_status"].split()[0] == exit_status

    @pytest.mark.parametrize("name", STUCK)
    def test_a_job_that_cannot_start_is_stuck(
        self, real_gridengine: PrivateGridEngine, ends: Dict[str, str], name: str
    ) -> None:
        """It stays listed as Eqw."""
        assert real_gridengine.wait_state(ends[name], "Eqw") == "Eqw"

    def test_a_cleared_error_lets_the_job_run_again(
        self, real_gridengine: PrivateGridEngine, tmp_path: Path
    ) -> None:
        """clear_error takes a job out of Eqw; with its folder there it ends well."""
        folder = tmp_path / "later"
        job = real_gridengine.submit("exit 0", "-wd", str(folder))
        real_gridengine.wait_state(job, "Eqw")
        folder.mkdir()
        real_gridengine.clear_error(job)
        records = real_gridengine.wait_accounted(job, records=2)
        assert [entry["failed"][:2].strip() for entry in records] == ["28", "0"]

    def test_a_job_works_in_a_private_folder_of_root(
        self, real_gridengine: PrivateGridEngine, tmp_path: Path
    ) -> None:
        """A job of root writes into a 0700 folder of ours."""
        tmp_path.chmod(0o700)
        job = real_gridengine.submit("id -un > made", "-wd", str(tmp_path))
        real_gridengine.wait_accounted(job)
        assert (tmp_path / "made").read_text() == "root\n"

    def test_jobs_of_another_user(self, real_gridengine: PrivateGridEngine) -> None:
        """submit and qdel act as another user; a stranger's qdel is denied."""
        job = real_gridengine.submit("id -un; sleep 600", user="nobody")
        real_gridengine.wait_state(job, "r")
        said = "the job's output"
        wait_until(lambda: real_gridengine.output(job) == "nobody\n", PATIENCE_S, said)
        with pytest.raises(HarnessError, match="do not have the necessary privileges"):
            real_gridengine.qdel(job, user="daemon")
        real_gridengine.qdel(job, user="nobody")
        end = real_gridengine.wait_accounted(job)[0]
        assert (end["owner"], end["failed"]) == ("nobody", AFTER_JOB)

    @pytest.mark.parametrize(
        ("force", "failed", "exit_status"),
        [(False, AFTER_JOB, "137"), (True, "0", "0")],
        ids=["qdel", "qdel_f_looks_like_success"],
    )
    def test_deleted_while_running(
        self, real_gridengine: PrivateGridEngine, force: bool, failed: str, exit_status: str
    ) -> None:
        """qdel by root leaves a killed job's record, with force that of a success."""
        job = running(real_gridengine)
        real_gridengine.qdel(job, force=force)
        end = real_gridengine.wait_accounted(job)[0]
        assert (end["failed"], end["exit_status"].split()[0]) == (failed, exit_status)
        real_gridengine.wait_gone(job)

    def test_deleted_while_waiting(self, real_gridengine: PrivateGridEngine) -> None:
        """A held job that is deleted is gone without a record."""
        job = real_gridengine.submit("true", "-h")
        assert real_gridengine.wait_state(job, "hqw") == "hqw"
        real_gridengine.qdel(job)
        real_gridengine.wait_gone(job)
        assert real_gridengine.accounted(job) == []

    def test_a_requeued_job_runs_again(
        self, real_gridengine: PrivateGridEngine, tmp_path: Path
    ) -> None:
        """requeue ends the first run with 25, and the job runs once more."""
        script = f"[ -e {tmp_path}/ran ] && exit 7; : > {tmp_path}/ran; sleep 600"
        job = real_gridengine.submit(script, "-r", "y")
        wait_until((tmp_path / "ran").exists, PATIENCE_S, "the first run")
        real_gridengine.wait_state(job, "r")
        real_gridengine.requeue(job)
        records = real_gridengine.wait_accounted(job, records=2)
        assert [entry["failed"] for entry in records] == ["25  : rescheduling", "0"]
        assert records[1]["exit_status"] == "7"

    def test_an_array_has_a_record_for_each_task(self, real_gridengine: PrivateGridEngine) -> None:
        """An array's id is its number; each task has a record of its own."""
        job = real_gridengine.submit("exit $SGE_TASK_ID", "-t", "1-3")
        records = real_gridengine.wait_accounted(job, records=3)
        found = sorted((entry["taskid"], entry["exit_status"]) for entry in records)
        assert found == [("1", "1"), ("2", "2"), ("3", "3")]

    def test_limits_of_the_queue(self, real_gridengine: PrivateGridEngine) -> None:
        """set_queue gives jobs a limit that they did not ask for."""
        real_gridengine.set_queue(h_rt="0:0:2")
        try:
            end = real_gridengine.wait_accounted(real_gridengine.submit("sleep 600"))[0]
        finally:
            real_gridengine.set_queue(h_rt="INFINITY")
        assert (end["failed"], end["category"]) == (LIMIT_TEXT, "NONE")

    def test_a_limit_on_jobs(self, real_gridengine: PrivateGridEngine) -> None:
        """set_conf changes the running cell: one job of a user, and a second one is refused."""
        real_gridengine.set_conf(max_u_jobs="1")
        try:
            job = real_gridengine.submit("true", "-h", user="nobody")
            with pytest.raises(HarnessError, match="job rejected"):
                real_gridengine.submit("true", user="nobody")
        finally:
            real_gridengine.set_conf(max_u_jobs="0")
        real_gridengine.qdel(job)

    def test_an_unknown_job(self, real_gridengine: PrivateGridEngine) -> None:
        """A job that never was has neither state nor record."""
        assert real_gridengine.state(999999) is None
        assert real_gridengine.accounted(999999) == []


class TestClients:
    """Commands from outside the cell's namespace."""

    pytestmark = needs_gridengine

    def test_the_commands_work_by_their_name(self, real_gridengine: PrivateGridEngine) -> None:
        """With the cell's env a plain qstat is the cell's, and finds a job."""
        job = real_gridengine.submit("true", "-h")
        shown = subprocess.check_output(
            ["qstat", "-u", "*"], env=real_gridengine.env, text=True, timeout=TIMEOUT_S
        )
        real_gridengine.qdel(job)
        assert job in shown.split()

    def test_nothing_listens_outside(self, real_gridengine: PrivateGridEngine) -> None:
        """The qmaster's port is not to be found on the machine's own addresses."""
        with socket.socket() as sock:
            assert sock.connect_ex(("127.0.0.1", real_gridengine.port)) != 0

    def test_the_commands_work_over_ssh(
        self, real_gridengine: PrivateGridEngine, make_sshd: SshdFactory
    ) -> None:
        """An sshd whose PATH begins with the cell's commands reaches the cell."""
        sshd = make_sshd(env={"PATH": f"{real_gridengine.bin}:/usr/bin:/bin"})
        done = sshd.run("echo 'exit 4' | qsub -terse -cwd -o /dev/null -j y")
        assert done.returncode == 0, done.stderr
        end = real_gridengine.wait_accounted(done.stdout.strip())[0]
        assert end["exit_status"] == "4"


class TestAccidents:
    """What the harness breaks on purpose."""

    pytestmark = needs_gridengine

    @pytest.mark.parametrize("crash", [False, True], ids=["stopped", "crashed"])
    def test_a_job_ends_without_its_qmaster(
        self, real_gridengine: PrivateGridEngine, tmp_path: Path, crash: bool
    ) -> None:
        """Without a qmaster qstat is refused; the new one learns how the job ended meanwhile."""
        go = tmp_path / "go"
        job = running(real_gridengine, f"until [ -e {go} ]; do sleep 0.2; done; exit 5")
        real_gridengine.qmaster_stop(crash)
        try:
            refused = real_gridengine.run(["qstat"], check=False)
            go.touch()
            real_gridengine.wait_ended(job)
        finally:
            real_gridengine.qmaster_start()
        assert refused.returncode == 1
        assert "commlib error: got select error (Connection refused)" in refused.stderr
        assert real_gridengine.wait_accounted(job)[0]["exit_status"] == "5"

    def test_a_job_survives_its_qmaster(
        self, real_gridengine: PrivateGridEngine, tmp_path: Path
    ) -> None:
        """A job runs on under a new qmaster; a restarted execd reports its end at once."""
        go = tmp_path / "go"
        job = running(real_gridengine, f"until [ -e {go} ]; do sleep 0.2; done; exit 5")
        real_gridengine.qmaster_stop(crash=True)
        real_gridengine.qmaster_start()
        assert real_gridengine.state(job) == "r"
        go.touch()
        real_gridengine.wait_ended(job)
        real_gridengine.execd_restart()
        assert real_gridengine.wait_accounted(job, timeout_s=50)[0]["exit_status"] == "5"

    def test_a_frozen_qmaster_is_silent(self, real_gridengine: PrivateGridEngine) -> None:
        """qstat waits for a frozen qmaster until its caller gives up; thawed, it answers."""
        real_gridengine.qmaster_freeze()
        try:
            with pytest.raises(subprocess.TimeoutExpired):
                real_gridengine.run(["qstat"], timeout_s=1)
        finally:
            real_gridengine.qmaster_thaw()
        assert real_gridengine.run(["qstat"]).returncode == 0

    def test_a_job_ends_while_its_execd_is_dead(
        self, real_gridengine: PrivateGridEngine, tmp_path: Path
    ) -> None:
        """The job is listed as running until the new execd reports its end."""
        go = tmp_path / "go"
        job = running(real_gridengine, f"until [ -e {go} ]; do sleep 0.2; done; exit 6")
        real_gridengine.execd_crash()
        try:
            go.touch()
            real_gridengine.wait_ended(job)
            assert real_gridengine.state(job) == "r"
        finally:
            real_gridengine.execd_start()
        assert real_gridengine.wait_accounted(job)[0]["exit_status"] == "6"

    def test_a_crashed_host(self, real_gridengine: PrivateGridEngine) -> None:
        """A job that died with its host is accounted as failed 19 by the next execd."""
        job = running(real_gridengine)
        real_gridengine.execd_crash(jobs_too=True)
        assert real_gridengine.state(job) == "r"
        real_gridengine.execd_start()
        # with zombies for shepherds, which the keeper reaps, it would take the execd a minute
        end = real_gridengine.wait_accounted(job, timeout_s=50)[0]
        assert (end["failed"], end["exit_status"]) == ("19  : before writing exit_status", "0")

    def test_debians_own_accounting_lags(self, make_gridengine: CellFactory) -> None:
        """With flush_time_s=None an ended job is not in qacct when qstat drops it.

        Of some jobs one, as records are written every 15 s, and we may come late.
        """
        cell = make_gridengine(flush_time_s=None)

        def lags() -> bool:
            job = cell.submit("true")
            cell.wait_gone(job)
            return cell.accounted(job) == []

        assert any(lags() for _ in range(8))
        cell.stop()


class TestNothingIsLeft:
    """No process outlives its cell."""

    pytestmark = needs_gridengine

    def test_stop_ends_daemons_and_jobs(self, home: Path) -> None:
        """After stop no daemon and no job process is left, even one that hides."""
        cell = PrivateGridEngine(home)
        cell.start()
        job = cell.submit("trap '' TERM; env -i setsid sleep 600 & wait; sleep 600")
        cell.wait_state(job, "r")
        before = list(cell.processes())
        assert len(before) > 4
        cell.stop()
        assert [pid for pid, start in before if process_start(pid) == start] == []

    def test_a_crashed_run_is_cleaned_by_the_next(self, home: Path) -> None:
        """Daemons that a killed test run left are ended by the next start in the same folder."""
        text = (
            "import os, signal, sys; from tests.real.gridengine import PrivateGridEngine; "
            "PrivateGridEngine(sys.argv[1]).start(); os.kill(os.getpid(), signal.SIGKILL)"
        )
        crashed = subprocess.run(
            [sys.executable, "-c", text, str(home)], cwd=REPOSITORY, timeout=TIMEOUT_S
        )
        assert crashed.returncode == -signal.SIGKILL
        old = list(PrivateGridEngine(home).processes())
        assert len(old) == 3
        with PrivateGridEngine(home) as again:
            assert [pid for pid, start in old if process_start(pid) == start] == []
            assert again.wait_accounted(again.submit("exit 0"))[0]["failed"] == "0"

    def test_command_line_starts_and_ends_a_cell(self, home: Path) -> None:
        """``up`` prints what to export for a cell that outlives it; ``down`` ends it."""
        command = [sys.executable, "-m", "tests.real.gridengine"]
        start = [*command, "up", "--home", str(home), "--format", "json"]
        shown: List[Dict[str, Any]] = [
            json.loads(subprocess.check_output(start, cwd=REPOSITORY, timeout=TIMEOUT_S))
            for _ in range(2)
        ]
        assert shown[0] == shown[1]
        assert shown[0]["SGE_ROOT"] == str(home)
        qstat = subprocess.run([f"{shown[0]['bin']}/qstat"], timeout=TIMEOUT_S)
        assert qstat.returncode == 0
        old = list(PrivateGridEngine(home).processes())
        subprocess.run(
            [*command, "down", "--home", str(home)], cwd=REPOSITORY, check=True, timeout=TIMEOUT_S
        )
        assert [pid for pid, start in old if process_start(pid) == start] == []


def test_a_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    """A home that holds somebody's files is not emptied but refused."""
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(HarnessError, match="holds files that are not a private Grid Engine's"):
        PrivateGridEngine(tmp_path).start()
    assert (tmp_path / "thesis.tex").read_text() == "precious"


def test_a_cell_that_does_not_run_says_so(tmp_path: Path) -> None:
    """Commands on a cell that was never started fail with a sentence."""
    with pytest.raises(HarnessError, match="has not been started"):
        PrivateGridEngine(tmp_path).run(["qstat"])


def test_nothing_in_our_own_namespace_is_taken_for_the_cells(tmp_path: Path) -> None:
    """A keeper that has not unshared yet lives among all others: none of them is the cell's.

    (Only listed here: ended by a wrong ``stop``, it would be the whole machine.)
    """
    cell = PrivateGridEngine(tmp_path)
    cell.daemons.start("namespace", ["sleep", "60"], dict(os.environ), tmp_path / "log")
    try:
        assert list(cell.processes()) == []
    finally:
        cell.daemons.kill("namespace")
