"""The only module that starts a process.

Commands are argv lists, never a shell's text; every one has a timeout, and one that exceeds
it is ended with all its children. Output is decoded once, here.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from typing import Mapping, NamedTuple, Optional, Sequence

from .errors import DrmUnreachableError

DEFAULT_TIMEOUT_S = 20.0
#: How long a command that was killed may take to be gone.
KILLED_TIMEOUT_S = 5.0


class CommandResult(NamedTuple):
    """What a command that came to its end left: exit code (negative: signal) and its texts."""

    returncode: int
    stdout: str
    stderr: str


def run(
    argv: Sequence[str],
    timeout_s: float = DEFAULT_TIMEOUT_S,
    env: Optional[Mapping[str, str]] = None,
    *,
    stdin_text: Optional[str] = None,
    called: Optional[str] = None,
) -> CommandResult:
    """Run a command to its end and return what it left, whatever its exit code.

    ``env`` replaces the environment; None inherits ours. ``called`` is what errors call the
    command, None for the name of its program.

    Raises:
        DrmUnreachableError: the command is not there, may not be run, or did not end within
            ``timeout_s`` seconds.
    """
    try:
        process = subprocess.Popen(
            list(argv),
            stdin=subprocess.DEVNULL if stdin_text is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(env) if env is not None else None,
            start_new_session=True,
        )
    except OSError as error:
        raise DrmUnreachableError(
            f"cannot run {argv[0]}: {error.strerror or error}; is it on PATH?"
        ) from error
    try:
        given = None if stdin_text is None else stdin_text.encode("utf-8", errors="replace")
        stdout, stderr = process.communicate(given, timeout=timeout_s)
    except subprocess.TimeoutExpired as error:
        _end_with_children(process)
        raise DrmUnreachableError(
            f"{called or argv[0]} did not answer within {timeout_s:g} s (option command_timeout)"
        ) from error
    return CommandResult(process.returncode, _text(stdout), _text(stderr))


def _end_with_children(process: subprocess.Popen[bytes]) -> None:
    # A child may hold the pipes open after the command itself is gone, so the whole session
    # goes, and the pipes are closed instead of read to their end.
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    with contextlib.suppress(subprocess.TimeoutExpired):
        # One that waits for a file system that is away cannot even be killed. It is left behind;
        # Python takes note of its end when it starts another process.
        process.wait(KILLED_TIMEOUT_S)
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with contextlib.suppress(OSError):  # what it was not told is still in the buffer
                pipe.close()


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", errors="replace")
