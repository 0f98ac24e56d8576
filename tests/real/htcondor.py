"""A private, real HTCondor pool on loopback, without systemd: for the tests and for ``make demo``.

    with PrivatePool(home) as pool:
        job = pool.submit(executable="/bin/false", log=str(log))
        pool.wait_event(log, "JOB_TERMINATED")

Master, collector, negotiator, schedd and startd of Debian trixie's 23.9.6 (tests.real.install
unpacks it), one partitionable slot, all on one port. Several pools run side by side, each in its
own folder.

Who jobs run as: HTCondor refuses jobs of root. Started by root, the pool therefore lives in a user
namespace in which root appears as the user ``daemon``. To the kernel its daemons and jobs are
still root's, so they read and write what root's tests and a Pulsar started by root own (0700
staging folders too), and nobody else's files; clients outside the namespace authenticate as
``daemon@localhost`` without more ado. Started by an ordinary user, daemons and jobs are that
user's.

Command line: ``python -m tests.real.htcondor up --home DIR`` prints what to export,
``down --home DIR`` ends it.
"""

from __future__ import annotations

import argparse
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
import time
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from tests.ports import free_port_block
from tests.real import htcondor_conf
from tests.real.htcondor_install import htcondor_prefix
from tests.real.processes import (
    END_PATIENCE_S,
    PATIENCE_S,
    Daemons,
    HarnessError,
    kill_all,
    kill_and_wait,
    process_start,
    wait_until,
)

MARKER = ".private-htcondor"
NAMESPACE_USER = "daemon"
COMMAND_TIMEOUT_S = 180
MASTER = "condor_master"
STAMP = "PRIVATE_POOL_STAMP"  # a setting of ours, which tells one configuration from another
IDLE, RUNNING, REMOVED, COMPLETED, HELD = 1, 2, 3, 4, 5
JobId = Union[int, str]


def why_missing() -> Optional[str]:
    """Return why a private pool cannot be started here and what to do, or None if it can."""
    if htcondor_prefix() is None:
        return "HTCondor is not unpacked: run python -m tests.real.install htcondor"
    if os.geteuid() == 0:
        tried = subprocess.run([*namespace(), "true"], capture_output=True, text=True, timeout=60)
        if tried.returncode != 0:
            return f"no user namespaces for root here ({tried.stderr.strip()}): run as another user"
    return None


def namespace() -> List[str]:
    """Return the argv to put before a daemon or tool: as root, to appear as another user."""
    if os.geteuid() != 0:
        return []
    entry = pwd.getpwnam(NAMESPACE_USER)
    return ["unshare", "--user", f"--map-user={entry.pw_uid}", f"--map-group={entry.pw_gid}"]


class PrivatePool:
    """One private pool in the folder `home`.

    Args:
        home: its folder; made, and emptied by ``start()``. Refused if it holds anything else. At
            most 60 characters (it holds sockets).
        extra_config: further lines of condor_config, e.g. from the functions of htcondor_conf.
        cpus: of the slot. Jobs ask for one each, so this many run at a time.
    """

    def __init__(self, home: Union[str, Path], extra_config: str = "", cpus: int = 16) -> None:
        self.home = Path(home).resolve()
        self.extra_config = extra_config
        self.cpus = cpus
        self.daemons = Daemons(self.home / "pids")
        self._port: Optional[int] = None

    # ---- life ----------------------------------------------------------------------------------

    def __enter__(self) -> "PrivatePool":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start the pool afresh and return once it takes and matches jobs."""
        self._claim_home()
        self.stop()
        self._empty_home()
        self._port = free_port_block(1)  # none that a client may be given: it must be free again
        (self.home / "port").write_text(f"{self._port}\n")
        self.configure()
        atexit.register(self.stop)
        try:
            self._start_master()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End every process of this pool, jobs too; its files stay. Fine if it is not running."""
        if self.daemons.alive(MASTER):
            self._signal_master(signal.SIGQUIT, 10)  # fast: jobs are evicted
        self.daemons.kill(MASTER)
        kill_all(lambda: pool_processes(self.home))
        atexit.unregister(self.stop)

    def restart(self, crash: bool = False) -> None:
        """End the whole pool and start it again on the same port with its queue.

        Args:
            crash: with SIGKILL (running jobs are lost with their startd), else a fast shutdown.
        """
        self.down(crash)
        self.up()

    def down(self, crash: bool = False) -> None:
        """End master and daemons, keep queue and history; ``up`` goes on with them."""
        if not crash:
            self._signal_master(signal.SIGQUIT, END_PATIENCE_S)
        self.daemons.kill(MASTER)
        kill_all(lambda: pool_processes(self.home))

    def up(self) -> None:
        """Start the daemons again after ``down``."""
        for stale in (self.home / "log").glob(".*_address"):
            stale.unlink()
        self._start_master()

    def running(self) -> bool:
        """Tell whether the pool is up and takes jobs."""
        return self.daemons.alive(MASTER) and self._ready()

    def configure(self, extra_config: Optional[str] = None) -> None:
        """Write the configuration (with other extra lines if given); return when a running pool
        has taken it."""
        if extra_config is not None:
            self.extra_config = extra_config
        stamp = str(time.time_ns())
        self._write_configuration(stamp)
        if self.daemons.alive(MASTER):
            self.run(["condor_reconfig"])  # the master, and it its daemons; asks no collector
            taken = "all daemons to take the configuration"
            wait_until(lambda: self._has_taken(stamp), PATIENCE_S, taken)

    @contextlib.contextmanager
    def configured(self, more: str) -> Iterator[None]:
        """Run the pool with more lines of configuration for the time of a ``with`` block."""
        before = self.extra_config
        try:
            self.configure(before + more)
            yield
        finally:
            self.configure(before)

    @property
    def config_file(self) -> Path:
        """The file for CONDOR_CONFIG."""
        return self.home / "condor_config"

    @property
    def port(self) -> int:
        """The port of everything; raises HarnessError before the first ``start()``."""
        if self._port is None:
            try:
                self._port = int((self.home / "port").read_text())
            except (OSError, ValueError) as error:
                raise HarnessError(f"the pool in {self.home} has not been started") from error
        return self._port

    @property
    def user(self) -> str:
        """The Owner of the jobs."""
        return NAMESPACE_USER if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name

    @property
    def env(self) -> Dict[str, str]:
        """The environment for users of this pool: CONDOR_CONFIG and nothing else of condor's."""
        env = {
            name: value
            for name, value in os.environ.items()
            if not name.upper().startswith(("_CONDOR_", "CONDOR_"))
        }
        env["CONDOR_CONFIG"] = str(self.config_file)
        return env

    def run(
        self, argv: Sequence[str], check: bool = True, timeout_s: float = COMMAND_TIMEOUT_S
    ) -> "subprocess.CompletedProcess[str]":
        """Run one of condor's command-line tools; with `check` a failure raises HarnessError."""
        prefix = htcondor_prefix()
        if prefix is None:
            raise HarnessError(str(why_missing()))
        program = shutil.which(argv[0], path=f"{prefix}/usr/bin:{prefix}/usr/sbin")
        if program is None:
            raise HarnessError(f"{argv[0]} is not among the programs in {prefix}")
        done = subprocess.run(
            [*namespace(), program, *argv[1:]],
            env=self.env,
            stdin=subprocess.DEVNULL,
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

    # ---- jobs ----------------------------------------------------------------------------------

    def client(self) -> Any:
        """Return the htcondor2 bindings of this process, set to this pool.

        Raises:
            HarnessError: what is importable as htcondor2 is not the wheel.
        """
        os.environ["CONDOR_CONFIG"] = str(self.config_file)
        try:
            import htcondor2
        except ImportError as error:
            raise HarnessError("the Python package htcondor (25 or later) is missing") from error
        if hasattr(htcondor2, "SIMULATED"):  # some test of this process uses the simulated pool
            htcondor2 = htcondor2.WHEEL
        if htcondor2 is None:
            raise HarnessError("the Python package htcondor (25 or later) is missing")
        htcondor2.reload_config()
        return htcondor2

    def schedd(self) -> Any:
        """Return a Schedd located just now: a kept one is stale when the schedd has restarted."""
        htcondor2 = self.client()
        return htcondor2.Schedd(htcondor2.Collector().locate(htcondor2.DaemonType.Schedd))

    def submit(self, spool: bool = False, **commands: Union[str, int, float]) -> int:
        """Submit a job of these submit commands; return its cluster. Small requests are added."""
        small = {"request_memory": "64", "request_disk": "1024", "request_cpus": "1"}
        transfer = {"should_transfer_files": "NO"}
        submit = self.client().Submit({**small, **transfer, **commands})
        return int(self.schedd().submit(submit, spool=spool).cluster())

    def ad(self, cluster: JobId) -> Optional[Mapping[str, Any]]:
        """Return the job's ad from the queue, or else from the history; None if neither has it."""
        schedd = self.schedd()
        constraint = f"ClusterId == {cluster}"
        found = schedd.query(constraint) or schedd.history(constraint, match=1)
        return dict(found[0]) if found else None

    def _ad_if_told(self, cluster: JobId) -> Mapping[str, Any]:
        """Return ``ad``, or {}, also where the schedd gave no answer: for who asks again."""
        try:
            return self.ad(cluster) or {}
        except self.client().HTCondorException:
            return {}

    def wait_status(
        self, cluster: JobId, status: int, timeout_s: float = PATIENCE_S
    ) -> Mapping[str, Any]:
        """Wait until the job's JobStatus is `status` and return its ad."""
        seen: List[Mapping[str, Any]] = []

        def reached() -> bool:
            seen.append(self._ad_if_told(cluster))
            return seen[-1].get("JobStatus") == status

        wait_until(reached, timeout_s, f"job {cluster} to have JobStatus {status}", interval_s=0.2)
        return seen[-1]

    def wait_memory(
        self, cluster: JobId, megabytes: int, run: int = 1, timeout_s: float = PATIENCE_S
    ) -> None:
        """Wait until a job's ad tells that it has used so much memory, and was measured for some
        seconds of this run (memory is the most of all runs)."""

        def measured() -> bool:
            ad = self._ad_if_told(cluster)
            elapsed = ad.get("ServerTime", 0) - ad.get("JobCurrentStartExecutingDate", 0)
            return (
                ad.get("NumJobStarts") == run
                and 3 <= ad.get("StatsLifetimeStarter", 0) <= elapsed + 1
                and ad.get("ResidentSetSize_RAW", 0) >= megabytes * 1024
            )

        wait_until(measured, timeout_s, f"{megabytes} MB measured of job {cluster}", interval_s=0.2)

    def events(self, log: Union[str, Path]) -> List[Any]:
        """Return all events of a job's log so far; [] while it is not there."""
        htcondor2 = self.client()
        if not Path(log).is_file():
            return []
        reader = htcondor2.JobEventLog(str(log))
        found = list(reader.events(0))
        reader.close()
        return found

    def wait_event(self, log: Union[str, Path], name: str, timeout_s: float = PATIENCE_S) -> Any:
        """Wait until the log holds an event of this type and return the (last) one."""
        found: List[Any] = []

        def there() -> bool:
            found[:] = [event for event in self.events(log) if event.type.name == name]
            return bool(found)

        wait_until(there, timeout_s, f"{name} in {log}", interval_s=0.2)
        return found[-1]

    def remove_all(self, timeout_s: float = PATIENCE_S) -> None:
        """Remove every job and wait until the queue is empty."""
        self.run(["condor_rm", "-all"], check=False)
        self.run(["condor_rm", "-forcex", "-all"], check=False)
        wait_until(lambda: self.schedd().query() == [], timeout_s, "the queue to be empty")

    # ---- accidents -----------------------------------------------------------------------------

    def kill(self, program: str, argument: str = "", number: int = signal.SIGKILL) -> None:
        """Send a signal to the pool's processes of that name, e.g. ``condor_starter``.

        Args:
            argument: only those with this word among their arguments, e.g. ``61.0`` for a shadow.

        Raises:
            HarnessError: there is none.
        """
        hit = [pid for pid in self.pids(program, argument) if send(pid, number)]
        if not hit:
            raise HarnessError(f"no {program} {argument} runs in the pool of {self.home}")

    def pids(self, program: str, argument: str = "") -> List[int]:
        """Return the pids of the pool's processes of that name (and with that argument)."""
        found = []
        for pid, _ in pool_processes(self.home):
            with contextlib.suppress(OSError):
                line = Path(f"/proc/{pid}/cmdline").read_bytes()
                argv = line.decode(errors="replace").split("\0")
                if Path(argv[0]).name == program and (not argument or argument in argv):
                    found.append(pid)
        return found

    def kill_schedd(self, timeout_s: float = PATIENCE_S) -> None:
        """Kill the schedd as a crash would, and wait until the master's new one answers."""
        before = self.pids("condor_schedd")
        self.kill("condor_schedd")
        wait_until(
            lambda: bool(set(self.pids("condor_schedd")) - set(before)) and self._ready(),
            timeout_s,
            "a new schedd",
            interval_s=0.2,
        )

    # ---- inside --------------------------------------------------------------------------------

    def _claim_home(self) -> None:
        if len(str(self.home)) > 60:
            raise HarnessError(f"{self.home} is too long for its sockets: at most 60 characters")
        self.home.mkdir(parents=True, exist_ok=True)
        if any(self.home.iterdir()) and not (self.home / MARKER).exists():
            raise HarnessError(
                f"{self.home} holds files that are not a private HTCondor's: give another home"
            )
        (self.home / MARKER).touch()

    def _empty_home(self) -> None:
        for path in self.home.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
        for name in (*htcondor_conf.FOLDERS, "work"):
            (self.home / name).mkdir()

    def _start_master(self) -> None:
        prefix = htcondor_prefix()
        env = {
            "CONDOR_CONFIG": str(self.config_file),
            "HOME": str(self.home),
            "PATH": "/usr/local/bin:/usr/bin:/bin",
        }
        argv = [*namespace(), f"{prefix}/usr/sbin/{MASTER}", "-f"]
        self.daemons.start(MASTER, argv, env, self.home / "log/master.out")

        def answers() -> bool:
            if not self.daemons.alive(MASTER):
                raise HarnessError(f"{MASTER} ended at once: {self._log_tail()}")
            return self._ready()

        wait_until(answers, PATIENCE_S, f"the pool to take jobs (see {self.home}/log)", 0.2)

    def _ready(self) -> bool:
        if not (self.home / "log/.schedd_address").exists():
            return False
        # The collector may still show the ad of a schedd that has gone: ask the schedd itself.
        return (
            bool(self._answer("condor_status", "-af", "State"))
            and bool(self._answer("condor_status", "-schedd", "-af", "Name"))
            and self._answer("condor_q", "-af", "ClusterId") is not None
        )

    def _answer(self, *argv: str) -> Optional[List[str]]:
        """Return the words that a question to a daemon brings, or None if it does not answer."""
        try:
            done = self.run(argv, check=False, timeout_s=END_PATIENCE_S)
        except subprocess.TimeoutExpired:
            return None
        return done.stdout.split() if done.returncode == 0 else None

    def _write_configuration(self, stamp: str) -> None:
        prefix = htcondor_prefix()
        if prefix is None:
            raise HarnessError(str(why_missing()))
        text = htcondor_conf.condor_config(
            home=self.home,
            prefix=prefix,
            port=self.port,
            user=self.user,
            cpus=self.cpus,
            memory_mb=8192,
            extra_config=f"{self.extra_config}\n{STAMP} = {stamp}",
        )
        # A daemon that reads an empty or half a file, while one is written over the other, takes it
        # for the whole configuration: shared_port and negotiator then end with status 44.
        written = self.config_file.with_suffix(".new")
        written.write_text(text)
        written.replace(self.config_file)

    def _has_taken(self, stamp: str) -> bool:
        """Tell whether each daemon works with the configuration of this stamp: it reads the file
        some time after condor_reconfig has returned."""
        return all(
            self._answer("condor_config_val", f"-{daemon}", STAMP) == [stamp]
            for daemon in ("master", "collector", "negotiator", "schedd", "startd")
        )

    def _signal_master(self, number: int, patience_s: float) -> None:
        pid = self.daemons.pid(MASTER)
        start = process_start(pid) if pid is not None else None
        if pid is not None and start is not None:
            kill_and_wait(pid, start, [(number, patience_s)])

    def _log_tail(self) -> str:
        lines: List[str] = []
        for name in ("master.out", "MasterLog"):
            with contextlib.suppress(OSError):
                lines += (self.home / "log" / name).read_text(errors="replace").splitlines()[-5:]
        return " | ".join(lines)


def send(pid: int, number: int) -> bool:
    """Send a signal; False if the process is gone."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def pool_processes(home: Path) -> Iterator[Tuple[int, int]]:
    """Yield (pid, start time) of the daemons and job processes of the pool in `home`.

    A daemon is known by the configuration in its environment, a job by its scratch folder there.
    """
    ours = (f"CONDOR_CONFIG={home}/condor_config", f"_CONDOR_SCRATCH_DIR={home}/execute/")
    wanted = tuple(text.encode() for text in ours)
    for folder in Path("/proc").glob("[0-9]*"):
        pid = int(folder.name)
        start = process_start(pid)
        if start is None or pid == os.getpid():
            continue
        with contextlib.suppress(OSError):
            environ = (folder / "environ").read_bytes().split(b"\0")
            if any(entry.startswith(wanted[1]) for entry in environ):
                yield pid, start
            elif wanted[0] in environ and "condor_" in os.readlink(folder / "exe"):
                yield pid, start


# ---- command line -----------------------------------------------------------------------------


def up(options: argparse.Namespace) -> None:
    """Start a pool that outlives this process, or find it running; print what to export."""
    pool = PrivatePool(options.home)
    if not pool.running():
        missing = why_missing()
        if missing:
            raise HarnessError(missing)
        pool.start()
        atexit.unregister(pool.stop)
    exported = {"CONDOR_CONFIG": str(pool.config_file)}
    if options.format == "json":
        print(json.dumps({**exported, "home": str(pool.home), "user": pool.user}))
    else:
        for name, value in exported.items():
            print(f"export {name}={shlex.quote(value)}")


def down(options: argparse.Namespace) -> None:
    """End the pool in the given folder."""
    home = Path(options.home).resolve()
    if (home / MARKER).exists():
        PrivatePool(home).stop()


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Run the command line; return 0, or 2 if it could not be done."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.real.htcondor",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name, function in (("up", up), ("down", down)):
        command = commands.add_parser(name, help=function.__doc__)
        command.add_argument("--home", required=True, help="the pool's own folder")
        command.set_defaults(function=function)
        if name == "up":
            command.add_argument("--format", choices=("shell", "json"), default="shell")
    options = parser.parse_args(arguments)
    try:
        options.function(options)
    except (HarnessError, OSError, subprocess.SubprocessError) as error:
        print(f"tests.real.htcondor: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
