"""Galaxy's database: waiting for it, and the little that is asked of it here."""

from __future__ import annotations

import logging
import time
from typing import Any, Callable, TypeVar

from galaxy import model
from sqlalchemy import exc, func, select

log = logging.getLogger("galaxy.pulsar_failure_reasons.database")

#: How long something that must not be lost waits for a database that is away.
MAX_WAIT_S = 3600.0
_LONGEST_PAUSE_S = 15.0

#: The database is down, restarting, locked or read-only, or its connection was lost.
DATABASE_AWAY = (
    exc.OperationalError, exc.InterfaceError, exc.InternalError, exc.PendingRollbackError,
    exc.TimeoutError,
)

Result = TypeVar("Result")


def until_database_answers(runner: Any, what: str, action: Callable[[], Result]) -> Result:
    """Return what the action returns; while the database is away, do it again from its start.

    Raises:
        Exception: any other error of the action; the database's, if it stays away for too long
            or Galaxy is shutting down.
    """
    deadline = time.monotonic() + MAX_WAIT_S
    pause_s = 0.5
    while True:
        try:
            return action()
        except DATABASE_AWAY as error:
            if runner._should_stop or time.monotonic() > deadline:
                raise
            log.warning(
                "%s waits for the database, next try in %.1f s: %s", what, pause_s, one_line(error)
            )
            _roll_back(runner)
        _pause(runner, pause_s)
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


def attempt_number(session: Any, job: Any) -> int:
    """Return the number of the job's present attempt, from 1, as Galaxy's conditions count it.

    Asked of the database: the history that a session has loaded may be an old one.
    """
    resubmitted = select(func.count()).select_from(model.JobStateHistory).where(
        model.JobStateHistory.job_id == job.id,
        model.JobStateHistory.state == model.Job.states.RESUBMITTED,
    )
    return int(session.scalar(resubmitted)) + 1


def one_line(error: BaseException) -> str:
    """Return an error for a log line."""
    return "%s: %s" % (type(error).__name__, " ".join(str(error).split())[:300])


def _roll_back(runner: Any) -> None:
    try:
        runner.sa_session.rollback()
    except Exception as error:  # it is away, after all
        log.debug("the session could not be rolled back: %s", one_line(error))


def _pause(runner: Any, pause_s: float) -> None:
    end = time.monotonic() + pause_s
    while time.monotonic() < end and not runner._should_stop:
        time.sleep(0.1)
