"""docs/slurm-ends.md, from the code."""

from __future__ import annotations

from dataclasses import replace
from typing import Iterator, Optional

from pulsar_failure_reasons.drm.base import JobView, Phase
from pulsar_failure_reasons.drm.slurm import SlurmState, classify_stderr, describe_state
from pulsar_failure_reasons.reason import Confidence
from tools.doc_tables import EXTERNAL_ID, GENERATED, Situation, ends_table, rows_of_all, table

MEMORY_LINE = "slurmstepd: error: Exceeded job memory limit"
OOM_LINE = "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=4.batch."


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


def end_situations() -> Iterator[Situation]:
    """Yield each state with which a Slurm job ends, and the ways in which the vague ones do."""
    for state in SlurmState:
        if view_of(state.value).phase is not Phase.ENDED or state is SlurmState.FAILED:
            continue
        yield Situation("`%s`" % state.value, view_of(state.value))
        if state is SlurmState.CANCELLED:
            yield Situation("`CANCELLED`, and Slurm wrote that it killed for memory",
                            view_of(state.value), classify_stderr(MEMORY_LINE, EXTERNAL_ID))


def failed_situations() -> Iterator[Situation]:
    """Yield the ways in which a job is FAILED, which alone says little."""
    def failed(text: str, stderr: str = "", **shown: object) -> Situation:
        finding = classify_stderr(stderr, EXTERNAL_ID) if stderr else None
        return Situation(text, view_of("FAILED", **shown), finding)  # type: ignore[arg-type]

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
        *table(["Slurm says", "status"],
               ([row[0], row[2]] for row in rows_of_all(living_situations()))),
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
