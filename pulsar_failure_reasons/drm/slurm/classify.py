"""What a Slurm job state, with its reason and exit code, says about a job.

The rows of ``_ENDS`` and ``_PHASES`` together are all states of Slurm's manual.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Dict, Optional, Tuple

from ...errors import OutputParseError
from ...reason import Cause, clean_text
from ..base import End, Ending, Phase
from ..captured import CANNOT_RUN_EXIT_CODES
from .states import SlurmState, cancelled_by, canonical_state

#: ``ESLURMD_IO_ERROR`` is 4021; slurmctld takes it for a wait status and shows 4021 & 0x7f.
#: Measured: an output file that cannot be opened is FAILED 0:53 on 22.05 and on 24.11.
OUTPUT_NOT_OPENED_SIGNAL = 53
OUTPUT_NOT_OPENED = "its output file could not be opened"

_ENDS: Dict[SlurmState, Tuple[Ending, Optional[Cause], str]] = {
    SlurmState.COMPLETED: (Ending.WELL, None, ""),
    SlurmState.FAILED: (Ending.BADLY, None, ""),
    SlurmState.TIMEOUT: (Ending.LIMIT, Cause.WALLTIME, ""),
    SlurmState.DEADLINE: (Ending.LIMIT, Cause.WALLTIME, "the job's deadline was reached"),
    SlurmState.OUT_OF_MEMORY: (Ending.LIMIT, Cause.MEMORY, ""),
    SlurmState.CANCELLED: (Ending.CANCELLED, Cause.CANCELLED, ""),
    SlurmState.NODE_FAIL: (Ending.INFRASTRUCTURE, Cause.NODE_FAILURE, ""),
    SlurmState.BOOT_FAIL: (
        Ending.INFRASTRUCTURE,
        Cause.NODE_FAILURE,
        "a node of it did not boot",
    ),
    # No limit: where the site requeues preempted jobs, slurmctld shows PENDING instead.
    SlurmState.PREEMPTED: (Ending.INFRASTRUCTURE, Cause.PREEMPTED, ""),
}

_PHASES: Dict[SlurmState, Phase] = {
    SlurmState.PENDING: Phase.QUEUED,
    SlurmState.CONFIGURING: Phase.QUEUED,
    SlurmState.POWER_UP_NODE: Phase.QUEUED,
    SlurmState.REQUEUED: Phase.QUEUED,
    SlurmState.REQUEUE_FED: Phase.QUEUED,
    # Waits at the head of the queue for its requeue (25.11).
    SlurmState.EXPEDITING: Phase.QUEUED,
    SlurmState.RUNNING: Phase.RUNNING,
    SlurmState.SUSPENDED: Phase.RUNNING,
    SlurmState.STOPPED: Phase.RUNNING,
    SlurmState.RESIZING: Phase.RUNNING,
    SlurmState.COMPLETING: Phase.ENDING,
    SlurmState.STAGE_OUT: Phase.ENDING,
    SlurmState.SIGNALING: Phase.ENDING,
    SlurmState.SPECIAL_EXIT: Phase.STUCK,
    SlurmState.REQUEUE_HOLD: Phase.STUCK,
    SlurmState.RESV_DEL_HOLD: Phase.STUCK,
    SlurmState.LAUNCH_FAILED: Phase.STUCK,
    SlurmState.RECONFIG_FAIL: Phase.STUCK,
    # The job runs on another cluster of the federation: this one says nothing about its end.
    SlurmState.REVOKED: Phase.UNKNOWN,
    # Slurm's own bookkeeping, never shown alone.
    SlurmState.UPDATE_DB: Phase.UNKNOWN,
    SlurmState.UNKNOWN: Phase.UNKNOWN,
}

_STUCK_STATE_DETAILS: Dict[SlurmState, str] = {
    SlurmState.SPECIAL_EXIT: "Slurm requeued it in a held state (special exit)",
    SlurmState.REQUEUE_HOLD: "Slurm requeued it in a held state",
    SlurmState.RESV_DEL_HOLD: "its reservation was deleted",
    SlurmState.LAUNCH_FAILED: "it could not be launched",
    SlurmState.RECONFIG_FAIL: "its nodes could not be configured",
}

#: Reasons for which a pending job will not start unless somebody acts, by their letters only
#: (``launch_failed_requeued_held`` is ``(launch failed requeued held)`` in squeue). A person's
#: hold (JobHeldUser, JobHeldAdmin) is not here: a person may keep a job as long as they like.
#: Nor are limits that a site may lift at night (PartitionTimeLimit, QOSMax...).
_STUCK_REASONS: Dict[str, str] = {
    "jobrequeuedinheldstate": "Slurm requeued it in a held state",
    "launchfailedrequeuedheld": "it could not be launched; Slurm requeued it in a held state",
    "launchfailurelimitexceededrequeuedheld": (
        "it could not be launched, several times; Slurm requeued it in a held state"
    ),
    "jobholdmaxrequeue": "it was requeued more often than the site allows",
    "dependencyneversatisfied": "its dependency can never be satisfied",
    "badconstraints": "its requirements can never be satisfied",
    "reservationdeleted": "its reservation was deleted",
    "invalidaccount": "its account is not valid",
    "invalidqos": "its QOS is not valid",
}


@dataclass(frozen=True)
class Description:
    """What a job state says: the state, the phase, and how it ended or why it is stuck.

    ``word`` is the state's full name, or the raw text where we do not know it. ``end`` is
    there only with Phase.ENDED, ``stuck_detail`` not empty only with Phase.STUCK.
    """

    state: SlurmState
    word: str
    phase: Phase
    end: Optional[End] = None
    stuck_detail: str = ""


def describe_state(
    state_text: str,
    reason: str = "",
    exit_code: Optional[int] = None,
    signal: Optional[int] = None,
) -> Description:
    """Return what a state with its reason, exit code and signal says. Never raises.

    Args:
        state_text: The state in any spelling; ``CANCELLED by 1000`` tells who cancelled.
        reason: Slurm's reason as squeue or scontrol shows it; sacct's is mostly ``None``.
        exit_code: Of the job script, None where Slurm did not say.
        signal: That ended it, None where Slurm did not say.
    """
    state = canonical_state(state_text)
    word = clean_text(state_text, 80) if state is SlurmState.UNKNOWN else state.value
    if state in _ENDS:
        end = _end(state, state_text, _letters(reason), exit_code, signal)
        return Description(state, word, Phase.ENDED, end=end)
    phase = _PHASES[state]
    if state is SlurmState.PENDING and _letters(reason) in _STUCK_REASONS:
        detail = _STUCK_REASONS[_letters(reason)]
        return Description(state, word, Phase.STUCK, stuck_detail=detail)
    return Description(state, word, phase, stuck_detail=_STUCK_STATE_DETAILS.get(state, ""))


def _letters(reason: str) -> str:
    return re.sub(r"[^a-z]", "", reason.lower()[:200])


def _end(
    state: SlurmState,
    state_text: str,
    reason: str,
    exit_code: Optional[int],
    signal: Optional[int],
) -> End:
    ending, cause, detail = _ENDS[state]
    if state is SlurmState.FAILED:
        ending, cause, detail = _failed(reason, exit_code, signal)
    elif state is SlurmState.CANCELLED and reason == "dependencyneversatisfied":
        detail = "its dependency could never be satisfied"
    return End(
        ending=ending,
        cause=cause,
        detail=detail,
        exit_code=exit_code,
        signal=signal or None,
        cancelled_by=cancelled_by(state_text) if state is SlurmState.CANCELLED else None,
    )


def _failed(
    reason: str, exit_code: Optional[int], signal: Optional[int]
) -> Tuple[Ending, Optional[Cause], str]:
    if reason == "outofmemory":
        return Ending.LIMIT, Cause.MEMORY, ""
    if reason == "timelimit":
        return Ending.LIMIT, Cause.WALLTIME, ""
    if signal == OUTPUT_NOT_OPENED_SIGNAL:
        return Ending.BADLY, Cause.DISK, OUTPUT_NOT_OPENED
    if reason == "badconstraints":
        # Seen on 22.05: a refused submission leaves such a record, FAILED 0:1.
        return Ending.BADLY, Cause.LAUNCH_ERROR, "its requirements can never be satisfied"
    if not signal and exit_code in CANNOT_RUN_EXIT_CODES:
        return Ending.BADLY, Cause.LAUNCH_ERROR, CANNOT_RUN_EXIT_CODES[exit_code]
    return Ending.BADLY, None, ""


def signal_from_reason(reason: str) -> Optional[int]:
    """Return the signal that ``RaisedSignal:9(Killed)`` names (Slurm >= 23.02), else None."""
    match = re.match(r"\(?RaisedSignal:([0-9]{1,3})\b", reason.strip(), re.IGNORECASE)
    return int(match.group(1)) if match else None


def parse_exit_code(text: str) -> Tuple[Optional[int], Optional[int]]:
    """Return (exit code, signal) of ``3:0``, ``0:15`` or a raw wait status; None: not said.

    squeue's ``exit_code`` is the raw wait status on 22.05 (768 is exit code 3), and ``3:0`` on
    24.11; a number without a colon is read as a wait status.

    Raises:
        OutputParseError: the text has none of these forms.
    """
    word = text.strip()
    if word.lower() in ("", "n/a", "none", "(null)"):
        return None, None
    match = re.fullmatch(r"(-?[0-9]{1,10})(?::([0-9]{1,10}))?", word)
    if match is None:
        raise OutputParseError(f"not an exit code: {text!r:.80}; expected e.g. 3:0 or 0:9")
    first, second = int(match.group(1)), match.group(2)
    if second is not None:
        return first, int(second) or None
    # The bit 0x80 says that a core was dumped (253 is 0:125). Beside a signal the upper bits
    # mean nothing: an output that cannot be opened is 4021, which scontrol shows as 0:53.
    signal = first & 0x7F
    return (0, signal) if signal else ((first >> 8) & 0xFF, None)
