"""LSF's words for a record: state, termination reason, exit code.

Sources: bjobs(1) and "Termination reasons displayed by bacct, bhist, and bjobs" of IBM's manual;
the texts of reports as people published them (see tests/data/lsf/SOURCES.md).
"""

import os
import time

TERMINATIONS = {
    "TERM_UNKNOWN": "",
    "TERM_OWNER": "job killed by owner",
    "TERM_ADMIN": "job killed by root or LSF administrator",
    "TERM_FORCE_OWNER": "job killed by owner without time for cleanup",
    "TERM_FORCE_ADMIN": "job killed by root or LSF administrator without time for cleanup",
    "TERM_RUNLIMIT": "job killed after reaching LSF run time limit",
    "TERM_CPULIMIT": "job killed after reaching LSF CPU usage limit",
    "TERM_MEMLIMIT": "job killed after reaching LSF memory usage limit",
    "TERM_PREEMPT": "job killed after preemption",
    "TERM_DEADLINE": "job killed after deadline expires",
    "TERM_ZOMBIE": "job exited while LSF is not available",
    "TERM_PRE_EXEC_FAIL": "job killed after reaching pre-execution retry limit",
    "TERM_CWD_NOTEXIST": "current working directory is not accessible or does not exist on the "
    "execution host",
    "TERM_ORPHAN_SYSTEM": "The orphan job was automatically terminated by LSF",
    "TERM_REMOVE_HUNG_JOB": "job removed from LSF",
}
BY_CAUSE = {
    "time_limit": "TERM_RUNLIMIT",
    "cpu_limit": "TERM_CPULIMIT",
    "memory_limit": "TERM_MEMLIMIT",
    "memory_kill": "TERM_MEMLIMIT",
    "preempted": "TERM_PREEMPT",
    "deadline": "TERM_DEADLINE",
    "node_failure": "TERM_ZOMBIE",
}
SUSPENDED = {"user": "USUSP", "admin": "USUSP", "system": "SSUSP"}


def stat(record):
    """The STAT that bjobs shows; ``control.show_as`` can name any other."""
    if record["shown"] and record["shown"]["state"]:
        return record["shown"]["state"]
    if record["state"] == "pending":
        return "PSUSP" if record["priority"] == 0 else "PEND"
    if record["state"] == "running" or _is_being_killed(record):
        return SUSPENDED.get(record["suspended"], "RUN")
    return "DONE" if record["why"] == "exited" and exit_code(record) == 0 else "EXIT"


def _is_being_killed(record):
    """LSF tells the end only once sbatchd has told it."""
    return bool(record["session"]) and record["killing"] != "node_failure"


def is_ended(record):
    """True once LSF tells the end."""
    return stat(record) in ("DONE", "EXIT")


def termination(record):
    """The TERM_ word of an ended job, None for one that ended by itself."""
    forced = record["extra"].get("termination")
    if forced:
        return forced
    if record["why"] == "cancelled":
        by_owner = record["cancelled_by"] == record["uid"]
        return "TERM_OWNER" if by_owner else "TERM_ADMIN"
    return BY_CAUSE.get(record["why"])


def reason_line(word):
    """``TERM_RUNLIMIT: job killed after reaching LSF run time limit``."""
    return "%s: %s" % (word, TERMINATIONS[word])


def exit_reason(record):
    """What bjobs' field exit_reason shows; "" where it shows none."""
    if record["shown"] and record["shown"]["reason"]:
        return record["shown"]["reason"]
    word = termination(record) if is_ended(record) else None
    return reason_line(word) if word else ""


def signal_of(record):
    """The signal that ended the job's script itself, None if it exited."""
    status = record["script_exit"]
    return os.WTERMSIG(status) if status is not None and os.WIFSIGNALED(status) else None


def exit_code(record):
    """The exit code, 128 + the signal where one ended the script, None if the script never ran."""
    status = record["script_exit"]
    if record["extra"].get("exit_code") is not None:
        return record["extra"]["exit_code"]
    if status is None:
        return None
    if os.WIFSIGNALED(status):
        return 128 + os.WTERMSIG(status)
    return os.WEXITSTATUS(status)


def how_it_exited(record, dot="."):
    """``Exited with exit code 3.`` or ``Exited with signal termination: 9.``"""
    number = signal_of(record)
    if number is not None:
        return "Exited with signal termination: %d%s" % (number, dot)
    return "Exited with exit code %s%s" % (exit_code(record), dot)


def name_of(record):
    """The job's name, with its index in an array."""
    if record["array_id"] is None:
        return record["name"]
    return "%s[%d]" % (record["name"], record["task_id"])


def short_time(seconds):
    """``Nov 29 11:14``, as bjobs shows times."""
    return time.strftime("%b %e %H:%M", time.localtime(seconds))


def long_time(seconds):
    """``Sun Nov 29 11:14:21``, as bhist does."""
    return time.strftime("%a %b %e %H:%M:%S", time.localtime(seconds))


def year_time(seconds):
    """``Sun Nov 29 11:14:21 2026``, as the report does."""
    return time.strftime("%a %b %e %H:%M:%S %Y", time.localtime(seconds))


def run_seconds(record, now):
    """Whole seconds that the job ran, without the time it was suspended."""
    if record["start"] is None or (record["state"] == "ended" and not record["started"]):
        return 0
    until = record["end"] if record["end"] is not None else now
    if record["paused_since"]:
        until = record["paused_since"]
    return max(0, int(until - record["start"] - record["paused_s"]))


def size(kilobytes):
    """``21 Mbytes``, as bjobs shows memory."""
    return "%d Mbytes" % max(1, round(kilobytes / 1024.0))
