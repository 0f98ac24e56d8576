"""OpenPBS and Torque: flavours, states, Exit_status, commands, and the answers of qstat."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Dict, List, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_failure_reasons.drm import pbs
from pulsar_failure_reasons.drm.base import Ending, JobView, Phase
from pulsar_failure_reasons.drm.pbs import Flavour
from pulsar_failure_reasons.drm.pbs.exit_status import OPENPBS, TORQUE
from pulsar_failure_reasons.drm.pbs.states import PHASES
from pulsar_failure_reasons.errors import (
    AccountingDisabledError,
    DrmUnreachableError,
    OutputParseError,
    SubmissionRefusedError,
)
from pulsar_failure_reasons.reason import Cause, Confidence
from tests.drm.wild_texts import DATA

CAPTURES = DATA / "pbs" / "captures"


def capture(name: str) -> str:
    """Return a captured answer."""
    return Path(CAPTURES / name).read_text(encoding="utf-8", errors="replace")


# ---- flavours and states ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, flavour",
    [
        ("pbs_version = 23.06.06\n", Flavour.OPENPBS),
        ("pbs_version = 18.1.4", Flavour.OPENPBS),
        ("pbs_version = PBSPro_13.1.1.162303", Flavour.OPENPBS),
        ("Version: 6.1.2\nCommit: 661e092552de43a785c15d39a3634a541d86898e\n", Flavour.TORQUE),
        ("version: 4.2.10", Flavour.TORQUE),
        ("    pbs_version = 2.5.13", Flavour.TORQUE),
        ("", Flavour.UNKNOWN),
        ("pbs_version = 10.0", Flavour.UNKNOWN),
        ("qstat: command not found", Flavour.UNKNOWN),
    ],
)
def test_flavour(text: str, flavour: Flavour) -> None:
    """The version says who answers."""
    assert pbs.flavour_from_version(text) is flavour


def test_states_are_those_of_the_manuals() -> None:
    """qstat(1B) of OpenPBS lists B E F H M Q R S T U W X, Torque's C E H Q R T W S."""
    letters = {state.value for state in pbs.PbsState} - {"?"}
    assert letters == set("BEFHMQRSTUWX") | set("CEHQRTWS")
    assert set(PHASES) == set(pbs.PbsState)


@pytest.mark.parametrize(
    "letter, phase",
    [
        ("B", Phase.RUNNING), ("C", Phase.ENDED), ("E", Phase.ENDING), ("F", Phase.ENDED),
        ("H", Phase.QUEUED), ("M", Phase.ENDING), ("Q", Phase.QUEUED), ("R", Phase.RUNNING),
        ("S", Phase.RUNNING), ("T", Phase.QUEUED), ("U", Phase.RUNNING), ("W", Phase.QUEUED),
        ("X", Phase.ENDED), ("Z", Phase.UNKNOWN), ("", Phase.UNKNOWN), ("f", Phase.UNKNOWN),
        ("?", Phase.UNKNOWN),
    ],
)
def test_phase(letter: str, phase: Phase) -> None:
    """Each letter's phase; a letter we do not know ends nothing."""
    view = _view(job_state=letter)
    assert view.phase is phase
    assert (view.end is not None) == (phase is Phase.ENDED)


def _view(flavour: Flavour = Flavour.OPENPBS, **attributes: str) -> JobView:
    return pbs.view_of(pbs.PbsJob("1.s", attributes), flavour)


# ---- Exit_status ------------------------------------------------------------------------------

L, I, C, B = Ending.LIMIT, Ending.INFRASTRUCTURE, Ending.CANCELLED, Ending.BADLY
#: src/include/job.h of OpenPBS 23.06: number, name behind JOB_EXEC_, end, cause.
OPENPBS_HEADER = [
    (-1, "FAIL1", B, Cause.LAUNCH_ERROR), (-2, "FAIL2", B, Cause.LAUNCH_ERROR),
    (-3, "RETRY", I, Cause.NODE_FAILURE), (-4, "INITABT", I, Cause.NODE_FAILURE),
    (-5, "INITRST", I, Cause.NODE_FAILURE), (-6, "INITRMG", I, Cause.NODE_FAILURE),
    (-7, "BADRESRT", B, Cause.LAUNCH_ERROR), (-10, "FAILUID", B, Cause.LAUNCH_ERROR),
    (-11, "RERUN", I, Cause.PREEMPTED), (-12, "CHKP", I, Cause.PREEMPTED),
    (-13, "FAIL_PASSWORD", B, Cause.LAUNCH_ERROR),
    (-14, "RERUN_SIS_FAIL", I, Cause.NODE_FAILURE), (-15, "QUERST", I, Cause.PREEMPTED),
    (-16, "FAILHOOK_RERUN", I, Cause.NODE_FAILURE),
    (-17, "FAILHOOK_DELETE", B, Cause.LAUNCH_ERROR), (-18, "HOOK_RERUN", I, Cause.PREEMPTED),
    (-19, "HOOK_DELETE", C, Cause.CANCELLED), (-20, "RERUN_MS_FAIL", I, Cause.NODE_FAILURE),
    (-21, "FAIL_SECURITY", B, Cause.LAUNCH_ERROR), (-22, "HOOKERROR", B, Cause.LAUNCH_ERROR),
    (-23, "FAIL_KRB5", B, Cause.LAUNCH_ERROR), (-24, "KILL_NCPUS_BURST", L, Cause.UNKNOWN),
    (-25, "KILL_NCPUS_SUM", L, Cause.UNKNOWN), (-26, "KILL_VMEM", L, Cause.MEMORY),
    (-27, "KILL_MEM", L, Cause.MEMORY), (-28, "KILL_CPUT", L, Cause.CPU_TIME),
    (-29, "KILL_WALLTIME", L, Cause.WALLTIME), (-30, "JOINJOB", I, Cause.NODE_FAILURE),
]
#: src/include/pbs_job.h of Torque 6.
TORQUE_HEADER = [
    *[row for row in OPENPBS_HEADER if row[0] >= -7],
    (-8, "CMDFAIL", B, Cause.LAUNCH_ERROR), (-9, "STDOUTFAIL", B, Cause.DISK),
    (-10, "OVERLIMIT_MEM", L, Cause.MEMORY), (-11, "OVERLIMIT_WT", L, Cause.WALLTIME),
    (-12, "OVERLIMIT_CPUT", L, Cause.CPU_TIME), (-13, "RETRY_CGROUP", I, Cause.NODE_FAILURE),
    (-14, "RETRY_PROLOGUE", I, Cause.NODE_FAILURE),
]


@pytest.mark.parametrize(
    "flavour, header, table",
    [(Flavour.OPENPBS, OPENPBS_HEADER, OPENPBS), (Flavour.TORQUE, TORQUE_HEADER, TORQUE)],
)
def test_exit_codes_are_those_of_the_headers(
    flavour: Flavour, header: List[tuple], table: Dict[int, pbs.exit_status.ExitCode]
) -> None:
    """Each flavour has its own numbers, all of them."""
    assert set(table) == {number for number, _, _, _ in header}
    for number, name, ending, cause in header:
        row = pbs.exit_code_of(number, flavour)
        assert row is not None
        assert (row.name, row.ending, row.cause) == (f"JOB_EXEC_{name}", ending, cause)


@pytest.mark.parametrize(
    "number, flavour, cause",
    [
        (-29, Flavour.OPENPBS, Cause.WALLTIME), (-29, Flavour.TORQUE, Cause.UNKNOWN),
        (-11, Flavour.TORQUE, Cause.WALLTIME), (-11, Flavour.UNKNOWN, Cause.UNKNOWN),
        (-10, Flavour.TORQUE, Cause.MEMORY), (-10, Flavour.OPENPBS, Cause.LAUNCH_ERROR),
        (-10, Flavour.UNKNOWN, Cause.UNKNOWN), (-29, Flavour.UNKNOWN, Cause.WALLTIME),
        (-2, Flavour.UNKNOWN, Cause.LAUNCH_ERROR), (-99, Flavour.OPENPBS, Cause.UNKNOWN),
    ],
)
def test_flavour_decides_numbers(number: int, flavour: Flavour, cause: Cause) -> None:
    """The same number means other things; without a flavour only what both agree on counts."""
    end = _view(flavour, job_state="F", exit_status=str(number)).end
    assert end is not None and end.cause is cause


DELETED, FAILED = {"substate": "91"}, {"substate": "93"}
RAN = {"stime": "x", "exec_host": "n1/0"}
USED = {"resource_list.walltime": "00:00:30", "resources_used.walltime": "00:00:49"}
BELOW = {"resource_list.walltime": "08:00:00", "resources_used.walltime": "06:12:22"}
MEMORY = {"resource_list.mem": "100kb", "resources_used.mem": "120kb"}


@pytest.mark.parametrize(
    "attributes, ending, cause, inferred",
    [
        pytest.param({"exit_status": "0"}, Ending.WELL, None, False, id="zero"),
        pytest.param({"exit_status": "1"}, B, None, False, id="one"),
        pytest.param({"exit_status": "127"}, B, Cause.LAUNCH_ERROR, False, id="not_found"),
        pytest.param(
            {"exit_status": "0", "stageout_status": "0"}, B, Cause.DISK, False, id="no_stageout"
        ),
        pytest.param(
            {"exit_status": "271", "comment": "Job run and terminated by eve@h"}, C,
            Cause.CANCELLED, False, id="deleted_by",
        ),
        pytest.param(
            {"exit_status": "271", "comment": "Job run and exceeded resource walltime"}, L,
            Cause.WALLTIME, False, id="comment_before_number",
        ),
        pytest.param(
            {"exit_status": "-27", "comment": "x and exceeded resource mem"}, L, Cause.MEMORY,
            False, id="mem",
        ),
        pytest.param({"exit_status": "271", **USED}, L, Cause.WALLTIME, True, id="over_walltime"),
        pytest.param(
            {"exit_status": "271", "resource_list.walltime": "30", "resources_used.walltime": "30"},
            L, Cause.WALLTIME, True, id="just_at_walltime",
        ),
        pytest.param(
            {"exit_status": "265", "resource_list.vmem": "9kb", "resources_used.vmem": "9kb"},
            L, Cause.MEMORY, True, id="just_at_vmem",
        ),
        pytest.param(
            {"exit_status": "265", "resource_list.vmem": "9kb", "resources_used.vmem": "8kb"},
            B, None, False, id="below_vmem",
        ),
        pytest.param({"exit_status": "265", **MEMORY}, L, Cause.MEMORY, True, id="over_memory"),
        pytest.param({"exit_status": "137", **MEMORY}, L, Cause.MEMORY, True, id="shell_memory"),
        pytest.param({"exit_status": "1", **USED}, B, None, False, id="own_code_over_walltime"),
        pytest.param({"exit_status": "271", **BELOW}, C, Cause.CANCELLED, True, id="sigterm"),
        pytest.param(
            {"exit_status": "271", "comment": "x and failed", **FAILED}, B, None, False,
            id="somebodys_sigterm",
        ),
        pytest.param({"exit_status": "265", **DELETED}, C, Cause.CANCELLED, False, id="forced"),
        pytest.param({"exit_status": "265", **FAILED}, B, None, False, id="somebodys_sigkill"),
        pytest.param({"exit_status": "139"}, B, None, False, id="segfault"),
        pytest.param({**DELETED}, C, Cause.CANCELLED, False, id="deleted_in_the_queue"),
        pytest.param({"substate": "92"}, C, Cause.CANCELLED, True, id="dependency_failed"),
        pytest.param({"substate": "92", **RAN}, B, None, False, id="ran_and_nothing_known"),
        pytest.param(
            {"exit_status": "-3", "comment": "job held, too many failed attempts to run and "
             "terminated"}, I, Cause.NODE_FAILURE, False, id="never_started",
        ),
        pytest.param({"exit_status": "abc", **RAN}, B, None, False, id="no_number"),
        pytest.param({"exit_status": "", **RAN}, B, None, False, id="empty_number"),
    ],
)
def test_how_it_ended(
    attributes: Dict[str, str], ending: Ending, cause: Optional[Cause], inferred: bool
) -> None:
    """PBS's own words and numbers first, then used against requested, never success by guess."""
    view = _view(job_state="F", **attributes)
    assert view.end is not None
    assert (view.end.ending, view.end.cause) == (ending, cause)
    assert view.confidence is (Confidence.INFERRED if inferred else Confidence.CONTROLLER)


def test_signals() -> None:
    """256 + n is the shell's own signal, 128 + n what the shell tells."""
    for number, signal in ((271, 15), (265, 9), (137, 9), (139, 11), (128, None), (44, None)):
        end = _view(job_state="F", exit_status=str(number), **RAN).end
        assert end is not None and end.signal == signal


def test_exit_status_of_a_living_job_counts_for_nothing() -> None:
    """PBS shows that of an earlier start also on queued, held and running jobs."""
    for state in "QHRSWTEB":
        assert _view(job_state=state, exit_status="-29").end is None


def test_held_by_pbs_is_stuck() -> None:
    """A person's hold waits; one for too many failed starts needs somebody."""
    stuck = _view(job_state="H", comment="job held, too many failed attempts to run")
    assert (stuck.phase, stuck.stuck_for) == (Phase.STUCK, Cause.NODE_FAILURE)
    assert _view(job_state="H", hold_types="u").phase is Phase.QUEUED


# ---- captured answers -------------------------------------------------------------------------

#: The first job of each capture: ending, cause, exit code, signal, cancelled_by.
CAPTURED = {
    "after_begin": (C, Cause.CANCELLED, None, None, None),
    "array_mixed": (B, None, 1, None, None),
    "array_qdel_all": (C, Cause.CANCELLED, 1, None, None),
    "bad_interpreter": (B, Cause.LAUNCH_ERROR, 127, None, None),
    "cput": (L, Cause.CPU_TIME, 137, 9, None),
    "dep_afterok": (C, Cause.CANCELLED, None, None, None),
    "exit1": (B, None, 1, None, None),
    "held_deleted": (C, Cause.CANCELLED, None, None, None),
    "home_missing": (B, Cause.LAUNCH_ERROR, None, None, None),
    "hook_launch_reject": (B, Cause.LAUNCH_ERROR, None, None, None),
    "json_odd": (B, None, 1, None, None),
    "mem_enforced": (L, Cause.MEMORY, None, None, None),
    "mom_restart_r_n": (I, Cause.NODE_FAILURE, None, None, None),
    "ncpus_sum": (L, Cause.UNKNOWN, None, None, None),
    "prologue_exit2": (I, Cause.NODE_FAILURE, None, None, None),
    "qdel_queued": (C, Cause.CANCELLED, None, None, None),
    "qdel_running": (C, Cause.CANCELLED, None, 15, "alice"),
    "qdel_running_trap": (C, Cause.CANCELLED, None, 15, "alice"),
    "qrerun_finishes": (B, None, 5, None, None),
    "qsig_kill": (B, None, None, 9, None),
    "segv": (B, None, 139, 11, None),
    "self_sigkill": (B, None, 137, 9, None),
    "spoof_env": (B, None, 1, None, None),
    "success": (Ending.WELL, None, 0, None, None),
    "unwritable_output": (B, Cause.DISK, 0, None, None),
    "user_missing": (Ending.WELL, None, 0, None, None),
    "walltime": (L, Cause.WALLTIME, None, None, None),
    "walltime_trap": (L, Cause.WALLTIME, None, None, None),
}


@pytest.mark.parametrize("case", sorted(CAPTURED))
def test_capture_json(case: str) -> None:
    """Every captured end is read right from JSON."""
    end = pbs.parse_qstat_json(capture(f"{case}.json"))[0].end
    assert end is not None
    found = (end.ending, end.cause, end.exit_code, end.signal, end.cancelled_by)
    assert found == CAPTURED[case]


@pytest.mark.parametrize("case", sorted(set(CAPTURED) - {"spoof_env"}))
def test_capture_text_says_the_same(case: str) -> None:
    """Plain text, folded as it is, gives the same views as JSON."""
    from_json = pbs.parse_qstat_json(capture(f"{case}.json"))
    text = capture(f"{case}.txt")
    assert pbs.parse_qstat_text(text, Flavour.OPENPBS)[0] == from_json[0]
    assert pbs.parse_qstat_text(text.replace("\n", "\r\n"), Flavour.OPENPBS)[0] == from_json[0]


def test_limits_and_usage_are_read() -> None:
    """Seconds, bytes and the node of a real answer."""
    (view,) = pbs.parse_qstat_json(capture("mem_enforced.json"))
    assert (view.external_id, view.job_name, view.node) == ("21.pbshead", "job.sh", "pbshead")
    assert (view.walltime_s, view.memory_bytes, view.used_memory_bytes) == (
        45, 104857600, 265945088
    )


def test_forged_line_in_text_is_no_success() -> None:
    """A newline in a variable prints "Exit_status = 0"; two different ones count as none."""
    (view,) = pbs.parse_qstat_text(capture("spoof_env.txt"), Flavour.OPENPBS)
    assert view.end is not None and view.end.ending is Ending.BADLY
    assert view.end.exit_code is None


def test_forged_job_in_text_ends_nothing() -> None:
    """Two different records of one id put it into no known state."""
    text = (
        "Job Id: 1.s\n    job_state = R\n    Variable_List = A=\nJob Id: 2.s\n    job_state = F\n"
        "    Exit_status = 0\n\nJob Id: 2.s\n    job_state = R\n"
    )
    views = {v.external_id: v for v in pbs.parse_qstat_text(text, Flavour.OPENPBS)}
    assert views["2.s"].phase is Phase.UNKNOWN and views["2.s"].end is None


def test_forged_state_in_text_ends_nothing() -> None:
    """A second job_state that differs makes the state unknown."""
    text = "Job Id: 1.s\n    job_state = R\n    Variable_List = A=\n    job_state = F\n"
    (view,) = pbs.parse_qstat_text(text, Flavour.OPENPBS)
    assert view.phase is Phase.UNKNOWN


XML = (
    "<Data><Job><Job_Id>1.s</Job_Id><Job_Name>a &amp; b</Job_Name><resources_used><walltime>"
    "00:01:01</walltime></resources_used><job_state>C</job_state><exit_status>{code}"
    "</exit_status><Resource_List><walltime>00:01:00</walltime></Resource_List></Job></Data>"
)


def test_torque_xml() -> None:
    """Torque's XML; C says nothing of success."""
    (view,) = pbs.parse_qstat_xml(XML.format(code=-11))
    assert view.end is not None and view.end.cause is Cause.WALLTIME
    assert (view.job_name, view.walltime_s, view.elapsed_s) == ("a & b", 60, 61)
    (view,) = pbs.parse_qstat_xml(XML.format(code=0))
    assert view.end is not None and view.end.ending is Ending.WELL
    (view,) = pbs.parse_qstat_xml(XML.format(code=""))
    assert view.end is not None and view.end.ending is not Ending.WELL


HEADER = {"timestamp": 1, "pbs_version": "23.06.06", "pbs_server": "s"}


def test_json_without_jobs_is_an_answer() -> None:
    """qstat prints its header also where it knows none of the jobs."""
    assert pbs.parse_qstat_json(json.dumps(HEADER)) == []
    assert pbs.parse_qstat_json("motd\n" + json.dumps({**HEADER, "Jobs": {}})) == []


def test_json_retypes_values() -> None:
    """A name 007 comes as 7, 1e400 as null; neither costs the answer."""
    jobs = {"1.s": {"Job_Name": 7, "job_state": "F", "Exit_status": 0, "comment": None}}
    (view,) = pbs.parse_qstat_json(json.dumps({**HEADER, "Jobs": jobs}))
    assert (view.job_name, view.end and view.end.ending) == ("7", Ending.WELL)


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "{}", "[]", '{"pbs_version": 1, "Jobs": 3}',
        '{"pbs_version": 1, "Jobs": {"1.s": 3}}', '{"pbs_version": 1, "Jobs": {"-x": {}}}',
        '{"pbs_version": 1, "Jobs": {"1.s": {"job_state": "F"',
    ],
)
def test_json_unreadable(text: str) -> None:
    """What is cut short or foreign is no answer."""
    with pytest.raises(OutputParseError):
        pbs.parse_qstat_json(text)


@pytest.mark.parametrize(
    "text", ["", "<Data>", "<Data><Job></Data>", "<Data><!ENTITY a 'b'></Data>",
             "<Data><Job><job_state>C</job_state></Job></Data>"]
)
def test_xml_unreadable(text: str) -> None:
    """Nor is cut XML, one with entities, or a job without an id."""
    with pytest.raises(OutputParseError):
        pbs.parse_qstat_xml(text)


def test_text_that_knows_no_job() -> None:
    """Only qstat's own word makes an empty text an answer."""
    assert pbs.parse_qstat_text("", Flavour.TORQUE, "qstat: Unknown Job Id 9.s") == []
    with pytest.raises(OutputParseError):
        pbs.parse_qstat_text("Welcome\n", Flavour.TORQUE)


# ---- commands ---------------------------------------------------------------------------------


def test_commands() -> None:
    """OpenPBS is asked for JSON, Torque for XML, an unknown server for text."""
    ids = ["0.host", "39[].host", "39[3].host", "0.host"]
    unique = ["0.host", "39[].host", "39[3].host"]
    assert pbs.qstat_command(ids, Flavour.OPENPBS, history=True) == [
        "qstat", "-x", "-f", "-F", "json", *unique
    ]
    assert pbs.qstat_command(ids, Flavour.OPENPBS)[:3] == ["qstat", "-f", "-F"]
    assert pbs.qstat_command(["1"], Flavour.TORQUE) == ["qstat", "-x", "1"]
    assert pbs.qstat_command(["1"], Flavour.UNKNOWN) == ["qstat", "-f", "1"]
    assert pbs.qstat_text_command(["1"], history=True) == ["qstat", "-x", "-f", "1"]
    assert pbs.qdel_command(["1.s"]) == ["qdel", "1.s"]
    assert pbs.tracejob_command("1.s") == ["tracejob", "-n", "2", "1.s"]
    assert pbs.version_command() == ["qstat", "--version"]
    assert pbs.qsub_command(
        "/j/x", job_name="n", stdout="/j/o", stderr="/j/e", native_specification=["-q", "w"]
    ) == ["qsub", "-N", "n", "-q", "w", "-o", "/j/o", "-e", "/j/e", "/j/x"]


def test_environment() -> None:
    """What changes PBS's answers is left out, what says where the server is stays."""
    kept = {"PBS_DEFAULT": "s", "PBS_CONF_FILE": "/c", "PATH": "/b"}
    assert pbs.clean_environment({**kept, "LANG": "de_DE", "PBS_JOBID": "1"}) == {
        **kept, "LC_ALL": "C"
    }


@pytest.mark.parametrize("bad", ["", "-f", "1;x", "1+2", "1_2", "abc", "1 2"])
def test_bad_ids(bad: str) -> None:
    """Nothing but an id of PBS's comes into a command line, and none asks for all jobs."""
    with pytest.raises(OutputParseError):
        pbs.qdel_command([bad])
    with pytest.raises(ValueError):
        pbs.qstat_command([], Flavour.OPENPBS)


@pytest.mark.parametrize(
    "text, external_id",
    [("13.pbshead\n", "13.pbshead"), ("Welcome 2\n0.host\n", "0.host"), ("39[].h\n", "39[].h"),
     ("123\r\n", "123")],
)
def test_submission(text: str, external_id: str) -> None:
    """The last line of qsub's form is the id."""
    assert pbs.parse_submission(text) == external_id


def test_no_submission() -> None:
    """Nothing is guessed."""
    for text in ("", "qsub: Unknown queue", "Job 12 submitted"):
        with pytest.raises(OutputParseError):
            pbs.parse_submission(text)


@pytest.mark.parametrize(
    "argv, code, text, expected",
    [
        (["qstat"], 0, "", None),
        (["qstat"], 153, "qstat: Unknown Job Id 9999.pbshead", None),
        (["qstat"], 35, "qstat: 13.pbshead Job has finished, use -x or -H to obtain", None),
        (["qdel"], 153, "qdel: Unknown Job Id 9999.pbshead", None),
        (
            ["qstat", "-x"], 0, "qstat: PBS is not configured to maintain job history 0.pbshead",
            AccountingDisabledError,
        ),
        (
            ["qstat"], 255, "Connection refused\nqstat: cannot connect to server pbshead "
            "(errno=15010)", DrmUnreachableError,
        ),
        (["qstat"], 124, "", DrmUnreachableError),
        (["qstat"], 1, "pbsconf error: pbs conf variables not found", DrmUnreachableError),
        (["qsub"], 170, "qsub: Unknown queue", SubmissionRefusedError),
        (["qsub"], 1, "qsub: Unauthorized Request", SubmissionRefusedError),
        (["qsub"], 188, "qsub: Job violates queue and/or server resource limits",
         SubmissionRefusedError),
        (["qsub"], 162, "qsub: cannot connect to server pbshead (errno=15010)",
         DrmUnreachableError),
        (["qsub"], -15, "", DrmUnreachableError),
    ],
)
def test_error_from_command(
    argv: List[str], code: int, text: str, expected: Optional[type]
) -> None:
    """Unknown and finished jobs are answers, history that is off is not, outages are outages."""
    error = pbs.error_from_command(argv, code, text)
    assert (type(error) if error else None) is expected


# ---- stderr -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, cause, used, limit",
    [
        pytest.param(
            "=>> PBS: job killed: walltime 7 exceeded limit 5", Cause.WALLTIME, None, None,
            id="walltime",
        ),
        pytest.param(
            "...=>> PBS: job killed: vmem 51231789056 exceeded limit 17179869184\r\n",
            Cause.MEMORY, 51231789056, 17179869184, id="bytes_behind_dots",
        ),
        pytest.param(
            "=>> PBS: job killed: mem 259712kb exceeded limit 102400kb", Cause.MEMORY,
            265945088, 104857600, id="kilobytes",
        ),
        pytest.param(
            "=>> PBS: job killed: mem job total 4323312 kb exceeded limit 3145728 kb",
            Cause.MEMORY, 4323312 * 1024, 3 * 1024**3, id="job_total",
        ),
        pytest.param("=>> PBS: job killed: cput 12 exceeded limit 10", Cause.CPU_TIME, None, None,
                     id="cput"),
        pytest.param("=>> PBS: job killed: ncpus 2.00 exceeded limit 1 (sum)", Cause.UNKNOWN,
                     None, None, id="ncpus"),
        pytest.param(
            "=>> PBS: job killed: node 1 (n2) requested job terminate, 'EOF' (code 1099)",
            Cause.NODE_FAILURE, None, None, id="sister",
        ),
        pytest.param("=>> PBS: job killed: walltime 86415 exc", Cause.WALLTIME, None, None,
                     id="cut"),
        pytest.param("12.s Cgroup mem limit exceeded: oom", Cause.MEMORY, None, None, id="hook"),
        pytest.param("99.s Cgroup mem limit exceeded: oom", None, None, None, id="another_job"),
        pytest.param("PBS: job killed: walltime 7 exceeded limit 5", None, None, None, id="tool"),
        pytest.param("Killed", None, None, None, id="shell"),
    ],
)
def test_stderr(
    text: str, cause: Optional[Cause], used: Optional[int], limit: Optional[int]
) -> None:
    """Only mom's own prefix counts; the numbers are bytes where no unit stands."""
    finding = pbs.classify_stderr(text, "12.s")
    assert (finding.cause if finding else None) is cause
    if finding:
        assert (finding.used_bytes, finding.limit_bytes) == (used, limit)


@given(st.text())
def test_parsers_raise_only_their_own_error(text: str) -> None:
    """Whatever comes in, it is a view or OutputParseError; classifiers never raise."""
    for parse in (pbs.parse_qstat_json, pbs.parse_qstat_xml, pbs.parse_submission,
                  lambda t: pbs.parse_qstat_text(t, Flavour.UNKNOWN)):
        try:
            parse(text)
        except OutputParseError:
            pass
    pbs.classify_stderr(text, "12")
    pbs.flavour_from_version(text)


ATTRIBUTE = st.sampled_from(
    ["job_state", "exit_status", "substate", "comment", "stageout_status", "stime", "exec_host",
     "resource_list.walltime", "resources_used.walltime", "resource_list.mem", "run_count"]
)


@given(st.dictionaries(ATTRIBUTE, st.text() | st.sampled_from(["F", "C", "X", "R", "271", "-3"])),
       st.sampled_from(Flavour))
def test_only_exit_status_zero_is_success(shown: Dict[str, str], flavour: Flavour) -> None:
    """Nothing unknown becomes success."""
    end = pbs.view_of(pbs.PbsJob("1.s", shown), flavour).end
    if end is not None and end.ending is Ending.WELL:
        assert int(shown["exit_status"]) == 0 and shown["job_state"].strip() in "FCX"
