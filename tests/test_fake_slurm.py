"""The simulated Slurm: its ways for a job to end against captures of real ones, and the faults it
plays."""

import os
import re
import subprocess
import sys
import time

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "fakes"))

from fake_drm import process  # noqa: E402
from fake_drm.settings import SettingsError  # noqa: E402
from fake_slurm import control, formats  # noqa: E402

CAPTURES = os.path.join(HERE, "data", "slurm", "fake_contract")
NO_JOB = "slurm_load_jobs error: Invalid job id specified\n"
POLICY = "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"
SACCT_FIELDS = (
    "JobID,JobIDRaw,JobName,State,ExitCode,DerivedExitCode,Reason,Comment,SystemComment,"
    "AdminComment,Submit,"
    "Start,End,Elapsed,Timelimit,ReqMem,MaxRSS"
)
GROW = 'exec %s -c "x = bytearray(90000000); import time; time.sleep(300)"' % sys.executable

# Seconds that no run of these tests comes to, also on the simulated clock.
NEVER = 10**7

# case -> (sbatch arguments, the script's text, JobState to wait for)
CASES = {
    "success": ([], "echo hi; echo warn >&2", "COMPLETED"),
    "timeout_fast": (["-t", "1"], "exec sleep 300", "TIMEOUT"),
    "oom_cgroup": (["--mem=50M"], "(%s)\nexit 0" % GROW, "OUT_OF_MEMORY"),
    "overmem_kill": (["--mem=50M", "--comment=fake:memory_limit=overmemkill"], GROW, "FAILED"),
    "badoutput": (["-o", "/nonexistent/x.out", "-e", "/nonexistent/x.err"], "true", "FAILED"),
    "badworkdir": (["-D", "/nonexistent/dir"], "pwd", "COMPLETED"),
    "badinterp": ([], None, "FAILED"),
    "exit137": ([], "exit 137", "FAILED"),
    "sigkill_self": ([], "kill -9 $$", "FAILED"),
    "scancel_running": ([], "exec sleep 300", "CANCELLED"),
    "preempted": (["--no-requeue", "--comment=fake:preempt=0.1"], "exec sleep 300", "PREEMPTED"),
    "preempted_requeue": (["--comment=fake:preempt=0.1"], "exec sleep 300", "PENDING"),
    "requeuehold": (["--comment=fake:requeue_hold=0.1"], "exec sleep 300", "PENDING"),
    "depnever": (["--comment=fake:dependency_never"], "true", "PENDING"),
    "deadline": (["-t", "1", "--comment=fake:deadline"], "true", "DEADLINE"),
    "bootfail_norequeue": (
        ["--no-requeue", "--comment=fake:node_failure=0.1"],
        "exec sleep 300",
        "NODE_FAIL",
    ),
    "comment_newline": (
        ["--comment=line1\nline2 JobState=TIMEOUT", "-J", "nl"],
        "exit 3",
        "FAILED",
    ),
    "spoof": (
        [
            "--comment=x JobState=OUT_OF_MEMORY Reason=y ExitCode=9:9 a|b",
            "-J",
            "spoof JobState=TIMEOUT x",
        ],
        "exit 3",
        "FAILED",
    ),
    "completing_fail": (["--comment=fake:completing=36000"], "exit 5", "COMPLETING"),
}
# What a capture shows for another reason than the end of its job (four
# CPUs, a node that boots, a partition)
OTHER = {
    "preempted": {"Requeue", "NumCPUs", "NumTasks", "TRES", "MinMemoryCPU"},
    "preempted_requeue": {"NumCPUs", "NumTasks", "TRES", "MinMemoryCPU"},
    "bootfail_norequeue": {"Reboot", "NumCPUs", "TRES", "OverSubscribe"},
    "depnever": {"Dependency"},
    "deadline": {"Deadline"},
}
COMPARED = (
    "JobState Reason Dependency Requeue Restarts BatchFlag Reboot ExitCode TimeMin NumNodes "
    "NumCPUs NumTasks "
    "CPUs/Task ReqB:S:C:T TRES MinCPUsNode MinMemoryCPU MinMemoryNode StdIn Power"
).split()


def capture(case, name):
    """The text of a captured file."""
    with open(os.path.join(CAPTURES, case, name)) as handle:
        return handle.read()


def pairs(text):
    """The ``key=value`` fields after the job's name, in order; what a user wrote is cut out, for
    it may spoof fields."""
    text = text[text.index(" UserId="):]
    text = re.sub(r" Comment=.*?(?= StdErr=)", "", text, flags=re.DOTALL)
    text = re.sub(r" StdErr=.*?(?= StdIn=)", " StdErr=", text)
    return re.findall(r" ([A-Z][A-Za-z/:]*)=(.*?)(?= [A-Z][A-Za-z/:]*=| \n|$)", text)


@pytest.fixture
def state(tmp_path):
    """A state folder whose jobs are ended after the test."""
    path = control.create(tmp_path / "state", time_scale=60, kill_wait=60)
    yield path
    control.stop_all(path)
    assert not os.path.exists(os.path.join(path, "runner-errors.log"))


@pytest.fixture
def submit(state, tmp_path):
    """A function that submits a script's text and returns the job's id."""

    def call(text="exec sleep 300", *arguments):
        done = control.run(
            state, "sbatch", "--parsable", "-D", tmp_path, *arguments, "--wrap", text
        )
        assert done.returncode == 0, done.stderr
        return int(done.stdout)

    return call


def wait_for_file(path, timeout=60.0):
    """Wait until a job has made this file."""
    deadline = time.time() + timeout
    while not path.exists():
        assert time.time() < deadline, path
        time.sleep(0.02)


def lines(state, *argv, **keywords):
    """The lines that a command prints."""
    done = control.run(state, *argv, **keywords)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


# -- the ends of a job, against captures


def is_settled(record):
    """True once a pending job waits for ever, or again, with nothing left of its first run."""
    if record["why"] == "dependency_never":
        return True
    return record["restarts"] > 0 and not record["session"]


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """All CASES played at once: (state, {case: job id}, folder of the jobs' files)."""
    path = control.create(
        tmp_path_factory.mktemp("state"),
        time_scale=60,
        kill_wait=60,
        requeue_delay=NEVER,
        accounting_requeue_lag=NEVER,
        min_job_age=NEVER,
    )
    work = tmp_path_factory.mktemp("work")
    ids = {}
    for case, (arguments, text, _) in CASES.items():
        script = work / (case + ".sh")
        script.write_text("#!/nonexistent/interp\n" if text is None else "#!/bin/sh\n%s\n" % text)
        files = (
            []
            if "-o" in arguments
            else ["-o", work / (case + ".out"), "-e", work / (case + ".err")]
        )
        folder = [] if "-D" in arguments else ["-D", work]
        done = control.run(
            path, "sbatch", "--parsable", *files, *folder, *arguments, script, user="root:0"
        )
        assert done.returncode == 0, done.stderr
        ids[case] = int(done.stdout)
    control.wait_for(path, ids["scancel_running"], "RUNNING")
    control.run(path, "scancel", ids["scancel_running"], user="root:0")
    for case, (_, _, final) in CASES.items():
        record = control.wait_for(
            path, ids[case], "CANCELLED" if case == "scancel_running" else final
        )
        deadline = time.time() + 60
        while final == "PENDING" and not is_settled(record):
            assert time.time() < deadline, case
            time.sleep(0.02)
            record = control.job(path, ids[case])
    yield path, ids, work
    control.stop_all(path)


@pytest.mark.parametrize("case", sorted(CASES))
def test_scontrol_as_captured(ended, case):
    """Same fields in the same order as the capture, and the same values where the job's end
    decides them."""
    path, ids, _ = ended
    shown = pairs(control.run(path, "scontrol", "-o", "show", "job", ids[case]).stdout)
    expected = pairs(capture(case, "scontrol_o_show_job"))
    assert [key for key, _ in shown] == [key for key, _ in expected]
    for (key, value), (_, wanted) in zip(shown, expected):
        if key in COMPARED and key not in OTHER.get(case, ()):
            assert (key, value) == (key, wanted)


@pytest.mark.parametrize("case", sorted(set(CASES) - {"completing_fail", "bootfail_norequeue"}))
def test_sacct_as_captured(ended, case):
    """The rows of the allocation and its batch step are the capture's, but for times, ids and
    sizes."""
    path, ids, _ = ended

    def masked(text, name):
        text = re.sub(r"(?m)^\d+(\.batch)?\|\d+(\.batch)?\|", r"ID\1|ID\2|", text)
        text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", "TIME", text)
        text = re.sub(r"\|(365-00:00:00|UNLIMITED|Partition_Limit)\|", "|LIMIT|", text)
        text = re.sub(r"\|\d\d:\d\d:\d\d\|(LIMIT|00:01:00|)\|(400M|)", r"|ELAPSED|\1|\2", text)
        text = text.replace("|400M|", "|100M|").replace(name, "NAME")
        text = re.sub(r"\|(None|ReqNodeNotAvail|JobHeldUser|Dependency)\|", "|REASON|", text)
        text = re.sub(r"\|fake:[^|]*\|", "||", text)
        return re.sub(r"\|(\d+K)?$", "|RSS", text, flags=re.MULTILINE)

    shown = control.run(path, "sacct", "-n", "-P", "-j", ids[case], "-o", SACCT_FIELDS).stdout
    name = {"deadline": "deadline2", "comment_newline": "nl"}.get(case, case)
    ours = {"comment_newline": "nl", "spoof": "spoof"}.get(case, case + ".sh")
    assert masked(shown, ours) == masked(capture(case, "sacct_P"), name)


@pytest.mark.parametrize("case", sorted(CASES))
def test_squeue_as_captured(ended, case):
    """``%T|%t|%r`` are the capture's."""
    path, ids, _ = ended
    shown = control.run(path, "squeue", "-h", "-t", "all", "-j", ids[case], "-o", "%T|%t|%r").stdout
    assert shown.strip() == "|".join(capture(case, "squeue_all_states").split("|")[3:6])


@pytest.mark.parametrize(
    "case",
    sorted(set(CASES) - {"badoutput", "depnever", "deadline", "bootfail_norequeue", "requeuehold"}),
)
def test_stderr_as_captured(ended, case):
    """The lines that slurmstepd writes into the job's stderr are the capture's."""
    _, _, work = ended

    def stepd(text):
        text = re.sub(
            r"pt\d+|node1", "NODE", re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", "TIME", text)
        )
        text = re.sub(r"JOB \d+|StepId=\d+", "ID", re.sub(r"\d+ > \d+", "N > N", text))
        return [line for line in text.splitlines() if line.startswith("slurmstepd")]

    try:
        expected = stepd(capture(case, "job.stderr"))
    except FileNotFoundError:
        expected = []
    assert stepd((work / (case + ".err")).read_text()) == expected


def test_raw_wait_status(ended):
    """squeue -O exit_code is the wait status: 768 for exit 3, 9 for SIGKILL, 4021 for an output it
    cannot open."""
    path, ids, _ = ended
    wanted = {
        "comment_newline": "768",
        "sigkill_self": "9",
        "oom_cgroup": "125",
        "timeout_fast": "15",
        "badoutput": "4021",
        "success": "0",
        "exit137": "35072",
        "scancel_running": "15",
    }
    found = {
        case: control.run(
            path, "squeue", "-h", "-t", "all", "-j", ids[case], "-O", "exit_code:"
        ).stdout.strip()
        for case in wanted
    }
    assert found == wanted


def test_times_agree_on_the_simulated_clock(ended):
    """A one-minute limit shows the minute used, though it took a second."""
    path, ids, _ = ended
    shown = control.run(
        path, "squeue", "-h", "-t", "all", "-j", ids["timeout_fast"], "-O", "TimeUsed:|,TimeLimit:|"
    ).stdout
    record = control.job(path, ids["timeout_fast"])
    used_s = int(record["end"]) - int(record["start"])  # a busy machine ends it later
    assert shown == "%d:%02d|1:00|\n" % divmod(used_s, 60)
    assert used_s >= 60
    assert used_s > 20 * (record["end_real"] - record["start_real"])


# -- errors, against captures


@pytest.mark.parametrize(
    "name, argv",
    [
        ("sacct_bad_text", ["sacct", "-n", "-o", "state%-32", "-j", "abc"]),
        ("scontrol_bad_text", ["scontrol", "-o", "show", "job", "abc"]),
        ("scontrol_comma_ids", ["scontrol", "-o", "show", "job", "37,38"]),
        ("scontrol_two_ids", ["scontrol", "-o", "show", "job", "37", "38"]),
        ("no_jobs_scontrol_all", ["scontrol", "-o", "show", "job"]),
        ("dbd_down_sacct", ["sacct", "-n", "-o", "state%-32", "-j", "34"]),
        ("ctld_down_ping", ["scontrol", "ping"]),
        ("ctld_down_sbatch", ["sbatch", "--wrap", "true"]),
        ("ctld_down_scancel", ["scancel", "34"]),
        ("ctld_down_scontrol", ["scontrol", "-o", "show", "job", "34"]),
        ("ctld_down_squeue", ["squeue", "-h", "-j", "34", "-o", "%T"]),
    ],
)
def test_error_as_captured(state, name, argv):
    """Text on both streams and the return code are the capture's."""
    control.set_settings(
        state,
        controller_down=name.startswith("ctld_down") or None,
        accounting="down" if name.startswith("dbd_down") else "on",
    )
    done = control.run(state, *argv)
    assert done.stdout == capture("misc", name)
    assert done.returncode == int(capture("misc", name + ".rc"))
    has_errors = os.path.exists(os.path.join(CAPTURES, "misc", name + ".err"))
    assert done.stderr == (capture("misc", name + ".err") if has_errors else "")


def test_accounting_off(state, submit):
    """sacct says that there is none; scontrol shows neither account nor QOS, as captured."""
    control.set_settings(state, accounting="off")
    done = control.run(state, "sacct", "-n", "-P", "-j", submit("true"))
    assert (done.returncode, done.stderr) == (1, capture("no_accounting", "sacct_P.err"))
    assert (
        "Account=(null) QOS=(null)" in control.run(state, "scontrol", "-o", "show", "job", 1).stdout
    )
    assert "Account=(null) QOS=(null)" in capture("no_accounting", "scontrol_o_show_job")


@pytest.mark.parametrize(
    "reject, text",
    [
        (
            "qos_limit",
            "sbatch: error: QOSMaxSubmitJobPerUserLimit\nsbatch: error: Batch job submission "
            "failed: "
            + POLICY,
        ),
        (
            "bad_account",
            "sbatch: error: Batch job submission failed: Invalid account or account/partition "
            "combination "
            "specified",
        ),
        ("sbatch: error: no jobs on Mondays", "sbatch: error: no jobs on Mondays"),
    ],
)
def test_rejected_submission(state, reject, text):
    """A refused job has the real text, rc 1, and leaves no trace."""
    control.set_settings(state, reject=reject)
    done = control.run(state, "sbatch", "--parsable", "--wrap", "true")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", text + "\n")
    assert control.jobs(state) == []


def test_rejected_by_its_own_comment(state):
    """One job can ask to be refused through its comment, as a native specification can carry it."""
    done = control.run(state, "sbatch", "--comment=fake:reject=bad_account", "--wrap", "true")
    assert "Invalid account" in done.stderr
    assert control.run(state, "sbatch", "--wrap", "true").returncode == 0


# -- what a cluster does to jobs


def test_node_failure_requeues(state, submit):
    """A job whose node dies is PENDING with a restart while sacct says NODE_FAIL; then it runs
    again to its end."""
    control.set_settings(state, requeue_delay=NEVER, accounting_requeue_lag=NEVER)
    job = submit("test $SLURM_RESTART_COUNT && exit 4; exec sleep 300")
    control.wait_for(state, job, "RUNNING")
    control.event(state, job, "node_failure")
    row = lines(
        state, "squeue", "-h", "-t", "all", "-O", "State:|,Reason:|,RestartCnt:|,exit_code:|"
    )
    assert row == ["PENDING|BeginTime|1|0|"]
    assert lines(state, "sacct", "-n", "-X", "-P", "-j", job, "-o", "State,ExitCode") == [
        "NODE_FAIL|0:0"
    ]
    control.change(state, job, begin=0)
    record = control.wait_for(state, job, "FAILED")
    assert (record["exit"], record["restarts"]) == (4 << 8, 1)
    control.set_settings(state, accounting_requeue_lag=0)
    assert lines(state, "sacct", "-n", "-X", "-P", "-D", "-j", job, "-o", "State") == [
        "NODE_FAIL",
        "FAILED",
    ]


def test_node_failure_without_requeue(state, submit, tmp_path):
    """A job that may not be requeued is NODE_FAIL; its batch step has no exit code; slurmstepd
    says why."""
    job = submit("exec sleep 300", "--no-requeue", "-e", "err")
    control.wait_for(state, job, "RUNNING")
    control.event(state, job, "node_failure")
    deadline = time.time() + 60
    while control.job(state, job)["session"]:
        assert time.time() < deadline
        time.sleep(0.02)
    assert lines(state, "squeue", "-h", "-t", "all", "-O", "State:|,Reason:|,exit_code:|") == [
        "NODE_FAIL|NodeDown|0|"
    ]
    assert lines(state, "sacct", "-n", "-P", "-j", job, "-o", "State,ExitCode") == [
        "NODE_FAIL|0:0",
        "CANCELLED|",
    ]
    assert (
        (tmp_path / "err")
        .read_text()
        .endswith(" DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***\n")
    )


def test_hold_of_a_running_job(state, submit):
    """A job held while it runs goes on, and stays held once it is requeued."""
    job = submit()
    control.wait_for(state, job, "RUNNING")
    control.run(state, "scontrol", "hold", job, user="root:0")
    assert lines(state, "squeue", "-h", "-o", "%T %r") == ["RUNNING JobHeldAdmin"]
    control.run(state, "scontrol", "requeue", job)
    control.wait_for(state, job, "PENDING")
    assert lines(state, "squeue", "-h", "-o", "%T %r") == ["PENDING JobHeldAdmin"]


def test_requeue_truncates_output(state, submit, tmp_path):
    """The second run starts with empty output files, as JobFileAppend=0 has it."""
    control.set_settings(state, requeue_delay=0)
    job = submit(
        "echo run $SLURM_RESTART_COUNT; test $SLURM_RESTART_COUNT || exec sleep 300", "-o", "out"
    )
    control.wait_for(state, job, "RUNNING")
    assert control.run(state, "scontrol", "requeue", job).returncode == 0
    control.wait_for(state, job, "COMPLETED")
    assert (tmp_path / "out").read_text() == "run 1\n"


def test_requeued_held_until_released(state, submit):
    """requeuehold parks a job; release starts it again."""
    control.set_settings(state, requeue_delay=0)
    job = submit("test $SLURM_RESTART_COUNT || exec sleep 300")
    control.wait_for(state, job, "RUNNING")
    control.run(state, "scontrol", "requeuehold", job)
    control.wait_for(state, job, "PENDING")
    assert lines(state, "squeue", "-h", "-o", "%T|%r") == ["PENDING|job requeued in held state"]
    control.run(state, "scontrol", "release", job)
    control.wait_for(state, job, "COMPLETED")


@pytest.mark.parametrize(
    "arguments, state_word, reason",
    [
        (["--comment=fake:launch_failure"], "PENDING", "launch_failed_requeued_held"),
        (["--comment=fake:launch_failure", "--no-requeue"], "CANCELLED", "None"),
        (["--comment=fake:boot_failure", "--no-requeue"], "BOOT_FAIL", "JobLaunchFailure"),
        (["--comment=fake:boot_failure"], "PENDING", "BeginTime"),
    ],
)
def test_failures_before_the_start(state, submit, arguments, state_word, reason):
    """A node that cannot start a job holds, requeues or ends it."""
    control.set_settings(state, requeue_delay=NEVER)
    job = submit("true", *arguments)
    deadline = time.time() + 60
    wanted = "JobState=%s Reason=%s " % (state_word, reason)
    while wanted not in control.run(state, "scontrol", "-o", "show", "job", job).stdout:
        assert time.time() < deadline
        time.sleep(0.05)


def test_completing_hides_the_end(state, submit):
    """While its node is cleaned up a job is COMPLETING with its reason and exit code known; then
    FAILED."""
    job = submit("exit 5", "--comment=fake:completing=%d" % NEVER)
    control.wait_for(state, job, "COMPLETING")
    assert lines(state, "squeue", "-h", "-O", "State:|,Reason:|,exit_code:|") == [
        "COMPLETING|NonZeroExitCode|1280|"
    ]
    control.change(state, job, completing_until=0)
    control.wait_for(state, job, "FAILED")
    assert lines(state, "squeue", "-h") == []


@pytest.mark.parametrize(
    "shows, rows",
    [
        ("absent", []),
        ("pending", ["allocation|PENDING"]),
        ("running", ["wrap|RUNNING", "batch|RUNNING"]),
    ],
)
def test_accounting_lags(state, submit, shows, rows):
    """The accounting has no final row until its lag is over."""
    job = submit("exit 1", "--comment=fake:sacct_lag=600,sacct_lag_shows=" + shows)
    control.wait_for(state, job, "FAILED")
    query = ["sacct", "-n", "-P", "-j", job, "-o", "JobName,State"]
    assert lines(state, *query) == rows
    control.change(state, job, end_real=time.time() - 601)
    assert lines(state, *query) == ["wrap|FAILED", "batch|FAILED"]


def test_aged_out(state, submit):
    """min_job_age after its end the controller does not know a job; the accounting does."""
    job = submit("exit 1", "--comment=fake:min_job_age=0")
    control.wait_for(state, job, "FAILED")
    for argv in (["scontrol", "-o", "show", "job", job], ["squeue", "-h", "-t", "all", "-j", job]):
        done = control.run(state, *argv)
        assert (done.returncode, done.stdout, done.stderr) == (1, "", NO_JOB)
    assert lines(state, "squeue", "-h", "-t", "all") == []
    assert lines(state, "sacct", "-n", "-X", "-P", "-j", job, "-o", "State") == ["FAILED"]


def test_forget_one(state, submit):
    """forget() makes one job unknown at once, running or not."""
    job = submit()
    control.wait_for(state, job, "RUNNING")
    control.forget(state, job)
    assert control.run(state, "squeue", "-h", "-j", job).stderr == NO_JOB


def test_forget_all(state, submit):
    """A cold start of the controller kills what ran and forgets it; sacct says CANCELLED, by
    nobody."""
    job = submit()
    session = control.wait_for(state, job, "RUNNING")["session"]
    control.forget_all(state)
    assert lines(state, "squeue", "-h", "-t", "all") == []
    deadline = time.time() + 60
    while process.alive(session):
        assert time.time() < deadline
        time.sleep(0.02)
    rows = lines(state, "sacct", "-n", "-P", "-j", job, "-o", "State,ExitCode")
    assert rows[0] == "CANCELLED|0:0"


def test_cancel_pending(state, submit):
    """A job cancelled before its start keeps the reason it waited for."""
    job = submit("true", "-H")
    assert control.run(state, "scancel", job, user="root:0").returncode == 0
    assert lines(
        state, "squeue", "-h", "-t", "all", "-O", "State:|,Reason:|,exit_code:|,NodeList:|"
    ) == ["CANCELLED|JobHeldUser|0||"]
    assert lines(state, "sacct", "-n", "-P", "-j", job, "-o", "State,Start,Timelimit") == [
        "CANCELLED by 0|None|Partition_Limit"
    ]


def test_stubborn_job_is_killed(state, submit, tmp_path):
    """A job that ignores SIGTERM is COMPLETING for KillWait, then dies of SIGKILL."""
    job = submit("trap '' TERM; touch ready; while :; do sleep 0.1; done")
    wait_for_file(tmp_path / "ready")
    control.run(state, "scancel", job)
    assert control.job_state(state, job) == "COMPLETING"
    control.set_settings(state, kill_wait=0)
    assert control.wait_for(state, job, "CANCELLED")["exit"] == 9


def test_trapped_signal_decides_exit_code(state, submit, tmp_path):
    """A cancelled job whose script catches SIGTERM and exits 7 is CANCELLED with 7:0."""
    job = submit("trap 'exit 7' TERM; touch ready; while :; do sleep 0.05; done")
    wait_for_file(tmp_path / "ready")
    control.run(state, "scancel", job)
    control.wait_for(state, job, "CANCELLED")
    assert "ExitCode=7:0" in control.run(state, "scontrol", "-o", "show", "job", job).stdout


def test_batch_signal_does_not_cancel(state, submit, tmp_path):
    """scancel -b -s TERM writes CANCELLED AT and yet the job may end well."""
    job = submit("trap 'exit 0' TERM; touch ready; while :; do sleep 0.05; done", "-e", "err")
    wait_for_file(tmp_path / "ready")
    control.run(state, "scancel", "-b", "-s", "TERM", job)
    control.wait_for(state, job, "COMPLETED")
    assert re.search(
        r"JOB %d ON node1 CANCELLED AT \S+ \*\*\*" % job, (tmp_path / "err").read_text()
    )


def test_children_do_not_outlive_their_job(state, submit, tmp_path):
    """Background processes of a script, also in a session of their own, end with it."""
    job = submit("setsid sleep 300 & echo $! > child; sleep 0.2; exit 0")
    control.wait_for(state, job, "COMPLETED")
    pid = int((tmp_path / "child").read_text())
    deadline = time.time() + 60  # a killed process is gone once it had its turn
    while process.identity(pid) is not None:
        assert time.time() < deadline
        time.sleep(0.02)


def test_fast_end_by_update(state, submit):
    """``scontrol update jobid=N EndTime=now+1`` ends a job at once, as TIMEOUT."""
    job = submit("exec sleep 300", "-t", "600")
    control.wait_for(state, job, "RUNNING")
    assert (
        control.run(state, "scontrol", "update", "jobid=%d" % job, "EndTime=now+1").returncode == 0
    )
    control.wait_for(state, job, "TIMEOUT")


def test_dependency(state, submit):
    """A dependent job waits, runs after a success, and never after a failure."""
    first = submit("sleep 0.3")
    good = submit("true", "-d", "afterok:%d" % first)
    bad = submit("true", "-d", "afternotok:%d" % first)
    control.wait_for(state, good, "COMPLETED")
    deadline = time.time() + 60
    while (
        "DependencyNeverSatisfied"
        not in control.run(state, "squeue", "-h", "-j", bad, "-o", "%r").stdout
    ):
        assert time.time() < deadline
        time.sleep(0.05)


def test_array_elements(state, submit, tmp_path):
    """Waiting elements are one line, started ones have ids of their own, the throttle holds, each
    runs with its task."""
    go = tmp_path / "go"
    script = "until [ -e %s ]; do sleep 0.05; done; exit $SLURM_ARRAY_TASK_ID" % go
    job = submit(script, "--array=1-3%1")
    control.wait_for(state, job + 1, "RUNNING")
    assert lines(
        state, "squeue", "-h", "-O", "ArrayJobID:|,ArrayTaskID:|,JobID:|,State:|,Reason:|"
    ) == [
        "%d|2-3%%1|%d|PENDING|JobArrayTaskLimit|" % (job, job),
        "%d|1|%d|RUNNING|None|" % (job, job + 1),
    ]
    go.touch()
    for number in (job, job + 1, job + 2):
        control.wait_for(state, number, "FAILED")
    assert lines(state, "sacct", "-n", "-X", "-P", "-j", job, "-o", "JobID,JobIDRaw,ExitCode") == [
        "%d_3|%d|3:0" % (job, job),
        "%d_1|%d|1:0" % (job, job + 1),
        "%d_2|%d|2:0" % (job, job + 2),
    ]
    assert lines(state, "sacct", "-n", "-X", "-P", "-j", "%d_2" % job, "-o", "State") == ["FAILED"]


# -- faults of the commands


def test_private_data(state, submit):
    """Under PrivateData another user's job is unknown to the controller's commands."""
    job = submit("exec sleep 300")
    control.set_settings(state, private_data=True)
    done = control.run(state, "scontrol", "-o", "show", "job", job, user="mallory:4711")
    assert (done.returncode, done.stderr) == (1, NO_JOB)
    assert lines(state, "squeue", "-h", "-t", "all", user="mallory:4711") == []
    assert len(lines(state, "squeue", "-h", "-t", "all")) == 1


def test_banner(state, submit):
    """A message of the day with digits stands before the answer."""
    control.set_settings(
        state, banner="Welcome to cluster 42\n7 nodes are down", banner_commands=["sbatch"]
    )
    done = control.run(state, "sbatch", "--parsable", "--wrap", "true")
    assert done.stdout == "Welcome to cluster 42\n7 nodes are down\n1\n"
    assert lines(state, "squeue", "-h", "-t", "BF") == []


def test_controller_down_with_own_text(state):
    """Delay, text and return code of the outage are as set; sacct still works."""
    control.set_settings(
        state,
        controller_down={"delay": 0.3, "text": "Zero Bytes were transmitted or received", "rc": 9},
    )
    began = time.time()
    done = control.run(state, "squeue")
    assert (done.returncode, done.stderr) == (
        9,
        "slurm_load_jobs error: Zero Bytes were transmitted or received\n",
    )
    assert time.time() - began >= 0.3
    assert lines(state, "sacct", "-n") == []


def test_latency(state):
    """A command takes at least its latency."""
    control.set_settings(state, latency={"squeue": 0.3})
    began = time.time()
    control.run(state, "squeue")
    assert time.time() - began >= 0.3


def test_clusters_option(state, submit):
    """-M adds the cluster to a parsable id, prints a CLUSTER line with the heading only, refuses
    another cluster."""
    done = control.run(state, "sbatch", "--parsable", "-M", "private", "-H", "--wrap", "true")
    assert done.stdout == "1;private\n"
    assert lines(state, "squeue", "-M", "private", "-o", "%i") == ["CLUSTER: private", "JOBID", "1"]
    assert lines(state, "squeue", "-h", "-M", "private", "-o", "%i") == ["1"]
    done = control.run(state, "squeue", "-M", "elsewhere")
    assert done.returncode == 1 and "No cluster 'elsewhere' known by database." in done.stderr


def test_invented_words(state, submit):
    """show_as lets the commands show states that no fake job comes to."""
    job = submit("true", "-H")
    control.show_as(state, job, "REVOKED", "FrozenOver", "REVOKED")
    assert lines(state, "squeue", "-h", "-t", "all", "-O", "State:|,StateCompact:|,Reason:|") == [
        "REVOKED|RV|FrozenOver|"
    ]
    assert lines(state, "sacct", "-n", "-X", "-P", "-j", job, "-o", "State") == ["REVOKED"]


@pytest.mark.parametrize(
    "argv, text",
    [
        (["squeue", "--json"], "squeue: error: --json is not simulated"),
        (["sacct", "--json"], "sacct: error: --json is not simulated"),
        (["scontrol", "show", "node"], "scontrol: error: 'show node' (only: "),
        (
            ["sbatch", "--test-only", "--wrap", "true"],
            "sbatch: error: --test-only is not simulated",
        ),
        (["sbatch", "--comment=fake:nonsense=1", "--wrap", "true"], "unknown option 'nonsense'"),
    ],
)
def test_not_simulated_says_so(state, argv, text):
    """What the real one can do and this one cannot is refused, not guessed."""
    done = control.run(state, *argv)
    assert done.returncode in (64, 70)
    assert text in done.stderr


def test_without_a_state_folder(tmp_path):
    """The commands say which variable they need."""
    command = os.path.join(control.BIN, "squeue")
    env = {"PATH": os.environ["PATH"], "FAKE_SLURM_PYTHON": sys.executable}
    done = subprocess.run([command], env=env, stderr=subprocess.PIPE, universal_newlines=True)
    assert done.returncode == 70 and "FAKE_SLURM_STATE is not set" in done.stderr
    done = subprocess.run(
        [command],
        env=dict(env, FAKE_SLURM_STATE=str(tmp_path / "no")),
        stderr=subprocess.PIPE,
        universal_newlines=True,
    )
    assert done.returncode == 70 and "is no folder" in done.stderr


def test_bad_settings(state):
    """An unknown setting is named, by control and by the commands."""
    with pytest.raises(SettingsError, match="unknown setting 'time_scal'"):
        control.set_settings(state, time_scal=2)
    with open(os.path.join(state, "settings.json"), "w") as handle:
        handle.write('{"time_scal": 2}')
    done = control.run(state, "squeue")
    assert done.returncode == 70 and "unknown setting 'time_scal'" in done.stderr
    os.unlink(os.path.join(state, "settings.json"))


# -- the store


def test_command_log(state):
    """Every call is one line of the log, with its arguments as they were."""
    control.run(state, "squeue", "-h", "-O", "JobID:|\n|")
    control.run(state, "scontrol", "show", "job", 1)
    assert [argv for _, argv in control.commands(state)] == [
        ["squeue", "-h", "-O", "JobID:|\n|"],
        ["scontrol", "show", "job", "1"],
    ]
    assert len(control.commands(state, "squeue")) == 1
    control.clear_commands(state)
    assert control.commands(state) == []


def test_many_submissions_at_once(state, tmp_path):
    """Parallel submissions get ids of their own, and each job runs once."""
    env = dict(os.environ, **control.environment(state))
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh\necho x >> %s/ran\n" % tmp_path)
    argv = [os.path.join(control.BIN, "sbatch"), "--parsable", "-o", "/dev/null", str(script)]
    started = [
        subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, universal_newlines=True)
        for _ in range(20)
    ]
    ids = {int(one.communicate(timeout=120)[0]) for one in started}
    assert ids == set(range(1, 21))
    for number in ids:
        control.wait_for(state, number, "COMPLETED")
    assert (tmp_path / "ran").read_text() == "x\n" * 20


def computed_s():
    """Return the CPU seconds of the commands so far: others may keep the machine busy."""
    times = os.times()
    return times.children_user + times.children_system


def test_a_thousand_jobs(state):
    """squeue shows 1,000 injected jobs within a second, and one of them without reading the
    others."""
    ids = control.add_jobs(state, 1000, "alice:1005", "RUNNING")
    control.add_jobs(state, 5, "bob:1006", "HELD")
    control.add_jobs(state, 5, "alice:1005", "TIMEOUT")
    began = computed_s()
    rows = lines(
        state, "squeue", "-h", "-t", "all", "-u", "1005", "-O", "JobID:|x|,State:|x|,Name:|x|"
    )
    assert computed_s() - began < 10  # a third of a second on an idle machine
    assert len(rows) == 1005 and sum("TIMEOUT" in row for row in rows) == 5
    assert lines(state, "squeue", "-h", "-j", ids[7], "-o", "%i %T %u") == [
        "%d RUNNING alice" % ids[7]
    ]


def test_injected_job_can_be_cancelled(state):
    """A job without processes ends at once when it is cancelled, and no runner starts for it."""
    (job,) = control.add_jobs(state, 1, "root:0", "RUNNING")
    assert control.run(state, "scancel", job, user="root:0").returncode == 0
    assert control.job_state(state, job) == "CANCELLED"


def test_stop_all_ends_processes(state, submit):
    """stop_all ends runners and jobs; afterwards the controller is down until restart()."""
    record = control.wait_for(state, submit("trap '' TERM; exec sleep 300"), "RUNNING")
    control.stop_all(state)
    assert not process.alive(record["session"]) and not process.alive(record["runner"])
    assert control.run(state, "squeue").returncode == 1
    control.restart(state)
    assert control.run(state, "squeue").returncode == 0


@pytest.mark.parametrize(
    "text, seconds",
    [
        ("1", 60),
        ("0:30", 60),
        ("90", 5400),
        ("1:30", 120),
        ("1:00:00", 3600),
        ("1-0", 86400),
        ("1-1:30", 91800),
        ("2-01:02:03", 176580),
        ("UNLIMITED", None),
        ("0", None),
    ],
)
def test_time_limits(text, seconds):
    """``--time`` in every form of sbatch's manual, rounded up to minutes."""
    assert formats.parse_time_limit(text) == seconds
