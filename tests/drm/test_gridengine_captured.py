"""Texts about Grid Engine jobs as people copy them: the corpus, and the forms next to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_failure_reasons.drm.gridengine import read_captured
from tests.drm.wild_texts import DATA, TRUTHS, damaged, strict_cases, told

CASES = strict_cases("gridengine")
TABLE = (
    "job-ID  prior   name       user         state submit/start at     queue      slots ja-task\n"
    + "-" * 80 + "\n"
)
KILLED = "failed       100 : assumedly after job\nexit_status  137                  (Killed)\n"
PREFIX = "05/04/2011 03:36:38|  main|node1|W|"


def accounting(
    failed: str, exit_status: str, wallclock: str, category: str, maxvmem: str
) -> str:
    """Return a line of the accounting file, its 45 fields as accounting(5) lists them."""
    return ":".join((
        "all.q", "n1", "users", "eve", "x", "77", "sge", "0", "1527151827", "1527151845",
        "1527155446", failed, exit_status, wallclock, *["0.1"] * 2, *["0"] * 15, "NONE",
        "defaultdepartment", "NONE", "1", "0", "0.2", "0.0", "0.0", category, "0.0", "NONE",
        maxvmem, "0", "0",
    ))


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
        # ---- lines of the accounting file, accounting(5)
        (accounting("100", "137", "3601", "-l h_rt=3600", "1000000"), "walltime"),
        (accounting("100", "137", "36", "-l h_vmem=1G", "1073745920"), "memory"),
        # Far from the limits that it asked for, round numbers suggest nothing.
        (accounting("100", "137", "3601", "-l h_rt=72000", "1000000"), "unknown"),
        (accounting("100", "137", "36", "-l h_vmem=4G", "1073745920"), "unknown"),
        (accounting("0", "0", "36", "NONE", "1000000"), "success"),
        (accounting("0", "3", "36", "NONE", "1000000"), "tool_error"),
        (accounting("25", "0", "0", "NONE", "0"), "alive"),
        ("a:b:c:1:2:3", "unknown"),
        (
            "01/02/2013 11:11:11|  main|n1|E|shepherd of job 12.1 died through signal = 9",
            "node_failure",
        ),
        # ---- qacct, pieces of it
        ("failed       0\nexit_status  0\n", "success"),
        ("failed       0\nexit_status  1\n", "tool_error"),
        ("exit_status  0\n", "unknown"),
        ("failed 37 : qmaster enforced h_rt limit\nexit_status 137\n", "walltime"),
        ("failed 19 : before writing exit_status", "node_failure"),
        ("failed 24 : migrating", "alive"),
        ("it says: failed  26  : opening input/output file, why?", "disk"),
        (KILLED, "unknown"),
        (KILLED + "deleted_by   eve@host\n", "cancelled"),
        (KILLED + "category     -l h_vmem=8G,h_rt=3600\nmaxvmem      8.010GB\n", "memory"),
        (KILLED + "category     -l h_vmem=8G,h_rt=3600\nru_wallclock 3602s\n", "walltime"),
        (KILLED + "category     -l h_vmem=8G\nmaxvmem      1.000MB\nru_wallclock 99\n", "unknown"),
        (KILLED + "category     -u eve -q long.q\nmaxvmem      1.000MB\n", "cancelled"),
        (KILLED + "ru_wallclock 7201\n", "walltime"),
        (KILLED + "ru_wallclock 7000\n", "unknown"),
        (KILLED + "maxvmem      2.502G\n", "memory"),
        ("failed 100 : assumedly after job\nexit_status 139\n", "tool_error"),
        ("failed 100 : assumedly after job\nexit_status 153\n", "disk"),
        # ---- qstat
        (TABLE + " 32 0.50000 job.sh     eve   Eqw   11/29/2026 12:02:50       1\n", "alive"),
        (TABLE + " 32 0.50000 job.sh     eve   dr    11/29/2026 12:02:50 a@n   1\n", "alive"),
        (TABLE + " 32 0.50000 a job      eve   hqw   11/29/2026 12:02:50       1\n", "alive"),
        ("job_number:   32\nerror reason    1:   can't open output file \"/x\": No such", "disk"),
        ("job_number:   32\nusage    1:      cpu=00:00:00\n", "alive"),
        ("Following jobs do not exist: \n10\n", "unknown"),
        # ---- message files, mails
        (PREFIX + 'job 3.1 exceeds job hard limit "h_vmem" of queue "a@b" (2 > limit:1) - sending',
         "memory"),
        (PREFIX + 'job 3.1 exceeds job soft limit "s_cpu" of queue "a@b" (2 > 1)', "cpu_time"),
        (PREFIX + 'job 3.1 exceeds job master hard limit "h_vmem" of queue "a@b" (2 > 1)',
         "memory"),
        (PREFIX + "job 3.1 failed on host n general in prolog because: x", "node_failure"),
        (PREFIX + "job 3.1 failed on host n rescheduling because: manual/auto rescheduling",
         "alive"),
        (PREFIX + "eve has registered the job 3 for deletion", "cancelled"),
        (
            PREFIX + "job 3.1 exceeded hard wallclock time - initiate terminate method\n"
            + PREFIX + "job 4.1 died through signal KILL (9)", "unknown",
        ),
        (
            "Subject: Job 12 (x) Aborted\n Exit Status      = 137\nfailed assumedly after job "
            "because:\njob 12.1 died through signal KILL (9)\n", "unknown",
        ),
        ("Subject: Job 12 (x) Complete\n Exit Status      = 0\n", "success"),
        ("Subject: Job 12 (x) Started\n", "alive"),
        ('Unable to run job: unknown resource "nosuch"\nExiting.', "launch_error"),
        ("error: commlib error: got select error (Connection refused)", "unknown"),
        ("", "unknown"),
    ],
)
def test_siblings(text: str, expected: str) -> None:
    """Pieces, other versions, other sources."""
    assert told(read_captured(text)) == expected


@pytest.mark.parametrize(
    "job, name, expected",
    [
        ("10", "execd.messages", "walltime"), ("16", "execd.messages", "memory"),
        ("36", "execd.messages", "disk"), ("48", "execd.messages", "node_failure"),
        ("8", "qmaster.messages", "tool_error"), ("39", "qmaster.messages", "alive"),
        ("31", "qmaster.messages", "cancelled"), ("36", "qmaster.messages", "disk"),
        ("46.3", "array.qacct", "cancelled"), ("46.1", "array.qacct", "tool_error"),
        ("32", "bad_interpreter.details.xml", "launch_error"), ("45", "queue_suspend.qstat.xml",
                                                                "alive"),
    ],
)
def test_captures(job: str, name: str, expected: str) -> None:
    """Whole captures: of many jobs the one that was named is told."""
    path = Path(DATA / "gridengine" / "captures" / name)
    text = path.read_text(encoding="utf-8", errors="replace")
    assert told(read_captured(text, "auto", job)) == expected


@pytest.mark.parametrize(
    "text, expected",
    [
        (
            "=" * 62 + "\njobnumber    12\nfailed       19  : before writing exit_status\n"
            "exit_status  0\n", "node_failure",
        ),
        ("Subject: Job 12 (x) Complete\n Exit Status      = 0\n", "success"),
        (TABLE + "     12 0.55 x eve r 03/04/2024 10:00:00 all.q@n1 1\n", "alive"),
    ],
    ids=["qacct", "mail", "qstat"],
)
def test_another_job_than_the_one_asked_for(text: str, expected: str) -> None:
    """What Grid Engine says of a job is never told of another one."""
    assert told(read_captured(text, "auto", "12")) == expected
    assert told(read_captured(text, "auto", "13")) == "unknown"


@given(st.text() | st.sampled_from([case["text"] for case in CASES]).flatmap(
    lambda text: st.integers(0, len(text)).map(lambda at: text[at:])
))
def test_never_raises(text: str) -> None:
    """Any text, and any cut of a real one, is read; success needs both zeros or a word of it."""
    captured = read_captured(text)
    if captured.ended and captured.cause is None:
        assert "failed" in text or "Complete" in text or "at the end of its run" in text
