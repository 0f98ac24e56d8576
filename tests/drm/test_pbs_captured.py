"""Texts about PBS jobs as people copy them: the corpus, and the forms next to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_failure_reasons.drm.pbs import read_captured
from tests.drm.wild_texts import DATA, TRUTHS, damaged, strict_cases, told

CASES = strict_cases("pbs")
MAIL = "PBS Job Id: 1.s\nJob Name: x\nExec host:  n1/0\n"
MOAB = MAIL + "job deleted\nJob deleted at request of root@s\n"
LOG = "11/29/2026 12:03:0{n}  S    {said}\n"


EPILOGUE = """\
Begin PBS Epilogue Thu Jan  9 11:36:41 PST 2014
Job ID:           32.server
Limits:           neednodes=1,nodes=1,walltime=01:00:00
Resources:        cput=00:00:01,mem=0kb,vmem=0kb,walltime={ran}
Exit Code:  {code}
End PBS Epilogue
"""
NCI = """\
                  Resource Usage on 2020-01-13 14:25:31:
   Job Id:             1234567.server
   Exit Status:        {code}
   NCPUs Requested:    4                      NCPUs Used: 4
                                           CPU Time Used: 00:00:00
   Memory Requested:   2.0GB                 Memory Used: {mem}
   Walltime requested: 00:10:00            Walltime Used: {ran}
"""


def log(*said: str) -> str:
    """Return lines as tracejob shows them."""
    return "".join(LOG.format(n=n, said=text) for n, text in enumerate(said))


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
@pytest.mark.parametrize("source", ["kind", "flavour", "auto"])
def test_corpus(case: Dict[str, Any], source: str) -> None:
    """Every text from the wild is read right, with and without being told what it is."""
    kinds = {"kind": case["kind"], "flavour": f"{case['drm']} {case['kind']}", "auto": "auto"}
    captured = read_captured(case["text"], kinds[source])
    assert told(captured) in TRUTHS[case["truth"]], case["why"]


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_corpus_damaged(case: Dict[str, Any]) -> None:
    """Line ends, colours and banners do not change what a text says."""
    for damage, text in damaged(case["text"]).items():
        assert told(read_captured(text, case["kind"])) in TRUTHS[case["truth"]], damage


@pytest.mark.parametrize(
    "text, expected",
    [
        # ---- Exit_status alone, in the form of each flavour
        ("Exit_status = -29", "walltime"), ("Exit_status=-11", "walltime"),
        ("    exit_status = -10", "memory"), ("Exit_status = -12", "alive"),
        ("Exit_status=-14", "alive"), ("Exit_status = -14", "node_failure"),
        ("Exit_status = 0", "success"), ("Exit_status = 1", "tool_error"),
        ("Exit_status = 137", "unknown"), ("Exit_status = 139", "tool_error"),
        # ---- an epilogue's summary: Torque's sample, NCI's
        (EPILOGUE.format(ran="01:00:12", code="271"), "walltime"),
        (EPILOGUE.format(ran="00:00:12", code="1"), "tool_error"),
        (EPILOGUE.format(ran="00:00:12", code="0"), "success"),
        (NCI.format(code="271 (Linux Signal 15 SIGTERM Termination)", ran="00:10:05", mem="6.1MB"),
         "walltime"),
        (NCI.format(code="-29 (Job failed due to exceeding walltime)", ran="00:10:05", mem="6.1MB"),
         "walltime"),
        (NCI.format(code="137 (Linux Signal 9 SIGKILL)", ran="00:01:05", mem="2.0GB"), "memory"),
        (NCI.format(code="0", ran="00:01:05", mem="2.0GB"), "success"),
        ("Exit Status: 0\n", "unknown"),
        # ---- stderr: in the log of another, the hook of a site
        ("2020-01-01T12:00:00.123Z ERROR: 12.s: Cgroup mem limit exceeded: usage 2 kB", "memory"),
        ("Job 12.s has exceeded memory allocation on node n1", "memory"),
        # ---- the server's accounting: a job's lines, each with its letter
        (
            "04/05/2019 12:00:00;S;12.s;user=eve queue=workq\n"
            "04/05/2019 13:00:05;E;12.s;user=eve Resource_List.walltime=01:00:00 run_count=1 "
            "Exit_status=-29 resources_used.walltime=01:00:05", "walltime",
        ),
        ("04/05/2019 12:00:00;S;12.s;user=eve jobname=x queue=workq", "alive"),
        ("04/05/2019 12:00:00;D;12.s;requestor=eve@login", "cancelled"),
        ("04/05/2019 12:00:00;R;12.s;", "alive"),
        # ---- qstat -f: cut, copied with blanks for tabs, folded in a word
        (
            "    job_state = F\n    comment = Job run on (n1:ncpus=1) and exceeded\n"
            "        resource walltime\n    Exit_status = -29\n", "walltime",
        ),
        ("comment = Job run at x on (n) and exceeded resource vm", "memory"),
        ("comment = Job run at x on (n) and finished", "success"),
        ("Job Id: 1.s\n    job_state = C\n    start_time = Thu Jun 18 16:23:35 2015\n", "unknown"),
        ("comment = Job run at x on (n) and terminate\n\td by eve@h\nExit_status = 271",
         "cancelled"),
        ("Job Id: 1.s\n    job_state = R\n    Exit_status = -20\n", "alive"),
        ("Job Id: 1.s\n    job_state = H\n    comment = Job held by eve on Sun Nov 29\n", "alive"),
        (
            "Job Id: 1.s\n    job_state = H\n"
            "    comment = job held, too many failed attempts to run\n", "node_failure",
        ),
        ("comment = Not Running: Insufficient amount of resource: ncpus", "alive"),
        ("Job Id: 1.s\n    job_state = Z\n", "unknown"),
        (
            "Job Id: 1.s\n    job_state = C\n    exit_status = 271\n"
            "    resources_used.walltime = 01:00:20\n    Resource_List.walltime = 01:00:00\n",
            "walltime",
        ),
        (
            "Job Id: 1.s\n    job_state = C\n    exit_status = 265\n"
            "    resources_used.mem = 2200kb\n    Resource_List.mem = 2mb\n", "memory",
        ),
        # ---- mails, Moab, checkjob
        (MAIL + "Begun execution\n", "alive"),
        (MAIL + "Execution terminated\nExit_status=0\nresources_used.walltime=00:10:00", "success"),
        (MAIL + "Execution terminated\nExit_status=3\n", "tool_error"),
        (MAIL + "Aborted by PBS Server\nJob cannot be executed\nSee Administrator for help",
         "launch_error"),
        (
            MAIL + "An error has occurred processing your job, see below.\nPost job file processing"
            " error; job 1.s on host n1\nUnable to copy file /v/1.OU to u@h:/x", "disk",
        ),
        (MAIL + "job deleted\nJob deleted at request of eve@s\n", "cancelled"),
        (MOAB + "MOAB_INFO:  job exceeded wallclock limit", "walltime"),
        (MOAB + "job 1 exceeded SWAP usage hard limit (9 > 1)", "memory"),
        (MOAB + "job 1 exceeded DISK usage hard limit (9 > 1)", "disk"),
        ("job 1 exceeded WALLTIME usage soft limit", "unknown"),
        (
            "State: Removed\nCompletion Code: 271  Time: x\nMessage[0] job cancelled - "
            "MOAB_INFO:  job exceeded wallclock limit", "walltime",
        ),
        ("State: Completed\nCompletion Code: 0  Time: x", "success"),
        ("State: Idle\nEState: Deferred\n", "alive"),
        # ---- tracejob and logs
        (log("Job Run at request of S@s", "walltime 7 exceeded limit 5", "Exit_status=-29 x"),
         "walltime"),
        (log("Job Run at request of S@s", "Exit_status=0 resources_used.cput=0"), "success"),
        (log("Job Queued at request of a@s, owner = a@s", "Job Run at request of S@s"), "alive"),
        (log("Job to be deleted at request of eve@s", "Exit_status=271 x"), "cancelled"),
        (log("Job Run at request of S@s", "Job Rerun at request of eve@s"), "alive"),
        (
            log("Job Run at request of S@s", "Job Rerun at request of eve@s", "Exit_status=-11 x",
                "Job Run at request of S@s", "Exit_status=0 resources_used.cput=0"), "success",
        ),
        (log("Job Run at request of S@s", "Job Rerun at request of S@s", "Job requeued"), "alive"),
        (log("Job Run at request of S@s", "Job Rerun at request of S@s", "preempting job"),
         "preempted"),
        (log("Exit_status=-1 x", "Post job file processing error"), "launch_error"),
        (log("Exit_status=0 x", "Post job file processing error"), "disk"),
        # ---- what a tool prints
        ("my job exceeded its memory limit, said the tool", "unknown"),
        ("PBS: job killed: walltime 3605 exceeded limit 3600", "unknown"),
        ("Traceback (most recent call last):\n  File x\nMemoryError", "tool_error"),
        ("/var/spool/pbs/mom_priv/jobs/1.s.SC: line 3: foo: command not found", "launch_error"),
        # ---- tables, refusals, outages
        ("13.pbshead        job.sh           alice             00:00:00 R workq", "alive"),
        ("13.pbshead        job.sh           alice             00:00:00 F workq", "unknown"),
        ("qsub: Job exceeds queue resource limits MSG=cannot satisfy", "launch_error"),
        ("qstat: cannot connect to server x (errno=15010)", "unknown"),
        ("qstat: Unknown Job Id 12.s", "unknown"),
        ("", "unknown"),
    ],
)
def test_siblings(text: str, expected: str) -> None:
    """Other versions, cuts, other flavours."""
    assert told(read_captured(text)) == expected


@pytest.mark.parametrize(
    "name, expected",
    [
        ("walltime.tracejob", "walltime"), ("qdel_running_trap.tracejob", "cancelled"),
        ("mom_restart_r_n.tracejob", "node_failure"), ("walltime.stderr", "walltime"),
        ("mem_enforced.stderr", "memory"), ("ncpus_sum.stderr", "unknown"),
        ("walltime.txt", "walltime"), ("qdel_running.txt", "cancelled"),
        ("success.txt", "success"), ("success.json", "success"), ("walltime.json", "walltime"),
        ("exit1.txt", "tool_error"), ("unwritable_output.txt", "disk"),
        ("spoof_env.txt", "unknown"), ("spoof_env.json", "tool_error"),
    ],
)
def test_captures(name: str, expected: str) -> None:
    """Whole captures, as somebody would paste them."""
    text = Path(DATA / "pbs" / "captures" / name).read_text(encoding="utf-8", errors="replace")
    assert told(read_captured(text)) == expected


def test_the_job_asked_for() -> None:
    """Of several jobs the one that was named is told, in answers and in logs."""
    answer = "Job Id: 1.s\n    job_state = R\n\nJob Id: 2.s\n    job_state = Q\n"
    answer += "\nJob Id: 3.s\n    job_state = F\n    Exit_status = -29\n"
    server = "".join(
        f"05/04/2015 23:28:19;0008;PBS_Server;Job;{job}.s;{said}\n" for job, said in (
            ("1", "Job deleted at request of eve@s"), ("2", "Exit_status=-11 x"),
        )
    )
    assert told(read_captured(answer)) == "unknown"
    assert told(read_captured(answer, "qstat-f", "2.s")) == "alive"
    assert told(read_captured(answer, "qstat-f", "3.s")) == "walltime"
    assert told(read_captured(server, "tracejob", "1.s")) == "cancelled"
    assert told(read_captured(server, "tracejob", "2.s")) == "walltime"


@pytest.mark.parametrize(
    "text, expected",
    [
        pytest.param(
            "Job Id: 1.s\n    job_state = F\n    comment = Job run at Mon Mar 04 at 10:00 on (n1) "
            "and finished\n    Exit_status = 0\n", "success", id="qstat-xf",
        ),
        pytest.param(
            "Job id            Name             User              Time Use S Queue\n"
            "1.s               x                eve               00:00:12 R workq\n", "alive",
            id="qstat",
        ),
        pytest.param(
            MAIL + "Execution terminated\nExit_status=0\n", "success", id="mail",
        ),
    ],
)
def test_another_job_than_the_one_asked_for(text: str, expected: str) -> None:
    """What PBS says of a job is never told of another one."""
    assert told(read_captured(text, "auto", "1")) == expected
    assert told(read_captured(text, "auto", "2")) == "unknown"


@pytest.mark.parametrize(
    "text, who",
    [
        (log("Job to be deleted at request of eve@s", "Exit_status=271 x"), "eve"),
        (MAIL + "job deleted\nJob deleted at request of eve@s\n", "eve"),
        ("comment = Job run at x on (n) and terminated by eve@s\nExit_status = 271", "eve"),
        ("Exit_status = 271", None),
    ],
)
def test_who_cancelled(text: str, who: "str | None") -> None:
    """The user's name is told where the text has it."""
    captured = read_captured(text)
    assert (told(captured), captured.cancelled_by) == ("cancelled", who)


def test_the_flavour_that_is_named_decides() -> None:
    """A number alone is read as the named flavour has it."""
    assert told(read_captured("Exit_status = -11", "torque")) == "walltime"
    assert told(read_captured("Exit_status = -11", "openpbs")) == "alive"


@given(st.text() | st.sampled_from([case["text"] for case in CASES]).flatmap(
    lambda text: st.integers(0, len(text)).map(lambda at: text[at:])
))
def test_never_raises(text: str) -> None:
    """Any text, and any cut of a real one, is read; success needs a zero or a word of it."""
    captured = read_captured(text)
    if captured.ended and captured.cause is None:
        assert "0" in text or "finished" in text or "at the end of its run" in text
