"""Processes that a harness started: known by pid and start time, ended by their own pid only.

The pair is written to a file, so that a later run can end what a crashed one left behind and never
hits a stranger that got the same pid.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

ENDED_STATES = ("Z", "X")
#: Seconds for what must happen: it costs nothing where it does, and machines stall.
PATIENCE_S = 180
#: Seconds for a process that was killed, or asked to end, to be gone.
END_PATIENCE_S = 60


class HarnessError(Exception):
    """A real part could not be installed, started or brought into the wanted condition."""


def wait_until(
    condition: Callable[[], bool], timeout_s: float, what: str, interval_s: float = 0.05
) -> None:
    """Return as soon as `condition` holds; raise HarnessError naming `what` after `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise HarnessError(f"waited {timeout_s:.0f} s in vain for: {what}")
        time.sleep(interval_s)


def process_start(pid: int) -> Optional[int]:
    """Return the start time of a live process in clock ticks since boot, or None if it has ended.

    A zombie counts as ended: PID 1 of a container may never reap it.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()  # the name before it may hold spaces and brackets
    return None if fields[0] in ENDED_STATES else int(fields[19])


def kill_and_wait(pid: int, start: int, signals: Sequence[Tuple[int, float]]) -> None:
    """Send each (signal, seconds to wait) in turn until the process `pid` of `start` has ended."""
    for number, patience_s in signals:
        if process_start(pid) != start:
            return
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return
        deadline = time.monotonic() + patience_s
        while process_start(pid) == start and time.monotonic() < deadline:
            time.sleep(0.02)


def kill_all(find: Callable[[], Iterable[Tuple[int, int]]]) -> None:
    """Kill each (pid, start time) that `find` returns until it returns none.

    Once is not enough: one that is not dead yet may start another after the listing.
    """
    deadline = time.monotonic() + END_PATIENCE_S
    found = list(find())
    while found and time.monotonic() < deadline:
        for pid, start in found:
            kill_and_wait(pid, start, [(signal.SIGKILL, END_PATIENCE_S)])
        found = list(find())


class Daemons:
    """The daemons of one harness, each under a name, recorded as ``<folder>/<name>.json``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._children: Dict[str, "subprocess.Popen[bytes]"] = {}

    def start(self, name: str, argv: Sequence[str], env: Mapping[str, str], log: Path) -> int:
        """Start a daemon that stays in the foreground, in a session of its own; return its pid."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with open(log, "ab") as output:
            child = subprocess.Popen(
                list(argv),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=dict(env),
                cwd="/",
                start_new_session=True,
            )
        self._children[name] = child
        record = {"pid": child.pid, "start": process_start(child.pid), "argv": list(argv)}
        written = self._file(name).with_suffix(".new")
        written.write_text(json.dumps(record))
        written.replace(self._file(name))
        return child.pid

    def alive(self, name: str) -> bool:
        """Tell whether the daemon recorded under `name` still runs."""
        self._reap(name)
        pid, start = self._identity(name)
        return pid is not None and start is not None and process_start(pid) == start

    def pid(self, name: str) -> Optional[int]:
        """Return the pid of a live daemon, or None."""
        return self._identity(name)[0] if self.alive(name) else None

    def stop(self, name: str, patience_s: float = END_PATIENCE_S) -> None:
        """End a daemon with SIGTERM, after `patience_s` with SIGKILL; fine if it is gone."""
        self._end(name, [(signal.SIGTERM, patience_s), (signal.SIGKILL, END_PATIENCE_S)])

    def kill(self, name: str) -> None:
        """End a daemon with SIGKILL, as a crash would."""
        self._end(name, [(signal.SIGKILL, END_PATIENCE_S)])

    def names(self) -> List[str]:
        """Return the names on record, running or not."""
        return sorted(path.stem for path in self.folder.glob("*.json"))

    def _end(self, name: str, signals: Sequence[Tuple[int, float]]) -> None:
        pid, start = self._identity(name)
        if pid is not None and start is not None and self.alive(name):
            kill_and_wait(pid, start, signals)
        self._reap(name)
        self._children.pop(name, None)
        self._file(name).unlink(missing_ok=True)

    def _reap(self, name: str) -> None:
        child = self._children.get(name)
        if child is not None:
            child.poll()

    def _file(self, name: str) -> Path:
        return self.folder / f"{name}.json"

    def _identity(self, name: str) -> Tuple[Optional[int], Optional[int]]:
        try:
            record = json.loads(self._file(name).read_text())
            return int(record["pid"]), int(record["start"])
        except (OSError, ValueError, TypeError, KeyError):
            return None, None
