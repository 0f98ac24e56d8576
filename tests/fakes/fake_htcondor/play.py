"""Holds, evictions and accidents on demand: ``"0.5 hold 34 102 over its memory; 1 evict"``.

A list of steps, separated by ``;``. Each is ``SECONDS VERB ...``; the seconds count from the start
of the job's process or from the step before, whichever is later. A step is played once, so that a
job that is released goes on with the next one. It comes from the job's attribute ``FakePlay``
(``+FakePlay = "..."`` in the submit commands), from ``control.play``, or from the setting ``play``
for all jobs.

    hold CODE SUBCODE REASON     any hold; with the events that HTCondor writes before it. Codes
                                 that come before the job runs (7, 8, 13, 14, 32 ...) are
                                 played instead of its start
    release REASON               of a held job
    remove REASON                as condor_rm by somebody; the reason is taken as it is
    evict [REASON]               back to idle, and it runs again
    shadow_exception [MESSAGE]   likewise
    execute_again                the shadow dies: a second EXECUTE with nothing before it
    disconnect [REASON]          JOB_DISCONNECTED; the job runs on, its end is not told before
    reconnect                    ... JOB_RECONNECTED, or
    reconnect_failed [REASON]    ... JOB_RECONNECT_FAILED, JOB_EVICTED, and it runs again
    kill SIGNAL                  a signal for the job's processes
    lose_log                     the log cannot be written from now on
    forget                       the job is neither in the queue nor in the history any more
"""

import os
import signal

from fake_htcondor import changes, events

VERBS = (
    "hold",
    "release",
    "remove",
    "evict",
    "shadow_exception",
    "execute_again",
    "disconnect",
    "reconnect",
    "reconnect_failed",
    "kill",
    "lose_log",
    "forget",
)


class PlayError(ValueError):
    """A step cannot be read; the message says which and what is allowed."""


def parse(text):
    """Return the steps of a text as (seconds, verb, rest); raise PlayError on a bad one."""
    steps = []
    for part in filter(None, (part.strip() for part in text.split(";"))):
        words = part.split(None, 2)
        try:
            seconds, verb, rest = float(words[0]), words[1], words[2] if len(words) > 2 else ""
            if verb not in VERBS:
                raise ValueError(verb)
            if verb == "hold":
                code, subcode, reason = (rest.split(None, 2) + [""])[:3]
                rest = (int(code), int(subcode), reason)
            elif verb == "kill":
                rest = int(rest)
        except (ValueError, IndexError) as error:
            raise PlayError(
                "cannot read the step %r; write SECONDS VERB ..., with one of the verbs %s "
                "(hold CODE SUBCODE REASON, kill SIGNAL)" % (part, ", ".join(VERBS))
            ) from error
        steps.append((seconds, verb, rest))
    return steps


def next_step(job, settings):
    """Return the job's next step, or None."""
    steps = parse(job["FakePlay"] or settings["play"] or "")
    played = job.extra.get("played", 0)
    return steps[played] if played < len(steps) else None


def before_start(step):
    """Tell whether a step is played instead of the start of the job's process."""
    return (
        step is not None
        and step[1] == "hold"
        and step[2][0] in changes.BEFORE_EXECUTE + changes.WITHOUT_STARTER
    )


def apply(step, job, pids=()):
    """Play one step on a job with these processes; False where the job is to be forgotten."""
    _, verb, rest = step
    job.extra["played"] = job.extra.get("played", 0) + 1
    if verb == "hold":
        code, subcode, reason = rest
        changes.hold(job, reason, code, subcode)
    elif verb == "release" and job.status == changes.HELD:
        changes.release(job, rest)
    elif verb == "remove":
        changes.remove(job, rest)
    elif verb == "evict":
        changes.put_back(job, events.evicted(rest, changes.table(job)))
    elif verb == "shadow_exception":
        changes.put_back(
            job,
            events.shadow_exception(
                rest or "Can no longer talk to condor_starter <127.0.0.1:9618>"
            ),
        )
    elif verb == "execute_again":
        changes.put_back(job)
    elif verb == "disconnect":
        job.extra["disconnected"] = True
        reason = rest or "Socket between submit and execute hosts closed unexpectedly"
        changes.log(job, events.disconnected(reason, changes.slot(job), changes.STARTD))
    elif verb == "reconnect":
        job.extra["disconnected"] = False
        changes.log(
            job,
            events.reconnected(changes.slot(job), changes.STARTD, changes.ADDRESS % "slot1_1_fake"),
        )
    elif verb == "reconnect_failed":
        job.extra["disconnected"] = False
        reason = rest or "Job not found at execution machine"
        changes.put_back(
            job,
            events.reconnect_failed(reason, changes.slot(job)),
            events.evicted("", changes.table(job)),
        )
    elif verb == "kill":
        for pid in pids:
            try:
                os.kill(pid, signal.Signals(rest))
            except ProcessLookupError:
                pass
    elif verb == "lose_log":
        job.extra["log"] = job["UserLog"]
        job.set(UserLog="/proc/nowhere/job.log")
    return verb != "forget"
