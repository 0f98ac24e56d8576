"""A private, real PostgreSQL on loopback, for the failure ledger.

    with PrivatePostgresql(home) as server:
        server.url            # postgresql+psycopg://ledger:...@127.0.0.1:port/ledger

Own port and data folder; root runs it as the user ``postgres``, whom Debian's package makes, since
PostgreSQL refuses root. The password is made at run time.
"""

from __future__ import annotations

import atexit
import os
import pwd
import secrets
import shutil
import signal
import subprocess
from pathlib import Path
from typing import List, Optional, Sequence, Union

from tests.ports import free_port_block
from tests.real.processes import PATIENCE_S, Daemons, HarnessError, wait_until
from tests.real.slurm_machine import listening

MARKER = ".private-postgresql"
ACCOUNT = "postgres"
DEBIAN = Path("/usr/lib/postgresql")
NEEDED = ("initdb", "postgres", "psql")
USER = DATABASE = "ledger"


def why_missing() -> Optional[str]:
    """Return why a private PostgreSQL cannot be started here and what to do, or None."""
    if programs() is None:
        return "initdb and postgres not found: run python -m tests.real.install postgresql"
    return None


def programs() -> Optional[Path]:
    """Return the folder of the server's programs, Debian's newest first; None where it is none."""
    folders: List[Path] = sorted(DEBIAN.glob("*/bin"), key=_version, reverse=True)
    on_path = shutil.which("initdb")
    if on_path is not None:
        folders.append(Path(on_path).resolve().parent)
    return next((f for f in folders if all((f / name).exists() for name in NEEDED)), None)


def _version(folder: Path) -> float:
    try:
        return float(folder.parent.name)
    except ValueError:
        return 0.0


class PrivatePostgresql:
    """One private server in the folder `home`.

    Args:
        home: its folder; made, and emptied by ``start()``. Refused if it holds anything else.
    """

    def __init__(self, home: Union[str, Path]) -> None:
        self.home = Path(home).resolve()
        self.daemons = Daemons(self.home / "pids")
        self.password = secrets.token_urlsafe(12)
        self.port = 0
        self._data = self.home / "data"
        self._sockets = self.home / "sockets"

    def __enter__(self) -> "PrivatePostgresql":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """The ledger's URL, as in ``failure_ledger``."""
        return f"postgresql+psycopg://{USER}:{self.password}@127.0.0.1:{self.port}/{DATABASE}"

    def start(self) -> None:
        """Make the server and an empty database."""
        self._claim_home()
        self._initdb()
        self.port = free_port_block(1)
        self.up()
        atexit.register(self.stop)
        self.sql(f"CREATE ROLE {USER} LOGIN PASSWORD '{self.password}'", "postgres")
        self.sql(f"CREATE DATABASE {DATABASE} OWNER {USER}", "postgres")

    def up(self) -> None:
        """Start the daemon and wait until it answers."""
        log = self.home / "postgres.log"
        argv = [
            self._program("postgres"), "-D", str(self._data), "-p", str(self.port),
            "-c", "listen_addresses=127.0.0.1", "-c", f"unix_socket_directories={self._sockets}",
            "-c", "fsync=on", "-c", "max_connections=30",
        ]
        self.daemons.start("postgres", self._as_account(argv), _environment(), log)

        def ready() -> bool:
            if not self.daemons.alive("postgres"):
                raise HarnessError(f"postgres ended at once: {log.read_text()[-1000:]}")
            return listening(self.port) and self._psql("SELECT 1", "postgres").returncode == 0

        wait_until(ready, PATIENCE_S, f"postgres to answer on port {self.port} (see {log})")

    def down(self) -> None:
        """End the daemon, as for an upgrade; what it holds stays."""
        # SIGTERM waits for clients: one that is connected, or comes before it, goes on working.
        pid = self.daemons.pid("postgres")
        if pid is not None:
            os.kill(pid, signal.SIGINT)
        self.daemons.stop("postgres")

    def stop(self) -> None:
        """End it; fine if it is gone."""
        self.daemons.stop("postgres")
        atexit.unregister(self.stop)

    def sql(self, query: str, database: str = DATABASE) -> str:
        """Return what psql prints of a query, run by the superuser."""
        done = self._psql(query, database)
        if done.returncode != 0:
            raise HarnessError(f"psql: {done.stderr.strip()}")
        return done.stdout.strip()

    def _psql(self, query: str, database: str) -> "subprocess.CompletedProcess[str]":
        argv = [self._program("psql"), "-X", "-q", "-A", "-t", "-h", str(self._sockets),
                "-p", str(self.port), "-d", database, "-c", query]
        return self._run(argv)

    def _run(self, argv: Sequence[str]) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(self._as_account(argv), capture_output=True, text=True,
                              timeout=PATIENCE_S, env=_environment(), cwd="/")

    def _initdb(self) -> None:
        argv = [self._program("initdb"), "-D", str(self._data), "-E", "UTF8", "--locale=C.UTF-8",
                "--auth-local=peer", "--auth-host=scram-sha-256"]
        done = self._run(argv)
        if done.returncode != 0:
            raise HarnessError(f"initdb: {done.stderr.strip()[-800:]}")

    def _claim_home(self) -> None:
        marker = self.home / MARKER
        if self.home.exists() and any(self.home.iterdir()) and not marker.exists():
            raise HarnessError(f"{self.home} holds something else than a private PostgreSQL")
        self.home.mkdir(parents=True, exist_ok=True)
        self.daemons.stop("postgres")
        for name in ("data", "sockets"):
            shutil.rmtree(self.home / name, ignore_errors=True)
        marker.touch()
        self.home.chmod(0o755)
        for folder in (self._data, self._sockets):
            folder.mkdir(mode=0o700)
            if os.geteuid() == 0:
                account = pwd.getpwnam(ACCOUNT)
                os.chown(folder, account.pw_uid, account.pw_gid)

    def _program(self, name: str) -> str:
        folder = programs()
        if folder is None:
            raise HarnessError(why_missing())
        return str(folder / name)

    def _as_account(self, argv: Sequence[str]) -> List[str]:
        if os.geteuid() != 0:
            return list(argv)
        # Not su or runuser: those stay between us and the server, whose pid we must know.
        return ["setpriv", f"--reuid={ACCOUNT}", f"--regid={ACCOUNT}", "--init-groups", *argv]


def _environment() -> "dict[str, str]":
    return {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}
