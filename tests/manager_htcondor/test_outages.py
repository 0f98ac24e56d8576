"""A schedd that is down, restarted, hanging or odd: no status changes, nobody waits."""

from __future__ import annotations

import socket
import threading
from pathlib import Path
from typing import Any, Callable, Iterator, List

import pytest

from pulsar_failure_reasons.errors import DrmUnreachableError, OutputParseError
from pulsar_failure_reasons.managers.htcondor_source import HTCondorSource
from tests.pulsar_in_process import reason_of
from tests.pulsar_server import wait_until
from tests.simulated_htcondor import environment, wheel_installed

from .conftest import MakePulsar
from .harness import HELD, RUNNING, Pool, Pulsar

OVER = "Job has gone over cgroup memory limit of 2048 megabytes."


def _messages(caplog: pytest.LogCaptureFixture, part: str) -> List[str]:
    return [r.getMessage() for r in caplog.records if part in r.getMessage()]


def _wait_for_failed_looks(pulsar: Pulsar, count: int) -> None:
    counters = pulsar.observer().counters
    target = counters.failed_passes + count
    wait_until(lambda: counters.failed_passes >= target, 60, "looks without an answer", 0.02)


@pytest.fixture
def odd_bindings(
    tmp_path: Path, pool: Pool
) -> Iterator[Callable[[str], None]]:
    """Have calls of the bindings run this code instead; "" gives the pool back."""
    folder = tmp_path / "odd"
    folder.mkdir()
    path = environment(pool.state)["PYTHONPATH"]

    # Not the fixture monkeypatch, which outlives the pool and would leave its environment behind.
    with pytest.MonkeyPatch.context() as patch:

        def replace(code: str) -> None:
            (folder / "htcondor2.py").write_text(code)
            patch.setenv("PYTHONPATH", f"{folder}:{path}" if code else path)

        yield replace


def test_schedd_down(
    make_pulsar: MakePulsar, pool: Pool, caplog: pytest.LogCaptureFixture
) -> None:
    """An outage changes no status and uses up no grace; it is logged once, as is its end."""
    pulsar = make_pulsar(missing_grace=0, hold_grace=0)
    pulsar.submit("1", "while [ ! -e ../go ]; do sleep 0.05; done")
    pulsar.wait_for("1", "running")
    pool.schedd_down()
    _wait_for_failed_looks(pulsar, 2)
    (pulsar.directory("1") / "go").touch()
    wait_until((pulsar.directory("1") / "return_code").exists, 60, "the tool to end", 0.02)
    _wait_for_failed_looks(pulsar, 1)
    assert pulsar.status("1") == "running"
    assert len(_messages(caplog, "HTCondor gave no usable answer")) == 1
    assert _messages(caplog, "answers again") == []
    pool.schedd_up()
    assert pulsar.end("1")["status"] == "complete"
    assert len(_messages(caplog, "HTCondor answers again")) == 1
    assert len(_messages(caplog, "HTCondor gave no usable answer")) == 1


def test_schedd_restarted_is_no_outage(
    pulsar: Pulsar, pool: Pool, caplog: pytest.LogCaptureFixture
) -> None:
    """A schedd at another address is found in the same look, and the next job goes there."""
    pulsar.submit("1", "sleep 600")
    pulsar.wait_for("1", "running")
    before = pulsar.observer().source._location
    pool.schedd_up()
    wait_until(lambda: pulsar.observer().source._location != before, 60, "the new address", 0.02)
    pool.schedd_up()
    second = pulsar.submit("2", "sleep 600", f"0.1 hold 34 102 {OVER}")
    assert reason_of(pulsar.end("2")) == "memory"
    pool.wait_gone(second)
    assert pulsar.status("1") == "running"
    assert _messages(caplog, "no usable answer") == []
    assert pulsar.observer().counters.failed_passes == 0


def test_submission_while_the_schedd_is_down(pulsar: Pulsar, pool: Pool) -> None:
    """It fails, as in stock; whether there is a job nobody knows, and that is said."""
    pool.schedd_down()
    pulsar.submit("1")
    payload = pulsar.end("1")
    assert (payload["status"], reason_of(payload)) == ("failed", "lost")


def test_restart_of_pulsar_in_an_outage(make_pulsar: MakePulsar, pool: Pool) -> None:
    """Running stays running and queued stays queued over a restart while the schedd is down."""
    pulsar = make_pulsar(missing_grace=0)
    pulsar.submit("runs", "sleep 600")
    waits = pulsar.submit("waits", "true", requirements="(1 == 2)")
    pulsar.wait_for("runs", "running")
    pulsar.wait_for_looks(2)
    pool.schedd_down()
    pulsar.shutdown()
    again = make_pulsar(missing_grace=0)
    assert {name: again.status(name) for name in ("runs", "waits")} == {
        "runs": "running", "waits": "queued"}
    _wait_for_failed_looks(again, 2)
    assert {name: again.status(name) for name in ("runs", "waits")} == {
        "runs": "running", "waits": "queued"}
    pool.schedd_up()
    pool.do("remove", waits)
    assert reason_of(again.end("waits")) == "cancelled"


@pytest.mark.parametrize("when", ["queued", "running", "held", "removing", "ended"])
def test_restart_of_pulsar_at_every_point(
    make_pulsar: MakePulsar, pool: Pool, when: str
) -> None:
    """A server that is stopped and started at any point of a memory hold tells the same end."""
    waits = when in ("held", "ended")
    options = {"wait_for_release": "memory", "hold_grace": 60} if waits else {}
    pulsar = make_pulsar(**options)
    commands = {"requirements": "(Go =?= true)"} if when == "queued" else {}
    external_id = pulsar.submit("1", "sleep 600", f"0.2 hold 34 102 {OVER}", **commands)
    if when == "queued":
        pulsar.wait_for_looks(2)
    if when == "running":
        pool.wait_for(external_id, RUNNING, HELD)
    if when == "held":
        pool.wait_for(external_id, HELD)
        pulsar.wait_for_looks(2)
    if when == "removing":
        wait_until(lambda: pulsar.record("1"), 60, "the record", 0.005)
    if when == "ended":
        pool.wait_for(external_id, HELD)
        pulsar.shutdown()
        pool.do("remove", external_id, "it is running out of memory (by user condor)")
    pulsar.shutdown()
    again = make_pulsar()
    if when == "queued":
        pool.do("edit", external_id, Go=True)
    payload = again.end("1")
    assert (payload["status"], reason_of(payload)) == ("failed", "memory")
    pool.wait_gone(external_id)


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("import os; os._exit(3)", id="dies"),
        pytest.param("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", id="crashes"),
        pytest.param("raise RuntimeError('odd')", id="raises"),
        pytest.param("print('WARNING: config'); import os; os._exit(0)", id="says_something_else"),
        pytest.param("print('[1, 2]'); import os; os._exit(0)", id="no_object"),
    ],
)
def test_unusable_answer(
    make_pulsar: MakePulsar, odd_bindings: Callable[[str], None], code: str,
    caplog: pytest.LogCaptureFixture
) -> None:
    """What cannot be read is no answer: no status changes; logged once."""
    pulsar = make_pulsar(missing_grace=0)
    pulsar.submit("1", "sleep 600")
    pulsar.wait_for("1", "running")
    odd_bindings(code)
    _wait_for_failed_looks(pulsar, 2)
    assert pulsar.status("1") == "running"
    assert len(_messages(caplog, "HTCondor gave no usable answer")) == 1


def test_warnings_of_the_library_are_read_past(
    pulsar: Pulsar, pool: Pool, odd_bindings: Callable[[str], None], tmp_path: Path
) -> None:
    """What a library prints before the answer is no harm."""
    fakes = environment(pool.state)["PYTHONPATH"].split(":")[0]
    odd_bindings(
        "print('WARNING: {}', end='')\nimport sys\nsys.path.pop(0)\ndel sys.modules['htcondor2']\n"
        f"sys.path.insert(0, {fakes!r})\nimport htcondor2\n")
    pulsar.submit("1", "true")
    assert pulsar.end("1")["status"] == "complete"


def test_hanging_schedd(
    make_pulsar: MakePulsar, pool: Pool, odd_bindings: Callable[[str], None],
    caplog: pytest.LogCaptureFixture
) -> None:
    """A call that hangs is ended after command_timeout; no request waits for it."""
    pulsar = make_pulsar(missing_grace=0)
    pulsar.submit("1", "sleep 600")
    pulsar.wait_for("1", "running")
    with pulsar.unseen():
        odd_bindings("import time; time.sleep(600)")
        pulsar.observer().source._timeout_s = 0.7
    _wait_for_failed_looks(pulsar, 1)
    told = pulsar.wait_for_an_answer_during_a_look(lambda: pulsar.manager().get_status("1"))
    assert told == "running"
    assert "did not answer within 0.7 s" in _messages(caplog, "no usable answer")[0]
    thread = pulsar.observer()._thread
    pulsar.shutdown()
    assert not thread.is_alive()


def test_real_bindings_at_a_silent_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wheel's own hang, at an address that accepts and says nothing, stops no thread."""
    if not wheel_installed():
        pytest.skip("the package htcondor is not installed")
    monkeypatch.setenv("CONDOR_CONFIG", "/dev/null")
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(4)
        address = "<127.0.0.1:%d>" % listener.getsockname()[1]
        source = HTCondorSource(timeout_s=2)
        source._location = {
            "MyType": "Scheduler", "Name": "silent", "MyAddress": address,
            "CondorVersion": "$CondorVersion: 23.9.6 2024-06-01 $",
        }
        # Once is enough: a call that stops the threads stops them each time.
        wait_until(lambda: _ticks_during_a_call(source) >= 5, 60, "another thread to go on")


def _ticks_during_a_call(source: HTCondorSource) -> int:
    """Return how often another thread ran during a call that hangs; of a hundred times."""
    ticks: List[int] = []
    over = threading.Event()

    def tick() -> None:
        while not over.wait(0.02):
            ticks.append(1)

    ticker = threading.Thread(target=tick)
    ticker.start()
    try:
        before = len(ticks)
        with pytest.raises(DrmUnreachableError, match="did not answer within 2 s"):
            source.query_ended(["1"])
        return len(ticks) - before
    finally:
        over.set()
        ticker.join()


def test_no_collector(tmp_path: Path, pool: Pool) -> None:
    """A collector that is down is an outage like any other."""
    pool.set(collector="down")
    with pytest.raises(DrmUnreachableError, match="Unable to locate local daemon"):
        HTCondorSource().query_jobs()


def test_no_python_at_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Inside uWSGI sys.executable is no Python: the one of the environment is taken."""
    from pulsar_failure_reasons.managers import htcondor_source

    monkeypatch.setattr("sys.executable", "/usr/bin/uwsgi")
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    assert htcondor_source._python() == str(tmp_path / "bin" / "python3")
    with pytest.raises(DrmUnreachableError, match="python3"):
        HTCondorSource().query_jobs()


def test_answer_without_an_object() -> None:
    """Anything but one JSON object on the last line is no answer."""
    from pulsar_failure_reasons.managers.htcondor_source import _answer_in

    assert _answer_in('noise\n{"ads": []}\n') == {"ads": []}
    assert [_answer_in(text) for text in ("", "\n", "7\n", '{"ads": [}\n', '{"a": 1}\nx\n')] == [
        None] * 5
    assert issubclass(OutputParseError, Exception)


def test_cancel_by_galaxy_while_the_schedd_is_down(
    make_pulsar: MakePulsar, pool: Pool
) -> None:
    """Cancelled at once for Galaxy, and taken out of HTCondor as soon as it answers."""
    pulsar = make_pulsar()
    external_id = pulsar.submit("1", "sleep 600")
    pulsar.wait_for("1", "running")
    pool.schedd_down()
    pulsar.proxy().kill("1")
    assert pulsar.status("1") == "cancelled"
    pool.schedd_up()
    pool.wait_gone(external_id)
    payload = pulsar.payload("1")
    assert (payload["status"], reason_of(payload), pulsar.record("1")) == ("cancelled", None, None)


def test_slow_file_system_of_one_log(pulsar: Pulsar, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log on a file system that hangs delays the look, and nobody who asks for a status."""
    import os

    pulsar.submit("1", "sleep 600")
    pulsar.wait_for("1", "running")
    hang, hanging = threading.Event(), threading.Event()
    over: List[bool] = []
    stat = os.stat

    def slow_stat(path: Any, *args: Any, **more: Any) -> Any:
        if str(path).endswith("job_condor.log") and threading.current_thread().name.startswith(
                "failure-reasons"):
            hanging.set()
            over.append(hang.wait(60))
        return stat(path, *args, **more)

    monkeypatch.setattr(os, "stat", slow_stat)
    assert hanging.wait(60)
    assert pulsar.status("1") == "running"
    pulsar.submit("2", "true")
    pulsar.proxy().kill("1")
    assert pulsar.status("1") == "cancelled"
    assert over == [], "somebody waited for the look"
    hang.set()
    assert pulsar.end("2")["status"] == "complete"


def test_two_looks_at_once(pulsar: Pulsar, pool: Pool) -> None:
    """A launch that looks for its job while the observer looks waits, and no longer than a call."""
    source = pulsar.observer().source
    usual_s, source._timeout_s = source._timeout_s, 0.3
    source._looking.acquire()
    try:
        with pytest.raises(DrmUnreachableError, match="has not come to its end"):
            source.query_jobs()
    finally:
        source._looking.release()
        source._timeout_s = usual_s
    assert source.query_jobs() == []
