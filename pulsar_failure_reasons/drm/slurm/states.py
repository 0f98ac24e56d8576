"""Slurm's job states, and the one function that knows every spelling of them.

Source: https://slurm.schedmd.com/job_state_codes.html (up to 25.11) and the JOB STATE CODES of
squeue's and sacct's manuals (22.05, 24.11).
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Dict, FrozenSet, List, Optional, Tuple

from ...reason import clean_text


class SlurmState(Enum):
    """A job state as Slurm writes it at full length; ``UNKNOWN`` is any word but these."""

    # Base states: a job always has one.
    BOOT_FAIL = "BOOT_FAIL"
    CANCELLED = "CANCELLED"
    COMPLETED = "COMPLETED"
    DEADLINE = "DEADLINE"
    FAILED = "FAILED"
    NODE_FAIL = "NODE_FAIL"
    OUT_OF_MEMORY = "OUT_OF_MEMORY"
    PENDING = "PENDING"
    PREEMPTED = "PREEMPTED"
    RUNNING = "RUNNING"
    SUSPENDED = "SUSPENDED"
    TIMEOUT = "TIMEOUT"
    # Flags: shown instead of the base state while they are set.
    COMPLETING = "COMPLETING"
    CONFIGURING = "CONFIGURING"
    EXPEDITING = "EXPEDITING"
    LAUNCH_FAILED = "LAUNCH_FAILED"
    POWER_UP_NODE = "POWER_UP_NODE"
    RECONFIG_FAIL = "RECONFIG_FAIL"
    REQUEUED = "REQUEUED"
    REQUEUE_FED = "REQUEUE_FED"
    REQUEUE_HOLD = "REQUEUE_HOLD"
    RESIZING = "RESIZING"
    RESV_DEL_HOLD = "RESV_DEL_HOLD"
    REVOKED = "REVOKED"
    SIGNALING = "SIGNALING"
    SPECIAL_EXIT = "SPECIAL_EXIT"
    STAGE_OUT = "STAGE_OUT"
    STOPPED = "STOPPED"
    UPDATE_DB = "UPDATE_DB"
    # Ours.
    UNKNOWN = "UNKNOWN"


#: squeue's short codes (``%t``). The flags that are missing have none in Slurm.
COMPACT_CODES: Dict[str, SlurmState] = {
    "BF": SlurmState.BOOT_FAIL,
    "CA": SlurmState.CANCELLED,
    "CD": SlurmState.COMPLETED,
    "DL": SlurmState.DEADLINE,
    "F": SlurmState.FAILED,
    "NF": SlurmState.NODE_FAIL,
    "OOM": SlurmState.OUT_OF_MEMORY,
    "PD": SlurmState.PENDING,
    "PR": SlurmState.PREEMPTED,
    "R": SlurmState.RUNNING,
    "S": SlurmState.SUSPENDED,
    "TO": SlurmState.TIMEOUT,
    "CG": SlurmState.COMPLETING,
    "CF": SlurmState.CONFIGURING,
    "RD": SlurmState.RESV_DEL_HOLD,
    "RF": SlurmState.REQUEUE_FED,
    "RH": SlurmState.REQUEUE_HOLD,
    "RQ": SlurmState.REQUEUED,
    "RS": SlurmState.RESIZING,
    "RV": SlurmState.REVOKED,
    "SE": SlurmState.SPECIAL_EXIT,
    "SI": SlurmState.SIGNALING,
    "SO": SlurmState.STAGE_OUT,
    "ST": SlurmState.STOPPED,
}

END_STATES: FrozenSet[SlurmState] = frozenset(
    {
        SlurmState.BOOT_FAIL,
        SlurmState.CANCELLED,
        SlurmState.COMPLETED,
        SlurmState.DEADLINE,
        SlurmState.FAILED,
        SlurmState.NODE_FAIL,
        SlurmState.OUT_OF_MEMORY,
        SlurmState.PREEMPTED,
        SlurmState.TIMEOUT,
    }
)

#: In a list of states (JSON since 23.11, ``FAILED,COMPLETING``) the first of these that is
#: there is what the text commands show; the order is that of Slurm's own job_state_string().
_FLAGS_BY_RANK: Tuple[SlurmState, ...] = (
    SlurmState.COMPLETING,
    SlurmState.STAGE_OUT,
    SlurmState.CONFIGURING,
    SlurmState.RESIZING,
    SlurmState.REQUEUE_HOLD,
    SlurmState.SPECIAL_EXIT,
    SlurmState.REQUEUED,
    SlurmState.REQUEUE_FED,
    SlurmState.STOPPED,
    SlurmState.REVOKED,
    SlurmState.RESV_DEL_HOLD,
    SlurmState.SIGNALING,
)
#: These only say more about a job that has not ended.
_WEAK_FLAGS: Tuple[SlurmState, ...] = (
    SlurmState.LAUNCH_FAILED,
    SlurmState.RECONFIG_FAIL,
    SlurmState.POWER_UP_NODE,
)

_BY_NAME: Dict[str, SlurmState] = {state.value: state for state in SlurmState}
#: Spellings of programs around Slurm.
_BY_NAME["CANCELED"] = SlurmState.CANCELLED
_BY_NAME["OUTOFMEMORY"] = SlurmState.OUT_OF_MEMORY

_LONGEST_TEXT = 400
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_BY_SOMEBODY = re.compile(r"^(CANCELL?ED\+?)\s+BY\s+(\S+)", re.IGNORECASE)
#: A cut word must be this long to be completed: squeue's narrowest usual column is 8 wide.
_SHORTEST_CUT = 5
#: sacct marks the cut with "+", so that a shorter one can be told.
_SHORTEST_MARKED_CUT = 3


def canonical_state(text: str) -> SlurmState:
    """Return the state that a word, code, cut word or list of Slurm's means. Never raises.

    ``TIMEOUT``, ``to``, ``CANCELLED by 1000``, ``CANCELLED+``, ``OUT_OF_ME+``, ``CONFIGUR``,
    ``FAILED,COMPLETING``, ``["PENDING", "REQUEUED"]``. A cut word that could be more than one
    state (``REQUEUE_``, ``COMPLET+``) is ``UNKNOWN``, as is everything else.
    """
    word = clean_text(_ANSI.sub("", text), _LONGEST_TEXT).strip("[]()'\"").strip()
    whole = _one_word(word)
    if whole is not SlurmState.UNKNOWN:
        return whole
    parts = [part for part in re.split(r"[,+|\s]+", word) if part.strip("'\"")]
    if len(parts) < 2:
        return SlurmState.UNKNOWN
    return shown_state([_one_word(part.strip("'\"")) for part in parts])


def shown_state(states: List[SlurmState]) -> SlurmState:
    """Return which of a job's base state and flags Slurm's text commands would show.

    ``UNKNOWN`` where one of them is: a flag that we do not know may mean anything.
    """
    if not states or SlurmState.UNKNOWN in states:
        return SlurmState.UNKNOWN
    for flag in _FLAGS_BY_RANK:
        if flag in states:
            return flag
    base = [s for s in states if s not in _WEAK_FLAGS]
    base = [s for s in base if s not in (SlurmState.UPDATE_DB, SlurmState.EXPEDITING)] or base
    if len(set(base)) > 1:
        return SlurmState.UNKNOWN
    if base and base[0] in END_STATES:
        return base[0]
    for flag in _WEAK_FLAGS:
        if flag in states:
            return flag
    return base[0]


def _one_word(word: str) -> SlurmState:
    by = _BY_SOMEBODY.match(word)
    name = re.sub(r"[\s-]+", "_", (by.group(1) if by else word).upper())
    if name.startswith("JOB_"):
        name = name[4:]
    marked = name.endswith("+")
    name = name.rstrip("+")
    if name in _BY_NAME:
        return _BY_NAME[name]
    if name in COMPACT_CODES:
        return COMPACT_CODES[name]
    if len(name) < (_SHORTEST_MARKED_CUT if marked else _SHORTEST_CUT):
        return SlurmState.UNKNOWN
    longer = {state for full, state in _BY_NAME.items() if full.startswith(name)}
    return longer.pop() if len(longer) == 1 else SlurmState.UNKNOWN


def cancelled_by(text: str) -> Optional[str]:
    """Return who cancelled the job (a uid, rarely a name) as ``CANCELLED by 1000`` says it.

    None where the text does not say.
    """
    match = _BY_SOMEBODY.match(_ANSI.sub("", text[:_LONGEST_TEXT]).strip())
    return match.group(2) if match else None
