"""Attempts of a Galaxy job: their numbers on the way out, and whose statuses come back."""

from __future__ import annotations

import functools
import hashlib
import logging
from typing import Any, Mapping, Optional

from galaxy import model

from .. import wire
from ..attempt import Attempt
from .database import attempt_number

log = logging.getLogger("galaxy.pulsar_failure_reasons.attempts")

#: What makes two message-driven runners listen to the same queue.
_ENDPOINT_PARAMS = (
    "amqp_url", "amqp_key_prefix", "manager", "relay_url", "relay_topic_prefix",
)
#: States in which no attempt of the job is on its way: it waits to be sent.
_NOT_SENT = (model.Job.states.NEW, model.Job.states.RESUBMITTED)


def number_client(runner: Any, client: Any, job_wrapper: Any) -> None:
    """Have a Pulsar client say which attempt of the job it sends."""
    number = attempt_number(runner.sa_session, job_wrapper.get_job())
    if runner.use_mq:
        _note_while_current(runner, job_wrapper, number)
    attempt = Attempt(number, _name_of_galaxy(runner))
    # A list of its own: queue_job adds the tool's variables to what may be the destination's.
    client.env = [*(client.env or []), *attempt.env()]
    set_up = getattr(client, "remote_setup", None)
    if set_up is not None:
        client.remote_setup = lambda **arguments: set_up(
            **arguments, **attempt.setup_arguments()
        )


def _name_of_galaxy(runner: Any) -> str:
    """Return a word that no other Galaxy has: it tells nothing of its secret."""
    encoded = runner.app.security.encode_id(0, kind="attempts")
    return hashlib.sha256(f"{runner.galaxy_url} {encoded}".encode()).hexdigest()[:16]


def _note_while_current(runner: Any, job_wrapper: Any, number: int) -> None:
    """Have a wrapper note where its job was sent unless that attempt is over by then.

    Galaxy notes it after the submission: a busy one may have had the message of the end before,
    and would put the attempt that has failed into the place of the next one.
    """
    stock_note = job_wrapper.set_job_destination

    @functools.wraps(stock_note)
    def set_job_destination(*args: Any, **kwargs: Any) -> None:
        over = kwargs.get("external_id") and _over(runner, job_wrapper.get_job(), number)
        if over:
            log.info("(%s) not noted as sent: %s", job_wrapper.job_id, over)
            runner.sa_session.commit()
        else:
            stock_note(*args, **kwargs)

    job_wrapper.set_job_destination = set_job_destination


def _over(runner: Any, job: Any, number: int) -> Optional[str]:
    """Return why this attempt of the job is over, else None and lock the job until a commit."""
    runner.sa_session.flush()
    runner.sa_session.refresh(job, with_for_update=True)
    if attempt_number(runner.sa_session, job) != number:
        return "attempt %d is over" % number
    return moved_on(runner, job)


def moved_on(runner: Any, job: Any) -> Optional[str]:
    """Return where the job is instead, if it is no longer with this runner; else None.

    Pulsar tells an end twice after a crash: stock would finish a finished job again, whose files
    are gone, and fail it.
    """
    if job.state in _NOT_SENT:
        return "it waits to be sent (%s)" % job.state
    if job.state == model.Job.states.OK:
        return "it has ended well"
    other = _runner_of(runner.app, job)
    if other is not None and not _same_endpoint(runner, other):
        return "it is with %s" % job.job_runner_name
    return None


def other_attempt(runner: Any, job: Any, payload: Mapping[str, Any]) -> Optional[str]:
    """Return of which attempt a payload speaks, if that is not the job's present one."""
    told = wire.attempt_of(payload)
    if told is None:
        return None
    current = attempt_number(runner.sa_session, job)
    return None if told == current else "attempt %d, and it is at %d" % (told, current)


def _runner_of(app: Any, job: Any) -> Any:
    """Return the runner that has the job, None where this process does not know it."""
    try:
        runners = app.job_manager.job_handler.dispatcher.job_runners
    except AttributeError:
        return None
    return runners.get((job.job_runner_name or "").split(":", 1)[0])


def _same_endpoint(runner: Any, other: Any) -> bool:
    if other is runner:
        return True
    if not (getattr(runner, "use_mq", False) and getattr(other, "use_mq", False)):
        return False
    return all(
        _param(runner, name) == _param(other, name) for name in _ENDPOINT_PARAMS
    )


def _param(runner: Any, name: str) -> Any:
    try:
        return runner.runner_params[name]
    except KeyError:  # a Galaxy that does not know it (relay, before 26.0)
        return None
