"""Texts about LSF jobs as people copy them: the corpus, and the forms next to it."""

from __future__ import annotations

from typing import Any, Dict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_failure_reasons.drm.lsf import read_captured
from tests.drm.wild_texts import TRUTHS, damaged, strict_cases, told

CASES = strict_cases("lsf")
SHORT = "JOBID   USER    STAT  QUEUE      FROM_HOST   EXEC_HOST   JOB_NAME   SUBMIT_TIME\n"
BACCT = """\
Accounting information about jobs that are:
  - completed normally or exited
------------------------------------------------------------------------------

Job <33>, User <user01>, Project <default>, Status <{status}>, Queue <pub.1h>,
                     Command <sh -c hello>
Mon Oct  8 16:17:36: Submitted from host <submit1>, CWD <$HOME>;
Mon Oct  8 16:18:36: Dispatched to <n1>;
Mon Oct  8 16:18:37: Completed <{end}

Accounting information about this job:
     CPU_T     WAIT     TURNAROUND   STATUS     HOG_FACTOR    MEM    SWAP
      0.00       60             60     exit         0.0000     0K      0K

SUMMARY:      ( time unit: second )
 Total number of done jobs:       0      Total number of exited jobs:     1
"""


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
@pytest.mark.parametrize("source", ["kind", "auto"])
def test_corpus(case: Dict[str, Any], source: str) -> None:
    """Every text from the wild is read right, with and without being told what it is."""
    captured = read_captured(case["text"], case["kind"] if source == "kind" else "auto")
    assert told(captured) in TRUTHS[case["truth"]], case["why"]


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_corpus_damaged(case: Dict[str, Any]) -> None:
    """Line ends, colours and banners do not change what a text says."""
    for damage, text in damaged(case["text"]).items():
        assert told(read_captured(text, case["kind"])) in TRUTHS[case["truth"]], damage


@pytest.mark.parametrize(
    "text, expected",
    [
        pytest.param(SHORT + "5 u PSUSP q sub-1 n1 *j Nov 14 13:00", "alive", id="psusp"),
        pytest.param(SHORT + "5 u USUSP q sub-1 n1 *j Nov 14 13:00", "alive", id="ususp"),
        pytest.param(SHORT + "5 u UNKWN q sub-1 n1 *j Nov 14 13:00", "alive", id="unkwn"),
        pytest.param(SHORT + "5 u DONE  q sub-1 n1 *j Nov 14 13:00", "success", id="done"),
        pytest.param(SHORT + "5 u EXIT  q sub-1 n1 *j Nov 14 13:00", "tool_error", id="exit"),
        pytest.param(
            SHORT + "5 u RUN q s n1 *j Nov 14 13:00\n6 u EXIT q s n1 *j Nov 14 13:00", "unknown",
            id="several_that_differ",
        ),
        pytest.param(
            "JOBID STAT EXIT_CODE EXIT_REASON\n5 EXIT 137 TERM_MEMLIMIT: job killed after",
            "memory", id="blanks_with_heading",
        ),
        pytest.param("JOBID STAT EXIT_CODE\n5 EXIT 140", "walltime", id="blanks_with_exit_code"),
        pytest.param("JOBID:STAT:EXIT_CODE\n12:PEND:-", "alive", id="colons_with_heading"),
        pytest.param(
            "Job <2>, User <u>, Project <p>, Status <EXIT>, Queue <q>, Command <x>\n"
            "Mon Jul 30 15:12:05: Submitted from host <l>, CWD <$HOME>;\n"
            "Mon Jul 30 15:13:00: Exited; job has been killed before it started;",
            "cancelled", id="submitted_never_started",
        ),
        pytest.param(
            "Sender: LSF System <lsf@n>\nSubject: Job 88: <x> in cluster <c> Exited\n\n"
            "Exited with exit code 1.\nFail to open output file /x/y: Permission denied.\n"
            "Output is stored in this mail.", "disk", id="no_output_file",
        ),
        pytest.param(
            "Exited with exit code 1.\n\nThe output (if any) follows:\n\n\n"
            "Unable to read output data from the stdout buffer file </h/.lsbatch/1.2.out>: your "
            "job was probably aborted prematurely.", "disk", id="no_buffer_file",
        ),
        pytest.param("JOBID STAT X\nWelcome EXIT 1", "unknown", id="no_id_no_row"),
        pytest.param("JOBID|STAT|X\n5|Welcome|1", "unknown", id="no_state_no_row"),
        pytest.param(
            "JOBID STAT EXIT_CODE EXIT_REASON\n5 EXIT x TERM_OWNER: a", "cancelled",
            id="column_that_does_not_fit",
        ),
        pytest.param(
            "Job <5>, User <u>, Project <p>, Status <EXIT>, Queue <q>, Command <x>\n"
            "Tue Jul 24 10:26:43: Started on <n1>;", "tool_error", id="bjobs_l_cut",
        ),
        pytest.param(
            "Job <5>, Job Name <Status <DONE>>, Status <RUN>, Queue <q>, Command <x>\n"
            "Tue Jul 24 10:26:43: Started on <n1>;", "alive", id="bjobs_l_running",
        ),
        pytest.param("Subject: Job 5: <x> in cluster <c> Exited", "tool_error", id="subject"),
        pytest.param("Subject: Job 5: <Done> in cluster <c> Exited", "tool_error", id="named_done"),
        pytest.param("Subject: Job 5: <x> in cluster <c> Done", "success", id="subject_done"),
        pytest.param("EXIT_REASON;JOBID;STAT\nTERM_OWNER: x;5;EXIT", "cancelled", id="any_order"),
        pytest.param("5^EXIT^143^TERM_ADMIN: job killed by root", "cancelled", id="caret"),
        pytest.param("5|EXIT|140|-|n1", "walltime", id="sigusr2"),
        pytest.param("5|EXIT|130|-|n1", "unknown", id="sigint"),
        pytest.param("5|EXIT|139|-|n1", "tool_error", id="segfault"),
        pytest.param(
            BACCT.format(status="EXIT", end="exit>; TERM_RUNLI\n                     MIT: job."),
            "walltime", id="bacct_with_its_header",
        ),
        pytest.param(BACCT.format(status="DONE", end="done>."), "success", id="bacct_done"),
        pytest.param("Exited with signal termination: Killed.", "unknown", id="signal_by_name"),
        pytest.param("Exited by signal 11.", "tool_error", id="signal_by_number"),
        pytest.param("job killed after reaching LSF memory usage li", "memory", id="cut"),
        pytest.param("TERM_REQUEUE_ADMIN: Job killed and requeued by root", "alive", id="requeued"),
        pytest.param("TERM_LOAD: Job killed after load exceeds threshold", "preempted", id="load"),
        pytest.param("q: No such queue. Job not submitted.", "launch_error", id="refused"),
        pytest.param("LSF is down. Please wait ...", "unknown", id="outage"),
        pytest.param("No unfinished job found", "unknown", id="no_job"),
        pytest.param("", "unknown", id="empty"),
    ],
)
def test_siblings(text: str, expected: str) -> None:
    """Other columns, other separators, cuts."""
    assert told(read_captured(text)) == expected


def test_the_job_asked_for() -> None:
    """Of several jobs the one that was named is told."""
    text = SHORT + "5 u RUN q s n1 *j Nov 14 13:00\n6 u DONE q s n1 *j Nov 14 13:00"
    assert told(read_captured(text, "bjobs", "6")) == "success"
    assert told(read_captured(text, "bjobs", "5")) == "alive"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("7|EXIT|1|TERM_OWNER: job killed by owner|", id="row"),
        pytest.param(
            "Job <7>, Job Name <x>, User <u>, Project <p>, Status <EXIT>, Queue <q>, Command <c>\n"
            "Mon Mar  4 10:30:33: Completed <exit>; TERM_CPULIMIT: job killed after reaching LSF "
            "CPU usage limit.\n",
            id="history",
        ),
        pytest.param(
            "Sender: LSF System <lsfadmin@n1>\nSubject: Job 7: <x> in cluster <c> Exited\n\n"
            "Job <x> was submitted from host <l> by user <u> in cluster <c> at Mon Mar  4 10:00:01 "
            "2024\n\nTERM_OWNER: job killed by owner.\nExited with exit code 143.\n\n"
            "The output (if any) is above this job summary.\n",
            id="report",
        ),
    ],
)
def test_another_job_than_the_one_asked_for(text: str) -> None:
    """What LSF says of a job is never told of another one."""
    assert told(read_captured(text, "auto", "7")) in ("cancelled", "cpu_time")
    assert told(read_captured(text, "auto", "8")) == "unknown"


@given(st.text() | st.sampled_from([case["text"] for case in CASES]).flatmap(
    lambda text: st.integers(0, len(text)).map(lambda at: text[at:])
))
def test_never_raises(text: str) -> None:
    """Any text, and any cut of a real one, is read; success needs a word of success."""
    captured = read_captured(text)
    if captured.ended and captured.cause is None:
        assert "DONE" in text or "Done" in text or "done" in text or "Successfully" in text
