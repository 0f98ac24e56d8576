"""A stock ``PulsarApp`` in this process, for tests of a manager on a simulated DRM.

Jobs go in and payloads come out through the functions that Pulsar's REST and AMQP endpoints call
(``manager_endpoint_util``), so what the tests see is what Galaxy would be told.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, TypeVar

import pytest
from pulsar import manager_endpoint_util
from pulsar.core import PulsarApp

from tests.pulsar_server import wait_until

TERMINAL = ("complete", "failed", "cancelled", "lost")
REASON_KEYS = ("runner_state", "runner_state_message", "failure_reason")


@contextlib.contextmanager
def own_observers() -> Iterator[None]:
    """Give the block a set of shared observers of its own, as a new process has.

    They back off for a second at most: an outage that a slow machine makes long is over soon.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pulsar_failure_reasons.observer._shared", {})
        patch.setattr("pulsar_failure_reasons.observer.LONGEST_BACK_OFF_S", 1.0)
        yield


class PulsarInProcess:
    """One server's life on folders that outlive it.

    Args:
        home: Folder for staging and persistence.
        manager: Options of the manager; what is not given is as in ``quick``.
        managers: Several managers by name instead.
    """

    #: The type of the managers, and graces of a few answers.
    quick: Mapping[str, Any] = {}

    def __init__(
        self,
        home: Path,
        manager: Optional[Mapping[str, Any]] = None,
        managers: Optional[Mapping[str, Mapping[str, Any]]] = None,
        **app: Any,
    ) -> None:
        self.staging = home / "staging"
        options = {name: {**self.quick, **given} for name, given in (managers or {}).items()}
        self._conf: Dict[str, Any] = {
            "staging_directory": str(self.staging),
            "persistence_directory": str(home / "persisted"),
            "tool_dependency_dir": "none",
            **(
                {"managers": options} if options
                else {"manager": {**self.quick, **(manager or {})}}
            ),
            **app,
        }
        self.app = PulsarApp(**self._conf)

    def proxy(self, name: str = "_default_") -> Any:
        """Return a manager as Pulsar's endpoints have it."""
        return self.app.managers[name]

    def manager(self, name: str = "_default_") -> Any:
        """Return the manager itself, behind Pulsar's stateful proxy."""
        return self.proxy(name)._proxied_manager

    def shutdown(self) -> None:
        """Shut down as Pulsar's launchers do."""
        self.app.shutdown(timeout=60)

    # ---- jobs -----------------------------------------------------------------------------

    def launch(
        self, job_id: str, command_line: str, submit_params: Mapping[str, str], manager: str
    ) -> str:
        """Set up and launch a job; return its external id."""
        config = {
            "job_id": job_id,
            "command_line": command_line,
            "submit_params": dict(submit_params),
        }
        manager_endpoint_util.setup_job(self.proxy(manager), job_id, "tool", "1")
        manager_endpoint_util.submit_job(self.proxy(manager), config)
        return self.external_id(job_id) or ""

    def payload(self, job_id: str, manager: str = "_default_") -> Dict[str, Any]:
        """Return what Galaxy is told of the job now."""
        return dict(manager_endpoint_util.status_dict(self.proxy(manager), job_id))

    def status(self, job_id: str, manager: str = "_default_") -> str:
        """Return the word that Galaxy is told now."""
        return str(self.payload(job_id, manager)["status"])

    def wait_for(
        self, job_id: str, *statuses: str, timeout_s: float = 60, manager: str = "_default_"
    ) -> Dict[str, Any]:
        """Return the first payload with one of these statuses, polling as Galaxy does."""
        seen: List[Dict[str, Any]] = []

        def reached() -> bool:
            seen.append(self.payload(job_id, manager))
            return seen[-1]["status"] in statuses

        try:
            wait_until(reached, timeout_s, f"job {job_id} to be {statuses}", 0.03)
        except TimeoutError as error:
            raise AssertionError(f"{error}; it is {seen[-1]['status']}") from None
        return seen[-1]

    def end(self, job_id: str, timeout_s: float = 60, manager: str = "_default_") -> Dict[str, Any]:
        """Return the job's terminal payload."""
        return self.wait_for(job_id, *TERMINAL, timeout_s=timeout_s, manager=manager)

    # ---- the job directory ----------------------------------------------------------------

    def directory(self, job_id: str) -> Path:
        """Return the job directory."""
        return self.staging / job_id

    def external_id(self, job_id: str) -> Optional[str]:
        """Return the stored external id, None where there is none."""
        path = self.directory(job_id) / "external_id"
        return json.loads(path.read_text()) if path.exists() else None

    def record(self, job_id: str) -> Optional[Dict[str, Any]]:
        """Return the content of the file ``runner_state``, None where there is none."""
        path = self.directory(job_id) / "runner_state"
        return json.loads(path.read_text()) if path.exists() else None

    # ---- the observer ---------------------------------------------------------------------

    def observer(self, manager: str = "_default_") -> Any:
        """Return the observer that looks at the manager's jobs."""
        return self.manager(manager).observer(None)

    def wait_for_looks(self, count: int, manager: str = "_default_") -> None:
        """Wait until so many more looks at the DRM have begun and ended."""
        counters = self.observer(manager).counters
        target = counters.passes + count + 1  # one may be under way
        wait_until(lambda: counters.passes >= target, 60, f"{count} looks", 0.02)

    def wait_for_an_answer_during_a_look(self, ask: Callable[[], Any]) -> Any:
        """Return what ``ask`` returned, once one look lasted from its call to beyond its end.

        So it does not wait for the DRM, which no limit of time could tell on a slow machine.
        """
        source, answers = self.observer().source, []
        begun: List[int] = []
        ended: List[int] = []
        query = source.query_jobs

        def counted() -> Any:
            begun.append(1)
            try:
                return query()
            finally:
                ended.append(1)

        def answered() -> bool:
            look = len(begun)
            if len(ended) == look:
                return False
            answers.append(ask())
            return len(ended) < look

        source.query_jobs = counted
        try:
            wait_until(answered, 60, "an answer before the end of a look", 0.01)
        finally:
            del source.query_jobs
        return answers[-1]

    @contextlib.contextmanager
    def unseen(self) -> Iterator[None]:
        """Let the server see what the block does all at once: it does not look meanwhile."""
        observer = self.observer()
        observer.stop(60)
        yield
        for key, watch in list(observer._watches.items()):
            observer.watch(key, watch)

    def set_graces(self, **seconds: float) -> None:
        """Have other graces hold from now on: ``hold_s``, ``missing_s``."""
        manager = self.manager()
        manager.graces = dataclasses.replace(manager.graces, **seconds)


AnyPulsar = TypeVar("AnyPulsar", bound=PulsarInProcess)


@contextlib.contextmanager
def running(pulsar: AnyPulsar) -> Iterator[AnyPulsar]:
    """Shut the server down at the end of the block."""
    try:
        yield pulsar
    finally:
        pulsar.shutdown()


def reason_of(payload: Mapping[str, Any]) -> Optional[str]:
    """Return the cause that a payload tells; None where it carries none of our keys.

    Raises:
        AssertionError: it carries some of the keys and not the others.
    """
    present = [key for key in REASON_KEYS if key in payload]
    assert present in ([], list(REASON_KEYS)), present
    return str(payload["failure_reason"]["cause"]) if present else None
