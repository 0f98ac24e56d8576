"""The server is killed with SIGKILL around a hold and its removal: one story is told.

Each run is one job on folders of its own, as in ``tests/manager/test_crash.py``, whose servers
these are. ``CRASH_SEED`` and ``CRASH_RUNS`` in the environment choose other runs.
"""

from __future__ import annotations

import json
import os
import random
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Optional

import pytest

from tests import simulated_htcondor
from tests.manager.test_crash import Zygote
from tests.pulsar_in_process import TERMINAL
from tests.pulsar_server import wait_until

from .harness import QUICK, Pool

SEED = int(os.environ.get("CRASH_SEED", "20261129"))
RUNS = int(os.environ.get("CRASH_RUNS", "200")) // 10
OVER = "Job has gone over cgroup memory limit of 2048 megabytes."
OPTIONS = {**QUICK, "min_polling_interval": 0.08, "hold_grace": 0.3, "missing_grace": 0.3}


class Kind(NamedTuple):
    """A kind of end, and the one story that may be told of it.

    ``play`` is what the pool does to the job, ``then`` what it does once the file ``return_code``
    is there.
    """

    command: str
    play: str
    status: str
    returncode: Optional[int]
    cause: Optional[str]
    then: str = ""


KINDS: Dict[str, Kind] = {
    "well": Kind("sleep 0.3", "", "complete", 0, None),
    "memory": Kind("sleep 600", f"0.3 hold 34 102 {OVER}", "failed", None, "memory"),
    "memory_exit_0": Kind(
        "echo 0 > ../return_code; sleep 600", "", "failed", 0, "memory", f"0 hold 34 102 {OVER}"),
    "stage_error": Kind(
        "echo 0 > ../return_code; sleep 600", "", "failed", 0, "stage_error",
        "0 hold 12 2 transfer failed"),
    "held": Kind("sleep 600", "0.3 hold 26 0 the moon is full", "failed", None, "held"),
    "signal": Kind("sleep 0.3; kill -11 $$", "", "failed", None, "unknown"),
    "removed": Kind(
        "sleep 600", "0.3 remove via condor_rm (by user alice)", "failed", None, "cancelled"),
    "unlogged": Kind("sleep 0.4; kill -11 $$", "0.1 lose_log", "failed", None, "unknown"),
}


class Run:
    """One job and the servers that looked after it."""

    def __init__(self, zygote: Zygote, home: Path, number: int) -> None:
        self.name = sorted(KINDS)[number % len(KINDS)]
        self.kind = KINDS[self.name]
        self.home = home
        self.kills = 0
        self._random = random.Random(f"{SEED}/{number}")
        self._zygote = zygote
        self._life = 0
        self._pid = 0
        home.mkdir()
        self.pool = Pool(home / "pool")
        (home / "app.json").write_text(json.dumps({
            "staging_directory": str(home / "staging"),
            "persistence_directory": str(home / "persisted"),
            "tool_dependency_dir": "none",
            "manager": OPTIONS,
        }))

    def lines(self, name: str) -> List[Dict[str, Any]]:
        """Return the terminal payloads of a file."""
        path = self.home / name
        text = path.read_text() if path.exists() else ""
        whole = text[: text.rfind("\n") + 1].splitlines()
        return [p for p in map(json.loads, whole) if p["status"] in TERMINAL]

    def play(self) -> None:
        """Run the job to its last payload."""
        params = {"+FakePlay": f'"{self.kind.play}"'} if self.kind.play else {}
        try:
            self._start(job_id="1", command_line=self.kind.command, submit_params=params)
            self._wait((self.home / "submitted").exists, "the submission")
            if self.kind.then:
                return_code = self.home / "staging" / "1" / "return_code"
                self._wait(return_code.exists, "the tool to write it")
                self.pool.do("play", "1", self.kind.then)
            for _ in range(self._random.randint(1, 3)):
                self._wait_for_a_moment()
                self._kill()
                self._start()
                if self.lines("published.jsonl"):
                    break
            self._wait(lambda: self.lines("published.jsonl"), "a terminal payload")
            self._kill()
            self._start()
            life = self._life
            self._wait(lambda: any(p["life"] == life for p in self.lines("polled.jsonl")),
                       "a REST client's answer")
            self._wait(lambda: self.pool.queue() == [], "the job to leave the queue")
        finally:
            self._zygote.ask(do="kill", pid=self._pid)
            simulated_htcondor.stop(self.home / "pool")

    def _start(self, **submit: Any) -> None:
        self._life += 1
        self._pid = self._zygote.ask(
            do="start", home=str(self.home), life=self._life, submit=submit,
            env=simulated_htcondor.environment(self.home / "pool"))

    def _kill(self) -> None:
        self._zygote.ask(do="kill", pid=self._pid)
        self.kills += 1

    def _wait_for_a_moment(self) -> None:
        """Wait for one of the moments around the end; not for ever, it may be over."""
        recorded = (self.home / "staging" / "1" / "runner_state").exists
        final = (self.home / "staging" / "1" / "final_status").exists
        held = self._is_held
        moments = [(held, 0.05), (held, 0.4), (recorded, 0.001), (recorded, 0.1), (final, 0.004)]
        condition, spread_s = self._random.choice(moments)
        after_s = self._random.uniform(0, spread_s)
        deadline = time.monotonic() + 2
        while not condition() and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(after_s)

    def _is_held(self) -> bool:
        return self.pool.ad("1").get("JobStatus") == "5"

    def _wait(self, condition: Callable[[], Any], what: str) -> None:
        try:
            wait_until(condition, 120, what, 0.02)
        except TimeoutError as error:
            log = (self.home / "server.log").read_text(errors="replace")[-3000:]
            raise AssertionError(f"{self.name}: {error}; log:\n{log}") from None

    def check(self) -> None:
        """Assert that all terminal payloads tell the one right story."""
        payloads = self.lines("published.jsonl") + self.lines("polled.jsonl")
        keys = ("status", "returncode", "runner_state", "runner_state_message", "failure_reason")
        stories = {json.dumps([p.get(key) for key in keys], sort_keys=True) for p in payloads}
        assert len(stories) == 1, f"{self.name}: {stories}"
        reason = payloads[0].get("failure_reason") or {}
        told = (payloads[0]["status"], payloads[0]["returncode"], reason.get("cause"))
        assert told == (self.kind.status, self.kind.returncode, self.kind.cause), payloads[0]


@pytest.mark.slow
def test_one_story_however_often_the_server_dies(tmp_path: Path) -> None:
    """All payloads of a job agree and are right, and the job is out of HTCondor's queue."""
    zygote, failures, kills = Zygote(), [], 0
    try:
        for number in range(RUNS):
            run = Run(zygote, tmp_path / str(number), number)
            try:
                run.play()
                run.check()
            except AssertionError as error:
                failures.append(f"run {number}: {error}")
            kills += run.kills
    finally:
        zygote.close()
    print(f"\nseed {SEED}: {RUNS} runs, {kills} kills")
    assert not failures, "\n".join(failures)
