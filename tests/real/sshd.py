"""A private, real sshd on loopback: for what Pulsar's shell plugins do over ssh.

    with PrivateSshd(home, env={"PATH": path_with_qstat}) as sshd:
        app_yml_options = sshd.shell_options("SecureShell")
        sshd.stall_output(after_bytes=100)
        ...                                     # something polls in another thread
        sshd.wait_stalled()
        sshd.cut()

Own port, host key, client key and configuration; the one login is whoever starts it (root or an
ordinary user), with a home folder of its own. Nothing of the system is touched but /run/sshd, the
empty folder that sshd of root insists on and Debian's own service makes.

What an admin's login may do to the output (banner, text from ~/.bashrc, a wrapper around each
command) can be changed while it runs.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pwd
import shlex
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Dict, Iterator, List, Mapping, Optional, Tuple, Union

from tests.ports import free_port_block
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
from tests.real.slurm_machine import SYSTEM_PATH, listening

MARKER = ".private-sshd"
SSHD = "sshd"
HOST = "127.0.0.1"
FOLDERS = ("bin", "commands", "keys", "log", "login")
PRIVILEGE_SEPARATION = Path("/run/sshd")
PLUGINS = ("SecureShell", "ParamikoShell", "RemoteShell", "GlobusSecureShell")


def why_missing() -> Optional[str]:
    """Return why a private sshd cannot be started here and what to do, or None if it can."""
    lacking = [name for name in ("sshd", "ssh", "ssh-keygen") if not program(name)]
    if lacking:
        return f"{', '.join(lacking)} not found: run python -m tests.real.install sshd"
    shell = Path(account().pw_shell).name
    if shell != "bash":
        return f"the login shell of {account().pw_name} is {shell}, not bash"
    return None


def account() -> pwd.struct_passwd:
    """Return the account of the one who can log in: ours."""
    return pwd.getpwuid(os.geteuid())


def program(name: str) -> Optional[str]:
    """Return the path of a program, or None."""
    return shutil.which(name, path=os.pathsep.join(SYSTEM_PATH))


class PrivateSshd:
    """One private sshd in the folder `home`.

    Args:
        home: its folder; made, and emptied by ``start()``. Refused if it holds anything else.
        env: variables for the commands, e.g. PATH and SLURM_CONF; HOME is set.
        extra_config: further lines of sshd_config.
    """

    def __init__(
        self,
        home: Union[str, Path],
        env: Optional[Mapping[str, str]] = None,
        extra_config: str = "",
    ) -> None:
        self.home = Path(home).resolve()
        self.remote_env = dict(env or {})
        self.extra_config = extra_config
        self.daemons = Daemons(self.home / "pids")
        self._port: Optional[int] = None

    # ---- life ----------------------------------------------------------------------------------

    def __enter__(self) -> "PrivateSshd":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start it afresh, with new keys, and return once it listens."""
        self._claim_home()
        self.stop()
        self._empty_home()
        self._port = free_port_block(1)
        self._make_keys()
        self._write_configuration()
        self.plain()
        atexit.register(self.stop)
        self.up()

    def stop(self) -> None:
        """End it, its connections and their commands; its files stay. Fine if it is not
        running."""
        self.down()
        kill_all(self.commands_running)
        atexit.unregister(self.stop)

    def down(self) -> None:
        """Cut all connections and refuse new ones, as a host that is rebooted."""
        self.thaw()
        sessions = self.sessions()
        self.daemons.kill(SSHD)
        for pid, start in sessions:
            kill_and_wait(pid, start, [(signal.SIGKILL, END_PATIENCE_S)])
        kill_all(self.sessions)

    def up(self) -> None:
        """Listen again on the same port after ``down``."""
        if os.geteuid() == 0:
            PRIVILEGE_SEPARATION.mkdir(mode=0o755, exist_ok=True)
        argv = [str(program("sshd")), "-D", "-e", "-f", str(self.home / "sshd_config")]
        env = {"PATH": os.pathsep.join(SYSTEM_PATH), "LANG": "C.UTF-8"}
        self.daemons.start(SSHD, argv, env, self._log)

        def ready() -> bool:
            if not self.daemons.alive(SSHD):
                raise HarnessError(f"sshd ended at once: {self._log.read_text()[-1000:]}")
            return listening(self.port)

        wait_until(ready, PATIENCE_S, f"sshd to listen on port {self.port} (see {self._log})")

    @property
    def port(self) -> int:
        """The port on 127.0.0.1; raises HarnessError before the first ``start()``."""
        if self._port is None:
            raise HarnessError(f"the sshd in {self.home} has not been started")
        return self._port

    # ---- for its clients -----------------------------------------------------------------------

    @property
    def config(self) -> Path:
        """The client's configuration: ``ssh -F``; any host name leads here."""
        return self.home / "ssh_config"

    @property
    def key(self) -> Path:
        """The client's private key."""
        return self.home / "keys/client"

    @property
    def ssh(self) -> Path:
        """An ssh that reads ``config`` and knows the host key, whatever ~/.ssh says."""
        return self.home / "bin/ssh"

    def shell_options(self, plugin: str = "SecureShell", strict: bool = False) -> Dict[str, str]:
        """Return the ``shell_*`` options of a Pulsar manager for one of its shell plugins.

        Args:
            plugin: one of PLUGINS; the last two, which want rsh and gsissh, get our ``ssh``.
            strict: the host key is checked, with our ``ssh`` (which ParamikoShell does not use: it
                knows no hosts but those in ~/.ssh/known_hosts).
        """
        options = {"shell_plugin": plugin, "shell_hostname": HOST}
        options["shell_username"] = account().pw_name
        if strict or plugin in ("RemoteShell", "GlobusSecureShell"):
            options["shell_rsh"] = str(self.ssh)
        if plugin != "RemoteShell":
            options["shell_port"] = str(self.port)
            options["shell_private_key"] = str(self.key)
            options["shell_strict_host_key_checking"] = str(strict).lower()
        return options

    def run(
        self, command: str, timeout_s: float = PATIENCE_S
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command over ssh; its status is 255 where the link failed."""
        return subprocess.run(
            [str(self.ssh), HOST, command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
        )

    # ---- what it does to commands and their output ---------------------------------------------

    def set_banner(self, text: Optional[str]) -> None:
        """Show a text before the login (ssh prints it on stderr); None shows nothing."""
        banner = self.home / "banner"
        banner.unlink(missing_ok=True)
        if text is not None:
            banner.write_text(text)

    def set_bashrc(self, script: str) -> None:
        """Set the ~/.bashrc that the login shell reads before each command."""
        (self.home / "login/.bashrc").write_text(script)

    def set_wrapper(self, script: str) -> None:
        """Set the shell script (without the first line) that runs instead of each command.

        It finds the command in SSH_ORIGINAL_COMMAND. The command has been noted before.
        """
        note = (
            f'note=$(mktemp {self.home}/commands/"$(date +%s.%N)".XXXXXX)\n'
            'printf %s "$SSH_ORIGINAL_COMMAND" > "$note.new" && mv "$note.new" "$note"\n'
            "export SHLVL=1\n"  # sshd's own shell has read ~/.bashrc, a second one is not to
        )
        path = self.home / "bin/command"
        path.with_suffix(".new").write_text(f"#!/bin/sh\n{note}{script}\n")
        path.with_suffix(".new").chmod(0o755)
        path.with_suffix(".new").rename(path)

    def plain(self) -> None:
        """Run commands as they are, without banner or text from the login."""
        self.set_banner(None)
        self.set_bashrc("")
        self.set_wrapper('exec "$SHELL" -c "$SSH_ORIGINAL_COMMAND"')

    def stall_output(self, after_bytes: int) -> None:
        """Let each command's output stop after so many bytes, with the link open, for ``cut``."""
        self._stalled.unlink(missing_ok=True)
        self.set_wrapper(
            f'"$SHELL" -c "$SSH_ORIGINAL_COMMAND" | head -c {after_bytes}\n'
            f": > {self._stalled}\n"
            "exec sleep 600"
        )

    def wait_stalled(self, timeout_s: float = PATIENCE_S) -> None:
        """Wait until a command's output has stopped as ``stall_output`` says."""
        wait_until(self._stalled.exists, timeout_s, "a command whose output stalls")

    # ---- the link ------------------------------------------------------------------------------

    def cut(self) -> None:
        """Kill all live connections (their commands run on); new ones are welcome.

        Raises:
            HarnessError: there is none.
        """
        sessions = self.sessions()
        if not sessions:
            raise HarnessError(f"no connection to the sshd of {self.home} to cut")
        for pid, start in sessions:
            kill_and_wait(pid, start, [(signal.SIGKILL, END_PATIENCE_S)])

    def freeze(self) -> None:
        """Let connections, old and new, hang without an answer until ``thaw``."""
        for pid, _ in self._listener() + self.sessions():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let frozen connections go on."""
        for pid, _ in self._listener() + self.sessions():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def connections(self) -> int:
        """Return how many logins there have been."""
        return self._log.read_text(errors="replace").count("Accepted publickey for ")

    def commands(self) -> List[str]:
        """Return the commands that have been asked for, oldest first."""
        notes = [path for path in (self.home / "commands").iterdir() if path.suffix != ".new"]
        return [path.read_text() for path in sorted(notes) if path.stat().st_size]

    def sessions(self) -> List[Tuple[int, int]]:
        """Return (pid, start time) of the sshd processes that serve connections."""
        listener = self.daemons.pid(SSHD)
        parents = parents_by_pid()
        ours = [pid for pid in parents if listener is not None and descends(pid, listener, parents)]
        ours += [pid for pid in parents if pid != listener and logs_to(pid, self._log)]
        found = {}
        for pid in ours:
            start = process_start(pid)
            if start is not None and (name_of(pid) or "").startswith("sshd"):
                found[pid] = start
        return sorted(found.items())

    def commands_running(self) -> Iterator[Tuple[int, int]]:
        """Yield (pid, start time) of what runs for a connection, living or cut."""
        mark = f"PRIVATE_SSHD={self.home}".encode()
        for pid in parents_by_pid():
            start = process_start(pid)
            with contextlib.suppress(OSError):
                environ = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
                if start is not None and mark in environ:
                    yield pid, start

    # ---- inside --------------------------------------------------------------------------------

    @property
    def _log(self) -> Path:
        return self.home / "log/sshd.log"

    @property
    def _stalled(self) -> Path:
        return self.home / "stalled"

    def _listener(self) -> List[Tuple[int, int]]:
        pid = self.daemons.pid(SSHD)
        start = process_start(pid) if pid is not None else None
        return [(pid, start)] if pid is not None and start is not None else []

    def _claim_home(self) -> None:
        self.home.mkdir(parents=True, exist_ok=True)
        if any(self.home.iterdir()) and not (self.home / MARKER).exists():
            raise HarnessError(
                f"{self.home} holds files that are not a private sshd's: give another home"
            )
        (self.home / MARKER).touch()

    def _empty_home(self) -> None:
        for path in self.home.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            elif path.name != MARKER:
                path.unlink()
        for name in FOLDERS:
            (self.home / name).mkdir()

    def _make_keys(self) -> None:
        for name in ("host", "client"):
            path = self.home / "keys" / name
            subprocess.run(
                [str(program("ssh-keygen")), "-q", "-t", "ed25519", "-N", "", "-f", str(path)],
                stdin=subprocess.DEVNULL,
                check=True,
                timeout=PATIENCE_S,
            )
        keys = self.home / "keys"
        shutil.copy(keys / "client.pub", keys / "authorized_keys")
        host_key = " ".join((keys / "host.pub").read_text().split()[:2])
        (keys / "known_hosts").write_text(f"[{HOST}]:{self.port} {host_key}\n")

    def _write_configuration(self) -> None:
        login = self.home / "login"
        env = {"HOME": str(login), **self.remote_env, "PRIVATE_SSHD": str(self.home)}
        (self.home / "sshd_config").write_text(
            sshd_config(self.home, self.port, env) + self.extra_config
        )
        self.config.write_text(ssh_config(self.home, self.port))
        self.ssh.write_text(f'#!/bin/sh\nexec ssh -F {shlex.quote(str(self.config))} "$@"\n')
        self.ssh.chmod(0o755)


def sshd_config(home: Path, port: int, env: Mapping[str, str]) -> str:
    """Return the server's configuration, sshd_config(5); `env` is for the commands."""
    strange = [name for name, value in env.items() if set(value) & set('"\\\n')]
    if strange:
        raise HarnessError(f"sshd_config cannot hold the values of {', '.join(strange)}")
    # only the first SetEnv counts, so all in one
    variables = " ".join('"%s=%s"' % item for item in env.items())
    return f"""\
Port {port}
ListenAddress {HOST}
HostKey {home}/keys/host
AuthorizedKeysFile {home}/keys/authorized_keys
AllowUsers {account().pw_name}
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
UseDNS no
PidFile none
PrintMotd no
LogLevel VERBOSE
MaxStartups 100
Banner {home}/banner
SetEnv {variables}
ForceCommand {home}/bin/command
"""


def ssh_config(home: Path, port: int) -> str:
    """Return the client's configuration, ssh_config(5)."""
    return f"""\
Host *
HostName {HOST}
Port {port}
User {account().pw_name}
IdentityFile {home}/keys/client
IdentitiesOnly yes
UserKnownHostsFile {home}/keys/known_hosts
GlobalKnownHostsFile /dev/null
StrictHostKeyChecking yes
BatchMode yes
ConnectTimeout {PATIENCE_S}
"""


# ---- processes --------------------------------------------------------------------------------


def parents_by_pid() -> Dict[int, int]:
    """Return the parent of every process."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            stat = (folder / "stat").read_text(errors="replace")
            found[int(folder.name)] = int(stat.rpartition(")")[2].split()[1])
    return found


def descends(pid: int, ancestor: int, parents: Mapping[int, int]) -> bool:
    """Tell whether a process is a child of `ancestor`, or a child's child."""
    while pid in parents:
        pid = parents[pid]
        if pid == ancestor:
            return True
    return False


def name_of(pid: int) -> Optional[str]:
    """Return the short name of a process, or None if it has ended."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()
    return None


def logs_to(pid: int, log: Path) -> bool:
    """Tell whether a process's stderr is that file; False where we may not look."""
    with contextlib.suppress(OSError):
        return os.readlink(f"/proc/{pid}/fd/2") == str(log)
    return False
