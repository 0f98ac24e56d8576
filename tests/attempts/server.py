"""A stock Pulsar in this process, spoken to as a REST client does and as a message does."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any, Dict, List, Optional
from urllib.parse import urlencode

from pulsar import manager_endpoint_util
from pulsar.web.wsgi import PulsarWebApp
from webob import Request

from tests.pulsar_in_process import TERMINAL, PulsarInProcess
from tests.pulsar_server import wait_until

ONE, TWO = "galaxy-one", "galaxy-two"
#: Seconds in which what must happen has to.
PATIENCE_S = 120.0


class Server(PulsarInProcess):
    """One stock Pulsar; every payload that it would publish is in ``told``."""

    quick = {"type": "queued_python", "num_concurrent_jobs": 2}

    def __init__(self, home: Path, **options: Any) -> None:
        super().__init__(home, **options)
        self.told: List[Dict[str, Any]] = []
        self._told_lock = threading.Lock()
        for manager in self.app.managers.values():
            # As bind_amqp and bind_relay do it; no monitor, payloads are asked for.
            manager.set_state_change_callback(self._publisher(manager), start_monitor=False)
        self.web = PulsarWebApp(pulsar_app=self.app)

    def _publisher(self, manager: Any) -> Any:
        def on_status_change(new_status: str, job_id: str) -> None:
            payload = manager_endpoint_util.full_status(manager, new_status, job_id)
            with self._told_lock:
                self.told.append(payload)

        return on_status_change

    # ---- by message ---------------------------------------------------------------------------

    def message(
        self, job_id: str, command: str, attempt: Optional[int], galaxy: str = ONE,
        manager: str = "_default_", stages: Optional[Path] = None,
    ) -> None:
        """Take a setup message, as AMQP and the relay hand it on; ``stages``: a file to fetch."""
        config = {
            "job_id": job_id, "command_line": command, "setup": True,
            "setup_params": {"job_id": job_id, "tool_id": "cat1", "tool_version": "1"},
            "env": variables(attempt, galaxy), "remote_staging": staging(stages),
        }
        manager_endpoint_util.submit_job(self.proxy(manager), config)

    def end(
        self, job_id: str, timeout_s: float = PATIENCE_S, manager: str = "_default_"
    ) -> Dict[str, Any]:
        """Return the job's terminal payload once it was published: who asks may get it before."""
        payload = super().end(job_id, timeout_s, manager)

        def was_told() -> bool:
            with self._told_lock:
                return any(
                    (told["job_id"], told["status"], told.get("attempt"))
                    == (job_id, payload["status"], payload.get("attempt")) for told in self.told)

        wait_until(was_told, timeout_s, f"the end of job {job_id} to be published", 0.02)
        return payload

    def seems_postprocessed(self, job_id: str) -> Any:
        """Have a job that has ended look as in Pulsar's last steps with it; return its index."""
        active = self.proxy().active_jobs
        wait_until(
            lambda: job_id not in active.active_job_ids(active_status="postprocessing"),
            PATIENCE_S, "Pulsar to be done with the job", 0.02,
        )
        active.activate_job(job_id, active_status="postprocessing")
        return active

    # ---- by REST ------------------------------------------------------------------------------

    def rest(self, method: str, path: str, **arguments: Any) -> Any:
        """Send a request; return the answer."""
        return Request.blank(f"{path}?{urlencode(arguments)}", method=method).get_response(self.web)

    def rest_job(
        self, job_id: str, command: str, attempt: Optional[int], galaxy: str = ONE,
        prefix: str = "", stages: Optional[Path] = None,
    ) -> None:
        """Set up and submit a job as Galaxy's REST client does; ``stages``: a file to fetch."""
        told = {} if attempt is None else {
            "failure_reasons_attempt": attempt, "failure_reasons_galaxy": galaxy}
        answer = self.rest(
            "POST", f"{prefix}/jobs", job_id=job_id, tool_id="cat1", tool_version="1",
            use_metadata="true", **told)
        assert answer.status_int == 200 and answer.json["job_id"] == job_id
        self.rest(
            "POST", f"{prefix}/jobs/{job_id}/submit", command_line=command,
            env=json.dumps(variables(attempt, galaxy)),
            remote_staging=json.dumps(staging(stages)))

    def rest_end(self, job_id: str, prefix: str = "") -> Dict[str, Any]:
        """Poll as Galaxy does; return the terminal payload."""
        seen: List[Dict[str, Any]] = []

        def over() -> bool:
            seen.append(self.rest("GET", f"{prefix}/jobs/{job_id}/status").json)
            return seen[-1]["status"] in TERMINAL

        wait_until(over, PATIENCE_S, f"job {job_id} to end", 0.03)
        return seen[-1]


def variables(attempt: Optional[int], galaxy: str) -> List[Dict[str, Any]]:
    """Return a job's environment as Galaxy sends it; None: by a Galaxy that does not number."""
    mine = [{"name": "MINE", "value": "kept", "raw": False}]
    if attempt is None:
        return mine
    return [
        *mine,
        {"name": "PULSAR_FAILURE_REASONS_ATTEMPT", "value": str(attempt), "raw": False},
        {"name": "PULSAR_FAILURE_REASONS_ATTEMPT_OF", "value": galaxy, "raw": False},
    ]


def staging(path: Optional[Path]) -> Dict[str, Any]:
    """Return what Galaxy says of a file that Pulsar is to fetch before the job; None: of none."""
    if path is None:
        return {}
    action = {"action_type": "remote_copy", "path": str(path), "source": {"path": str(path)}}
    return {"setup": [{"name": "input", "type": "input", "action": action}]}
