"""A real Galaxy in a process of its own, for tests: start, submit, look at jobs, stop, kill.

No web server: the process holds Galaxy's application, its job handler and its runners
(:mod:`tests.galaxy.inside`).
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional

import yaml

from tests.galaxy.tools import write_tools
from tests.pulsar_server import wait_until

ROOT = Path(__file__).resolve().parent.parent.parent
NEWEST = "galaxy-26.1"
OLDEST = "galaxy-25.1"
#: How long what must happen is waited for: it costs nothing where it does, and machines stall.
PATIENCE_S = 600.0
ENDED = ("ok", "error", "deleted", "stopped", "failed")


def python_of(release: str) -> str:
    """Return the interpreter of a Galaxy's environment, which is made if it is not there."""
    made = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "environment.py"), release, "--"],
        stdout=subprocess.PIPE, check=True, timeout=1500, universal_newlines=True,
    )
    return made.stdout.strip()


class Galaxy:
    """One Galaxy process.

    Args:
        home: Folder for all that is this Galaxy's; several processes may share it.
        job_conf: The content of ``job_conf.yml``.
        tools: Ids of tools to have (:mod:`tests.galaxy.tools`).
        release: Name of the environment, such as ``galaxy-26.1``.
        server_name: As which job handler it runs.
        env: Added to its environment.
        config: Added to ``galaxy.yml``.
    """

    def __init__(
        self, home: Path, job_conf: Mapping[str, Any], tools: List[str], release: str = NEWEST,
        server_name: str = "main", env: Optional[Mapping[str, str]] = None,
        config: Optional[Mapping[str, Any]] = None,
    ) -> None:
        self.home = home
        self.log = home / f"{server_name}.log"
        self._python = python_of(release)
        self._env = dict(env or {})
        self._process: Optional["subprocess.Popen[str]"] = None
        self._selector = selectors.DefaultSelector()
        home.mkdir(parents=True, exist_ok=True)
        (home / "job_conf.yml").write_text(yaml.safe_dump(dict(job_conf), sort_keys=False))
        write_tools(home, tools)
        self._config = home / f"{server_name}.json"
        self._config.write_text(json.dumps({**settings(home, server_name), **(config or {})}))

    # ---- the process --------------------------------------------------------------------------

    def launch(self) -> Galaxy:
        """Start the process without waiting for it."""
        with open(self.log, "ab") as log:
            self._process = subprocess.Popen(
                [self._python, "-m", "tests.galaxy.inside", str(self._config)],
                cwd=ROOT, env=self._environment(), start_new_session=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
            )
        assert self._process.stdout is not None
        self._selector.register(self._process.stdout, selectors.EVENT_READ)
        return self

    def _environment(self) -> Dict[str, str]:
        environment = {**os.environ, **self._env}
        # Jobs call `python` for their metadata: no stranger.
        programs = os.path.dirname(self._python)
        environment["PATH"] = os.pathsep.join([programs, environment.get("PATH", os.defpath)])
        return environment

    def wait_up(self) -> Galaxy:
        """Wait until it says that it is up."""
        self._answer(PATIENCE_S)
        return self

    def start(self) -> Galaxy:
        """Start it and wait until it is up."""
        return self.launch().wait_up()

    def stop(self) -> None:
        """Shut Galaxy down in order; by force if it does not come to an end."""
        if self._process is None:
            return
        try:
            self._request("shut_down")
            self._process.wait(timeout=60)
        except (RuntimeError, OSError, subprocess.TimeoutExpired):
            pass
        self.kill()

    def kill(self) -> None:
        """End the process at once, with SIGKILL."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None and process.stdout is not None
        self._selector.unregister(process.stdout)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for stream in (process.stdin, process.stdout):
            try:
                stream.close()
            except OSError:
                pass

    def __enter__(self) -> Galaxy:
        try:
            return self.start()
        except BaseException:
            self.kill()
            raise

    def __exit__(self, *_: object) -> None:
        self.stop()

    def log_text(self) -> str:
        """Return its log."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def _answer(self, timeout_s: float) -> Any:
        assert self._process is not None and self._process.stdout is not None
        line = self._process.stdout.readline() if self._selector.select(timeout_s) else ""
        if not line:
            raise RuntimeError(
                f"Galaxy does not answer (exit status {self._process.poll()}; see {self.log}):\n"
                f"{self.log_text()[-3000:]}"
            )
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(f"Galaxy: {answer['error']} (see {self.log})")
        return answer["value"]

    def _request(self, do: str, **arguments: Any) -> Any:
        assert self._process is not None and self._process.stdin is not None
        print(json.dumps({"do": do, "with": arguments}), file=self._process.stdin, flush=True)
        return self._answer(PATIENCE_S)

    # ---- jobs ---------------------------------------------------------------------------------

    def submit(self, tool: str, **inputs: Any) -> int:
        """Run a tool; return the job's id."""
        return int(self._request("submit", tool=tool, inputs=inputs))

    def job(self, job_id: int) -> Dict[str, Any]:
        """Return what Galaxy knows of the job now."""
        return dict(self._request("job", job_id=job_id))

    def delete(self, job_id: int) -> None:
        """Delete a job, as its user does."""
        self._request("stop_job", job_id=job_id)

    def wait_for(
        self, job_id: int, states: List[str], timeout_s: float = PATIENCE_S
    ) -> Dict[str, Any]:
        """Return the job once it is in one of these states.

        Raises:
            TimeoutError: it is not by then.
        """
        found: Dict[str, Any] = {}

        def reached() -> bool:
            found.update(self.job(job_id))
            return found["state"] in states

        try:
            wait_until(reached, timeout_s, f"job {job_id} to be {' or '.join(states)}", 0.3)
        except TimeoutError as error:
            raise TimeoutError(f"{error}; it is {found['state']}, its history "
                               f"{states_of(found)}; see {self.log}") from None
        return found

    def wait_for_end(self, job_id: int, timeout_s: float = PATIENCE_S) -> Dict[str, Any]:
        """Return the job once it has ended."""
        return self.wait_for(job_id, list(ENDED), timeout_s)


def states_of(job: Mapping[str, Any]) -> List[str]:
    """Return the states that the job went through, each once in a row."""
    states: List[str] = []
    for state, _, _ in job["history"]:
        if states[-1:] != [state]:
            states.append(state)
    return states


def times_resubmitted(job: Mapping[str, Any]) -> int:
    """Return how often the job was resubmitted."""
    return sum(state == "resubmitted" for state, _, _ in job["history"])


def settings(home: Path, server_name: str) -> Dict[str, Any]:
    """Return ``galaxy.yml``: nothing outside of ``home``, no network, no brakes."""
    return {
        "server_name": server_name,
        "root_dir": str(home),
        "config_dir": str(home / "config"),
        "data_dir": str(home / "data"),
        # The lock is waited for: one that writes may be held up on a busy machine.
        "database_connection":
            f"sqlite:///{home}/galaxy.sqlite?isolation_level=IMMEDIATE&timeout=300",
        "file_path": str(home / "objects"),
        "new_file_path": str(home / "tmp"),
        "job_working_directory": str(home / "jobs"),
        "job_config_file": str(home / "job_conf.yml"),
        "tool_config_file": str(home / "tool_conf.xml"),
        "tool_data_path": str(home),
        "admin_users": "harness@example.org",
        "id_secret": f"secret of a test {time.time()}",
        "metadata_strategy": "directory",
        "enable_celery_tasks": False,
        "watch_tools": "false",
        "watch_job_rules": "false",
        "conda_auto_init": False,
        "tool_dependency_dir": "none",
        "involucro_auto_init": False,
        "enable_mulled_containers": False,
        "use_remote_user": False,
        "cleanup_job": "onsuccess",
        "monitor_thread_join_timeout": 5,
        "galaxy_infrastructure_url": "http://127.0.0.1:9",
    }
