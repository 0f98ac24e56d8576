"""One pass on a real Slurm: 1,000 jobs of ours among 10,000 held ones of another user.

The jobs are held, so that nothing runs. Asked as an ordinary user: slurmctld does not filter by
user for root. Bytes are what slurmctld sends, counted by a relay in runs of their own.
"""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, List, Mapping, Optional, Sequence

from pulsar_failure_reasons.drm.slurm import clean_environment, squeue_command
from tests.real.slurm import PrivateSlurm, why_missing

from .child import in_child
from .passes import environment
from .pulsar_site import OURS, PulsarSite, job_ids, make_active, watching
from .relay import CountingRelay
from .report import Target, say, seconds, table

OWN_JOBS, OTHER_JOBS = 1000, 10_000
OWNER, OTHER = "nobody", "daemon"
JOB_NAME = "pulsar_job_of_usual_length"
TASKS_PER_ARRAY = 1000
RUNS = 7


@dataclass(frozen=True)
class Query:
    """One way to ask for all our jobs: how many commands, and what they take together.

    ``total_s`` is the fastest of one command times their number; ``received`` is the bytes from
    slurmctld.
    """

    what: str
    commands: int
    total_s: float
    received: int

    def row(self, ours: Query) -> List[str]:
        """Return the row of the table, its ratios to ``ours``."""
        return [
            self.what,
            f"{self.commands:,}",
            seconds(self.total_s),
            f"{self.total_s / ours.total_s:.1f}",
            f"{self.received / 1e6:.2f} MB",
            f"{self.received / ours.received:.1f}",
        ]


@dataclass(frozen=True)
class RealSlurm:
    """The queries and our whole pass, or why there are none."""

    left_out: Optional[str] = None
    version: str = ""
    queries: Sequence[Query] = ()
    pass_s: float = 0.0
    look_s: float = 0.0
    pass_commands: int = 0

    def section(self) -> str:
        """Return the section of RESULTS.md."""
        title = "## On a real Slurm\n\n"
        if self.left_out:
            return f"{title}Left out: {self.left_out}.\n"
        headings = ["asked for our jobs", "commands", "time", "ratio", "from slurmctld", "ratio"]
        our_query = self.queries[0]
        return f"""{title}Slurm {self.version}, private, on loopback: {OWN_JOBS:,} jobs of ours
among {OTHER_JOBS:,} held jobs of another user, asked as an ordinary user (for root slurmctld does
not filter by user).

{table(headings, [query.row(our_query) for query in self.queries])}

A whole pass of `queued_slurm`, with `get_status` of each job: **{seconds(self.pass_s)}**, of
which {seconds(self.look_s)} are the look of the observer ({self.pass_commands} command, its
answer read and judged). The fastest of {RUNS} each. "A command for each job" is one command
times {OWN_JOBS:,}, without the 0.1 s that stock's LocalShell sleeps each time.
"""

    def targets(self) -> List[Target]:
        """Nothing was demanded."""
        return []


def measure() -> RealSlurm:
    """Measure on a private Slurm, if one can be started here for two users."""
    left_out = _why_left_out()
    if left_out:
        say(f"real Slurm left out: {left_out}")
        return RealSlurm(left_out)
    say("starting a private Slurm")
    home = Path(tempfile.mkdtemp(prefix="slurm-"))
    try:
        with PrivateSlurm(home, accounting=False, cgroup=False) as slurm:
            return _measure_on(slurm)
    finally:
        shutil.rmtree(home)


def _why_left_out() -> Optional[str]:
    if os.geteuid() != 0:
        return "it needs root, to have jobs of two users"
    for user in (OWNER, OTHER):
        try:
            pwd.getpwnam(user)
        except KeyError:
            return f"there is no user {user}"
    return why_missing(accounting=False)


def _measure_on(slurm: PrivateSlurm) -> RealSlurm:
    say(f"submitting {OTHER_JOBS} held jobs of {OTHER}, {OWN_JOBS} of {OWNER}")
    for _ in range(OTHER_JOBS // TASKS_PER_ARRAY):
        add_held_tasks(slurm, OTHER)
    own_ids = [
        slurm.submit("true", "--hold", f"--job-name={JOB_NAME}", user=OWNER)
        for _ in range(OWN_JOBS)
    ]
    say("asking")
    queries = measure_queries(slurm, ways_to_ask(own_ids))
    say("passes of queued_slurm")
    found = in_child(_measure_passes, dict(slurm.env), own_ids, user=OWNER)
    return RealSlurm(
        None, slurm.version, queries, found["pass_s"], found["look_s"], found["commands"]
    )


def add_held_tasks(slurm: PrivateSlurm, user: str) -> None:
    """Submit a held array and make a job record of each task, as single submissions would.

    slurmctld keeps waiting tasks in one record until something is asked of some of them.
    """
    array = slurm.submit("true", "--hold", f"--array=1-{TASKS_PER_ARRAY}", user=user)
    slurm.run(["scontrol", "update", f"jobid={array}_[1-{TASKS_PER_ARRAY - 1}]", "comment=x"])


def ways_to_ask(ids: Sequence[str]) -> "list[tuple[str, int, list[str]]]":
    """Return (what, how many such commands it takes for all ids, argv); ours first."""
    ours = squeue_command(OWNER, "@f3a9c1@")
    by_ids = [f"--jobs={','.join(ids)}" if a.startswith("--user=") else a for a in ours]
    # What stock's plugin Slurm runs.
    one = ["squeue", "-a", "-o", "%A %t", "-j", ids[0]]
    return [
        ("ours: `squeue --user`", 1, ours),
        ("`squeue --jobs`, all ids", 1, by_ids),
        ("`scontrol show job`, all jobs", 1, ["scontrol", "-o", "show", "job"]),
        ("stock: `squeue -j`, a command for each job", len(ids), one),
    ]


def measure_queries(
    slurm: PrivateSlurm, ways: "Sequence[tuple[str, int, list[str]]]"
) -> List[Query]:
    """Time the commands, in turn, and count what slurmctld sends to each."""
    env = clean_environment(slurm.env)
    times = zip(*([_timed(argv, env) for _, _, argv in ways] for _ in range(RUNS)))
    return [
        Query(what, count, min(took) * count, _received(slurm, argv, env) * count)
        for (what, count, argv), took in zip(ways, times)
    ]


def _received(slurm: PrivateSlurm, argv: Sequence[str], env: Mapping[str, str]) -> int:
    """Return the bytes that slurmctld sends to a command."""
    with CountingRelay(slurm.layout.ctld_port) as relay:
        conf = slurm.home / "relayed.conf"
        text = slurm.layout.conf.read_text()
        conf.write_text(re.sub(r"(?m)^SlurmctldPort=.*", f"SlurmctldPort={relay.port}", text))
        _timed(argv, {**env, "SLURM_CONF": str(conf)})
    return relay.received


def _timed(argv: Sequence[str], env: Mapping[str, str]) -> float:
    owner = pwd.getpwnam(OWNER)
    started = time.perf_counter()
    done = subprocess.run(
        argv, env=env, cwd="/", timeout=60, capture_output=True,
        user=owner.pw_uid, group=owner.pw_gid, extra_groups=[],
    )
    took = time.perf_counter() - started
    if done.returncode != 0 or not done.stdout:
        raise RuntimeError(f"{' '.join(argv):.200} ended with {done.returncode}: {done.stderr!r}")
    return took


def _measure_passes(env: Mapping[str, str], external_ids: Sequence[str]) -> Dict[str, float]:
    """Make passes; in a process of the jobs' owner."""
    managers = {"ours": dict(OURS, job_name_template=JOB_NAME)}
    with tempfile.TemporaryDirectory() as folder, environment(env):
        with PulsarSite(Path(folder), managers) as site:
            proxy, ids = site.proxy("ours"), job_ids("ours", len(external_ids))
            make_active(proxy, ids, external_ids)
            observer = watching(proxy, ids)
            before = observer.counters.job_queries
            times, looks = [], []
            for _ in range(RUNS):
                started = time.perf_counter()
                observer.look()
                looks.append(time.perf_counter() - started)
                for job_id in ids:
                    status = proxy.get_status(job_id)
                    assert status == "queued", status
                times.append(time.perf_counter() - started)
            counters = observer.counters
            assert counters.failed_passes == counters.accounting_queries == 0, counters
            assert counters.jobs_in_last_answer == len(ids), counters
            commands = (counters.job_queries - before) // RUNS
    return {
        "pass_s": min(times), "look_s": min(looks),
        "commands": commands,
    }
