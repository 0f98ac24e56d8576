"""A private, real RabbitMQ on loopback, with an epmd, a user and a virtual host of its own.

    with PrivateRabbit(home) as rabbit:
        runner_params = {"amqp_url": rabbit.url}
        rabbit.kill()
        rabbit.start()                  # with what it had

Nothing of Debian's service is used but its programs.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional

from amqp.exceptions import AMQPError
from kombu import Connection, Exchange, Queue
from kombu.exceptions import KombuError

from tests.ports import free_port
from tests.pulsar_server import wait_until

PROGRAM = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
PATIENCE_S = 300


def why_missing() -> Optional[str]:
    """Return why a private RabbitMQ cannot be started here and what to do, None if it can."""
    if not PROGRAM.exists() or shutil.which("epmd") is None:
        return "rabbitmq-server not found: run as root: python -m tests.real.install rabbitmq"
    return None


class PrivateRabbit:
    """One broker; what it holds is in ``home`` and survives :meth:`kill` and :meth:`stop`."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.port = free_port()
        self._epmd_port = free_port()
        self._dist_port = free_port()
        self._password = secrets.token_hex(12)
        self._processes: Dict[str, "subprocess.Popen[bytes]"] = {}
        home.mkdir(parents=True)
        (home / "rabbitmq.conf").write_text(
            f"listeners.tcp.1 = 127.0.0.1:{self.port}\n"
            f"default_user = pulsar\ndefault_pass = {self._password}\ndefault_vhost = pulsar\n"
            "log.console = true\nlog.file = false\n"
        )
        (home / "enabled_plugins").write_text("[].\n")
        (home / "rabbitmq-env.conf").write_text("")

    @property
    def url(self) -> str:
        """The address for Pulsar and Galaxy, with the password in it."""
        return f"pyamqp://pulsar:{self._password}@127.0.0.1:{self.port}/pulsar"

    def _env(self) -> Dict[str, str]:
        home = str(self.home)
        return {
            **os.environ,
            "HOME": home,
            "LC_ALL": "C.UTF-8",
            "ERL_EPMD_PORT": str(self._epmd_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": "tests@localhost",
            "RABBITMQ_DIST_PORT": str(self._dist_port),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
            "RABBITMQ_MNESIA_BASE": f"{home}/mnesia",
            "RABBITMQ_LOG_BASE": f"{home}/log",
            "RABBITMQ_CONFIG_FILE": f"{home}/rabbitmq.conf",
            "RABBITMQ_CONF_ENV_FILE": f"{home}/rabbitmq-env.conf",
            "RABBITMQ_ENABLED_PLUGINS_FILE": f"{home}/enabled_plugins",
            "RABBITMQ_PID_FILE": f"{home}/pid",
        }

    def _launch(self, name: str, argv: List[str]) -> None:
        with open(self.home / f"{name}.log", "ab") as log:
            self._processes[name] = subprocess.Popen(
                argv, cwd=self.home, env=self._env(), start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )

    def launch(self) -> PrivateRabbit:
        """Start the broker, with what it held before, and do not wait for it."""
        if "epmd" not in self._processes:
            self._launch("epmd", ["epmd", "-port", str(self._epmd_port),
                                  "-address", "127.0.0.1"])
            wait_until(lambda: _listening(self._epmd_port), PATIENCE_S, "epmd to listen")
        self._launch("broker", [str(PROGRAM)])
        return self

    def wait_up(self) -> PrivateRabbit:
        """Wait until it takes connections."""
        wait_until(self._answers, PATIENCE_S,
                   f"RabbitMQ to answer (see {self.home}/broker.log)", 0.3)
        return self

    def start(self) -> PrivateRabbit:
        """Start the broker, with what it held before."""
        return self.launch().wait_up()

    def _answers(self) -> bool:
        if self._processes["broker"].poll() is not None:
            log = (self.home / "broker.log").read_text(errors="replace")
            raise RuntimeError(f"RabbitMQ did not start:\n{log[-3000:]}")
        try:
            with Connection(self.url, connect_timeout=5) as connection:
                connection.connect()
        except (OSError, AMQPError, KombuError):
            return False
        return True

    def kill(self) -> None:
        """End the broker at once, as the power failing would."""
        self._end("broker", signal.SIGKILL)

    def stop(self) -> None:
        """End broker and epmd; fine if they are gone."""
        for name in ("broker", "epmd"):
            self._end(name, signal.SIGKILL)

    def _end(self, name: str, number: int) -> None:
        process = self._processes.pop(name, None)
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)  # the shell script and its Erlang
        process.wait(timeout=PATIENCE_S)

    def __enter__(self) -> PrivateRabbit:
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(self, *_: object) -> None:
        self.stop()

    # ---- messages -----------------------------------------------------------------------------

    def publish(self, queue_name: str, message: Dict[str, Any]) -> None:
        """Send a message as Pulsar does, to Pulsar's exchange of that queue name."""
        exchange = Exchange("pulsar", type="direct")
        with Connection(self.url) as connection:
            queue = Queue(queue_name, exchange, routing_key=queue_name)
            connection.Producer().publish(
                message, exchange=exchange, declare=[exchange, queue],
                routing_key=queue_name, serializer="json",
            )

    @contextlib.contextmanager
    def overhear(self, queue_name: str) -> Iterator[Ear]:
        """Give what is sent to a queue from now on; whoever it is for gets it as well."""
        exchange = Exchange("pulsar", type="direct")
        with Connection(self.url) as connection:
            queue = Queue(f"ear_{secrets.token_hex(4)}", exchange, routing_key=queue_name,
                          auto_delete=True, durable=False)
            ear = Ear(connection)
            with connection.Consumer(queue, callbacks=[ear.take]):
                yield ear


class Ear:
    """Messages overheard so far."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._heard: List[Dict[str, Any]] = []

    def take(self, body: Any, message: Any) -> None:
        """Take one message."""
        self._heard.append(dict(body))
        message.ack()

    def heard(self, **wanted: Any) -> List[Dict[str, Any]]:
        """Return the messages with these values so far."""
        with contextlib.suppress(socket.timeout):
            while True:
                self._connection.drain_events(timeout=0.2)
        return [message for message in self._heard
                if all(message.get(key) == value for key, value in wanted.items())]


def _listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
