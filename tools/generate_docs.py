"""Write the pages of docs/ that are made from the code, and check the links of all pages.

    python3 tools/generate_docs.py            write them
    python3 tools/generate_docs.py --check    only tell which are stale; exit code 1 if any

It needs this checkout and the standard library, nothing else.
"""

from __future__ import annotations

import argparse
import pathlib
import re
import sys
from dataclasses import replace
from typing import Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple

ROOT = pathlib.Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from pulsar_failure_reasons.drm.base import JobView, Phase  # noqa: E402
from pulsar_failure_reasons.drm.slurm import (  # noqa: E402
    SlurmState,
    classify_stderr,
    describe_state,
)
from pulsar_failure_reasons.judgement import (  # noqa: E402
    COMPLETE,
    FAILED,
    History,
    JobFiles,
    JobId,
    Policy,
    judge,
)
from pulsar_failure_reasons.message import write_message  # noqa: E402
from pulsar_failure_reasons.reason import (  # noqa: E402
    CAUSE_TABLE,
    Cause,
    Confidence,
    Fault,
    FailureReason,
)

DOCS = ROOT / "docs"
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

MEMORY_LINE = "slurmstepd: error: Exceeded job memory limit"
OOM_LINE = "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=4.batch."


class Situation(NamedTuple):
    """What Slurm shows of a job, and what it wrote into the job's stderr.

    ``view`` is None where Slurm does not know the job; ``before`` is then its last sight of it.
    """

    says: str
    view: Optional[JobView]
    stderr: str = ""
    before: Optional[JobView] = None


class Outcome(NamedTuple):
    """What Pulsar then reports; ``after`` names the grace that passes first, or is empty."""

    status: str
    after: str
    reason: Optional[FailureReason]


# --- Slurm's ends -----------------------------------------------------------------------------


def view_of(
    state: str,
    reason: str = "None",
    exit_code: Optional[int] = None,
    signal: Optional[int] = None,
    confidence: Confidence = Confidence.CONTROLLER,
) -> JobView:
    """Return a job as squeue would show it with this state, reason and exit code."""
    described = describe_state(state, reason, exit_code, signal)
    return JobView(
        external_id=EXTERNAL_ID,
        job_state=described.word,
        phase=described.phase,
        confidence=confidence,
        end=described.end,
        stuck_detail=described.stuck_detail,
    )


def outcome(situation: Situation, return_code: Optional[int], policy: Policy) -> Outcome:
    """Return what is reported in the end, when Slurm goes on to show the same."""
    finding = classify_stderr(situation.stderr, EXTERNAL_ID) if situation.stderr else None
    files = JobFiles(return_code, finding)
    job = JobId("slurm", "Slurm", EXTERNAL_ID)
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
            "`%s`" % CAUSE_TABLE[cause].runner_state if cause else "",
        ]


def _status_cell(usual: Outcome, mild: Outcome) -> str:
    status = usual.status if usual.status == "as before" else "`%s`" % usual.status
    text = "after `%s`: %s" % (usual.after, status) if usual.after else status
    if mild.status != usual.status:
        text += " (`%s` with `limit_with_zero_exit: complete`)" % mild.status
    return text


def end_situations() -> Iterator[Situation]:
    """Yield each state with which a Slurm job ends, and the ways in which the vague ones do."""
    for state in SlurmState:
        if view_of(state.value).phase is not Phase.ENDED or state is SlurmState.FAILED:
            continue
        yield Situation("`%s`" % state.value, view_of(state.value))
        if state is SlurmState.CANCELLED:
            yield Situation("`CANCELLED`, and Slurm wrote that it killed for memory",
                            view_of(state.value), MEMORY_LINE)


def failed_situations() -> Iterator[Situation]:
    """Yield the ways in which a job is FAILED, which alone says little."""
    def failed(text: str, stderr: str = "", **shown: object) -> Situation:
        return Situation(text, view_of("FAILED", **shown), stderr)  # type: ignore[arg-type]

    yield failed("exit code 1 to 125", reason="NonZeroExitCode", exit_code=1, signal=0)
    yield failed("exit code 126 or 127", reason="NonZeroExitCode", exit_code=127, signal=0)
    yield failed("a signal (`RaisedSignal:9(Killed)`, before 23.02 `JobLaunchFailure`)",
                 reason="RaisedSignal:9(Killed)", exit_code=0, signal=9)
    yield failed("the same, and Slurm wrote that it killed for memory", MEMORY_LINE,
                 reason="JobLaunchFailure", exit_code=0, signal=9)
    yield failed("exit code 1 to 125, and Slurm wrote of an out-of-memory kill", OOM_LINE,
                 reason="NonZeroExitCode", exit_code=1, signal=0)
    yield failed("reason `OutOfMemory`", reason="OutOfMemory")
    yield failed("reason `TimeLimit`", reason="TimeLimit")
    yield failed("signal 53: an output file could not be opened", exit_code=0, signal=53)
    yield failed("reason `BadConstraints`", reason="BadConstraints")


def living_situations() -> Iterator[Situation]:
    """Yield each state of a job that has not ended."""
    for state in SlurmState:
        if state is not SlurmState.UNKNOWN and view_of(state.value).phase is not Phase.ENDED:
            yield Situation("`%s`" % state.value, view_of(state.value))
            if state is SlurmState.PENDING:
                yield Situation("`PENDING`, held by a person (`JobHeldUser`, `JobHeldAdmin`)",
                                view_of(state.value, "JobHeldAdmin"))
                yield Situation("`PENDING`, and will never start by itself (list below)",
                                view_of(state.value, "DependencyNeverSatisfied"))
    yield Situation("any other word", view_of("SOME_NEW_STATE"))


def unknown_situations() -> Iterator[Situation]:
    """Yield what there is to judge once Slurm does not know the job."""
    def running(elapsed_s: int) -> JobView:
        return replace(view_of("RUNNING"), elapsed_s=elapsed_s, walltime_s=600)

    yield Situation("last seen running, for less than its limit", None, before=running(60))
    yield Situation("last seen running, and its limit has passed since", None, before=running(590))
    yield Situation("last seen waiting, or never seen", None, before=view_of("PENDING"))


STUCK_REASONS_SHOWN = (
    "JobRequeuedInHeldState", "launch failed requeued held", "JobHoldMaxRequeue",
    "DependencyNeverSatisfied", "BadConstraints", "ReservationDeleted", "InvalidAccount",
    "InvalidQOS",
)


def slurm_ends_page() -> str:
    """Return docs/slurm-ends.md."""
    stuck = [word for word in STUCK_REASONS_SHOWN
             if view_of("PENDING", word).phase is Phase.STUCK]
    return "\n".join([
        "# What each Slurm end becomes",
        "",
        GENERATED,
        "",
        "`return_code` is the file in the job directory that Pulsar's job script writes after the "
        "tool. *Absent* also means that it is there and holds no number (a full disk). The script "
        "itself exits with 0 whatever the tool returned, so what Slurm says of the script and what "
        "`return_code` says of the tool are two things.",
        "",
        "`status` is Pulsar's. Cause, fault and `runner_state` are sent with `failed` only; "
        "[reasons.md](reasons.md) explains the words. No value in these columns: no key is sent.",
        "",
        "## Ends",
        "",
        *ends_table("Slurm says", end_situations()),
        "",
        "The same holds when sacct says it, of a job that slurmctld has forgotten.",
        "",
        "`PREEMPTED`, `NODE_FAIL` and `BOOT_FAIL` are ends only where Slurm does not requeue the "
        "job. Where it does, slurmctld shows the job as `PENDING`, and it is queued again.",
        "",
        "## FAILED",
        "",
        "`FAILED` alone says little, so its exit code, its reason and what Slurm itself wrote into "
        "the job's stderr are read too.",
        "",
        *ends_table("FAILED with", failed_situations()),
        "",
        "A line in stderr counts only if Slurm wrote it: it has the prefix `slurmstepd:` (or "
        "`slurmstepd-NODE:`, `srun:`), and names this job where it names one. A tool that prints "
        "\"out of memory\" proves nothing.",
        "",
        "From sacct, a job that is `FAILED` while one of its steps is `OUT_OF_MEMORY` ended for "
        "memory.",
        "",
        "## States of a job that has not ended",
        "",
        *table(["Slurm says", "status"], ([row[0], row[2]] for row in _rows(living_situations()))),
        "",
        "*As before*: the status does not change, the job is looked at again. `after hold_grace` "
        "means: `queued` until then; then the job is cancelled in Slurm and is failed with cause "
        "`held`, fault `unknown`, `runner_state: unknown_error`.",
        "",
        "Pending reasons with which a job will never start by itself: %s."
        % ", ".join("`%s`" % word for word in stuck),
        "",
        "## Slurm does not know the job",
        "",
        "slurmctld has forgotten it, and sacct knows no end of it (or there is no accounting).",
        "",
        *ends_table("The job was", unknown_situations()),
        "",
        "## Slurm gives no answer",
        "",
        "squeue or sacct fails, takes longer than `command_timeout`, or prints something that "
        "cannot be read: every job keeps its status, and no grace is used up.",
        "",
    ])


def ends_table(first: str, situations: Iterable[Situation]) -> List[str]:
    """Return the lines of a table of outcomes."""
    headings = [first, "`return_code`", "status", "cause", "fault", "`runner_state`"]
    return table(headings, _rows(situations))


def _rows(situations: Iterable[Situation]) -> Iterator[List[str]]:
    for situation in situations:
        yield from rows_of(situation)


def table(headings: List[str], rows: Iterable[List[str]]) -> List[str]:
    """Return the lines of a Markdown table."""
    lines = [headings, ["---"] * len(headings), *rows]
    return ["| %s |" % " | ".join(cells) for cells in lines]


# --- causes -----------------------------------------------------------------------------------

WHOSE_FAULT = {
    Fault.JOB: "the job asked for too little, or is wrong: change the job or its limits",
    Fault.USER: "somebody ended it on purpose: running it again is not wanted",
    Fault.INFRASTRUCTURE: "the cluster: the same job may run well next time",
    Fault.UNKNOWN: "nothing says whose",
}
HOW_SURE = {
    Confidence.CONTROLLER: "the DRM's controller said it (Slurm: squeue, sbatch)",
    Confidence.ACCOUNTING: "accounting said it, after the controller had forgotten (Slurm: sacct)",
    Confidence.EVENT_LOG: "the DRM's event log (HTCondor; not used with Slurm)",
    Confidence.STDERR: "a line that the DRM itself wrote into the job's stderr",
    Confidence.INFERRED: "nobody said it: concluded from what was missing, or from elapsed time",
}


def reasons_page() -> str:
    """Return docs/reasons.md."""
    return "\n".join([
        "# Causes, faults and runner states",
        "",
        GENERATED,
        "",
        "`runner_state` is Galaxy's word: `resubmit` conditions can name it. "
        "`failure_reason.cause` and `.fault` are this package's finer words.",
        "",
        *table(
            ["cause", "the job ...", "fault", "`runner_state`"],
            ([cause.value, row.meaning, row.fault.value,
              "`%s`" % row.runner_state if row.runner_state else "none: no key is sent"]
             for cause, row in CAUSE_TABLE.items()),
        ),
        "",
        "## Fault",
        "",
        *table(["fault", "means"], ([fault.value, WHOSE_FAULT[fault]] for fault in Fault)),
        "",
        "## Confidence",
        "",
        *table(["confidence", "where the decisive detail was read"],
               ([confidence.value, HOW_SURE[confidence]] for confidence in Confidence)),
        "",
        "## Messages",
        "",
        "`runner_state_message` is one sentence for the scientist. For a job with a limit of an "
        "hour and 4 GB on `node7`, and no more detail than the cause:",
        "",
        *table(["cause", "message"], ([cause.value, _message(cause)] for cause, row
                                      in CAUSE_TABLE.items() if row.runner_state)),
        "",
    ])


def _message(cause: Cause) -> str:
    view = JobView(
        external_id="123", job_state="", phase=Phase.ENDED, confidence=Confidence.CONTROLLER,
        elapsed_s=3605, walltime_s=3600, node="node7")
    return write_message(
        "Slurm", cause, "", view, external_id="123",
        memory_limit_bytes=4 * 2**30 if cause is Cause.MEMORY else None)


# --- all pages --------------------------------------------------------------------------------

PAGES: Dict[str, Callable[[], str]] = {
    "slurm-ends.md": slurm_ends_page,
    "reasons.md": reasons_page,
}


def stale_pages() -> List[str]:
    """Return the generated pages that are not as the code would write them."""
    return [name for name, page in PAGES.items()
            if not (DOCS / name).is_file() or (DOCS / name).read_text() != page()]


def markdown_files() -> List[pathlib.Path]:
    """Return the pages whose links are checked."""
    return sorted(ROOT.glob("*.md")) + sorted(DOCS.glob("*.md"))


_FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(.*?)\s*$", re.MULTILINE)


def broken_links(pages: Iterable[pathlib.Path]) -> List[str]:
    """Return a line for each link to a file or heading of this checkout that is not there."""
    broken = []
    for page in pages:
        for target in _LINK.findall(_FENCE.sub("", page.read_text())):
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = target.partition("#")
            path = page.parent / name if name else page
            if not path.exists() or (anchor and anchor not in anchors(path)):
                broken.append("%s: nothing at %s" % (page.relative_to(ROOT), target))
    return broken


def anchors(page: pathlib.Path) -> List[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = _HEADING.findall(_FENCE.sub("", page.read_text()))
    return [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]


def main() -> int:
    """Write or check; return 0, or 1 where a page is stale or a link broken."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing")
    options = parser.parse_args()
    stale = stale_pages()
    for name in stale:
        if options.check:
            print("docs/%s is stale: run make docs" % name)
        else:
            DOCS.mkdir(exist_ok=True)
            (DOCS / name).write_text(PAGES[name]())
            print("wrote docs/%s" % name)
    broken = broken_links(markdown_files())
    for line in broken:
        print(line)
    if not stale and not broken:
        print("docs: %d pages, all links lead somewhere" % len(markdown_files()))
    return 1 if broken or (options.check and stale) else 0


if __name__ == "__main__":
    sys.exit(main())
