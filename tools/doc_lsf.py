"""docs/lsf-ends.md, from the code."""

from __future__ import annotations

from typing import Iterator, List, Optional

from pulsar_failure_reasons.drm.base import JobView, Phase, StderrFinding
from pulsar_failure_reasons.drm.lsf import TERMINATIONS, LsfState, classify_report, describe_state
from pulsar_failure_reasons.reason import Confidence
from tools.doc_tables import (
    EXTERNAL_ID,
    Situation,
    ends_table,
    intro,
    living_table,
    no_answer,
    unknown_situations,
)

#: LSF's report behind the output of a job, as lsb.params leaves it on.
REPORT = """\
Sender: LSF System <lsfadmin@n1>
Subject: Job %s: <run> in cluster <c> Exited

%s
Exited with exit code %d.

The output (if any) is above this job summary.
"""
CODE_OF_SIGKILL = 137


def view_of(
    state: str, reason: str = "", exit_code: Optional[int] = None, started: bool = True
) -> JobView:
    """Return a job as bjobs would show it."""
    described = describe_state(state, reason, exit_code, started=started)
    return JobView(
        external_id=EXTERNAL_ID,
        job_state=described.word,
        phase=described.phase,
        confidence=Confidence.INFERRED if described.inferred else Confidence.CONTROLLER,
        end=described.end,
    )


def end_situations() -> Iterator[Situation]:
    """Yield DONE, and the ways in which a job is EXIT without a termination reason."""
    yield Situation("`DONE`", view_of("DONE", "", 0))
    yield Situation("`EXIT`, exit code 1 to 125", view_of("EXIT", "", 1))
    yield Situation("`EXIT`, exit code 126 or 127", view_of("EXIT", "", 127))
    yield Situation("`EXIT`, a signal (exit code above 128)", view_of("EXIT", "", CODE_OF_SIGKILL))
    yield Situation("the same, and LSF's report says `TERM_MEMLIMIT`",
                    view_of("EXIT", "", CODE_OF_SIGKILL), _report("TERM_MEMLIMIT: killed"))
    yield Situation("`EXIT`, and it never had a host", view_of("EXIT", started=False))


def _report(reason: str) -> Optional[StderrFinding]:
    return classify_report(REPORT % (EXTERNAL_ID, reason, CODE_OF_SIGKILL), EXTERNAL_ID)


def termination_situations() -> Iterator[Situation]:
    """Yield each termination reason that ends a job."""
    for row in TERMINATIONS.values():
        if not row.requeues:
            label = "`%s`" % row.keyword + (": %s" % row.detail if row.detail else "")
            yield Situation(label, view_of("EXIT", "%s: x" % row.keyword, CODE_OF_SIGKILL))


def living_situations() -> Iterator[Situation]:
    """Yield each state of a job that has not ended."""
    for state in LsfState:
        if state is not LsfState.UNKNOWN and view_of(state.value).phase is not Phase.ENDED:
            yield Situation("`%s`" % state.value, view_of(state.value))
    yield Situation("any other word", view_of("NEWSTATE"))


def lsf_ends_page() -> str:
    """Return docs/lsf-ends.md."""
    again = ["`%s`" % row.keyword for row in TERMINATIONS.values() if row.requeues]
    lines: List[str] = [
        *intro("What each LSF end becomes"),
        "## Ends",
        "",
        *ends_table("bjobs says", end_situations()),
        "",
        "The same holds when bhist says it, of a job that bjobs has forgotten.",
        "",
        "LSF's report behind the job's output is read where bjobs gives no reason. It counts only "
        "where LSF must have put it (at the end of the file, or at its start where the output "
        "follows it): a tool that prints the same words proves nothing.",
        "",
        "## Termination reasons",
        "",
        "`EXIT` with a reason (`bjobs -o exit_reason`, bhist, the report):",
        "",
        *ends_table("LSF says", termination_situations()),
        "",
        "After %s LSF starts the job again: it is pending then, and queued." % ", ".join(again),
        "",
        "Where bjobs gives no reason, a job that ran to its run limit and ended with exit code 12 "
        "or 140 (SIGUSR2, LSF's warning) or by a signal is `walltime`, with confidence `inferred`.",
        "",
        "## States of a job that has not ended",
        "",
        *living_table(living_situations()),
        "",
        "*As before*: the status does not change, the job is looked at again.",
        "",
        "## LSF does not know the job",
        "",
        "bjobs has forgotten it (`CLEAN_PERIOD`, an hour unless set), and bhist knows no end of "
        "it, or is not asked (`accounting: none`).",
        "",
        *ends_table("The job was",
                    unknown_situations(view_of("RUN"), view_of("PEND"))),
        "",
        *no_answer("bjobs or bhist"),
    ]
    return "\n".join(lines)
