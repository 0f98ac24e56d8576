"""What a user of Galaxy reads about a job that failed: one sentence for each token."""

from __future__ import annotations

from typing import Mapping, Optional

from ..reason import MAX_MESSAGE_CHARS, clean_text
from ..runner_state import MEMORY_LIMIT_REACHED, UNKNOWN_ERROR, WALLTIME_REACHED

SENTENCE_BY_TOKEN: Mapping[str, str] = {
    WALLTIME_REACHED: "The job took longer than it was allowed to and was ended by the cluster.",
    MEMORY_LIMIT_REACHED: "The job needed more memory than it was given and was ended by the "
    "cluster.",
    UNKNOWN_ERROR: "The cluster could not carry the job through to its end.",
}

#: Of a tool's output, told where Galaxy's own handler has no words for it.
OUTPUT_NOT_RETURNED = "its output did not come back from the cluster"

#: Told when a job is sent again without a rule; the placeholder is "its node failed" or the like.
SENT_AGAIN = "The job was sent to the same place again because %s (%d of at most %d times)."


def fail_message(token: str, message: object) -> str:
    """Return what is shown for a failed job; ``message`` is the payload's own sentence."""
    sentence = SENTENCE_BY_TOKEN[token]
    said = _cleaned(message)
    return f"{sentence} Details: {said}" if said else sentence


def _cleaned(message: object) -> Optional[str]:
    return clean_text(message, MAX_MESSAGE_CHARS) if isinstance(message, str) else None
