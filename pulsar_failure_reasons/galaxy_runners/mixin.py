"""What every Pulsar runner of Galaxy gets: resubmission by reason.

Each method does its part around stock's method of the same name. Whatever goes wrong in our part
is logged, and the job goes stock's way; the database being away is waited for.
"""

from __future__ import annotations

import functools
import logging
from contextlib import nullcontext
from typing import Any, Callable, Mapping, Optional

from galaxy.jobs.runners import pulsar as stock
from galaxy.jobs.runners.state_handlers import resubmit

from . import attempts, conditions, destination, finish, messages, retries
from .database import DATABASE_AWAY, one_line, until_database_answers
from .payload import (
    TERMINAL,
    describe_failure,
    is_terminal,
    payload_of,
    remember,
    remember_payloads,
    stored_reason,
)

log = logging.getLogger("galaxy.pulsar_failure_reasons.runner")


class FailureReasonsMixin:
    """To be put before one of Galaxy's Pulsar runners.

    Runner parameter of its own: ``infrastructure_retries`` (see :mod:`.retries`).
    """

    app: Any
    sa_session: Any
    client_manager: Any
    use_mq: bool

    def __init__(self, app: Any, nworkers: Any, **kwds: Any) -> None:
        retries_at_most = kwds.pop(retries.RUNNER_PARAM, 0)
        self.infrastructure_retries = retries.parse_retries(retries_at_most)
        super().__init__(app, nworkers, **kwds)  # type: ignore[call-arg]
        conditions.install(resubmit)

    def _init_client_manager(self) -> None:
        super()._init_client_manager()  # type: ignore[misc]
        messages.requeue_unhandled(self.client_manager)

    # ---- on the way out -------------------------------------------------------------------

    def put(self, job_wrapper: Any) -> Any:
        """See Galaxy's; the rules of the destination travel with the job."""
        self._safely(
            job_wrapper.job_id, "its resubmit rules do not travel with it",
            lambda: destination.keep_with_job(self.app, job_wrapper.job_destination),
        )
        return super().put(job_wrapper)  # type: ignore[misc]

    def get_client_from_wrapper(self, job_wrapper: Any) -> Any:
        """See Galaxy's; the client says which attempt it sends."""
        client = super().get_client_from_wrapper(job_wrapper)  # type: ignore[misc]
        self._safely(
            job_wrapper.job_id, "its attempts are not numbered",
            lambda: attempts.number_client(self, client, job_wrapper),
        )
        return client

    # ---- what comes back ------------------------------------------------------------------

    def get_client_from_state(self, job_state: Any) -> Any:
        """See Galaxy's; the client's answers are kept with the state."""
        client = super().get_client_from_state(job_state)  # type: ignore[misc]
        remember_payloads(client, job_state)
        return client

    def _job_state(self, job: Any, job_wrapper: Any) -> Any:
        job_state = super()._job_state(job, job_wrapper)  # type: ignore[misc]
        self._safely(
            job.id, "its resubmit rules are not known", lambda: self._complete(job, job_state)
        )
        return job_state

    def _complete(self, job: Any, job_state: Any) -> None:
        # A destination made from the job has no runner, and the job sent to it again none either.
        if job_state.job_destination.runner is None:
            job_state.job_destination.runner = job.job_runner_name
        destination.detach(job_state.job_destination)
        destination.restore(self.app, job_state.job_destination)

    def _PulsarJobRunner__async_update(self, full_status: Any) -> None:
        """See Galaxy's private ``__async_update``: a message has come.

        It is acknowledged once this is over, so it is kept until the database answers.
        """
        update = super()._PulsarJobRunner__async_update  # type: ignore[misc]
        until_database_answers(self, "a message of Pulsar", lambda: update(full_status))

    def _update_job_state_for_status(
        self, job_state: Any, pulsar_status: Any, full_status: Optional[Mapping[str, Any]] = None
    ) -> Any:
        """See Galaxy's; one of another attempt or runner changes nothing."""
        if full_status is not None:
            remember(job_state, full_status)
        payload = payload_of(job_state)
        changes_something = pulsar_status in TERMINAL or (
            pulsar_status == "running" and not job_state.running
        )
        if changes_something:
            gone, other = self._safely(
                job_state.job_wrapper.job_id, "whether its status is current is not known",
                lambda: self._not_current(job_state, payload),
            ) or (None, None)
            if gone or other:
                log.info(
                    "(%s) ignoring its status '%s': %s",
                    job_state.job_wrapper.job_id, pulsar_status, gone or other,
                )
                return None if gone else job_state
        if pulsar_status not in ("failed", "lost"):
            return self._stock_update(job_state, pulsar_status, payload)
        return self._failed(job_state, pulsar_status, payload)

    def _not_current(
        self, job_state: Any, payload: Mapping[str, Any], lock: bool = False
    ) -> Any:
        job = job_state.job_wrapper.get_job()
        self.sa_session.refresh(job, with_for_update=lock or None)
        return attempts.moved_on(self, job), attempts.other_attempt(self, job, payload)

    def _failed(self, job_state: Any, pulsar_status: str, payload: Mapping[str, Any]) -> Any:
        self._safely(
            job_state.job_wrapper.job_id, "why it failed is not known",
            lambda: self._take_reason(job_state, payload),
        )
        kill_later = self._may_not_be_killed_now(job_state, pulsar_status)
        if kill_later:
            job_state.stop_job = False
        returned = self._stock_update(job_state, pulsar_status, payload)
        if kill_later and pulsar_status == "lost" and not job_state.runner_state_handled:
            self._safely(
                job_state.job_wrapper.job_id, "it could not be killed",
                lambda: self.stop_job(job_state.job_wrapper),  # type: ignore[attr-defined]
            )
        return returned

    def _stock_update(self, job_state: Any, pulsar_status: Any, payload: Mapping[str, Any]) -> Any:
        return super()._update_job_state_for_status(  # type: ignore[misc]
            job_state, pulsar_status, full_status=dict(payload) or None
        )

    def _take_reason(self, job_state: Any, payload: Mapping[str, Any]) -> None:
        if job_state.job_wrapper.get_job().finished:
            return
        describe_failure(job_state, payload)
        destination.keep_reason(self, job_state, stored_reason(payload))

    def _may_not_be_killed_now(self, job_state: Any, pulsar_status: str) -> bool:
        """Tell whether the remote job of this failure is not killed before it is resubmitted.

        One that failed is over. By a message queue a kill may come after the next attempt's
        submission, and end that. The coexecution runners' kill removes what they made.
        """
        if isinstance(self, stock.PulsarCoexecutionJobRunner):
            return False
        return pulsar_status == "failed" or self.use_mq

    # ---- ends -----------------------------------------------------------------------------

    def finish_job(self, job_state: Any) -> None:
        """See Galaxy's; the rules are asked about a tool that failed."""
        # It is over; a kill on the way to resubmission might end the next attempt.
        job_state.stop_job = False
        with finish.handler_asked_first(self, job_state):
            super().finish_job(job_state)  # type: ignore[misc]

    def fail_job(self, job_state: Any, *args: Any, **kwargs: Any) -> None:
        """See Galaxy's; an error on the way fails the job instead of leaving it as it is."""
        what = "(%s) its failure" % job_state.job_wrapper.job_id
        stock_fail_job = super().fail_job  # type: ignore[misc]

        def fail_or_resubmit() -> None:
            job_state.runner_state_handled = False
            stock_fail_job(job_state, *args, **kwargs)

        try:
            until_database_answers(self, what, fail_or_resubmit)
        except DATABASE_AWAY:
            raise
        except Exception as error:
            log.exception("%s could not be handled: %s", what, one_line(error))
            message = getattr(job_state, "fail_message", kwargs.get("message", "Job failed"))
            until_database_answers(
                self, what, functools.partial(job_state.job_wrapper.fail, message)
            )

    def _handle_runner_state(self, runner_state: str, job_state: Any) -> None:
        """See Galaxy's; retries of failed infrastructure come first.

        As stock does, an error of a handler is logged and the job fails; but the database's goes
        to whoever waits for it.
        """
        try:
            with self._whole_resubmission(job_state):
                if self._handled_elsewhere(job_state):
                    return
                if runner_state == "failure" and not finish.may_run_again(self, job_state):
                    return
                self._ask_handlers(runner_state, job_state)
        except DATABASE_AWAY:
            job_state.runner_state_handled = False
            raise
        except Exception as error:
            job_state.runner_state_handled = False
            log.exception(
                "(%s) it is not resubmitted: %s", job_state.job_wrapper.job_id, one_line(error)
            )

    def _handled_elsewhere(self, job_state: Any) -> bool:
        """Tell whether another handler was told of the same end and was faster.

        If not, it waits for us: the job is locked until it is resubmitted or has failed.
        """
        payload = payload_of(job_state)
        if not (self.use_mq and is_terminal(payload)):
            return False
        gone, other = self._not_current(job_state, payload, lock=True)
        if gone or other:
            log.info("(%s) its end was handled elsewhere: %s",
                     job_state.job_wrapper.job_id, gone or other)
            self.sa_session.commit()
            job_state.runner_state_handled = True
        return bool(gone or other)

    def _ask_handlers(self, runner_state: str, job_state: Any) -> None:
        if runner_state == "failure" and retries.send_again(
            self, job_state, self.infrastructure_retries
        ):
            return
        for handler in self.runner_state_handlers.get(  # type: ignore[attr-defined]
            runner_state, []
        ):
            handler(self.app, self, job_state)
            if job_state.runner_state_handled:
                break

    def _whole_resubmission(self, job_state: Any) -> Any:
        # By REST the remote directory is removed in between, which may take long, and must not be
        # gone while the job still counts as there.
        if not self.use_mq:
            return nullcontext()
        return destination.committed_with_its_state(job_state)

    def mark_as_resubmitted(self, job_state: Any, info: Optional[str] = None) -> None:
        """See Galaxy's; Pulsar forgets the attempt that is over."""
        job_id = job_state.job_wrapper.job_id
        self._safely(
            job_id, "its remote directory was not removed",
            lambda: self.get_client_from_state(job_state).clean(), level=logging.DEBUG,
        )
        self._safely(
            job_id, "its next attempt will not know all of this one",
            lambda: destination.carry_on(self, job_state),
        )
        destination.ready_for_its_state(self, job_state)
        super().mark_as_resubmitted(job_state, info=info)  # type: ignore[misc]

    # ---- helpers --------------------------------------------------------------------------

    def _safely(
        self, job_id: Any, what: str, action: Callable[[], Any], level: int = logging.WARNING
    ) -> Any:
        """Return what the action returns, None if it fails; only the database's errors go on."""
        try:
            return action()
        except DATABASE_AWAY:
            raise
        except Exception as error:
            log.log(
                level, "(%s) %s: %s", job_id, what, one_line(error),
                exc_info=level >= logging.WARNING,
            )
            return None
