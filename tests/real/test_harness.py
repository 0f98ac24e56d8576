"""The harness itself, against real Slurm: each helper brings about what its name says."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Callable, Dict, Iterator, List, Optional, TypeVar, cast

import pytest

from tests.real import install
from tests.real.conftest import SlurmFactory
from tests.real.processes import (
    PATIENCE_S,
    Daemons,
    HarnessError,
    process_start,
    wait_until,
)
from tests.real.require import require_real
from tests.real.slurm import PrivateSlurm, why_missing
from tests.real.slurm_machine import job_processes

REPOSITORY = Path(__file__).resolve().parents[2]
#: For a cluster to start or end, in a process of its own.
TIMEOUT_S = 600
OVER_MEMORY = "x=$(head -c 300000000 /dev/zero | tr '\\0' x); sleep 20; echo ${#x}"
Test = TypeVar("Test", bound=Callable[..., None])


def needs_slurm(test: Test) -> Test:
    """Mark a test that needs a real Slurm."""
    return cast(Test, pytest.mark.slow(pytest.mark.real(test)))


def quiet(slurm: PrivateSlurm, script: str, *options: str) -> str:
    """Submit a small job without an output file."""
    return slurm.submit(script, "--output=/dev/null", "--mem=20", *options)


def reason(slurm: PrivateSlurm, job_id: str) -> str:
    """Return squeue's Reason of a job, ended or not."""
    return slurm.run(
        ["squeue", "--noheader", "--states=all", f"--jobs={job_id}", "--format=%r"]
    ).stdout.strip()


# ---- ends of jobs ----------------------------------------------------------------------------


@needs_slurm
def test_a_job_ends_well_and_is_accounted(real_slurm_each: PrivateSlurm) -> None:
    """A good job is COMPLETED for the controller and for accounting."""
    job = quiet(real_slurm_each, "true")
    assert real_slurm_each.wait_state(job) == "COMPLETED"
    real_slurm_each.wait_accounted(job, "COMPLETED")


@needs_slurm
def test_waiting_for_another_end_than_came_is_an_error(real_slurm: PrivateSlurm) -> None:
    """wait_state does not wait on when the job has ended in a state that was not asked for."""
    job = quiet(real_slurm, "exit 3")
    with pytest.raises(HarnessError, match="ended FAILED, not COMPLETED"):
        real_slurm.wait_state(job, "COMPLETED")


@needs_slurm
def test_expire_is_a_real_timeout(real_slurm: PrivateSlurm, real_slurm_24: PrivateSlurm) -> None:
    """expire makes Slurm itself kill a job for its walltime, in each version."""
    clusters = [real_slurm, real_slurm_24]
    jobs = [quiet(slurm, "sleep 600", "--time=5") for slurm in clusters]
    for slurm, job in zip(clusters, jobs):
        slurm.wait_state(job, "RUNNING")
        slurm.expire(job)
    for slurm, job in zip(clusters, jobs):
        slurm.wait_state(job, "TIMEOUT")
        assert reason(slurm, job) == "TimeLimit"


@needs_slurm
def test_cgroup_kills_for_memory(real_slurm_each: PrivateSlurm) -> None:
    """With cgroups a job over its memory limit ends OUT_OF_MEMORY."""
    require_real("Slurm with cgroups", None if real_slurm_each.cgroup else "no cgroup v1 here")
    job = real_slurm_each.submit(OVER_MEMORY, "--output=/dev/null", "--mem=50")
    real_slurm_each.wait_state(job, "OUT_OF_MEMORY")


@needs_slurm
def test_without_cgroups_overmemorykill_ends_the_job(real_slurm_no_cgroup: PrivateSlurm) -> None:
    """Without cgroups Slurm's own gatherer kills the job, which 22.05 calls FAILED."""
    error = real_slurm_no_cgroup.home / "work" / "over.err"
    job = real_slurm_no_cgroup.submit(
        OVER_MEMORY, "--output=/dev/null", f"--error={error}", "--mem=50"
    )
    real_slurm_no_cgroup.wait_state(job, "FAILED")
    assert "Exceeded job memory limit" in error.read_text()


# ---- nodes and preemption --------------------------------------------------------------------


@needs_slurm
def test_node_down_ends_or_requeues_its_jobs(real_slurm_each: PrivateSlurm) -> None:
    """A node that an admin declares down: NODE_FAIL without requeue, PENDING again with it."""
    slurm, node = real_slurm_each, real_slurm_each.nodes[1]
    lost = quiet(slurm, "sleep 600", "--no-requeue", f"--nodelist={node}")
    again = quiet(slurm, "sleep 600", "--requeue", f"--nodelist={node}")
    for job in (lost, again):
        slurm.wait_state(job, "RUNNING")
    slurm.node_down(node)
    slurm.wait_state(lost, "NODE_FAIL")
    slurm.wait_state(again, "PENDING")
    slurm.node_up(node)
    slurm.start_now(again)
    slurm.wait_state(again, "RUNNING")
    slurm.run(["scancel", again])
    slurm.wait_state(again, "CANCELLED")


@needs_slurm
def test_a_crashed_node_loses_its_job(make_slurm: SlurmFactory) -> None:
    """crash_node kills slurmd and the job's processes; the controller finds out by itself.

    Slurm's word to end the first run of a requeued job, which the node gets when it is back, does
    not meet the second run that ``start_now`` starts.
    """
    slurm = make_slurm(accounting=False, slurmd_timeout=5, message_timeout=2)
    job = quiet(slurm, "sleep 600", "--no-requeue")
    again = quiet(slurm, "[ $SLURM_RESTART_COUNT ] || sleep 600; sleep 4", "--requeue")
    for started in (job, again):
        slurm.wait_state(started, "RUNNING")
    wait_until(lambda: len(list(job_processes(slurm.home))) >= 4, PATIENCE_S, "the jobs' processes")
    slurm.crash_node()
    assert list(job_processes(slurm.home)) == []
    slurm.wait_state(job, "NODE_FAIL")
    slurm.wait_state(again, "PENDING")
    slurm.node_up()
    slurm.start_now(again)
    assert slurm.wait_state(again) == "COMPLETED"
    assert slurm.wait_state(quiet(slurm, "true")) == "COMPLETED"
    slurm.stop()


@needs_slurm
@pytest.mark.parametrize(
    ("partition", "state"), [("requeued", "PENDING"), ("cancelled", "PREEMPTED")]
)
def test_an_urgent_job_preempts(real_slurm: PrivateSlurm, partition: str, state: str) -> None:
    """A job of the urgent partition throws one of the low ones out: requeued, or ended
    PREEMPTED."""
    low = quiet(real_slurm, "sleep 600", f"--partition={partition}", "--nodes=2", "--exclusive")
    real_slurm.wait_state(low, "RUNNING")
    urgent = quiet(real_slurm, "true", "--partition=urgent", "--nodes=2", "--exclusive")
    real_slurm.wait_state(urgent, "COMPLETED")
    real_slurm.wait_state(low, state)
    real_slurm.cancel_all()


# ---- controller and accounting ---------------------------------------------------------------


@needs_slurm
def test_the_controller_can_be_away_while_a_job_runs(real_slurm_each: PrivateSlurm) -> None:
    """A job runs on while slurmctld is stopped, and is known when it is back."""
    slurm = real_slurm_each
    job = quiet(slurm, "sleep 600")
    slurm.wait_state(job, "RUNNING")
    slurm.controller_stop()
    assert not slurm.running()
    slurm.controller_start()
    assert slurm.state(job) == "RUNNING"
    slurm.cancel_all()


@needs_slurm
def test_a_clean_start_forgets_all_jobs(make_slurm: SlurmFactory) -> None:
    """slurmctld -c does not know the jobs of before."""
    slurm = make_slurm(accounting=False)
    job = quiet(slurm, "true", "--hold")
    assert slurm.state(job) == "PENDING"
    slurm.controller_stop()
    slurm.controller_start(clean=True)
    assert slurm.state(job) is None
    slurm.stop()


@needs_slurm
def test_slurmdbd_down_is_told_by_sacct(real_slurm_each: PrivateSlurm) -> None:
    """With slurmdbd stopped sacct fails with Slurm's own words, and works again afterwards."""
    slurm = real_slurm_each
    job = quiet(slurm, "true")
    slurm.wait_accounted(job, "COMPLETED")
    slurm.slurmdbd_stop()
    try:
        failed = slurm.run(["sacct", f"--jobs={job}"], check=False)
    finally:
        slurm.slurmdbd_start()
    assert failed.returncode == 1
    assert "Problem talking to the database" in failed.stderr
    slurm.wait_accounted(job, "COMPLETED")


@needs_slurm
def test_ended_jobs_are_forgotten_soon(real_slurm_fast_forget: PrivateSlurm) -> None:
    """With min_job_age=2 an ended job is unknown to the controller and still in accounting."""
    job = quiet(real_slurm_fast_forget, "exit 3")
    real_slurm_fast_forget.wait_forgotten(job)
    real_slurm_fast_forget.wait_accounted(job, "FAILED")


@needs_slurm
def test_without_accounting_sacct_says_so(real_slurm_no_accounting: PrivateSlurm) -> None:
    """The cluster without accounting runs jobs, and its sacct is switched off."""
    assert (
        real_slurm_no_accounting.wait_state(quiet(real_slurm_no_accounting, "true")) == "COMPLETED"
    )
    refused = real_slurm_no_accounting.run(["sacct"], check=False)
    assert (refused.returncode, "accounting storage is disabled" in refused.stderr) == (1, True)


@needs_slurm
def test_limits_refuse_submissions(real_slurm_limits: PrivateSlurm) -> None:
    """A second job in a QOS for one, and an unknown account, are refused at submission."""
    real_slurm_limits.cancel_all()
    quiet(real_slurm_limits, "true", "--hold", "--qos=one")
    with pytest.raises(HarnessError, match="Job violates accounting/QOS policy"):
        quiet(real_slurm_limits, "true", "--qos=one")
    with pytest.raises(HarnessError, match="Invalid account"):
        quiet(real_slurm_limits, "true", "--account=nosuch")
    real_slurm_limits.cancel_all()


@needs_slurm
def test_private_data_hides_jobs_of_others(real_slurm_private_data: PrivateSlurm) -> None:
    """With PrivateData another user gets the same answer for a job as for none."""
    if os.geteuid() != 0:
        pytest.skip("only root can ask as another user")
    job = quiet(real_slurm_private_data, "true", "--hold")
    asked = real_slurm_private_data.run(["squeue", f"--jobs={job}"], check=False, user="nobody")
    assert job not in asked.stdout.split()
    assert real_slurm_private_data.state(job) == "PENDING"


@needs_slurm
def test_jobs_run_as_another_user(real_slurm: PrivateSlurm) -> None:
    """As root, a job can be submitted and run as an ordinary user."""
    if os.geteuid() != 0:
        pytest.skip("only root can submit as another user")
    output = real_slurm.home / "work" / "who"
    job = real_slurm.submit("id -un", f"--output={output}", "--mem=20", user="nobody")
    real_slurm.wait_state(job, "COMPLETED")
    assert output.read_text() == "nobody\n"


# ---- nothing is left behind ------------------------------------------------------------------


def recorded_pids(home: Path) -> Dict[str, int]:
    """Return the pids of a cluster's daemons by name."""
    return {
        path.stem: json.loads(path.read_text())["pid"] for path in (home / "pids").glob("*.json")
    }


def leftovers(home: Path) -> List[str]:
    """Return the command lines that still mention a cluster's folder."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if str(home).encode() in command and process_start(int(folder.name)) is not None:
            found.append(command.replace(b"\0", b" ").decode(errors="replace"))
    return found


@pytest.fixture
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder for one cluster; what runs in it at the end of the test is ended."""
    require_real("Slurm 22.05", why_missing(accounting=False))
    folder = tmp_path_factory.mktemp("c")
    yield folder
    PrivateSlurm(folder, accounting=False).stop()


@needs_slurm
def test_stop_ends_daemons_and_jobs(home: Path) -> None:
    """After stop no daemon, no step, no job, running or suspended, is left, nor a cgroup."""
    slurm = PrivateSlurm(home, accounting=False)
    slurm.start()
    slurm.wait_state(quiet(slurm, "trap '' TERM; sleep 600 & wait; sleep 600"), "RUNNING")
    suspended = quiet(slurm, "sleep 600")
    slurm.wait_state(suspended, "RUNNING")
    slurm.run(["scontrol", "suspend", suspended])
    wait_until(lambda: bool(list(job_processes(home))), PATIENCE_S, "the job's processes")
    slurm.stop()
    assert leftovers(home) == []
    assert list(job_processes(home)) == []
    assert list(Path("/sys/fs/cgroup").glob(f"*/slurm_{slurm.nodes[0]}")) == []


@needs_slurm
def test_a_crashed_run_is_cleaned_by_the_next(home: Path) -> None:
    """A test run that was killed leaves daemons; the next start in the same folder ends them."""
    script = (
        "import os, signal, sys; from tests.real.slurm import PrivateSlurm; "
        "PrivateSlurm(sys.argv[1], accounting=False).start(); os.kill(os.getpid(), signal.SIGKILL)"
    )
    crashed = subprocess.run(
        [sys.executable, "-c", script, str(home)], cwd=REPOSITORY, timeout=TIMEOUT_S
    )
    assert crashed.returncode == -signal.SIGKILL
    old = recorded_pids(home)
    assert "slurmctld" in old and all(process_start(pid) is not None for pid in old.values())
    with PrivateSlurm(home, accounting=False) as slurm:
        assert all(process_start(pid) is None for pid in old.values())
        assert slurm.wait_state(quiet(slurm, "true")) == "COMPLETED"
    assert leftovers(home) == []


@needs_slurm
def test_command_line_starts_and_ends_a_cluster(home: Path) -> None:
    """``up`` prints what to export for a cluster that outlives it, twice the same; ``down`` ends
    it."""
    command = [sys.executable, "-m", "tests.real.slurm"]
    start = [*command, "up", "--home", str(home), "--no-accounting", "--format", "json"]
    shown = [
        json.loads(subprocess.check_output(start, cwd=REPOSITORY, timeout=TIMEOUT_S))
        for _ in range(2)
    ]
    assert shown[0] == shown[1]
    env = {"SLURM_CONF": shown[0]["SLURM_CONF"], "PATH": shown[0]["PATH"]}
    sinfo = ["sinfo", "--noheader", "--format=%T"]
    states = subprocess.check_output(sinfo, env=env, timeout=TIMEOUT_S)
    assert states in (b"idle\n", b"idle*\n")  # a star: the node was slow to answer just now
    down = [*command, "down", "--home", str(home)]
    subprocess.run(down, cwd=REPOSITORY, check=True, timeout=TIMEOUT_S)
    assert leftovers(home) == []


@needs_slurm
def test_two_clusters_side_by_side(make_slurm: SlurmFactory, home: Path) -> None:
    """Two clusters do not see each other's jobs."""
    first, second = make_slurm(accounting=False, auth="none"), PrivateSlurm(home, accounting=False)
    with second:
        jobs = [quiet(first, "true", "--hold") for _ in range(2)]
        assert first.state(jobs[1]) == "PENDING"
        assert second.state(jobs[1]) is None
    first.stop()


# ---- without a Slurm -------------------------------------------------------------------------


def test_a_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    """A home that holds somebody's files is not emptied but refused."""
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(HarnessError, match="holds files that are not a private Slurm's"):
        PrivateSlurm(tmp_path).start()
    assert (tmp_path / "thesis.tex").read_text() == "precious"


def test_a_stranger_with_a_recorded_pid_is_not_touched(tmp_path: Path) -> None:
    """A pid that now belongs to another process than the recorded one is left alone."""
    stranger = subprocess.Popen(["sleep", "60"])
    try:
        (tmp_path / "slurmctld.json").write_text(json.dumps({"pid": stranger.pid, "start": 1}))
        Daemons(tmp_path).stop("slurmctld")
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_a_missing_part_skips_or_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing part skips the test by name with the reason, and fails it with REQUIRE_REAL=1."""
    require_real("Slurm 22.05", None)
    monkeypatch.delenv("REQUIRE_REAL", raising=False)
    with pytest.raises(pytest.skip.Exception, match="real Slurm 22.05 is missing: no sbatch"):
        require_real("Slurm 22.05", "no sbatch")
    monkeypatch.setenv("REQUIRE_REAL", "1")
    with pytest.raises(pytest.fail.Exception, match="real Slurm 22.05 is missing: no sbatch"):
        require_real("Slurm 22.05", "no sbatch")


def test_installing_without_root_names_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without root a missing package is an error that holds the line to type; exit status 2."""
    monkeypatch.setattr(install, "missing_packages", lambda packages: ["slurmd"])
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert install.main(["slurm"]) == 2
    assert "apt-get install -y --no-install-recommends slurmd" in capsys.readouterr().err


def test_installing_without_apt_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On another system than Debian the message says so and what is needed."""
    monkeypatch.setattr(install, "missing_packages", lambda packages: ["slurmd"])
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert install.main(["slurm"]) == 2
    assert "not a Debian system" in capsys.readouterr().err


@pytest.mark.parametrize(
    "before", [None, "#!/bin/sh\nexit 0\n"], ids=["none_before", "one_that_allows"]
)
def test_services_are_held_back_only_while_installing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: Optional[str]
) -> None:
    """The policy that forbids starts is there during the installation; afterwards all is as
    before."""
    policy = tmp_path / "policy-rc.d"
    if before:
        policy.write_text(before)
        policy.chmod(0o755)
    monkeypatch.setattr(install, "POLICY_FILE", policy)
    with pytest.raises(KeyboardInterrupt), install.services_held_back():
        assert subprocess.run([str(policy), "slurmd", "start"], timeout=20).returncode == 101
        raise KeyboardInterrupt
    assert [path.read_text() for path in tmp_path.iterdir()] == ([before] if before else [])


def test_a_policy_that_forbids_starts_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container image's own policy-rc.d does the work and stays."""
    policy = tmp_path / "policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 101\n")
    policy.chmod(0o755)
    monkeypatch.setattr(install, "POLICY_FILE", policy)
    with install.services_held_back():
        assert policy.read_text() == "#!/bin/sh\nexit 101\n"
    assert policy.read_text() == "#!/bin/sh\nexit 101\n"
