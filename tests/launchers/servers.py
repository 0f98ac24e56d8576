"""Start a real Pulsar server, talk to it, and end it by its own pid."""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import pathlib
import queue
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, Callable, Dict, Iterator, List, Optional

START_TIMEOUT_S = 180
JOB_TIMEOUT_S = 120

# With the logging that `pulsar-config` writes: it silences loggers outside `pulsar.`.
SERVER_INI = """\
[server:main]
use = egg:gunicorn
host = 127.0.0.1
port = %(port)s

[app:main]
paste.app_factory = %(app_factory)s
app_config = %(app_yml)s

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
format = %%(asctime)s %%(levelname)-5.5s [%%(name)s] %%(message)s
"""


class Server:
    """A running server process, its log, and its REST address if it has one."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: pathlib.Path, port: int) -> None:
        self.process = process
        self._log = log
        self.url = "http://127.0.0.1:%d" % port

    def log(self) -> str:
        """Return all that the server has written so far."""
        return self._log.read_text(errors="replace")

    def wait_until_it_answers(self) -> None:
        """Wait until the REST interface answers, or fail with the log if the process ended."""
        self._wait_for(self._answers)

    def wait_for_exit(self) -> int:
        """Return the exit code of a server that ends by itself."""
        return self.process.wait(timeout=START_TIMEOUT_S)

    def request(self, method: str, path: str, **parameters: str) -> Any:
        """Return the JSON answer of the REST interface, over a connection of its own."""
        url = "%s%s?%s" % (self.url, path, urllib.parse.urlencode(parameters))
        request = urllib.request.Request(url, method=method, headers={"Connection": "close"})
        with urllib.request.urlopen(request, timeout=120) as response:
            body = response.read()
        return json.loads(body) if body.startswith((b"{", b"[", b'"')) else body

    def run_job(self, job_id: str, command_line: str) -> Dict[str, Any]:
        """Return the terminal payload of a job."""
        self.request("POST", "/jobs", job_id=job_id)
        self.request("POST", "/jobs/%s/submit" % job_id, command_line=command_line)
        return self.terminal_payload(job_id)

    def terminal_payload(self, job_id: str) -> Dict[str, Any]:
        """Return the payload of a job as soon as it says that the job is done."""
        def ask() -> Optional[Dict[str, Any]]:
            payload: Dict[str, Any] = self.request("GET", "/jobs/%s/status" % job_id)
            return payload if payload["complete"] == "true" else None

        return wait_for(ask, JOB_TIMEOUT_S, "job %s to end" % job_id)

    def _answers(self) -> bool:
        try:
            self.request("GET", "/healthz")
        except urllib.error.HTTPError:
            return True
        except OSError:
            return False
        return True

    def _wait_for(self, condition: Callable[[], bool]) -> None:
        def ready() -> bool:
            if self.process.poll() is not None and not condition():
                raise AssertionError("the server ended (%s):\n%s" % (
                    self.process.returncode, self.log()))
            return condition()

        try:
            wait_for(ready, START_TIMEOUT_S, "the server")
        except TimeoutError as exc:
            raise AssertionError(self.log()) from exc


@contextlib.contextmanager
def running(
    command: List[str], folder: pathlib.Path, port: int = 0, env: Optional[Dict[str, str]] = None
) -> Iterator[Server]:
    """Run a server in a folder, its log beside it; end it at the end of the block."""
    log = folder / "server.log"
    clean = {name: value for name, value in os.environ.items()
             if not name.startswith(("PYTHON", "PULSAR_"))}
    with open(log, "wb") as output:
        process = subprocess.Popen(
            command, cwd=str(folder), env=dict(clean, **(env or {})), stdin=subprocess.DEVNULL,
            stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
        )
    try:
        yield Server(process, log, port)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(timeout=60)


def write_configuration(
    folder: pathlib.Path, manager: Dict[str, Any], port: int = 0,
    app_factory: str = "pulsar.web.wsgi:app_factory", **app: Any
) -> None:
    """Write `app.yml` (JSON is YAML too) and `server.ini`."""
    folder.mkdir(parents=True, exist_ok=True)
    app_yml = {
        "staging_directory": str(folder / "staging"),
        "persistence_directory": str(folder / "persisted"),
        "assign_ids": "none",
        "tool_dependency_dir": "none",
        "conda_auto_init": False,
        "conda_auto_install": False,
        "manager": manager,
    }
    (folder / "app.yml").write_text(json.dumps(dict(app_yml, **app), indent=1))
    (folder / "server.ini").write_text(SERVER_INI % {
        "port": port, "app_factory": app_factory, "app_yml": folder / "app.yml"})


def wait_for(condition: Callable[[], Any], timeout_s: float, what: str) -> Any:
    """Return the first true value of a condition.

    Raises:
        TimeoutError: there was none in time.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise TimeoutError("waited %.0f s for %s" % (timeout_s, what))
        time.sleep(0.1)


class Relay:
    """As much of a pulsar-relay server as a webless Pulsar needs: its messages, over real HTTP."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._to_pulsar: "queue.Queue[Dict[str, Any]]" = queue.Queue()
        self._from_pulsar: "queue.Queue[Dict[str, Any]]" = queue.Queue()

    def run_job(self, job_id: str, command_line: str) -> Dict[str, Any]:
        """Return the terminal message of a job."""
        self._to_pulsar.put({"topic": "job_setup", "message_id": "m%s" % job_id, "payload": {
            "job_id": job_id, "command_line": command_line, "setup": True,
            "setup_params": {"job_id": job_id},
        }})

        def terminal() -> Optional[Dict[str, Any]]:
            try:
                payload: Dict[str, Any] = self._from_pulsar.get(timeout=1)["payload"]
            except queue.Empty:
                return None
            return payload if payload.get("complete") == "true" else None

        return wait_for(terminal, 2 * JOB_TIMEOUT_S, "job %s to end" % job_id)

    def answer(self, path: str, body: Dict[str, Any]) -> Dict[str, Any]:
        """Return the answer to one request of Pulsar's."""
        if path == "/auth/login":
            return {"access_token": "t", "token_type": "bearer", "expires_in": 3600}
        if path == "/messages/poll":
            return {"messages": self._next_message()}
        if body.get("topic", "").startswith("job_status_update"):
            self._from_pulsar.put(body)
        return {"message_id": "1"}

    def _next_message(self) -> List[Dict[str, Any]]:
        try:
            return [self._to_pulsar.get(timeout=1)]
        except queue.Empty:
            return []


@contextlib.contextmanager
def relay() -> Iterator[Relay]:
    """Serve a relay on the loopback interface during the block."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            body = json.loads(raw) if raw.startswith(b"{") else {}
            answer = json.dumps(the_relay.answer(self.path, body)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            # A poll that is being answered when Pulsar is ended.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                self.end_headers()
                self.wfile.write(answer)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    the_relay = Relay("http://127.0.0.1:%d" % server.server_address[1])
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield the_relay
    finally:
        server.shutdown()
        server.server_close()
