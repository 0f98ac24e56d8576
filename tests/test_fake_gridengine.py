"""The simulated Grid Engine: its answers against captures of a real SGE 8.1.9."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from xml.etree import ElementTree

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "fakes"))

from fake_drm import control  # noqa: E402
from pulsar_failure_reasons.drm.base import Ending, Phase  # noqa: E402
from pulsar_failure_reasons.drm.gridengine import commands, qacct, qstat  # noqa: E402
from pulsar_failure_reasons.reason import Cause  # noqa: E402

DATA = os.path.join(HERE, "data", "gridengine")
ALICE = "alice:1005"
BASH = "#!/bin/bash\n"
SLEEP = BASH + "sleep 300\n"
# Seconds that no run of these tests comes to, also on the simulated clock.
NEVER = 10**7
SPIN = BASH + "while :; do :; done\n"
CHILDREN = BASH + (
    "for i in 1 2 3; do %s -S -c 'x = bytearray(30000000); import time; time.sleep(300)' & done\n"
    "wait\n" % sys.executable
)

# capture -> (qsub arguments, the script, what is done while it runs, by whom)
CASES = {
    "success": ([], BASH + "echo hello\n", None),
    "exit1": ([], BASH + "exit 1\n", None),
    "exit100": ([], BASH + "exit 100\n", None),
    "segv": ([], BASH + "kill -SEGV $$\n", None),
    "command_not_found": ([], BASH + "no_such_command_xyz\n", None),
    "h_rt": (["-l", "h_rt=0:0:5"], SLEEP, None),
    "s_rt": (["-l", "s_rt=0:0:4,h_rt=10:0:30"], SLEEP, None),
    "h_cpu": (["-l", "h_cpu=0:0:4"], SPIN, None),
    "h_fsize": (
        ["-l", "h_fsize=2M"], BASH + "dd if=/dev/zero of=big bs=1M count=4\nexit $?\n", None,
    ),
    "qdel_running": ([], SLEEP, (["qdel"], ALICE)),
    "qdel_f_running_root": ([], SLEEP, (["qdel", "-f"], "root:0")),
    "node_crash": ([], SLEEP, "node_failure"),
    "bad_interpreter": ([], "#!/no/such/interp\n", None),
    "unwritable_output": (["-o", "/no/such/dir/out"], BASH + "exit 0\n", None),
}
STUCK = ("exit100", "bad_interpreter", "unwritable_output")
COMPARED = (
    "project department jobname taskid account priority granted_pe slots failed exit_status arid "
    "category"
).split()


def capture(name):
    """The text of a captured file."""
    with open(os.path.join(DATA, "captures", name)) as handle:
        return handle.read()


@pytest.fixture
def make(tmp_path):
    """A function that makes a state folder; its jobs are ended after the test."""
    made = []

    def call(**values):
        values = dict(
            dict(time_scale=60, kill_wait=60, requeue_delay=5, accounting_lag=0), **values
        )
        made.append(control.create(tmp_path / ("state%d" % len(made)), "sge", **values))
        return made[-1]

    yield call
    for path in made:
        control.stop_all(path)
        assert not os.path.exists(os.path.join(path, "runner-errors.log"))


def submit(state, script, *arguments, cwd=None, user=ALICE):
    """Submit a script's text; returns the job's number."""
    argv = ["qsub", "-terse", "-cwd", *arguments]
    done = control.run(state, *argv, stdin=script, user=user, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return int(done.stdout.split(".")[0])


def fields(text):
    """The fields of one qacct record, in order."""
    return [tuple(line.split(None, 1)) for line in text.splitlines() if " " in line]


# ---- ends of jobs --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """All CASES, played at once: (state folder, {case: number}, folder of their files)."""
    state = control.create(
        tmp_path_factory.mktemp("state"), "sge", time_scale=60, kill_wait=60, accounting_lag=0
    )
    work, found = str(tmp_path_factory.mktemp("work")), {}
    try:
        for case, (arguments, script, act) in CASES.items():
            with open(os.path.join(work, "job.sh"), "w") as handle:
                handle.write(script)
            done = control.run(
                state, "qsub", "-terse", "-cwd", *arguments, "job.sh", user=ALICE, cwd=work
            )
            assert done.returncode == 0, done.stderr
            found[case] = int(done.stdout)
        for case, (_, _, act) in CASES.items():
            if act is None:
                continue
            control.wait_for(state, found[case], "running")
            if isinstance(act, str):
                control.event(state, found[case], act)
            else:
                control.run(state, *act[0], found[case], user=act[1])
        for job in found.values():
            control.wait_until(
                state, job, lambda record: record["extra"].get("accounting")
            )
        yield state, found, work
    finally:
        control.stop_all(state)


@pytest.mark.parametrize("case", CASES)
def test_accounting_as_in_the_capture(ended, case):
    """failed, exit_status and all that does not depend on time are those that qacct showed."""
    state, found, _ = ended
    ours = fields(control.run(state, "qacct", "-j", found[case]).stdout)
    theirs = fields(capture(case + ".qacct"))
    assert [one[0] for one in ours] == [one[0] for one in theirs]
    wanted = dict(theirs)
    if case == "s_rt":
        wanted["category"] = "-l h_rt=36030,s_rt=4"
    shown = dict(ours)
    assert {name: shown[name].strip() for name in COMPARED} == {
        name: wanted[name].strip() for name in COMPARED
    }
    assert (shown["start_time"] == "-/-") == (wanted["start_time"] == "-/-")


@pytest.mark.parametrize("case", STUCK)
def test_error_state_as_in_the_capture(ended, case):
    """A job that could not start is listed as Eqw, with its reason in qstat -j."""
    state, found, _ = ended
    listed = ElementTree.fromstring(
        control.run(state, "qstat", "-xml", "-u", "*", user=ALICE).stdout
    )
    ours = [job for job in listed.iter("job_list")
            if job.findtext("JB_job_number") == str(found[case])]
    theirs = list(ElementTree.fromstring(capture(case + ".qstat.xml")).iter("job_list"))
    assert [(one.tag, one.tail) for one in ours[0]] == [(one.tag, one.tail) for one in theirs[0]]
    assert ours[0].findtext("state") == theirs[0].findtext("state") == "Eqw"
    details = control.run(state, "qstat", "-xml", "-j", found[case]).stdout

    def reason(text):
        found_text = ElementTree.fromstring(text).findtext(".//QIM_message")
        return re.sub(r"^.*?\]: |/\S+(?=[,)])|\"/\S+/\d*(?:\.script)?\"|\d+", "", found_text)

    assert reason(details) == reason(capture(case + ".details.xml"))


def test_causes_read_by_the_product(ended):
    """Our parser reads these records as what they are played to be."""
    state, found, _ = ended
    answer = control.run(state, *commands.qacct_user_command("alice"))
    assert answer.returncode == 0
    views = {view.external_id: view for view in qacct.parse_qacct(answer.stdout, answer.stderr)}
    told = {case: views[str(job)].end for case, job in found.items() if str(job) in views}
    assert told["success"].ending is Ending.WELL
    assert told["h_rt"].cause is Cause.WALLTIME
    assert told["s_rt"].cause is Cause.WALLTIME
    # what nothing in accounting tells from a success
    assert told["qdel_f_running_root"].ending is Ending.WELL
    # those that never started have no time, so -d leaves them out
    assert not {"bad_interpreter", "unwritable_output", "node_crash"} & set(told)


def test_table_of_totals_behind_the_records(ended):
    """Without an id after -j, qacct ends with a table, of which no line is a field."""
    state, _, _ = ended
    text = control.run(state, *commands.qacct_user_command("carol")).stdout
    assert text == capture("user.qacct")[capture("user.qacct").index("OWNER"):].replace(
        capture("user.qacct").splitlines()[-1] + "\n", ""
    )


def test_memory_of_several_processes(make, tmp_path):
    """Their sum over h_vmem is 37 and 137, the same text as for h_rt; one alone fails by itself."""
    state = make()
    job = submit(state, CHILDREN, "-l", "h_vmem=80M", cwd=tmp_path)
    alone = submit(
        state, BASH + "exec %s -S -c 'x = bytearray(900000000)'\n" % sys.executable,
        "-l", "h_vmem=200M", cwd=tmp_path,
    )
    for one in (job, alone):
        control.wait_for(state, one, "ended")
    shown = dict(fields(control.run(state, "qacct", "-j", job).stdout))
    assert shown["failed"] == "37  : qmaster enforced h_rt, h_cpu, or h_vmem limit"
    assert shown["exit_status"] == "137                  (Killed)"
    shown = dict(fields(control.run(state, "qacct", "-j", alone).stdout))
    assert (shown["failed"].strip(), shown["exit_status"].strip()) == ("0", "1")


def test_rescheduled_jobs_have_two_records(make, tmp_path):
    """Exit code 99 gives a record with 25, and then that of the run that counts."""
    state = make()
    job = submit(state, BASH + "[ $RESTARTED = 1 ] || exit 99; exit 4\n", cwd=tmp_path)
    control.wait_for(state, job, "ended")
    text = control.run(state, "qacct", "-j", job).stdout
    assert re.findall(r"^failed +(\S+)", text, re.MULTILINE) == ["25", "0"]
    assert re.findall(r"^exit_status +(\S+)", text, re.MULTILINE) == ["99", "4"]
    (view,) = qacct.parse_qacct(text)
    assert view.end.exit_code == 4


def test_accounting_lags(make, tmp_path):
    """qstat drops an ended job at once; qacct knows it some time later (15 s by default)."""
    state = control.create(tmp_path / "default", "sge")
    with open(os.path.join(state, "settings.json")) as handle:
        assert json.load(handle)["accounting_lag"] == 15
    state = make(accounting_lag=NEVER)
    early = submit(state, BASH + "exit 0\n", "-A", "fake:accounting_lag=0", cwd=tmp_path)
    late = submit(state, BASH + "exit 0\n", cwd=tmp_path)
    for job in (early, late):
        control.wait_for(state, job, "ended")
    assert control.run(state, "qstat", "-u", "*").stdout == ""
    assert control.run(state, "qacct", "-j", early).returncode == 0
    answer = control.run(state, "qacct", "-j", late)
    assert (answer.returncode, answer.stderr) == (1, "error: job id %d not found\n" % late)
    control.set_settings(state, accounting_lag=0)
    assert control.run(state, "qacct", "-j", late).returncode == 0


def test_array(make, tmp_path):
    """One row for each running task, one for all that wait; a record for each in qacct."""
    state = make()
    done = control.run(
        state, "qsub", "-cwd", "-t", "1-6", "-tc", "4", stdin=BASH + (
            "case $SGE_TASK_ID in 1|2|3|4) sleep 300;; esac; exit $SGE_TASK_ID\n"
        ), user=ALICE, cwd=tmp_path,
    )
    assert done.stdout == 'Your job-array 1.1-6:1 ("STDIN") has been submitted\n'
    for job in range(1, 5):
        control.wait_for(state, job, "running")
    control.run(state, "qdel", "1", "-t", "5", user=ALICE)  # as in the capture
    listed = control.run(state, *commands.qstat_command("alice")).stdout
    ours = [(one.findtext("state"), one.findtext("tasks"))
            for one in ElementTree.fromstring(listed).iter("job_list")]
    theirs = [(one.findtext("state"), one.findtext("tasks"))
              for one in ElementTree.fromstring(capture("array.qstat.xml")).iter("job_list")]
    assert ours == theirs
    assert [view.external_id for view in qstat.parse_qstat(listed)] == [
        "1.1", "1.2", "1.3", "1.4", "1.6",
    ]
    control.run(state, "qdel", "1", user=ALICE)
    for job in range(1, 5):
        control.wait_for(state, job, "ended")
    text = control.run(state, "qacct", "-j", "1").stdout
    # tasks that never started have no record, ever
    assert sorted(re.findall(r"^taskid +(\d+)", text, re.MULTILINE)) == ["1", "2", "3", "4"]


def test_suspended_and_deleted_states(make, tmp_path):
    """qmod -sj shows s, a suspended queue S, and a job being deleted dr."""
    state = make(kill_wait=NEVER)
    job = submit(state, BASH + "trap '' USR2; touch ready; while :; do sleep 0.05; done\n",
                 "-notify", cwd=tmp_path)
    control.wait_until(state, job, lambda record: (tmp_path / "ready").exists())

    def shown():
        (view,) = qstat.parse_qstat(control.run(state, *commands.qstat_command("alice")).stdout)
        return view.job_state, view.phase

    control.run(state, "qmod", "-sj", job, user=ALICE)
    assert shown() == ("s", Phase.RUNNING)
    control.run(state, "qmod", "-usj", job, user=ALICE)
    assert shown() == ("r", Phase.RUNNING)
    control.event(state, job, "suspend")
    assert shown()[0] == "S"
    control.event(state, job, "resume")
    control.run(state, "qdel", job, user=ALICE)
    assert shown() == ("dr", Phase.ENDING)
    control.set_settings(state, kill_wait=0)


# ---- commands ------------------------------------------------------------------------------------

with open(os.path.join(DATA, "fake_contract", "commands.jsonl")) as _file:
    # resources are not simulated, so nothing is refused for want of them
    RECORDED = [json.loads(line) for line in _file if "-w e" not in line]
STAGES = {
    "running": "running", "running_root": "running", "ended": "success", "pending": "pending",
    "held": "held", "Eqw": "pending", "Eqw_root": "pending", "array_held": "array",
    "array_ended": "array_ended",
}


def job_of(recorded):
    """The number of the job in a recorded command or answer."""
    for text in (recorded["command"], recorded["stdout"].replace("version='1.0'", "")):
        number = r"(?<![\w.=])(\d+)(?= \(|\.\d|$|\n| -t| 0\.|</JB_job_number)"
        match = re.search(number, text, re.MULTILINE)
        if match and match.group(1) != "999999":
            return int(match.group(1))
    return 1


def stage(state, recorded):
    """Put the job of a recorded command into the folder."""
    word = recorded["state"]
    if word == "down":
        control.set_settings(state, controller_down=True)
    control.add_jobs(state, 1, "success", user="bob:1006", name="other")  # a file to read
    kind = STAGES.get(word)
    options = dict(user=ALICE, name="job.sh", time_limit=None)
    if kind in ("array", "array_ended"):
        jobs = control.add_jobs(state, 6, "held" if kind == "array" else "success", **options)
        for task, job in enumerate(jobs):
            control.change(state, job, array_id=jobs[0], task_id=task + 1, array_size=6)
    elif kind:
        why = {"why": "error"} if word.startswith("Eqw") else {}
        (job,) = control.add_jobs(state, 1, kind, **options)
        control.change(state, job, **why)


def normal(text):
    """Times, ports and runs of blanks masked: a renamed host has moved the columns."""
    text = re.sub(r"\d\d/\d\d/\d{4} [\d:]{8}|\d{4}-\d\d-\d\dT[\d:]{8}", "TIME", text)
    text = text.replace("26444", "6444")
    return re.sub(r" +", " ", text)


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda one: one["case"].replace("/", "_"))
def test_same_answer_as_gridengine(make, recorded, tmp_path):
    """A command's stdout, stderr and return code are those of the real one."""
    state = make(first_job_id=max(job_of(recorded) - 1, 0))
    (tmp_path / "job.sh").write_text(BASH + "exit 0\n")
    stage(state, recorded)
    user = "root:0" if recorded["state"].endswith("_root") else ALICE
    done = control.run(state, *shlex.split(recorded["command"]), user=user, cwd=tmp_path)
    assert (normal(done.stdout), normal(done.stderr), done.returncode) == (
        normal(recorded["stdout"]), normal(recorded["stderr"]), recorded["rc"],
    )


def test_rejected_submission(make):
    """A refusal has Grid Engine's frame and return code 1."""
    state = make(reject="limit")
    answer = control.run(state, "qsub", "-b", "y", "true")
    assert answer.returncode == 1
    assert answer.stderr == (
        "Unable to run job: job rejected: Only 5 jobs are allowed per user (current job count: 5)\n"
        "Exiting.\n"
    )


def test_output_files_are_appended_to(make, tmp_path):
    """Without -o they are NAME.oN and NAME.eN; directives (#$) count; files are appended to."""
    state = make()
    (tmp_path / "named.o1").write_text("before\n")
    job = submit(state, BASH + "#$ -N named\necho after; echo err >&2\n", cwd=tmp_path)
    control.wait_for(state, job, "ended")
    assert (tmp_path / "named.o1").read_text() == "before\nafter\n"
    assert (tmp_path / "named.e1").read_text() == "err\n"


def test_injected_jobs_are_listed(make):
    """add_jobs puts in jobs without processes, which qstat and qacct show as any other."""
    state = make()
    jobs = control.add_jobs(state, 3, "running") + control.add_jobs(state, 2, "time_limit")
    views = qstat.parse_qstat(control.run(state, *commands.qstat_command("other")).stdout)
    assert [view.external_id for view in views] == [str(job) for job in jobs[:3]]
    assert all(view.walltime_s == 3600 for view in views)
    text = control.run(state, *commands.qacct_user_command("other")).stdout
    assert re.findall(r"^failed +(\d+)", text, re.MULTILINE) == ["37", "37"]
