"""LSF: states, termination reasons, commands, and the answers to our own questions."""

from __future__ import annotations

import json
from typing import Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_failure_reasons.drm import lsf
from pulsar_failure_reasons.drm.base import Ending, Phase
from pulsar_failure_reasons.drm.lsf.states import PHASES
from pulsar_failure_reasons.errors import (
    DrmUnreachableError,
    OutputParseError,
    SubmissionRefusedError,
)
from pulsar_failure_reasons.reason import Cause, Confidence

#: bjobs(1), section STAT; POST_DONE and POST_ERR are of "Post-execution states".
MANUAL_STATES = (
    "PEND PROV PSUSP RUN USUSP SSUSP DONE EXIT UNKWN WAIT ZOMBI FWD_PEND POST_DONE POST_ERR"
)

#: https://www.ibm.com/docs/SSWRJV_10.1.0/lsf_admin/termination_reasons_lsf.html, and the 7.3 and
#: 9.1 manuals for those that are gone: keyword, number, what the job's end is.
MANUAL_REASONS = [
    ("TERM_UNKNOWN", 0, Ending.BADLY, None),
    ("TERM_PREEMPT", 1, Ending.INFRASTRUCTURE, Cause.PREEMPTED),
    ("TERM_WINDOW", 2, Ending.INFRASTRUCTURE, Cause.PREEMPTED),
    ("TERM_LOAD", 3, Ending.INFRASTRUCTURE, Cause.PREEMPTED),
    ("TERM_OTHER", 4, Ending.INFRASTRUCTURE, Cause.PREEMPTED),
    ("TERM_RUNLIMIT", 5, Ending.LIMIT, Cause.WALLTIME),
    ("TERM_DEADLINE", 6, Ending.LIMIT, Cause.WALLTIME),
    ("TERM_PROCESSLIMIT", 7, Ending.LIMIT, Cause.UNKNOWN),
    ("TERM_FORCE_OWNER", 8, Ending.CANCELLED, Cause.CANCELLED),
    ("TERM_FORCE_ADMIN", 9, Ending.CANCELLED, Cause.CANCELLED),
    ("TERM_REQUEUE_OWNER", 10, Ending.CANCELLED, Cause.CANCELLED),
    ("TERM_REQUEUE_ADMIN", 11, Ending.CANCELLED, Cause.CANCELLED),
    ("TERM_CPULIMIT", 12, Ending.LIMIT, Cause.CPU_TIME),
    ("TERM_CHKPNT", 13, Ending.CANCELLED, Cause.CANCELLED),
    ("TERM_OWNER", 14, Ending.CANCELLED, Cause.CANCELLED),
    ("TERM_ADMIN", 15, Ending.CANCELLED, Cause.CANCELLED),
    ("TERM_MEMLIMIT", 16, Ending.LIMIT, Cause.MEMORY),
    ("TERM_EXTERNAL_SIGNAL", 17, Ending.BADLY, Cause.UNKNOWN),
    ("TERM_RMS", 18, Ending.INFRASTRUCTURE, Cause.NODE_FAILURE),
    ("TERM_ZOMBIE", 19, Ending.INFRASTRUCTURE, Cause.NODE_FAILURE),
    ("TERM_SWAP", 20, Ending.LIMIT, Cause.MEMORY),
    ("TERM_THREADLIMIT", 21, Ending.LIMIT, Cause.UNKNOWN),
    ("TERM_SLURM", 22, Ending.INFRASTRUCTURE, Cause.NODE_FAILURE),
    ("TERM_BUCKET_KILL", 23, Ending.CANCELLED, Cause.CANCELLED),
    ("TERM_CTRL_PID", 24, Ending.INFRASTRUCTURE, Cause.UNKNOWN),
    ("TERM_CWD_NOTEXIST", 25, Ending.BADLY, Cause.DISK),
    ("TERM_REMOVE_HUNG_JOB", 26, Ending.INFRASTRUCTURE, Cause.NODE_FAILURE),
    ("TERM_ORPHAN_SYSTEM", 27, Ending.CANCELLED, Cause.CANCELLED),
    ("TERM_PRE_EXEC_FAIL", 28, Ending.BADLY, Cause.LAUNCH_ERROR),
    ("TERM_DATA", 29, Ending.BADLY, Cause.STAGE_ERROR),
    ("TERM_MC_RECALL", 30, Ending.INFRASTRUCTURE, Cause.PREEMPTED),
    ("TERM_REQUEUE_RC", 31, Ending.INFRASTRUCTURE, Cause.PREEMPTED),
    ("TERM_CSM_ALLOC", 32, Ending.INFRASTRUCTURE, Cause.NODE_FAILURE),
    ("TERM_KUBE", 33, Ending.INFRASTRUCTURE, Cause.UNKNOWN),
    ("TERM_RC", 34, Ending.INFRASTRUCTURE, Cause.PREEMPTED),
]


def test_states_are_those_of_the_manual() -> None:
    """No state of the manual is missing, and each has a phase."""
    assert {state.name for state in lsf.LsfState} == {*MANUAL_STATES.split(), "UNKNOWN"}
    assert set(PHASES) == set(lsf.LsfState)


@pytest.mark.parametrize(
    "text, phase",
    [
        ("PEND", Phase.QUEUED), ("PSUSP", Phase.QUEUED), ("WAIT", Phase.QUEUED),
        ("PROV", Phase.QUEUED), ("RUN", Phase.RUNNING), ("USUSP", Phase.RUNNING),
        ("SSUSP", Phase.RUNNING), ("UNKWN", Phase.RUNNING), ("ZOMBI", Phase.ENDING),
        ("DONE", Phase.ENDED), ("EXIT", Phase.ENDED), ("EXIT\n", Phase.ENDED),
        ("<EXIT>", Phase.ENDED), ("POST_DONE", Phase.ENDING), ("POST_ERR", Phase.ENDING),
        ("SPLINED", Phase.UNKNOWN), ("", Phase.UNKNOWN), ("UNKNOWN", Phase.UNKNOWN),
    ],
)
def test_phase(text: str, phase: Phase) -> None:
    """A suspended job runs on, a lost host waits, an invented state ends nothing."""
    described = lsf.describe_state(text)
    assert described.phase is phase
    assert (described.end is not None) == (phase is Phase.ENDED)


@pytest.mark.parametrize("keyword, number, ending, cause", MANUAL_REASONS)
def test_termination_reason(
    keyword: str, number: int, ending: Ending, cause: Optional[Cause]
) -> None:
    """Every termination reason of the manual is known by its keyword."""
    row = lsf.find_termination(f"{keyword}: words of some version.")
    assert row is not None
    assert (row.keyword, row.number, row.ending, row.cause) == (keyword, number, ending, cause)


def test_termination_reasons_are_those_of_the_manual() -> None:
    """The table has no other rows."""
    assert set(lsf.TERMINATIONS) == {keyword for keyword, _, _, _ in MANUAL_REASONS}


@pytest.mark.parametrize(
    "text, keyword",
    [
        pytest.param("TERM_RUNLI\n        MIT: job killed", "TERM_RUNLIMIT", id="wrapped"),
        pytest.param("job killed after reaching LSF run time", "TERM_RUNLIMIT", id="words_cut"),
        pytest.param("Job killed after reaching LSF CPU usage limit", "TERM_CPULIMIT", id="cpu"),
        pytest.param("job killed after reaching LSF swap usage limit.", "TERM_SWAP", id="swap"),
        pytest.param("job killed by owner.", "TERM_OWNER", id="owner"),
        pytest.param("Job killed and requeued by owner", "TERM_REQUEUE_OWNER", id="requeue"),
        pytest.param(
            "Job killed by root or LSF administrator without time for cleanup",
            "TERM_FORCE_ADMIN", id="force_admin_words",
        ),
        pytest.param("job killed by root or LSF administrator", "TERM_ADMIN", id="admin_words"),
        pytest.param("TERM_SWAPLIMIT", "TERM_SWAP", id="manuals_own_example"),
        pytest.param("TERM_RC_RECLAIM: x", "TERM_REQUEUE_RC", id="older_name"),
        pytest.param("TERM_RC: x", "TERM_RC", id="prefix_of_another"),
        pytest.param("TERM_ADMIN Killed", "TERM_ADMIN", id="no_colon"),
        pytest.param("TERM_NOVEL: job killed by owner", "TERM_OWNER", id="keyword_not_known"),
        pytest.param("Exited with exit code 1", None, id="none"),
        pytest.param("-", None, id="dash"),
        pytest.param("LONGTERM_OWNERSHIP", None, id="inside_a_word"),
    ],
)
def test_find_termination(text: str, keyword: Optional[str]) -> None:
    """Wrapping, cuts and older words do not matter."""
    row = lsf.find_termination(text)
    assert (row.keyword if row else None) == keyword


@pytest.mark.parametrize(
    "code, extra, ending, cause, signal",
    [
        pytest.param(1, {}, Ending.BADLY, None, None, id="plain"),
        pytest.param(127, {}, Ending.BADLY, Cause.LAUNCH_ERROR, None, id="not_found"),
        pytest.param(137, {}, Ending.BADLY, None, 9, id="sigkill"),
        pytest.param(140, {}, Ending.BADLY, None, 12, id="sigusr2_without_numbers"),
        pytest.param(
            140, {"elapsed_s": 61, "walltime_s": 60}, Ending.LIMIT, Cause.WALLTIME, 12,
            id="sigusr2_at_the_limit",
        ),
        pytest.param(
            140, {"elapsed_s": 30, "walltime_s": 60}, Ending.BADLY, None, 12, id="below_limit"
        ),
        pytest.param(
            None, {"started": False}, Ending.CANCELLED, Cause.CANCELLED, None, id="never_started"
        ),
        pytest.param(None, {"started": True}, Ending.BADLY, None, None, id="started"),
        pytest.param(None, {}, Ending.BADLY, None, None, id="nothing_known"),
    ],
)
def test_exit_without_reason(
    code: Optional[int],
    extra: dict,
    ending: Ending,
    cause: Optional[Cause],
    signal: Optional[int],
) -> None:
    """Without a termination reason exit code and numbers speak, and never for success."""
    end = lsf.describe_state("EXIT", "", code, **extra).end
    assert end is not None
    assert (end.ending, end.cause, end.signal) == (ending, cause, signal)


def test_reason_stands_before_exit_code() -> None:
    """TERM_MEMLIMIT with exit code 1, and TERM_RUNLIMIT with the raw signal 12, are limits."""
    for reason, code, cause in (
        ("TERM_MEMLIMIT: x", 1, Cause.MEMORY), ("TERM_RUNLIMIT: x", 12, Cause.WALLTIME)
    ):
        end = lsf.describe_state("EXIT", reason, code).end
        assert end is not None and end.cause is cause


# ---- commands -------------------------------------------------------------------------------


def test_commands() -> None:
    """Each question is one argv list with every id once."""
    assert lsf.bjobs_command(["12", "12", "13[4]"]) == [
        "bjobs", "-a", "-noheader", "-o",
        "jobid jobindex stat exit_code submit_time start_time run_time runtimelimit memlimit "
        "max_mem exec_host exit_reason delimiter='^'",
        "12", "13[4]",
    ]
    assert lsf.bjobs_json_command(["12"])[:4] == ["bjobs", "-a", "-json", "-o"]
    assert lsf.bhist_command(["12", "13"]) == ["bhist", "-l", "-n", "2", "12", "13"]
    assert lsf.bacct_command(["12"]) == ["bacct", "-l", "12"]
    assert lsf.bkill_command(["12[1-3]", "9@east"]) == ["bkill", "12[1-3]", "9@east"]
    assert lsf.bsub_command(
        "/j/run.sh", job_name="n", stdout="/j/%o", stderr="/j/e", workdir="/j",
        native_specification=["-W", "60"],
    ) == [
        "bsub", "-J", "n", "-cwd", "/j", "-W", "60", "-oo", "/j/%%o", "-eo", "/j/e", "/j/run.sh"
    ]


def test_environment() -> None:
    """What changes LSF's answers is left out, what says where the cluster is stays."""
    kept = {"LSF_ENVDIR": "/e", "PATH": "/b"}
    loud = {"LSB_BJOBS_FORMAT": "x", "LANG": "de_DE", "LC_TIME": "de_DE", "LSB_DISPLAY_YEAR": "Y"}
    assert lsf.clean_environment({**kept, **loud}) == {**kept, "LC_ALL": "C"}


@pytest.mark.parametrize("bad", ["0", "", "-u", "12 13", "12;x", "12+1", "abc", "1_[2,...]"])
def test_bad_ids(bad: str) -> None:
    """0 would be all jobs of the user, and nothing but an id comes into a command line."""
    with pytest.raises(OutputParseError):
        lsf.bkill_command([bad])
    for command in (lsf.bjobs_command, lsf.bhist_command, lsf.bkill_command):
        with pytest.raises(ValueError):
            command([])


@pytest.mark.parametrize("separator", ["", "ab", " ", "1", "'", "-", "."])
def test_bad_separators(separator: str) -> None:
    """bjobs takes one character, which must be in no id, date or host."""
    with pytest.raises(ValueError):
        lsf.bjobs_command(["1"], separator)


@pytest.mark.parametrize(
    "text, external_id",
    [
        ("Job <123> is submitted to queue <normal>.\n", "123"),
        ("Job <123> is submitted to default queue <normal>.", "123"),
        ("Project <77> has 5 left\nJob <123> is submitted to queue <q>.\n", "123"),
        ("作业 <123> 已提交到队列 <normal>。", "123"),
    ],
)
def test_submission(text: str, external_id: str) -> None:
    """The id is in the last line of bsub's form."""
    assert lsf.parse_submission(text) == external_id


@pytest.mark.parametrize("text", ["", "123", "Job not submitted.", "Job <0> is submitted to q"])
def test_no_submission(text: str) -> None:
    """Nothing is guessed."""
    with pytest.raises(OutputParseError):
        lsf.parse_submission(text)


@pytest.mark.parametrize(
    "command, code, text, expected",
    [
        ("bjobs", 0, "", None),
        ("bjobs", 255, "Job <864220165> is not found", None),
        ("bkill", 255, "Job <12>: Job has already finished", None),
        ("bjobs", 255, "LSF is down. Please wait ...", DrmUnreachableError),
        ("bjobs", 255, "Cannot connect to LSF. Please wait ...", DrmUnreachableError),
        (
            "bjobs", 255, "batch system daemon not responding ... still trying\n"
            "Job <1> is not found", DrmUnreachableError,
        ),
        ("bjobs", 255, "", DrmUnreachableError),
        ("bjobs", 255, "ssh: connect to host x port 22: Connection refused", DrmUnreachableError),
        ("bjobs", -9, "", DrmUnreachableError),
        ("bsub", 255, "q: No such queue. Job not submitted.", SubmissionRefusedError),
        ("bsub", 255, "Request aborted by esub. Job not submitted.", SubmissionRefusedError),
        ("bsub", 255, "LSF is down. Please wait ...", DrmUnreachableError),
        ("bsub", 255, "", DrmUnreachableError),
    ],
)
def test_error_from_command(
    command: str, code: int, text: str, expected: Optional[type]
) -> None:
    """255 is both "no such job" and "LSF is down"; the words decide."""
    error = lsf.error_from_command([command], code, text)
    assert (type(error) if error else None) is expected


# ---- answers ----------------------------------------------------------------------------------

ROW = "{id}^{index}^{stat}^{code}^Nov 29 12:03^Nov 29 12:04^{run}^{limit}^4 G^512 Mbytes^n1^{why}"


def _row(job: str, stat: str, **fields: str) -> str:
    shown = {"index": "0", "code": "-", "run": "61 second(s)", "limit": "1.0/n1", "why": "-"}
    return ROW.format(id=job, stat=stat, **{**shown, **fields})


def test_bjobs() -> None:
    """Rows become views; noise before them is skipped, a missing job is told on stderr."""
    text = "\r\n".join(
        [
            "LSF is processing your request. Please wait ...",
            _row("12", "EXIT", code="140", why="TERM_RUNLIMIT: job killed after reaching LSF ru"),
            _row("13", "SSUSP"), _row("14", "DONE", index="3"), _row("15", "EXIT", code="1"),
        ]
    )
    runlimit, suspended, done, failed = lsf.parse_bjobs(text, stderr="Job <16> is not found")
    assert runlimit.end is not None and runlimit.end.cause is Cause.WALLTIME
    assert runlimit.confidence is Confidence.CONTROLLER
    assert (runlimit.elapsed_s, runlimit.walltime_s, runlimit.node) == (61, 60, "n1")
    assert (runlimit.memory_bytes, runlimit.used_memory_bytes) == (4 * 1024**3, 512 * 1024**2)
    assert (suspended.phase, suspended.end) == (Phase.RUNNING, None)
    assert (done.external_id, done.end and done.end.ending) == ("14[3]", Ending.WELL)
    assert failed.end is not None and failed.end.exit_code == 1


def test_bjobs_infers_the_run_limit() -> None:
    """Without a reason, 140 at the run limit is walltime, marked as inferred."""
    (view,) = lsf.parse_bjobs(_row("12", "EXIT", code="140"))
    assert view.end is not None and view.end.cause is Cause.WALLTIME
    assert view.confidence is Confidence.INFERRED


def test_bjobs_that_knows_no_job() -> None:
    """An empty answer counts only where LSF says that it knows none."""
    assert lsf.parse_bjobs("", stderr="Job <16> is not found\n") == []
    assert lsf.parse_bjobs("Job <16> is not found\n") == []


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("Welcome to node1\n", id="banner"),
        pytest.param("12^0^EXIT^1", id="cut"),
        pytest.param(_row("12", "RUN") + "\n" + _row("12", "DONE"), id="two_answers_for_one"),
    ],
)
def test_bjobs_unreadable(text: str) -> None:
    """What is no answer is never "no jobs"."""
    with pytest.raises(OutputParseError):
        lsf.parse_bjobs(text)


def test_bjobs_json() -> None:
    """JSON carries the name as well; a record with ERROR is a job that LSF has forgotten."""
    text = "Motd {not json\n".replace("{", "(") + json.dumps(
        {
            "COMMAND": "bjobs", "JOBS": 2, "RECORDS": [
                {"JOBID": "12", "STAT": "EXIT", "EXIT_CODE": "1", "JOB_NAME": "a\n13^0^DONE",
                 "EXIT_REASON": "TERM_OWNER: job killed by owner"},
                {"JOBID": "13", "ERROR": "Job <13> is not found"},
            ],
        }
    )
    (view,) = lsf.parse_bjobs_json(text)
    assert (view.external_id, view.job_name) == ("12", "a\n13^0^DONE")
    assert view.end is not None and view.end.cancelled_by == "owner"


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"RECORDS": 3}', '{"RECORDS": [{"JOBID": "1"}]}', "[" * 9999]
)
def test_bjobs_json_unreadable(text: str) -> None:
    """A cut or foreign JSON is no answer."""
    with pytest.raises(OutputParseError):
        lsf.parse_bjobs_json(text)


HISTORY = """\
Job <12>, Job Name <Completed <done>>, User <u>, Project <default>, Command <e
                     cho "Done successfully">
Tue Jul 24 10:26:43: Submitted from host <h>, to Queue <q>, CWD <$HOME>;
Tue Jul 24 10:26:48: Dispatched to <n1>;
Tue Jul 24 10:26:48: Starting (Pid 7);
{end}

Summary of time in seconds spent in various states by Tue Jul 24 10:26:53
  PEND     PSUSP    RUN      USUSP    SSUSP    UNKWN    TOTAL
  5        0        5        0        0        0        10
"""


@pytest.mark.parametrize(
    "end, phase, ending, cause",
    [
        pytest.param(
            "Tue Jul 24 10:26:53: Completed <exit>; TERM_MEML\n                     IMIT: job.",
            Phase.ENDED, Ending.LIMIT, Cause.MEMORY, id="wrapped_in_the_keyword",
        ),
        pytest.param(
            "Tue Jul 24 10:26:53: Done successfully. The CPU time used is 0.1 seconds;",
            Phase.ENDED, Ending.WELL, None, id="done",
        ),
        pytest.param(
            "Tue Jul 24 10:26:53: Exited with exit code 3. The CPU time used is 0.1 seconds;",
            Phase.ENDED, Ending.BADLY, None, id="exit_code",
        ),
        pytest.param(
            "Tue Jul 24 10:26:52: Signal <KILL> requested by user or administrator <eve>;\n"
            "Tue Jul 24 10:26:53: Exited by signal 9. The CPU time used is 0.1 seconds;",
            Phase.ENDED, Ending.CANCELLED, Cause.CANCELLED, id="killed_by_a_user",
        ),
        pytest.param(
            "Tue Jul 24 10:26:53: Exited with exit code 1;\n"
            "Tue Jul 24 10:26:54: Pending: Job has been requeued;\n"
            "Tue Jul 24 10:26:55: Starting (Pid 8);",
            Phase.RUNNING, None, None, id="runs_again",
        ),
        pytest.param("", Phase.RUNNING, None, None, id="no_end_yet"),
    ],
)
def test_bhist(
    end: str, phase: Phase, ending: Optional[Ending], cause: Optional[Cause]
) -> None:
    """Only dated lines count, the newest run decides, and a job's name forges nothing."""
    (view,) = lsf.parse_bhist(HISTORY.format(end=end))
    assert (view.external_id, view.phase) == ("12", phase)
    assert (view.end and view.end.ending) is ending
    assert (view.end and view.end.cause) is cause


def test_bhist_names_who_cancelled() -> None:
    """The history knows the user where bjobs only says owner or admin."""
    (view,) = lsf.parse_bhist(
        HISTORY.format(
            end="Tue Jul 24 10:26:52: Signal <KILL> requested by user or administrator <eve>;\n"
            "Tue Jul 24 10:26:53: Completed <exit>; TERM_ADMIN: job killed by root or LSF admi"
        )
    )
    assert view.end is not None and view.end.cancelled_by == "eve"


def test_bhist_that_knows_no_job() -> None:
    """"No matching job found" is an answer, an empty text is none."""
    assert lsf.parse_bhist("", "No matching job found\n") == []
    with pytest.raises(OutputParseError):
        lsf.parse_bhist("")


# ---- the report in the job's output -----------------------------------------------------------

REPORT = """\
Sender: LSF System <lsf@n1>
Subject: Job {id}: <name> in cluster <c> {how}

Job <name> was submitted from host <h> by user <u> in cluster <c>.
Your job looked like:

------------------------------------------------------------
# LSBATCH: User input
echo 'Successfully completed.'
------------------------------------------------------------

{said}

Resource usage summary:

    CPU time :                                   1.00 sec.
    Max Memory :                                 10240 MB

The output (if any) {where}

"""
ABOVE, FOLLOWS = "is above this job summary.", "follows:"


def _report(said: str, where: str, job: str = "12", how: str = "Exited") -> str:
    return REPORT.format(id=job, how=how, said=said, where=where)


MEM = "TERM_MEMLIMIT: job killed after reaching LSF memory usage limit.\nExited with exit code 1."
RUN = "TERM_RUNLIMIT: job killed after reaching LSF run time limit.\nExited with exit code 140."


@pytest.mark.parametrize(
    "text, cause",
    [
        pytest.param("out\n" + _report(MEM, ABOVE), Cause.MEMORY, id="after_the_output"),
        pytest.param(_report(RUN, FOLLOWS) + "out\n", Cause.WALLTIME, id="before_the_output"),
        pytest.param(
            _report(RUN, ABOVE) + "PS:\n\nRead file </e> for stderr output of this job.\n",
            Cause.WALLTIME, id="with_afterword",
        ),
        pytest.param(
            _report(MEM, ABOVE) + "\nout\n" + _report(RUN, ABOVE), Cause.WALLTIME,
            id="forged_before_the_real_one",
        ),
        pytest.param(
            _report(RUN, FOLLOWS) + "out\n" + _report(MEM, ABOVE), Cause.WALLTIME,
            id="forged_in_the_output_that_follows",
        ),
        pytest.param(
            _report(MEM, ABOVE) + "out\n" + _report(RUN, ABOVE) + "more of the tool", None,
            id="several_and_none_is_the_last_word",
        ),
        pytest.param(_report(MEM, ABOVE, job="99"), None, id="another_jobs"),
        pytest.param(
            _report("Successfully completed.", ABOVE, how="Done"), None, id="ended_well"
        ),
        pytest.param(_report("Exited with exit code 3.", ABOVE), None, id="tools_own_code"),
        pytest.param("TERM_MEMLIMIT, said the tool, killing its child\n", None, id="no_report"),
        pytest.param("", None, id="empty"),
    ],
)
def test_report(text: str, cause: Optional[Cause]) -> None:
    """LSF's own report is found by its place; what a tool prints like it is not."""
    finding = lsf.classify_report(text, "12")
    assert (finding.cause if finding else None) is cause


@pytest.mark.parametrize(
    "wanted, found, counts",
    [("12", "12[3]", True), ("12[3]", "12[3]", True), ("12[4]", "12[3]", False),
     ("12[3]", "12", False), ("12@east", "12", True), ("1", "12", False)],
)
def test_report_of_the_job(wanted: str, found: str, counts: bool) -> None:
    """An array's element has its own report, which counts for the array as well."""
    finding = lsf.classify_report("out\n" + _report(MEM, ABOVE, job=found), wanted)
    assert (finding is not None) is counts


def test_script_in_the_report_is_no_verdict() -> None:
    """The report quotes the job's script above LSF's words; only the last ones count."""
    captured = lsf.read_captured(_report(MEM, ABOVE), "stdout-report", "12")
    assert captured.cause is Cause.MEMORY


@given(st.text())
def test_parsers_raise_only_their_own_error(text: str) -> None:
    """Whatever comes in, it is a view or OutputParseError; classifiers never raise."""
    for parse in (lsf.parse_bjobs, lsf.parse_bjobs_json, lsf.parse_bhist, lsf.parse_submission):
        try:
            parse(text)
        except OutputParseError:
            pass
    lsf.classify_report(text, "12")
    assert lsf.describe_state(text, text).end is None or text.strip("<> \t\n").upper() in (
        "DONE", "EXIT", "EXITED"
    )
