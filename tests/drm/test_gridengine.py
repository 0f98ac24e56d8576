"""Grid Engine: states, failed codes, limits, commands, and the answers of qstat and qacct."""

from __future__ import annotations

from pathlib import Path
from typing import Dict, List, Optional, Tuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_failure_reasons.drm import gridengine as ge
from pulsar_failure_reasons.drm.base import Ending, JobView, Phase
from pulsar_failure_reasons.drm.gridengine.limits import Usage
from pulsar_failure_reasons.errors import (
    DrmUnreachableError,
    OutputParseError,
    SubmissionRefusedError,
)
from pulsar_failure_reasons.reason import Cause, Confidence
from tests.drm.wild_texts import DATA


def capture(name: str) -> str:
    """Return a captured answer."""
    path = Path(DATA / "gridengine" / "captures" / name)
    return path.read_text(encoding="utf-8", errors="replace")


#: sge_status(5), every word of the table "Job state", and qstat(1)'s letters N and P of Univa.
MANUAL_STATES: Dict[Phase, str] = {
    Phase.QUEUED: "qw Rq hqw hRwq hRqw",
    Phase.RUNNING: "r hr t Rr Rt s ts S tS T tT Rs Rts RS RtS RT RtT N P",
    Phase.STUCK: "Eqw Ehqw EhRqw",
    Phase.ENDING: "dr dt dRr dRt ds dS dT dRs dRS dRT z",
    Phase.UNKNOWN: "x running 0 rr! unknown",
}


@pytest.mark.parametrize(
    "text, phase",
    [(word, phase) for phase, words in MANUAL_STATES.items() for word in words.split()],
)
def test_phase(text: str, phase: Phase) -> None:
    """Every word of the manual has its phase; a word with other letters ends nothing."""
    assert ge.phase_of(text) is phase


def test_letters() -> None:
    """A state is its letters, in whatever order."""
    letters = ge.StateLetter
    assert ge.canonical_state("Rr") == ge.canonical_state("rR") == {
        letters.RESTARTED, letters.RUNNING
    }
    assert ge.canonical_state("rx") is None


def test_deletion_shows_in_the_state_only() -> None:
    """qacct never tells it, so a caller keeps it from the state."""
    assert ge.is_being_deleted("dr") and ge.is_being_deleted("dRT")
    assert not ge.is_being_deleted("r") and not ge.is_being_deleted("deleted")


N, D, LAUNCH = Cause.NODE_FAILURE, Cause.DISK, Cause.LAUNCH_ERROR
#: sge_status(5), table "Failed" (2, 5 and 22 are in the source only): code, text, cause.
MANUAL_FAILED: List[Tuple[int, str, Optional[Cause]]] = [
    (0, "", None), (1, "assumedly before job", N), (2, "on executing shepherd", N),
    (3, "before writing config", N), (4, "before writing pid", N),
    (5, "on reading config file", N), (6, "setting processor set", N), (7, "before prolog", N),
    (8, "in prolog", N), (9, "before pestart", N), (10, "in pestart", N), (11, "before job", N),
    (12, "before pestop", N), (13, "in pestop", N), (14, "before epilog", N),
    (15, "in epilog", N), (16, "releasing processor set", N), (17, "through signal", None),
    (18, "shepherd returned error", N), (19, "before writing exit_status", N),
    (20, "found unexpected error file", N), (21, "in recognizing job", N),
    (22, "removed manually", Cause.CANCELLED), (24, "migrating", Cause.PREEMPTED),
    (25, "rescheduling", Cause.PREEMPTED), (26, "opening input/output file", D),
    (27, "searching requested shell", LAUNCH), (28, "changing into working directory", D),
    (29, "AFS setup", D), (30, "application error returned", None),
    (31, "accessing sgepasswd file", LAUNCH),
    (32, "entry is missing in sgepasswd file", LAUNCH), (33, "wrong password", LAUNCH),
    (34, "communicating with Grid Engine Helper Service", N),
    (35, "before job in Grid Engine Helper Service", N), (36, "checking configured daemons", N),
    (37, "qmaster enforced h_rt, h_cpu, or h_vmem limit", None),
    (38, "adding supplementary group", N), (100, "assumedly after job", None),
]


@pytest.mark.parametrize("code, text, cause", MANUAL_FAILED)
def test_failed_code(code: int, text: str, cause: Optional[Cause]) -> None:
    """Every code of the manual has its text and cause, and is found by either."""
    row = ge.FAILED_CODES[code]
    assert (row.text, row.cause) == (text, cause)
    assert ge.failed.parse_failed(f"{code}   : {text}") == code
    if text:
        assert ge.failed.parse_failed(text) == code


def test_failed_codes_are_those_of_the_manual() -> None:
    """The table has no other rows."""
    assert set(ge.FAILED_CODES) == {code for code, _, _ in MANUAL_FAILED}


def _usage(requests: Optional[str] = None, **used: object) -> Usage:
    asked = None if requests is None else ge.limits.parse_requests(requests)
    return Usage(requests=asked, **used)  # type: ignore[arg-type]


GB = 1024**3


@pytest.mark.parametrize(
    "failed, status, usage, ending, cause, inferred",
    [
        pytest.param(0, 0, _usage(), Ending.WELL, None, False, id="success"),
        pytest.param(0, 1, _usage(), Ending.BADLY, None, False, id="exit_1"),
        pytest.param(0, 127, _usage(), Ending.BADLY, LAUNCH, False, id="not_found"),
        pytest.param(None, 0, _usage(), Ending.BADLY, Cause.UNKNOWN, True, id="code_not_shown"),
        pytest.param(26, 0, _usage(), Ending.BADLY, D, False, id="output_with_exit_0"),
        pytest.param(19, 0, _usage(), Ending.INFRASTRUCTURE, N, False, id="crash_with_exit_0"),
        pytest.param(100, 0, _usage(), Ending.BADLY, Cause.UNKNOWN, False, id="after_job_0"),
        pytest.param(55, 0, _usage(), Ending.BADLY, Cause.UNKNOWN, False, id="unknown_code"),
        pytest.param(
            37, 137, _usage("-l h_rt=5", elapsed_s=6), Ending.LIMIT, Cause.WALLTIME, False,
            id="h_rt",
        ),
        pytest.param(
            37, 0, _usage("-l h_rt=5", elapsed_s=6), Ending.LIMIT, Cause.WALLTIME, False,
            id="h_rt_trapped",
        ),
        pytest.param(
            37, 137, _usage("-l h_rt=86400,h_vmem=25G", elapsed_s=86401, max_vmem_bytes=GB),
            Ending.LIMIT, Cause.WALLTIME, False, id="h_rt_beside_h_vmem",
        ),
        pytest.param(
            37, 137, _usage("-l h_rt=86400,h_vmem=1G", elapsed_s=60, max_vmem_bytes=GB + 1),
            Ending.LIMIT, Cause.MEMORY, False, id="h_vmem_beside_h_rt",
        ),
        pytest.param(
            37, 137, _usage("-l h_vmem=1G", max_vmem_bytes=0), Ending.LIMIT, Cause.MEMORY, False,
            id="only_h_vmem",
        ),
        pytest.param(37, 137, _usage(), Ending.LIMIT, Cause.WALLTIME, True, id="nothing_known"),
        pytest.param(
            100, 137, _usage("-l h_cpu=4", cpu_s=3.958), Ending.LIMIT, Cause.CPU_TIME, True,
            id="h_cpu_a_little_below",
        ),
        pytest.param(
            100, 137, _usage("-l h_vmem=1G", max_vmem_bytes=2 * GB), Ending.LIMIT, Cause.MEMORY,
            True, id="memory",
        ),
        pytest.param(
            100, 137, _usage("-l h_vmem=1G", max_vmem_bytes=2 * GB, slots=4), Ending.BADLY, None,
            False, id="memory_is_per_slot",
        ),
        pytest.param(100, 137, _usage("NONE"), Ending.BADLY, None, False, id="qdel_or_anybody"),
        pytest.param(
            100, 138, _usage("-l h_rt=30,s_rt=4", elapsed_s=5), Ending.LIMIT, Cause.WALLTIME,
            True, id="s_rt",
        ),
        pytest.param(100, 138, _usage("NONE"), Ending.BADLY, None, False, id="own_usr1"),
        pytest.param(
            100, 152, _usage("-l s_vmem=200M"), Ending.LIMIT, Cause.MEMORY, True, id="s_vmem"
        ),
        pytest.param(
            100, 152, _usage("-l s_cpu=5"), Ending.LIMIT, Cause.CPU_TIME, True, id="s_cpu"
        ),
        pytest.param(
            100, 152, _usage("-l s_cpu=5,s_vmem=1G", cpu_s=1, max_vmem_bytes=2 * GB), Ending.LIMIT,
            Cause.MEMORY, True, id="xcpu_with_both_and_memory_used",
        ),
        pytest.param(
            100, 152, _usage("-l s_cpu=5,s_vmem=1G", cpu_s=6, max_vmem_bytes=GB // 2),
            Ending.LIMIT, Cause.CPU_TIME, True, id="xcpu_with_both_and_time_used",
        ),
        pytest.param(100, 153, _usage(), Ending.LIMIT, D, False, id="h_fsize"),
        pytest.param(0, 153, _usage(), Ending.LIMIT, D, False, id="h_fsize_in_a_child"),
        pytest.param(100, 139, _usage(), Ending.BADLY, None, False, id="segfault"),
        pytest.param(30, None, _usage(), Ending.BADLY, None, False, id="exit_100"),
    ],
)
def test_how_it_ended(
    failed: Optional[int],
    status: Optional[int],
    usage: Usage,
    ending: Ending,
    cause: Optional[Cause],
    inferred: bool,
) -> None:
    """The failed code first, then the signal with used against requested."""
    end, was_inferred = ge.how_it_ended(failed, status, usage)
    assert (end.ending, end.cause, was_inferred) == (ending, cause, inferred)


def test_univa_names_who_deleted() -> None:
    """Only Univa's records tell a deletion; a limit that was enforced stands before it."""
    end, _ = ge.how_it_ended(100, 137, _usage(), "eve")
    assert (end.cause, end.cancelled_by) == (Cause.CANCELLED, "eve")
    end, _ = ge.how_it_ended(37, 137, _usage("-l h_rt=5", elapsed_s=6), "root")
    assert end.cause is Cause.WALLTIME


@pytest.mark.parametrize(
    "text, cause",
    [
        ('11/29/2026 12:03:00 [1:2]: error: can\'t open output file "/no/out": No such file', D),
        ('can\'t stat() "/root/x.out" as stdout_path: Permission denied', D),
        ("error: can't chdir to /no/such/wd: No such file or directory", D),
        ("execvlp(/var/x, \"/var/x\") failed: No such file or directory", LAUNCH),
        ('unable to find shell "/no/such/shell"', LAUNCH),
        ("can't get password entry for user \"eve\". Either the user does not exist", LAUNCH),
        ("exit_status of prolog = 1", N),
        ("exit_status of job start = 100", Cause.TOOL_ERROR),
        ("something new", Cause.HELD),
    ],
)
def test_error_reason(text: str, cause: Cause) -> None:
    """What stands in the error reason of a job in Eqw."""
    assert ge.classify_error_reason(text)[0] is cause


# ---- captured answers -------------------------------------------------------------------------

W, B, I, L = Ending.WELL, Ending.BADLY, Ending.INFRASTRUCTURE, Ending.LIMIT
#: (external id, ending, cause, exit status) of each record, typed from sge_status(5).
CAPTURED = {
    "array": [
        ("46.1", B, None, 1), ("46.2", W, None, 0), ("46.3", B, None, 137), ("46.4", W, None, 0),
        ("46.6", W, None, 0),
    ],
    "bad_interpreter": [("32", B, LAUNCH, 0)],
    "command_not_found": [("34", B, LAUNCH, 127)],
    "exit1": [("3", B, None, 1)],
    "exit100": [("5", B, None, 100)],
    "h_cpu": [("19", L, Cause.CPU_TIME, 137)],
    "h_fsize": [("22", L, D, 153)],
    "h_rt": [("10", L, Cause.WALLTIME, 137)],
    "hold_jid": [("43", W, None, 0)],
    "node_crash": [("72", I, N, 0)],
    # Looks like success: only the file return_code tells.
    "qdel_f_running_root": [("31", W, None, 0)],
    "qdel_running": [("24", B, None, 137)],
    "queue_suspend": [("45", W, None, 0)],
    "s_rt": [("11", L, Cause.WALLTIME, 138)],
    "s_vmem_multi": [("18", L, Cause.MEMORY, 152)],
    "segv": [("8", B, None, 139)],
    "success": [("2", W, None, 0)],
    "unwritable_output": [("36", B, D, 0)],
}


@pytest.mark.parametrize("case", sorted(CAPTURED))
def test_capture_qacct(case: str) -> None:
    """Every captured record is read right, with either line end."""
    for text in (capture(f"{case}.qacct"), capture(f"{case}.qacct").replace("\n", "\r\n")):
        found = [
            (v.external_id, v.end and v.end.ending, v.end and v.end.cause,
             v.end and v.end.exit_code)
            for v in ge.parse_qacct(text)
        ]
        assert found == CAPTURED[case]


def test_qacct_amounts() -> None:
    """Seconds, bytes, host, name of a real record."""
    (view,) = ge.parse_qacct(capture("h_rt.qacct"))
    assert (view.elapsed_s, view.walltime_s, view.node, view.job_name) == (6, 5, "node1", "job.sh")
    assert view.submitted_at == "Sun Nov 29 11:58:35 2026"
    assert view.confidence is Confidence.ACCOUNTING
    (view,) = ge.parse_qacct(capture("s_vmem_multi.qacct"))
    assert view.memory_bytes == 200 * 1024**2


BAR = "=" * 62 + "\n"


def _record(job: int, failed: str, status: str, more: str = "") -> str:
    return f"{BAR}jobnumber    {job}\ntaskid       undefined\nfailed       {failed}\n" \
           f"exit_status  {status}\n{more}"


SUMMARY = (
    "OWNER     WALLCLOCK         UTIME         STIME           CPU             MEMORY         IO\n"
    + "=" * 118 + "\n"
)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_records_of_a_user(end: str) -> None:
    """``qacct -o USER -d 2 -j`` adds a summary, which alone says that there is no record."""
    views = ge.parse_qacct(capture("user.qacct").replace("\n", end))
    assert [(v.external_id, v.end and v.end.exit_code) for v in views] == [
        ("3", 3), ("4", 137), ("1", 137), ("2.2", 137)
    ]
    assert ge.parse_qacct(SUMMARY.replace("\n", end)) == []


def test_last_start_counts() -> None:
    """Of several records of one job the last is its end, and "rescheduling" is none."""
    again = _record(6, "25  : rescheduling", "99")
    (view,) = ge.parse_qacct(again + _record(6, "0", "3"))
    assert view.end is not None and view.end.exit_code == 3
    (view,) = ge.parse_qacct(_record(6, "0", "3") + _record(6, "0", "0") + again)
    assert view.end is not None and view.end.ending is Ending.WELL
    assert ge.parse_qacct(again) == []


def test_forged_field_is_not_read() -> None:
    """What a user could write with a newline stands behind; the first field counts."""
    forged = "submit_cmd   x\nfailed 0\nexit_status 0\n"
    (view,) = ge.parse_qacct(_record(7, "100 : assumedly after job", "137", forged))
    assert view.end is not None and view.end.exit_code == 137


def test_wallclock_from_dates() -> None:
    """Where ru_wallclock is not shown, start and end tell, in both forms of dates."""
    for start, end in (
        ("Wed Mar 23 13:33:31 2022", "Thu Mar 24 13:33:32 2022"),
        ("03/23/2022 13:33:31.247", "03/24/2022 13:33:32.100"),
    ):
        text = _record(7, "37  : qmaster enforced h_rt, h_cpu, or h_vmem limit", "137",
                       f"start_time   {start}\nend_time     {end}\ncategory     -l h_rt=86400\n")
        (view,) = ge.parse_qacct(text)
        assert (view.elapsed_s, view.walltime_s) == (86401, 86400)
        assert view.end is not None and view.end.cause is Cause.WALLTIME


@pytest.mark.parametrize("text", ["", "Welcome\n", BAR + "jobnumber 7\nfailed 0\n", BAR + "a b\n"])
def test_qacct_unreadable(text: str) -> None:
    """An empty text is no answer, nor is a record without its end."""
    with pytest.raises(OutputParseError):
        ge.parse_qacct(text)


@pytest.mark.parametrize(
    "stderr",
    ["error: job id 999999 not found", "no jobs running since startup",
     "error: Job-array tasks 46.99-99:1 not found"],
)
def test_qacct_that_knows_no_job(stderr: str) -> None:
    """qacct's own word makes an empty text an answer."""
    assert ge.parse_qacct("", stderr) == []


@pytest.mark.parametrize(
    "case, expected",
    [
        ("array", [("46.1", "r"), ("46.2", "r"), ("46.3", "r"), ("46.4", "r"), ("46.6", "qw")]),
        ("bad_interpreter", [("32", "Eqw")]), ("h_rt", [("10", "r")]),
        ("hold_jid", [("42", "r"), ("43", "hqw")]), ("qdel_running", [("24", "dr")]),
        ("queue_suspend", [("45", "S")]),
    ],
)
def test_capture_qstat(case: str, expected: List[Tuple[str, str]]) -> None:
    """The list of a user's jobs, an array's tasks each by itself."""
    views = ge.parse_qstat(capture(f"{case}.qstat.xml"))
    assert [(v.external_id, v.job_state) for v in views] == expected


LIST = (
    "<?xml version='1.0'?>\n<job_info><queue_info><job_list state=\"running\"><JB_job_number>9"
    "</JB_job_number><JB_name>a\x01b</JB_name><state>r</state><slots>2</slots>"
    '<hard_request name="h_rt" resource_contribution="0.0">3600</hard_request>'
    '<hard_request name="h_vmem" resource_contribution="0.0">2G</hard_request>'
    "<tasks>3-9:2</tasks></job_list></queue_info><job_info></job_info></job_info>"
)


def test_qstat_with_requests() -> None:
    """With -r the limits are there; bytes that XML forbids cost nothing."""
    (view,) = ge.parse_qstat("banner\n" + LIST)
    assert (view.external_id, view.walltime_s, view.memory_bytes) == ("9.3-9:2", 3600, 4 * GB)
    assert view.job_name == "a?b"


def test_qstat_with_requests_of_a_real_cell() -> None:
    """``qstat -xml -r -u USER`` of 8.1.9."""
    views = ge.parse_qstat(capture("user.qstat.xml"))
    assert [(v.external_id, v.job_state) for v in views] == [
        ("2.1", "r"), ("2.3", "r"), ("5", "Eqw")
    ]


def test_qstat_without_jobs() -> None:
    """The frame alone is an answer: there is no job."""
    empty = "<job_info><queue_info></queue_info><job_info></job_info></job_info>"
    assert ge.parse_qstat(empty) == []


@pytest.mark.parametrize(
    "text",
    ["", "<job_info>", LIST[:-20], "<job_info><!ENTITY a 'b'></job_info>", "<unknown_jobs/>",
     LIST.replace("<state>r</state>", ""), LIST.replace(">9<", ">x<")],
)
def test_qstat_unreadable(text: str) -> None:
    """Cut XML, entities, a job without state or id are no answer."""
    with pytest.raises(OutputParseError):
        ge.parse_qstat(text)


@pytest.mark.parametrize(
    "case, cause",
    [("bad_interpreter", LAUNCH), ("exit100", Cause.TOOL_ERROR), ("unwritable_output", D)],
)
def test_error_reasons(case: str, cause: Cause) -> None:
    """A stuck job's view says what for, once the details are known."""
    views = ge.parse_qstat(capture(f"{case}.qstat.xml"))
    assert [v.stuck_for for v in views] == [Cause.HELD]
    reasons = ge.parse_error_reasons(capture(f"{case}.details.xml"))
    (view,) = ge.with_error_reasons(views, reasons)
    assert (view.phase, view.stuck_for) == (Phase.STUCK, cause)
    assert view.stuck_detail and view.evidence[-1].field == "error reason"


def test_no_error_reasons() -> None:
    """Jobs without an error, and unknown ones (exit code 0), have none."""
    assert ge.parse_error_reasons(capture("array.details.xml")) == {}
    unknown = "<?xml?>\n<unknown_jobs >\n<ST_name>9</ST_name></unknown_jobs>"
    assert ge.parse_error_reasons(unknown) == {}
    with pytest.raises(OutputParseError):
        ge.parse_error_reasons("")


# ---- commands ---------------------------------------------------------------------------------


def test_commands() -> None:
    """One list for all jobs of a user; ids in Grid Engine's forms."""
    assert ge.qstat_command("eve") == ["qstat", "-xml", "-r", "-u", "eve"]
    assert ge.qstat_details_command(["46.2", "46", "7"]) == ["qstat", "-xml", "-j", "46,7"]
    assert ge.qacct_command("46.2") == ["qacct", "-j", "46", "-t", "2-2:1"]
    assert ge.qacct_command("46") == ["qacct", "-j", "46"]
    assert ge.qacct_user_command("eve") == ["qacct", "-o", "eve", "-d", "2", "-j"]
    assert ge.qdel_command(["7", "46.2", "46.1-6:1", "7"]) == ["qdel", "7", "46.2", "46.1-6:1"]
    assert ge.qsub_command(
        "/j/x", job_name="n", stdout="/j/o", stderr="/j/e", native_specification=["-l", "h_rt=9"]
    ) == ["qsub", "-terse", "-N", "n", "-l", "h_rt=9", "-o", ":/j/o", "-e", ":/j/e", "/j/x"]


def test_environment() -> None:
    """What changes Grid Engine's answers is left out, what says where the cell is stays."""
    kept = {"SGE_ROOT": "/s", "SGE_CELL": "c", "PATH": "/b"}
    assert ge.clean_environment({**kept, "SGE_LONG_QNAMES": "9", "LANG": "de_DE"}) == {
        **kept, "LC_ALL": "C"
    }


@pytest.mark.parametrize("bad", ["", "-f", "7;x", "7+2", "7.server", "*", "0", "abc"])
def test_bad_ids(bad: str) -> None:
    """Nothing but an id comes into a command line (qdel takes patterns), and no user's list."""
    with pytest.raises(OutputParseError):
        ge.qdel_command([bad])
    for user in ("", "*", "-x", "a b"):
        with pytest.raises(ValueError):
            ge.qstat_command(user)
    with pytest.raises(ValueError):
        ge.qdel_command([])


@pytest.mark.parametrize(
    "text, external_id",
    [
        ('Your job 10 ("job.sh") has been submitted\n', "10"),
        ('Your job-array 46.1-6:1 ("job.sh") has been submitted\r\n', "46"),
        ("57.1-3:1\n", "57"), ("Queue 7 is full\n12\n", "12"),
    ],
)
def test_submission(text: str, external_id: str) -> None:
    """The last line of qsub's form is the id; an array is found by its number."""
    assert ge.parse_submission(text) == external_id


def test_no_submission() -> None:
    """Nothing is guessed."""
    for text in ("", "Unable to run job: unknown resource", 'Your job 0 ("x") has been submitted'):
        with pytest.raises(OutputParseError):
            ge.parse_submission(text)


@pytest.mark.parametrize(
    "command, code, text, expected",
    [
        ("qstat", 0, "", None),
        ("qstat", 1, "Following jobs do not exist: \n10", None),
        ("qacct", 1, "error: job id 999999 not found", None),
        ("qdel", 1, 'denied: job "24" does not exist', None),
        (
            "qstat", 1, "error: commlib error: got select error (Connection refused)\nerror: "
            'unable to send message to qmaster using port 26444 on host "node1": got send error',
            DrmUnreachableError,
        ),
        ("qstat", 124, "", DrmUnreachableError),
        ("qsub", 1, 'Unable to run job: unknown resource "nosuch"\nExiting.',
         SubmissionRefusedError),
        ("qsub", 1, "Unable to run job: error: no suitable queues\nExiting.",
         SubmissionRefusedError),
        (
            "qsub", 1, "Unable to run job: unable to send message to qmaster using port 26444 on "
            'host "node1": got send error\nExiting.', DrmUnreachableError,
        ),
    ],
)
def test_error_from_command(
    command: str, code: int, text: str, expected: Optional[type]
) -> None:
    """Unknown jobs are answers, a qmaster that is away is an outage."""
    error = ge.error_from_command([command], code, text)
    assert (type(error) if error else None) is expected


def test_stderr_is_never_grid_engines() -> None:
    """It writes nothing there, so a tool that prints its words proves nothing."""
    assert ge.classify_stderr("job 48.1 exceeded hard wallclock time", "48") is None


@given(st.text())
def test_parsers_raise_only_their_own_error(text: str) -> None:
    """Whatever comes in, it is a view or OutputParseError."""
    for parse in (ge.parse_qstat, ge.parse_qacct, ge.parse_error_reasons, ge.parse_submission):
        try:
            parse(text)
        except OutputParseError:
            pass
    assert ge.phase_of(text) is not Phase.ENDED


@given(
    st.none() | st.integers(0, 200), st.none() | st.integers(0, 300),
    st.none() | st.dictionaries(st.sampled_from(["h_rt", "h_vmem", "s_cpu"]), st.text()),
)
def test_only_zero_and_zero_is_success(
    failed: Optional[int], status: Optional[int], requests: Optional[Dict[str, str]]
) -> None:
    """Nothing unknown becomes success."""
    end, _ = ge.how_it_ended(failed, status, Usage(requests, elapsed_s=9, max_vmem_bytes=9))
    assert (end.ending is Ending.WELL) == (failed == 0 and status == 0)


def test_views_of_one_array_are_one_job() -> None:
    """An array is found by its number, whichever tasks are listed."""
    views: List[JobView] = ge.parse_qstat(capture("array.qstat.xml"))
    from pulsar_failure_reasons.drm.external_ids import alive_ids

    assert alive_ids("46", views) == ["46.1", "46.2", "46.3", "46.4", "46.6"]
    assert alive_ids("46.2", views) == ["46.2"]
