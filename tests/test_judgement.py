"""The table of DESIGN section 3, row by row. Expected values are the table's own."""

from __future__ import annotations

from dataclasses import replace
from typing import Optional, Sequence

import pytest

from pulsar_failure_reasons.drm.base import End, Ending, JobView, Phase, StderrFinding
from pulsar_failure_reasons.history import History
from pulsar_failure_reasons.judgement import (
    JobFiles,
    JobId,
    Judgement,
    Policy,
    judge,
)
from pulsar_failure_reasons.reason import Cause, Confidence, Evidence

JOB = JobId("slurm", "Slurm", "4")
#: Two answers of patience for a missing job, three for a stuck one.
POLICY = Policy(missing_answers=2, stuck_answers=3)

WELL = End(Ending.WELL, exit_code=0)
TIMEOUT = End(Ending.LIMIT, Cause.WALLTIME)
OUT_OF_MEMORY = End(Ending.LIMIT, Cause.MEMORY)
EXIT_1 = End(Ending.BADLY, exit_code=1, signal=0)
SIGNAL_9 = End(Ending.BADLY, exit_code=0, signal=9)
#: How a shell tells that what it ran was ended by signal 9: under a site's wrapper of job scripts.
EXIT_137 = End(Ending.BADLY, exit_code=137)
NO_OUTPUT_FILE = End(Ending.BADLY, Cause.DISK, "its output file could not be opened", signal=53)
CANCELLED = End(Ending.CANCELLED, Cause.CANCELLED, cancelled_by="1000")
NODE_FAIL = End(Ending.INFRASTRUCTURE, Cause.NODE_FAILURE)
PREEMPTED = End(Ending.INFRASTRUCTURE, Cause.PREEMPTED)

MEMORY_LINE = StderrFinding(
    Cause.MEMORY,
    Evidence("job_stderr", "line", "slurmstepd: error: Exceeded job memory limit"),
    used_bytes=188964864,
    limit_bytes=52428800,
)


def view(phase: Phase = Phase.ENDED, end: Optional[End] = None, **changes: object) -> JobView:
    base = JobView(
        "4", "SOME_STATE", phase, Confidence.CONTROLLER, end=end,
        job_name="pulsar_7", submitted_at="2026-11-29T11:46:32", restarts=0, elapsed_s=62,
        walltime_s=60, memory_bytes=104857600, node="node1",
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def history(*views: Optional[JobView], step_s: float = 15.0) -> History:
    folded = History(job_name="pulsar_7")
    for number, one in enumerate(views):
        folded = folded.after(one, number * step_s)
    return folded


def judged(
    views: Sequence[Optional[JobView]],
    return_code: Optional[int] = None,
    stderr: Optional[StderrFinding] = None,
    policy: Policy = POLICY,
) -> Judgement:
    return judge(JOB, history(*views), lambda: JobFiles(return_code, stderr), policy)


def cause_of(judgement: Judgement) -> Optional[Cause]:
    return judgement.reason.cause if judgement.reason else None


@pytest.mark.parametrize(
    "end, return_code, stderr, status, cause",
    [
        pytest.param(TIMEOUT, None, None, "failed", Cause.WALLTIME, id="limit_absent"),
        pytest.param(TIMEOUT, 143, None, "failed", Cause.WALLTIME, id="limit_not_zero"),
        pytest.param(OUT_OF_MEMORY, 0, None, "failed", Cause.MEMORY, id="limit_zero_by_default"),
        pytest.param(WELL, 0, None, "complete", None, id="well_present"),
        pytest.param(WELL, 3, None, "complete", None, id="well_present_tool_exit_3"),
        pytest.param(EXIT_1, 1, None, "complete", None, id="badly_present"),
        pytest.param(EXIT_1, None, None, "failed", Cause.LAUNCH_ERROR, id="badly_absent_exit"),
        pytest.param(SIGNAL_9, None, None, "failed", Cause.UNKNOWN, id="badly_absent_signal"),
        pytest.param(EXIT_137, None, None, "failed", Cause.UNKNOWN, id="badly_absent_exit_137"),
        pytest.param(
            EXIT_137, None, MEMORY_LINE, "failed", Cause.MEMORY, id="exit_137_by_stderr"
        ),
        pytest.param(
            SIGNAL_9, None, MEMORY_LINE, "failed", Cause.MEMORY, id="overmemorykill_by_stderr"
        ),
        pytest.param(
            EXIT_1, 137, MEMORY_LINE, "failed", Cause.MEMORY, id="drm_line_is_a_limit_not_zero"
        ),
        pytest.param(EXIT_1, 0, MEMORY_LINE, "complete", None, id="drm_line_but_tool_exit_zero"),
        pytest.param(NO_OUTPUT_FILE, None, None, "failed", Cause.DISK, id="badly_absent_state"),
        pytest.param(CANCELLED, None, None, "failed", Cause.CANCELLED, id="cancelled_absent"),
        pytest.param(CANCELLED, 0, None, "failed", Cause.CANCELLED, id="cancelled_any"),
        pytest.param(
            CANCELLED, None, MEMORY_LINE, "failed", Cause.MEMORY, id="cancelled_memory_line"
        ),
        pytest.param(NODE_FAIL, None, None, "failed", Cause.NODE_FAILURE, id="node_failure"),
        pytest.param(NODE_FAIL, 0, None, "failed", Cause.NODE_FAILURE, id="node_failure_any"),
        pytest.param(PREEMPTED, None, None, "failed", Cause.PREEMPTED, id="preempted"),
    ],
)
def test_ended(
    end: End,
    return_code: Optional[int],
    stderr: Optional[StderrFinding],
    status: str,
    cause: Optional[Cause],
) -> None:
    """A row of the table: what the DRM says and the return code make status and cause."""
    judgement = judged([view(end=end)], return_code, stderr)
    assert (judgement.status, cause_of(judgement)) == (status, cause)


@pytest.mark.parametrize("return_code, status", [(0, "complete"), (1, "failed"), (None, "failed")])
def test_limit_with_zero_exit_complete(return_code: Optional[int], status: str) -> None:
    """The option blesses exactly a tool that ended with zero, nothing else."""
    policy = replace(POLICY, limit_with_zero_exit="complete")
    assert judged([view(end=OUT_OF_MEMORY)], return_code, policy=policy).status == status


def test_ended_well_without_return_code_waits_then_is_lost() -> None:
    """Ended well and no return code after the grace is a lost job, never a success."""
    assert judged([view(end=WELL)]).status is None
    judgement = judged([view(end=WELL), view(end=WELL)])
    assert (judgement.status, cause_of(judgement)) == ("failed", Cause.LOST)
    assert judgement.reason is not None
    assert "Slurm says that it ended well, but it left no exit code" in judgement.reason.message


@pytest.mark.parametrize(
    "phase, status",
    [
        (Phase.QUEUED, "queued"),
        (Phase.STUCK, "queued"),
        (Phase.RUNNING, "running"),
        (Phase.ENDING, None),
        (Phase.UNKNOWN, None),
    ],
)
def test_living_jobs(phase: Phase, status: Optional[str]) -> None:
    """A living job is never ended, and a return code of an earlier run does not bless it."""
    judgement = judged([view(phase)], return_code=0)
    assert (judgement.status, judgement.reason) == (status, None)


def test_requeued_job_is_queued_again() -> None:
    """A requeue resets the submission time and counts a restart: still our job."""
    requeued = view(Phase.QUEUED, submitted_at="2026-11-29T11:50:00", restarts=1)
    assert judged([view(Phase.RUNNING), requeued]).status == "queued"


def test_requeue_counts_before_it_resets_the_submission_time() -> None:
    """Slurm 22.05 shows a requeued job COMPLETING with the new count and the old time."""
    going = view(Phase.ENDING, restarts=1)
    requeued = view(Phase.QUEUED, submitted_at="2026-11-29T11:50:00", restarts=1)
    assert judged([view(Phase.RUNNING), going, requeued]).status == "queued"
    assert judged([going, requeued]).status == "queued"


def test_reused_id_after_a_requeue() -> None:
    """Another job under the id of one that was requeued is told by the first sighting."""
    requeued = view(Phase.QUEUED, submitted_at="2026-11-29T11:50:00", restarts=1)
    other = view(Phase.ENDED, WELL, submitted_at="2026-11-30T08:00:00", restarts=0)
    assert history(view(Phase.RUNNING), requeued, other).missing == 1


def test_stuck_job_is_removed_after_its_grace() -> None:
    """Held for good: queued until the grace is over, then removed from the DRM and failed."""
    stuck = view(Phase.STUCK, stuck_detail="launch failed requeued held")
    early = judged([stuck, stuck])
    assert (early.status, early.remove) == ("queued", False)
    late = judged([stuck, stuck, stuck])
    assert (late.status, late.remove, cause_of(late)) == ("failed", True, Cause.HELD)
    assert late.reason is not None and "launch failed requeued held" in late.reason.message


def test_a_released_job_starts_its_grace_again() -> None:
    """Stuck answers count only when they follow each other."""
    stuck = view(Phase.STUCK)
    assert judged([stuck, stuck, view(Phase.QUEUED), stuck]).status == "queued"


def test_unknown_to_drm_and_accounting() -> None:
    """As before until the grace is over; then present is complete, and absent of what ran lost."""
    seen = [view(Phase.RUNNING, elapsed_s=1), None, None]
    assert judged([None], return_code=3).status is None
    assert judged(seen, return_code=3).status == "complete"
    assert judged(seen[:2]).status is None
    judgement = judged(seen)
    assert (judgement.status, cause_of(judgement)) == ("failed", Cause.LOST)


QUEUED = view(Phase.QUEUED, elapsed_s=0)
RUNS = view(Phase.RUNNING, elapsed_s=1)


@pytest.mark.parametrize(
    "before, files, cause",
    [
        pytest.param([QUEUED], JobFiles(), Cause.CANCELLED, id="queued_to_the_last"),
        pytest.param([], JobFiles(), Cause.CANCELLED, id="no_answer_ever_showed_it"),
        pytest.param([QUEUED, RUNS], JobFiles(), Cause.LOST, id="running"),
        pytest.param([RUNS, QUEUED], JobFiles(), Cause.LOST, id="requeued_after_it_ran"),
        pytest.param([view(Phase.ENDING)], JobFiles(), Cause.LOST, id="on_its_way_out"),
        pytest.param([QUEUED], JobFiles(began=True), Cause.LOST, id="began_between_two_looks"),
        pytest.param(
            [QUEUED], JobFiles(unreadable="stale handle"), Cause.LOST, id="nobody_can_tell"),
    ],
)
def test_forgotten_job_is_cancelled_only_if_it_never_ran(
    before: Sequence[JobView], files: JobFiles, cause: Cause
) -> None:
    """Queued and gone: somebody cancelled it. What may have run is never called cancelled."""
    judgement = judge(JOB, history(*before, None, None), lambda: files, POLICY)
    assert (judgement.status, cause_of(judgement)) == ("failed", cause)
    assert judgement.reason is not None
    assert judgement.reason.confidence is Confidence.INFERRED


def test_forgotten_job_that_ran_before_pulsar_was_started() -> None:
    """Pulsar's own word that it ran counts, though no answer since has shown it."""
    seen = History(job_name="pulsar_7", has_run=True).after(None, 0.0).after(None, 15.0)
    judgement = judge(JOB, seen, JobFiles, POLICY)
    assert (judgement.status, cause_of(judgement)) == ("failed", Cause.LOST)


@pytest.mark.parametrize(
    "cut_short, said",
    [(True, "Pulsar was killed while it submitted the job, and Slurm knows no job of its name"),
     (False, "its id in Slurm is not known, nor a job of its name there")],
)
def test_job_whose_id_was_never_stored(cut_short: bool, said: str) -> None:
    """Without an id nobody knows that it waited: it is lost, and the message says how."""
    seen = History(job_name="pulsar_7", launch_cut_short=cut_short)
    seen = seen.after(None, 0.0).after(None, 15.0)
    judgement = judge(JobId("slurm", "Slurm", None), seen, JobFiles, POLICY)
    assert (judgement.status, cause_of(judgement)) == ("failed", Cause.LOST)
    assert judgement.reason is not None and said in judgement.reason.message


@pytest.mark.parametrize(
    "end, status, cause",
    [
        pytest.param(WELL, "failed", Cause.LOST, id="well"),
        pytest.param(TIMEOUT, "failed", Cause.WALLTIME, id="limit"),
        pytest.param(CANCELLED, "failed", Cause.CANCELLED, id="cancelled"),
        pytest.param(SIGNAL_9, "failed", Cause.UNKNOWN, id="badly"),
    ],
)
def test_directory_that_cannot_be_read(end: End, status: str, cause: Cause) -> None:
    """The job ends, never as a success, and the record says what could not be read."""
    files = JobFiles(unreadable="its job directory is gone")
    judgement = judge(JOB, history(view(end=end), view(end=end)), lambda: files, POLICY)
    assert (judgement.status, cause_of(judgement)) == (status, cause)
    assert judgement.reason is not None
    assert judgement.reason.evidence[-1] == Evidence(
        "job_directory", "unreadable", "its job directory is gone")
    if end is WELL:
        assert "nobody knows its exit code: its job directory is gone" in judgement.reason.message


#: Grid Engine's state dr, and what follows it.
DELETED = view(Phase.ENDING, deleted=True)


@pytest.mark.parametrize(
    "after, return_code, status, cause",
    [
        pytest.param([view(end=SIGNAL_9)], None, "failed", Cause.CANCELLED, id="killed"),
        pytest.param([view(end=SIGNAL_9)], 137, "failed", Cause.CANCELLED, id="killed_any_code"),
        pytest.param([view(end=WELL)], None, "failed", Cause.CANCELLED, id="forced_by_root"),
        pytest.param([view(end=WELL)], 0, "complete", None, id="ended_by_itself_meanwhile"),
        pytest.param([view(end=TIMEOUT)], None, "failed", Cause.WALLTIME, id="limit"),
        pytest.param([None, None], None, "failed", Cause.CANCELLED, id="no_record_ever"),
        pytest.param([None, None], 0, "complete", None, id="no_record_but_a_return_code"),
        pytest.param(
            [RUNS, view(end=SIGNAL_9)], None, "failed", Cause.UNKNOWN, id="lived_on"),
    ],
)
def test_job_that_was_seen_being_deleted(
    after: Sequence[Optional[JobView]], return_code: Optional[int], status: str,
    cause: Optional[Cause],
) -> None:
    """What accounting never tells, an earlier answer did."""
    judgement = judged([DELETED, *after], return_code)
    assert (judgement.status, cause_of(judgement)) == (status, cause)


def test_accounting_that_lags_does_not_bless_a_killed_job() -> None:
    """A limit that accounting tells one answer late beats a return code of zero."""
    late = view(end=TIMEOUT, confidence=Confidence.ACCOUNTING)
    assert judged([view(Phase.RUNNING), None], return_code=0).status is None
    assert judged([view(Phase.RUNNING), None, late], return_code=0).status == "failed"


@pytest.mark.parametrize(
    "elapsed_s, cause",
    [
        pytest.param(55, Cause.WALLTIME, id="ran_into_its_limit"),
        pytest.param(20, Cause.LOST, id="forgotten_long_before_its_limit"),
    ],
)
def test_forgotten_while_running(elapsed_s: int, cause: Cause) -> None:
    """Walltime is inferred only where the limit was over when the job was first missed."""
    judgement = judged([view(Phase.RUNNING, elapsed_s=elapsed_s), None, None])
    assert (judgement.status, cause_of(judgement)) == ("failed", cause)
    assert judgement.reason is not None
    assert judgement.reason.confidence is Confidence.INFERRED
    # Nobody knows how long it ran: what was last seen of it is not told as if it were.
    assert "walltime_s" not in judgement.reason.used
    assert "Slurm forgot it" in judgement.reason.message


def test_forgotten_but_slurm_wrote_why() -> None:
    """The DRM's own stderr line tells the end of a job that nobody remembers."""
    judgement = judged([None, None], stderr=MEMORY_LINE)
    assert judgement.reason is not None
    assert judgement.reason.cause is Cause.MEMORY
    assert judgement.reason.confidence is Confidence.STDERR


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"submitted_at": "2026-11-30T08:00:00"}, id="other_submission_same_restarts"),
        pytest.param({"job_name": "pulsar_8", "restarts": None}, id="other_name"),
        pytest.param(
            {"job_name": "pulsar_8", "submitted_at": "2026-11-30T08:00:00", "restarts": 1},
            id="other_name_and_restarts",
        ),
    ],
)
def test_reused_external_id(other: dict) -> None:
    """The DRM gave the id to another job: ours is missing, whatever the other one does."""
    seen = [view(Phase.RUNNING, elapsed_s=1), view(Phase.ENDED, WELL, **other)]
    assert judged(seen).status is None
    assert history(*seen).missing == 1


@pytest.mark.parametrize(
    "same",
    [
        pytest.param({}, id="same_submission"),
        pytest.param({"restarts": None, "workdir": "/s/7/working"}, id="in_our_directory"),
        pytest.param({"restarts": None, "workdir": "/s/7"}, id="our_directory"),
    ],
)
def test_renamed_job(same: dict) -> None:
    """A job that somebody gave another name is still ours: nothing of it is missing."""
    renamed = view(Phase.RUNNING, **{"job_name": "urgent", **same})
    seen = History(job_name="pulsar_7", job_directory="/s/7").after(view(Phase.RUNNING), 0.0)
    assert seen.after(renamed, 1.0).missing == 0


def test_renamed_job_in_a_directory_whose_name_begins_as_ours() -> None:
    """/s/77 is not in /s/7."""
    other = view(Phase.RUNNING, job_name="pulsar_77", restarts=None, workdir="/s/77/working")
    assert History(job_name="pulsar_7", job_directory="/s/7").after(other, 0.0).missing == 1


def test_message_says_limit_used_and_where() -> None:
    """The sentence of the issue: used against requested, the job and its node."""
    reason = judged([view(end=TIMEOUT)]).reason
    assert reason is not None
    assert reason.message == (
        "killed after 62 s: the job's walltime limit is 60 s (Slurm job 4, node1)"
    )
    assert reason.requested["walltime_s"] == 60
    assert reason.used["walltime_s"] == 62


def test_memory_message_takes_the_numbers_of_the_kill_line() -> None:
    """What the DRM compared when it killed is what the scientist reads."""
    reason = judged([view(end=SIGNAL_9)], stderr=MEMORY_LINE).reason
    assert reason is not None
    assert (reason.used["memory_bytes"], reason.requested["memory_bytes"]) == (188964864, 52428800)


def test_cancelled_by_is_told() -> None:
    """Who cancelled is in the reason and in its sentence."""
    reason = judged([view(end=CANCELLED)]).reason
    assert reason is not None and reason.cancelled_by == "1000"
    assert "cancelled outside Galaxy by uid 1000" in reason.message


def test_files_are_not_read_for_living_jobs() -> None:
    """A look at ten thousand running jobs must not open ten thousand files."""

    def read() -> JobFiles:
        raise AssertionError("read")

    assert judge(JOB, history(view(Phase.RUNNING)), read, POLICY).status == "running"


def test_outage_uses_up_no_grace() -> None:
    """Grace counts answers: one before and one after a long silence are two, not an hour."""
    assert judged([None]).status is None
    late = History(job_name="pulsar_7").after(None, 0.0)
    assert judge(JOB, late, JobFiles, POLICY).status is None
    assert late.after(None, 3600.0).missing == 2
