"""A private, real Slurm on loopback, without systemd: for the tests and for ``make demo``.

    with PrivateSlurm(home) as slurm:
        job = slurm.submit("sleep 60")
        slurm.expire(job)
        slurm.wait_state(job, "TIMEOUT")

Several clusters run side by side, each with its own folder, ports, munged and MariaDB. As root,
jobs may be limited by cgroups (v1) and run as any user; as an ordinary user it works for that
user's jobs alone. Every process is ended by its own pid; what a crashed run left in the same
folder is ended by the next ``start()``.

Command line: ``python -m tests.real.slurm up --home DIR`` prints what to export,
``down --home DIR`` ends it.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import json
import os
import pwd
import random
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from tests.real import slurm_conf
from tests.real.install import library_folder, slurm24_prefix
from tests.real.processes import (
    Daemons,
    HarnessError,
    kill_and_wait,
    process_start,
    wait_until,
)

VERSIONS = ("22.05", "24.11")
MARKER = ".private-slurm"
SYSTEM_PATH = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"]
CGROUP_V1 = Path("/sys/fs/cgroup")
COMMAND_TIMEOUT_S = 60
ENDED = (
    "BOOT_FAIL",
    "CANCELLED",
    "COMPLETED",
    "DEADLINE",
    "FAILED",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "PREEMPTED",
    "TIMEOUT",
)
JobId = Union[int, str]


def programs_path(version: str) -> Tuple[List[str], Optional[Path]]:
    """Return (folders for the front of PATH, prefix) of a Slurm; the prefix is None for the
    system's.

    Raises:
        HarnessError: Slurm 24.11 is not unpacked, or the version is none of ours.
    """
    if version not in VERSIONS:
        raise HarnessError(f"no such Slurm version: {version!r} (known: {', '.join(VERSIONS)})")
    if version == "22.05":
        return [], None
    prefix = slurm24_prefix()
    if prefix is None:
        raise HarnessError("Slurm 24.11 is not unpacked: run python -m tests.real.install slurm24")
    return [str(prefix / "usr/bin"), str(prefix / "usr/sbin")], prefix


def why_missing(
    version: str = "22.05", accounting: bool = True, auth: str = "munge"
) -> Optional[str]:
    """Return why a private Slurm cannot be started here and what to do, or None if it can."""
    try:
        front, _ = programs_path(version)
        search = os.pathsep.join([*front, *SYSTEM_PATH])
    except HarnessError as error:
        return str(error)
    needed = ["slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "scancel"]
    needed += ["munged"] if auth == "munge" else []
    needed += ["slurmdbd", "sacct", "mariadbd", "mariadb-install-db"] if accounting else []
    lacking = [name for name in needed if shutil.which(name, path=search) is None]
    if lacking:
        part = "slurm" if version == "22.05" else "slurm24"
        return f"{', '.join(lacking)} not found: run as root: python -m tests.real.install {part}"
    slurmctld = shutil.which("slurmctld", path=search)
    shown = subprocess.run([str(slurmctld), "-V"], capture_output=True, text=True, timeout=60)
    if version not in shown.stdout:
        return f"{slurmctld} is {shown.stdout.strip() or shown.stderr.strip()!r}, not {version}"
    return None


def cgroup_usable() -> bool:
    """Tell whether memory limits by cgroup v1 can be set here (root, and the kernel has them)."""
    probe = CGROUP_V1 / "memory" / f"private_slurm_probe_{os.getpid()}"
    if os.geteuid() != 0 or not (CGROUP_V1 / "freezer").is_dir():
        return False
    try:
        probe.mkdir()
        probe.rmdir()
    except OSError:
        return False
    return True


def free_port_block(size: int) -> int:
    """Return the first of `size` neighbouring loopback ports below the ephemeral range, all
    free."""
    for _ in range(200):
        first = random.randrange(21000, 32000 - size)
        try:
            with contextlib.ExitStack() as held:
                for port in range(first, first + size):
                    sock = held.enter_context(socket.socket())
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    sock.bind(("127.0.0.1", port))
        except OSError:
            continue
        return first
    raise HarnessError(f"found no {size} free neighbouring ports on loopback")


def listening(port: int) -> bool:
    """Tell whether something accepts connections on a loopback port."""
    with socket.socket() as sock:
        sock.settimeout(1)
        return sock.connect_ex(("127.0.0.1", port)) == 0


def host_name() -> Tuple[str, List[str]]:
    """Return (name for the daemons, argv to put before theirs).

    They bind to the address of the host's name. Where that is not a loopback address they get a
    host
    name of their own, which needs root.
    """
    name = socket.gethostname().split(".")[0]
    with contextlib.suppress(OSError):
        if socket.gethostbyname(name).startswith("127."):
            return name, []
    if (
        os.geteuid() == 0
        and subprocess.run(["unshare", "--uts", "true"], timeout=20).returncode == 0
    ):
        return "localhost", ["unshare", "--uts", "sh", "-c", 'hostname localhost; exec "$0" "$@"']
    raise HarnessError(
        f"the host name {name} is not on loopback: add '127.0.0.1 {name}' to /etc/hosts"
    )


class PrivateSlurm:
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

    def __enter__(self) -> "PrivateSlurm":
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
        options: Dict[str, object] = {"cwd": str(self.home / "work")}
        if user is not None and user != self.user:
            entry = pwd.getpwnam(user)
            options = {
                "cwd": "/tmp",
                "user": entry.pw_uid,
                "group": entry.pw_gid,
                "extra_groups": [],
            }
        env = self.env
        program = shutil.which(argv[0], path=env["PATH"]) or argv[0]
        done = subprocess.run(
            [program, *argv[1:]],
            env=env,
            input=stdin,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            **options,
        )  # type: ignore[call-overload]
        if check and done.returncode != 0:
            raise HarnessError(
                f"{shlex.join(argv)} ended with {done.returncode}: "
                f"{(done.stderr or done.stdout).strip()[:2000]}"
            )
        return done

    # ---- jobs --------------------------------------------------------------------------------

    def submit(self, script: str, *options: str, user: Optional[str] = None) -> str:
        """Submit a shell script (its text without the first line) and return the job's id."""
        argv = ["sbatch", "--parsable", *options]
        done = self.run(argv, user=user, stdin=f"#!/bin/sh\n{script}\n")
        return done.stdout.strip().split(";")[0]

    def state(self, job_id: JobId) -> Optional[str]:
        """Return the controller's word for the job's state, or None if it does not know the job."""
        shown = self.run(
            ["squeue", "--noheader", "--states=all", f"--jobs={job_id}", "--format=%T"],
            check=False,
        )
        if shown.returncode != 0 and "Invalid job id" not in shown.stderr:
            raise HarnessError(f"squeue on job {job_id}: {shown.stderr.strip()}")
        return shown.stdout.split("\n")[0].strip() or None

    def wait_state(self, job_id: JobId, *states: str, timeout_s: float = 60) -> str:
        """Wait until the job is in one of `states` (default: any end) and return it.

        Raises:
            HarnessError: it is not by then, or it ended in another one.
        """
        wanted = states or ENDED
        seen: List[Optional[str]] = []

        def reached() -> bool:
            seen.append(self.state(job_id))
            if seen[-1] in ENDED and seen[-1] not in wanted:
                raise HarnessError(f"job {job_id} ended {seen[-1]}, not {' or '.join(wanted)}")
            return seen[-1] in wanted

        wait_until(reached, timeout_s, f"job {job_id} to be {' or '.join(wanted)}", interval_s=0.1)
        return str(seen[-1])

    def accounted(self, job_id: JobId) -> str:
        """Return accounting's State of the job itself ("CANCELLED by 0"), or "" if it has no
        row."""
        shown = self.run(
            [
                "sacct",
                "--noheader",
                "--parsable2",
                "--allocations",
                f"--jobs={job_id}",
                "--format=State",
            ]
        )
        return shown.stdout.split("\n")[0]

    def wait_accounted(self, job_id: JobId, state: str, timeout_s: float = 30) -> None:
        """Wait until accounting's State of the job begins with `state`."""
        wait_until(
            lambda: self.accounted(job_id).startswith(state),
            timeout_s,
            f"sacct to call job {job_id} {state}",
            interval_s=0.2,
        )

    def expire(self, job_id: JobId) -> None:
        """Let a running job reach its walltime in 2 s; Slurm notices within about 30 s."""
        end = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(time.time() + 2))
        self.run(["scontrol", "update", f"jobid={job_id}", f"EndTime={end}"])

    def start_now(self, job_id: JobId) -> None:
        """Let a requeued job run at once; Slurm would keep it for two minutes
        (Reason=BeginTime)."""
        self.run(["scontrol", "update", f"jobid={job_id}", "StartTime=now"])

    def wait_forgotten(self, job_id: JobId, timeout_s: float = 60) -> None:
        """Wait until the controller does not know the job any more (for clusters with
        min_job_age=2)."""
        wait_until(
            lambda: self.state(job_id) is None,
            timeout_s,
            f"the controller to forget job {job_id}",
            interval_s=0.5,
        )

    def cancel_all(self, timeout_s: float = 30) -> None:
        """Cancel every job and wait until all nodes are idle again."""
        listed = self.run(["squeue", "--noheader", "--format=%A"]).stdout.split()
        if listed:
            self.run(["scancel", *sorted(set(listed))], check=False)
        self.wait_idle(timeout_s)

    # ---- nodes -------------------------------------------------------------------------------

    def wait_idle(self, timeout_s: float = 30) -> None:
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

    def node_down(self, node: Optional[str] = None) -> None:
        """Declare a node down, as an admin does: its jobs end NODE_FAIL (or are requeued) at once.

        Their processes are killed without a word to the controller, as if the power had failed. If
        they lived on, the next start of a requeued job there would meet its own former run, and
        Slurm would drain the node ("Duplicate jobid").
        """
        name = node or self.nodes[0]
        self.run(["scontrol", "update", f"nodename={name}", "state=DOWN", "reason=test"])
        self._kill_job_processes(name)

    def node_up(self, node: Optional[str] = None, timeout_s: float = 60) -> None:
        """Bring a node that is down, or whose slurmd was killed, back and wait until it takes
        jobs."""
        name = node or self.nodes[0]
        if not self.daemons.alive(f"slurmd-{name}"):
            self._start_slurmd(name)

        def resumed() -> bool:
            state = self.run(
                ["sinfo", "--noheader", f"--nodes={name}", "--format=%T"]
            ).stdout.split()[:1]
            if state and state[0].startswith(("down", "drain")):
                self.run(["scontrol", "update", f"nodename={name}", "state=RESUME"], check=False)
            return bool(state) and state[0] in ("idle", "mixed", "allocated")

        wait_until(resumed, timeout_s, f"node {name} to come back", interval_s=0.3)

    def crash_node(self, node: Optional[str] = None) -> None:
        """Kill a node's slurmd with all its jobs' processes; it counts as failed after
        slurmd_timeout."""
        name = node or self.nodes[0]
        self.daemons.kill(f"slurmd-{name}")
        self._kill_job_processes(name)

    # ---- the controller and accounting -------------------------------------------------------

    def controller_stop(self) -> None:
        """End slurmctld; it saves its state first."""
        self.daemons.stop("slurmctld", patience_s=20)

    def controller_start(self, clean: bool = False, timeout_s: float = 30) -> None:
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

    def slurmdbd_start(self, timeout_s: float = 30) -> None:
        """Start slurmdbd and wait until it accepts connections."""
        env = {"MYSQL_UNIX_PORT": str(self.layout.database_socket)}
        self._start("slurmdbd", [self._program("slurmdbd"), "-D"], env)
        self._wait_alive("slurmdbd", lambda: listening(self.layout.dbd_port), timeout_s)

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
        layout.conf.write_text(
            slurm_conf.slurm_conf(
                layout,
                auth=self.auth,
                accounting=self.accounting,
                enforce=self.enforce_limits,
                cgroup=self.cgroup,
                min_job_age_s=self.min_job_age_s,
                slurmd_timeout_s=self.slurmd_timeout_s,
                message_timeout_s=self.message_timeout_s,
                memory_mb=node_memory_mb(),
                private_data=self.private_data,
                extra_conf=self.extra_conf,
            )
        )
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
        self._wait_alive("munged", self.layout.munge_socket.exists, 20)

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
        self.run(install, timeout_s=120)
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
        self._wait_alive("mariadbd", lambda: accepts(self.layout.database_socket), 60)

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

    def _wait_alive(self, name: str, ready: "object", timeout_s: float) -> None:
        def answers() -> bool:
            if not self.daemons.alive(name):
                raise HarnessError(f"{name} ended at once: {self._log_tail(name)}")
            return bool(ready())  # type: ignore[operator]

        wait_until(answers, timeout_s, f"{name} to answer (see {self.home}/log)")

    def _log_tail(self, name: str) -> str:
        text = (self.home / "log" / f"{name}.out").read_text(errors="replace")
        return " | ".join(text.splitlines()[-5:])

    def _program(self, name: str) -> str:
        found = shutil.which(name, path=self.env["PATH"])
        if found is None:
            raise HarnessError(
                f"{name} not found: {why_missing(self.version, self.accounting, self.auth)}"
            )
        return found

    def _controller_answers(self) -> bool:
        if not listening(self.layout.ctld_port):
            return False  # scontrol would try for seconds
        return self.run(["scontrol", "ping"], check=False).returncode == 0

    def _kill_job_processes(self, node: Optional[str] = None) -> None:
        """Kill what slurmd left behind: it does not take its steps and their processes with it.

        The step daemons first, so that they cannot report the end of the others.
        """
        for steps_only in (True, False):
            for pid, start in list(job_processes(self.home, node, steps_only)):
                kill_and_wait(pid, start, [(signal.SIGKILL, 5)])

    def _remove_cgroups(self) -> None:
        if not self._loaded():
            return
        for node in self.nodes:
            for top in CGROUP_V1.glob(f"*/slurm_{node}"):
                for folder, _, _ in os.walk(top, topdown=False):
                    with contextlib.suppress(OSError):
                        os.rmdir(folder)


def stop_order(name: str) -> int:
    """Return when to stop a daemon: those that others need come last."""
    order = ["slurmctld", "slurmd", "slurmdbd", "mariadbd", "munged"]
    return order.index(re.sub(r"-.*", "", name))


def node_memory_mb() -> int:
    """Return what a virtual node claims to have: at most 4 GB, and half of the machine's memory."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(4096, total // 2 // 2**20)


def accepts(path: Path) -> bool:
    """Tell whether something accepts connections on a Unix socket."""
    with socket.socket(socket.AF_UNIX) as sock:
        return sock.connect_ex(str(path)) == 0


def job_processes(
    home: Path, node: Optional[str] = None, steps_only: bool = False
) -> Iterator[Tuple[int, int]]:
    """Yield (pid, start time) of the step daemons and job processes of the cluster in `home`.

    A job's process is known by its environment; a slurmstepd, which may have overwritten its own,
    by an open file of the cluster. With `node`, only those of that node; with `steps_only`, only
    the step daemons.
    """
    for folder in Path("/proc").glob("[0-9]*"):
        pid = int(folder.name)
        start = process_start(pid)
        if start is None or pid == os.getpid():
            continue
        with contextlib.suppress(OSError):
            is_step = is_step_daemon(folder, home, node)
            if is_step or (not steps_only and is_job_process(folder, home, node)):
                yield pid, start


def is_job_process(process: Path, home: Path, node: Optional[str]) -> bool:
    """Tell whether a process belongs to a job of the cluster in `home` (and of `node`)."""
    environ = (process / "environ").read_bytes().split(b"\0")
    if f"SLURM_CONF={home}/etc/slurm.conf".encode() not in environ:
        return False
    if node is not None and f"SLURMD_NODENAME={node}".encode() not in environ:
        return False
    return any(entry.startswith(b"SLURM_JOB_ID=") for entry in environ)


def is_step_daemon(process: Path, home: Path, node: Optional[str]) -> bool:
    """Tell whether a process is a slurmstepd of the cluster in `home` (and of `node`)."""
    if not os.readlink(process / "exe").rpartition("/")[2].startswith("slurmstepd"):
        return False
    opened = [os.readlink(path) for path in (process / "fd").iterdir()]
    wanted = (f"{home}/log/slurmd-{node}.log", f"{home}/spool/{node}/") if node else (f"{home}/",)
    return any(path.startswith(wanted) for path in opened)


# ---- command line ----------------------------------------------------------------------------


def up(options: argparse.Namespace) -> None:
    """Start a cluster that outlives this process, or find it running; print what to export."""
    slurm = PrivateSlurm(
        options.home,
        version=options.version,
        accounting=options.accounting,
        min_job_age=options.min_job_age,
    )
    if not slurm.running():
        missing = why_missing(options.version, options.accounting)
        if missing:
            raise HarnessError(missing)
        slurm.start()
        atexit.unregister(slurm.stop)
    exported = {name: slurm.env[name] for name in ("SLURM_CONF", "PATH")}
    if options.format == "json":
        facts = {
            "version": slurm.version,
            "home": str(slurm.home),
            "nodes": slurm.nodes,
            "cgroup": slurm.cgroup,
            "accounting": slurm.accounting,
        }
        print(json.dumps({**exported, **facts}))
    else:
        for name, value in exported.items():
            print(f"export {name}={shlex.quote(value)}")


def down(options: argparse.Namespace) -> None:
    """End the cluster in the given folder."""
    home = Path(options.home).resolve()
    if (home / MARKER).exists():
        PrivateSlurm(home, version=recorded_version(home)).stop()


def recorded_version(home: Path) -> str:
    """Return the version that the cluster in `home` was started with."""
    try:
        return str(json.loads((home / "layout.json").read_text())["version"])
    except (OSError, ValueError, KeyError):
        return VERSIONS[0]


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Run the command line; return 0, or 2 if it could not be done."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.real.slurm",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name, function in (("up", up), ("down", down)):
        command = commands.add_parser(name, help=function.__doc__)
        command.add_argument("--home", required=True, help="the cluster's own folder")
        command.set_defaults(function=function)
        if name == "up":
            command.add_argument("--version", choices=VERSIONS, default=VERSIONS[0])
            command.add_argument("--no-accounting", dest="accounting", action="store_false")
            command.add_argument("--min-job-age", type=int, default=300, metavar="SECONDS")
            command.add_argument("--format", choices=("shell", "json"), default="shell")
    options = parser.parse_args(arguments)
    try:
        options.function(options)
    except (HarnessError, OSError, subprocess.SubprocessError) as error:
        print(f"tests.real.slurm: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
