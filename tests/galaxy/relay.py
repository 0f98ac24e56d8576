"""A small server that speaks what pulsar-relay-client asks of a pulsar-relay: log in, post, poll.

Messages are kept in memory, for every reader; each names its topic's last message that it has seen.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Dict, List


class Relay:
    """The server; ``messages`` holds, by topic, all that was posted."""

    def __init__(self) -> None:
        self.username = "pulsar"
        self.password = secrets.token_hex(12)
        self.token = secrets.token_hex(12)
        self.messages: Dict[str, List[Dict[str, Any]]] = {}
        self._changed = threading.Condition()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        self._server.daemon_threads = True

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Relay:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def post(self, topic: str, payload: Dict[str, Any]) -> Dict[str, Any]:
        """Keep a message and wake those who wait for one."""
        with self._changed:
            kept = self.messages.setdefault(topic, [])
            message = {"message_id": str(len(kept)), "topic": topic, "payload": payload,
                       "timestamp": time.time()}
            kept.append(message)
            self._changed.notify_all()
        return message

    def poll(self, topics: List[str], since: Dict[str, str], timeout_s: float) -> List[Any]:
        """Return what is new to a reader in these topics; wait for it if there is nothing."""
        def new() -> List[Any]:
            return [message for topic in topics
                    for message in self.messages.get(topic, [])[int(since.get(topic, -1)) + 1:]]

        with self._changed:
            self._changed.wait_for(new, timeout_s)
            return new()


def _handler_of(relay: Relay) -> type:
    class Handler(BaseHTTPRequestHandler):
        """One request."""

        def do_POST(self) -> None:
            """Answer it."""
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            if self.path == "/auth/login":
                asked = dict(urllib.parse.parse_qsl(body))
                known = (asked["username"], asked["password"]) == (relay.username, relay.password)
                self._answer(200 if known else 401,
                             {"access_token": relay.token, "expires_in": 3600} if known else {})
            elif self.headers["Authorization"] != f"Bearer {relay.token}":
                self._answer(401, {})
            elif self.path == "/api/v1/messages":
                asked = json.loads(body)
                self._answer(200, relay.post(asked["topic"], asked["payload"]))
            elif self.path == "/messages/poll":
                asked = json.loads(body)
                self._answer(200, {"messages": relay.poll(
                    asked["topics"], asked.get("since", {}), asked["timeout"])})
            else:
                self._answer(404, {})

        def _answer(self, status: int, content: Dict[str, Any]) -> None:
            text = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: object) -> None:
            """Keep quiet."""

    return Handler
