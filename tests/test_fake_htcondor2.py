"""The simulated HTCondor: its log text against captured logs, what it plays, its accidents."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Tuple

import pytest

from tests import simulated_htcondor

control = simulated_htcondor.control()

from fake_htcondor import events, expressions, play, small_log  # noqa: E402
from fake_htcondor.store import StateError, Store, open_store  # noqa: E402

DATA = Path(__file__).resolve().parent / "data/htcondor"
CAPTURED = {
    row["case"]: row["events"]
    for row in map(json.loads, (DATA / "events.jsonl").read_text().splitlines())
}
LOGS = {path.stem: path for path in sorted((DATA / "logs").glob("*.log"))}
REAL_LOGS = [case for case in LOGS if not case.startswith("SYNTHETIC") and case != "log_xml"]
MEASURES = ("IMAGE_SIZE", "FILE_TRANSFER")


class Pool:
    """A simulated pool for one test."""

    def __init__(self, htcondor2: Any, state: Path) -> None:
        self.htcondor2, self.state = htcondor2, str(state)
        self.work = state.parent

    def submit(self, script: str = "exec sleep 300", **commands: Any) -> int:
        """Submit a shell script; return its cluster."""
        path = self.work / f"job{len(list(self.work.iterdir()))}.sh"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        given = {"executable": str(path), "initialdir": str(self.work), "log": "$(Cluster).log"}
        given.update(commands)
        submit = self.htcondor2.Submit({"should_transfer_files": "NO", **given})
        return int(self.htcondor2.Schedd().submit(submit).cluster())

    def log(self, cluster: int) -> List[Any]:
        """The events of a job's log, without measurements."""
        path = self.work / f"{cluster}.log"
        if not path.exists():
            return []
        reader = self.htcondor2.JobEventLog(str(path))
        found = [event for event in reader.events(0) if event.type.name not in MEASURES]
        reader.close()
        return found

    def types(self, cluster: int) -> List[str]:
        """Their names."""
        return [event.type.name for event in self.log(cluster)]

    def wait(self, condition: Callable[[], bool], timeout_s: float = 60) -> None:
        """Wait until something holds."""
        deadline = time.monotonic() + timeout_s
        while not condition():
            assert time.monotonic() < deadline, control.dump(self.state)
            time.sleep(0.02)

    def wait_for(self, cluster: int, name: str, times: int = 1) -> Any:
        """Wait for an event (the nth of its kind) and return it."""
        self.wait(lambda: self.types(cluster).count(name) >= times)
        return [event for event in self.log(cluster) if event.type.name == name][times - 1]

    def status(self, cluster: int) -> Any:
        """JobStatus in the queue, or None."""
        found = self.htcondor2.Schedd().query(f"ClusterId == {cluster}", ["JobStatus"])
        return found[0]["JobStatus"] if found else None

    def played(self, steps: str, until: str, times: int = 1) -> int:
        """Submit a job that plays steps, and wait for an event."""
        cluster = self.submit(**{"+FakePlay": f'"{steps}"'})
        self.wait_for(cluster, until, times)
        return cluster


@pytest.fixture
def pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pool]:
    """A pool; at the end no process of it is left and no runner has failed."""
    state = tmp_path / "state"
    htcondor2 = simulated_htcondor.load(monkeypatch, state)
    control.configure(str(state), policy_interval=0.1, vacate_time=0.3)
    yield Pool(htcondor2, state)
    simulated_htcondor.stop(state)


# ---- the text of the log ----------------------------------------------------------------------


def rebuilt(event: Dict[str, Any]) -> Any:
    """Return the event that our functions make of a captured event's attributes, or None."""
    number, get = event["EventTypeNumber"], event.get
    host, slot = get("ExecuteHost"), get("SlotName", "")
    if number == 0:
        return events.submit(event["SubmitHost"])
    if number == 1 and "ExecuteProps" in event:
        props = event["ExecuteProps"]
        props = props.get("__classad__", props)
        return events.execute(
            host, slot, props["CondorScratchDir"], 1, props["Disk"], props["Memory"]
        )
    if number == 6:
        return events.image_size(event["Size"], event["MemoryUsage"], event["ResidentSetSize"])
    if number == 12:
        return events.held(get("HoldReason"), event["HoldReasonCode"], event["HoldReasonSubCode"])
    if number == 13:
        return events.released(get("Reason"))
    if number == 21 and "\n" not in event["ErrorMsg"]:
        codes = event["HoldReasonCode"], event["HoldReasonSubCode"]
        return events.remote_error(host, event["ErrorMsg"], *codes)
    if number == 7:
        return events.shadow_exception(event["Message"])
    if number == 22:
        return events.disconnected(
            event["DisconnectReason"], event["StartdName"], event["StartdAddr"]
        )
    if number == 23:
        return events.reconnected(event["StartdName"], event["StartdAddr"], event["StarterAddr"])
    if number == 24:
        return events.reconnect_failed(event["Reason"], event["StartdName"])
    if number == 10:
        return events.suspended(event["NumberOfPIDs"])
    if number == 11:
        return events.unsuspended()
    if number == 40 and "Host" not in event:
        return events.transfer(event["Type"])
    if number == 4 and event["TerminatedAndRequeued"] and "ReturnValue" in event:
        return events.requeued(event["ReturnValue"], None, event["Reason"])
    return None


@pytest.mark.parametrize("case", REAL_LOGS)
def test_log_text_is_that_of_captured_logs(case: str) -> None:
    """What can be made of a captured event's attributes is byte for byte what HTCondor wrote."""
    written = LOGS[case].read_bytes().decode().split("...\n")
    checked = 0
    for event, text in zip(CAPTURED[case], written):
        ours = rebuilt(event)
        if ours is not None:
            checked += 1
            when = time.mktime(time.strptime(event["EventTime"][:19], "%Y-%m-%dT%H:%M:%S"))
            made = events.full_text(event["Cluster"], event["Proc"], ours, when)
            assert made == text + "...\n"
    assert checked >= 1


def captured_text(case: str, number: int) -> str:
    """The first event of a type in a captured log, without its head line."""
    for one in LOGS[case].read_text().split("...\n"):
        if one.startswith(f"{number:03d} "):
            return one.split(" ", 4)[4]
    raise AssertionError(f"no event {number} in {case}")


TABLE = events.usage_table((1, 1024, 64), (1, 2048, 128), 1, 5, 1, cpus=0)
SHORT_TABLE = events.usage_table((1, 1024, 64), (1, 2048, 128), 1, 5, 0)
WHEN_21 = 1795950521  # 2026-11-29T11:08:41Z, as the logs have it


@pytest.mark.parametrize(
    ("case", "event"),
    [
        ("success", events.terminated(0, None, TABLE, WHEN_21)),
        ("signal9_self", events.terminated(0, 9, TABLE, WHEN_21)),
        ("removed_running", events.evicted("", SHORT_TABLE)),
        ("removed_running_str_reason", events.aborted(None, WHEN_21 + 1)),
        ("removed_idle", events.aborted("Python-initiated action (by user daemon)")),
    ],
    ids=["exit_0", "signal_9", "evicted", "aborted_without_reason", "aborted_idle"],
)
def test_ends_are_written_as_captured(case: str, event: Tuple[int, str]) -> None:
    """An end with its usage table is byte for byte the captured one (but for a port)."""
    expected = captured_text(case, event[0])
    assert re.sub(r"127.0.0.1:\d+", "ADDRESS", event[1]) == re.sub(
        r"127.0.0.1:\d+", "ADDRESS", expected
    )


# ---- without the wheel --------------------------------------------------------------------------

READ = ("EventTypeNumber", "Cluster", "Proc", "EventTime", "HoldReasonCode", "HoldReasonSubCode")
READ += ("HoldReason", "ReturnValue", "TerminatedBySignal", "TerminatedAndRequeued", "ErrorMsg")
REASONS = (9, 13, 24)  # of these types the small reader tells the Reason


@pytest.mark.parametrize("case", REAL_LOGS)
def test_small_reader_reads_captured_logs(case: str) -> None:
    """The substitute for JobEventLog yields what the real one did: types, codes, reasons, ends."""
    read = list(small_log.JobEventLog(str(LOGS[case])).events(0))
    for event, expected in zip(read, CAPTURED[case]):
        if expected["EventTypeNumber"] == 28:
            continue
        names = READ + (("Reason",) if expected["EventTypeNumber"] in REASONS else ())
        wanted = {
            name: expected[name] for name in names if name in expected and expected[name] != ""
        }
        assert {name: event[name] for name in names if name in event} == wanted
    assert len(read) >= len(CAPTURED[case])


def test_it_works_without_the_wheel(pool: Pool) -> None:
    """In a Python without the package htcondor the same module submits, follows and removes."""
    text = (
        "import htcondor2 as h, time, sys\n"
        "assert h.WHEEL is None\n"
        "s = h.Schedd(h.Collector().locate(h.DaemonType.Schedd))\n"
        "job = {'executable': '/bin/sleep', 'arguments': '300', 'log': sys.argv[1]}\n"
        "r = s.submit(h.Submit(job))\n"
        "log = h.JobEventLog(sys.argv[1])\n"
        "seen = []\n"
        "while len(seen) < 2: seen += [e.type.name for e in log.events(0)]; time.sleep(0.02)\n"
        "ad = s.query('ClusterId == %d' % r.cluster())[0]\n"
        "kind = type(ad['Requirements']).__name__\n"
        "print(seen[:2], ad['JobStatus'], kind, ad.get('HoldReason'))\n"
        "print(s.act(h.JobAction.Remove, '%d.0' % r.cluster())['TotalSuccess'])\n"
    )
    env = simulated_htcondor.environment(Path(pool.state))
    env["PYTHONPATH"] = str(simulated_htcondor.FAKES)
    argv = [sys.executable, "-S", "-c", text, str(pool.work / "x.log")]
    shown = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=120)
    assert shown.stdout == "['SUBMIT', 'EXECUTE'] 2 ExprTree None\n1\n", shown.stderr


# ---- what it plays ------------------------------------------------------------------------------

POLICY = ["SUBMIT", "EXECUTE", "JOB_HELD"]
STARTER = ["SUBMIT", "EXECUTE", "REMOTE_ERROR", "JOB_EVICTED", "JOB_HELD"]
NO_EXECUTE = ["SUBMIT", "REMOTE_ERROR", "JOB_EVICTED", "JOB_HELD"]
AT_ONCE = ["SUBMIT", "JOB_HELD"]


@pytest.mark.parametrize(
    ("code", "subcode", "order"),
    [
        (1, 0, ["SUBMIT", "EXECUTE", "JOB_EVICTED", "JOB_HELD"]),
        (3, 42, POLICY),
        (26, 99, POLICY),
        (46, 0, POLICY),
        (47, 0, POLICY),
        (6, 2, STARTER),
        (12, 2, STARTER),
        (21, 103, STARTER),
        (33, 0, STARTER),
        (34, 104, STARTER),
        (99, 7, STARTER),
        (7, 2, NO_EXECUTE),
        (8, 2, NO_EXECUTE),
        (13, 2, NO_EXECUTE),
        (14, 2, AT_ONCE),
        (32, 0, AT_ONCE),
    ],
)
def test_any_hold_code_can_be_played(pool: Pool, code: int, subcode: int, order: List[str]) -> None:
    """+FakePlay holds with any code, subcode and reason, in the order in which HTCondor logs it."""
    cluster = pool.played(f"0.05 hold {code} {subcode} my own words", "JOB_HELD")
    held = pool.log(cluster)[-1]
    assert (held["HoldReasonCode"], held["HoldReasonSubCode"]) == (code, subcode)
    assert held["HoldReason"].endswith("my own words")
    assert pool.types(cluster) == order


@pytest.mark.parametrize(
    ("steps", "middle"),
    [
        ("0.05 evict", ["JOB_EVICTED"]),
        ("0.05 shadow_exception lost the starter", ["SHADOW_EXCEPTION"]),
        ("0.05 execute_again", []),
        (
            "0.05 disconnect; 0.05 reconnect_failed",
            ["JOB_DISCONNECTED", "JOB_RECONNECT_FAILED", "JOB_EVICTED"],
        ),
        ("0.05 hold 34 102 more; 0.05 release by a cron", STARTER[2:] + ["JOB_RELEASED"]),
    ],
    ids=["evict", "shadow_exception", "execute_again", "reconnect_failed", "held_and_released"],
)
def test_accidents_after_which_the_job_runs_again(
    pool: Pool, steps: str, middle: List[str]
) -> None:
    """None of them is an end: the job executes a second time."""
    cluster = pool.played(steps, "EXECUTE", 2)
    assert pool.types(cluster) == ["SUBMIT", "EXECUTE", *middle, "EXECUTE"]
    pool.wait(lambda: pool.status(cluster) == 2)


def test_a_disconnected_job_tells_its_end_when_reconnected(pool: Pool) -> None:
    """While it is disconnected its end is not told."""
    cluster = pool.submit("exit 4", **{"+FakePlay": '"0 disconnect; 0.3 reconnect"'})
    assert pool.wait_for(cluster, "JOB_TERMINATED")["ReturnValue"] == 4
    assert pool.types(cluster)[2:4] == ["JOB_DISCONNECTED", "JOB_RECONNECTED"]


def test_the_release_with_more_memory(pool: Pool) -> None:
    """Held for memory, more memory and release by the site's cron, held again, removed by it."""
    steps = "0.05 hold 34 102 over; 0.05 hold 34 102 over again"
    cluster = pool.played(steps, "JOB_HELD")
    schedd = pool.htcondor2.Schedd()
    schedd.edit(f"{cluster}.0", "RequestMemory", "3000")
    schedd.act(pool.htcondor2.JobAction.Release, f"{cluster}.0", ("more memory", 0))
    pool.wait_for(cluster, "JOB_HELD", 2)
    control.remove(pool.state, cluster, "running out of memory (by user cron)")
    aborted = pool.wait_for(cluster, "JOB_ABORTED")
    assert aborted["Reason"] == "running out of memory (by user cron)"
    # The log is written before the job is in the history.
    pool.wait(lambda: bool(schedd.history(f"ClusterId == {cluster}")))
    past = schedd.history(f"ClusterId == {cluster}")[0]
    assert (past["JobStatus"], past["HoldReasonCode"], past["RequestMemory"]) == (3, 34, 3000)
    assert pool.types(cluster).count("JOB_HELD") == 2


def test_a_lost_log_leaves_only_the_history(pool: Pool) -> None:
    """After lose_log nothing is written; the history has the end."""
    go = pool.work / "go"
    script = f"until [ -e {go} ]; do sleep 0.05; done; exit 6"
    cluster = pool.submit(script, **{"+FakePlay": '"0 lose_log"'})
    pool.wait(lambda: "nowhere" in control.job(pool.state, cluster)["UserLog"])
    go.touch()
    schedd = pool.htcondor2.Schedd()
    pool.wait(lambda: bool(schedd.history(f"ClusterId == {cluster}")))
    assert pool.types(cluster) == ["SUBMIT", "EXECUTE"]
    assert schedd.history(f"ClusterId == {cluster}")[0]["ExitCode"] == 6


def test_a_forgotten_job_is_nowhere(pool: Pool) -> None:
    """After forget neither queue nor history has the job."""
    cluster = pool.submit()
    pool.wait_for(cluster, "EXECUTE")
    control.forget(pool.state, cluster)
    schedd = pool.htcondor2.Schedd()
    assert list(schedd.query(f"ClusterId == {cluster}")) == []
    assert list(schedd.history(f"ClusterId == {cluster}")) == []


def test_play_by_control_goes_on_where_the_job_is(pool: Pool) -> None:
    """control.play adds steps to a running job; those of before are not played again."""
    cluster = pool.played("0 evict", "EXECUTE", 2)
    control.play(pool.state, cluster, "0 hold 26 5 site")
    assert pool.wait_for(cluster, "JOB_HELD")["HoldReasonSubCode"] == 5
    assert pool.types(cluster).count("JOB_EVICTED") == 1


@pytest.mark.parametrize("steps", ["hold 34", "1 hold x 2 y", "1 explode", "1 kill"])
def test_a_step_that_cannot_be_read_is_told(steps: str) -> None:
    """The error names the step, its form and the verbs."""
    with pytest.raises(play.PlayError, match="SECONDS VERB.*shadow_exception"):
        play.parse(steps)


# ---- policies of the site -----------------------------------------------------------------------

EAT = f"exec {sys.executable} -c 'import time; x = bytearray(120_000_000); time.sleep(300)'"


@pytest.mark.parametrize(
    ("settings", "script", "expected"),
    [
        ({"startd_hold_runtime": 1}, "exec sleep 300", (21, 103)),
        ({"startd_hold_memory": True}, EAT, (21, 102)),
        ({"cgroup_memory": "23"}, EAT, (34, 0)),
        ({"cgroup_memory": "25"}, EAT, (34, 102)),
        (
            {"system_periodic_hold": "JobStatus == 2", "system_periodic_hold_subcode": 8},
            "exec sleep 300",
            (26, 8),
        ),
    ],
    ids=["runtime", "startd_memory", "cgroup_23", "cgroup_25", "system_periodic_hold"],
)
def test_policies_of_the_site(
    pool: Pool, settings: Dict[str, Any], script: str, expected: Tuple[int, int]
) -> None:
    """Settings of the pool hold a job that really breaks the rule, with the pool's codes."""
    control.configure(pool.state, **settings)
    cluster = pool.submit(script, request_memory="64")
    held = pool.wait_for(cluster, "JOB_HELD")
    assert (held["HoldReasonCode"], held["HoldReasonSubCode"]) == expected


def test_execute_duration_does_not_fire_without_transfer(pool: Pool) -> None:
    """As before 24.0.19; with the setting for newer pools it does."""
    limits = {"allowed_execute_duration": "1"}
    old = pool.submit(**limits)
    pool.wait_for(old, "EXECUTE")
    time.sleep(1.3)
    assert pool.status(old) == 2
    control.configure(pool.state, execute_duration_needs_transfer=False)
    assert pool.wait_for(old, "JOB_HELD")["HoldReasonCode"] == 47


# ---- the schedd ---------------------------------------------------------------------------------


def test_a_schedd_of_before_a_restart_is_stale(pool: Pool) -> None:
    """After a restart only a Schedd made anew answers; running jobs are found again."""
    go = pool.work / "go"
    cluster = pool.submit(f"until [ -e {go} ]; do sleep 0.05; done; exit 3")
    pool.wait_for(cluster, "EXECUTE")
    schedd = pool.htcondor2.Schedd()
    control.restart_schedd(pool.state)
    with pytest.raises(pool.htcondor2.HTCondorException, match="CEDAR:6001:Failed to connect to <"):
        schedd.query()
    assert len(pool.htcondor2.Schedd().query()) == 1
    pool.wait_for(cluster, "JOB_RECONNECTED")
    go.touch()
    pool.wait_for(cluster, "JOB_TERMINATED")
    assert pool.types(cluster)[2:] == ["JOB_DISCONNECTED", "JOB_RECONNECTED", "JOB_TERMINATED"]


def test_while_the_schedd_is_down_nothing_answers_and_nothing_is_written(pool: Pool) -> None:
    """Every call raises with the real words; a job's end is told when the schedd is back."""
    schedd, failure = pool.htcondor2.Schedd(), pool.htcondor2.HTCondorException
    go, gone = pool.work / "go", pool.work / "gone"
    cluster = pool.submit(f"until [ -e {go} ]; do sleep 0.05; done; touch {gone}; exit 3")
    pool.wait_for(cluster, "EXECUTE")
    control.schedd_down(pool.state)
    go.touch()
    with pytest.raises(failure, match="Unable to locate local daemon"):
        pool.htcondor2.Schedd()
    with pytest.raises(failure, match="Error when performing action on the schedd"):
        schedd.act(pool.htcondor2.JobAction.Remove, f"{cluster}.0")
    with pytest.raises(failure, match="Failed to connect to <"):
        schedd.history("true")
    pool.wait(gone.exists)
    time.sleep(0.3)
    assert pool.types(cluster) == ["SUBMIT", "EXECUTE"]
    control.schedd_up(pool.state)
    assert pool.wait_for(cluster, "JOB_TERMINATED")["ReturnValue"] == 3


def test_the_collector_knows_one_schedd(pool: Pool) -> None:
    """By its name, by type and among all; not another's."""
    collector, schedd = (
        pool.htcondor2.Collector("pool.example.org"),
        pool.htcondor2.DaemonType.Schedd,
    )
    found = collector.locate(schedd, "fake@localhost")
    assert collector.locate(schedd, "other@localhost") is None
    assert [ad["MyAddress"] for ad in collector.locateAll(schedd)] == [found["MyAddress"]]
    pool.htcondor2.Schedd(found).reschedule()
    control.configure(pool.state, collector="down")
    with pytest.raises(pool.htcondor2.HTCondorException, match="communication with collector"):
        collector.locateAll(schedd)


def test_a_root_owner_is_refused(pool: Pool) -> None:
    """As a real schedd, it refuses jobs of root, in its words."""
    control.configure(pool.state, owner="root")
    with pytest.raises(pool.htcondor2.HTCondorException, match='owner to "root" is not permitted'):
        pool.submit()


def test_two_processes_see_one_pool(pool: Pool) -> None:
    """What this process submits another one removes."""
    cluster = pool.submit()
    pool.wait_for(cluster, "EXECUTE")
    text = (
        "import htcondor2 as h\n"
        f"print(h.Schedd().act(h.JobAction.Remove, '{cluster}.0')['TotalSuccess'])"
    )
    env = simulated_htcondor.environment(Path(pool.state))
    shown = subprocess.run(
        [sys.executable, "-c", text], env=env, capture_output=True, text=True, timeout=120
    )
    assert shown.stdout == "1\n", shown.stderr
    pool.wait_for(cluster, "JOB_ABORTED")


def test_processes_of_a_removed_job_are_ended(pool: Pool) -> None:
    """Also those that ignore SIGTERM and have left the job's session."""
    pid = pool.work / "pid"
    cluster = pool.submit(f"trap '' TERM; setsid sleep 300 & echo $! > {pid}; sleep 300")
    pool.wait(lambda: pid.exists() and pid.read_text().endswith("\n"))
    schedd = pool.htcondor2.Schedd()
    schedd.act(pool.htcondor2.JobAction.Remove, f"{cluster}.0")
    pool.wait(lambda: not alive(int(pid.read_text())))


def alive(pid: int) -> bool:
    """Tell whether a process runs (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except OSError:
        return False


# ---- many jobs ----------------------------------------------------------------------------------


def test_ten_thousand_jobs_without_processes(pool: Pool) -> None:
    """Injected jobs are in queue and log, cost no process, and are listed in little CPU time."""
    logs = pool.work / "logs"
    logs.mkdir()
    clusters = control.inject(pool.state, 10_000, PulsarManager="x")
    some = control.inject(pool.state, 3, log_folder=str(logs))
    schedd = pool.htcondor2.Schedd()
    began = time.process_time()
    found = schedd.query('PulsarManager =?= "x"', ["ClusterId", "JobStatus"])
    assert time.process_time() - began < 10  # half a second on an idle machine
    assert (len(found), found[0]["JobStatus"], clusters[-1]) == (10_000, 2, 10_000)
    control.end_injected(pool.state, some, exit_code=2)
    reader = pool.htcondor2.JobEventLog(str(logs / f"{some[0]}.log"))
    seen = [event.type.name for event in reader.events(0)]
    reader.close()
    assert seen == ["SUBMIT", "EXECUTE", "JOB_TERMINATED"]
    assert schedd.history(f"ClusterId == {some[0]}")[0]["ExitCode"] == 2


# ---- expressions and settings -------------------------------------------------------------------

AD = {"JobStatus": "2", "Name": '"Bob"', "Twice": "2 * JobStatus", "Loop": "Loop", "List": "{1, 2}"}
UNDEFINED, ERROR = expressions.UNDEFINED, expressions.ERROR


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3", 7),
        ("7 / 2", 3),
        ("-7 / 2", -3),
        ("7.0 / 2", 3.5),
        ("1 / 0", ERROR),
        ("JobStatus == 2 && Twice == 4", True),
        ("MY.jobstatus", 2),
        ("TARGET.Memory >= 64", True),
        ("Missing", UNDEFINED),
        ("Missing > 3", UNDEFINED),
        ("Missing =?= undefined", True),
        ("Missing && false", False),
        ("Missing || true", True),
        ("!Missing", UNDEFINED),
        ("Missing ?: 5", 5),
        ("JobStatus == 2 ? 1 : 0", 1),
        ('Name == "bob"', True),
        ('Name =?= "bob"', False),
        ("Name == 3", ERROR),
        ('ifThenElse(isUndefined(Missing), "a;b", 1)', "a;b"),
        ('stringListMember("b", "a, b")', True),
        ("member(2, List)", True),
        ('regexp("^b", Name, "i")', True),
        ("noSuchFunction(1)", ERROR),
        ("Loop", ERROR),
    ],
)
def test_expressions(text: str, value: Any) -> None:
    """ClassAd expressions have the values that the ClassAd language gives them."""
    found = expressions.evaluate(text, AD, {"Memory": "128"})
    assert found is value if isinstance(value, expressions.Special) else found == value


@pytest.mark.parametrize("text", ["", "1 +", "(1", "a b", "f(1,", "$x"])
def test_what_is_no_expression_is_told(text: str) -> None:
    """A text that is no expression raises ParseError."""
    with pytest.raises(expressions.ParseError):
        expressions.parse(text)


def test_an_unknown_setting_is_told(tmp_path: Path) -> None:
    """The error lists the known settings."""
    with pytest.raises(
        StateError, match="unknown settings walltime; known: .*system_periodic_hold"
    ):
        Store(str(tmp_path)).configure(walltime=3)


def test_a_missing_state_folder_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without FAKE_HTCONDOR_STATE the error names the variable."""
    monkeypatch.delenv("FAKE_HTCONDOR_STATE", raising=False)
    with pytest.raises(StateError, match="set FAKE_HTCONDOR_STATE"):
        open_store()


def test_a_removed_state_folder_ends_its_runners(pool: Pool) -> None:
    """A test that removes its folder leaves no process behind."""
    cluster = pool.submit()
    pool.wait_for(cluster, "EXECUTE")
    with Store(pool.state).look() as queue:
        runner = queue.get(cluster).extra["runner"][0]
    os.rename(pool.state, pool.state + ".gone")
    pool.wait(lambda: not alive(runner))
    os.rename(pool.state + ".gone", pool.state)


def test_command_line(pool: Pool) -> None:
    """``python -m fake_htcondor`` configures, holds, shows and removes; a mistake is exit 2."""
    env = simulated_htcondor.environment(Path(pool.state))

    def run(*words: str) -> Any:
        argv = [sys.executable, "-m", "fake_htcondor", pool.state, *words]
        return subprocess.run(argv, env=env, capture_output=True, text=True, timeout=120)

    cluster = pool.submit()
    pool.wait_for(cluster, "EXECUTE")
    assert run("configure", "startd_hold_runtime=6000", "owner=alice").returncode == 0
    assert run("hold", str(cluster), "26", "7", "the site's rule").returncode == 0
    assert run("show").stdout == f"{cluster}\t5\t26\t7\tthe site's rule\n"
    assert run("remove", str(cluster)).returncode == 0
    assert pool.wait_for(cluster, "JOB_ABORTED")["Reason"] == "by user admin"
    refused = run("play", "99", "1 explode")
    assert (refused.returncode, "SECONDS VERB" in refused.stderr) == (2, True)
