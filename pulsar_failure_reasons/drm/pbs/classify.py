"""What a PBS job's attributes say: the phase it is in, and how it ended."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Optional, Tuple

from ...reason import Cause, Confidence, Evidence
from ..base import End, Ending, JobView, Phase, directory_of_streams
from ..captured import CANNOT_RUN_EXIT_CODES
from .exit_status import exit_code_of, split_exit_status
from .fields import Attributes, Usage, plain_name, usage_of, whole_number
from .flavour import Flavour
from .states import PHASES, PbsState, canonical_state

#: The resources of "... and exceeded resource walltime".
_RESOURCES = {
    "walltime": Cause.WALLTIME, "cput": Cause.CPU_TIME, "pcput": Cause.CPU_TIME,
    "mem": Cause.MEMORY, "vmem": Cause.MEMORY, "pmem": Cause.MEMORY, "pvmem": Cause.MEMORY,
    "file": Cause.DISK,
}
_TOO_OFTEN = re.compile(r"too many failed attempts to (?:run|start)", re.IGNORECASE)
_TOO_OFTEN_DETAIL = "PBS could not start it, several times, and held it"
#: Copies lose the blank at the end of a folded line.
_TERMINATED = re.compile(r"\bterminated(?:\s*by\s*(?P<who>[^\s,;()]{1,100}))?\s*$")
_EXCEEDED = re.compile(r"\bexceeded\s*resource\s*(?P<resource>[a-z]+)")

#: Substates of a finished job: deleted, finished, failed.
DELETED_SUBSTATE = 91

_FROM_OUTSIDE = frozenset({1, 2, 9, 15})
_SIGTERM = 15


@dataclass(frozen=True)
class PbsJob:
    """One job as qstat shows it.

    ``attributes`` by lower-case names (``resources_used.walltime``). ``ambiguous`` are names
    that stood there twice with different values: in plain text somebody may have forged one.
    """

    external_id: str
    attributes: Attributes
    ambiguous: Tuple[str, ...] = ()


def view_of(job: PbsJob, flavour: Flavour, source: str = "qstat") -> JobView:
    """Return the job as a view. Never raises.

    Exit_status counts only for a job that has ended: PBS shows that of an earlier start also
    on queued, held and running ones.
    """
    shown = job.attributes
    state_text = "" if "job_state" in job.ambiguous else shown.get("job_state", "")
    state = canonical_state(state_text)
    phase, usage = PHASES[state], usage_of(shown)
    end: Optional[End] = None
    confidence, stuck_detail, stuck_for = Confidence.CONTROLLER, "", Cause.HELD
    if phase is Phase.ENDED:
        end, inferred = how_it_ended(job, flavour, usage)
        confidence = Confidence.INFERRED if inferred else Confidence.CONTROLLER
    elif state is PbsState.HELD and _TOO_OFTEN.search(shown.get("comment", "")):
        phase, stuck_detail, stuck_for = Phase.STUCK, _TOO_OFTEN_DETAIL, Cause.NODE_FAILURE
    return JobView(
        external_id=job.external_id,
        job_state=state_text or "?",
        phase=phase,
        confidence=confidence,
        end=end,
        stuck_for=stuck_for,
        stuck_detail=stuck_detail,
        job_name=shown.get("job_name"),
        workdir=_workdir(job),
        submitted_at=shown.get("ctime"),
        restarts=whole_number(shown.get("run_count")),
        elapsed_s=usage.elapsed_s,
        walltime_s=usage.walltime_s,
        memory_bytes=usage.memory_bytes,
        used_memory_bytes=usage.used_memory_bytes,
        node=_node(shown),
        evidence=_evidence(shown, source),
    )


def how_it_ended(job: PbsJob, flavour: Flavour, usage: Usage) -> Tuple[End, bool]:
    """Return the end of an ended job, and whether it was inferred. Never raises.

    PBS's own words (``exceeded resource``, ``terminated by``) and its own numbers decide; then
    used against requested; what is left of a signal is a deletion where PBS marks it so.
    """
    shown = job.attributes
    comment = re.sub(r"\s+", " ", shown.get("comment", "")).strip()
    number = None if "exit_status" in job.ambiguous else whole_number(shown.get("exit_status"))
    if "comment" in job.ambiguous:
        comment = ""
    code, signal = split_exit_status(number) if number is not None and number >= 0 else (None, None)
    if _TOO_OFTEN.search(comment):
        return End(Ending.INFRASTRUCTURE, Cause.NODE_FAILURE, _TOO_OFTEN_DETAIL), False
    exceeded = _EXCEEDED.search(comment)
    if exceeded:
        return _limit(exceeded.group("resource"), code, signal), False
    if number is not None and number < 0:
        return _own_number(number, flavour), False
    deleted = _TERMINATED.search(comment)
    if deleted and number != 0:
        who = plain_name(deleted.group("who")) if deleted.group("who") else None
        return End(Ending.CANCELLED, Cause.CANCELLED, "", code, signal, who), False
    if number is None:
        return _without_exit_status(shown)
    return _exit(number, code, signal, shown, usage)


def _limit(resource: str, code: Optional[int], signal: Optional[int]) -> End:
    # A comment may be cut: "exceeded resource wallt".
    names = [name for name in _RESOURCES if name.startswith(resource)]
    cause = _RESOURCES[min(names, key=len)] if names else Cause.UNKNOWN
    detail = "" if cause is not Cause.UNKNOWN else f"it used more {resource} than its limit"
    return End(Ending.LIMIT, cause, detail, code, signal)


def _own_number(number: int, flavour: Flavour) -> End:
    meaning = exit_code_of(number, flavour)
    if meaning is None:
        detail = f"PBS's Exit_status is {number}, of which we do not know the meaning"
        return End(Ending.BADLY, Cause.UNKNOWN, detail)
    return End(meaning.ending, meaning.cause, meaning.detail)


def _without_exit_status(shown: Attributes) -> Tuple[End, bool]:
    if whole_number(shown.get("substate")) == DELETED_SUBSTATE:
        return End(Ending.CANCELLED, Cause.CANCELLED), False
    if not _has_run(shown):
        # Measured on 23.06: what afterok and the like leave behind.
        detail = "it never ran: it was deleted, or a job that it depended on failed"
        return End(Ending.CANCELLED, Cause.CANCELLED, detail), True
    if re.search(r"\bfinished\s*$", shown.get("comment", "")):
        # OpenPBS's word for an exit status of 0; it says "failed" for any other.
        return End(Ending.WELL, exit_code=0), True
    return End(Ending.BADLY), False


def _has_run(shown: Attributes) -> bool:
    return any(shown.get(name) for name in ("stime", "start_time", "exec_host", "session_id"))


def _exit(
    number: int, code: Optional[int], signal: Optional[int], shown: Attributes, usage: Usage
) -> Tuple[End, bool]:
    if number == 0:
        if shown.get("stageout_status", "").strip() == "0":
            detail = "its output files could not be delivered"
            return End(Ending.BADLY, Cause.DISK, detail, 0), False
        return End(Ending.WELL, exit_code=0), False
    if signal in _FROM_OUTSIDE:
        if usage.exceeded is not None:
            return End(Ending.LIMIT, usage.exceeded, "", code, signal), True
        if whole_number(shown.get("substate")) == DELETED_SUBSTATE:
            return End(Ending.CANCELLED, Cause.CANCELLED, "", code, signal), False
        if signal == _SIGTERM and number > 256 and not _says_failed(shown):
            # No limit was near, and PBS itself sends SIGTERM only to delete.
            return End(Ending.CANCELLED, Cause.CANCELLED, "", code, signal), True
    if not signal and code in CANNOT_RUN_EXIT_CODES:
        return End(Ending.BADLY, Cause.LAUNCH_ERROR, CANNOT_RUN_EXIT_CODES[code], code), False
    return End(Ending.BADLY, None, "", code, signal), False


def _says_failed(shown: Attributes) -> bool:
    """OpenPBS: a job that somebody else's signal ended says "and failed", not "terminated"."""
    return re.search(r"\bfailed\s*$", shown.get("comment", "")) is not None


def _workdir(job: PbsJob) -> Optional[str]:
    # Not PBS_O_WORKDIR of Variable_List, which holds what users write.
    paths = [job.attributes.get(n) for n in ("error_path", "output_path") if n not in job.ambiguous]
    return directory_of_streams(*paths)


def _node(shown: Attributes) -> Optional[str]:
    host = shown.get("exec_host", "")
    names = list(dict.fromkeys(re.findall(r"(?:^|\+)([^/+:\s]+)", host)))
    return ",".join(names)[:200] or None


def _evidence(shown: Attributes, source: str) -> Tuple[Evidence, ...]:
    names = (
        ("job_state", "job_state"), ("exit_status", "Exit_status"), ("comment", "comment"),
        ("substate", "substate"), ("stageout_status", "Stageout_status"),
    )
    return tuple(Evidence(source, name, shown[key]) for key, name in names if shown.get(key))
