"""The job states of OpenPBS and of Torque.

Sources: qstat(1B) of OpenPBS, https://github.com/openpbs/openpbs/blob/master/doc/man1/qstat.1B
("PBS Reference Guide", Job States); Torque,
https://docs.adaptivecomputing.com/torque/6-1-2/adminGuide/Content/topics/torque/commands/qstat.htm
"""

from __future__ import annotations

from enum import Enum
from typing import Dict

from ..base import Phase


class PbsState(Enum):
    """The job states of both flavours by their letters, and one for all others."""

    #: An array of which elements have begun (OpenPBS).
    BEGUN = "B"
    #: Torque only; kept for keep_completed seconds. Says nothing of success.
    COMPLETED = "C"
    EXITING = "E"
    #: OpenPBS only; shown with -x while history is kept. Says nothing of success.
    FINISHED = "F"
    HELD = "H"
    #: Moved to another server, which alone knows the rest (OpenPBS).
    MOVED = "M"
    QUEUED = "Q"
    RUNNING = "R"
    SUSPENDED = "S"
    TRANSIT = "T"
    #: Suspended because its workstation is in use (OpenPBS).
    USER_SUSPENDED = "U"
    WAITING = "W"
    #: An array's element that has ended, until the array does (OpenPBS).
    EXPIRED = "X"
    UNKNOWN = "?"


PHASES: Dict[PbsState, Phase] = {
    PbsState.BEGUN: Phase.RUNNING,
    PbsState.COMPLETED: Phase.ENDED,
    PbsState.EXITING: Phase.ENDING,
    PbsState.FINISHED: Phase.ENDED,
    # Stuck where PBS itself held it: see classify.
    PbsState.HELD: Phase.QUEUED,
    # The answer must come from the other server.
    PbsState.MOVED: Phase.ENDING,
    PbsState.QUEUED: Phase.QUEUED,
    PbsState.RUNNING: Phase.RUNNING,
    PbsState.SUSPENDED: Phase.RUNNING,
    PbsState.TRANSIT: Phase.QUEUED,
    PbsState.USER_SUSPENDED: Phase.RUNNING,
    PbsState.WAITING: Phase.QUEUED,
    PbsState.EXPIRED: Phase.ENDED,
    PbsState.UNKNOWN: Phase.UNKNOWN,
}

_BY_LETTER: Dict[str, PbsState] = {state.value: state for state in PbsState}


def canonical_state(text: str) -> PbsState:
    """Return the state of a letter, UNKNOWN for any other text."""
    return _BY_LETTER.get(text.strip(), PbsState.UNKNOWN)
