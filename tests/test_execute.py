"""Processes: a timeout ends the whole family, and what is missing is said in one line."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import List

import pytest

from pulsar_failure_reasons.errors import DrmUnreachableError
from pulsar_failure_reasons.execute import run
from tests.pulsar_server import wait_until


def test_result() -> None:
    """Exit code and both texts come back; a non-zero code is no exception."""
    code = "import sys; print('o'); sys.stderr.write('e'); sys.exit(3)"
    result = run([sys.executable, "-c", code])
    assert (result.returncode, result.stdout, result.stderr) == (3, "o\n", "e")


def test_undecodable_output() -> None:
    """A DRM's Latin-1 text does not break the reading of the rest."""
    code = "import sys; sys.stdout.buffer.write(b'dom\\xe4ne 1')"
    assert run([sys.executable, "-c", code]).stdout == "dom\ufffdne 1"


def test_no_shell() -> None:
    """An argument is an argument, whatever it looks like."""
    code = "import sys; print(sys.argv[1])"
    assert run([sys.executable, "-c", code, "$(id); `id`"]).stdout == "$(id); `id`\n"


def test_missing_command() -> None:
    """A command that is not there is named, with what to look at."""
    with pytest.raises(DrmUnreachableError, match="no-such-command-7.*PATH"):
        run(["no-such-command-7"])


def test_timeout_ends_children_that_hold_the_pipes(tmp_path: Path) -> None:
    """A hanging command and its child are gone within the timeout, not only the command."""
    pid_file = tmp_path / "pid"
    whole = tmp_path / "whole"
    code = (
        "import os, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(pid_file)!r}, 'w').write(str(child.pid))\n"
        f"os.rename({str(pid_file)!r}, {str(whole)!r})\n"
        "time.sleep(600)\n"
    )
    for timeout_s in (1.5, 15, 60):  # the first, unless this machine needs more to start it
        began = time.monotonic()
        with pytest.raises(DrmUnreachableError, match="command_timeout"):
            run([sys.executable, "-c", code], timeout_s=timeout_s)
        assert time.monotonic() - began < 300
        if whole.exists():
            break
    child = int(whole.read_text())
    wait_until(lambda: not _alive(child), 60, "the child to end")


def test_a_command_that_cannot_be_killed_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that waits for a dead file system outlives SIGKILL: nobody waits for it."""
    started: List[int] = []
    kill = os.killpg
    monkeypatch.setattr(os, "killpg", lambda pid, number: started.append(pid))
    monkeypatch.setattr("pulsar_failure_reasons.execute.KILLED_TIMEOUT_S", 0.1, raising=False)
    began = time.monotonic()
    try:
        with pytest.raises(DrmUnreachableError, match="did not answer"):
            run(["sleep", "600"], timeout_s=0.2)
        assert time.monotonic() - began < 300
    finally:
        kill(started[0], 9)


def _alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_environment_is_replaced() -> None:
    """The environment that is given is the whole environment."""
    code = "import os; print(sorted(k for k in os.environ if k.startswith('SQUEUE')))"
    os.environ["SQUEUE_TEST"] = "1"
    try:
        assert run([sys.executable, "-c", code], env={"PATH": os.environ["PATH"]}).stdout == "[]\n"
    finally:
        del os.environ["SQUEUE_TEST"]
