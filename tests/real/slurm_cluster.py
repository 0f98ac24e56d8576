"""The daemons of a private Slurm: configured, started, stopped, started again."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import pwd
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, TypeVar, Union

from tests.ports import free_port_block
from tests.real import slurm_conf
from tests.real.install import library_folder
from tests.real.processes import (
    END_PATIENCE_S,
    PATIENCE_S,
    Daemons,
    HarnessError,
    kill_all,
    wait_until,
)
from tests.real.slurm_machine import (
    CGROUP_V1,
    SYSTEM_PATH,
    accepts,
    cgroup_usable,
    host_name,
    job_processes,
    listening,
    node_memory_mb,
    programs_path,
)

MARKER = ".private-slurm"
COMMAND_TIMEOUT_S = 180
Me = TypeVar("Me", bound="SlurmCluster")


class SlurmCluster:
    """One private cluster in the folder `home`.

    Args:
        home: its folder; made, and emptied by ``start()``. Refused if it holds anything else. Jobs
        of other
            users need it to be reachable for them. At most about 80 characters (it holds sockets).
        version: "22.05" (the system's) or "24.11" (unpacked by ``tests.real.install``).
        accounting: with slurmdbd and MariaDB, so that sacct works.
        cgroup: "auto", or a bool: memory limits by cgroup v1 (OUT_OF_MEMORY), else OverMemoryKill.
        min_job_age: seconds that slurmctld remembers an ended job; 2 forgets it after about 10 s.
        nodes: how many virtual nodes of 4 CPUs.
        auth: "munge" or "none".
        enforce_limits: associations and QOS limits hold; see ``add_qos``. Needs accounting.
        private_data: users see their own jobs only.
        slurmd_timeout: seconds until a node whose slurmd is gone counts as failed; with a
            message_timeout of 10 it takes Slurm about 25 s to find out, with 2 about 10 s.
        message_timeout: seconds that Slurm's commands and daemons wait for each other's answers.
        extra_conf: further lines of slurm.conf.
    """

    def __init__(
        self,
        home: Union[str, Path],
        version: str = "22.05",
        accounting: bool = True,
        cgroup: Union[str, bool] = "auto",
        min_job_age: int = 300,
        nodes: int = 1,
        auth: str = "munge",
        enforce_limits: bool = False,
        private_data: bool = False,
        slurmd_timeout: int = 10,
        message_timeout: int = 10,
        extra_conf: str = "",
    ) -> None:
        self.home = Path(home).resolve()
        self.version = version
        self.accounting = accounting
        self.cgroup = cgroup_usable() if cgroup == "auto" else bool(cgroup)
        self.min_job_age_s = min_job_age
        self.node_count = nodes
        self.auth = auth
        self.enforce_limits = enforce_limits
        self.private_data = private_data
        self.slurmd_timeout_s = slurmd_timeout
        self.message_timeout_s = message_timeout
        self.extra_conf = extra_conf
        self.daemons = Daemons(self.home / "pids")
        self._front, self._prefix = programs_path(version)
        self._layout: Optional[slurm_conf.Layout] = None
        self._before: List[str] = []

    # ---- life --------------------------------------------------------------------------------

    def __enter__(self: Me) -> Me:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start the cluster afresh and return once its nodes are idle."""
        self._claim_home()
        self.stop()
        self._empty_home()
        host, self._before = host_name()
        port = free_port_block(2 + self.node_count)
        # the name is in the path of the node's cgroup, so two clusters must not share it
        nodes = [f"n{port}-{number}" for number in range(1, self.node_count + 1)]
        plugins = library_folder(self._prefix) / "slurm-wlm" if self._prefix else None
        user = pwd.getpwuid(os.geteuid()).pw_name
        self._layout = slurm_conf.Layout(self.home, port, host, user, nodes, plugins)
        atexit.register(self.stop)
        try:
            self._start_daemons()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End every process of this cluster; its files stay. Fine if it is not running."""
        for name in sorted(self.daemons.names(), key=stop_order):
            self.daemons.stop(name)
            if name.startswith("slurmd-"):
                self._kill_job_processes()
        self._kill_job_processes()
        self._remove_cgroups()
        atexit.unregister(self.stop)

    def running(self) -> bool:
        """Tell whether the controller answers."""
        return self._loaded() and self.daemons.alive("slurmctld") and self._controller_answers()

    @property
    def layout(self) -> slurm_conf.Layout:
        """Folders, ports and names; raises HarnessError before the first ``start()``."""
        if self._layout is None:
            raise HarnessError(f"the private Slurm in {self.home} has not been started")
        return self._layout

    @property
    def nodes(self) -> List[str]:
        """The names of the nodes."""
        return self.layout.nodes

    @property
    def user(self) -> str:
        """The user who runs the daemons, and the jobs unless told otherwise."""
        return self.layout.user

    @property
    def env(self) -> Dict[str, str]:
        """The environment for anything that is to use this cluster: SLURM_CONF, and PATH with its
        commands."""
        env = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("SLURM_", "SBATCH_", "SQUEUE_", "SACCT_", "SCANCEL_"))
        }
        env["SLURM_CONF"] = str(self.layout.conf)
        before = [folder for folder in env.get("PATH", "").split(os.pathsep) if folder]
        after = [folder for folder in SYSTEM_PATH if folder not in before]
        env["PATH"] = os.pathsep.join([*self._front, *before, *after])
        return env

    def run(
        self,
        argv: Sequence[str],
        check: bool = True,
        user: Optional[str] = None,
        timeout_s: float = COMMAND_TIMEOUT_S,
        stdin: Optional[str] = None,
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command on this cluster, as `user` if given; with `check` a failure raises
        HarnessError."""
        options: Dict[str, Any] = {"cwd": str(self.home / "work")}
        if user is not None and user != self.user:
            entry = pwd.getpwnam(user)
            options = {
                "cwd": "/tmp",
                "user": entry.pw_uid,
                "group": entry.pw_gid,
                "extra_groups": [],
            }
        env = {**self.env, "SLURM_CONF": str(self.layout.patient_conf)}
        program = shutil.which(argv[0], path=env["PATH"]) or argv[0]
        done: "subprocess.CompletedProcess[str]" = subprocess.run(
            [program, *argv[1:]],
            env=env,
            input=stdin,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            **options,
        )
        if check and done.returncode != 0:
            raise HarnessError(
                f"{shlex.join(argv)} ended with {done.returncode}: "
                f"{(done.stderr or done.stdout).strip()[:2000]}"
            )
        return done

    # ---- the controller, nodes and accounting ------------------------------------------------

    def controller_stop(self) -> None:
        """End slurmctld; it saves its state first."""
        self.daemons.stop("slurmctld")

    def controller_start(self, clean: bool = False, timeout_s: float = PATIENCE_S) -> None:
        """Start slurmctld and wait until it answers; with `clean` it has forgotten all jobs."""
        argv = [
            self._program("slurmctld"),
            "-D",
            "-f",
            str(self.layout.conf),
            *(["-c"] if clean else []),
        ]
        self._start("slurmctld", argv)
        self._wait_alive("slurmctld", self._controller_answers, timeout_s)

    def slurmdbd_stop(self) -> None:
        """End slurmdbd; MariaDB stays."""
        self.daemons.stop("slurmdbd")

    def slurmdbd_start(self, timeout_s: float = PATIENCE_S) -> None:
        """Start slurmdbd and wait until it accepts connections."""
        env = {"MYSQL_UNIX_PORT": str(self.layout.database_socket)}
        self._start("slurmdbd", [self._program("slurmdbd"), "-D"], env)
        self._wait_alive("slurmdbd", lambda: listening(self.layout.dbd_port), timeout_s)

    def wait_idle(self, timeout_s: float = PATIENCE_S) -> None:
        """Wait until every node is up and without a job."""
        wait_until(
            lambda: self.node_states() == {"idle"},
            timeout_s,
            "all nodes to be idle",
            interval_s=0.1,
        )

    def node_states(self) -> "set[str]":
        """Return the states of all nodes, as sinfo names them."""
        return set(
            self.run(["sinfo", "--noheader", "--Node", "--format=%T"], check=False).stdout.split()
        )

    def add_account(self, name: str, users: Sequence[str]) -> None:
        """Make an account and let `users` charge it."""
        self.run(["sacctmgr", "-i", "add", "account", name, f"cluster={slurm_conf.CLUSTER}"])
        for user in users:
            self.run(["sacctmgr", "-i", "add", "user", user, f"account={name}"])

    def add_qos(self, name: str, users: Sequence[str], max_submit_jobs: int) -> None:
        """Make a QOS in which each of `users` may have at most `max_submit_jobs` jobs, waiting or
        running."""
        self.run(
            [
                "sacctmgr",
                "-i",
                "add",
                "qos",
                name,
                f"MaxSubmitJobsPerUser={max_submit_jobs}",
                "Flags=DenyOnLimit",
            ]
        )
        for user in users:
            self.run(["sacctmgr", "-i", "modify", "user", user, "set", f"qos+={name}"])

    # ---- inside ------------------------------------------------------------------------------

    def _claim_home(self) -> None:
        self.home.mkdir(parents=True, exist_ok=True)
        if any(self.home.iterdir()) and not (self.home / MARKER).exists():
            raise HarnessError(
                f"{self.home} holds files that are not a private Slurm's: give another home"
            )
        (self.home / MARKER).touch()

    def _empty_home(self) -> None:
        for path in self.home.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
        for name in ("etc", "ctld", "log", "run", "spool", "work", "munge"):
            (self.home / name).mkdir()
        # jobs of other users reach their scripts and munge's socket through these
        for path in (self.home, *(self.home / name for name in ("etc", "spool", "munge"))):
            path.chmod(0o755)
        (self.home / "work").chmod(0o1777)

    def _start_daemons(self) -> None:
        self._write_configuration()
        if self.auth == "munge":
            self._start_munged()
        if self.accounting:
            self._start_database()
            self.slurmdbd_start()
            # slurmctld registers itself only with a cluster that is already there
            self.run(["sacctmgr", "-i", "add", "cluster", slurm_conf.CLUSTER])
            if self.enforce_limits:
                self.add_account("default", [self.user])
        self.controller_start()
        for name in self.nodes:
            self._start_slurmd(name)
        self.wait_idle()

    def _write_configuration(self) -> None:
        layout = self.layout
        layout.conf.write_text(self._slurm_conf(self.message_timeout_s))
        layout.patient_conf.write_text(self._slurm_conf(END_PATIENCE_S))
        cgroup_conf = slurm_conf.cgroup_conf(self.cgroup, self.version)
        if cgroup_conf is not None:
            (layout.etc / "cgroup.conf").write_text(cgroup_conf)
        if self.accounting:
            # slurmdbd has no -f: it reads this file beside $SLURM_CONF, if nobody else can
            path = layout.etc / "slurmdbd.conf"
            path.touch(mode=0o600)
            path.write_text(slurm_conf.slurmdbd_conf(layout, self.auth))
        record = {
            "version": self.version,
            "port": layout.port,
            "host": layout.host,
            "user": layout.user,
            "nodes": layout.nodes,
        }
        (self.home / "layout.json").write_text(json.dumps(record))

    def _slurm_conf(self, message_timeout_s: int) -> str:
        return slurm_conf.slurm_conf(
            self.layout,
            auth=self.auth,
            accounting=self.accounting,
            enforce=self.enforce_limits,
            cgroup=self.cgroup,
            min_job_age_s=self.min_job_age_s,
            slurmd_timeout_s=self.slurmd_timeout_s,
            message_timeout_s=message_timeout_s,
            memory_mb=node_memory_mb(),
            private_data=self.private_data,
            extra_conf=self.extra_conf,
        )

    def _loaded(self) -> bool:
        """Take over the layout that another process wrote; False if there is none for this
        version."""
        if self._layout is None:
            try:
                record = json.loads((self.home / "layout.json").read_text())
                plugins = library_folder(self._prefix) / "slurm-wlm" if self._prefix else None
                if record["version"] == self.version:
                    self._layout = slurm_conf.Layout(
                        self.home,
                        record["port"],
                        record["host"],
                        record["user"],
                        record["nodes"],
                        plugins,
                    )
            except (OSError, ValueError, KeyError):
                return False
        return self._layout is not None

    def _start_munged(self) -> None:
        folder = self.home / "munge"
        key = folder / "key"
        key.touch(mode=0o600)
        key.write_bytes(os.urandom(128))
        argv = [
            self._program("munged"),
            "--foreground",
            f"--key-file={key}",
            f"--socket={self.layout.munge_socket}",
            f"--pid-file={self.home}/run/munged.pid",
            f"--log-file={self.home}/log/munged.log",
            f"--seed-file={folder}/seed",
            "--num-threads=2",
            "--force",
        ]  # a home below a folder that others may write, such as /tmp
        self._start("munged", argv)
        self._wait_alive("munged", self.layout.munge_socket.exists, PATIENCE_S)

    def _start_database(self) -> None:
        folder = self.home / "database"
        folder.mkdir()
        account = "mysql" if os.geteuid() == 0 else self.user
        if os.geteuid() == 0:
            shutil.chown(folder, account)
        options = [
            "--no-defaults",
            f"--user={account}",
            f"--datadir={folder}/data",
            "--skip-log-bin",
            "--innodb-flush-log-at-trx-commit=0",
            "--innodb-log-file-size=16M",
        ]
        install = [
            self._program("mariadb-install-db"),
            *options,
            "--skip-test-db",
            f"--auth-root-socket-user={self.user}",
        ]
        self.run(install)
        # 24.11's slurmdbd would make it too, but fails at the first attempt and waits 5 s
        (folder / "init.sql").write_text("CREATE DATABASE slurm_acct_db;\n")
        argv = [
            self._program("mariadbd"),
            *options,
            f"--init-file={folder}/init.sql",
            f"--socket={self.layout.database_socket}",
            "--skip-networking",
            f"--pid-file={folder}/pid",
            "--innodb-doublewrite=0",
            "--innodb-buffer-pool-size=64M",
            "--innodb-lock-wait-timeout=900",
            "--performance-schema=off",
        ]
        self._start("mariadbd", argv)
        self._wait_alive("mariadbd", lambda: accepts(self.layout.database_socket), PATIENCE_S)

    def _start_slurmd(self, node: str) -> None:
        (self.home / "spool" / node).mkdir(exist_ok=True)
        argv = [self._program("slurmd"), "-D", "-f", str(self.layout.conf), "-N", node]
        if self._prefix is not None:
            argv += ["-d", str(self._prefix / "usr/sbin/slurmstepd")]
        self._start(f"slurmd-{node}", argv)

    def _start(self, name: str, argv: Sequence[str], env: Mapping[str, str] = {}) -> None:
        if self.daemons.alive(name):
            raise HarnessError(f"{name} of the private Slurm in {self.home} is already running")
        self.daemons.start(
            name, [*self._before, *argv], {**self.env, **env}, self.home / "log" / f"{name}.out"
        )

    def _wait_alive(self, name: str, ready: Callable[[], bool], timeout_s: float) -> None:
        def answers() -> bool:
            if not self.daemons.alive(name):
                raise HarnessError(f"{name} ended at once: {self._log_tail(name)}")
            return ready()

        wait_until(answers, timeout_s, f"{name} to answer (see {self.home}/log)")

    def _log_tail(self, name: str) -> str:
        text = (self.home / "log" / f"{name}.out").read_text(errors="replace")
        return " | ".join(text.splitlines()[-5:])

    def _program(self, name: str) -> str:
        found = shutil.which(name, path=self.env["PATH"])
        if found is None:
            raise HarnessError(f"{name} not found: run as root: python -m tests.real.install")
        return found

    def _controller_answers(self) -> bool:
        if not listening(self.layout.ctld_port):
            return False  # scontrol would try for seconds
        return self.run(["scontrol", "ping"], check=False).returncode == 0

    def _kill_job_processes(self, node: Optional[str] = None) -> None:
        """Kill what slurmd left behind: it does not take its steps and their processes with it.

        The step daemons first, so that they cannot report the end of the others. A suspended job is
        frozen by its cgroup, and dies of SIGKILL only once it is thawed.
        """
        names = self.nodes if node is None and self._loaded() else [node] if node else []
        for name in names:
            thaw(name)
        for steps_only in (True, False):
            kill_all(lambda: job_processes(self.home, node, steps_only))

    def _remove_cgroups(self) -> None:
        if not self._loaded():
            return
        with contextlib.suppress(HarnessError):
            wait_until(self._cgroups_removed, END_PATIENCE_S, "the cgroups to be empty")

    def _cgroups_removed(self) -> bool:
        """Remove what can be: a process whose last thread is not gone yet keeps its cgroup."""
        tops = [top for node in self.nodes for top in CGROUP_V1.glob(f"*/slurm_{node}")]
        for top in tops:
            for folder, _, _ in os.walk(top, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(folder)
        return not any(top.exists() for top in tops)


def thaw(node: str) -> None:
    """Let the frozen processes of a node's jobs go on."""
    for path in CGROUP_V1.glob(f"freezer/slurm_{node}/**/freezer.state"):
        with contextlib.suppress(OSError):
            path.write_text("THAWED")


def stop_order(name: str) -> int:
    """Return when to stop a daemon: those that others need come last."""
    order = ["slurmctld", "slurmd", "slurmdbd", "mariadbd", "munged"]
    return order.index(re.sub(r"-.*", "", name))
