"""docs/htcondor-holds.md, from the code."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Iterable, Iterator, List, NamedTuple, Optional, TypeVar

from pulsar_failure_reasons.drm.base import JobView
from pulsar_failure_reasons.drm.htcondor import (
    HoldFinding,
    HoldKind,
    HoldPolicy,
    HoldReasonCode,
    JobState,
    JobSummary,
    classify_hold,
    view_of,
)
from pulsar_failure_reasons.drm.htcondor.classify import CAUSE_BY_HOLD_REASON
from pulsar_failure_reasons.drm.htcondor.codes import ERRNO_NO_SPACE, ERRNO_QUOTA
from pulsar_failure_reasons.judgement import Policy
from pulsar_failure_reasons.reason import CAUSE_TABLE, Cause
from tools.doc_tables import GENERATED, Situation, ends_table, outcome, rows_of_all, table

T = TypeVar("T")
MEGABYTE = 1024 * 1024
#: As the manager has it: hold_grace is counted by the judgement.
POLICY = HoldPolicy(hold_grace_answers=sys.maxsize)

#: Reasons that state a limit as exceeded, one for each.
LIMITS_IN_WORDS = (
    "the job exceeded its walltime limit",
    "the job exceeded its memory limit",
    "the job exceeded its CPU time limit",
    "the job exceeded its disk quota",
)
LIMITS = (Cause.WALLTIME, Cause.MEMORY, Cause.CPU_TIME, Cause.DISK)
NAMES = {HoldReasonCode.Unspecified: "Unspecified, or no code at all"}
#: No subcode of any code.
OTHER_SUBCODE = 999
UNKNOWN_CODE = 99


class Variant(NamedTuple):
    """What stands beside a code, in words for the table, and its examples."""

    says: str
    findings: List[HoldFinding]


def variants_of(code: int) -> Iterator[Variant]:
    """Yield what a code means alone, then with what else changes that."""
    alone = classify_hold(code, 0, "")
    yield Variant("", [alone])
    for number, subcode in CAUSE_BY_HOLD_REASON:
        if number == code and subcode is not None:
            yield Variant("subcode %d" % subcode, [classify_hold(code, subcode, "")])
    full = classify_hold(code, ERRNO_NO_SPACE, "")
    if full.cause is Cause.DISK is not alone.cause:
        says = "subcode %d or %d (disk full, quota), or the reason says so"
        yield Variant(says % (ERRNO_NO_SPACE, ERRNO_QUOTA), [full])
    stated = [classify_hold(code, 0, text) for text in LIMITS_IN_WORDS]
    limits = [found for found in stated if found.cause in LIMITS]
    if {found.cause for found in limits} - {alone.cause}:
        yield Variant("the reason states this limit as exceeded", limits)
    other = classify_hold(code, OTHER_SUBCODE, "")
    if other.cause is not alone.cause:
        yield Variant("another subcode, and the reason states no limit", [other])


def rows_of_code(code: int, number: str, name: str) -> Iterator[List[str]]:
    """Yield the rows of one code."""
    for position, variant in enumerate(variants_of(code)):
        causes = unique(finding.cause for finding in variant.findings)
        yield [
            number if position == 0 else "",
            name if position == 0 else "",
            variant.says,
            *becomes(variant.findings[0].kind, causes),
            " or ".join(unique(when(finding) for finding in variant.findings)),
        ]


def becomes(kind: HoldKind, causes: List[Cause]) -> List[str]:
    """Return the cells cause, fault and runner_state."""
    if kind in (HoldKind.TRANSIENT, HoldKind.VACATE):
        return ["", "", ""]
    rows = [CAUSE_TABLE[cause] for cause in causes]
    return [
        ", ".join(cause.value for cause in causes),
        ", ".join(unique(row.fault.value for row in rows)),
        "`%s`" % rows[0].runner_state if len(rows) == 1 else "that of the cause",
    ]


def unique(values: Iterable[T]) -> List[T]:
    """Return the values without repetitions, in their order."""
    return list(dict.fromkeys(values))


def when(finding: HoldFinding) -> str:
    """Return when a job that is held for this is failed, as manager and judgement do it."""
    found = outcome(Situation("", held(finding)), None, Policy())
    if found.after:
        return "after `%s`" % found.after
    if found.reason is not None:
        return "at once"
    return {
        HoldKind.PERSON: "a person's hold: stays `queued`",
        HoldKind.TRANSIENT: "no failure: ends by itself",
        HoldKind.VACATE: "no hold: `queued`, runs again",
    }[finding.kind]


def held(finding: HoldFinding) -> JobView:
    """Return a job that is held for this."""
    if finding.kind is HoldKind.VACATE:
        return seen(JobState.IDLE)
    return seen(JobState.HELD, hold=finding)


def seen(state: JobState, **known: object) -> JobView:
    """Return a job as log and queue show it."""
    summary = JobSummary(cluster=4, proc=0, state=state)
    return view_of(replace(summary, **known), policy=POLICY)  # type: ignore[arg-type]


# --- what is no hold --------------------------------------------------------------------------


def end_situations() -> Iterator[Situation]:
    """Yield the ways in which a job ends that is not held."""
    def ended(says: str, state: JobState = JobState.COMPLETED, **known: object) -> Situation:
        return Situation(says, seen(state, **known))

    def removed(says: str, reason: str, hold: Optional[HoldFinding] = None) -> Situation:
        return ended(says, JobState.REMOVED, remove_reason=reason, hold=hold)

    little, request = 10 * MEGABYTE, 100 * MEGABYTE
    memory_hold = classify_hold(34, 102, "")
    yield ended("exit code 0", return_value=0)
    yield ended("exit code 1 or above", return_value=1)
    yield ended("signal 9, without a hold", signal=9)
    yield ended("the same, and less than half of the requested memory was used", signal=9,
                memory_used_bytes=little, memory_request_bytes=request)
    yield ended("another signal", signal=11)
    yield removed("removed by a person (`condor_rm`)", "via condor_rm (by user alice)")
    yield removed("removed by a policy", "The job attribute PeriodicRemove expression "
                  "'JobStatus == 2' evaluated to TRUE")
    yield removed("removed, and the reason states a limit, such as memory",
                  "The job is running out of memory")
    yield removed("removed while it was held for a limit or a defect, such as 34/102",
                  "via condor_rm (by user alice)", memory_hold)


def living_situations() -> Iterator[Situation]:
    """Yield what HTCondor shows of a job that has not ended."""
    yield Situation("idle; also after an eviction, a shadow exception, a failed reconnect",
                    seen(JobState.IDLE))
    yield Situation("running; also while it is disconnected", seen(JobState.RUNNING))
    yield Situation("suspended", seen(JobState.SUSPENDED))
    yield Situation("a removal is under way", seen(JobState.REMOVING))
    yield Situation("a state or event with a number that we do not know", seen(JobState.UNKNOWN))


def unknown_situations() -> Iterator[Situation]:
    """Yield what there is to judge once neither queue, log nor history knows of an end."""
    def running(elapsed_s: int) -> JobView:
        return replace(seen(JobState.RUNNING), elapsed_s=elapsed_s, walltime_s=600)

    yield Situation("last seen running, for less than its limit", None, before=running(60))
    yield Situation("last seen running, and its limit has passed since", None, before=running(590))
    yield Situation("last seen waiting, or never seen", None, before=seen(JobState.IDLE))


def htcondor_holds_page() -> str:
    """Return docs/htcondor-holds.md."""
    rows: List[List[str]] = []
    for code in HoldReasonCode:
        rows.extend(rows_of_code(code, str(int(code)), NAMES.get(code, code.name)))
    rows.extend(rows_of_code(UNKNOWN_CODE, "up to 999", "any other code"))
    rows.append([
        "1000 and above", "vacate codes", "also any code with a subcode of -1000 or less",
        *becomes(HoldKind.VACATE, []), when(classify_hold(1000, 0, "")),
    ])
    return "\n".join([
        "# What each HTCondor hold and end becomes",
        "",
        GENERATED,
        "",
        "For the manager `queued_htcondor_classified` with all options at their defaults "
        "([options](queued_htcondor_classified.md)). The codes are those of HTCondor 25.14.",
        "",
        "## Holds",
        "",
        "The code decides, then the subcode, then the words of the reason. Subcodes are free "
        "numbers for the codes 1, 3, 21 and 26, so they are read only together with the code. "
        "A reason states a limit if one of its clauses says that one limit was exceeded; a mere "
        "mention of memory or disk does not count, nor does advice. What becomes of the holds of "
        "your own pool: [fake-htcondor2.md](fake-htcondor2.md#one-hold-in-words).",
        "",
        *table(["code", "name", "and", "cause", "fault", "`runner_state`", "the job is failed"],
               rows),
        "",
        "*At once* means: at the first look that sees the hold. The job is removed from the "
        "queue and is `failed`. It waits for `hold_grace` instead if the cause is in "
        "`wait_for_release`, or if the job has a `periodic_release`; and it is failed at once, "
        "whatever the cause, if it has been released `hold_releases_max` times before. A "
        "person's hold ends with `user_hold_grace`, if that is set (cause held).",
        "",
        "While a hold is waited for, the job is `queued`. Holds for a limit (walltime, memory, "
        "cpu_time, disk) of a job whose tool had returned 0 are `complete` with "
        "`limit_with_zero_exit: complete`; any other hold is `failed` whatever the tool "
        "returned, because the job's output did not come back.",
        "",
        "## Ends without a hold",
        "",
        "`return_code` is the file in the job directory that Pulsar's job script writes after the "
        "tool; the script itself exits with 0 whatever the tool returned. *Absent* also means "
        "that it is there and holds no number.",
        "",
        *ends_table("HTCondor says", end_situations()),
        "",
        "With `sigkill_means_memory: false` signal 9 is like any other signal.",
        "",
        "## Jobs that have not ended",
        "",
        *table(["HTCondor says", "status"],
               ([row[0], row[2]] for row in rows_of_all(living_situations()))),
        "",
        "*As before*: the status does not change, the job is looked at again.",
        "",
        "## HTCondor does not know the job",
        "",
        "It is not in the queue, its log tells no end, and history does not know it.",
        "",
        *ends_table("The job was", unknown_situations()),
        "",
        "## The schedd gives no answer",
        "",
        "Every job keeps its status, and no grace is used up.",
        "",
    ])
