"""What sge_execd and its shepherd do on a node. They write nothing into a job's stderr."""

import os
import resource
import signal
import time

from fake_drm import transitions
from fake_drm.submission import base_id, environment_of
from fake_gridengine import words


def environment(record, store):
    """The environment of the job's script: the stored one, and Grid Engine's variables."""
    values = environment_of(record, store)
    values.update(
        {
            "JOB_ID": str(base_id(record)),
            "JOB_NAME": record["name"],
            "SGE_TASK_ID": str(record["task_id"] or "undefined"),
            "QUEUE": record["partition"],
            "NSLOTS": str(record["cpus"]),
            "NHOSTS": "1",
            "NQUEUES": "1",
            "REQUEST": record["name"],
            "RESTARTED": "1" if record["restarts"] else "0",
            "ENVIRONMENT": "BATCH",
            "HOSTNAME": store.settings["node"],
            "SGE_O_WORKDIR": record["extra"]["submitted_from"],
            "SGE_STDOUT_PATH": record["stdout"],
            "SGE_STDERR_PATH": record["stderr"],
        }
    )
    return values


def command_line(record, script):
    """The script by its own first line; a command (-b y) through a login shell."""
    if record["arguments"] and record["extra"]["binary"]:
        return "/bin/sh", ["-sh", "-c", "exec \"$@\"", "sh"] + record["arguments"]
    return script, [script] + record["arguments"]


def set_limits(record):
    """Limits that the kernel enforces on each process."""
    limits = record["extra"]["limits"]
    if "h_vmem" in limits:
        resource.setrlimit(resource.RLIMIT_AS, (limits["h_vmem"], limits["h_vmem"]))
    if "h_fsize" in limits:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limits["h_fsize"], limits["h_fsize"]))


def refuse_start(store, record, now):
    """Put a job that cannot be started into the error state, with its record in accounting."""
    failed, reason = _why_not(store, record)
    if not failed:
        return False
    pid = 30000 + record["id"]
    text = "%s [%d:%d]: %s" % (words.date(now), record["uid"], pid, reason)
    _to_error(record, text)
    _account(store, record, now, failed, 0, None, None)
    return True


def _to_error(record, text):
    record.update(state="pending", why="error", start=None, end=None, session=None, killing=None)
    record["extra"]["error_reason"] = text


def _why_not(store, record):
    """(failed, error reason); failed is 0 for a job that may start."""
    if store.settings["prolog_fails"] or "launch_failure" in record["options"]:
        return 8, "exit_status of prolog = 1"
    for path in (record["stdout"], record["stderr"]):
        try:
            with open(path, "ab"):
                pass
        except OSError as error:
            said = "error: can't open output file \"%s\": %s" % (path, error.strerror)
            return 26, said
    if not os.path.isdir(record["workdir"]):
        said = "error: can't chdir to %s: No such file or directory" % record["workdir"]
        return 28, said
    if not record["extra"]["binary"]:
        script = store.spool_path(record["id"], "script")
        with open(script, "rb") as handle:
            first = handle.readline().decode("utf-8", "replace")
        words_of_line = first[2:].split() if first.startswith("#!") else ["/bin/sh"]
        if not words_of_line or not os.path.exists(words_of_line[0]):
            return 27, "execvlp(%s, \"%s\") failed: No such file or directory" % (script, script)
    return 0, ""


def bad_workdir(record, error):
    """Not reached: refuse_start looked."""
    return "can't chdir to %s: %s\n" % (record["workdir"], error.strerror)


def bad_script(record, script, error):
    """The shell's line of a command that is not there."""
    os.write(2, ("%s: %s\n" % (script, error.strerror)).encode())
    os._exit(127)


def kill_signals(record):
    """SIGKILL at once; with -notify SIGUSR2 before."""
    return [signal.SIGUSR2] if record["extra"]["notify"] else [signal.SIGKILL]


def killed(record, why, when):
    """Nothing."""
    return ""


def memory_kill(record, used, limit, when):
    """Nothing."""
    return ""


def out_of_memory(record):
    """Nothing."""
    return ""


def run_over(store, record, now):
    """Write the accounting record; put the job back where its exit code asks for it."""
    if record["extra"].get("forced"):
        return  # root's qdel -f has written it
    run = record if record["state"] == "ended" else record["past"][-1]
    why, status = run["why"], record["script_exit"]
    failed, code = words.how_it_ended(record, why, status)
    start = None if failed == 19 else run["start"]
    _account(store, record, now, failed, code, start, now)
    if failed == 30:
        pid = 30000 + record["id"]
        said = "exit_status of job start = %d" % code
        _to_error(record, "%s [%d:%d]: %s" % (words.date(now), record["uid"], pid, said))
    elif failed == 25 and record["state"] == "ended":
        transitions.requeue(record, "requeued", now, float(store.option(record, "requeue_delay")))
        record["why"] = record["waited_for"] = "begin_time"


def _account(store, record, now, failed, code, start, end):
    record["extra"].setdefault("accounting", []).append(
        {
            "at": time.time(),
            "qsub": record["past"][0]["submit"] if record["past"] else record["submit"],
            "start": start,
            "end": None if start is None else end,
            "failed": failed,
            "exit_status": code,
            "cpu": 0.0 if failed == 19 or record["extra"].get("forced") else record["cpu_s"],
            "rss_kb": 0 if start is None or record["extra"].get("forced") else record["rss_kb"],
        }
    )


def account_forced(store, record, now):
    """The record of a job that root deleted by force: it looks like a success."""
    record["extra"]["forced"] = True
    _account(store, record, now, 0, 0, record["start"], now)


def injected(store, record):
    """Fill in what qsub knows of a job, for one that was never submitted."""
    limit = record["time_limit"]
    values = {
        "binary": False,
        "notify": False,
        "limits": {"h_rt": limit} if limit else {},
        "requests": {"h_rt": "%d" % limit} if limit else {},
        "category": "-l h_rt=%d" % limit if limit else "NONE",
        "project": "NONE",
        "pe": "NONE",
        "tasks": "",
        "submitted_from": record["workdir"],
        "hold_jid": "",
        "stdout_path": record["stdout"],
        "stderr_path": record["stderr"],
    }
    record["extra"] = dict(values, **record["extra"])
    record["account"] = record["account"] or "sge"
