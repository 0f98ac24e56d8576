"""The simulated PBS: OpenPBS's answers against captures of a real one; Torque's and PBS Pro's
against published outputs, manuals and headers."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "fakes"))

from fake_drm import control  # noqa: E402
from fake_pbs import attributes  # noqa: E402
from pulsar_failure_reasons.drm.base import Phase  # noqa: E402
from pulsar_failure_reasons.drm.pbs import commands, qstat, stderr  # noqa: E402
from pulsar_failure_reasons.drm.pbs.flavour import Flavour, flavour_from_version  # noqa: E402
from pulsar_failure_reasons.reason import Cause  # noqa: E402

DATA = os.path.join(HERE, "data", "pbs")
ALICE = "alice:1005"
SLEEP = "sleep 300\n"
# Seconds that no run of these tests comes to, also on the simulated clock.
NEVER = 10**7
GROW = "exec %s -S -c 'x = bytearray(90000000); import time; time.sleep(300)'\n" % sys.executable
READY = "touch $PBS_O_WORKDIR/$PBS_JOBID.ready; "

# capture -> (qsub arguments, the script, what is done while it runs)
CASES = {
    "success": (["-l", "walltime=9:00:00"], "echo out; echo err >&2; exit 0\n", None),
    "exit1": ([], "echo boom >&2; exit 1\n", None),
    "segv": ([], "kill -11 $$\n", None),
    "self_sigkill": ([], "kill -9 $$\n", None),
    "walltime": (["-l", "walltime=00:00:05"], SLEEP, None),
    "mem_enforced": (
        ["-l", "select=1:ncpus=1:mem=50mb", "-l", "walltime=9:00:00",
         "-A", "fake:memory_limit=overmemkill"], GROW, None,
    ),
    "qdel_running": ([], READY + SLEEP, ["qdel"]),
    "qdel_running_trap": (
        [], "trap 'exit 3' TERM; " + READY + "while :; do sleep 0.05; done\n", ["qdel"],
    ),
    "qsig_kill": ([], READY + SLEEP, ["qsig", "-s", "KILL"]),
    "held_deleted": (["-h"], SLEEP, ["qdel"]),
    "unwritable_output": (["-o", "/no/such/dir/out", "-e", "/no/such/dir/err"], "exit 0\n", None),
    "qrerun_finishes": (
        [], "[ -e $PBS_O_WORKDIR/$PBS_JOBID.ready ] && exit 5; " + READY + SLEEP, "requeue",
    ),
    "bad_interpreter": ([], "#!/no/such/interp\n", None),
    "spoof_env": (
        ["-v", "INF=1e400,NEG=-29,SP=a\n    Exit_status = 0\n    comment = all fine,Z=1"],
        "exit 1\n", None,
    ),
}
COMPARED = (
    "job_state Checkpoint Hold_Types Join_Path Keep_Files Mail_Points Priority Rerunable substate "
    "run_count Stageout_status Exit_status comment project"
).split()
#: What a capture shows for another reason than the end of its job, or a played one adds.
OTHER = {"Account_Name", "session_id"}


def capture(name):
    """The text of a captured file."""
    with open(os.path.join(DATA, "captures", name)) as handle:
        return handle.read()


def only_job(text):
    """The one job of a JSON answer."""
    return list(json.loads(text)["Jobs"].values())[0]


@pytest.fixture
def make(tmp_path):
    """A function that makes a state folder of a flavour; its jobs are ended after the test."""
    made = []

    def call(flavour="openpbs", **values):
        values = dict(dict(time_scale=60, kill_wait=60, requeue_delay=5), **values)
        made.append(control.create(tmp_path / ("state%d" % len(made)), flavour, **values))
        return made[-1]

    yield call
    for path in made:
        control.stop_all(path)
        assert not os.path.exists(os.path.join(path, "runner-errors.log"))


def submit(state, script, *arguments, cwd=None, user=ALICE):
    """Submit a script's text; returns the printed id."""
    done = control.run(state, "qsub", *arguments, stdin=script, user=user, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def number(job_id):
    """The record's id of a job's name."""
    return int(re.match("[0-9]+", job_id).group())


def wait_for_file(state, path, job):
    """Wait until a job's script has made a file."""
    control.wait_until(state, number(job), lambda record: os.path.exists(path))


# ---- ends of jobs --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """All CASES, played at once: {case: (id, state folder, folder of its files)}."""
    state = control.create(
        tmp_path_factory.mktemp("state"), "openpbs", cluster="pbshead", node="pbshead",
        time_scale=60, kill_wait=60, requeue_delay=5,
    )
    found, work = {}, str(tmp_path_factory.mktemp("work"))
    try:
        for case, (arguments, script, act) in CASES.items():
            path = os.path.join(work, case + ".sh")
            with open(path, "w") as handle:
                handle.write(script)
            done = control.run(state, "qsub", *arguments, path, user=ALICE, cwd=work)
            assert done.returncode == 0, done.stderr
            found[case] = done.stdout.strip()
        for case, (_, script, act) in CASES.items():
            if act is None:
                continue
            if READY in script:
                wait_for_file(state, os.path.join(work, found[case] + ".ready"), found[case])
            if isinstance(act, str):
                control.event(state, number(found[case]), act)
            else:
                assert control.run(state, *act, found[case], user=ALICE).returncode == 0
        for job in found.values():
            control.wait_for(state, number(job), "ended")
        yield state, found, work
    finally:
        control.stop_all(state)


def masked(case, shown):
    """The compared attributes, dates masked."""
    row = {name: shown.get(name) for name in COMPARED}
    if row["comment"]:
        row["comment"] = re.sub(r"at \w+ \w+ +\d+ at \d+:\d+", "at DAY", row["comment"])
        row["comment"] = re.sub(r":mem=\d+kb", "", row["comment"])
    return row


@pytest.mark.parametrize("case", CASES)
def test_end_as_in_the_capture(ended, case):
    """States, codes and comments of an ended job are those that the real server showed."""
    state, found, _ = ended
    answer = control.run(state, "qstat", "-x", "-f", "-F", "json", found[case], user=ALICE)
    assert answer.returncode == 0
    assert masked(case, only_job(answer.stdout)) == masked(
        case, only_job(capture(case + ".json"))
    )


@pytest.mark.parametrize("case", [case for case in CASES if case != "spoof_env"])
def test_attributes_in_the_order_of_the_capture(ended, case):
    """The text form has the attributes that the real one has, in its order."""
    state, found, _ = ended
    answer = control.run(state, "qstat", "-x", "-f", found[case], user=ALICE).stdout

    def names(text):
        listed = re.findall(r"^ {4}([\w.]+) = ", text, re.MULTILINE)
        return [name for name in listed if name not in OTHER]

    assert names(answer) == names(capture(case + ".txt"))


def test_line_in_stderr(ended):
    """The mom writes why it kills: used and limit, of walltime in seconds, of memory in kb."""
    _, found, work = ended

    def text(case):
        with open(os.path.join(work, "%s.sh.e%d" % (case, number(found[case])))) as handle:
            return handle.read()

    assert re.match(r"=>> PBS: job killed: walltime \d+ exceeded limit 5\n", text("walltime"))
    assert re.match(r"=>> PBS: job killed: mem \d+kb exceeded limit 51200kb\n",
                    text("mem_enforced"))
    assert stderr.classify_stderr(text("walltime"), None).cause is Cause.WALLTIME
    assert re.match(r"-bash: line 1: +\d+ Killed ", text("self_sigkill"))


def test_spoofed_lines_are_spoofed_here_too(ended):
    """A newline in a variable makes a second Exit_status line, as on the real server."""
    state, found, _ = ended
    text = control.run(state, "qstat", "-x", "-f", found["spoof_env"], user=ALICE).stdout
    assert "\n    Exit_status = 0\n" in text and "\n    Exit_status = 1\n" in text


def test_tracejob(ended):
    """The server's and the mom's lines; accounting lines only for root."""
    state, found, _ = ended
    text = control.run(state, "tracejob", found["walltime"], user=ALICE).stdout
    lines = [line[21:] for line in text.splitlines() if line[:1].isdigit()]
    wanted = [line[21:] for line in capture("walltime.tracejob").splitlines() if line[:1].isdigit()]
    kept = ["S    Exit_status=-29", "S    Obit received momhop:1 serverhop:1 state:R substate:42"]
    for one in kept:
        assert any(line.startswith(one) for line in lines)
        assert any(line.startswith(one) for line in wanted)
    assert not any(line.startswith("A ") for line in lines)
    as_root = control.run(state, "tracejob", found["walltime"], user="root:0").stdout
    assert re.search(r"  A    user=alice .* Exit_status=-29 ", as_root)


#: All but those with newlines or wide characters in values.
TEXTS = {name[:-4] for name in os.listdir(os.path.join(DATA, "captures")) if name[-4:] == ".txt"}


@pytest.mark.parametrize("name", sorted(TEXTS - {"spoof_env", "json_odd"}))
def test_folds_as_qstat_does(name):
    """Every attribute of every captured text is folded again as it was."""
    lines = []
    for line in capture(name + ".txt").split("\n"):
        if line.startswith("\t"):
            lines[-1] += "\n" + line
        else:
            lines.append(line)
    for line in lines:
        match = re.match(r"( {4}[\w.]+ = )(.*)", line, re.DOTALL)
        if match:
            assert attributes.fold(match.group(1), match.group(2).replace("\n\t", "")) == line


# ---- commands ------------------------------------------------------------------------------------

with open(os.path.join(DATA, "fake_contract", "commands.jsonl")) as _file:
    RECORDED = [json.loads(line) for line in _file]


#: What has to be in the folder for a recorded command: (kind of job for add_jobs, its fields)
STAGES = {
    "ended": ("success", {}),
    "running": ("running", {}),
    "held": ("held", {}),
    "not_rerunnable": ("running", {"requeue": False}),
    "no_history_ended": ("success", {}),
    "no_history_running": ("running", {}),
}
REJECTS = {"reject_root/qsub": "user", "reject_disabled/qsub": "disabled"}


def job_of(recorded):
    """The number of the job in a recorded command or, of qsub, in its answer."""
    text = recorded["stdout" if recorded["case"].endswith("/qsub") else "command"]
    found = [int(one) for one in re.findall(r"\b([0-9]+)(?=\[|\.pbshead|$|\n)", text)]
    return ([one for one in found if one != 9999] or [1])[0]


def stage(state, word):
    """Put the job of a recorded command into the folder."""
    if word == "down":
        control.set_settings(state, controller_down=True)
    if word.startswith("no_history"):
        control.set_settings(state, accounting="off")
    fields = dict(user=ALICE, name="job.sh", time_limit=None)
    if word in STAGES:
        kind, more = STAGES[word]
        control.add_jobs(state, 1, kind, **dict(fields, **more))
    if word in ("array_running", "array_ended"):
        left = 2 if word == "array_running" else 0
        jobs = control.add_jobs(state, 6 - left, "success", **fields)
        if left:
            jobs += control.add_jobs(state, left, "running", **fields)
        for task, job in enumerate(jobs):
            control.change(state, job, array_id=jobs[0], task_id=task, array_size=6)


def normal(text):
    """Times masked."""
    text = re.sub(r'"timestamp":\t\d+', '"timestamp":\tTIME', text)
    text = re.sub(r"\w+ \w+ +\d+ at \d+:\d+", "DAY", text)
    return text.replace("and failed", "and finished")  # multi_ids' job exits with 1


@pytest.mark.parametrize(
    "recorded", RECORDED, ids=lambda one: one["case"].replace("/", "_")
)
def test_same_answer_as_openpbs(make, recorded, tmp_path):
    """A command's stdout, stderr and return code are those of the real one."""
    state = make(
        cluster="pbshead",
        node="pbshead",
        first_job_id=job_of(recorded),
        reject=REJECTS.get(recorded["case"], ""),
        partitions=["workq", "tiny"],
    )
    (tmp_path / "job.sh").write_text("exit 0\n")
    stage(state, recorded["state"])
    user = "root:0" if recorded["state"] == "not_rerunnable" else ALICE
    done = control.run(state, *shlex.split(recorded["command"]), user=user, cwd=tmp_path)
    assert (normal(done.stdout), normal(done.stderr), done.returncode) == (
        normal(recorded["stdout"]), normal(recorded["stderr"]), recorded["rc"],
    )


def test_json_retypes_variables(make):
    """Values of variables that look like numbers are printed as such, others are not."""
    state = make()
    job = submit(state, "exit 0\n", "-v", "A=1,B=007,C=1e5,D=nan,F=true,T=12.50,EMPTY=,I=1e400")
    text = control.run(state, "qstat", "-x", "-f", "-F", "json", job).stdout
    shown = only_job(text)["Variable_List"]
    assert [shown[name] for name in "A B C D F T EMPTY I".split()] == [
        1, 7, 100000, "nan", True, 12.5, "", None,
    ]


def test_suspended_job_stands_still(make, tmp_path):
    """qsig -s suspend stops the processes (state S), resume lets them go on."""
    state = make()
    script = READY + "while :; do date +%s%N > tick; sleep 0.02; done\n"
    job = submit(state, "cd $PBS_O_WORKDIR; " + script, cwd=tmp_path)
    wait_for_file(state, str(tmp_path / "tick"), job)
    assert control.run(state, "qsig", "-s", "suspend", job, user="root:0").returncode == 0

    def state_of_processes():
        pid = control.job(state, number(job))["session"][0]
        with open("/proc/%d/stat" % pid) as handle:
            return handle.read().rpartition(") ")[2][0]

    control.wait_until(state, number(job), lambda record: state_of_processes() == "T")
    assert "job_state = S" in control.run(state, "qstat", "-f", job).stdout
    control.run(state, "qsig", "-s", "resume", job, user="root:0")
    control.wait_until(state, number(job), lambda record: state_of_processes() in "SR")
    assert "job_state = R" in control.run(state, "qstat", "-f", job).stdout


def test_failed_dependency_deletes(make):
    """A job whose parent failed is deleted: F, substate 92, no Exit_status, no comment."""
    state = make()
    parent = submit(state, "exit 2\n")
    child = submit(state, "exit 0\n", "-W", "depend=afterok:" + parent)
    control.wait_for(state, number(child), "ended")
    shown = only_job(control.run(state, "qstat", "-x", "-f", "-F", "json", child).stdout)
    assert (shown["job_state"], shown["substate"]) == ("F", 92)
    assert "Exit_status" not in shown and "comment" not in shown


def test_node_failure(make):
    """A job that may not be rerun ends with -20 and an unchanged comment; others are requeued."""
    state = make(requeue_delay=NEVER)
    ends = submit(state, SLEEP, "-r", "n")
    again = submit(state, SLEEP)
    for job in (ends, again):
        control.wait_for(state, number(job), "running")
        control.event(state, number(job), "node_failure")
    control.wait_for(state, number(ends), "ended")
    shown = only_job(control.run(state, "qstat", "-x", "-f", "-F", "json", ends).stdout)
    assert shown["Exit_status"] == -20 and shown["comment"].endswith("(node1:ncpus=1)")
    shown = only_job(control.run(state, "qstat", "-f", "-F", "json", again).stdout)
    assert (shown["job_state"], shown["Exit_status"], shown["run_count"]) == ("Q", -20, 1)


def test_failing_launches_hold(make):
    """A prologue that keeps failing: held by the system, run_count 21, Exit_status -3."""
    state = make()
    job = submit(state, "exit 0\n", "-A", "fake:launch_failure")
    control.wait_until(state, number(job), lambda record: record["why"] == "launch_failed_held")
    shown = only_job(control.run(state, "qstat", "-f", "-F", "json", job).stdout)
    assert [shown[name] for name in ("job_state", "Hold_Types", "run_count", "Exit_status")] == [
        "H", "s", 21, -3,
    ]
    assert shown["comment"] == "job held, too many failed attempts to run"


def test_forced_deletion_and_other_users(make):
    """-W force is 265; somebody else's job is not ours to delete (15007 as an exit code: 159)."""
    state = make()
    job = submit(state, SLEEP)
    control.wait_for(state, number(job), "running")
    denied = control.run(state, "qdel", job, user="bob:1006")
    assert (denied.returncode, denied.stderr) == (
        159, "qdel: Unauthorized Request  %s\n" % job,
    )
    assert control.run(state, "qdel", "-W", "force", job, user=ALICE).returncode == 0
    control.wait_for(state, number(job), "ended")
    assert "Exit_status = 265" in control.run(state, "qstat", "-x", "-f", job).stdout


# ---- the flavours --------------------------------------------------------------------------------

# flavour -> (walltime, cput, memory, qdel, SIGKILL of the script, exit 3)
EXIT_STATUS = {
    "openpbs": (-29, -28, -27, 271, 137, 3),
    "pbspro": (271, 271, 271, 271, 137, 3),
    "torque": (-11, -12, -10, 271, 265, 3),
}


@pytest.mark.parametrize("flavour", EXIT_STATUS)
def test_exit_status_by_flavour(make, flavour, tmp_path):
    """The same ends have other numbers in OpenPBS, PBS Pro and Torque."""
    state = make(flavour, memory_limit="overmemkill")
    jobs = [
        submit(state, SLEEP, "-l", "walltime=10", cwd=tmp_path),
        submit(state, "while :; do :; done\n", "-l", "cput=6", cwd=tmp_path),
        submit(state, GROW, "-l", "mem=50mb", cwd=tmp_path),
        submit(state, SLEEP, cwd=tmp_path),
        submit(state, "kill -9 $$\n", cwd=tmp_path),
        submit(state, "exit 3\n", cwd=tmp_path),
    ]
    control.wait_for(state, number(jobs[3]), "running", "ended")
    control.run(state, "qdel", jobs[3], user=ALICE)
    for job in jobs:
        control.wait_for(state, number(job), "ended")
    history = flavour != "torque"
    asked = commands.qstat_text_command(jobs, history=history)
    text = control.run(state, *asked, user=ALICE).stdout
    found = re.findall(r"^ {4}[Ee]xit_status = (-?\d+)", text, re.MULTILINE)
    assert tuple(map(int, found)) == EXIT_STATUS[flavour]
    version = control.run(state, *commands.version_command())
    told = Flavour.TORQUE if flavour == "torque" else Flavour.OPENPBS
    assert flavour_from_version(version.stdout + version.stderr) is told
    views = qstat.parse_qstat_text(text, told)
    assert all(view.phase is Phase.ENDED for view in views)
    if flavour != "pbspro":
        causes = [view.end.cause for view in views[:4]]
        assert causes == [Cause.WALLTIME, Cause.CPU_TIME, Cause.MEMORY, Cause.CANCELLED]


def test_torque_xml_and_forgetting(make):
    """qstat -x is one line of XML while the job is kept; then the id is unknown (153)."""
    state = make("torque")
    job = submit(state, "exit 1\n")
    control.wait_for(state, number(job), "ended")
    answer = control.run(state, *commands.qstat_command([job], Flavour.TORQUE))
    head = "<Data><Job><Job_Id>0.server1</Job_Id><Job_Name>STDIN</Job_Name>"
    assert answer.stdout.startswith(head)
    assert answer.stdout.endswith("<request_version>1</request_version></Job></Data>\n")
    assert re.search(r"<etime>\d+</etime><exit_status>1</exit_status><submit_args>", answer.stdout)
    (view,) = qstat.parse_qstat_xml(answer.stdout)
    assert view.phase is Phase.ENDED and view.end.exit_code == 1
    control.forget(state, number(job))
    answer = control.run(state, "qstat", "-f", job)
    assert (answer.returncode, answer.stderr) == (
        153, "qstat: Unknown Job Id Error 0.server1\n",
    )
    assert "Exit_status=1 " in control.run(state, "tracejob", job).stdout


@pytest.mark.parametrize(
    "flavour, plugin", [("torque", "torque.Torque"), ("openpbs", "pbs.OpenPBS")]
)
def test_commands_of_stock_pulsar(make, flavour, plugin, tmp_path):
    """Pulsar's own job plugin submits, asks and deletes through a shell, and reads the answers."""
    module = pytest.importorskip("pulsar.managers.util.cli.job." + plugin.split(".")[0])
    interface = getattr(module, plugin.split(".")[1])()
    state = make(flavour)
    script = tmp_path / "job.sh"
    headers = interface.job_script_kwargs(str(tmp_path / "o"), str(tmp_path / "e"), "named")
    script.write_text("#!/bin/sh\n%s\nsleep 300\n" % headers["headers"])
    env = dict(os.environ, **control.environment(state))

    def shell(command):
        done = subprocess.run(["/bin/sh", "-c", command], env=env, timeout=120, cwd=str(tmp_path),
                              stdout=subprocess.PIPE, universal_newlines=True, check=False)
        return done.stdout

    job = shell(interface.submit(str(script))).strip()
    assert job == "0.%s" % ("server1" if flavour == "torque" else "pbs1")
    record = control.wait_for(state, number(job), "running")
    assert (record["name"], record["stdout"]) == ("named", str(tmp_path / "o"))
    assert interface.parse_single_status(shell(interface.get_single_status(job)), job) == "running"
    listed = interface.parse_status(shell(interface.get_status([job])), [job])
    assert list(listed.values()) == ["running"]
    shell(interface.delete(job))
    control.wait_for(state, number(job), "ended")


def test_command_log_and_another_drms_command(make):
    """Each command adds a line to the log; a command of another DRM is not found."""
    state = make()
    control.run(state, "qstat")
    control.run(state, "qstat", "-f", "0")
    assert [argv for _, argv in control.commands(state, "qstat")] == [
        ["qstat"], ["qstat", "-f", "0"],
    ]
    assert control.run(state, "bjobs").returncode == 127
    assert control.commands(state, "bjobs") == []


def test_banner_and_delay(make):
    """A banner stands before the output, and a server that is down may take its time."""
    state = make(banner="Welcome to the cluster", latency={"qstat": 0.2})
    assert control.run(state, "qstat", "--version").stdout == (
        "Welcome to the cluster\npbs_version = 23.06.06\n"
    )
    control.set_settings(state, controller_down={"delay": 0.1, "text": "gone fishing", "rc": 9})
    answer = control.run(state, "qstat")
    assert (answer.returncode, answer.stderr) == (9, "gone fishing\n")
