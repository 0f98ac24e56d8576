"""What an LSF job state, with its exit code and exit reason, says about a job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Tuple

from ...reason import Cause
from ..base import End, Ending, Phase
from ..captured import CANNOT_RUN_EXIT_CODES
from .states import PHASES, LsfState, canonical_state
from .termination import Termination, find_termination

#: LSF warns with SIGUSR2 when the run limit is reached, and kills ten minutes later; 12 is how
#: bjobs shows it raw, 140 how the shell passes it on.
RUN_LIMIT_EXIT_CODES = frozenset({12, 140})


@dataclass(frozen=True)
class Description:
    """What a job state says. ``end`` is there only with Phase.ENDED.

    ``inferred`` says that the cause was concluded from numbers and not told by LSF.
    """

    state: LsfState
    word: str
    phase: Phase
    end: Optional[End] = None
    inferred: bool = False


def describe_state(
    state_text: str,
    exit_reason: str = "",
    exit_code: Optional[int] = None,
    *,
    signal: Optional[int] = None,
    started: Optional[bool] = None,
    elapsed_s: Optional[int] = None,
    walltime_s: Optional[int] = None,
) -> Description:
    """Return what a state with its exit code and reason says. Never raises.

    Args:
        state_text: The state in any spelling.
        exit_reason: LSF's own words, empty where it gave none.
        exit_code: As LSF shows it, None where it did not say.
        signal: That ended the job, where the text names one.
        started: False only where it is known that the job never had an execution host.
        elapsed_s: For how long it ran; None where not known.
        walltime_s: Its run limit; None where not known.
    """
    state = canonical_state(state_text)
    word = state_text.strip() if state is LsfState.UNKNOWN else state.value
    if state is LsfState.DONE:
        return Description(state, word, Phase.ENDED, End(Ending.WELL, exit_code=exit_code))
    if state is not LsfState.EXIT:
        return Description(state, word, PHASES[state])
    end, inferred = _exit(
        find_termination(exit_reason), exit_code, signal, started, elapsed_s, walltime_s
    )
    return Description(state, word, Phase.ENDED, end, inferred)


def _exit(
    termination: Optional[Termination],
    exit_code: Optional[int],
    signal: Optional[int],
    started: Optional[bool],
    elapsed_s: Optional[int],
    walltime_s: Optional[int],
) -> Tuple[End, bool]:
    if signal is None and exit_code is not None and 128 < exit_code <= 192:
        signal = exit_code - 128
    if termination is not None and (termination.cause or exit_code is None):
        end = End(
            termination.ending,
            termination.cause,
            termination.detail,
            exit_code,
            signal,
            termination.cancelled_by,
        )
        return end, False
    if started is False and not exit_code and not signal:
        detail = "it was taken out of the queue before it started"
        return End(Ending.CANCELLED, Cause.CANCELLED, detail), True
    at_limit = elapsed_s is not None and walltime_s is not None and elapsed_s >= walltime_s
    if at_limit and (exit_code in RUN_LIMIT_EXIT_CODES or signal):
        return End(Ending.LIMIT, Cause.WALLTIME, "", exit_code, signal), True
    if not signal and exit_code in CANNOT_RUN_EXIT_CODES:
        detail = CANNOT_RUN_EXIT_CODES[exit_code]
        return End(Ending.BADLY, Cause.LAUNCH_ERROR, detail, exit_code), False
    return End(Ending.BADLY, None, "", exit_code, signal), False
