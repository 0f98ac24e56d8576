"""Run a function in a child process, as another user if need be."""

from __future__ import annotations

import json
import os
import pwd
import select
import signal
import traceback
from typing import Any, Callable, Optional

TIMEOUT_S = 180.0


def in_child(
    function: Callable[..., Any],
    *arguments: Any,
    user: Optional[str] = None,
    timeout_s: float = TIMEOUT_S,
) -> Any:
    """Return what ``function(*arguments)`` returns (something for JSON) in a forked child.

    Forked rather than started, because another user may be unable to read this checkout.

    Raises:
        RuntimeError: the function raised (the text holds its traceback), or took too long.
    """
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        _child(lambda: function(*arguments), user, writer)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        if not select.select([pipe], [], [], timeout_s)[0]:
            os.kill(pid, signal.SIGKILL)
        answer = pipe.read()
    os.waitpid(pid, 0)
    if not answer:
        raise RuntimeError(f"{function.__name__} gave no answer within {timeout_s:g} s")
    result = json.loads(answer)
    if "error" in result:
        raise RuntimeError(f"{function.__name__} failed in its process:\n{result['error']}")
    return result["value"]


def _child(function: Callable[[], Any], user: Optional[str], writer: int) -> None:
    """Write the answer and end; the parent's clean-up must not run here."""
    try:
        if user is not None:
            become(user)
        answer = {"value": function()}
    except BaseException:
        answer = {"error": traceback.format_exc()}
    with os.fdopen(writer, "w") as pipe:
        json.dump(answer, pipe)
    os._exit(0)


def become(user: str) -> None:
    """Give up root for this user, for good."""
    entry = pwd.getpwnam(user)
    os.setgroups([])
    os.setgid(entry.pw_gid)
    os.setuid(entry.pw_uid)
