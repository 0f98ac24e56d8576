"""What must travel with a job in its ``destination_params``.

Galaxy keeps id and params of a job's destination, and takes the rest from its configuration: the
resubmit rules and the environment of a destination that TPV or another dynamic rule made are
gone once the job has to be looked up (by a message, after a restart, in another handler).
"""

from __future__ import annotations

import contextlib
import json
import logging
from typing import Any, Dict, Iterator, Mapping, Optional

from .database import one_line
from .payload import PARAM_REASON

log = logging.getLogger("galaxy.pulsar_failure_reasons.destination")

#: The key under which the destination's rules and environment are kept.
PARAM_DESTINATION = "__failure_reasons_destination"
_KEPT = ("resubmit", "env", "tags", "shell")


def keep_with_job(app: Any, destination: Any) -> None:
    """Put rules and environment of a destination that is about to be used into its params.

    A destination that Galaxy made from a resubmitted job's params alone gets its own back first.
    """
    detach(destination)
    restore(app, destination)
    destination.params[PARAM_DESTINATION] = kept_of(destination)


def detach(destination: Any) -> None:
    """Give a destination params of its own.

    One made from a job has that job's column, and writing to it fails once the job is expired.
    """
    destination.params = dict(destination.params or {})


def kept_of(destination: Any) -> Dict[str, Any]:
    """Return what is kept of a destination, as plain data of its own.

    Raises:
        TypeError: a rule or variable is no plain data.
    """
    values = {name: getattr(destination, name, None) for name in _KEPT}
    kept = {"id": destination.id, **{name: value for name, value in values.items() if value}}
    copied: Dict[str, Any] = _copied(kept)
    return copied


def restore(app: Any, destination: Any) -> None:
    """Give a destination that has only id and params the rest of what it had.

    One that is configured is taken from there: the operator may have changed it. The rules are
    then in the form that this Galaxy reads.
    """
    if not (destination.resubmit or destination.env):
        _take_what_it_had(app, destination)
    destination.resubmit = [_in_galaxys_form(rule) for rule in destination.resubmit or []]


def _take_what_it_had(app: Any, destination: Any) -> None:
    source = _configured(app, destination.id)
    if source is None:
        kept = destination.params.get(PARAM_DESTINATION)
        source = kept if isinstance(kept, Mapping) and kept.get("id") == destination.id else {}
    for name in _KEPT:
        if source.get(name) and not getattr(destination, name, None):
            setattr(destination, name, _copied(source[name]))


def _configured(app: Any, destination_id: Optional[str]) -> Optional[Mapping[str, Any]]:
    """Return what Galaxy's configuration says of a destination, None if it is not in there."""
    if not destination_id:
        return None
    try:
        found = app.job_config.get_destination(destination_id)
    except KeyError:
        return None
    except Exception as error:
        log.warning("destination %s cannot be looked up: %s", destination_id, one_line(error))
        return None
    return {name: getattr(found, name, None) for name in _KEPT}


def _in_galaxys_form(rule: Any) -> Any:
    """Return a rule with the key that this Galaxy reads; TPV up to 3.2.1 writes the older one."""
    if isinstance(rule, Mapping) and rule.get("destination") and not rule.get("environment"):
        return {**rule, "environment": rule["destination"]}
    return rule


def _copied(value: Any) -> Any:
    # queue_job adds the tool's variables to the list that it finds.
    return json.loads(json.dumps(value))


def keep_reason(runner: Any, job_state: Any, reason: Optional[Mapping[str, Any]]) -> None:
    """Keep the reason of a failure with the job; None: it has none, and an older one goes."""
    job = job_state.job_wrapper.get_job()
    before = dict(job.destination_params or {})
    after = {key: value for key, value in before.items() if key != PARAM_REASON}
    job_state.job_destination.params.pop(PARAM_REASON, None)
    if reason is not None:
        after[PARAM_REASON] = dict(reason)
        # Whose params win where the job goes back to the same place.
        job_state.job_destination.params[PARAM_REASON] = dict(reason)
    if after != before:
        job.destination_params = after
        runner.sa_session.add(job)
        runner.sa_session.commit()


def carry_on(runner: Any, job_state: Any) -> None:
    """Add what must last to the params of the destination to which a job was just resubmitted.

    Galaxy 25.1 takes the new destination's params alone, and those of a dynamic one without its
    rules (galaxy#15208).
    """
    wrapper = job_state.job_wrapper
    job = wrapper.get_job()
    before = dict(job.destination_params or {})
    after = dict(before)
    reason = job_state.job_destination.params.get(PARAM_REASON)
    if reason is not None:
        after.setdefault(PARAM_REASON, reason)
    if wrapper.job_destination.id == job.destination_id:
        after[PARAM_DESTINATION] = kept_of(wrapper.job_destination)
    if after != before:
        job.destination_params = after
        runner.sa_session.add(job)


class _Uncommitted:
    """A job wrapper that leaves the commit of a new destination to whoever uses it."""

    def __init__(self, wrapper: Any) -> None:
        object.__setattr__(self, "bare", wrapper)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.bare, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.bare, name, value)

    def set_job_destination(self, *args: Any, **kwargs: Any) -> None:
        """See Galaxy's."""
        self.bare.set_job_destination(*args, **{**kwargs, "flush": False})


@contextlib.contextmanager
def committed_with_its_state(job_state: Any) -> Iterator[None]:
    """In the block, a job's new destination is stored with its state "resubmitted", not before.

    Whoever sees a job of a message-driven runner in between (a Galaxy that starts after it was
    killed just then, or another handler that gets the message) would take the failed attempt for
    one at the new destination: it asks the wrong rules, or sends it again as the same attempt.
    """
    wrapper = job_state.job_wrapper
    job_state.job_wrapper = _Uncommitted(wrapper)
    try:
        yield
    finally:
        job_state.job_wrapper = wrapper


def ready_for_its_state(runner: Any, job_state: Any) -> None:
    """Hand the new destination to the database, for the commit that stores the state.

    Galaxy reads the job anew before that.
    """
    runner.sa_session.flush()
    if isinstance(job_state.job_wrapper, _Uncommitted):
        job_state.job_wrapper = job_state.job_wrapper.bare
