"""Jobs that slurmctld no longer knows: accounting, its lag, its absence, and the graces."""

from __future__ import annotations

import json
import shutil
import time
from typing import List

import pytest

from tests.pulsar_server import wait_until
from tests.simulated import control

from .conftest import MakePulsar
from .harness import Pulsar, Slurm, reason_of

FORGOTTEN = "--comment=fake:min_job_age=0"
#: Slurm's own last line in the stderr of a job goes nowhere.
QUIET = "ln -sf /dev/null ../metadata/job_stderr; sleep 600"


@pytest.mark.parametrize("accounting", ["auto", "none"])
def test_accounting_off(
    make_pulsar: MakePulsar, slurm: Slurm, accounting: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Without accounting: complete with a return code; else inferred from the time, or lost."""
    slurm.set(accounting="off")
    pulsar = make_pulsar(accounting=accounting)
    pulsar.submit("well", "sh -c 'exit 3'", FORGOTTEN)
    pulsar.submit("limit", "sleep 600", f"-t 1 {FORGOTTEN}")
    pulsar.submit("lost", "kill -9 $$", f"-t 6000 {FORGOTTEN}")
    assert (pulsar.end("well")["status"], pulsar.end("well")["returncode"]) == ("complete", 3)
    limit = pulsar.end("limit")
    assert reason_of(limit) == "walltime"
    # Slurm's own line in the job's stderr tells; without it the time would (next test).
    assert limit["failure_reason"]["confidence"] == "stderr"
    lost = pulsar.end("lost")
    assert (reason_of(lost), lost["failure_reason"]["confidence"]) == ("lost", "inferred")
    told = [r for r in caplog.records if "can only be inferred" in r.getMessage()]
    assert len(told) == (1 if accounting == "auto" else 0)


def test_accounting_none_is_never_asked(make_pulsar: MakePulsar, slurm: Slurm) -> None:
    """accounting: none runs no sacct, although it would answer."""
    pulsar = make_pulsar(accounting="none")
    pulsar.submit("1", "kill -9 $$", FORGOTTEN)
    assert reason_of(pulsar.end("1")) == "lost"
    assert slurm.commands("sacct") == []


def test_walltime_inferred_without_any_word_of_slurm(
    make_pulsar: MakePulsar, slurm: Slurm
) -> None:
    """Last seen running, its limit over when first missed, no record, no line: walltime."""
    slurm.set(time_scale=1)
    pulsar = make_pulsar(accounting="none")
    external_id = pulsar.submit("1", QUIET, f"{FORGOTTEN},limit_slack=3600")
    control.change(slurm.state, external_id, time_limit=3)
    pulsar.wait_for("1", "running")
    pulsar.wait_for_looks(1)
    # Nobody looks while the job is killed and forgotten: the next look finds it missing.
    with pulsar.unseen():
        control.change(slurm.state, external_id, options={"min_job_age": 0})
        slurm.wait_for(external_id, "TIMEOUT")
        ended = time.monotonic()
        wait_until(lambda: time.monotonic() > ended + 1.1, 60, "a look that is late enough")
    payload = pulsar.end("1")
    assert reason_of(payload) == "walltime"
    assert payload["failure_reason"]["confidence"] == "inferred"


def test_accounting_is_not_optional_where_the_operator_said_so(
    make_pulsar: MakePulsar, slurm: Slurm, caplog: pytest.LogCaptureFixture
) -> None:
    """accounting: sacct and accounting is off: no job is ended for it; logged once."""
    slurm.set(accounting="off")
    pulsar = make_pulsar(accounting="sacct")
    slurm.wait_for(pulsar.submit("1", "kill -9 $$", FORGOTTEN), "FAILED")
    pulsar.wait_for_looks(8)
    assert pulsar.status("1") in ("queued", "running")
    told = [r for r in caplog.records if "accounting gave no usable answer" in r.getMessage()]
    assert len(told) == 1
    slurm.set(accounting="on")
    assert reason_of(pulsar.end("1")) == "unknown"
    assert "Slurm accounting answers again" in caplog.text


def test_slurmdbd_down_changes_no_status(
    make_pulsar: MakePulsar, slurm: Slurm, caplog: pytest.LogCaptureFixture
) -> None:
    """A query of accounting that fails uses up no grace and ends no job."""
    slurm.set(accounting="down")
    pulsar = make_pulsar()
    slurm.wait_for(pulsar.submit("1", "kill -9 $$", FORGOTTEN), "FAILED")
    pulsar.wait_for_looks(8)
    assert pulsar.status("1") in ("queued", "running")
    slurm.set(accounting="on")
    payload = pulsar.end("1")
    assert (reason_of(payload), payload["failure_reason"]["confidence"]) == (
        "unknown", "accounting")
    told = [r for r in caplog.records if "accounting gave no usable answer" in r.getMessage()]
    assert len(told) == 1


@pytest.mark.parametrize("shows", ["absent", "pending", "running"])
def test_sacct_lag_is_waited_for(make_pulsar: MakePulsar, shows: str) -> None:
    """Within the grace a lagging sacct is asked again; its last word counts, not its first."""
    pulsar = make_pulsar(missing_grace=20)
    lag = f"accounting_lag=0.7,accounting_lag_shows={shows}"
    pulsar.submit("1", "sleep 600", f"-t 1 {FORGOTTEN},{lag}")
    payload = pulsar.end("1")
    assert (reason_of(payload), payload["failure_reason"]["confidence"]) == (
        "walltime", "accounting")


def test_return_code_that_shows_up_late(pulsar: Pulsar, slurm: Slurm) -> None:
    """Slurm says COMPLETED, a shared file system shows return_code later: complete."""
    pulsar.shutdown()
    late = Pulsar(pulsar.staging.parent, manager={"missing_grace": 60})
    try:
        external_id = late.submit("1", "exit 0")
        slurm.wait_for(external_id, "COMPLETED")
        late.wait_for_looks(4)
        assert late.status("1") in ("queued", "running")
        (late.directory("1") / "return_code").write_text("0\n")
        payload = late.end("1")
        assert (payload["status"], payload["returncode"]) == ("complete", 0)
    finally:
        late.shutdown()


def test_grace_is_not_over_before_its_time(make_pulsar: MakePulsar, slurm: Slurm) -> None:
    """missing_grace shorter than the interval between looks still gives that much time."""
    pulsar = make_pulsar(missing_grace=1, status_poll_interval=0.5)
    policy = pulsar.manager().policy("1")
    # Answers at 0, 0.5 and 1 s: only the third comes after a whole second.
    assert policy.missing_answers == 3
    short = make_pulsar(missing_grace=0.1, status_poll_interval=0.5)
    assert short.manager().policy("1").missing_answers == 2
    none = make_pulsar(missing_grace=0, hold_grace=1, status_poll_interval=0.5)
    assert none.manager().policy("1").missing_answers == 1
    assert none.manager().policy("1").stuck_answers == 3


def test_return_code_file_without_a_number(pulsar: Pulsar) -> None:
    """An empty or damaged return_code (a full disk) counts as absent and breaks no JSON."""
    contents = {"1": "", "2": "\\n", "3": "junk", "4": "\\000"}
    for job_id, content in contents.items():
        pulsar.submit(job_id, f"printf '{content}' > ../return_code; exit 0")
    for job_id in contents:
        payload = json.loads(json.dumps(pulsar.end(job_id)))
        assert (payload["status"], reason_of(payload), payload["returncode"]) == (
            "failed", "lost", None)


def test_all_jobs_forgotten_and_ids_used_again(pulsar: Pulsar, slurm: Slurm) -> None:
    """slurmctld -c and its ids start again: another job's fate is not ours."""
    external_id = pulsar.submit("old", QUIET, "-t 6000")
    pulsar.wait_for("old", "running")
    with pulsar.unseen():
        control.forget_all(slurm.state)
        # Another job of ours has ended well under the very same id.
        control.change(
            slurm.state, external_id, name="pulsar_new", forgotten=False, why="exited", exit=0,
            ended_exit=0, workdir=str(pulsar.staging / "new" / "working"),
            submit=control.job(slurm.state, external_id)["submit"] + 5,
        )
    payload = pulsar.end("old")
    assert (payload["status"], reason_of(payload)) == ("failed", "lost")


def test_all_jobs_forgotten(pulsar: Pulsar, slurm: Slurm) -> None:
    """slurmctld -c: what had ended by itself is complete, what was running is lost."""
    pulsar.submit("done", "true", "--comment=fake:completing=600")
    pulsar.submit("running", "touch ../began; sleep 600", "-t 6000")
    wait_until((pulsar.directory("running") / "began").exists, 60, "the job to begin", 0.02)
    wait_until((pulsar.directory("done") / "return_code").exists, 60, "the other to end", 0.02)
    control.forget_all(slurm.state)
    assert pulsar.end("done")["status"] == "complete"
    # The simulated accounting has it as cancelled; a real one may know nothing.
    assert pulsar.end("running")["failure_reason"]["confidence"] == "accounting"


def _vanish(slurm: Slurm, ids: List[str], gone: bool) -> None:
    for external_id in ids:
        control.change(slurm.state, external_id, forgotten=gone)


def _vanish_at_once(pulsar: Pulsar, slurm: Slurm, ids: List[str], gone: bool) -> None:
    with pulsar.unseen():
        _vanish(slurm, ids, gone)


def test_whole_batch_vanishes_for_a_moment(
    make_pulsar: MakePulsar, slurm: Slurm, caplog: pytest.LogCaptureFixture
) -> None:
    """A controller started without its state, and given it back: no job ends, one warning."""
    slurm.set(accounting="off")
    pulsar = make_pulsar(missing_grace=60, accounting="none")
    ids = [pulsar.submit(str(n), "sleep 600", "-t 600") for n in range(3)]
    ids.append(pulsar.submit("queued", "true", "--comment=fake:start_delay=600"))
    for n in range(3):
        pulsar.wait_for(str(n), "running")
    pulsar.wait_for_looks(2)
    _vanish_at_once(pulsar, slurm, ids, True)
    pulsar.wait_for_looks(4)
    assert [pulsar.status(str(n)) for n in range(3)] == ["running"] * 3
    assert pulsar.status("queued") == "queued"
    _vanish_at_once(pulsar, slurm, ids, False)
    pulsar.wait_for_looks(2)
    assert [pulsar.status(str(n)) for n in range(3)] == ["running"] * 3
    told = [r.getMessage() for r in caplog.records if "lists none of the" in r.getMessage()]
    assert len(told) == 1 and "lists none of the 4 jobs any more" in told[0]
    # What was missed before does not count: the grace begins anew.
    assert {watch._history.missing for watch in pulsar.manager()._watches.values()} == {0}


def test_whole_batch_is_gone(make_pulsar: MakePulsar, slurm: Slurm) -> None:
    """After the grace what ran is lost, never cancelled; what waited is cancelled, never lost."""
    pulsar = make_pulsar(accounting="none")
    ids = [pulsar.submit(str(n), "touch ../began; sleep 600", "-t 600") for n in range(2)]
    ids.append(pulsar.submit("queued", "true", "--comment=fake:start_delay=600"))
    for n in range(2):
        wait_until((pulsar.directory(str(n)) / "began").exists, 60, "it to begin", 0.02)
        pulsar.wait_for(str(n), "running")
    _vanish(slurm, ids, True)
    ends = {name: pulsar.end(name) for name in ("0", "1", "queued")}
    assert {name: (end["status"], reason_of(end)) for name, end in ends.items()} == {
        "0": ("failed", "lost"), "1": ("failed", "lost"), "queued": ("failed", "cancelled")}
    assert ends["queued"]["runner_state_message"] == (
        f"cancelled outside Galaxy: it had not begun when Slurm forgot it (Slurm job {ids[2]})")


def test_gone_while_pulsar_was_down(make_pulsar: MakePulsar, slurm: Slurm) -> None:
    """At the start: running by Pulsar's own word, or begun by the script's traces, is lost."""
    first = make_pulsar(accounting="none")
    ids = {name: first.submit(name, "touch ../began; sleep 600", "-t 600")
           for name in ("told", "untold")}
    ids["waited"] = first.submit("waited", "true", "--comment=fake:start_delay=600")
    first.wait_for("told", "running")
    for name in ("told", "untold"):
        wait_until((first.directory(name) / "began").exists, 60, f"{name} to begin", 0.02)
    assert not (first.directory("untold") / "running").exists()
    first.shutdown()
    _vanish(slurm, list(ids.values()), True)
    # Of the one only Pulsar's word is left, of the other only what its script made.
    for name in ("told", "untold"):
        (first.directory(name) / "metadata" / "job_stderr").write_text("")
    for trace in ("working.orig", "outputs.orig", "configs.orig"):
        shutil.rmtree(first.directory("told") / trace)
    (first.directory("told") / "metadata" / "tool_stdout").unlink(missing_ok=True)
    again = make_pulsar(accounting="none")
    ends = {name: reason_of(again.end(name)) for name in ids}
    assert ends == {"told": "lost", "untold": "lost", "waited": "cancelled"}
