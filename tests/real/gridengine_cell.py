"""The daemons of a private Grid Engine: configured, started, stopped, started again."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import pwd
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, TypeVar, Union

from tests.ports import free_port_block
from tests.real import gridengine_conf as conf
from tests.real.gridengine_keeper import FIFO
from tests.real.processes import (
    END_PATIENCE_S,
    PATIENCE_S,
    Daemons,
    HarnessError,
    kill_all,
    process_start,
    wait_until,
)
from tests.real.slurm_machine import SYSTEM_PATH

MARKER = ".private-gridengine"
COMMAND_TIMEOUT_S = 180
PROGRAMS = Path("/usr/lib/gridengine")
COMMANDS = tuple("qsub qstat qacct qdel qmod qconf qhost qalter qhold qrls qselect".split())
# nothing else: jobs inherit it
DAEMON_ENV = {"PATH": os.pathsep.join(SYSTEM_PATH), "LANG": "C.UTF-8", "HOME": "/root"}
KEEPER = "tests.real.gridengine_keeper"
NAMESPACE, QMASTER, EXECD = "namespace", "qmaster", "execd"
REPOSITORY = Path(__file__).resolve().parents[2]
Me = TypeVar("Me", bound="GridEngineCell")


def why_missing() -> Optional[str]:
    """Return why a private Grid Engine cannot be started here and what to do, or None if it
    can."""
    if os.geteuid() != 0:
        return "it needs a network namespace of its own: run the tests as root"
    lacking = [str(path) for path in needed_files() if not path.exists()]
    if lacking:
        return f"no {', '.join(lacking)}: run python -m tests.real.install gridengine"
    tried = subprocess.run(
        ["unshare", "--net", "--uts", "true"], capture_output=True, text=True, timeout=60
    )
    return f"no namespaces here: {tried.stderr.strip()}" if tried.returncode != 0 else None


def needed_files() -> List[Path]:
    """Return the files of Debian's packages without which nothing works."""
    programs = ["sge_qmaster", "sge_execd", "sge_shepherd", "spoolinit", "qsub", "qstat"]
    return [*(PROGRAMS / name for name in programs), conf.DEFAULT_CONFIGURATION, conf.RESOURCES]


class GridEngineCell:
    """One private cell with one execution host in the folder `home`.

    Args:
        home: its folder; made, and emptied by ``start()``. Refused if it holds anything else. Jobs
            of other users need it to be reachable for them.
        flush_time_s: seconds until the record of an ended job is in the accounting file (qacct); 0
            writes it at once, None is Debian's default (qacct lags 9 to 12 s).
        slots: how many jobs run at a time, at most 32.
        conf: further settings of the global configuration, sge_conf(5).
        queue: further settings of the queue, queue_conf(5), e.g. ``{"h_rt": "0:0:5"}``.
    """

    def __init__(
        self,
        home: Union[str, Path],
        flush_time_s: Optional[int] = 0,
        slots: int = 16,
        conf: Optional[Mapping[str, str]] = None,
        queue: Optional[Mapping[str, str]] = None,
    ) -> None:
        self.home = Path(home).resolve()
        self.flush_time_s = flush_time_s
        self.slots = slots
        self.conf = dict(conf or {})
        self.queue = dict(queue or {})
        self.daemons = Daemons(self.home / "pids")
        self._port: Optional[int] = None

    # ---- life ----------------------------------------------------------------------------------

    def __enter__(self: Me) -> Me:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start the cell afresh and return once its queue takes jobs."""
        self._claim_home()
        self.stop()
        self._empty_home()
        self._port = free_port_block(2)
        (self.home / "port").write_text(f"{self._port}\n")
        atexit.register(self.stop)
        try:
            self._start_namespace()
            self._make_spool()
            self._start_qmaster()
            self._make_queue()
            self.execd_start()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End every process of this cell, jobs too; its files stay. Fine if it is not running."""
        for name in (EXECD, QMASTER):
            self.daemons.kill(name)
        self._kill_jobs()
        self.daemons.kill(NAMESPACE)
        atexit.unregister(self.stop)

    def running(self) -> bool:
        """Tell whether the qmaster answers and the queue takes jobs."""
        alive = all(self.daemons.alive(name) for name in (NAMESPACE, QMASTER, EXECD))
        return alive and self._queue_ready()

    @property
    def port(self) -> int:
        """The qmaster's port, inside the namespace; HarnessError before the first ``start()``."""
        if self._port is None:
            try:
                self._port = int((self.home / "port").read_text())
            except (OSError, ValueError) as error:
                raise HarnessError(f"the cell in {self.home} has not been started") from error
        return self._port

    @property
    def user(self) -> str:
        """The user who runs the daemons, and the jobs unless told otherwise."""
        return pwd.getpwuid(os.geteuid()).pw_name

    @property
    def bin(self) -> Path:
        """The folder of the cell's own qsub, qstat ...: they need nothing in the environment.

        They enter the cell's namespace, so they work from anywhere, but for root only.
        """
        return self.home / "bin"

    @property
    def env(self) -> Dict[str, str]:
        """The environment for anything of root's that is to use this cell by its commands."""
        env = {name: value for name, value in os.environ.items() if not name.startswith("SGE_")}
        before = [folder for folder in env.get("PATH", "").split(os.pathsep) if folder]
        after = [folder for folder in SYSTEM_PATH if folder not in before]
        env["PATH"] = os.pathsep.join([str(self.bin), *before, *after])
        env.update(self.settings)
        return env

    @property
    def settings(self) -> Dict[str, str]:
        """The variables that Grid Engine reads."""
        return {
            "SGE_ROOT": str(self.home),
            "SGE_CELL": conf.CELL,
            "SGE_QMASTER_PORT": str(self.port),
            "SGE_EXECD_PORT": str(self.port + 1),
        }

    def run(
        self,
        argv: Sequence[str],
        check: bool = True,
        user: Optional[str] = None,
        timeout_s: float = COMMAND_TIMEOUT_S,
        stdin: Optional[str] = None,
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command in the cell's namespace, as `user` if given; with `check` a failure raises
        HarnessError."""
        env = {**self.env, "LC_ALL": "C"}
        if Path(argv[0]).name in COMMANDS:
            argv = [str(PROGRAMS / argv[0]), *argv[1:]]
        done = subprocess.run(
            [*self._enter(), *become(user), *argv],
            env=env,
            cwd=self.home / "work",
            input=stdin or "",
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
        )
        if check and done.returncode != 0:
            raise HarnessError(
                f"{shlex.join(argv)} ended with {done.returncode}: "
                f"{(done.stderr or done.stdout).strip()[:2000]}"
            )
        return done

    # ---- accidents -----------------------------------------------------------------------------

    def qmaster_stop(self, crash: bool = False) -> None:
        """Stop the qmaster with SIGTERM, or at once with SIGKILL; jobs run on."""
        if crash:
            self.daemons.kill(QMASTER)
        else:
            self.daemons.stop(QMASTER)

    def qmaster_start(self, restart_execd: bool = True) -> None:
        """Start the qmaster again with its jobs.

        Args:
            restart_execd: see ``execd_restart``. Left alone the execd takes up to 30 s to find the
                new qmaster, and until then ended jobs are listed as running.
        """
        self._start_qmaster()
        if restart_execd:
            self.execd_restart()

    def qmaster_freeze(self) -> None:
        """Stop the qmaster without ending it: commands hang and time out."""
        self._signal(QMASTER, signal.SIGSTOP)

    def qmaster_thaw(self) -> None:
        """Let a frozen qmaster go on."""
        self._signal(QMASTER, signal.SIGCONT)

    def execd_crash(self, jobs_too: bool = False) -> None:
        """Kill the execution daemon; with `jobs_too` its shepherds and jobs too, as a crash of the
        host would: without a word."""
        self.daemons.kill(EXECD)
        if jobs_too:
            # the shepherds first, or they note how their jobs ended
            for name in ("sge_shepherd", ""):
                self._kill_jobs(name)

    def execd_restart(self) -> None:
        """Start the execution daemon anew; jobs run on.

        It reports at once what has ended by then. It looks only every 60 s (OLD_JOB_INTERVAL in its
        source) whether one of the jobs that its predecessor started has ended; after such an end
        another restart spares a test that minute.
        """
        self.execd_crash()
        self.execd_start()

    def execd_start(self, timeout_s: float = PATIENCE_S) -> None:
        """Start the execution daemon (again); return once the queue takes jobs."""
        before = self._registrations()
        self._start_daemon(EXECD, "sge_execd")

        def ready() -> bool:
            self._check_alive(EXECD)
            return self._registrations() > before and self._queue_ready()

        wait_until(ready, timeout_s, f"the queue to take jobs (see {self.home})", interval_s=0.1)

    # ---- configuration -------------------------------------------------------------------------

    def set_queue(self, **settings: str) -> None:
        """Change settings of the running cell's queue, e.g. ``h_rt="0:0:5"``: for jobs to come."""
        for name, value in settings.items():
            self.run(["qconf", "-rattr", "queue", name, value, conf.QUEUE])

    def set_conf(self, **settings: str) -> None:
        """Change settings of the running cell's global configuration."""
        self.conf.update(settings)
        self._write_global()
        self.run(["qconf", "-Mconf", f"{self.home}/conf/global"])

    # ---- inside --------------------------------------------------------------------------------

    def processes(self) -> Iterator[Tuple[int, int]]:
        """Yield (pid, start time) of all processes of the cell: daemons, shepherds, jobs."""
        net = self._network_namespace()
        for folder in Path("/proc").glob("[0-9]*"):
            pid = int(folder.name)
            start = process_start(pid)
            if start is None or pid == os.getpid():
                continue
            if (net is not None and namespace_of(pid) == net) or left_over(folder, self.home):
                yield pid, start

    def _network_namespace(self) -> Optional[str]:
        """Return the cell's network namespace, or None while it has none of its own.

        A keeper that has not come to unshare is in ours, and so is the whole machine: what
        ``stop`` ended then would be everybody.
        """
        holder = self.daemons.pid(NAMESPACE)
        net = namespace_of(holder) if holder is not None else None
        return None if net in (namespace_of(os.getpid()), namespace_of(os.getppid())) else net

    def _kill_jobs(self, program: str = "") -> None:
        """Kill all but the daemons, or only processes of that program."""
        keep = {self.daemons.pid(NAMESPACE), self.daemons.pid(QMASTER), self.daemons.pid(EXECD)}

        def found() -> Iterator[Tuple[int, int]]:
            for pid, start in self.processes():
                if pid not in keep and (not program or program_of(pid) == program):
                    yield pid, start

        kill_all(found)

    def _claim_home(self) -> None:
        self.home.mkdir(parents=True, exist_ok=True)
        if any(self.home.iterdir()) and not (self.home / MARKER).exists():
            raise HarnessError(
                f"{self.home} holds files that are not a private Grid Engine's: give another home"
            )
        (self.home / MARKER).touch()

    def _empty_home(self) -> None:
        for path in self.home.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            elif path.name != MARKER:
                path.unlink()
        for name in conf.FOLDERS:
            (self.home / name).mkdir(parents=True)
        for name in ("tmp", "work"):  # where jobs of any user write
            (self.home / name).chmod(0o1777)

    def _start_namespace(self) -> None:
        argv = ["unshare", "--net", "--uts", sys.executable, "-m", KEEPER, str(self.home)]
        env = {**DAEMON_ENV, "PYTHONPATH": str(REPOSITORY)}
        self.daemons.start(NAMESPACE, argv, env, self.home / "log/namespace.out")
        ready = f"a network namespace (see {self.home}/log)"
        wait_until((self.home / FIFO).exists, PATIENCE_S, ready)
        for name in COMMANDS:
            self._write_command(name)

    def _write_command(self, name: str) -> None:
        path = self.bin / name
        exports = "".join(f"export {key}={value}\n" for key, value in self.settings.items())
        enter = shlex.join([*self._enter(), str(PROGRAMS / name)])
        path.write_text(f'#!/bin/sh\n{exports}exec {enter} "$@"\n')
        path.chmod(0o755)

    def _enter(self) -> List[str]:
        holder = self.daemons.pid(NAMESPACE)
        if holder is None:
            raise HarnessError(f"the cell in {self.home} is not running")
        return ["nsenter", f"--net=/proc/{holder}/ns/net", f"--uts=/proc/{holder}/ns/uts", "--"]

    def _make_spool(self) -> None:
        common = self.home / conf.CELL / "common"
        (self.home / "util").symlink_to(conf.SHARE / "util")
        (common / "bootstrap").write_text(conf.bootstrap(self.home))
        (common / "act_qmaster").write_text(f"{conf.HOST}\n")
        self._write_global()
        for argv in conf.spool_commands(self.home):
            self.run(argv)

    def _write_global(self) -> None:
        text = conf.global_conf(self.home, self.port, self.flush_time_s, self.conf)
        (self.home / "conf/global").write_text(text)

    def _start_qmaster(self) -> None:
        self._start_daemon(QMASTER, "sge_qmaster")

        def answers() -> bool:
            self._check_alive(QMASTER)
            done = self.run(["qconf", "-sh"], check=False, timeout_s=END_PATIENCE_S)
            return done.returncode == 0

        wait_until(answers, PATIENCE_S, f"the qmaster to answer (see {self.home}/log)", 0.1)

    def _make_queue(self) -> None:
        folder = self.home / "conf"
        (folder / "scheduler").write_text(conf.scheduler_conf())
        (folder / "host").write_text(conf.host_conf())
        (folder / "queue").write_text(conf.queue_conf(self.home, self.slots, self.queue))
        self.run(["qconf", "-Msconf", str(folder / "scheduler")])
        self.run(["qconf", "-as", conf.HOST])
        self.run(["qconf", "-Ae", str(folder / "host")])
        self.run(["qconf", "-Aq", str(folder / "queue")])

    def _start_daemon(self, name: str, program: str) -> None:
        env = {**DAEMON_ENV, **self.settings, "SGE_ND": "1"}  # stay in the foreground
        request = {"name": name, "argv": [str(PROGRAMS / program)], "env": env}
        line = json.dumps(request).encode() + b"\n"
        fifo = os.open(self.home / FIFO, os.O_WRONLY | os.O_NONBLOCK)  # fails if nobody reads
        try:
            os.write(fifo, line)
        finally:
            os.close(fifo)
        wait_until(lambda: name in self.daemons.names(), PATIENCE_S, f"a start of the {name}", 0.01)

    def _check_alive(self, name: str) -> None:
        if not self.daemons.alive(name):
            log = (self.home / "log" / f"{name}.out").read_text(errors="replace")
            raise HarnessError(f"the {name} ended at once: {log[-1000:]}")

    def _registrations(self) -> int:
        """Return how often an execd of this cell has found its qmaster."""
        log = self.home / "log" / f"{EXECD}.out"
        text = log.read_text(errors="replace") if log.exists() else ""
        return text.count("registered at qmaster host")

    def _queue_ready(self) -> bool:
        """Tell whether the queue shows no state (``au`` without an execd) and a load."""
        shown = self.run(["qstat", "-f"], check=False, timeout_s=END_PATIENCE_S).stdout
        rows = [line.split() for line in shown.splitlines() if line.startswith(f"{conf.QUEUE}@")]
        return len(rows) == 1 and len(rows[0]) == 5 and rows[0][3] not in ("-NA-", "---")

    def _signal(self, name: str, number: int) -> None:
        pid = self.daemons.pid(name)
        if pid is None:
            raise HarnessError(f"the {name} of {self.home} is not running")
        os.kill(pid, number)


def become(user: Optional[str]) -> List[str]:
    """Return the argv to put before a command to run it as another user."""
    if user is None or user == pwd.getpwuid(os.geteuid()).pw_name:
        return []
    entry = pwd.getpwnam(user)
    return [
        "setpriv",
        f"--reuid={entry.pw_uid}",
        f"--regid={entry.pw_gid}",
        "--clear-groups",
        "env",
        f"HOME={entry.pw_dir}",
        f"USER={user}",
        f"LOGNAME={user}",
    ]


def namespace_of(pid: int) -> Optional[str]:
    """Return the network namespace of a process, or None if it has ended."""
    with contextlib.suppress(OSError):
        return os.readlink(f"/proc/{pid}/ns/net")
    return None


def program_of(pid: int) -> Optional[str]:
    """Return the name of a process's program, or None if it has ended."""
    with contextlib.suppress(OSError):
        return os.readlink(f"/proc/{pid}/exe").rpartition("/")[2]
    return None


def left_over(process: Path, home: Path) -> bool:
    """Tell by its environment whether a process is a daemon or a job of the cell in `home`.

    Users of the cell, such as a Pulsar, have SGE_ROOT too, and are neither.
    """
    with contextlib.suppress(OSError):
        environ = (process / "environ").read_bytes().split(b"\0")
        if any(entry.startswith(f"SGE_JOB_SPOOL_DIR={home}/".encode()) for entry in environ):
            return True
        daemon = (program_of(int(process.name)) or "").startswith("sge_")
        return daemon and f"SGE_ROOT={home}".encode() in environ
    return False
