"""Count the bytes that a daemon sends to a command."""

from __future__ import annotations

import contextlib
import socket
import socketserver
import threading
from typing import Any


class CountingRelay:
    """A loopback port that passes connections on to another, and counts what comes back.

    ``received`` is final once the ``with`` block is left.
    """

    def __init__(self, target_port: int) -> None:
        self.received = 0
        self._target_port = target_port
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> CountingRelay:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()  # waits for the connections
        self._thread.join(10)

    def _handler(self) -> Any:
        relay = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                with socket.create_connection(("127.0.0.1", relay._target_port), 60) as daemon:
                    asks = threading.Thread(target=_pass_on, args=(self.request, daemon))
                    asks.start()
                    relay.received += _pass_on(daemon, self.request)
                    asks.join()

        return Handler


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = False  # server_close() waits for such only


def _pass_on(source: socket.socket, sink: socket.socket) -> int:
    """Pass bytes on until there are no more; return how many."""
    count = 0
    with contextlib.suppress(OSError):
        while True:
            block = source.recv(65536)
            if not block:
                break
            count += len(block)
            sink.sendall(block)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
    return count
