"""Ports on loopback for what tests start: no two processes of tests are given the same one.

A port that was only seen to be free may have another owner when its server comes to listen, or
comes back: the server of another test, or the near end of anybody's connection, for which the
kernel takes any port above 32767 (ip_local_port_range). So these lie below, and each belongs to
the process that asked, whether somebody listens or not, until that process ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import socket
import tempfile
from pathlib import Path
from typing import List, Optional, Set

FIRST, BEHIND = 21000, 32000
#: One byte a port, to be locked; where other users' tests run too, each has a file of its own.
FILE = Path(tempfile.gettempdir()) / f"ports-of-tests-{os.geteuid()}"

_file: Optional[int] = None  # never closed: that would let go of all locks
_ours: Set[int] = set()  # a process is not kept out by its own locks


def free_port() -> int:
    """Return a free loopback port that is ours alone until this process ends."""
    return free_port_block(1)


def free_port_block(size: int) -> int:
    """Return the first of `size` such ports that are neighbours.

    Raises:
        RuntimeError: there are none.
    """
    for _ in range(500):
        first = random.randrange(FIRST, BEHIND - size + 1)
        if _claim(range(first, first + size)):
            return first
    raise RuntimeError(f"found no {size} free neighbouring ports on loopback")


def _claim(ports: range) -> bool:
    """Lock ports and see that nobody uses one; what was locked in vain stays locked."""
    return all(_lock(port) for port in ports) and _unused(list(ports))


def _lock(port: int) -> bool:
    global _file
    if _file is None:
        _file = os.open(FILE, os.O_CREAT | os.O_RDWR, 0o600)
    if port in _ours:
        return False
    try:
        fcntl.lockf(_file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except OSError:
        return False
    _ours.add(port)
    return True


def _unused(ports: List[int]) -> bool:
    try:
        with contextlib.ExitStack() as held:
            for port in ports:
                sock = held.enter_context(socket.socket())
                # Connections that have ended may stand in its way for a minute, but in no server's.
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                sock.bind(("127.0.0.1", port))
    except OSError:
        return False
    return True
