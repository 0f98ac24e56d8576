"""The HTCondor harness itself, against the real pool: each helper does what its name says."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, Iterator, List

import pytest

from tests.real import htcondor_conf as conf
from tests.real.conftest import PoolFactory
from tests.real.htcondor import COMPLETED, HELD, STAMP, PrivatePool, pool_processes, why_missing
from tests.real.processes import PATIENCE_S, HarnessError, process_start, wait_until
from tests.real.require import require_real

REPOSITORY = Path(__file__).resolve().parents[2]
DAEMONS = ["condor_shared_port", "condor_collector", "condor_negotiator"]
DAEMONS += ["condor_schedd", "condor_startd"]
#: For a pool to start or end, in a process of its own.
TIMEOUT_S = 600
needs_htcondor = [pytest.mark.real, pytest.mark.slow]


def script(folder: Path, text: str) -> str:
    """Write a shell script and return its path."""
    path = folder / "job.sh"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def types(pool: PrivatePool, log: Path) -> List[str]:
    """Return the types of a log's events without those that only measure."""
    return [event.type.name for event in pool.events(log) if event.type.name != "IMAGE_SIZE"]


def wait_executed_twice(pool: PrivatePool, log: Path) -> None:
    """Wait until a job has begun a second time (and maybe a third, where we come late)."""
    again = "a second EXECUTE"
    wait_until(lambda: types(pool, log).count("EXECUTE") >= 2, PATIENCE_S, again)


@pytest.fixture(scope="module")
def pool(make_htcondor: PoolFactory) -> PrivatePool:
    """A pool whose site holds for memory, and any job with SiteHold; short leases."""
    rules = conf.HOLD_IF_MEMORY_EXCEEDED + conf.SHORT_LEASE
    rules += conf.system_periodic_hold("SiteHold =?= True && JobStatus == 2")
    return make_htcondor(extra_config=rules)


@pytest.fixture
def home() -> Iterator[Path]:
    """A short path for one pool; what runs in it at the end of the test is ended."""
    require_real("HTCondor", why_missing())
    folder = Path(f"/tmp/real-htcondor-{os.geteuid()}-{os.getpid()}-x")
    yield folder
    PrivatePool(folder).stop()
    subprocess.run(["rm", "-rf", str(folder)], timeout=60)


class TestPool:
    """What jobs and their ends look like."""

    pytestmark = needs_htcondor

    def test_a_job_writes_in_a_private_folder_of_who_started_the_pool(
        self, pool: PrivatePool, tmp_path: Path
    ) -> None:
        """A job writes files into a 0700 folder of ours, and to the kernel they are ours."""
        tmp_path.chmod(0o700)
        job = script(tmp_path, f"echo made > {tmp_path}/made; id -un; exit 3")
        log, output = tmp_path / "log", tmp_path / "out"
        pool.submit(executable=job, log=str(log), output=str(output))
        ended = pool.wait_event(log, "JOB_TERMINATED")
        assert ended["ReturnValue"] == 3
        assert (tmp_path / "made").read_text() == "made\n"
        assert (tmp_path / "made").stat().st_uid == os.geteuid()
        assert output.read_text() == f"{pool.user}\n"

    @pytest.mark.parametrize(
        ("command", "value", "code", "subcode"),
        [
            ("periodic_hold", "JobStatus == 2", 3, 0),
            ("My.SiteHold", "True", 26, conf.SYSTEM_HOLD_SUBCODE),
        ],
        ids=["job_policy", "system_policy"],
    )
    def test_policies_hold(
        self, pool: PrivatePool, tmp_path: Path, command: str, value: str, code: int, subcode: int
    ) -> None:
        """The job's own and the site's periodic hold come with their codes within seconds."""
        log = tmp_path / "log"
        pool.submit(executable="/bin/sleep", arguments="600", log=str(log), **{command: value})
        held = pool.wait_event(log, "JOB_HELD")
        assert (held["HoldReasonCode"], held["HoldReasonSubCode"]) == (code, subcode)

    def test_the_execute_side_holds_for_memory(self, pool: PrivatePool, tmp_path: Path) -> None:
        """A job over request_memory is held with 21/102 by the startd's policy."""
        log = tmp_path / "log"
        eat = "import time; x = bytearray(200_000_000); time.sleep(600)"
        job = script(tmp_path, f"exec {sys.executable} -c '{eat}'")
        cluster = pool.submit(executable=job, log=str(log))
        held = pool.wait_event(log, "JOB_HELD")
        assert (held["HoldReasonCode"], held["HoldReasonSubCode"]) == (21, 102)
        assert pool.wait_status(cluster, HELD)["HoldReasonCode"] == 21

    def test_the_execute_side_holds_for_runtime(self, pool: PrivatePool, tmp_path: Path) -> None:
        """configured changes a running pool: with a runtime policy a job is held with 21/103."""
        log = tmp_path / "log"
        with pool.configured(conf.hold_if_runtime_exceeds(2)):
            pool.submit(executable="/bin/sleep", arguments="600", log=str(log))
            held = pool.wait_event(log, "JOB_HELD")
        assert (held["HoldReasonCode"], held["HoldReasonSubCode"]) == (21, 103)

    def test_the_execute_side_evicts_for_runtime(self, pool: PrivatePool, tmp_path: Path) -> None:
        """With preempt_if_runtime_exceeds a job is evicted and runs again; it is never held."""
        log = tmp_path / "log"
        with pool.configured(conf.preempt_if_runtime_exceeds(2)):
            pool.submit(executable="/bin/sleep", arguments="600", log=str(log))
            wait_executed_twice(pool, log)
        assert types(pool, log)[:4] == ["SUBMIT", "EXECUTE", "JOB_EVICTED", "EXECUTE"]
        pool.remove_all()

    def test_configurations_in_quick_succession(self, pool: PrivatePool) -> None:
        """Each is taken whole by daemons that live on, and the pool is as before in the end."""
        daemons = {name: pool.pids(name) for name in DAEMONS}
        before = pool.config_file.read_text().rpartition(STAMP)[0]
        with pytest.raises(ZeroDivisionError):
            with pool.configured("CLAIM_WORKLIFE = 77\n"):
                told = pool.run(["condor_config_val", "-startd", "CLAIM_WORKLIFE"]).stdout
                for number in range(5):
                    pool.configure(f"{pool.extra_config}# {number}\n")
                raise ZeroDivisionError
        assert told == "77\n"
        assert {name: pool.pids(name) for name in DAEMONS} == daemons
        assert pool.config_file.read_text().rpartition(STAMP)[0] == before

    def test_history_remembers_an_ended_job(self, pool: PrivatePool) -> None:
        """ad returns an ended job from the history, and None for one that never was."""
        cluster = pool.submit(executable="/bin/false")
        assert pool.wait_status(cluster, COMPLETED)["ExitCode"] == 1
        assert pool.ad(999999) is None


class TestAccidents:
    """What the harness breaks on purpose."""

    pytestmark = needs_htcondor

    def test_a_job_survives_a_killed_schedd(self, pool: PrivatePool, tmp_path: Path) -> None:
        """kill_schedd: the job runs on, and the new schedd writes its end."""
        log, go = tmp_path / "log", tmp_path / "go"
        job = script(tmp_path, f"until [ -e {go} ]; do sleep 0.2; done; exit 4")
        pool.submit(executable=job, log=str(log))
        pool.wait_event(log, "EXECUTE")
        pool.kill_schedd()
        go.touch()
        assert pool.wait_event(log, "JOB_TERMINATED")["ReturnValue"] == 4

    def test_a_killed_shadow_runs_the_job_again(self, pool: PrivatePool, tmp_path: Path) -> None:
        """kill finds the shadow of one job; the job executes a second time."""
        log = tmp_path / "log"
        cluster = pool.submit(executable="/bin/sleep", arguments="600", log=str(log))
        pool.wait_event(log, "EXECUTE")
        pool.kill("condor_shadow", f"{cluster}.0", signal.SIGABRT)
        wait_executed_twice(pool, log)
        pool.remove_all()

    def test_the_queue_survives_a_restart(self, pool: PrivatePool, tmp_path: Path) -> None:
        """restart keeps port, queue and history; a job that ran with the pool runs again."""
        port, log = pool.port, tmp_path / "log"
        waiting = pool.submit(executable="/bin/true", requirements="false")
        pool.submit(executable="/bin/sleep", arguments="600", log=str(log))
        pool.wait_event(log, "EXECUTE")
        pool.restart(crash=True)
        assert pool.port == port
        ad = pool.ad(waiting)
        assert ad is not None and ad["JobStatus"] == 1
        wait_executed_twice(pool, log)
        pool.remove_all()

    def test_killing_what_does_not_run_is_an_error(self, pool: PrivatePool) -> None:
        """A kill that hits nothing tells so."""
        with pytest.raises(HarnessError, match=r"no condor_shadow 77\.0 runs"):
            pool.kill("condor_shadow", "77.0")


class TestNothingIsLeft:
    """No process outlives its pool."""

    pytestmark = needs_htcondor

    def test_stop_ends_daemons_and_jobs(self, home: Path, tmp_path: Path) -> None:
        """After stop no daemon and no job process is left, even one that ignores SIGTERM."""
        started = PrivatePool(home)
        started.start()
        job = script(tmp_path, "trap '' TERM; setsid sleep 600 & wait; sleep 600")
        started.submit(executable=job, log=str(tmp_path / "log"))
        started.wait_event(tmp_path / "log", "EXECUTE")
        assert list(pool_processes(home))
        started.stop()
        assert list(pool_processes(home)) == []

    def test_a_crashed_run_is_cleaned_by_the_next(self, home: Path) -> None:
        """Daemons that a killed test run left are ended by the next start in the same folder."""
        text = (
            "import os, signal, sys; from tests.real.htcondor import PrivatePool; "
            "PrivatePool(sys.argv[1]).start(); os.kill(os.getpid(), signal.SIGKILL)"
        )
        crashed = subprocess.run(
            [sys.executable, "-c", text, str(home)], cwd=REPOSITORY, timeout=TIMEOUT_S
        )
        assert crashed.returncode == -signal.SIGKILL
        old = list(pool_processes(home))
        assert old
        with PrivatePool(home) as again:
            assert [pid for pid, start in old if process_start(pid) == start] == []
            assert again.wait_status(again.submit(executable="/bin/true"), COMPLETED)
        assert list(pool_processes(home)) == []

    def test_command_line_starts_and_ends_a_pool(self, home: Path) -> None:
        """``up`` prints what to export for a pool that outlives it; ``down`` ends it."""
        command = [sys.executable, "-m", "tests.real.htcondor"]
        start = [*command, "up", "--home", str(home), "--format", "json"]
        shown: List[Dict[str, Any]] = [
            json.loads(subprocess.check_output(start, cwd=REPOSITORY, timeout=TIMEOUT_S))
            for _ in range(2)
        ]
        assert shown[0] == shown[1]
        assert shown[0]["CONDOR_CONFIG"] == f"{home}/condor_config"
        assert list(pool_processes(home))
        subprocess.run(
            [*command, "down", "--home", str(home)], cwd=REPOSITORY, check=True, timeout=TIMEOUT_S
        )
        assert list(pool_processes(home)) == []


def test_a_folder_with_other_files_is_refused(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A home that holds somebody's files is not emptied but refused."""
    folder = Path(f"/tmp/real-htcondor-other-{os.getpid()}")
    folder.mkdir()
    try:
        (folder / "thesis.tex").write_text("precious")
        with pytest.raises(HarnessError, match="holds files that are not a private HTCondor's"):
            PrivatePool(folder).start()
        assert (folder / "thesis.tex").read_text() == "precious"
    finally:
        (folder / "thesis.tex").unlink()
        folder.rmdir()


def test_a_long_home_is_refused(tmp_path: Path) -> None:
    """A home too long for sockets is refused with the limit."""
    with pytest.raises(HarnessError, match="at most 60 characters"):
        PrivatePool(tmp_path / ("x" * 60)).start()
