"""The mark of a launch under way: a file in the job directory, locked while its process lives.

A server that is killed between the submission and Pulsar's own first record leaves the mark behind
without its lock, which tells that launch from one that another process is making right now. The
lock ends with the process, whatever killed it, in a container too. Where the file system has no
locks (Lustre without ``flock``), the process is looked for instead.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import logging
import os
import secrets
import socket
from typing import IO, Any, Dict, Iterator, Optional

log = logging.getLogger("pulsar.failure_reasons.launch")

MARK = "failure_reasons_launch"
#: Tells this process from an earlier one with the same number (containers always have 1).
_LIFE = secrets.token_hex(8)
_NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL, errno.EBADF})


@contextlib.contextmanager
def launch_mark(job_directory: str, manager_name: str) -> Iterator[None]:
    """Mark the block as a launch by this manager; the mark stays behind, unlocked.

    A directory that cannot hold the mark is logged and does not fail the launch.
    """
    try:
        stream = _marked(os.path.join(job_directory, MARK), manager_name)
    except OSError as error:
        log.info("%s: the launch cannot be marked: %s", job_directory, error)
        yield
        return
    try:
        yield
    finally:
        _unlock(stream)
        stream.close()


def _marked(path: str, manager_name: str) -> IO[str]:
    stream = open(path, "a+", encoding="utf-8")
    try:
        # Locked before it says anything: a mark that is empty tells of no submission.
        _lock(stream, fcntl.LOCK_EX)
        stream.truncate(0)
        told = {
            "manager": manager_name, "host": socket.gethostname(), "pid": os.getpid(),
            "life": _LIFE,
        }
        stream.write(json.dumps(told))
        stream.flush()
        os.fsync(stream.fileno())
    except OSError:
        stream.close()
        raise
    return stream


def remove_mark(job_directory: str) -> None:
    """Remove the mark of a launch that Pulsar knows the end of; quietly, it does no harm."""
    with contextlib.suppress(OSError):
        os.remove(os.path.join(job_directory, MARK))


def dead_launch(job_directory: str) -> Optional[str]:
    """Return the name of the manager whose launch was cut short here.

    None where there is no mark, its launch is under way, or it cannot be told.
    """
    try:
        with open(os.path.join(job_directory, MARK), "r+", encoding="utf-8") as stream:
            # Shared: who looks at the same moment must not take us for the launch.
            locks = _lock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
            text = stream.read()
            _unlock(stream)
        told = json.loads(text)
    except (OSError, ValueError):
        # Locked (BlockingIOError), absent, empty or damaged.
        return None
    if not isinstance(told, dict) or not (locks or _is_gone(told)):
        return None
    return str(told.get("manager"))


def _lock(stream: IO[str], how: int) -> bool:
    """Lock a file; return False where the file system has no locks.

    Raises:
        BlockingIOError: somebody else has it locked.
    """
    try:
        fcntl.flock(stream.fileno(), how)
    except BlockingIOError:
        raise
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        return False
    return True


def _unlock(stream: IO[str]) -> None:
    # Closing alone does not end the lock while a child that another thread is starting has a copy
    # of the descriptor: until it runs its program, which on a busy machine takes its time.
    with contextlib.suppress(OSError):
        fcntl.flock(stream.fileno(), fcntl.LOCK_UN)


def _is_gone(told: Dict[str, Any]) -> bool:
    """Tell whether the process of a mark is gone; of another host's nobody knows."""
    if told.get("host") != socket.gethostname():
        return False
    pid = told.get("pid")
    if pid == os.getpid():
        return bool(told.get("life") != _LIFE)
    return isinstance(pid, int) and not os.path.exists(f"/proc/{pid}")
