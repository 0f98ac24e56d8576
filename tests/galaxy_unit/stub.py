"""A stub Galaxy around real code: its model, its runners, its resubmit handler, Pulsar's clients.

What is stubbed is what lies outside: Pulsar (an HTTP transport, an AMQP exchange), the job's
working directory, the tool.
"""

from __future__ import annotations

import copy
import json
from types import SimpleNamespace
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from galaxy import model
from galaxy.jobs import JobDestination, JobWrapper
from galaxy.jobs.handler import JobHandlerQueue
from galaxy.jobs.runners import AsynchronousJobState
from galaxy.security.idencoding import IdEncodingHelper
from galaxy.tool_util.output_checker import DETECTED_JOB_STATE

from pulsar_failure_reasons import galaxy_runners

States = model.Job.states

MEMORY: Dict[str, Any] = {
    "runner_state": "memory_limit_reached",
    "runner_state_message": "killed for memory: the job's memory limit is 2 GB (Slurm job 5, n1)",
    "failure_reason": {
        "cause": "memory", "fault": "job", "confidence": "controller", "drm": "slurm",
        "node": "n1", "requested": {"memory_bytes": 2000000000, "walltime_s": 3600},
        "used": {"memory_bytes": 1900000000, "walltime_s": 61},
    },
}
WALLTIME: Dict[str, Any] = {
    "runner_state": "walltime_reached",
    "runner_state_message": "killed after 1 h: the job's walltime limit is 1 h (Slurm job 5, n1)",
    "failure_reason": {
        "cause": "walltime", "fault": "job", "confidence": "controller", "drm": "slurm"},
}


def because(cause: str, **more: Any) -> Dict[str, Any]:
    """Return the keys of a payload for a cause that Galaxy has no token of its own for."""
    faults = {"cancelled": "user", "disk": "job", "launch_error": "job", "held": "unknown"}
    return {
        "runner_state": "unknown_error",
        "runner_state_message": f"it was {cause}",
        "failure_reason": {
            "cause": cause, "fault": faults.get(cause, "infrastructure"),
            "confidence": "controller", "drm": "slurm", **more,
        },
    }


class Pulsar:
    """The other side of Pulsar's clients: answers REST requests, takes messages."""

    def __init__(self) -> None:
        self.status: Dict[str, Any] = {"status": "running", "complete": "false"}
        self.requests: List[Tuple[str, str]] = []
        self.messages: List[Tuple[str, Dict[str, Any]]] = []
        self.down = False

    def execute(self, url: str, method: Optional[str] = None, **_: Any) -> str:
        """Answer as a REST server does."""
        self.requests.append((method or "GET", url))
        if self.down:
            raise ConnectionError("Pulsar is down")
        return json.dumps(self.status)

    def publish(self, name: str, payload: Dict[str, Any]) -> None:
        """Take a message of Galaxy's."""
        self.messages.append((name, payload))

    def asked_for(self, method: str, ending: str = "") -> List[str]:
        """Return the URLs of requests."""
        return [
            url for m, url in self.requests
            if m == method and url.split("?")[0].rstrip("/").endswith(ending)
        ]


class Wrapper:
    """A job wrapper: stock's code where it speaks with the database, notes of everything else."""

    set_job_destination = JobWrapper.set_job_destination
    mark_as_resubmitted = JobWrapper.mark_as_resubmitted
    change_state = JobWrapper.change_state
    get_state = JobWrapper.get_state
    get_id_tag = JobWrapper.get_id_tag

    def __init__(self, galaxy: Galaxy, job_id: int, destination: Any) -> None:
        self.app, self.job_id, self.job_destination = galaxy, job_id, destination
        self.sa_session = galaxy.model.context
        self.cleanup_job, self.guest_ports, self.user = "never", [], None
        self.tool = SimpleNamespace(old_id="cat1", id="cat1")
        self.job_runner_mapper = SimpleNamespace(
            cache_job_destination=self._cache, cached_job_destination=destination)
        self.failures: List[Tuple[str, Dict[str, Any]]] = []
        self.finished: List[Dict[str, Any]] = []
        self.cleared = 0
        self.detected: Any = DETECTED_JOB_STATE.OK
        self.fails_with: List[Exception] = []

    def _cache(self, destination: Any) -> Any:
        self.job_destination = destination
        return destination

    def get_job(self) -> Any:
        """Return the job."""
        return self.sa_session.get(model.Job, self.job_id)

    def clear_working_directory(self) -> None:
        """Count."""
        self.cleared += 1

    def get_job_runner_url(self) -> str:
        """Return the runner's name (Galaxy 25.1 asks for it)."""
        return str(self.get_job().job_runner_name)

    def reclaim_ownership(self) -> None:
        """Do nothing: the files are nobody's."""

    def enqueue(self) -> bool:
        """Do as stock does with a job that may run."""
        self.change_state(States.QUEUED)
        return True

    def fail(self, message: str, exception: Any = False, **kwds: Any) -> None:
        """Note the message; the job is in error."""
        if self.fails_with:
            raise self.fails_with.pop(0)
        self.failures.append((message, kwds))
        job = self.get_job()
        job.set_final_state(States.ERROR)
        self.sa_session.commit()

    def check_tool_output(self, *args: Any, **kwds: Any) -> Any:
        """Return what the test says that the tool's output tells."""
        if isinstance(self.detected, Exception):
            raise self.detected
        return self.detected

    def finish(self, tool_stdout: Any, tool_stderr: Any, *args: Any, **kwds: Any) -> None:
        """Note that the job was finished."""
        self.finished.append(kwds)


class JobQueue(JobHandlerQueue):
    """As much of the queue as a message needs."""

    def __init__(self, pairs: Callable[[int], Any]) -> None:
        self.pairs = pairs

    def job_pair_for_id(self, id: int) -> Any:
        """Return the job and a new wrapper, as stock does, with what is stored alone."""
        return self.pairs(int(id))


class Galaxy:
    """The app."""

    def __init__(self, database: Any) -> None:
        self.model = database
        self.security = IdEncodingHelper(id_secret="of the unit tests")
        self.config = SimpleNamespace(
            redact_email_in_job_name=True, galaxy_infrastructure_url="http://galaxy.test",
            nginx_upload_job_files_path=None, track_jobs_in_database=True,
            monitor_thread_join_timeout=1,
        )
        self.destinations: Dict[str, Any] = {}
        self.job_config = SimpleNamespace(get_destination=self._get_destination)
        self.runners: Dict[str, Any] = {}
        self.queue = JobQueue(self._pair)
        self.job_manager = SimpleNamespace(job_handler=SimpleNamespace(
            job_queue=self.queue, dispatcher=SimpleNamespace(job_runners=self.runners)))
        self.application_stack = SimpleNamespace(supports_skip_locked=lambda: False)
        self.execution_timer_factory = SimpleNamespace(get_timer=lambda *_: None)
        self.wrappers: List[Wrapper] = []
        self.pulsar = Pulsar()
        self.runners["local"] = object()

    def _get_destination(self, id_or_tag: str) -> Any:
        return copy.deepcopy(self.destinations[id_or_tag])

    def _pair(self, job_id: int) -> Any:
        job = self.model.context.get(model.Job, job_id)
        wrapper = Wrapper(self, job_id, JobDestination(from_job=job))
        self.wrappers.append(wrapper)
        return job, wrapper

    # ---- set-up -------------------------------------------------------------------------------

    def runner(self, name: str = "PulsarRESTJobRunner", plugin: str = "", **kwds: Any) -> Any:
        """Return one of our runners, not started, with its clients' other side stubbed."""
        from pulsar.client import build_client_manager

        runner = getattr(galaxy_runners, name)(self, 1, **kwds)
        if runner.use_mq:
            runner.client_manager = build_client_manager(amqp_url="memory://unit")
            runner.client_manager.exchange = self.pulsar
        else:
            runner.client_manager = build_client_manager()
            runner.client_manager.job_manager_interface_args = {"transport": self.pulsar}
        runner.pulsar_app = None
        from queue import Queue

        runner.work_queue = Queue()
        self.runners[plugin or ("mq" if runner.use_mq else "rest")] = runner
        return runner

    def destination(
        self, id: str = "cluster", runner: str = "rest", rules: Any = (), configured: bool = True,
        **params: Any
    ) -> Any:
        """Return a destination on a Pulsar."""
        made = JobDestination(
            id=id, runner=runner, resubmit=[dict(rule) for rule in rules],
            params={"url": "http://pulsar.test:8913", "jobs_directory": "/staging", **params}
            if runner == "mq" else {"url": "http://pulsar.test:8913", **params},
        )
        if configured:
            self.destinations[id] = made
        return copy.deepcopy(made)

    def job(self, destination: Any, *, resubmitted: int = 0, state: Any = States.RUNNING) -> Any:
        """Return a job that was sent to the destination, after so many resubmissions."""
        session = self.model.context
        job = model.Job()
        job.tool_id = "cat1"
        session.add(job)
        session.commit()
        for _ in range(resubmitted):
            job.set_state(States.QUEUED)
            job.set_state(States.RESUBMITTED)
        for reached in (States.QUEUED, state):
            job.set_state(reached)
        job.destination_id, job.destination_params = destination.id, destination.params
        job.job_runner_name, job.job_runner_external_id = destination.runner, str(job.id)
        session.commit()
        return job

    def wrapper(self, job: Any, destination: Any) -> Wrapper:
        """Return a wrapper for the job."""
        wrapper = Wrapper(self, job.id, destination)
        self.wrappers.append(wrapper)
        return wrapper

    def watched(self, runner: Any, destination: Any, **job: Any) -> Any:
        """Return the state of a job that a polling runner watches: put, then running."""
        made = self.job(destination, **job)
        wrapper = self.wrapper(made, destination)
        from pulsar_failure_reasons.galaxy_runners.destination import keep_with_job

        keep_with_job(self, destination)
        wrapper.set_job_destination(destination, external_id=str(made.id))
        state = AsynchronousJobState(
            job_wrapper=wrapper, job_destination=destination, job_id=str(made.id))
        state.running = True
        return state

    # ---- what happened ------------------------------------------------------------------------

    def refreshed(self, job: Any) -> Any:
        """Return the job as the database has it."""
        job_id = job if isinstance(job, int) else job.id
        self.model.context.expire_all()
        return self.model.context.get(model.Job, job_id)

    def poll(self, runner: Any, state: Any, status: str, keys: Mapping[str, Any] = {}) -> Any:
        """Have the runner poll Pulsar once; return what it watches afterwards."""
        self.pulsar.status = {
            "job_id": state.job_id, "status": status, "complete": "true", "returncode": None,
            "stdout": "out", "stderr": "err", **keys,
        }
        return runner.check_watched_item(state)

    def message(self, runner: Any, job: Any, status: str, keys: Mapping[str, Any] = {}) -> None:
        """Have a message come, as the client manager hands it on."""
        body = {
            "job_id": str(job.id), "status": status, "complete": "true", "returncode": None,
            "stdout": "out", "stderr": "err", **keys,
        }
        runner.client_manager.status_cache[body["job_id"]] = body
        runner._PulsarJobRunner__async_update(body)
