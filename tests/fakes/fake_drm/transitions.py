"""What may happen to a job: functions that change a record; the caller holds the store's lock.

A record's ``state`` is ``pending``, ``running`` or ``ended``; ``why`` says more:

pending   "" (about to start), held_user, held_admin, requeued_held, launch_failed_held, error
          (its last start failed), begin_time, dependency, dependency_never, array_limit
ended     exited, time_limit, cpu_limit, memory_limit (the kernel killed a process of it),
          memory_kill (the DRM killed it), cancelled,
          node_failure, boot_failure, preempted, deadline, output_error, lost

``exit`` is a wait status (as of ``os.waitpid``). ``ended_exit`` is the one known at the moment the
end was decided, which is what the accounting keeps. ``killing`` names why the runner has to kill
the processes. ``suspended`` names who stopped a running job: user, admin or system; the runner
stops and continues the processes. ``log`` is a list of [simulated time, what, who], ``extra`` is
for what only one DRM knows.
"""

import time

NEVER_STARTS = (
    "held_user",
    "held_admin",
    "requeued_held",
    "launch_failed_held",
    "dependency_never",
    "error",
)


def new_record(job_id, now, **values):
    """Return the record of a job just submitted. ``values`` are those the DRM's submit command
    knows."""
    record = {
        "id": job_id,
        "array_id": None,
        "task_id": None,
        "throttle": None,
        "array_size": 0,
        "name": "",
        "comment": "",
        "command": None,
        "arguments": [],
        "dialect": "",
        "user": "",
        "uid": 0,
        "group": "",
        "gid": 0,
        "account": None,
        "partition": "",
        "qos": None,
        "cluster": "",
        "workdir": "",
        "stdout": "",
        "stderr": "",
        "stdin": "/dev/null",
        "append": False,
        "cpus": 1,
        "cpus_per_task": 1,
        "ntasks": 1,
        "nodes": 1,
        "memory_mb": 0,
        "memory_per": "default",
        "time_limit": None,
        "cpu_limit": None,
        "soft_limits": [],
        "requeue": True,
        "dependency": "",
        "priority": 1,
        "usual_priority": 1,
        "node": "",
        "submit": now,
        "submit_real": time.time(),
        "begin": None,
        "end_by": None,
        "deadline": None,
        "start": None,
        "end": None,
        "state": "pending",
        "why": "",
        "waited_for": "",
        "exit": 0,
        "ended_exit": 0,
        "restarts": 0,
        "cancelled_by": None,
        "killing": None,
        "memory_exceeded": False,
        "rss_kb": 0,
        "cpu_s": 0.0,
        "script_exit": None,
        "suspended": None,
        "paused_since": None,
        "paused_s": 0.0,
        "log": [],
        "extra": {},
        "batch": None,
        "past": [],
        "runner": None,
        "session": None,
        "start_real": None,
        "end_real": None,
        "completing_until": 0,
        "requeue_real": None,
        "started": False,
        "forgotten": False,
        "erased": False,
        "options": {},
        "shown": None,
    }
    for key, value in values.items():
        if key not in record:
            raise KeyError(key)
        record[key] = value
    return record


def hold(record, why):
    """Keep a pending job from starting."""
    record["priority"] = 0
    if record["state"] == "pending":
        record["why"] = why


def release(record):
    """Let a held job start, at its begin time if it has one."""
    record["priority"] = record["usual_priority"]
    if record["state"] == "pending":
        record["why"] = ""


def wait(record, why):
    """Say what a pending job waits for; return True if that is news."""
    if record["why"] == why:
        return False
    record["why"] = why
    if why:
        record["waited_for"] = why
    return True


def start(record, now, node, session):
    """The job's script runs as process ``session`` (an identity)."""
    if record["why"]:
        record["waited_for"] = record["why"]
    record.update(
        state="running",
        why="",
        start=now,
        end=None,
        node=node,
        session=session,
        exit=0,
        ended_exit=0,
        start_real=time.time(),
        memory_exceeded=False,
        killing=None,
        batch=None,
        script_exit=None,
        suspended=None,
        paused_since=None,
        paused_s=0.0,
        cpu_s=0.0,
    )


def end(record, why, now, status=0, completing=0.0):
    """The job is over. With a live process it is still to be killed, and ``finished`` follows."""
    started = record["state"] == "running"
    if not started:
        record["waited_for"] = record["why"] or record["waited_for"]
        record["start"] = now
        record["node"] = ""
    record.update(
        state="ended",
        why=why,
        end=now,
        end_real=time.time(),
        exit=status,
        ended_exit=status,
        started=started,
        completing_until=time.time() + completing,
    )
    if record["session"]:
        record["killing"] = why
    elif started and record["batch"] is None:
        record["batch"] = {
            "why": why,
            "exit": status,
            "start": record["start"],
            "end": now,
            "rss_kb": record["rss_kb"],
        }


def cancel(record, uid, now, completing=0.0):
    """Somebody removes the job."""
    record["cancelled_by"] = uid
    end(record, "cancelled", now, 0, completing if record["state"] == "running" else 0.0)


def exited(record, status, now, completing=0.0):
    """The job's script ended by itself or by a signal that was not ours."""
    why = "exited"
    if record["memory_exceeded"]:
        why, status = "memory_limit", 125
    elif record["killing"] == "memory_kill":
        why, status = "memory_kill", 9
    elif limit_passed(record, now):
        why = "time_limit"
    record.update(session=None, killing=None)
    end(record, why, now, status, completing)
    record["batch"]["exit"] = status
    if why == "time_limit":
        record["batch"]["why"] = "exited"


def finished(record, status, now, completing=0.0):
    """The processes of a job whose end was decided earlier are gone now; ``status`` is how its
    script ended."""
    why = record["killing"]
    record.update(session=None, killing=None)
    run = record["past"][-1] if record["state"] == "pending" else record
    run["batch"] = {
        "why": why,
        "exit": None if why == "node_failure" else status,
        "start": run["start"],
        "end": now,
        "rss_kb": record["rss_kb"],
    }
    if record["state"] == "ended":
        if why != "node_failure":
            record["exit"] = status
        record["completing_until"] = time.time() + completing


def requeue(record, cause, now, delay, why="begin_time"):
    """The job goes back to pending, to start again after ``delay`` simulated seconds, or held
    (``why``)."""
    run = {
        key: record[key]
        for key in (
            "submit",
            "start",
            "end",
            "why",
            "exit",
            "ended_exit",
            "node",
            "waited_for",
            "batch",
            "rss_kb",
            "cpu_s",
            "script_exit",
        )
    }
    if record["state"] == "running":
        run.update(why=cause, end=now, exit=0, ended_exit=0)
    record["past"].append(run)
    if record["priority"] == 0:  # held while it ran
        why = "held_admin"
    if record["session"]:
        record["killing"] = cause
    elif record["state"] == "running" and run["batch"] is None:
        run["batch"] = {
            "why": cause,
            "exit": 15,
            "start": record["start"],
            "end": now,
            "rss_kb": record["rss_kb"],
        }
    record.update(
        state="pending",
        why=why,
        waited_for=why,
        submit=now,
        begin=now + delay + 1,
        start=None,
        end=None,
        end_by=None,
        exit=0,
        ended_exit=0,
        node="",
        restarts=record["restarts"] + 1,
        batch=None,
        rss_kb=0,
        suspended=None,
        requeue_real=time.time(),
        end_real=None,
        priority=0 if why in NEVER_STARTS else record["priority"],
    )


def fail_node(record, now, delay):
    """The job's node is gone: requeued where the job allows it, else ended."""
    if record["requeue"]:
        requeue(record, "node_failure", now, delay)
    else:
        end(record, "node_failure", now, 0)


def preempt(record, now, delay, completing=0.0):
    """A more important job needs the node: requeued where the job allows it, else ended."""
    if record["requeue"]:
        requeue(record, "preempted", now, delay)
    else:
        end(record, "preempted", now, 0, completing)


def fail_launch(record, now, delay):
    """The node could not start the job: requeued held, or cancelled where the job may not be
    requeued."""
    if record["requeue"]:
        requeue(record, "launch_failure", now, delay, "launch_failed_held")
        record["past"].pop()  # it never ran
    else:
        cancel(record, 0, now)


def note(record, now, what, who=""):
    """Add a line to the job's log."""
    record["log"].append([now, what, who])


def suspend(record, now, who):
    """Stop a running job; ``who`` is user, admin or system."""
    if record["state"] == "running" and not record["suspended"]:
        record.update(suspended=who, paused_since=now)
        note(record, now, "suspended", who)


def resume(record, now):
    """Let a stopped job go on; the time it stood does not count against its time limit."""
    if record["state"] == "running" and record["suspended"]:
        paused = record["paused_s"] + now - record["paused_since"]
        record.update(suspended=None, paused_since=None, paused_s=paused)
        note(record, now, "resumed")


def end_by(record):
    """Simulated time at which a started job's time is up; None if it is unlimited."""
    if record["end_by"] is not None:
        return record["end_by"]
    if record["time_limit"] is None or record["suspended"]:
        return None
    return record["start"] + record["time_limit"] + record["paused_s"]


def limit_passed(record, now):
    """True once a running job has used up its time."""
    limit = end_by(record)
    return limit is not None and now >= limit


def is_completing(record):
    """True while an ended (or requeued) job's processes or its node are still being cleaned up."""
    if record["state"] == "running":
        return False
    if record["session"] and record["killing"] != "node_failure":
        return True
    return record["state"] == "ended" and time.time() < record["completing_until"]


def dependency_state(text, find):
    """Return ``satisfied``, ``waiting`` or ``never`` for ``afterok:1:2,afterany:3``.

    ``find`` maps an id to a record or None; a job nobody knows satisfies, as in Slurm.
    """
    result = "satisfied"
    for part in filter(None, text.split(",")):
        kind, _, ids = part.partition(":")
        for word in ids.split(":"):
            record = find(int(word.split("_")[0].split("(")[0].split("+")[0]))
            if record is None:
                continue
            if kind == "after":
                done, good = record["state"] != "pending", True
            else:
                done = record["state"] == "ended" and not is_completing(record)
                success = record["why"] == "exited" and record["exit"] == 0
                good = {"afterok": success, "afternotok": not success}.get(kind, True)
            if not done:
                result = "waiting"
            elif not good:
                return "never"
    return result
