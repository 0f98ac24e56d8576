"""Servers to be killed, without the second that importing Pulsar costs: ``python -m`` this module.

Reads one JSON object a line from stdin and answers each with one line. ``start`` forks a child
that serves on the given folder, as a Pulsar bound to a message queue does, and answers with its
pid; ``kill`` ends that child with SIGKILL and answers once it is dead.

A child appends each payload that it publishes to ``published.jsonl``, and the terminal ones that
a REST client is told to ``polled.jsonl``, each line synced to disk: what was sent cannot be taken
back by a kill.
"""

from __future__ import annotations

import functools
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any, Dict, NoReturn

from pulsar import manager_endpoint_util, messaging
from pulsar.core import PulsarApp

TERMINAL = ("complete", "failed", "cancelled", "lost")


class _QueueState:
    """What PulsarApp keeps of a message queue."""

    def deactivate(self) -> None:
        """There are no consumers to stop."""


def _append(path: Path, payload: Dict[str, Any]) -> None:
    line = json.dumps(payload, default=str) + "\n"
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, line.encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _serve(home: Path, life: int, submit: Dict[str, Any]) -> NoReturn:
    """Be one life of the server on ``home``; ``submit`` is a job to begin with, or empty."""

    def publish(manager: Any, status: str, job_id: str) -> None:
        payload = manager_endpoint_util.full_status(manager, status, job_id)
        _append(home / "published.jsonl", dict(payload, life=life))

    def bind_app(app: Any, url: str, conf: Any = None, start_monitor: bool = True) -> _QueueState:
        for manager in app.managers.values():
            manager.set_state_change_callback(
                functools.partial(publish, manager), start_monitor=start_monitor)
        return _QueueState()

    messaging.bind_app = bind_app
    conf = json.loads((home / "app.json").read_text())
    manager = PulsarApp(message_queue_url="test://", **conf).only_manager
    if submit:
        manager_endpoint_util.setup_job(manager, submit["job_id"], "tool", "1")
        manager_endpoint_util.submit_job(manager, submit)
        (home / "submitted").touch()
    _poll_like_rest(manager, home, life)


def _poll_like_rest(manager: Any, home: Path, life: int) -> NoReturn:
    told = set()
    while True:
        for job_id in os.listdir(home / "staging"):
            payload = manager_endpoint_util.status_dict(manager, job_id)
            if payload["status"] in TERMINAL and job_id not in told:
                told.add(job_id)
                _append(home / "polled.jsonl", dict(payload, life=life))
        time.sleep(0.03)


def _start(request: Dict[str, Any]) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        home = Path(request["home"])
        log = os.open(home / "server.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.environ.update(request["env"])
        _serve(home, request["life"], request["submit"])
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(1)


def main() -> None:
    """Answer requests until stdin is closed; then end what still serves."""
    assert threading.active_count() == 1, "it is about to fork"
    alive = set()
    for line in sys.stdin:
        request = json.loads(line)
        if request["do"] == "start":
            answer = _start(request)
            alive.add(answer)
        else:
            answer = request["pid"]
            alive.discard(answer)
            os.kill(answer, signal.SIGKILL)
            os.waitpid(answer, 0)
        print(json.dumps(answer), flush=True)
    for pid in alive:
        os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
