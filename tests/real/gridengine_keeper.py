"""Hold a private Grid Engine's namespace, start its daemons there, and reap what they leave.

Started by ``tests.real.gridengine_cell`` as ``python -m tests.real.gridengine_keeper HOME``. Once
the namespace is usable ``HOME/start`` is there, a FIFO that takes one daemon per line (JSON: name,
argv, env). Each becomes a child of this process and is recorded as ``HOME/pids/NAME.json``, the
way ``tests.real.processes.Daemons`` does it.

Orphans come to this process too. An execd that finds its shepherds as zombies takes them for
alive, and PID 1 of a container may never reap them.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict

from tests.real.processes import process_start

PR_SET_CHILD_SUBREAPER = 36  # prctl(2)
SIOCSIFFLAGS, IFF_UP = 0x8914, 1  # netdevice(7)
FIFO = "start"


def reap(*_: object) -> None:
    """Take the exit status of every child that has ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def bring_up_loopback() -> None:
    """Give this network namespace its loopback address, and it a host name on it."""
    socket.sethostname("localhost")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        fcntl.ioctl(sock, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP))


def start(home: Path, request: Dict[str, Any]) -> None:
    """Start one daemon with its output in ``log/NAME.out`` and record it."""
    with open(home / "log" / f"{request['name']}.out", "ab") as log:
        child = subprocess.Popen(
            request["argv"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=request["env"],
            cwd="/",
            start_new_session=True,
        )
    child.returncode = 0  # reap() takes its status, not subprocess
    record = {"pid": child.pid, "start": process_start(child.pid), "argv": request["argv"]}
    target = home / "pids" / f"{request['name']}.json"
    target.with_suffix(".new").write_text(json.dumps(record))
    target.with_suffix(".new").rename(target)


def main() -> None:
    """Start what the FIFO asks for until killed."""
    home = Path(sys.argv[1])
    bring_up_loopback()
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGCHLD, reap)
    os.mkfifo(home / FIFO)
    with open(os.open(home / FIFO, os.O_RDWR)) as requests:  # read and write: never at its end
        for line in requests:
            start(home, json.loads(line))


if __name__ == "__main__":
    main()
