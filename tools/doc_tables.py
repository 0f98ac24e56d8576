"""What the generated pages share: tables of outcomes, as the judgement finds them."""

from __future__ import annotations

from dataclasses import replace
from typing import Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple

from pulsar_failure_reasons.drm.base import JobView, StderrFinding
from pulsar_failure_reasons.judgement import (
    COMPLETE,
    FAILED,
    History,
    JobFiles,
    JobId,
    Policy,
    judge,
)
from pulsar_failure_reasons.reason import CAUSE_TABLE, Cause, FailureReason

GENERATED = "<!-- Made from the code by tools/generate_docs.py: run `make docs`, do not edit. -->"

EXTERNAL_ID = "4"
INTERVAL_S = 15.0
#: No file, a tool that ended well, a tool that did not.
RETURN_CODES = (None, 0, 3)
RETURN_CODE_LABELS = {
    frozenset(RETURN_CODES): "any",
    frozenset((None,)): "absent",
    frozenset((0,)): "0",
    frozenset((3,)): "not 0",
    frozenset((0, 3)): "present",
    frozenset((None, 3)): "absent or not 0",
    frozenset((None, 0)): "absent or 0",
}


class Situation(NamedTuple):
    """What a DRM shows of a job, and what it wrote into the job's stderr.

    ``view`` is None where the DRM does not know the job; ``before`` is then its last sight of it.
    """

    says: str
    view: Optional[JobView]
    finding: Optional[StderrFinding] = None
    before: Optional[JobView] = None


class Outcome(NamedTuple):
    """What Pulsar then reports; ``after`` names the grace that passes first, or is empty."""

    status: str
    after: str
    reason: Optional[FailureReason]


# --- Slurm's ends -----------------------------------------------------------------------------


def outcome(situation: Situation, return_code: Optional[int], policy: Policy) -> Outcome:
    """Return what is reported in the end, when the DRM goes on to show the same."""
    files = JobFiles(return_code, situation.finding)
    job = JobId("any", "any DRM", EXTERNAL_ID)
    history = History()
    if situation.before is not None:
        history = history.after(situation.before, 0.0)
    said = None
    for answers in range(1, policy.stuck_answers + 1):
        history = history.after(situation.view, answers * INTERVAL_S)
        judgement = judge(job, history, lambda: files, policy)
        if judgement.status in (COMPLETE, FAILED):
            grace = {1: "", policy.missing_answers: "missing_grace",
                     policy.stuck_answers: "hold_grace"}[answers]
            return Outcome(str(judgement.status), grace, judgement.reason)
        said = judgement.status
    return Outcome(said or "as before", "", None)


def rows_of(situation: Situation) -> Iterator[List[str]]:
    """Yield a table row for each different outcome over the return codes."""
    groups: Dict[Tuple[object, ...], List[Optional[int]]] = {}
    shown: Dict[Tuple[object, ...], Tuple[Outcome, Outcome]] = {}
    for return_code in RETURN_CODES:
        usual = outcome(situation, return_code, Policy())
        mild = outcome(situation, return_code, Policy(limit_with_zero_exit=COMPLETE))
        key = (usual.status, usual.after, usual.reason and usual.reason.cause, mild.status)
        groups.setdefault(key, []).append(return_code)
        shown[key] = (usual, mild)
    for position, (key, return_codes) in enumerate(groups.items()):
        usual, mild = shown[key]
        cause = usual.reason.cause if usual.reason else None
        yield [
            situation.says if position == 0 else "",
            RETURN_CODE_LABELS[frozenset(return_codes)],
            _status_cell(usual, mild),
            cause.value if cause else "",
            CAUSE_TABLE[cause].fault.value if cause else "",
            _runner_state_cell(cause),
        ]


def _runner_state_cell(cause: Optional[Cause]) -> str:
    told = CAUSE_TABLE[cause].runner_state if cause else None
    return "`%s`" % told if told else ""


def _status_cell(usual: Outcome, mild: Outcome) -> str:
    status = usual.status if usual.status == "as before" else "`%s`" % usual.status
    text = "after `%s`: %s" % (usual.after, status) if usual.after else status
    if mild.status != usual.status:
        text += " (`%s` with `limit_with_zero_exit: complete`)" % mild.status
    return text


def ends_table(first: str, situations: Iterable[Situation]) -> List[str]:
    """Return the lines of a table of outcomes."""
    headings = [first, "`return_code`", "status", "cause", "fault", "`runner_state`"]
    return table(headings, rows_of_all(situations))


def rows_of_all(situations: Iterable[Situation]) -> Iterator[List[str]]:
    """Yield the rows of all situations."""
    for situation in situations:
        yield from rows_of(situation)


def table(headings: List[str], rows: Iterable[List[str]]) -> List[str]:
    """Return the lines of a Markdown table."""
    lines = [headings, ["---"] * len(headings), *rows]
    return ["| %s |" % " | ".join(cells) for cells in lines]


# --- what the pages of ends say alike -----------------------------------------------------------


def intro(title: str) -> List[str]:
    """Return the beginning of a page of ends."""
    return [
        "# %s" % title,
        "",
        GENERATED,
        "",
        "`return_code` is the file in the job directory that Pulsar's job script writes after the "
        "tool. *Absent* also means that it is there and holds no number (a full disk). The script "
        "itself exits with 0 whatever the tool returned, so what the DRM says of the script and "
        "what `return_code` says of the tool are two things.",
        "",
        "`status` is Pulsar's. Cause, fault and `runner_state` are sent with `failed` only; "
        "[reasons.md](reasons.md) explains the words. No value in these columns: no key is sent.",
        "",
    ]


def living_table(situations: Iterable[Situation]) -> List[str]:
    """Return the lines of a table of states in which a job has not ended."""
    return table(["state", "status"], ([row[0], row[2]] for row in rows_of_all(situations)))


def unknown_situations(running: JobView, waiting: JobView) -> Iterator[Situation]:
    """Yield what there is to judge once a DRM does not know the job."""
    def ran(elapsed_s: int) -> JobView:
        return replace(running, elapsed_s=elapsed_s, walltime_s=600)

    yield Situation("last seen running, for less than its limit", None, before=ran(60))
    yield Situation("last seen running, and its limit has passed since", None, before=ran(590))
    yield Situation("last seen waiting, or never seen", None, before=waiting)


def no_answer(commands: str) -> List[str]:
    """Return what a page says of a DRM that gives no answer."""
    return [
        "## No answer",
        "",
        "%s fails, takes longer than `command_timeout`, or prints something that cannot be read; "
        "or the link to its host is dead: every job keeps its status, and no grace is used up."
        % commands,
        "",
    ]
