"""The submit commands of a job, with limits that hold it and say why."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Dict, List, Mapping, NamedTuple, Optional

from ...errors import ConfigurationError
from ..units import format_duration
from . import codes
from .events import KILOBYTE, MEGABYTE

#: What stock ``queued_condor`` submits with (pulsar.managers.util.condor).
STOCK_COMMANDS: Mapping[str, str] = {
    "universe": "vanilla",
    "getenv": "true",
    "notification": "NEVER",
}

#: The attribute by which a job of ours is known, and told from one of another server's with the
#: same job_id. JobBatchName is everybody's to choose.
JOB_DIRECTORY_ATTRIBUTE = "PulsarJobDirectory"

#: Commands that we look at or add to; an attribute (``+PeriodicHold``) would win over the command.
_COMMAND_BY_ATTRIBUTE: Mapping[str, str] = {
    "periodicrelease": "periodic_release",
    "periodichold": "periodic_hold",
    "periodicholdreason": "periodic_hold_reason",
    "periodicholdsubcode": "periodic_hold_subcode",
    "requestmemory": "request_memory",
    "requestdisk": "request_disk",
    "allowedexecuteduration": "allowed_execute_duration",
}
#: Attributes that have to be ours, or the job's end could not be found.
_OURS = frozenset({JOB_DIRECTORY_ATTRIBUTE.lower(), "cmd", "out", "err", "userlog"})
_NAME = re.compile(r"\+?[a-z_][a-z0-9_.]*")


@dataclass(frozen=True)
class Limits:
    """Limits that the job's own policy enforces; None for no limit of that kind.

    Walltime is seconds, memory and disk are bytes.
    """

    walltime_s: Optional[int] = None
    memory_bytes: Optional[int] = None
    disk_bytes: Optional[int] = None


class _Hold(NamedTuple):
    condition: str
    subcode: int
    reason: str
    """An expression, as the condition is."""


def submit_commands(
    *,
    executable: str,
    stdout: str,
    stderr: str,
    log: str,
    initialdir: str,
    job_name: str,
    job_directory: str,
    given: Mapping[str, object],
    limits: Limits = Limits(),
) -> Dict[str, str]:
    """Return the submit commands of a job, for ``htcondor2.Submit``.

    ``given`` are the operator's and the submission's own commands; theirs win over stock's
    defaults, and lose where the result could not be found again (executable, streams, log).

    Raises:
        ConfigurationError: see :func:`canonical_commands`.
    """
    commands = {**STOCK_COMMANDS, "batch_name": job_name, "initialdir": initialdir}
    commands.update(canonical_commands(given))
    commands.update(_requests(limits))
    commands.update(_policy(limits, commands))
    commands.update({"executable": executable, "output": stdout, "error": stderr, "log": log})
    commands[f"My.{JOB_DIRECTORY_ATTRIBUTE}"] = quoted(job_directory)
    return commands


def canonical_commands(given: Mapping[str, object]) -> Dict[str, str]:
    """Return submit commands in lower case, each in one spelling, those without a value left out.

    Raises:
        ConfigurationError: a name is no command's, or a value has a line break: HTCondor would
            take what follows for commands of their own, ``queue`` among them.
    """
    commands = {}
    for name, value in given.items():
        command = str(name).strip().lower()
        if not _NAME.fullmatch(command) or command == "queue":
            raise ConfigurationError(f"{name!r:.80} cannot be given as a submit command")
        if value is None:
            continue
        if re.search(r"[\0\r\n]", str(value)):
            raise ConfigurationError(
                f"the submit command {command} has a line break: {str(value)!r:.80}"
            )
        attribute = command[3:] if command.startswith("my.") else command.lstrip("+")
        if attribute not in _OURS:
            commands[_COMMAND_BY_ATTRIBUTE.get(attribute, command)] = str(value)
    return commands


def quoted(text: str) -> str:
    """Return a text as a ClassAd writes it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _requests(limits: Limits) -> Dict[str, str]:
    requests = {}
    if limits.memory_bytes is not None:
        requests["request_memory"] = str(-(-limits.memory_bytes // MEGABYTE))
    if limits.disk_bytes is not None:
        requests["request_disk"] = str(-(-limits.disk_bytes // KILOBYTE))
    if limits.walltime_s is not None:
        requests["allowed_execute_duration"] = str(limits.walltime_s)
    return requests


def _policy(limits: Limits, commands: Mapping[str, str]) -> Dict[str, str]:
    """Return a ``periodic_hold`` for the limits, before the one that the operator gave.

    ``allowed_execute_duration`` alone does not do: without input transfer it never fires
    before 24.0.19 (HTCONDOR-3633).
    """
    holds = _holds(limits)
    if not holds:
        return {}
    theirs = commands.get("periodic_hold")
    their_reason = commands.get("periodic_hold_reason", "undefined")
    their_subcode = commands.get("periodic_hold_subcode", "0")
    conditions = [f"({hold.condition})" for hold in holds] + ([f"({theirs})"] if theirs else [])
    reason, subcode = their_reason, their_subcode
    for hold in reversed(holds):
        reason = f"ifThenElse({hold.condition}, {hold.reason}, {reason})"
        subcode = f"ifThenElse({hold.condition}, {hold.subcode}, {subcode})"
    return {
        "periodic_hold": " || ".join(conditions),
        "periodic_hold_reason": reason,
        "periodic_hold_subcode": subcode,
    }


def _holds(limits: Limits) -> List[_Hold]:
    """Return our rules. ``=?= true``: an attribute that is not there yet holds nothing.

    Memory and disk are compared with what the job requests at that moment, so that who holds,
    raises ``RequestMemory`` (condor_qedit) and releases raises the limit too. Not while the job
    waits: what was measured last is of the run before.
    """
    holds = []
    if limits.walltime_s is not None:
        holds.append(_Hold(
            "((JobStatus == 2 && (time() - EnteredCurrentStatus) > "
            f"{limits.walltime_s}) =?= true)",
            codes.OWN_SUBCODE_WALLTIME,
            quoted(f"over its walltime limit of {format_duration(limits.walltime_s)}"),
        ))
    if limits.memory_bytes is not None:
        holds.append(_Hold(
            "((JobStatus == 2 && MemoryUsage > RequestMemory) =?= true)",
            codes.OWN_SUBCODE_MEMORY,
            'strcat("over its memory limit of ", RequestMemory, " MB")',
        ))
    if limits.disk_bytes is not None:
        holds.append(_Hold(
            "((JobStatus == 2 && DiskUsage > RequestDisk) =?= true)",
            codes.OWN_SUBCODE_DISK,
            'strcat("over its disk limit of ", (RequestDisk + 1023) / 1024, " MB")',
        ))
    return holds
