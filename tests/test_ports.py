"""Ports of tests: no process is given what another one has, whether or not somebody listens."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path
from typing import List

import pytest

from tests import ports

ROOT = Path(__file__).resolve().parents[1]
#: Four ports are there, which no other test has (they lie below those that are given), in a
#: process of its own; it keeps them until its input ends.
TAKE = """
import pathlib, sys
from tests import ports
ports.FILE, ports.FIRST, ports.BEHIND = pathlib.Path(sys.argv[1]), 20010, 20014
print(*sorted(ports.free_port() for _ in range(int(sys.argv[2]))), flush=True)
sys.stdin.read()
"""


def taken(file: Path, count: int) -> "subprocess.Popen[str]":
    """Start a process that takes so many of the four ports and keeps them."""
    return subprocess.Popen(
        [sys.executable, "-c", TAKE, str(file), str(count)], cwd=ROOT, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )


def told(process: "subprocess.Popen[str]") -> List[int]:
    """Return the ports that such a process has taken."""
    assert process.stdout is not None
    return [int(word) for word in process.stdout.readline().split()]


def test_another_process_is_given_others(tmp_path: Path) -> None:
    """Though nobody listens; when their owner has ended they may be given again."""
    with taken(tmp_path / "file", 3) as first:
        (left,) = set(range(20010, 20014)) - set(told(first))
        with taken(tmp_path / "file", 1) as second:
            assert told(second) == [left]
            with taken(tmp_path / "file", 1) as third:
                _, error = third.communicate(timeout=120)
            assert "found no 1 free neighbouring ports" in error
            second.communicate(timeout=120)
        first.communicate(timeout=120)
    with taken(tmp_path / "file", 4) as again:
        assert told(again) == [20010, 20011, 20012, 20013]
        again.communicate(timeout=120)


def test_none_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One process is never given a port twice, nor one on which somebody listens."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", ports.free_port()))
        server.listen()
        port = server.getsockname()[1]
        monkeypatch.setattr(ports, "_file", None)
        monkeypatch.setattr(ports, "_ours", set())
        monkeypatch.setattr(ports, "FILE", tmp_path / "file")
        monkeypatch.setattr(ports, "FIRST", port)
        monkeypatch.setattr(ports, "BEHIND", port + 1)
        with pytest.raises(RuntimeError, match="found no 1 free"):
            ports.free_port()
    monkeypatch.setattr(ports, "FIRST", 31000)
    monkeypatch.setattr(ports, "BEHIND", 32000)
    given = [ports.free_port_block(2) for _ in range(50)]
    assert len({port + more for port in given for more in (0, 1)}) == 100
