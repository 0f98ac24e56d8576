"""A stock Pulsar server in a process of its own, and jobs for it through Pulsar's own client.

Nothing of this package is imported or patched here: the server gets it the way a site does,
by being installed in the same environment.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional

import yaml

from tests.ports import free_port

_SERVER_INI = """\
[server:main]
use = egg:gunicorn
host = 127.0.0.1
port = {port}

[app:main]
paste.app_factory = pulsar.web.wsgi:app_factory
app_config = {app_yml}

[loggers]
keys = root,pulsar

[handlers]
keys = console

[formatters]
keys = generic

[logger_root]
level = INFO
handlers = console

[logger_pulsar]
level = DEBUG
handlers = console
qualname = pulsar
propagate = 0

[handler_console]
class = StreamHandler
args = (sys.stderr,)
level = DEBUG
formatter = generic

[formatter_generic]
format = %(asctime)s %(levelname)-5.5s [%(name)s] %(message)s
"""


def wait_until(
    condition: Callable[[], Any], timeout_s: float, what: str, every_s: float = 0.1
) -> Any:
    """Return the first true value of ``condition``.

    Raises:
        TimeoutError: there was none within ``timeout_s`` seconds.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {timeout_s:g} s")
        time.sleep(every_s)


class PulsarServer:
    """``pulsar-serve`` on a loopback port.

    Args:
        home: Folder for configuration, staging and log.
        app: The content of ``app.yml``; what any Pulsar needs is added.
        env: Added to the environment; ``PATH`` and the like for a DRM.
        programs: Folder of the ``pulsar-serve`` to run; that of this Python if None.
    """

    def __init__(
        self, home: Path, app: Mapping[str, Any], env: Optional[Mapping[str, str]] = None,
        programs: Optional[Path] = None,
    ) -> None:
        self.home = home
        self.port = free_port()
        self.log = home / "pulsar.log"
        self.staging = home / "staging"
        self._env = dict(env or {})
        self._programs = str(programs or os.path.dirname(sys.executable))
        self._manager_of: Dict[str, str] = {}
        self._process: Optional[subprocess.Popen[bytes]] = None
        home.mkdir(parents=True, exist_ok=True)
        self.configure(app)

    def configure(self, app: Mapping[str, Any]) -> None:
        """Write ``app.yml`` and ``server.ini``; counts from the next start."""
        content = {
            "staging_directory": str(self.staging),
            "persistence_directory": str(self.home / "persisted"),
            "tool_dependency_dir": "none",
            **app,
        }
        app_yml = self.home / "app.yml"
        app_yml.write_text(yaml.safe_dump(content))
        ini = _SERVER_INI.format(port=self.port, app_yml=app_yml)
        (self.home / "server.ini").write_text(ini)

    @property
    def url(self) -> str:
        """The address that Galaxy would be given."""
        return f"http://127.0.0.1:{self.port}/"

    def start(self) -> PulsarServer:
        """Start the server and wait until it answers."""
        command = [os.path.join(self._programs, "pulsar-serve"), "server.ini"]
        with open(self.log, "ab") as log:
            self._process = subprocess.Popen(
                command,
                cwd=self.home,
                env={**os.environ, **self._env},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        wait_until(self._answers, 120, f"Pulsar at {self.url} (see {self.log})")
        return self

    def _answers(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise RuntimeError(f"Pulsar did not start:\n{self.log_text()[-3000:]}")
        try:
            with urllib.request.urlopen(self.url + "healthz", timeout=5):
                return True
        except OSError:
            return False

    def stop(self) -> None:
        """End the server as a service manager does, with SIGTERM."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End the server at once, with SIGKILL."""
        self._end(signal.SIGKILL)

    def _end(self, number: int) -> None:
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        os.killpg(process.pid, number)
        try:
            process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def __enter__(self) -> PulsarServer:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def log_text(self) -> str:
        """Return the server's log."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    # ---- jobs -----------------------------------------------------------------------------

    def client(self, job_id: str, **destination_params: Any) -> Any:
        """Return Pulsar's client for one job, as Galaxy's REST runner makes it."""
        from pulsar.client.manager import build_client_manager

        manager = self._manager_of.get(job_id)
        url = self.url + (f"managers/{manager}/" if manager else "")
        params = {"url": url, **destination_params}
        with contextlib.redirect_stdout(io.StringIO()):  # Pulsar 0.16.0 prints its arguments
            return build_client_manager().get_client(params, job_id)

    def submit(
        self, job_id: str, command_line: str, manager: Optional[str] = None, **submit_params: str
    ) -> str:
        """Set up and launch a job; ``submit_params`` such as ``native_specification``.

        ``manager`` is one of several named ones; None for a server that has only one.
        """
        if manager is not None:
            self._manager_of[job_id] = manager
        params = {f"submit_{name}": value for name, value in submit_params.items()}
        client = self.client(job_id, **params)
        client.setup(tool_id="demo", tool_version="1")
        client.launch(command_line)
        return job_id

    def payload(self, job_id: str) -> Dict[str, Any]:
        """Return what Galaxy is told of the job now."""
        return dict(self.client(job_id).full_status())

    def external_id(self, job_id: str) -> Optional[str]:
        """Return the DRM's id of the job, None while it has none."""
        path = self.staging / job_id / "external_id"
        return path.read_text().strip('"') if path.exists() else None

    def wait_for(
        self, job_id: str, statuses: List[str], timeout_s: float = 90.0
    ) -> Dict[str, Any]:
        """Return the first payload with one of these statuses."""
        found: Dict[str, Any] = {}

        def reached() -> bool:
            found.update(self.payload(job_id))
            return found["status"] in statuses

        try:
            wait_until(reached, timeout_s, f"job {job_id} to be {' or '.join(statuses)}", 0.3)
        except TimeoutError as error:
            log = self.log_text()[-4000:]
            raise TimeoutError(f"{error}; it is {found.get('status')}; log:\n{log}") from None
        return self.payload(job_id)

    def wait_for_end(self, job_id: str, timeout_s: float = 90.0) -> Dict[str, Any]:
        """Return the job's terminal payload."""
        return self.wait_for(job_id, ["complete", "failed", "cancelled", "lost"], timeout_s)
