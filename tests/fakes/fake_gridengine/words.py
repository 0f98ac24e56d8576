"""Grid Engine's words for a record: the state that qstat shows, ``failed`` and its texts."""

import os
import signal
import time

FAILED = {
    0: "",
    8: "in prolog",
    19: "before writing exit_status",
    25: "rescheduling",
    26: "opening input/output file",
    27: "searching requested shell",
    28: "changing into working directory",
    30: "application error returned",
    37: "qmaster enforced h_rt, h_cpu, or h_vmem limit",
    100: "assumedly after job",
}
REQUEUE_EXIT, ERROR_EXIT = 99, 100  # exit codes of a script that ask for it
SUSPENDED = {"user": "s", "admin": "s", "system": "S"}


def state(record):
    """The state that qstat shows, "" for a job that the qmaster does not list any more."""
    if record["erased"] or record["forgotten"]:
        return ""
    if record["shown"] and record["shown"]["state"]:
        return record["shown"]["state"]
    if record["state"] == "pending":
        if record["why"] == "error":
            return "Eqw"
        if record["priority"] == 0 or record["why"].startswith("dependency"):
            return "hqw"
        return "Rq" if record["restarts"] else "qw"
    if record["state"] == "running":
        if record["suspended"]:
            return SUSPENDED[record["suspended"]]
        return "Rr" if record["restarts"] else "r"
    if not is_gone(record):
        return "dr" if record["why"] == "cancelled" else "r"
    return ""


def is_gone(record):
    """True once qstat has dropped an ended job, which it does at once."""
    from fake_drm import transitions

    return record["state"] == "ended" and not transitions.is_completing(record)


def how_it_ended(record, why, status):
    """(failed, exit_status) of a run of the job.

    Args:
        why: what ended it; ``status``: wait status of its script, None if that is not known.
    """
    if record["extra"].get("forced") or why == "node_failure":
        return (19 if why == "node_failure" else 0), 0
    died = status is not None and os.WIFSIGNALED(status)
    code = 128 + os.WTERMSIG(status) if died else os.WEXITSTATUS(status or 0)
    if why in ("requeued", "preempted") or (why == "exited" and code == REQUEUE_EXIT and not died):
        return 25, code
    if why in ("time_limit", "memory_kill"):
        return 37, code
    if why == "exited" and code == ERROR_EXIT and not died:
        return 30, code
    return (100 if died else 0), code


def failed_text(number):
    """``37  : qmaster enforced ...``; ``0    `` alone."""
    return "%-3d : %s" % (number, FAILED[number]) if number else "0    "


def exit_status_text(number):
    """``137                  (Killed)``, ``3                   ``."""
    if number <= 128:
        return "%-20d" % number
    try:
        return "%-20d (%s)" % (number, signal.strsignal(number - 128))
    except ValueError:
        return "%-20d" % number


def date(seconds):
    """``11/29/2026 12:03:00``."""
    return time.strftime("%m/%d/%Y %H:%M:%S", time.localtime(seconds))


def iso(seconds):
    """``2026-11-29T12:03:00``."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(seconds))


def ctime(seconds):
    """``Sun Nov 29 12:03:00 2026``; ``-/-`` for a job that never started."""
    if seconds is None:
        return "-/-"
    return time.strftime("%a %b %d %H:%M:%S %Y", time.localtime(seconds))


def size(number, unit="B"):
    """``4.793MB``, ``0.000B``: binary steps, as qacct prints bytes."""
    for prefix in ("", "K", "M", "G"):
        if abs(number) < 1024 or prefix == "G":
            return "%.3f%s%s" % (number, prefix, unit)
        number /= 1024.0
    return ""
