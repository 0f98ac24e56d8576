"""What a Pulsar payload says, kept with Galaxy's state of the job."""

from __future__ import annotations

import functools
import json
import logging
from typing import Any, Callable, Dict, Mapping, Optional

from .. import wire
from ..reason import FailureReason
from . import prose

log = logging.getLogger("galaxy.pulsar_failure_reasons.payload")

#: Statuses that end an attempt in Galaxy.
TERMINAL = ("complete", "cancelled", "failed", "lost")
#: The key of ``destination_params`` under which the reason of the last failure is kept.
PARAM_REASON = "failure_reason"

#: More than our own server ever sends; a foreign one shall not fill Galaxy's database.
_MAX_REASON_CHARS = 16000

#: Attributes of Galaxy's job state.
_PAYLOAD = "failure_reasons_payload"
_REASON = "failure_reasons_reason"


def remember_payloads(client: Any, job_state: Any) -> None:
    """Have the client keep each status that a request brings with the job's state.

    Galaxy's REST polling asks for the whole dict and uses one word of it. A message client holds
    its payloads in a cache, which a late message of an older attempt overwrites: its full status
    is the payload that this state was made for.
    """
    ask: Optional[Callable[..., Any]] = getattr(client, "raw_check_complete", None)
    if ask is not None:
        @functools.wraps(ask)
        def raw_check_complete(*args: Any, **kwargs: Any) -> Any:
            answer = ask(*args, **kwargs)
            remember(job_state, answer)
            return answer

        client.raw_check_complete = raw_check_complete
    elif is_terminal(payload_of(job_state)):
        client.full_status = functools.partial(payload_of, job_state)


def remember(job_state: Any, payload: object) -> None:
    """Keep a payload with the job's state."""
    if isinstance(payload, Mapping):
        setattr(job_state, _PAYLOAD, dict(payload))


def payload_of(job_state: Any) -> Dict[str, Any]:
    """Return the payload that was kept last, {} where there is none."""
    return getattr(job_state, _PAYLOAD, None) or {}


def is_terminal(payload: Mapping[str, Any]) -> bool:
    """Tell whether the payload ends the attempt."""
    return payload.get("status") in TERMINAL


def reason_of(job_state: Any) -> Optional[FailureReason]:
    """Return why the job of this state failed, None where no payload told."""
    found: Optional[FailureReason] = getattr(job_state, _REASON, None)
    return found


def describe_failure(job_state: Any, payload: Mapping[str, Any]) -> None:
    """Give the job's state the token, message and reason of a payload; nothing where it has none.

    Galaxy's resubmission and its message to the user are made from them.
    """
    token = wire.runner_state_of(payload, log)
    if token is None:
        return
    job_state.runner_state = token
    job_state.fail_message = prose.fail_message(token, payload.get(wire.RUNNER_STATE_MESSAGE))
    setattr(job_state, _REASON, wire.reason_from_payload(payload, log))


def stored_reason(payload: Mapping[str, Any]) -> Optional[Dict[str, Any]]:
    """Return what is kept of the reason in ``destination_params``; None where there is none.

    As it came, with token and sentence: a newer Pulsar's reason may have keys that a rule knows
    and we do not.
    """
    token = wire.runner_state_of(payload, log)
    details = payload.get(wire.FAILURE_REASON)
    if token is None:
        return None
    kept: Dict[str, Any] = {"runner_state": token}
    if isinstance(payload.get(wire.RUNNER_STATE_MESSAGE), str):
        kept["message"] = payload[wire.RUNNER_STATE_MESSAGE][:_MAX_REASON_CHARS]
    if isinstance(details, Mapping) and len(json.dumps(details)) <= _MAX_REASON_CHARS:
        kept.update({key: value for key, value in details.items() if key not in kept})
    return kept
