"""A failure reason on the wire: the keys of Pulsar's terminal payload, both ways.

Additions only, each key absent when unknown and never null, and only with status ``failed``
or ``lost``. Pulsar's ``status`` keeps its eight words.
"""

from __future__ import annotations

import logging
from typing import Any, Dict, Mapping, Optional, Set

from .errors import RecordError
from .reason import FailureReason
from .runner_state import WIRE_TOKENS

log = logging.getLogger("pulsar.failure_reasons.wire")

RUNNER_STATE = "runner_state"
RUNNER_STATE_MESSAGE = "runner_state_message"
FAILURE_REASON = "failure_reason"
#: The number of the job's attempt, in every payload of a job that Galaxy numbered.
ATTEMPT = "attempt"

#: The statuses whose payload may carry a reason.
STATUSES_WITH_REASON = frozenset({"failed", "lost"})

_unknown_tokens_logged: Set[str] = set()


def payload_keys(reason: FailureReason) -> Dict[str, Any]:
    """Return what a reason adds to a payload; nothing where it may not be sent."""
    token = reason.runner_state
    if token is None or reason.observe_only:
        return {}
    details = reason.to_dict()
    details.pop("runner_state", None)
    message = details.pop("message")
    return {RUNNER_STATE: token, RUNNER_STATE_MESSAGE: message, FAILURE_REASON: details}


def runner_state_of(
    payload: Mapping[str, Any], logger: logging.Logger = log
) -> Optional[str]:
    """Return the token of a payload, None where it has none that we know.

    An unknown token is logged once per process and ignored: it comes from a newer version.
    """
    token = payload.get(RUNNER_STATE)
    if token is None or payload.get("status") not in STATUSES_WITH_REASON:
        return None
    if isinstance(token, str) and token in WIRE_TOKENS:
        return token
    if repr(token) not in _unknown_tokens_logged:
        _unknown_tokens_logged.add(repr(token))
        logger.info(
            "ignoring runner_state %.80r of a payload: not one that this version knows", token
        )
    return None


def attempt_of(payload: Mapping[str, Any]) -> Optional[int]:
    """Return which attempt of the job a payload speaks of, None where it does not say."""
    number = payload.get(ATTEMPT)
    return number if isinstance(number, int) and not isinstance(number, bool) else None


def reason_from_payload(
    payload: Mapping[str, Any], logger: logging.Logger = log
) -> Optional[FailureReason]:
    """Return the reason that a payload carries, None where it carries none that can be read."""
    if runner_state_of(payload, logger) is None:
        return None
    details = payload.get(FAILURE_REASON)
    if not isinstance(details, Mapping):
        return None
    try:
        return FailureReason.from_dict(
            {**details, "message": payload.get(RUNNER_STATE_MESSAGE, "")}
        )
    except RecordError as error:
        logger.info("ignoring the failure_reason of a payload: %s", error)
        return None
