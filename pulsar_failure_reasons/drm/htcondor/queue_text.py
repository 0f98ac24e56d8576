"""``dagman.out`` and the listings of ``condor_q`` and ``condor_history`` as events and ads."""

from __future__ import annotations

import re
from typing import List, Mapping, Optional

from .codes import JobEvent, JobStatus
from .log_text import Record

_DAGMAN_LINE = re.compile(
    r"^\W{0,8}[0-9]{2}/[0-9]{2}/[0-9]{2,4} [0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?\s+(?P<said>.*)$"
)
_DAGMAN_EVENT = re.compile(
    r"Event: ULOG_(?P<name>[A-Z_]+) for .*?\((?P<cluster>-?[0-9]+)\.(?P<proc>-?[0-9]+)"
)
_DAGMAN_HOLD = re.compile(r"^\s*Hold reason:\s*(?P<reason>.*)$", re.IGNORECASE)
_DAGMAN_RESULT = re.compile(
    r"Node \S+ job (?:proc )?\((?P<cluster>-?[0-9]+)\.(?P<proc>-?[0-9]+)(?:\.-?[0-9]+)?\)\s*"
    r"(?:(?P<well>completed successfully)|failed with (?P<how>status|signal) (?P<number>-?[0-9]+))"
)
_DAGMAN_NAMES: Mapping[str, JobEvent] = {event.name: event for event in JobEvent}


def read_dagman(text: str) -> List[Record]:
    """Return the events that a piece of ``dagman.out`` tells of; empty where it is none."""
    found: List[Record] = []
    for line in text.splitlines():
        match = _DAGMAN_LINE.match(line)
        if match is not None:
            _fold_dagman(found, match.group("said"))
    return found


def _fold_dagman(found: List[Record], said: str) -> None:
    event = _DAGMAN_EVENT.search(said)
    if event and event.group("name") in _DAGMAN_NAMES:
        number = _DAGMAN_NAMES[event.group("name")]
        # How a job ended is told by the line after its ULOG_JOB_TERMINATED.
        found.append(_record(number, event.group("cluster"), event.group("proc")))
        return
    hold = _DAGMAN_HOLD.match(said)
    if hold:
        if not found or found[-1]["EventTypeNumber"] != JobEvent.JOB_HELD:
            found.append({"EventTypeNumber": int(JobEvent.JOB_HELD)})
        found[-1]["HoldReason"] = hold.group("reason")
        return
    result = _DAGMAN_RESULT.search(said)
    if result:
        _end_dagman(found, result)


def _end_dagman(found: List[Record], result: "re.Match[str]") -> None:
    ended = _record(JobEvent.JOB_TERMINATED, result.group("cluster"), result.group("proc"))
    same = [
        event for event in found
        if (event["EventTypeNumber"], event.get("Cluster"), event.get("Proc"))
        == (ended["EventTypeNumber"], ended["Cluster"], ended["Proc"])
    ]
    if not same:
        found.append(ended)
    target = same[-1] if same else ended
    number = int(result.group("number") or 0)
    by_signal = result.group("how") == "signal"
    target["TerminatedNormally"] = not by_signal
    target["TerminatedBySignal" if by_signal else "ReturnValue"] = number


def _record(number: JobEvent, cluster: str, proc: str) -> Record:
    return {"EventTypeNumber": int(number), "Cluster": int(cluster), "Proc": int(proc)}


# --- condor_q, condor_q -hold, condor_history ---------------------------------------------

_ID = r"^\W{0,4}(?P<cluster>[0-9]{1,12})\.(?P<proc>[0-9]{1,9})\s+(?P<owner>\S+)\s+"
_HELD_LINE = re.compile(
    _ID + r"[0-9]{1,2}/[0-9]{1,2}\s+[0-9]{1,2}:[0-9]{2}\s+(?P<reason>\S.*)$"
)
_STATUS_LINE = re.compile(
    _ID + r"[0-9]{1,2}/[0-9]{1,2}\s+[0-9]{1,2}:[0-9]{2}\s+"
    r"[0-9]+\+[0-9]{2}:[0-9]{2}:[0-9]{2}\s+(?P<status>[IRXCHSE<>])\s"
)
#: ``condor_q`` itself: a line for a batch, with how many of its jobs are done, run, idle, held.
_BATCH_HEADING = re.compile(r"^OWNER\s+BATCH_NAME\s+SUBMITTED\s+DONE\s+RUN\s+IDLE\b")
_BATCH_LINE = re.compile(
    r"^\S+\s+.*?\s[0-9]{1,2}/[0-9]{1,2}\s+[0-9]{1,2}:[0-9]{2}\s+(?P<done>[0-9]+|_)\s+"
    r"(?P<run>[0-9]+|_)\s+(?P<idle>[0-9]+|_)\s+(?:(?P<hold>[0-9]+|_)\s+)?(?P<total>[0-9]+|_)\s+"
    r"(?P<cluster>[0-9]{1,12})\.(?P<proc>[0-9]{1,9})"
)
_STATUS_LETTERS: Mapping[str, JobStatus] = {
    "I": JobStatus.IDLE,
    "R": JobStatus.RUNNING,
    "X": JobStatus.REMOVED,
    "C": JobStatus.COMPLETED,
    "H": JobStatus.HELD,
    "S": JobStatus.SUSPENDED,
    "<": JobStatus.RUNNING,
    ">": JobStatus.TRANSFERRING_OUTPUT,
}


def read_queue_listing(text: str) -> List[Record]:
    """Return an ad per job that a listing shows; empty where it is none."""
    found: List[Record] = []
    batches = False
    for line in text.splitlines():
        batches = batches or _BATCH_HEADING.match(line.strip()) is not None
        ad = _listed(line) or (_batch(line.strip()) if batches else None)
        if ad:
            found.append(ad)
        elif found and found[-1].get("HoldReason") and re.match(r"\s{8,}\S", line):
            # Mail clients and terminals break long reasons.
            found[-1]["HoldReason"] += " " + line.strip()
    return found


def _listed(line: str) -> Optional[Record]:
    status, held = _STATUS_LINE.match(line), _HELD_LINE.match(line)
    match = status or held
    if match is None:
        return None
    ad: Record = {"ClusterId": int(match.group("cluster")), "ProcId": int(match.group("proc"))}
    if status:
        ad["JobStatus"] = _STATUS_LETTERS.get(status.group("status"))
    elif held:
        ad.update(JobStatus=JobStatus.HELD, HoldReason=held.group("reason"))
    return ad


def _batch(line: str) -> Optional[Record]:
    """Return an ad for a batch that goes on; a batch of held jobs alone does not say why."""
    match = _BATCH_LINE.match(line)
    if match is None:
        return None
    runs, idle = (match.group(name).strip("_0") for name in ("run", "idle"))
    if not runs and not idle:
        return None
    return {
        "ClusterId": int(match.group("cluster")), "ProcId": int(match.group("proc")),
        "JobStatus": JobStatus.RUNNING if runs else JobStatus.IDLE,
    }
