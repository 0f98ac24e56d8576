"""The server is killed with SIGKILL around the end of a job, again and again: one story is told.

Each run is one job on folders of its own. The server is killed up to three times, at moments that
the seed picks around the job's end, and started again until the job has a terminal payload; then
once more. Every payload that left a server is on disk.

``CRASH_SEED`` and ``CRASH_RUNS`` in the environment choose other runs; the seed is printed.
"""

from __future__ import annotations

import collections
import itertools
import json
import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Callable, Counter, Dict, List, NamedTuple, Optional

import pytest

from tests.pulsar_server import PulsarServer, wait_until
from tests.simulated import control

from .harness import QUICK, TERMINAL

SEED = int(os.environ.get("CRASH_SEED", "20261129"))
RUNS = int(os.environ.get("CRASH_RUNS", "200"))
WORKERS = 3
ROOT = Path(__file__).resolve().parents[2]

HOG = "python3 -c 'x = bytes([1]) * 99000000; import time; time.sleep(600)'"


class Kind(NamedTuple):
    """A kind of end, and the one story that may be told of it."""

    command: str
    native: str
    status: str
    returncode: Optional[int]
    cause: Optional[str]
    scancel: bool = False


KINDS: Dict[str, Kind] = {
    "well": Kind("sleep 0.2", "-t 6000", "complete", 0, None),
    "exit_3": Kind("sh -c 'exit 3'", "-t 6000", "complete", 3, None),
    "timeout": Kind("sleep 600", "-t 1", "failed", None, "walltime"),
    "memory": Kind(HOG, "-t 6000 --mem=40", "failed", 137, "memory"),
    "scancel": Kind("sleep 600", "-t 6000", "failed", None, "cancelled", scancel=True),
    "node_failure": Kind(
        "sleep 600", "--no-requeue --comment=fake:node_failure=0.3", "failed", None,
        "node_failure"),
    "killed": Kind("kill -9 $$", "-t 6000", "failed", None, "unknown"),
    "no_return_code": Kind("exit 0", "-t 6000", "failed", None, "lost"),
    "held": Kind("sleep 600", "--comment=fake:requeue_hold=0.2", "failed", None, "held"),
    "forgotten_timeout": Kind(
        "sleep 600", "-t 1 --comment=fake:min_job_age=0", "failed", None, "walltime"),
    "completing": Kind(
        "sleep 600", "-t 1 --comment=fake:completing=0.2", "failed", None, "walltime"),
}

ENDED = ("COMPLETED", "FAILED", "TIMEOUT", "OUT_OF_MEMORY", "CANCELLED", "NODE_FAIL")


class Zygote:
    """``tests.manager.crash_server``: starts and kills servers."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.manager.crash_server"],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, universal_newlines=True)

    def ask(self, **request: Any) -> int:
        """Return the answer to a request."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return int(json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)


class Run:
    """One job and the servers that looked after it."""

    def __init__(self, zygote: Zygote, home: Path, number: int, seed: int = SEED) -> None:
        names = sorted(KINDS)
        self.name = names[number % len(names)]
        self.kind = KINDS[self.name]
        self.job_id = str(number + 1)
        self.home = home
        self.kills: List[str] = []
        self._random = random.Random(f"{seed}/{number}")
        self._zygote = zygote
        self._life = 0
        self._pid = 0
        home.mkdir()
        self._state = control.create(home / "slurm", time_scale=200, kill_wait=0.1)
        options = {**QUICK, "min_polling_interval": 0.08, "hold_grace": 0.2, "missing_grace": 0.2}
        (home / "app.json").write_text(json.dumps({
            "staging_directory": str(home / "staging"),
            "persistence_directory": str(home / "persisted"),
            "tool_dependency_dir": "none",
            "manager": options,
        }))

    @property
    def directory(self) -> Path:
        """The job directory."""
        return self.home / "staging" / self.job_id

    def lines(self, name: str) -> List[Dict[str, Any]]:
        """Return the terminal payloads of a file."""
        path = self.home / name
        text = path.read_text() if path.exists() else ""
        # A line that the kill cut short never left the server.
        whole = text[: text.rfind("\n") + 1].splitlines()
        return [p for p in map(json.loads, whole) if p["status"] in TERMINAL]

    def play(self) -> None:
        """Run the job to its last payload."""
        try:
            self._start(job_id=self.job_id, command_line=self.kind.command,
                        submit_params={"native_specification": self.kind.native})
            self._wait((self.home / "submitted").exists, "the submission")
            if self.kind.scancel:
                self._wait(lambda: control.job_state(self._state, 1) == "RUNNING", "its start")
                control.run(self._state, "scancel", "1", user="root:0")
            for _ in range(self._random.randint(1, 3)):
                self._wait_for_a_moment()
                self._kill()
                self._start()
                if self.lines("published.jsonl"):
                    break
            self._wait(lambda: self.lines("published.jsonl"), "a terminal payload")
            if self._random.random() < 0.3:
                self._kill()
                self._start()
            life = self._life
            self._wait(lambda: any(p["life"] == life for p in self.lines("polled.jsonl")),
                       "a REST client's answer")
        finally:
            self._kill(count=False)
            control.stop_all(self._state)

    def _start(self, **submit: Any) -> None:
        self._life += 1
        self._pid = self._zygote.ask(
            do="start", home=str(self.home), life=self._life, submit=submit,
            env=control.environment(self._state))

    def _kill(self, count: bool = True) -> None:
        self._zygote.ask(do="kill", pid=self._pid)
        if count:
            self.kills.append(self._where())
        final = self.directory / "final_status"
        # Stock writes this file in place; one emptied by a kill stops the next start.
        assert not final.exists() or final.read_text(), "a half-written final_status"

    def _where(self) -> str:
        """Return how far the job's end had come when the server died."""
        if self.lines("published.jsonl"):
            return "5 after the terminal payload"
        if (self.directory / "final_status").exists():
            return "4 between final status and payload"
        if (self.directory / "runner_state").exists():
            return "3 between record and final status"
        if control.job_state(self._state, 1) in ENDED:
            return "2 between end and record"
        return "1 before the end"

    def _wait_for_a_moment(self) -> None:
        """Wait for one of the moments around the end; not for ever, it may be over."""
        recorded = (self.directory / "runner_state").exists
        final = (self.directory / "final_status").exists
        moments: List[Any] = [
            (lambda: True, 0.25),
            (lambda: control.job_state(self._state, 1) in ENDED, 0.15),
            (recorded, 0.001),
            (recorded, 0.04),
            (final, 0.0),
            (final, 0.004),
            (lambda: self.lines("published.jsonl"), 0.01),
        ]
        condition, spread_s = self._random.choice(moments)
        after_s = self._random.uniform(0, spread_s)
        deadline = time.monotonic() + 1.5
        while not condition() and time.monotonic() < deadline:
            time.sleep(0.0005)
        time.sleep(after_s)

    def _wait(self, condition: Callable[[], Any], what: str) -> None:
        try:
            wait_until(condition, 120, what, 0.01)
        except TimeoutError as error:
            log = (self.home / "server.log").read_text(errors="replace")[-3000:]
            raise AssertionError(f"{self}: {error}; kills {self.kills}; log:\n{log}") from None

    def __str__(self) -> str:
        return f"run {self.job_id} ({self.name})"

    def check(self) -> None:
        """Assert that all terminal payloads tell the one right story."""
        payloads = self.lines("published.jsonl") + self.lines("polled.jsonl")
        assert self.lines("published.jsonl"), f"{self}: no terminal payload"
        stories = {json.dumps(_story(p), sort_keys=True) for p in payloads}
        assert len(stories) == 1, f"{self}, kills {self.kills}: {stories}"
        story = _story(payloads[0])
        reason = story.get("failure_reason") or {}
        told = (story["status"], story["returncode"], reason.get("cause"))
        expected = (self.kind.status, self.kind.returncode, self.kind.cause)
        assert told == expected, f"{self}, kills {self.kills}: {story}"


def _story(payload: Dict[str, Any]) -> Dict[str, Any]:
    keys = ("status", "returncode", "runner_state", "runner_state_message", "failure_reason")
    return {key: payload[key] for key in keys if key in payload}


@pytest.mark.slow
def test_one_story_however_often_the_server_dies(tmp_path: Path) -> None:
    """Each job gets a terminal payload, all its payloads agree, and they carry the right reason."""
    numbers = itertools.count()
    runs: List[Run] = []
    failures: List[str] = []

    def work() -> None:
        zygote = Zygote()
        try:
            while not _enough(runs):
                number = next(numbers)
                run = Run(zygote, tmp_path / str(number), number)
                try:
                    run.play()
                    run.check()
                except Exception as error:
                    failures.append(str(error) or repr(error))
                runs.append(run)
        finally:
            zygote.close()

    began = time.monotonic()
    workers = [threading.Thread(target=work) for _ in range(WORKERS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    _report(runs, time.monotonic() - began)
    assert not failures, f"{len(failures)} runs with seed {SEED}:\n" + "\n".join(failures[:5])
    assert _all_moments(runs), _kills(runs)


def _enough(runs: List[Run]) -> bool:
    """Tell whether all runs were made; a few more where a slow machine has missed a moment."""
    return len(runs) >= RUNS and (_all_moments(runs) or len(runs) >= 5 * RUNS)


def _all_moments(runs: List[Run]) -> bool:
    """Tell whether servers were killed at each of the five moments; of few runs none is asked."""
    where = _kills(runs)
    return RUNS < 100 or (len(where) == 5 and min(where.values()) >= RUNS // 50)


def _kills(runs: List[Run]) -> Counter[str]:
    return collections.Counter(kill for run in runs for kill in run.kills)


def _report(runs: List[Run], took_s: float) -> None:
    duplicates = sum(len(run.lines("published.jsonl")) > 1 for run in runs)
    print(f"\nseed {SEED}: {len(runs)} runs in {took_s:.0f} s, {duplicates} with more than one "
          f"published terminal payload")
    for where, count in sorted(_kills(runs).items()):
        print(f"  {count:4} kills {where[2:]}")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["timeout", "memory", "scancel", "node_failure", "exit_3"])
def test_one_story_of_a_real_server(tmp_path: Path, name: str) -> None:
    """``pulsar-serve`` killed with SIGKILL around the end of a job: REST clients are told one."""
    kind = KINDS[name]
    rng = random.Random(f"{SEED}/{name}")
    state = control.create(tmp_path / "slurm", time_scale=200, kill_wait=0.1)
    server = PulsarServer(tmp_path, {"manager": QUICK}, control.environment(state))
    directory = server.staging / "1"
    told: List[Dict[str, Any]] = []
    try:
        server.start()
        server.submit("1", kind.command, native_specification=kind.native)
        if kind.scancel:
            control.wait_for(state, 1, "RUNNING")
            control.run(state, "scancel", "1", user="root:0")
        for _ in range(2):
            # A look needs somebody who asks, for without a message queue nobody else does.
            told.extend(_ask_until(server, (directory / "runner_state").exists, 1.0))
            time.sleep(rng.uniform(0, 0.05))
            server.kill()
            server.start()
        told.append(server.wait_for_end("1"))
        server.kill()
        server.start()
        told.append(server.wait_for_end("1"))
    finally:
        server.kill()
        control.stop_all(state)
    stories = [_story(payload) for payload in told if payload["status"] in TERMINAL]
    assert all(story == stories[0] for story in stories), stories
    cause = (stories[0].get("failure_reason") or {}).get("cause")
    assert (stories[0]["status"], cause) == (kind.status, kind.cause)


def _ask_until(
    server: PulsarServer, condition: Callable[[], bool], timeout_s: float
) -> List[Dict[str, Any]]:
    told = []
    deadline = time.monotonic() + timeout_s
    while not condition() and time.monotonic() < deadline:
        told.append(server.payload("1"))
    return told
