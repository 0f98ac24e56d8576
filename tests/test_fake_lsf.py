"""The simulated LSF: its answers against outputs that people published and IBM's manual."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "fakes"))

from fake_drm import control  # noqa: E402
from pulsar_failure_reasons.drm.base import Ending, Phase  # noqa: E402
from pulsar_failure_reasons.drm.lsf import bhist, bjobs, commands, report  # noqa: E402
from pulsar_failure_reasons.reason import Cause  # noqa: E402

ALICE = "alice:1005"
GROW = "exec %s -S -c 'x = bytearray(90000000); import time; time.sleep(300)'" % sys.executable
# Seconds that no run of these tests comes to, also on the simulated clock.
NEVER = 10**7
ROW = "id stat exit_code cpu_used max_mem exec_host exit_reason delimiter='|'"

# case -> (bsub options, command, STAT, exit_code, exit_reason, the report's two lines)
CASES = {
    "success": ([], "echo hi", "DONE", "-", "-", ["Successfully completed."]),
    "exit42": ([], "exit 42", "EXIT", "42", "-", ["Exited with exit code 42."]),
    "not_found": ([], "dfsddf", "EXIT", "127", "-", ["Exited with exit code 127."]),
    "sigkill": ([], "kill -9 $$", "EXIT", "137", "-", ["Exited with signal termination: 9."]),
    "runlimit": (
        ["-W", "1"], "exec sleep 300", "EXIT", "140",
        "TERM_RUNLIMIT: job killed after reaching LSF run time limit",
        ["TERM_RUNLIMIT: job killed after reaching LSF run time limit.",
         "Exited with signal termination: 12."],
    ),
    "runlimit_trapped": (
        ["-W", "1"], "trap 'exit 3' USR2; touch trapped; while :; do sleep 0.05; done", "EXIT", "3",
        "TERM_RUNLIMIT: job killed after reaching LSF run time limit",
        ["TERM_RUNLIMIT: job killed after reaching LSF run time limit.",
         "Exited with exit code 3."],
    ),
    "cpulimit": (
        ["-c", "0.1"], "while :; do :; done", "EXIT", "152",
        "TERM_CPULIMIT: job killed after reaching LSF CPU usage limit",
        ["TERM_CPULIMIT: job killed after reaching LSF CPU usage limit.",
         "Exited with signal termination: 24."],
    ),
    "memlimit": (
        ["-M", "51200"], GROW, "EXIT", "137",
        "TERM_MEMLIMIT: job killed after reaching LSF memory usage limit",
        ["TERM_MEMLIMIT: job killed after reaching LSF memory usage limit.",
         "Exited with signal termination: 9."],
    ),
    "bkill": (
        [], "exec sleep 300", "EXIT", "130", "TERM_OWNER: job killed by owner",
        ["TERM_OWNER: job killed by owner.", "Exited with signal termination: 2."],
    ),
    "bkill_by_root": (
        [], "exec sleep 300", "EXIT", "130",
        "TERM_ADMIN: job killed by root or LSF administrator",
        ["TERM_ADMIN: job killed by root or LSF administrator.",
         "Exited with signal termination: 2."],
    ),
    "bkill_forced": (
        [], "exec sleep 300", "EXIT", "137",
        "TERM_FORCE_OWNER: job killed by owner without time for cleanup",
        ["TERM_FORCE_OWNER: job killed by owner without time for cleanup.",
         "Exited with signal termination: 9."],
    ),
    "preempted": (
        ["-Jd", "fake:preempt=0.1"], "exec sleep 300", "EXIT", "130",
        "TERM_PREEMPT: job killed after preemption",
        ["TERM_PREEMPT: job killed after preemption.", "Exited with signal termination: 2."],
    ),
}
KILLS = {
    "bkill": (["bkill"], ALICE),
    "bkill_by_root": (["bkill"], "root:0"),
    "bkill_forced": (["bkill", "-r"], ALICE),
}
CAUSES = {
    "runlimit": Cause.WALLTIME, "cpulimit": Cause.CPU_TIME, "memlimit": Cause.MEMORY,
    "bkill": Cause.CANCELLED, "bkill_by_root": Cause.CANCELLED, "preempted": Cause.PREEMPTED,
}

with open(os.path.join(HERE, "data", "lsf", "corpus.jsonl")) as _file:
    CORPUS = {one["id"]: one for one in map(json.loads, _file)}


@pytest.fixture
def make(tmp_path):
    """A function that makes a state folder; its jobs are ended after the test."""
    made = []

    def call(**values):
        values = dict(dict(time_scale=60, kill_wait=60, requeue_delay=5), **values)
        made.append(control.create(tmp_path / ("state%d" % len(made)), "lsf", **values))
        return made[-1]

    yield call
    for path in made:
        control.stop_all(path)
        assert not os.path.exists(os.path.join(path, "runner-errors.log"))


def submit(state, command, *options, cwd=None, user=ALICE, stdin=""):
    """Submit; returns the job's number."""
    argv = ["bsub", *options] + ([command] if command else [])
    done = control.run(state, *argv, user=user, cwd=cwd, stdin=stdin)
    assert done.returncode == 0, done.stderr
    return int(commands.parse_submission(done.stdout))


def views(state, *jobs):
    """What our own command and parser tell of jobs."""
    answer = control.run(state, *commands.bjobs_command([str(job) for job in jobs]), user=ALICE)
    return bjobs.parse_bjobs(answer.stdout, stderr=answer.stderr)


# ---- ends of jobs --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """All CASES, played at once: (state folder, {case: number}, folder of their reports)."""
    state = control.create(
        tmp_path_factory.mktemp("state"), "lsf", kill_wait=60, min_job_age=NEVER
    )
    work, found = str(tmp_path_factory.mktemp("work")), {}
    try:
        for case, (options, command, *_) in CASES.items():
            found[case] = submit(state, command, "-o", case + ".out", *options, cwd=work)
        for case, (argv, user) in KILLS.items():
            control.wait_for(state, found[case], "running")
            done = control.run(state, *argv, found[case], user=user)
            assert done.stdout == "Job <%d> is being terminated\n" % found[case]
        trapped, job = os.path.join(work, "trapped"), found["runlimit_trapped"]
        control.wait_until(state, job, lambda record: os.path.exists(trapped))
        control.set_settings(state, time_scale=60)  # not before: its minute would be a second
        for job in found.values():
            control.wait_for(state, job, "ended")
        yield state, found, work
    finally:
        control.stop_all(state)


@pytest.mark.parametrize("case", CASES)
def test_fields_of_an_ended_job(ended, case):
    """State, exit code and reason, in rows like those that people publish."""
    state, found, _ = ended
    text = control.run(state, "bjobs", "-noheader", "-o", ROW, found[case], user=ALICE).stdout
    shown = text.rstrip("\n").split("|")
    wanted = CASES[case]
    assert (shown[0], shown[1], shown[2], shown[6]) == (
        str(found[case]), wanted[2], wanted[3], wanted[4],
    )
    assert re.fullmatch(r"\d+\.\d second\(s\)", shown[3])


def test_row_as_in_the_corpus(ended):
    """The same line, but for its numbers, as one that LSF 10.1 printed."""
    state, found, _ = ended
    columns = "id stat exit_code cpu_used time_left swap exec_host exit_reason delimiter='|'"
    text = control.run(state, "bjobs", "-noheader", "-o", columns, found["runlimit"], user=ALICE)
    theirs = CORPUS["lsf-013"]["text"].strip().split("|")
    ours = text.stdout.strip().split("|")
    assert len(ours) == len(theirs)
    for number in (1, 4, 5, 7):
        assert ours[number] == theirs[number]


@pytest.mark.parametrize("case", CASES)
def test_report_in_the_output(ended, case):
    """What ended the job stands in the report that LSF writes before its output."""
    _, found, work = ended
    with open(os.path.join(work, case + ".out")) as handle:
        text = handle.read()
    command, lines = CASES[case][1], CASES[case][5]
    assert text.startswith("Sender: LSF System <lsfadmin@node1>\nSubject: Job %d: <" % found[case])
    assert "# LSBATCH: User input\n%s\n%s\n\n%s\n\nResource usage summary:\n" % (
        command, "-" * 60, "\n".join(lines)
    ) in text
    assert "\n\nThe output (if any) follows:\n\n" in text
    finding = report.classify_report(text, str(found[case]))
    assert (finding.cause if finding else None) == CAUSES.get(case) or case not in CAUSES


def test_report_has_the_lines_of_the_corpus(ended):
    """The usage summary has the labels, in columns and order, of one that LSF 10.1 wrote."""
    _, _, work = ended
    with open(os.path.join(work, "memlimit.out")) as handle:
        text = handle.read()

    def labels(told):
        return re.findall(r"^ {4}[A-Z][\w ]+ : +(?=\S)", told, re.MULTILINE)

    theirs = labels(CORPUS["lsf-008"]["text"])
    assert labels(text)[: len(theirs)] == theirs
    assert text.splitlines()[1].endswith("in cluster <cluster1> Exited")


@pytest.mark.parametrize("case", CASES)
def test_causes_read_by_the_product(ended, case):
    """Our command's rows, its JSON, and bhist once bjobs has forgotten the job, agree."""
    state, found, _ = ended
    job = str(found[case])
    (row,) = views(state, job)
    text = control.run(state, *commands.bjobs_json_command([job]), user=ALICE).stdout
    (record,) = bjobs.parse_bjobs_json(text)
    answer = control.run(state, *commands.bhist_command([job]), user=ALICE)
    (past,) = bhist.parse_bhist(answer.stdout, answer.stderr)
    for view in (row, record, past):
        assert view.external_id == job and view.phase is Phase.ENDED
        if case in CAUSES:
            assert view.end.cause is CAUSES[case]
    assert (row.end.ending is Ending.WELL) == (case == "success")


def test_history_is_wrapped_inside_words(ended):
    """bhist -l and bacct -l cut lines after 79 columns and indent the rest by 21."""
    state, found, _ = ended
    text = control.run(state, "bhist", "-l", found["runlimit"], user=ALICE).stdout
    assert max(map(len, text.splitlines())) == 79
    assert re.search(r"\n {21}\S", text)
    whole = re.sub(r"\n {21}", "", text)
    assert "Completed <exit>; TERM_RUNLIMIT: job killed after reaching LSF run time limit;" in whole
    text = control.run(state, "bacct", "-l", found["bkill"], user=ALICE).stdout
    # as lsf-023 of the corpus has it
    assert "Completed <exit>; TERM_OWNER: job killed by owner." in re.sub(r"\n {21}", "", text)
    assert "     CPU_T     WAIT     TURNAROUND   STATUS     HOG_FACTOR    MEM    SWAP\n" in text


# ---- a job's life --------------------------------------------------------------------------------


def test_forgotten_job_is_in_bhist(make):
    """When CLEAN_PERIOD is over, bjobs says not found and ends with 255; bhist still knows."""
    state = make()
    job = submit(state, "exit 3")
    control.wait_for(state, job, "ended")
    control.forget(state, job)
    answer = control.run(state, "bjobs", job, user=ALICE)
    assert (answer.stdout, answer.stderr, answer.returncode) == (
        "", "Job <1> is not found\n", 255,
    )
    answer = control.run(state, *commands.bhist_command([str(job)]), user=ALICE)
    (view,) = bhist.parse_bhist(answer.stdout)
    assert view.end.exit_code == 3
    answer = control.run(state, "bhist", "-l", 99, user=ALICE)
    assert (answer.stderr, answer.returncode) == ("No matching job found\n", 255)


def test_known_and_unknown_ids_together(make):
    """The rows of the known ones are there, beside a complaint and 255; JSON has an ERROR."""
    state = make()
    job = submit(state, "exec sleep 300")
    control.wait_for(state, job, "running")
    answer = control.run(state, "bjobs", "-noheader", "-o", "id stat", 99, job, user=ALICE)
    assert (answer.stdout, answer.stderr, answer.returncode) == (
        "1       RUN  \n", "Job <99> is not found\n", 255,
    )
    answer = control.run(state, "bjobs", "-json", "-o", "jobid", 99, user=ALICE)
    assert json.loads(answer.stdout)["RECORDS"] == [
        {"JOBID": "99", "ERROR": "Job <99> is not found"}
    ]


def test_states_of_a_job_that_is_held_and_suspended(make, tmp_path):
    """PSUSP, RUN, USUSP and SSUSP; a stopped job's processes do stand still."""
    state = make()
    job = submit(state, "touch ready; while :; do sleep 0.02; done", "-H", cwd=tmp_path)

    def stat():
        (view,) = views(state, job)
        return view.job_state

    assert stat() == "PSUSP"
    assert control.run(state, "bresume", job, user=ALICE).stdout == "Job <1> is being resumed\n"
    control.wait_for(state, job, "running")
    assert stat() == "RUN"
    assert control.run(state, "bstop", job, user=ALICE).stdout == "Job <1> is being stopped\n"
    assert stat() == "USUSP"
    pid = control.job(state, job)["session"][0]

    def letter(record):
        with open("/proc/%d/stat" % pid) as handle:
            return handle.read().rpartition(") ")[2][0]

    control.wait_until(state, job, lambda record: letter(record) == "T")
    control.run(state, "bresume", job, user=ALICE)
    control.wait_until(state, job, lambda record: letter(record) in "SR")
    control.event(state, job, "suspend")
    assert stat() == "SSUSP"
    control.show_as(state, job, "UNKWN")
    assert stat() == "UNKWN"


def test_suspended_time_does_not_count(make):
    """A job that stands still does not reach its run limit meanwhile, nor at once afterwards."""
    state = make(time_scale=1)
    job = submit(state, "exec sleep 300", "-W", "5")
    control.wait_for(state, job, "running")
    control.run(state, "bstop", job, user=ALICE)
    start = control.job(state, job)["start"]
    control.set_settings(state, time_scale=1000)
    control.wait_until(
        state, job, lambda record: control.Store(state).clock.now() > start + 400
    )
    assert control.job(state, job)["state"] == "running"
    control.run(state, "bresume", job, user=ALICE)
    record = control.wait_for(state, job, "ended")
    assert record["why"] == "time_limit"
    assert record["end"] - record["start"] - record["paused_s"] >= 300


def test_requeued_job_runs_again(make, tmp_path):
    """brequeue puts a running job back to PEND; it starts anew, and bhist tells both runs."""
    state = make(requeue_delay=0)
    command = "if [ -e second ]; then exit 4; fi; touch second; exec sleep 300"
    job = submit(state, command, cwd=tmp_path)
    control.wait_until(state, job, lambda record: (tmp_path / "second").exists())
    assert control.run(state, "brequeue", job, user=ALICE).stdout == "Job <1> is being requeued\n"
    control.wait_for(state, job, "ended")
    (view,) = views(state, job)
    assert view.end.exit_code == 4
    text = control.run(state, "bhist", "-l", job, user=ALICE).stdout
    assert text.count("Starting (Pid") == 2 and "Requeued job is waiting" in text


def test_node_failure(make):
    """A rerunnable job (-r) goes back to PEND, any other ends as a zombie."""
    state = make(requeue_delay=NEVER)
    again, ends = submit(state, "sleep 300", "-r"), submit(state, "sleep 300")
    for job in (again, ends):
        control.wait_for(state, job, "running")
        control.event(state, job, "node_failure")
    control.wait_for(state, ends, "ended")
    first, second = views(state, again, ends)
    assert (first.job_state, second.job_state) == ("PEND", "EXIT")
    assert second.end.cause is Cause.NODE_FAILURE


def test_array(make):
    """One id with an index for each element; bkill takes one element or all."""
    state = make()
    done = control.run(
        state, "bsub", "-J", "many[1-3]", "[ $LSB_JOBINDEX = 1 ] && exit 1; sleep 300", user=ALICE
    )
    assert done.stdout == "Job <1> is submitted to default queue <normal>.\n"
    control.wait_for(state, 1, "ended")
    for job in (2, 3):
        control.wait_for(state, job, "running")
    assert [(view.external_id, view.job_state) for view in views(state, 1)] == [
        ("1[1]", "EXIT"), ("1[2]", "RUN"), ("1[3]", "RUN"),
    ]
    control.run(state, "bkill", "1[2]", user=ALICE)
    control.wait_for(state, 2, "ended")
    assert [view.job_state for view in views(state, "1[2]", "1[3]")] == ["EXIT", "RUN"]
    control.run(state, "bkill", "1", user=ALICE)
    control.wait_for(state, 3, "ended")


def test_killed_while_pending(make):
    """A job killed before its start has no exit code, no host, and a reason."""
    state = make(start_delay=NEVER)
    job = submit(state, "true")
    assert control.run(state, "bkill", job, user=ALICE).returncode == 0
    text = control.run(state, "bjobs", "-noheader", "-o", ROW, job, user=ALICE).stdout
    assert text == "1|EXIT|-|-|-|-|TERM_OWNER: job killed by owner\n"
    answer = control.run(state, "bkill", job, user=ALICE)
    assert (answer.stderr, answer.returncode) == ("Job <1>: Job has already finished\n", 255)
    answer = control.run(state, "bkill", 99, user=ALICE)
    assert (answer.stderr, answer.returncode) == ("Job <99>: No matching job found\n", 255)


def test_missing_folder(make):
    """A job whose folder is not there ends before its command starts."""
    state = make()
    job = submit(state, "true", "-cwd", "/no/such/dir")
    control.wait_for(state, job, "ended")
    (view,) = views(state, job)
    assert view.end.cause is Cause.DISK
    assert any(one.value.startswith("TERM_CWD_NOTEXIST: ") for one in view.evidence)


# ---- commands ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "reject, text",
    [
        ("limit", "User's pending job slot limit reached. Job not submitted.\n"),
        ("esub", "Request aborted by esub. Job not submitted.\n"),
        ("Bad thing.", "Bad thing. Job not submitted.\n"),
    ],
)
def test_rejected_submission(make, reject, text):
    """A refusal is on stderr, ends in "Job not submitted", and makes no job."""
    state = make(reject=reject)
    answer = control.run(state, "bsub", "true")
    assert (answer.stdout, answer.stderr, answer.returncode) == ("", text, 255)
    assert control.jobs(state) == []


def test_lsf_down(make):
    """All commands say so and end with 255 (the real ones wait for ever)."""
    state = make(controller_down=True)
    for argv in (["bsub", "true"], ["bjobs"], ["bhist", "1"], ["bacct", "-l", "1"], ["bkill", "1"]):
        answer = control.run(state, *argv)
        assert (answer.stdout, answer.stderr, answer.returncode) == (
            "", "LSF is down. Please wait ...\n", 255,
        )


def test_direct_output(make, tmp_path):
    """With LSB_STDOUT_DIRECT the output comes first and the report is appended."""
    state = make(output_direct=True)
    job = submit(state, "echo hi; exit 7", "-o", "out", cwd=tmp_path)
    control.wait_for(state, job, "ended")
    text = (tmp_path / "out").read_text()
    assert text.startswith("hi\n\n" + "-" * 60 + "\nSender: LSF System")
    assert "\nThe output (if any) is above this job summary.\n" in text
    assert report.find_report(text, "1").exit_code == 7


def test_chosen_columns(make):
    """Widths, alignment, cut values and one-character delimiters as in bjobs(1)."""
    state = make()
    control.add_jobs(state, 1, "running", user=ALICE, name="a_long_job_name", account="p")
    columns = "jobid:-6 stat:4 job_name:8"
    answer = control.run(state, "bjobs", "-o", columns + " delimiter='^'", user=ALICE)
    assert answer.stdout == "JOBID^STAT^JOB_NAME\n1^RUN^a_long_job_name\n"
    answer = control.run(state, "bjobs", "-o", columns, user=ALICE)
    assert answer.stdout == " JOBID STAT JOB_NAME\n     1 RUN  *ob_name\n"
    answer = control.run(state, "bjobs", "-o", "nosuch", user=ALICE)
    assert answer.returncode == 255
    answer = control.run(state, "bjobs", user="bob:1006")
    assert (answer.stdout, answer.stderr) == ("", "No unfinished job found\n")


def test_commands_of_stock_pulsar(make, tmp_path):
    """Pulsar's own job plugin submits, asks and deletes through a shell, and reads the answers."""
    lsf = pytest.importorskip("pulsar.managers.util.cli.job.lsf")
    interface = lsf.LSF(memory="512")
    state = make(memory_unit="MB")
    headers = interface.job_script_kwargs(str(tmp_path / "o"), str(tmp_path / "e"), "named")
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh\n%s\necho $LSB_JOBNAME; sleep 300\n" % headers["headers"])
    env = dict(os.environ, **control.environment(state))

    def shell(command):
        done = subprocess.run(["/bin/sh", "-c", command], env=env, timeout=120, cwd=str(tmp_path),
                              stdout=subprocess.PIPE, universal_newlines=True, check=False)
        return done.stdout

    job = shell(interface.submit(str(script))).strip()
    assert job == "1"
    control.wait_for(state, job, "running")
    text = shell(interface.get_single_status(job)).strip()
    assert interface.parse_single_status(text, job) == "running"
    assert interface.parse_status(shell(interface.get_status()), [job]) == {"1": "running"}
    shell(interface.delete(job))
    control.wait_for(state, job, "ended")
    assert interface.parse_status(shell(interface.get_status()), [job]) == {"1": "failed"}
    why = shell(interface.get_failure_reason(job))
    assert interface.parse_failure_reason(why, job) is None
    assert (tmp_path / "o").read_text().startswith("Sender: LSF System")


def test_stock_reads_memory_limit(make):
    """bjobs -l holds the word by which stock Pulsar knows a job that was over its memory."""
    lsf = pytest.importorskip("pulsar.managers.util.cli.job.lsf")
    state = make()
    (job,) = control.add_jobs(state, 1, "memory")
    text = control.run(state, "bjobs", "-l", job).stdout
    assert lsf.LSF().parse_failure_reason(text, str(job)) == "memory_limit_reached"


def test_many_injected_jobs(make):
    """add_jobs puts in jobs without processes, in any state, which one command lists."""
    state = make()
    jobs = control.add_jobs(state, 100, "running", user=ALICE)
    jobs += control.add_jobs(state, 100, "time_limit", user=ALICE)
    found = views(state, *jobs)
    assert len(found) == 200
    assert {view.end.cause for view in found if view.end} == {Cause.WALLTIME}
    assert len(control.commands(state, "bjobs")) == 1
