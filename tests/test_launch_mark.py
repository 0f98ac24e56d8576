"""The mark of a launch: whose it is, and whether its process lives, with locks and without."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, Iterator

import pytest

from pulsar_failure_reasons.managers.launch_mark import dead_launch, launch_mark, remove_mark
from pulsar_failure_reasons.managers.server_lock import CannotTell, hold_as_server, no_server

MARK = "failure_reasons_launch"


@pytest.fixture
def no_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system without locks (Lustre mounted without flock)."""

    def refuse(descriptor: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)


def test_under_way_and_over(tmp_path: Path) -> None:
    """Locked in the block; left behind by it, for whoever looks afterwards."""
    with launch_mark(str(tmp_path), "cluster"):
        assert dead_launch(str(tmp_path)) is None
    assert dead_launch(str(tmp_path)) == "cluster"
    assert json.loads((tmp_path / MARK).read_text())["manager"] == "cluster"
    remove_mark(str(tmp_path))
    remove_mark(str(tmp_path))
    assert dead_launch(str(tmp_path)) is None


def test_marked_again(tmp_path: Path) -> None:
    """A second launch writes over the mark of the first."""
    for name in ("a-long-name-of-a-manager", "b"):
        with launch_mark(str(tmp_path), name):
            pass
    assert dead_launch(str(tmp_path)) == "b"


def test_killed(tmp_path: Path) -> None:
    """The lock ends with a process that is killed, and its mark stays."""
    code = (
        "import sys, time\n"
        "from pulsar_failure_reasons.managers.launch_mark import launch_mark\n"
        "with launch_mark(sys.argv[1], 'cluster'):\n"
        "    print('marked', flush=True); time.sleep(600)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline() == b"marked\n"
    assert dead_launch(str(tmp_path)) is None
    process.kill()
    process.wait(120)
    assert dead_launch(str(tmp_path)) == "cluster"


@contextlib.contextmanager
def _copied(path: Path) -> Iterator[None]:
    """Keep a copy of the open file, as a child has it that another thread is starting."""
    (number,) = [
        name for name in os.listdir("/proc/self/fd")
        if os.path.realpath(f"/proc/self/fd/{name}") == str(path)
    ]
    copy = os.dup(int(number))
    try:
        yield
    finally:
        os.close(copy)


def test_child_started_meanwhile(tmp_path: Path) -> None:
    """A child that has not yet come to run its program does not prolong the launch.

    It once did: a server that was started again at that moment never took the launch up.
    """
    with contextlib.ExitStack() as child:
        with launch_mark(str(tmp_path), "cluster"):
            child.enter_context(_copied(tmp_path / MARK))
            assert dead_launch(str(tmp_path)) is None
        assert dead_launch(str(tmp_path)) == "cluster"


def test_two_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who looks is not taken for the launch, nor does a child of theirs delay the next launch."""
    with launch_mark(str(tmp_path), "cluster"):
        pass
    seen = []
    with contextlib.ExitStack() as child:

        def look_meanwhile(descriptor: int, how: int) -> None:
            flock(descriptor, how)
            if how & fcntl.LOCK_SH and not seen:
                seen.append("first")
                child.enter_context(_copied(tmp_path / MARK))
                seen.append(dead_launch(str(tmp_path)))

        flock = fcntl.flock
        monkeypatch.setattr(fcntl, "flock", look_meanwhile)
        assert dead_launch(str(tmp_path)) == "cluster"
        with open(tmp_path / MARK, "r+") as stream:
            flock(stream.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert seen == ["first", "cluster"]


def _mark(folder: Path, **told: Any) -> None:
    base = {"manager": "cluster", "host": socket.gethostname(), "pid": os.getpid(), "life": "x"}
    (folder / MARK).write_text(json.dumps({**base, **told}))


@pytest.mark.usefixtures("no_locks")
def test_without_locks(tmp_path: Path) -> None:
    """The process of the mark is looked for: this one is at it, one that is gone is not."""
    with launch_mark(str(tmp_path), "cluster"):
        assert dead_launch(str(tmp_path)) is None
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait(120)
    _mark(tmp_path, pid=gone.pid)
    assert dead_launch(str(tmp_path)) == "cluster"


@pytest.mark.parametrize(
    "told, dead",
    [
        pytest.param({}, "cluster", id="earlier_process_with_our_number"),
        pytest.param({"pid": 1}, None, id="a_process_that_lives"),
        pytest.param({"host": "elsewhere", "pid": 4194304}, None, id="of_another_host"),
        pytest.param({"pid": None}, None, id="no_number"),
    ],
)
@pytest.mark.usefixtures("no_locks")
def test_without_locks_others(tmp_path: Path, told: Any, dead: Any) -> None:
    """Of another host nobody knows; a container's only process always has the number 1."""
    _mark(tmp_path, **told)
    assert dead_launch(str(tmp_path)) == dead


def test_directory_that_takes_no_mark(tmp_path: Path) -> None:
    """The launch goes on: what cannot be marked is no reason to refuse a job."""
    done = []
    with launch_mark(str(tmp_path / "absent"), "cluster"):
        done.append(1)
    assert done == [1]


def test_error_in_the_launch(tmp_path: Path) -> None:
    """A launch that raises leaves no lock."""
    with pytest.raises(ZeroDivisionError):
        with launch_mark(str(tmp_path), "cluster"):
            raise ZeroDivisionError
    assert dead_launch(str(tmp_path)) == "cluster"


def test_servers_share_a_command_does_not(tmp_path: Path) -> None:
    """Workers of one web server lock together; a command is let in after the last."""
    path = str(tmp_path / "persisted" / "m-failure-reasons.lock")
    first, second = hold_as_server(path, wait=False), hold_as_server(path, wait=False)
    assert first is not None and second is not None
    for server in (first, second):
        with no_server(path) as alone:
            assert not alone
        server.close()
    with no_server(path) as alone:
        assert alone
        with pytest.raises(BlockingIOError):
            hold_as_server(path, wait=False)
    third = hold_as_server(path, wait=False)
    assert third is not None
    third.close()


@pytest.mark.usefixtures("no_locks")
def test_server_lock_where_nobody_can_tell(tmp_path: Path) -> None:
    """No locks, or no folder: a server works all the same, a command is told."""
    path = str(tmp_path / "m-failure-reasons.lock")
    assert hold_as_server(path, wait=False) is None
    for where in (path, str(tmp_path / "absent" / "m.lock")):
        with pytest.raises(CannotTell):
            with no_server(where):
                pass
