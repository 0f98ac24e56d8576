"""Tells a command whether a Pulsar server is at work: a file that each server keeps locked.

The file lies in the persistence folder, one for each manager of ours. The lock ends with the
process. Servers share it (gunicorn's workers), a command that changes jobs wants it alone.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import os
from typing import IO, Iterator, Optional

log = logging.getLogger("pulsar.failure_reasons.recording")


class CannotTell(Exception):
    """There is no persistence folder, or its file system has no locks."""


def lock_path(persistence_directory: str, manager_name: str) -> str:
    """Return the path of the file."""
    return os.path.join(persistence_directory, f"{manager_name}-failure-reasons.lock")


def hold_as_server(path: str, wait: bool) -> Optional[IO[bytes]]:
    """Lock the file as one of the servers; None where it cannot be locked at all.

    Args:
        path: The file.
        wait: Wait for as long as a command has it.

    Raises:
        BlockingIOError: a command has it, and ``wait`` is False.
    """
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        stream = open(path, "a+b")
    except OSError as error:
        log.info("%s cannot be locked: %s", path, error)
        return None
    try:
        fcntl.flock(stream.fileno(), fcntl.LOCK_SH | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        stream.close()
        raise
    except OSError as error:
        log.info("%s cannot be locked: %s", path, error)
        stream.close()
        return None
    return stream


@contextlib.contextmanager
def no_server(path: str) -> Iterator[bool]:
    """Yield whether no server is at work; where it is True none begins to work in the block.

    Raises:
        CannotTell: see there.
    """
    try:
        with open(path, "a+b") as stream:
            try:
                fcntl.flock(stream.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                    raise CannotTell(f"{path} cannot be locked: {error}") from error
                yield False
                return
            yield True
    except FileNotFoundError as error:
        raise CannotTell(f"{os.path.dirname(path)} is no folder") from error
