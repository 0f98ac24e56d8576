"""The seams are in place in each way that sites start Pulsar."""

from __future__ import annotations

import contextlib
import json
import pathlib
import shutil
import subprocess
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Tuple

import pytest

from tests.ports import free_port

from . import environments, servers
from .conftest import MakeEnvironment
from .environments import NEWEST, OLDEST, TOO_OLD, Environment

pytestmark = pytest.mark.launcher

# The metadata file `runner_state` as DESIGN section 2 describes it, typed by hand.
RECORD: Dict[str, Any] = {
    "runner_state": "walltime_reached",
    "message": "killed after 62 s: the job's walltime limit is 60 s (Slurm job 4, node1)",
    "cause": "walltime",
    "fault": "job",
    "confidence": "controller",
    "drm": "slurm",
    "external_id": "4",
    "requested": {"walltime_s": 60},
    "used": {"walltime_s": 62},
    "evidence": [{"source": "scontrol", "field": "JobState", "value": "TIMEOUT"}],
    "recorded_at": "2026-03-01T12:00:00Z",
}
OUR_KEYS = {"runner_state", "runner_state_message", "failure_reason"}


def job(status: str = "failed", **changes: Any) -> str:
    """Return a command line that makes the stub end a job with this status and our record."""
    return json.dumps({"status": status, "record": dict(RECORD, **changes)})


def assert_carries_the_reason(payload: Dict[str, Any]) -> None:
    """Fail unless the payload says that the job reached its walltime."""
    assert payload["status"] == "failed"
    assert payload["runner_state"] == "walltime_reached"
    assert payload["runner_state_message"] == RECORD["message"]
    assert payload["failure_reason"]["cause"] == "walltime"
    assert payload["failure_reason"]["requested"] == {"walltime_s": 60}


class Launcher(NamedTuple):
    """A way to start a Pulsar with a REST interface."""

    kind: str
    command: Callable[[Environment, pathlib.Path, int], List[str]]
    app_factory: str = "pulsar.web.wsgi:app_factory"


def _pulsar_serve(environment: Environment, folder: pathlib.Path, port: int) -> List[str]:
    return [environment.script("pulsar-serve"), str(folder / "server.ini")]


def _gunicorn(environment: Environment, folder: pathlib.Path, port: int) -> List[str]:
    return [environment.script("gunicorn"), "--paste", str(folder / "server.ini"),
            "--bind", "127.0.0.1:%d" % port, "--workers", "2"]


def _run(launcher: Callable[..., List[str]]) -> Callable[..., List[str]]:
    def command(environment: Environment, folder: pathlib.Path, port: int) -> List[str]:
        script, *arguments = launcher(environment, folder, port)
        name = pathlib.PurePath(script).name
        return [environment.script("pulsar-failure-reasons"), "run", name] + arguments

    return command


OUR_FACTORY = "pulsar_failure_reasons.wsgi:app_factory"
LAUNCHERS = {
    "pulsar_serve": Launcher("wheel", _pulsar_serve),
    "gunicorn_prefork": Launcher("wheel", _gunicorn),
    "pulsar_serve_editable": Launcher("editable", _pulsar_serve),
    "gunicorn_prefork_editable": Launcher("editable", _gunicorn),
    "no_pth_run_pulsar_serve": Launcher("no_pth", _run(_pulsar_serve)),
    "no_pth_run_gunicorn": Launcher("no_pth", _run(_gunicorn)),
    "no_pth_wsgi_factory": Launcher("no_pth", _gunicorn, OUR_FACTORY),
}


@pytest.mark.parametrize(
    "name, pulsar",
    [(name, NEWEST) for name in LAUNCHERS]
    + [(name, OLDEST) for name in ("pulsar_serve", "gunicorn_prefork", "no_pth_run_gunicorn")],
)
def test_a_rest_server_tells_the_reason(
    name: str, pulsar: str, shared_environment: MakeEnvironment, tmp_path: pathlib.Path
) -> None:
    """Every worker of a REST server knows the plugin's manager and sends the reason."""
    launcher = LAUNCHERS[name]
    environment = shared_environment(launcher.kind, pulsar)
    port = free_port()
    servers.write_configuration(tmp_path, {"type": "stub"}, port, launcher.app_factory)
    with servers.running(launcher.command(environment, tmp_path, port), tmp_path, port) as server:
        server.wait_until_it_answers()
        assert_carries_the_reason(server.run_job("1", job()))
        for _ in range(6):  # so that both workers have been asked, most likely
            assert_carries_the_reason(server.terminal_payload("1"))
        assert not OUR_KEYS & set(server.run_job("2", job("complete")))


@pytest.mark.parametrize("kind, arguments, pulsar", [
    ("wheel", ["--app_conf_path", "app.yml"], NEWEST),
    ("wheel", ["--ini_path", "server.ini"], NEWEST),
    ("wheel", ["--app_conf_path", "app.yml"], OLDEST),
    ("editable", [], NEWEST),
    ("no_pth", ["--app_conf_path", "app.yml"], NEWEST),
], ids=["app_yml", "ini", "app_yml_oldest", "editable", "no_pth_run"])
def test_a_webless_pulsar_main_tells_the_reason(
    kind: str, arguments: List[str], pulsar: str, shared_environment: MakeEnvironment,
    tmp_path: pathlib.Path,
) -> None:
    """A webless `pulsar-main` sends the reason with its terminal message, through the relay."""
    environment = shared_environment(kind, pulsar)
    command = [environment.script("pulsar-main")]
    if kind == "no_pth":
        command = [environment.script("pulsar-failure-reasons"), "run", "pulsar-main"]
    with webless(command + ["-c", str(tmp_path)] + arguments, tmp_path, "stub") as (_, relay):
        assert_carries_the_reason(relay.run_job("1", job()))


@contextlib.contextmanager
def webless(
    command: List[str], folder: pathlib.Path, manager_type: str
) -> Iterator[Tuple[servers.Server, servers.Relay]]:
    """Run a Pulsar that is bound to a relay and has no REST interface."""
    with servers.relay() as relay:
        servers.write_configuration(
            folder, {"type": manager_type}, message_queue_url=relay.url,
            message_queue_username="pulsar", message_queue_password="x")
        with servers.running(command, folder) as server:
            yield server, relay


IN_PROCESS = """
import json, sys, time
folder, install, job = sys.argv[1:]
if install == "install":
    import pulsar_failure_reasons
    pulsar_failure_reasons.install()
    pulsar_failure_reasons.install()
from pulsar.core import PulsarApp
from pulsar import manager_endpoint_util
app = PulsarApp(**dict(json.load(open(folder + "/app.yml")), message_queue_url="memory://"))
manager = app.only_manager
from pulsar.client.amqp_exchange_factory import get_exchange
exchange, messages = get_exchange("memory://", manager.name, {}), []
def take(body, message):
    messages.append(body)
    message.ack()
import threading
threading.Thread(target=lambda: exchange.consume("status_update", take), daemon=True).start()
from kombu.transport.memory import Transport
while not [name for name in Transport.global_state.queue_index if "status_update" in name]:
    time.sleep(0.05)  # a message for which there is no queue yet is thrown away
manager_endpoint_util.submit_job(
    manager, {"job_id": "1", "command_line": job, "setup": True, "setup_params": {"job_id": "1"}})
deadline = time.monotonic() + 120
while not [m for m in messages if m["complete"] == "true"] and time.monotonic() < deadline:
    time.sleep(0.05)
print(json.dumps([m for m in messages if m["complete"] == "true"][0]))
app.shutdown()
"""


@pytest.mark.parametrize("kind, install, pulsar", [
    ("wheel", "", NEWEST), ("editable", "", NEWEST), ("no_pth", "install", NEWEST),
    ("wheel", "", OLDEST), ("wheel", "install", NEWEST),
], ids=["pth", "pth_editable", "install_by_hand", "pth_oldest", "both"])
def test_an_embedded_app_tells_the_reason(
    kind: str, install: str, pulsar: str, shared_environment: MakeEnvironment,
    tmp_path: pathlib.Path,
) -> None:
    """An in-process PulsarApp sends the reason over AMQP (in memory), with and without a `.pth`."""
    servers.write_configuration(tmp_path, {"type": "stub"})
    completed = subprocess.run(
        [str(shared_environment(kind, pulsar).python), "-c", IN_PROCESS, str(tmp_path), install,
         job()],
        cwd=str(tmp_path), timeout=600, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        universal_newlines=True,
    )
    assert completed.returncode == 0, completed.stderr
    assert_carries_the_reason(json.loads(completed.stdout.splitlines()[-1]))


class Started:
    """Starts `pulsar-serve` in a folder of this test."""

    def __init__(self, tmp_path: pathlib.Path) -> None:
        self._folder = tmp_path

    def __call__(self, environment: Environment, manager_type: str, **env: str) -> Any:
        port = free_port()
        servers.write_configuration(self._folder, {"type": manager_type}, port)
        return servers.running(
            _pulsar_serve(environment, self._folder, port), self._folder, port, env)


@pytest.fixture
def start(tmp_path: pathlib.Path) -> Started:
    """Start `pulsar-serve`."""
    return Started(tmp_path)


def test_the_switch_stops_the_keys_and_keeps_the_managers(
    shared_environment: MakeEnvironment, start: Started
) -> None:
    """With PULSAR_FAILURE_REASONS=off the manager is there and the payload is stock Pulsar's."""
    with start(shared_environment("wheel"), "stub", PULSAR_FAILURE_REASONS="off") as server:
        server.wait_until_it_answers()
        payload = server.run_job("1", job())
        assert payload["status"] == "failed"
        assert not OUR_KEYS & set(payload)


def test_what_no_reason_is_sent_for(shared_environment: MakeEnvironment, start: Started) -> None:
    """Observe-only, a job without a record and an unreadable record add nothing to a payload."""
    with start(shared_environment("wheel"), "stub") as server:
        server.wait_until_it_answers()
        for job_id, command_line in {
            "observe_only": job(observe_only=True),
            "no_record": json.dumps({"status": "failed"}),
            "no_object": json.dumps({"status": "failed", "record": "walltime"}),
            "unknown_cause": job(cause="gremlins"),
        }.items():
            payload = server.run_job(job_id, command_line)
            assert payload["status"] == "failed", job_id
            assert not OUR_KEYS & set(payload), job_id
        assert_carries_the_reason(server.run_job("still_well", job()))


def test_a_broken_foreign_entry_point_is_left_out(
    make_environment: MakeEnvironment, start: Started
) -> None:
    """Another distribution's broken manager costs one log line that names it, and nothing else."""
    environment = make_environment()
    environments.add_distribution(environment, "rotten-managers", {
        "rotten": "module_that_is_not_there:Manager"})
    with start(environment, "stub") as server:
        server.wait_until_it_answers()
        lines = [line for line in server.log().splitlines() if "rotten-managers" in line]
        assert len(lines) == 1, lines
        assert "No module named 'module_that_is_not_there'" in lines[0]
        assert_carries_the_reason(server.run_job("1", job()))


@pytest.mark.parametrize("manager_type, said", [
    ("rotten", "No module named 'module_that_is_not_there'"),
    ("stubb", "did you mean 'stub'?"),
])
def test_a_type_that_is_not_there_ends_the_start_with_a_clear_line(
    manager_type: str, said: str, make_environment: MakeEnvironment, tmp_path: pathlib.Path
) -> None:
    """Where stock Pulsar raises a bare KeyError, the last line says why the type is missing."""
    environment = make_environment()
    environments.add_distribution(environment, "rotten-managers", {
        "rotten": "module_that_is_not_there:Manager"})
    servers.write_configuration(tmp_path, {"type": manager_type})
    with servers.running([environment.script("pulsar-main"), "-c", str(tmp_path)],
                         tmp_path) as server:
        assert server.wait_for_exit() != 0
        last = server.log().rstrip().splitlines()[-1]
        assert repr(manager_type) in last
        assert said in last


@pytest.mark.parametrize("override", ["", "1"])
def test_a_name_that_stock_pulsar_has_too(
    override: str, make_environment: MakeEnvironment, start: Started
) -> None:
    """Stock wins a clash of names unless the override is set, and the log says which was taken."""
    environment = make_environment()
    environments.add_distribution(environment, "greedy-managers", {
        "unqueued": "stub_managers:StubManager"})
    switch = {"PULSAR_FAILURE_REASONS_OVERRIDE": override} if override else {}
    with start(environment, "unqueued", **switch) as server:
        server.wait_until_it_answers()
        (line,) = [line for line in server.log().splitlines() if "greedy-managers" in line]
        foreign = "stub_managers:StubManager of greedy-managers"
        expected = (foreign, "Pulsar's own") if override else ("Pulsar's own", foreign)
        assert "'unqueued': %s is used, not %s" % expected in line
        # The stub fails every job as told; stock runs the JSON as a command.
        payload = server.run_job("1", job())
        assert ("runner_state" in payload) == bool(override)


@pytest.mark.parametrize("command", ["pulsar-serve", "pulsar-main"])
def test_the_package_is_gone_and_its_pth_stays(
    command: str, make_environment: MakeEnvironment, start: Started, tmp_path: pathlib.Path
) -> None:
    """A stale `.pth` costs one log line; stock Pulsar runs, and other Pythons notice nothing."""
    environment = make_environment()
    for path in environment.site_packages.glob("pulsar_failure_reasons*"):
        if path.is_dir():
            shutil.rmtree(path)
    assert (environment.site_packages / "pulsar_failure_reasons.pth").exists()
    quiet = subprocess.run([str(environment.python), "-c", "import json"], timeout=600,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert (quiet.returncode, quiet.stdout) == (0, b"")
    if command == "pulsar-serve":
        with start(environment, "unqueued") as server:
            server.wait_until_it_answers()
            payload, log = server.run_job("1", "true"), server.log()
    else:
        with webless([environment.script(command), "-c", str(tmp_path)], tmp_path,
                     "unqueued") as (server, relay):
            payload, log = relay.run_job("1", "true"), server.log()
    assert payload["status"] == "complete"
    lines = [line for line in log.splitlines() if "failure-reasons" in line]
    assert len(lines) == 1, lines


def test_a_too_old_pulsar_runs_as_if_we_were_not_there(
    shared_environment: MakeEnvironment, start: Started
) -> None:
    """A server that uses no manager of ours starts on an old Pulsar; one line says what lacks."""
    with start(shared_environment("wheel", TOO_OLD), "unqueued") as server:
        server.wait_until_it_answers()
        assert server.run_job("1", "true")["status"] == "complete"
        lines = [line for line in server.log().splitlines() if "failure-reasons" in line]
        assert len(lines) == 1, lines
        assert "pulsar-app 0.15.15 is too old" in lines[0]


def test_a_too_old_pulsar_refuses_our_managers_in_one_line(
    shared_environment: MakeEnvironment, tmp_path: pathlib.Path
) -> None:
    """`type: queued_slurm` on an old Pulsar ends the start; the last line says what to do."""
    environment = shared_environment("wheel", TOO_OLD)
    servers.write_configuration(tmp_path, {"type": "queued_slurm"})
    with servers.running([environment.script("pulsar-main"), "-c", str(tmp_path)],
                         tmp_path) as server:
        assert server.wait_for_exit() != 0
        last = server.log().rstrip().splitlines()[-1]
        assert "pulsar-app 0.15.15 is too old" in last
        assert "pip install 'pulsar-app>=0.15.16'" in last
