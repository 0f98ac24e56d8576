"""The job states of LSF.

Source: ``bjobs(1)``, section STAT, and "About job states":
https://www.ibm.com/docs/en/spectrum-lsf/10.1.0?topic=execution-about-job-states
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Dict

from ..base import Phase


class LsfState(Enum):
    """The job states that LSF's manual lists, and one for all others."""

    PEND = "PEND"
    #: Dispatched to a power-saved host that is waking up.
    PROV = "PROV"
    #: Held by its owner or an administrator before it started.
    PSUSP = "PSUSP"
    #: Member of a chunk job, waits for its turn on the host.
    WAIT = "WAIT"
    #: Forwarded to another cluster, pending there.
    FWD_PEND = "FWD_PEND"
    RUN = "RUN"
    USUSP = "USUSP"
    SSUSP = "SSUSP"
    #: mbatchd has lost sbatchd on the job's host.
    UNKWN = "UNKWN"
    #: Killed while its host could not be reached, or requeued away from such a host.
    ZOMBI = "ZOMBI"
    DONE = "DONE"
    EXIT = "EXIT"
    POST_DONE = "POST_DONE"
    POST_ERR = "POST_ERR"
    UNKNOWN = "UNKNOWN"


PHASES: Dict[LsfState, Phase] = {
    LsfState.PEND: Phase.QUEUED,
    LsfState.PROV: Phase.QUEUED,
    LsfState.PSUSP: Phase.QUEUED,
    LsfState.WAIT: Phase.QUEUED,
    LsfState.FWD_PEND: Phase.QUEUED,
    LsfState.RUN: Phase.RUNNING,
    LsfState.USUSP: Phase.RUNNING,
    LsfState.SSUSP: Phase.RUNNING,
    # It holds its slots until mbatchd knows more.
    LsfState.UNKWN: Phase.RUNNING,
    # The end is told once its host is back, or an administrator removes it.
    LsfState.ZOMBI: Phase.ENDING,
    LsfState.DONE: Phase.ENDED,
    LsfState.EXIT: Phase.ENDED,
    # Shown after DONE and after EXIT alike: they say nothing of the job's own end.
    LsfState.POST_DONE: Phase.ENDING,
    LsfState.POST_ERR: Phase.ENDING,
    LsfState.UNKNOWN: Phase.UNKNOWN,
}

_SPELLINGS: Dict[str, LsfState] = {
    "EXITED": LsfState.EXIT,
    "PDONE": LsfState.POST_DONE,
    "PERR": LsfState.POST_ERR,
    "ZOMBIE": LsfState.ZOMBI,
    "UNKWN": LsfState.UNKWN,
}


def canonical_state(text: str) -> LsfState:
    """Return the state in any spelling (``<EXIT>``, ``exit``), UNKNOWN for any other text."""
    word = re.sub(r"^<|>$", "", text.strip()).strip().upper()
    if word == "UNKNOWN":
        return LsfState.UNKNOWN
    return _SPELLINGS.get(word) or LsfState.__members__.get(word, LsfState.UNKNOWN)
