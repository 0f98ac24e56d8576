"""PBS's words for a record: state, substate, Exit_status, comment.

OpenPBS's are those of the captures; Torque's of its manual, source and of published outputs; PBS
Pro's of published outputs.
"""

import os
import time

from fake_drm import transitions
from fake_drm.submission import base_id

# Negative Exit_status by cause
OWN_CODES = {
    "openpbs": {"time_limit": -29, "cpu_limit": -28, "memory_kill": -27, "node_failure": -20},
    "torque": {"time_limit": -11, "cpu_limit": -12, "memory_kill": -10, "node_failure": -4},
    # before 20.0 what limits killed looks as if deleted
    "pbspro": {"time_limit": 271, "cpu_limit": 271, "memory_kill": 271, "node_failure": -20},
}
EXCEEDED = {"time_limit": "walltime", "cpu_limit": "cput", "memory_kill": "mem"}
SUBSTATES = {"Q": 10, "H": 20, "W": 30, "R": 42, "S": 43, "E": 51}
WAITING = "Not Running: Not enough free nodes available"
HELD_TOO_OFTEN = "job held, too many failed attempts to run"


def is_torque(store):
    """True where the folder plays Torque."""
    return store.settings["flavour"] == "torque"


def job_id(store, record):
    """``7.pbs1``, ``7[2].pbs1``."""
    index = "" if record["array_id"] is None else "[%d]" % record["task_id"]
    return "%d%s.%s" % (base_id(record), index, store.settings["cluster"])


def array_id(store, record):
    """``7[].pbs1``."""
    return "%d[].%s" % (base_id(record), store.settings["cluster"])


def owner(store, record):
    """``alice@pbs1``."""
    return "%s@%s" % (record["user"], store.settings["cluster"])


def state(store, record):
    """The letter of job_state; ``control.show_as`` can name any other."""
    if record["shown"] and record["shown"]["state"]:
        return record["shown"]["state"]
    if record["state"] == "pending":
        if record["priority"] == 0 or record["why"].startswith("dependency"):
            return "H"
        # a requeued job waits too, but shows as queued
        return "W" if record["why"] == "begin_time" and not record["restarts"] else "Q"
    if record["state"] == "running":
        return "S" if record["suspended"] else "R"
    if transitions.is_completing(record):
        return "E" if record["why"] != "cancelled" or not record["session"] else "R"
    return "C" if is_torque(store) else "F"


def is_ended(record):
    """True once the server has the job's end."""
    return record["state"] == "ended" and not transitions.is_completing(record)


def substate(store, record):
    """OpenPBS's substate."""
    letter = state(store, record)
    if letter in ("F", "X"):
        if record["why"] == "cancelled" and record["waited_for"] != "dependency_never":
            return 91
        return 92 if exit_status(store, record) in (0, None) else 93
    return 22 if letter == "H" and record["why"].startswith("dependency") else SUBSTATES.get(
        letter, 0
    )


def exit_status(store, record):
    """Exit_status; None where the job has none (it never ran)."""
    if record["extra"].get("exit_status") is not None:
        return record["extra"]["exit_status"]
    if record["state"] == "pending":
        if record["why"] == "launch_failed_held":
            return -3
        failed = record["past"] and record["past"][-1]["why"] == "node_failure"
        return -20 if failed and not is_torque(store) else None
    if not is_ended(record) or not record["started"]:
        return None
    if record["why"] == "cancelled":
        return 265 if record["extra"].get("forced") else 271
    codes = OWN_CODES[store.settings["flavour"]]
    if record["why"] in codes:
        return codes[record["why"]]
    status = record["script_exit"] or 0
    return 256 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def comment(store, record):
    """The comment; "" where there is none."""
    shown = record["shown"]
    if shown and shown["reason"]:
        return shown["reason"]
    if is_torque(store):
        return "" if record["start"] is None else "Job started on " + _day(record["start"])
    if record["why"] == "launch_failed_held":
        return HELD_TOO_OFTEN
    if record["state"] == "pending":
        return WAITING if record["restarts"] else record["extra"].get("comment", "")
    if record["state"] == "ended" and not record["started"]:
        return ""
    text = "Job run at %s on %s" % (_day(record["start"]), vnode(store, record))
    text = record["extra"].get("comment") or text
    if not is_ended(record) or record["why"] == "node_failure":
        return text
    return text + _how_it_ended(store, record)


def _how_it_ended(store, record):
    if record["why"] == "cancelled":
        return " and terminated by " + record["extra"].get("deleted_by", "root@pbs")
    if record["why"] in EXCEEDED and store.settings["flavour"] == "openpbs":
        return " and exceeded resource " + EXCEEDED[record["why"]]
    return " and finished" if exit_status(store, record) == 0 else " and failed"


def _day(seconds):
    return time.strftime("%a %b %d at %H:%M", time.localtime(seconds))


def vnode(store, record):
    """``(node1:ncpus=1:mem=102400kb)``; of -l mem= without select the memory comes first."""
    parts = ["ncpus=%d" % record["cpus"]]
    if record["memory_per"] == "node":
        memory = "mem=%dkb" % round(record["memory_mb"] * 1024)
        old = not any(name == "select" for name, _ in record["extra"].get("resources", []))
        parts.insert(0 if old else 1, memory)
    return "(%s)" % ":".join([record["node"] or store.settings["node"]] + parts)


def hold_types(record):
    """``n``, ``u``, ``s``, ``us``."""
    if record["why"].startswith("dependency") or record["why"] == "launch_failed_held":
        return "s"
    return record["extra"].get("hold_types") or ("u" if record["priority"] == 0 else "n")


def ctime(seconds):
    """``Sun Nov 29 12:03:08 2026``."""
    return time.strftime("%a %b %e %H:%M:%S %Y", time.localtime(seconds))


def hms(seconds):
    """``00:01:05``."""
    seconds = max(0, int(seconds))
    return "%02d:%02d:%02d" % (seconds // 3600, seconds // 60 % 60, seconds % 60)


def run_seconds(record, now):
    """Seconds that the job ran, or runs, without the time it was suspended."""
    if record["start"] is None:
        return 0
    until = record["end"] if record["end"] is not None else now
    if record["paused_since"]:
        until = record["paused_since"]
    return until - record["start"] - record["paused_s"]
