"""What a private Slurm asks of the machine: programs, ports, host name, cgroups, job processes."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
from pathlib import Path
from typing import Iterator, List, Optional, Tuple

from tests.real.install import slurm24_prefix
from tests.real.processes import HarnessError, process_start

VERSIONS = ("22.05", "24.11")
SYSTEM_PATH = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"]
CGROUP_V1 = Path("/sys/fs/cgroup")


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
        and subprocess.run(["unshare", "--uts", "true"], timeout=60).returncode == 0
    ):
        return "localhost", ["unshare", "--uts", "sh", "-c", 'hostname localhost; exec "$0" "$@"']
    raise HarnessError(
        f"the host name {name} is not on loopback: add '127.0.0.1 {name}' to /etc/hosts"
    )


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
    if not any(entry.startswith(f"SLURM_CONF={home}/etc/".encode()) for entry in environ):
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
