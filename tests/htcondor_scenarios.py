"""Scenarios for an HTCondor pool, real or simulated, whose answers have to be the same.

``python -m tests.htcondor_scenarios WORKDIR [NAME ...]`` plays them with the ``htcondor2`` that
comes first on ``sys.path``, all at once, and prints one JSON object: what each saw.
tests/real/test_htcondor_contract.py compares the two, and with a recording of a real pool
(tests/data/htcondor/contract.json; ``python -m tests.real.test_htcondor_contract`` makes it anew).

A scenario is a generator: it submits, yields conditions to wait for, acts, and returns what it saw.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from pathlib import Path
from typing import Any, Callable, Dict, Generator, List, Optional

import htcondor2

DEADLINE_S = 600
LEFT_OUT = ("IMAGE_SIZE", "FILE_TRANSFER", "JOB_AD_INFORMATION")
TOLD = (
    "ReturnValue",
    "TerminatedBySignal",
    "TerminatedNormally",
    "TerminatedAndRequeued",
    "HoldReasonCode",
    "HoldReasonSubCode",
    "HoldReason",
    "Reason",
)
AD = (
    "JobStatus",
    "HoldReason",
    "HoldReasonCode",
    "HoldReasonSubCode",
    "LastHoldReasonCode",
    "LastHoldReasonSubCode",
    "ReleaseReason",
    "RemoveReason",
    "ExitCode",
    "ExitSignal",
    "ExitBySignal",
    "NumJobCompletions",
)
TOTALS = ("Success", "Error", "NotFound", "BadStatus", "AlreadyDone", "PermissionDenied")
Condition = Callable[[], bool]
Scenario = Generator[Condition, None, Any]
RUNNING, COMPLETED, HELD = 2, 4, 5
SLEEP = "exec sleep 1800"


class Job:
    """One submitted job, its log and its ad."""

    def __init__(self, work: Path, script: str, spool: bool = False, **commands: str) -> None:
        work.mkdir()
        path = work / "job.sh"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        self.work, self.log = work, work / "job.log"
        given = {
            "executable": str(path),
            "initialdir": str(work),
            "log": str(self.log),
            "output": "job.out",
            "error": "job.err",
            "should_transfer_files": "NO",
            "request_memory": "64",
            "request_disk": "1024",
        }
        given.update(commands)
        self.schedd = htcondor2.Schedd()
        self.result = self.schedd.submit(htcondor2.Submit(given), spool=spool)
        self.cluster = self.result.cluster()
        self.id = f"{self.cluster}.0"

    def events(self) -> List[Any]:
        """All events so far, without those that only measure."""
        if not self.log.is_file():
            return []
        reader = htcondor2.JobEventLog(str(self.log))
        found = [event for event in reader.events(0) if event.type.name not in LEFT_OUT]
        reader.close()
        return found

    def has(self, name: str, times: int = 1) -> Condition:
        """The log holds such an event (so often)."""
        return lambda: [event.type.name for event in self.events()].count(name) >= times

    def ad(self) -> Optional[Any]:
        """The ad in the queue, or None."""
        found = self.schedd.query(f"ClusterId == {self.cluster}")
        return found[0] if found else None

    def status(self, wanted: int) -> Condition:
        """The job in the queue has this JobStatus."""
        return lambda: (self.ad() or {}).get("JobStatus") == wanted

    def past(self) -> Optional[Any]:
        """The ad in the history, or None."""
        found = self.schedd.history(f"ClusterId == {self.cluster}", match=1)
        return found[0] if found else None

    def act(self, action: str, reason: Any = None, spec: Any = None) -> Dict[str, int]:
        """Act on it; return the totals."""
        chosen = self.id if spec is None else spec
        totals = self.schedd.act(getattr(htcondor2.JobAction, action), chosen, reason)
        return {name: totals[f"Total{name}"] for name in TOTALS if totals[f"Total{name}"]}

    def clean(self, text: str) -> str:
        """A text without what differs from pool to pool."""
        text = text.replace(str(self.work), "WORK").replace(str(self.work.parent), "PARENT")
        text = re.sub(r"[^ ]*/execute/dir_\w+", "SCRATCH", text)
        text = re.sub(r"slot\d+(_\d+)?@localhost", "SLOT", text)
        text = re.sub(r"\(by user \w+\)", "(by user ME)", text)
        return re.sub(r"<127[^>]*>", "ADDRESS", text)

    def seen(self, **more: Any) -> Dict[str, Any]:
        """What can be seen of it now: events, ad, and where the ad is."""
        events = []
        for event in self.events():
            told = {name: event[name] for name in TOLD if name in event}
            events.append([event.type.name, {k: self._value(v) for k, v in told.items()}])
        ad, where = self.ad(), "queue"
        if ad is None:
            ad, where = self.past(), "history"
        shown = {n: self._value(ad[n]) for n in AD if n in ad} if ad is not None else None
        return {"events": events, "where": where if shown else None, "ad": shown, **more}

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.clean(value)
        plain = isinstance(value, (int, float, bool)) and type(value).__name__ != "Value"
        return value if plain else repr(value)


def ends(script: str, event: str, **commands: str) -> Callable[[Path], Scenario]:
    """Return a scenario: submit, wait for an event of the log (and for the ad to follow)."""

    def play(work: Path) -> Scenario:
        job = Job(work, script, **commands)
        yield job.has(event)
        if event == "JOB_HELD":
            yield job.status(HELD)
        else:
            yield lambda: job.past() is not None
        return job.seen()

    return play


def user_hold_and_release(work: Path) -> Scenario:
    """Held by a user with text and code, twice, released twice, and run to its end."""
    go = work / "go"
    job = Job(work, f"while [ ! -e {go} ]; do sleep 0.1; done; exit 5")
    yield job.has("EXECUTE")
    acts = [job.act("Hold", ("for now", 7)), job.act("Hold", ("again", 7))]
    yield job.has("JOB_HELD")
    held = job.seen()
    acts.append(job.act("Release", ("go on", 0)))
    yield job.has("EXECUTE", 2)
    acts.append(job.act("Release", ("go on", 0)))
    go.touch()
    yield job.has("JOB_TERMINATED")
    yield lambda: job.past() is not None
    return job.seen(acts=acts, held=held)


def acted(
    action: str, event: str, reason: Any = None, **commands: str
) -> Callable[[Path], Scenario]:
    """Return a scenario: an action on a running job (an idle one with ``requirements``)."""

    def play(work: Path) -> Scenario:
        job = Job(work, SLEEP, **commands)
        yield job.has("SUBMIT" if "requirements" in commands else "EXECUTE")
        acts = [job.act(action, reason)]
        yield job.has(event)
        if event == "JOB_HELD":
            yield job.status(HELD)
        elif event == "JOB_ABORTED":
            yield lambda: job.past() is not None
        return job.seen(acts=acts)

    return play


def totals_of_a_job_that_is_gone(work: Path) -> Scenario:
    """act does not raise for a job that has ended; what it counts depends on how it is named."""
    job = Job(work, "exit 0")
    yield lambda: job.past() is not None
    named = {"c.p": job.id, "list": [job.id], "c": str(job.cluster), "int": job.cluster}
    named["constraint"] = f"ClusterId == {job.cluster}"
    acts = {name: job.act("Remove", None, spec) for name, spec in named.items()}
    return {"acts": acts, "query": list(job.schedd.query(f"ClusterId == {job.cluster}"))}


def removed_x(work: Path) -> Scenario:
    """RemoveX is for jobs that were removed and whose processes do not go."""
    job = Job(work, "trap '' TERM; touch ready; while :; do sleep 1; done")
    yield (work / "ready").exists
    acts = [job.act("RemoveX", ("too early", 0)), job.act("Remove", ("first", 0))]
    status = (job.ad() or {}).get("JobStatus")
    acts.append(job.act("RemoveX", ("at once", 0)))
    yield lambda: job.past() is not None
    return {"acts": acts, "between": status, "events": job.seen()["events"]}


def input_too_big(work: Path) -> Scenario:
    """Known at submission to be more than may be transferred: held before it runs."""
    big = work.with_name("big.in")
    big.write_bytes(bytes(2_000_000))
    job = Job(
        work,
        "",
        should_transfer_files="YES",
        transfer_input_files=str(big),
        max_transfer_input_mb="1",
    )
    yield job.has("JOB_HELD")
    yield job.status(HELD)
    return job.seen()


def vacated(work: Path) -> Scenario:
    """Evicted by a user: it runs again."""
    job = Job(work, SLEEP)
    yield job.has("EXECUTE")
    acts = [job.act("Vacate")]
    yield job.has("EXECUTE", 2)
    return {"acts": acts, "events": job.seen()["events"]}


def suspended(work: Path) -> Scenario:
    """Suspended and continued."""
    job = Job(work, SLEEP)
    yield job.has("EXECUTE")
    acts = [job.act("Suspend")]
    yield job.has("JOB_SUSPENDED")
    acts.append(job.act("Continue"))
    yield job.has("JOB_UNSUSPENDED")
    return {"acts": acts, "events": job.seen()["events"]}


def periodic_release(work: Path) -> Scenario:
    """Held and released by its own policy; it ends by itself only after it was held."""
    job = Job(
        work,
        "until [ -e go ]; do sleep 0.1; done",
        periodic_hold="NumJobStarts == 0 && JobStatus == 2",
        periodic_release="HoldReasonCode == 3",
    )
    yield job.has("JOB_HELD")
    (work / "go").touch()
    yield job.has("JOB_TERMINATED")
    yield lambda: job.past() is not None
    return job.seen()


def submitted_on_hold(work: Path) -> Scenario:
    """No JOB_HELD is written for it."""
    job = Job(work, "exit 0", hold="true")
    yield job.status(HELD)
    before = job.seen()
    acts = [job.act("Release")]
    yield lambda: job.past() is not None
    return job.seen(before=before, acts=acts)


def spooled(work: Path) -> Scenario:
    """Held with 16 until its files have come, in the queue until its output is fetched."""
    job = Job(work, "exit 0", spool=True, should_transfer_files="YES")
    yield job.status(HELD)
    before = job.seen()["ad"]
    acts = [job.act("Release")]
    job.schedd.spool(job.result)
    yield job.status(COMPLETED)
    ad = job.ad()
    after = {name: repr(ad[name]) for name in ("HoldReason", "HoldReasonCode") if name in ad}
    job.schedd.retrieve(job.id)
    yield lambda: job.past() is not None
    return {"before": before, "acts": acts, "after": after, "last": ad.get("LastHoldReasonCode")}


def folder_removed_before_start(work: Path) -> Scenario:
    """The working directory vanishes between submission and start."""
    folder = work.with_name("gone")
    folder.mkdir()
    job = Job(work, "exit 0", initialdir=str(folder), hold="true")
    folder.rmdir()
    yield job.status(HELD)
    job.act("Release")
    yield job.has("JOB_HELD")
    yield job.status(HELD)
    return job.seen()


def log_unwritable(work: Path) -> Scenario:
    """A job whose log cannot be written runs to its end; only the history knows."""
    job = Job(work, "exit 6", log="/proc/nowhere/job.log")
    yield lambda: job.past() is not None
    return job.seen()


def never_matches(work: Path) -> Scenario:
    """Idle for ever."""
    job = Job(work, "exit 0", requirements="false")
    yield job.has("SUBMIT")
    return job.seen()


def left_in_queue(work: Path) -> Scenario:
    """A job that stays in the queue after its end."""
    job = Job(work, "exit 6", leave_in_queue="true")
    yield job.has("JOB_TERMINATED")
    yield job.status(COMPLETED)
    return job.seen()


def several_procs(work: Path) -> Scenario:
    """A cluster of three jobs."""
    work.mkdir()
    log = work / "job.log"
    submit = htcondor2.Submit(
        {"executable": "/bin/true", "log": str(log), "should_transfer_files": "NO"}
    )
    result = htcondor2.Schedd().submit(submit, count=3)
    schedd = htcondor2.Schedd()
    yield lambda: len(schedd.history(f"ClusterId == {result.cluster()}")) == 3
    past = schedd.history(f"ClusterId == {result.cluster()}", ["ProcId"])
    shape = [result.num_procs(), result.first_proc(), int(result) == result.cluster()]
    return {"shape": shape, "procs": sorted(ad["ProcId"] for ad in past)}


def ads_have_expressions(work: Path) -> Scenario:
    """Some attributes come as expressions, to be evaluated; absent ones are absent."""
    job = Job(work, SLEEP, periodic_hold="false")
    yield job.status(RUNNING)
    yield lambda: "MemoryUsage" in (job.ad() or {})
    ad = job.ad()
    few = job.schedd.query(f"ClusterId == {job.cluster}", ["ClusterId", "JobStatus", "HoldReason"])
    kinds = {n: type(ad[n]).__name__ for n in ("Requirements", "MemoryUsage", "JobStatus", "Cmd")}
    return {
        "kinds": kinds,
        "memory": isinstance(ad.eval("MemoryUsage"), int),
        "none": ad.get("HoldReason"),
        "projection": sorted(few[0].keys()),
        "any_case": ad["jobstatus"],
        "limited": len(job.schedd.query("true", ["ClusterId"], limit=1)),
    }


def edited(work: Path) -> Scenario:
    """An attribute is changed; one that was not there is added."""
    job = Job(work, "exit 0", requirements="false")
    yield job.status(1)
    flags = htcondor2.TransactionFlag.Default
    counts = [job.schedd.edit(job.id, "RequestMemory", "3000", flags)]
    counts.append(job.schedd.edit(f"ClusterId == {job.cluster}", "SiteRetries", "1"))
    yield lambda: "SiteRetries" in (job.ad() or {})
    ad = job.ad()
    return {"counts": counts, "ad": [ad["RequestMemory"], ad["SiteRetries"]]}


def refusals(work: Path) -> Scenario:
    """What the bindings raise, and when."""
    schedd = htcondor2.Schedd()
    submit = htcondor2.Submit
    calls: Dict[str, Callable[[], Any]] = {
        "bare action": lambda: schedd.act(3, "1.0"),
        "float job": lambda: schedd.act(htcondor2.JobAction.Hold, 1.5),
        "list of ints": lambda: schedd.act(htcondor2.JobAction.Hold, [1]),
        "list of words": lambda: schedd.act(htcondor2.JobAction.Hold, ["x"]),
        "bad constraint": lambda: schedd.query("ClusterId == "),
        "edit nothing": lambda: schedd.edit("999999.0", "JobPrio", "1"),
        "schedd of text": lambda: htcondor2.Schedd("<127.0.0.1:1>"),
        "newline": lambda: submit({"executable": "/bin/true\nqueue"}),
        "queue key": lambda: submit({"queue": "1"}),
        "None value": lambda: submit({"executable": None}),
        "no executable": lambda: schedd.submit(submit({"log": "x"})),
        "no folder": lambda: schedd.submit(
            submit({"executable": "/bin/true", "initialdir": "/nonexistent"})
        ),
        "bad expression": lambda: schedd.submit(
            submit({"executable": "/bin/true", "periodic_hold": "time( > 3"})
        ),
        "unknown schedd": lambda: htcondor2.Collector().locate(
            htcondor2.DaemonType.Schedd, "no@no"
        ),
        "nothing queued": lambda: schedd.query("ClusterId == 999999"),
        "nothing past": lambda: schedd.history("ClusterId == 999999"),
    }
    found = {}
    for name, call in calls.items():
        try:
            found[name] = repr(call())
        except Exception as error:  # noqa: B902 - their types are what is compared
            found[name] = type(error).__name__
    yield lambda: True
    return found


OUTPUT = "when_to_transfer_output"
BIG = "head -c 2000000 /dev/zero > big.out"
EAT = f"exec {sys.executable} -c 'import time; x = bytearray(150_000_000); time.sleep(1800)'"
AFTER_2_S = "JobStatus == 2 && time() - JobCurrentStartDate > 2"
SCENARIOS: Dict[str, Callable[[Path], Scenario]] = {
    "exit_0": ends("exit 0", "JOB_TERMINATED"),
    "exit_3": ends("exit 3", "JOB_TERMINATED"),
    "signal_9": ends("kill -9 $$", "JOB_TERMINATED"),
    "signal_11": ends("kill -11 $$", "JOB_TERMINATED"),
    "job_policy": ends(
        SLEEP,
        "JOB_HELD",
        periodic_hold=AFTER_2_S,
        periodic_hold_reason='"over its walltime"',
        periodic_hold_subcode="42",
    ),
    "job_policy_without_words": ends(SLEEP, "JOB_HELD", periodic_hold=AFTER_2_S),
    "system_policy": ends(SLEEP, "JOB_HELD", **{"My.SiteHold": "True"}),
    "execute_duration": ends(
        SLEEP, "JOB_HELD", should_transfer_files="YES", allowed_execute_duration="2"
    ),
    "job_duration": ends(SLEEP, "JOB_HELD", allowed_job_duration="2"),
    "startd_memory": ends(EAT, "JOB_HELD"),
    "executable_missing": ends("", "JOB_HELD", executable="/nonexistent/program"),
    "executable_forbidden": ends("", "JOB_HELD", executable="/etc/passwd"),
    "stdin_missing": ends("", "JOB_HELD", input="/nonexistent/input"),
    "stdout_unwritable": ends("", "JOB_HELD", output="/proc/nowhere/out"),
    "folder_removed_before_start": folder_removed_before_start,
    "input_missing": ends(
        "", "JOB_HELD", should_transfer_files="YES", transfer_input_files="/nonexistent/input"
    ),
    "input_too_big": input_too_big,
    "output_missing": ends(
        "exit 0",
        "JOB_HELD",
        should_transfer_files="YES",
        transfer_output_files="nothing.txt",
        **{OUTPUT: "ON_EXIT"},
    ),
    "output_too_big": ends(
        BIG,
        "JOB_HELD",
        should_transfer_files="YES",
        max_transfer_output_mb="1",
        **{OUTPUT: "ON_EXIT"},
    ),
    "transfer_ok": ends("exit 4", "JOB_TERMINATED", should_transfer_files="YES"),
    "periodic_remove": ends(SLEEP, "JOB_ABORTED", periodic_remove=AFTER_2_S),
    "periodic_release": periodic_release,
    "on_exit_hold": ends(
        "exit 9",
        "JOB_HELD",
        on_exit_hold="ExitCode == 9",
        on_exit_hold_reason='"nine"',
        on_exit_hold_subcode="7",
    ),
    "max_retries": ends("exit 9", "JOB_TERMINATED", max_retries="1"),
    "removed": acted("Remove", "JOB_ABORTED", ("not wanted", 0)),
    "removed_reason_lost": acted("Remove", "JOB_ABORTED", "text alone"),
    "removed_without_reason": acted("Remove", "JOB_ABORTED"),
    "removed_x": removed_x,
    "removed_idle": acted("Remove", "JOB_ABORTED", requirements="false"),
    "held_reason_lost": acted("Hold", "JOB_HELD", "text alone"),
    "held_without_reason": acted("Hold", "JOB_HELD"),
    "held_idle": acted("Hold", "JOB_HELD", ("waits", 3), requirements="false"),
    "user_hold_and_release": user_hold_and_release,
    "totals_of_a_job_that_is_gone": totals_of_a_job_that_is_gone,
    "vacated": vacated,
    "suspended": suspended,
    "submitted_on_hold": submitted_on_hold,
    "spooled": spooled,
    "log_unwritable": log_unwritable,
    "never_matches": never_matches,
    "left_in_queue": left_in_queue,
    "several_procs": several_procs,
    "ads_have_expressions": ads_have_expressions,
    "edited": edited,
    "refusals": refusals,
}


def _holds(condition: Condition) -> bool:
    """Tell whether a condition holds; it does not yet where a stall ended its question."""
    try:
        return condition()
    except htcondor2.HTCondorException:
        return False


def play_all(work: Path, names: List[str], deadline_s: float = DEADLINE_S) -> Dict[str, Any]:
    """Play scenarios side by side; return what each saw, or where it was stuck."""
    playing = {name: SCENARIOS[name](work / name) for name in names}
    waiting: Dict[str, Condition] = {name: lambda: True for name in names}
    seen: Dict[str, Any] = {}
    end = time.monotonic() + deadline_s
    while playing:
        for name in list(playing):
            try:
                while _holds(waiting[name]):
                    waiting[name] = next(playing[name])
            except StopIteration as stop:
                seen[name] = stop.value
                del playing[name]
        if time.monotonic() > end:
            seen.update({name: "did not come to its end" for name in playing})
            break
        time.sleep(0.1)
    return seen


def main(arguments: List[str]) -> int:
    """Play the named scenarios (all when none is named); print what they saw as JSON."""
    names = arguments[1:] or list(SCENARIOS)
    os.chdir(arguments[0])
    seen = play_all(Path(arguments[0]), names)
    schedd = htcondor2.Schedd()
    schedd.act(htcondor2.JobAction.Remove, "true")
    json.dump(seen, sys.stdout, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
