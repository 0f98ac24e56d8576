"""The job states of Grid Engine, which are words made of letters: ``qw``, ``hRwq``, ``Eqw``.

Source: sge_status(5), https://github.com/daimh/sge/blob/master/doc/man/man5/sge_status.5, and
qstat(1); N and P are Univa's and Altair's.
"""

from __future__ import annotations

from enum import Enum
from typing import Dict, FrozenSet, Optional

from ..base import Phase


class StateLetter(Enum):
    """The letters of a job state."""

    DELETION = "d"
    ERROR = "E"
    HOLD = "h"
    RUNNING = "r"
    RESTARTED = "R"
    SUSPENDED = "s"
    QUEUE_SUSPENDED = "S"
    #: Enhanced suspended (Univa).
    ENHANCED_SUSPENDED = "N"
    #: Suspended for another job (Univa).
    PREEMPTED = "P"
    TRANSFERRING = "t"
    #: Suspended by the load threshold of its queue.
    THRESHOLD = "T"
    QUEUED = "q"
    WAITING = "w"
    #: Finished, shown by qstat -s z; nothing says how it ended.
    FINISHED = "z"


_BY_LETTER: Dict[str, StateLetter] = {letter.value: letter for letter in StateLetter}
_ON_HOST = frozenset(
    {
        StateLetter.RUNNING, StateLetter.SUSPENDED, StateLetter.QUEUE_SUSPENDED,
        StateLetter.ENHANCED_SUSPENDED, StateLetter.PREEMPTED, StateLetter.TRANSFERRING,
        StateLetter.THRESHOLD,
    }
)
_IN_QUEUE = frozenset({StateLetter.QUEUED, StateLetter.WAITING, StateLetter.HOLD})


def canonical_state(text: str) -> Optional[FrozenSet[StateLetter]]:
    """Return the letters of a state; None for a text that has others or none."""
    word = text.strip()
    if not word or len(word) > 8 or any(letter not in _BY_LETTER for letter in word):
        return None
    return frozenset(_BY_LETTER[letter] for letter in word)


def phase_of(text: str) -> Phase:
    """Return the phase of a state. Never raises."""
    letters = canonical_state(text)
    if letters is None:
        return Phase.UNKNOWN
    if StateLetter.FINISHED in letters:
        return Phase.ENDING
    if StateLetter.ERROR in letters:
        return Phase.STUCK
    if StateLetter.DELETION in letters:
        # Also where the host is dead: then it stays like this until an admin forces it.
        return Phase.ENDING
    # A running job can be held as well (hr): that counts from its next start.
    if letters & _ON_HOST:
        return Phase.RUNNING
    return Phase.QUEUED if letters & _IN_QUEUE else Phase.UNKNOWN


def is_being_deleted(text: str) -> bool:
    """Tell whether a state says that somebody has deleted the job.

    qacct never tells a deletion, so a caller who saw this state last knows more.
    """
    letters = canonical_state(text)
    return letters is not None and StateLetter.DELETION in letters
