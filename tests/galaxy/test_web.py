"""A real Galaxy web server, driven over its HTTP API: nothing of the tests is inside it."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import urllib.request
from pathlib import Path
from typing import Any, Dict, Iterator, Optional

import pytest
import yaml

from tests.galaxy.galaxy import NEWEST, PATIENCE_S, ROOT, python_of, settings
from tests.galaxy.job_conf import (
    LITTLE_MEMORY,
    OURS,
    QUICK,
    STOCK,
    TIGHT,
    JobConf,
    make_slurm,
    rule,
)
from tests.galaxy.tools import write_tools
from tests.ports import free_port
from tests.pulsar_server import PulsarServer, wait_until
from tests.simulated import control

pytestmark = pytest.mark.galaxy

#: What gives Galaxy's own classes what ours have.
OPT_IN = {"PULSAR_FAILURE_REASONS_GALAXY": "1"}
#: Tool -> (its runner, condition of its rule, state that it comes to).
JOBS = {
    "walltime__sleeps": ("ours", "walltime_reached", "ok"),
    "memory__hogs": ("opted_in", "memory_limit_reached", "ok"),
    "tool__fails": ("opted_in", "tool_detected_failure", "ok"),
    "other_rule__sleeps": ("ours", "memory_limit_reached", "error"),
}


class Web:
    """A started server and a user of it."""

    def __init__(self, url: str, key: str) -> None:
        self.url = url
        self.key = key

    def ask(self, path: str, content: Optional[Dict[str, Any]] = None) -> Any:
        """Return the answer of the API to a GET, or to a POST of this content."""
        request = urllib.request.Request(
            f"{self.url}/api/{path}", None if content is None else json.dumps(content).encode(),
            {"x-api-key": self.key, "Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return json.load(answer)

    def answers(self) -> bool:
        """Tell whether the server is up."""
        try:
            return bool(self.ask("version"))
        except OSError:
            return False


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    """Slurm (simulated), Pulsar, and Galaxy's server with a user."""
    home = tmp_path_factory.mktemp("web")
    slurm = make_slurm(home)
    pulsar = PulsarServer(home / "pulsar", {"manager": QUICK}, control.environment(slurm))
    master = Web(f"http://127.0.0.1:{free_port()}", secrets.token_hex(12))
    server = _start(home / "galaxy", _job_conf(pulsar), master)
    try:
        pulsar.start()
        wait_until(lambda: server.poll() is not None or master.answers(), PATIENCE_S,
                   f"Galaxy to answer at {master.url} (see {home})", 0.5)
        assert server.poll() is None, (home / "galaxy" / "web.log").read_text()[-3000:]
        user = master.ask("users", {"username": "someone", "email": "someone@example.org",
                                    "password": secrets.token_hex(12)})
        yield Web(master.url, master.ask(f"users/{user['id']}/api_key", {}))
    finally:
        server.terminate()
        try:
            server.wait(timeout=60)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
        pulsar.stop()
        control.stop_all(slurm)


def _job_conf(pulsar: PulsarServer) -> JobConf:
    conf = JobConf()
    conf.runner("ours", f"{OURS}:PulsarRESTJobRunner")
    conf.runner("opted_in", f"{STOCK}:PulsarRESTJobRunner")  # by OPT_IN
    for tool, (runner, condition, _) in JOBS.items():
        conf.tool(tool, conf.environment(
            f"for_{tool}", runner, [rule(condition)], url=pulsar.url,
            default_file_action="transfer",
            submit_native_specification=LITTLE_MEMORY if "hogs" in tool else TIGHT))
    return conf


def _start(home: Path, conf: JobConf, master: Web) -> "subprocess.Popen[bytes]":
    write_tools(home, conf.tools)
    (home / "job_conf.yml").write_text(yaml.safe_dump(conf.content))
    (home / "galaxy.yml").write_text(yaml.safe_dump({"galaxy": {
        **settings(home, "main"), "bootstrap_admin_api_key": master.key,
        "galaxy_infrastructure_url": master.url,
    }}))
    python = python_of(NEWEST)
    path = os.pathsep.join([os.path.dirname(python), os.environ.get("PATH", os.defpath)])
    with open(home / "web.log", "wb") as log:
        return subprocess.Popen(
            [python, "-m", "uvicorn", "--factory", "galaxy.webapps.galaxy.fast_factory:factory",
             "--host", "127.0.0.1", "--port", master.url.rpartition(":")[2]],
            cwd=home, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            env={**os.environ, "PATH": path, "GALAXY_CONFIG_FILE": str(home / "galaxy.yml"),
                 "PYTHONPATH": str(ROOT), **OPT_IN},
        )


def test_jobs_over_the_api(web: Web) -> None:
    """Jobs that a user submits are resubmitted by reason, and told why where no rule fits."""
    history = web.ask("histories", {"name": "h"})["id"]
    jobs = {tool: web.ask("tools", {"tool_id": tool, "history_id": history, "inputs": {}})
            ["jobs"][0]["id"] for tool in JOBS}

    def states() -> Dict[str, str]:
        return {tool: web.ask(f"jobs/{job_id}")["state"] for tool, job_id in jobs.items()}

    wait_until(lambda: all(state in ("ok", "error", "deleted") for state in states().values()),
               PATIENCE_S, "the jobs to end", 1)
    assert states() == {tool: state for tool, (_, _, state) in JOBS.items()}
    contents = web.ask(f"histories/{history}/contents?details=all&v=dev")
    told = {item["name"] + item["state"]: item["misc_info"] for item in contents}
    assert any("walltime limit is 60 s" in (text or "") for text in told.values()), told
