"""docs/gridengine-ends.md, from the code."""

from __future__ import annotations

from typing import Dict, Iterator

from pulsar_failure_reasons.drm.base import JobView, Phase
from pulsar_failure_reasons.drm.gridengine import FAILED_CODES, classify_error_reason, phase_of
from pulsar_failure_reasons.drm.gridengine.qacct import view_of
from pulsar_failure_reasons.drm.gridengine.qstat import stuck_for
from pulsar_failure_reasons.reason import Cause, Confidence
from tools.doc_tables import (
    EXTERNAL_ID,
    Situation,
    ends_table,
    intro,
    living_table,
    no_answer,
    unknown_situations,
)

#: What the job of these tables asked for and used, by what it did.
SHORT = {"category": "-l h_rt=3600,h_vmem=4G", "ru_wallclock": "10", "maxvmem": "1G", "cpu": "9"}
LONG = {**SHORT, "ru_wallclock": "3601"}
LARGE = {**SHORT, "maxvmem": "4.1G"}


def ended(usage: Dict[str, str], **fields: str) -> JobView:
    """Return an ended job as qacct would show it."""
    return view_of({"jobnumber": EXTERNAL_ID, **usage, **fields})


def end_situations() -> Iterator[Situation]:
    """Yield how a job ends with failed 0, 37 and 100: the exit status and the numbers decide."""
    yield Situation("`failed` 0, `exit_status` 0", ended(SHORT, failed="0", exit_status="0"))
    yield Situation("0, `exit_status` 1 to 125", ended(SHORT, failed="0", exit_status="1"))
    yield Situation("0, `exit_status` 126 or 127", ended(SHORT, failed="0", exit_status="127"))
    killed = {"failed": "100 : assumedly after job", "exit_status": "137"}
    yield Situation("100, `exit_status` 137, at its `h_rt`", ended(LONG, **killed))
    yield Situation("100, `exit_status` 137, at its `h_vmem`", ended(LARGE, **killed))
    yield Situation("100, `exit_status` 137, far from its limits", ended(SHORT, **killed))
    yield Situation("100, `exit_status` 152 (SIGXCPU), `h_cpu` or `s_cpu` asked for", ended(
        {**SHORT, "category": "-l s_cpu=10"}, failed="100", exit_status="152"))
    yield Situation("100, `exit_status` 152 (SIGXCPU), `s_vmem` or `h_vmem` asked for",
                    ended(SHORT, failed="100", exit_status="152"))
    yield Situation("100, `exit_status` 153 (SIGXFSZ)",
                    ended(SHORT, failed="100", exit_status="153"))
    yield Situation("100, `exit_status` 138 (SIGUSR1), `s_rt` asked for", ended(
        {**SHORT, "category": "-l s_rt=5"}, failed="100", exit_status="138"))
    yield Situation("37, at its `h_rt`, or with `h_rt` alone asked for",
                    ended({**LONG, "category": "-l h_rt=3600"}, failed="37", exit_status="137"))
    yield Situation("any, and somebody had deleted it (`deleted_by`, or last seen as `dr`)",
                    ended(SHORT, failed="100", exit_status="137", deleted_by="alice"))


def failed_situations() -> Iterator[Situation]:
    """Yield each failed code that is not of the table above and ends a job."""
    for row in FAILED_CODES.values():
        if row.cause is not None and not row.requeues:
            yield Situation("%d %s" % (row.number, row.text),
                            ended(SHORT, failed=str(row.number), exit_status="0"))


STATES = (
    ("qw", "waits"), ("hqw", "held, waits"), ("t", "is being sent to its host"), ("r", "runs"),
    ("Rr", "runs, started again"), ("s", "suspended by a person"),
    ("S", "suspended with its queue"), ("T", "suspended by a load threshold"),
    ("P", "suspended for another job (Univa)"), ("N", "suspended (Univa)"),
    ("Rq", "waits to be started again"), ("dr", "being deleted"), ("Eqw", "in error"),
    ("z", "finished (`qstat -s z`)"),
)
ERROR_REASONS = (
    "can't open output file", "can't chdir to /x", "execvlp failed", "exit_status of prolog = 1",
    "can't get password entry for user", "exit_status of job start = 100", "anything else",
)


def living(state: str) -> JobView:
    """Return a job as qstat would show it."""
    return JobView(EXTERNAL_ID, state, phase_of(state), Confidence.CONTROLLER,
                   stuck_detail="job state %s" % state)


def living_situations() -> Iterator[Situation]:
    """Yield the states of a job that has not ended."""
    for state, name in STATES:
        yield Situation("`%s` %s" % (state, name), living(state))
    yield Situation("any other word", living("Q?"))


def error_situations() -> Iterator[Situation]:
    """Yield what a job in error is failed for."""
    for reason in ERROR_REASONS:
        yield Situation("`%s`" % reason if classify_error_reason(reason)[0] is not Cause.HELD
                        else reason, stuck_for(living("Eqw"), reason))


def gridengine_ends_page() -> str:
    """Return docs/gridengine-ends.md."""
    assert living("Eqw").phase is Phase.STUCK
    again = ["%d %s" % (row.number, row.text) for row in FAILED_CODES.values() if row.requeues]
    return "\n".join([
        *intro("What each Grid Engine end becomes"),
        "qstat shows no job that has ended: how it ended is in qacct, which lags by some seconds. "
        "Grid Engine does not tell of a job that it was deleted, nor which limit killed it: the "
        "first is remembered from qstat (`d`), the second is concluded from used against "
        "requested, with confidence `inferred`.",
        "",
        "## Ends",
        "",
        *ends_table("qacct says", end_situations()),
        "",
        "A job that root deletes by force (`qdel -f`) looks like success there, 0 and 0: the "
        "absent `return_code` tells.",
        "",
        "Of several records of one job the last one counts. After %s Grid Engine starts the job "
        "again: such a record is no end." % " and ".join(again),
        "",
        "## Failed codes",
        "",
        "The others, whatever the exit status is:",
        "",
        *ends_table("`failed`", failed_situations()),
        "",
        "## States of a job that has not ended",
        "",
        *living_table(living_situations()),
        "",
        "*As before*: the status does not change, the job is looked at again. `after hold_grace`: "
        "`queued` until then, then the job is deleted and is failed, for what its error reason "
        "(`qstat -j`) says:",
        "",
        *ends_table("error reason", error_situations()),
        "",
        "## Grid Engine does not know the job",
        "",
        "qstat does not show it, and qacct has no end of it, or is not asked (`accounting: none`).",
        "",
        *ends_table("The job was", unknown_situations(living("r"), living("qw"))),
        "",
        *no_answer("qstat or qacct"),
    ])
