"""What a real Galaxy does with a job that the DRM ended, for stock and our parts on each side.

All rows run in one Galaxy at once, one per release; each row is a tool with an environment of its
own. ``local`` is where a resubmitted job comes to an end: no limits there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Optional

import pytest

from tests.galaxy.galaxy import NEWEST, OLDEST, PATIENCE_S, Galaxy, times_resubmitted
from tests.galaxy.job_conf import (
    ENOUGH_MEMORY,
    LITTLE_MEMORY,
    OURS,
    QUICK,
    STOCK,
    TIGHT,
    TIGHT_DRMAA,
    JobConf,
    make_slurm,
    rule,
)
from tests.launchers import environments
from tests.pulsar_server import PulsarServer, wait_until
from tests.simulated import FAKES, control

pytestmark = pytest.mark.galaxy


class Row(NamedTuple):
    """One row of the table.

    ``runner`` is a name of RUNNERS, ``pulsar`` one of PULSARS (None: in Galaxy). ``where`` is the
    last environment, None for the row's own. ``says`` is part of what the user is told.
    """

    behaviour: str
    runner: str
    pulsar: Optional[str]
    rules: List[Dict[str, Any]]
    state: str
    resubmitted: int
    where: Optional[str] = None
    says: str = ""
    spec: str = TIGHT


RUNNERS = {
    "stock": (f"{STOCK}:PulsarRESTJobRunner", {}),
    "ours": (f"{OURS}:PulsarRESTJobRunner", {}),
    "retries": (f"{OURS}:PulsarRESTJobRunner", {"infrastructure_retries": 1}),
    "legacy": (f"{OURS}:PulsarLegacyJobRunner", {}),
    "embedded_stock": (f"{STOCK}:PulsarEmbeddedJobRunner", {}),
    "embedded": (f"{OURS}:PulsarEmbeddedJobRunner", {}),
    "embedded_mq": (f"{OURS}:PulsarEmbeddedMQJobRunner", {"amqp_url": "memory://"}),
}
STOCK_PULSARS = {"stock_0.16": "0.16.0", "stock_0.15": "0.15.16"}
TO_LOCAL = "local"
WALLTIME = [rule("walltime_reached")]
#: Twice more to the same place, then elsewhere.
AGAIN = [rule("walltime_reached and attempt < 3", "SELF"), rule("walltime_reached")]
TPV_TOOL = "tpv__hogs"
NODE_DIES = "--time=60 --no-requeue --comment=fake:node_failure=20"

ROWS = {
    # What stock parts do, on one side or on both.
    "stock_with_stock": Row("sleeps", "stock", "stock_0.16", WALLTIME, "error", 0),
    "stock_with_old_stock": Row("sleeps", "stock", "stock_0.15", WALLTIME, "error", 0),
    "stock_with_stock_unknown": Row(
        "sleeps", "stock", "stock_0.16", [rule("unknown_error")], "ok", 1, TO_LOCAL),
    "stock_with_ours": Row("sleeps", "stock", "ours", WALLTIME, "error", 0),
    "stock_with_ours_unknown": Row(
        "sleeps", "stock", "ours", [rule("unknown_error")], "ok", 1, TO_LOCAL),
    "ours_with_stock": Row("sleeps", "ours", "stock_0.16", WALLTIME, "error", 0),
    "ours_with_old_stock": Row("sleeps", "ours", "stock_0.15", WALLTIME, "error", 0),
    "ours_with_stock_unknown": Row(
        "sleeps", "ours", "stock_0.16", [rule("unknown_error")], "ok", 1, TO_LOCAL),
    "ours_with_unclassified": Row("sleeps", "ours", "ours/drmaa", WALLTIME, "error", 0),
    "ours_with_unclassified_unknown": Row(
        "sleeps", "ours", "ours/drmaa", [rule("unknown_error")], "ok", 1, TO_LOCAL),
    "stock_tool_fails": Row(
        "fails", "stock", "ours", [rule("tool_detected_failure"), rule("any_failure")],
        "error", 0),
    "stock_tool_out_of_memory": Row(
        "runs_out", "stock", "ours", [rule("memory_limit_reached")], "error", 0),
    # Ours on both sides, over REST.
    "walltime": Row("sleeps", "ours", "ours", WALLTIME, "ok", 1, TO_LOCAL),
    "memory": Row(
        "hogs", "ours", "ours", [rule("memory_limit_reached")], "ok", 1, TO_LOCAL, "",
        LITTLE_MEMORY),
    "walltime_memory_rule": Row(
        "sleeps", "ours", "ours", [rule("memory_limit_reached")], "error", 0, None,
        "time limit"),
    "fine": Row("fine", "ours", "ours", [rule("any_failure")], "ok", 0),
    "tool_fails": Row(
        "fails", "ours", "ours", [rule("tool_detected_failure")], "ok", 1, TO_LOCAL),
    "tool_fails_without_rule": Row("fails", "ours", "ours", WALLTIME, "error", 0),
    "tool_out_of_memory": Row(
        "runs_out", "ours", "ours", [rule("memory_limit_reached")], "ok", 1, TO_LOCAL),
    "again": Row("sleeps", "ours", "ours", AGAIN, "ok", 3, TO_LOCAL),
    "values": Row(
        "sleeps", "ours", "ours",
        [rule("walltime_reached and requested_walltime_s == 60 and used_walltime_s >= 60 and "
              "requested_memory_bytes == 419430400", delay="2")],
        "ok", 1, TO_LOCAL, "", ENOUGH_MEMORY),
    "node_failure": Row(
        "sleeps", "ours", "ours", [rule("node_failure and infrastructure_failure and "
                                        "not walltime_reached and unknown_error")],
        "ok", 1, TO_LOCAL, "", NODE_DIES),
    "infrastructure_retries": Row(
        "sleeps", "retries", "ours", [], "error", 1, None, "", NODE_DIES),
    "legacy": Row("sleeps", "legacy", "ours", WALLTIME, "ok", 1, TO_LOCAL),
    # Pulsar in Galaxy.
    "embedded_stock": Row("sleeps", "embedded_stock", None, WALLTIME, "error", 0),
    "embedded_walltime": Row("sleeps", "embedded", None, WALLTIME, "ok", 1, TO_LOCAL),
    "embedded_memory": Row(
        "hogs", "embedded", None, [rule("memory_limit_reached")], "ok", 1, TO_LOCAL, "",
        LITTLE_MEMORY),
    "embedded_tool_fails": Row(
        "fails", "embedded", None, [rule("tool_detected_failure")], "ok", 1, TO_LOCAL),
    "embedded_again": Row("sleeps", "embedded", None, AGAIN, "ok", 3, TO_LOCAL),
    "embedded_mq_walltime": Row("sleeps", "embedded_mq", None, WALLTIME, "ok", 1, TO_LOCAL),
    "embedded_mq_tool_fails": Row(
        "fails", "embedded_mq", None, [rule("tool_detected_failure")], "ok", 1, TO_LOCAL),
    "embedded_mq_again": Row("sleeps", "embedded_mq", None, AGAIN, "ok", 3, TO_LOCAL),
    # A person with the administrator's rights ends it; see `cancelled`.
    "cancelled": Row(
        "sleeps", "ours", "ours", [rule("unknown_error and not cancelled_externally")],
        "error", 0, None, "cancelled", "--time=600"),
}


class Matrix:
    """The running rows of one release."""

    def __init__(self, galaxy: Galaxy, ours: PulsarServer, slurm: str) -> None:
        self.galaxy = galaxy
        self.ours = ours
        self.slurm = slurm
        self.jobs = {name: galaxy.submit(f"{name}__{row.behaviour}") for name, row in ROWS.items()}
        self.jobs["tpv"] = galaxy.submit(TPV_TOOL)

    def end(self, name: str) -> Dict[str, Any]:
        """Return a row's job once it has ended."""
        return self.galaxy.wait_for_end(self.jobs[name])

    def submissions(self, name: str) -> List[List[str]]:
        """Return the argv of each sbatch for a row's job, in order."""
        job_name = f"--job-name=pulsar_{self.jobs[name]}"
        return [argv for _, argv in control.commands(self.slurm, "sbatch") if job_name in argv]


def job_conf(home: Path, pulsars: Dict[str, PulsarServer]) -> JobConf:
    """Return the configuration for all rows."""
    conf = JobConf()
    for name, (load, params) in RUNNERS.items():
        conf.runner(name, load, **params)
        if name.startswith("embedded"):
            conf.content["runners"][name]["pulsar_app_config"] = {
                "staging_directory": str(home / name / "staging"),
                "persistence_directory": str(home / name / "persisted"),
                "tool_dependency_dir": "none", "conda_auto_init": False, "manager": QUICK,
                **({"message_queue_url": params["amqp_url"]} if "amqp_url" in params else {}),
            }
    for name, row in ROWS.items():
        conf.tool(f"{name}__{row.behaviour}", conf.environment(
            name, row.runner, [_own(entry, name) for entry in row.rules],
            **_params(home, row, pulsars)))
    _add_tpv(conf, home, pulsars["ours"])
    return conf


def _add_tpv(conf: JobConf, home: Path, pulsar: PulsarServer) -> None:
    config = home / "tpv.yml"
    config.write_text((Path(__file__).parent / "tpv.yml").read_text().replace("URL", pulsar.url))
    conf.content["execution"]["environments"]["tpv"] = {
        "runner": "dynamic", "type": "python", "function": "map_tool_to_destination",
        "rules_module": "tpv.rules", "tpv_config_files": [str(config)],
    }
    conf.tool(TPV_TOOL, "tpv")


def _own(entry: Dict[str, Any], name: str) -> Dict[str, Any]:
    return {**entry, "environment": entry["environment"].replace("SELF", name)}


def _params(home: Path, row: Row, pulsars: Dict[str, PulsarServer]) -> Dict[str, Any]:
    if row.pulsar is None:
        params = {"default_file_action": "copy", "submit_native_specification": row.spec}
        if row.runner == "embedded_mq":
            params.update(default_file_action="remote_copy",
                          jobs_directory=str(home / row.runner / "staging"))
        return params
    server, _, manager = row.pulsar.partition("/")
    stock = server != "ours" or manager
    url = pulsars[server].url + (f"managers/{manager}/" if manager else "")
    return {"url": url, "default_file_action": "transfer",
            "submit_native_specification": TIGHT_DRMAA if stock else row.spec}


@pytest.fixture(scope="module", params=[NEWEST, OLDEST])
def matrix(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Matrix]:
    """All rows in one Galaxy of a release, running."""
    home = tmp_path_factory.mktemp(request.param)
    slurm = make_slurm(home)
    env = {**control.environment(slurm), "PYTHONPATH": FAKES}
    pulsars = {
        name: PulsarServer(home / name, {"manager": {"type": "queued_drmaa"}}, env,
                           environments.stock(version).folder / "bin")
        for name, version in STOCK_PULSARS.items()
    }
    pulsars["ours"] = PulsarServer(
        home / "ours", {"managers": {"_default_": QUICK, "drmaa": {"type": "queued_drmaa"}}}, env)
    conf = job_conf(home, pulsars)
    galaxy = Galaxy(home / "galaxy", conf.content, conf.tools, release=request.param,
                    env=control.environment(slurm)).launch()
    try:
        for pulsar in pulsars.values():
            pulsar.start()
        yield Matrix(galaxy.wait_up(), pulsars["ours"], slurm)
    finally:
        galaxy.stop()
        for pulsar in pulsars.values():
            pulsar.stop()
        control.stop_all(slurm)


@pytest.mark.parametrize("name", [name for name in ROWS if name != "cancelled"])
def test_row(matrix: Matrix, name: str) -> None:
    """The job ends as the table says, as often resubmitted, and there."""
    row = ROWS[name]
    job = matrix.end(name)
    assert (job["state"], times_resubmitted(job)) == (row.state, row.resubmitted), job
    assert job["destination"] == (row.where or name)
    assert row.says in job["info"]
    if job["state"] == "ok":
        assert job["output"] == "fine\n"


def test_cancelled_by_an_admin(matrix: Matrix) -> None:
    """A job that an administrator cancelled is not run again by a rule that says so."""
    job_id = str(matrix.jobs["cancelled"])
    external_id = wait_until(lambda: matrix.ours.external_id(job_id), PATIENCE_S, "its submission")
    control.run(matrix.slurm, "scancel", external_id, user="root:0")
    job = matrix.end("cancelled")
    assert (job["state"], times_resubmitted(job)) == ("error", 0)
    assert "cancelled" in job["info"]


def test_tpv_grows_memory(matrix: Matrix) -> None:
    """TPV maps the job anew after each memory kill, with twice what it had."""
    job = matrix.end("tpv")
    assert (job["state"], times_resubmitted(job)) == ("ok", 2), job
    assert job["destination"] == "slurm_by_tpv"
    asked = [part for argv in matrix.submissions("tpv") for part in argv if "--mem" in part]
    # Slurm's MB are 1024 * 1024 bytes, TPV's here 1000 * 1000.
    assert asked == ["--mem=40", "--mem=83", "--mem=174"]


@pytest.mark.parametrize("name, times", [
    ("again", 3), ("embedded_again", 3), ("embedded_mq_again", 3), ("infrastructure_retries", 2),
])
def test_times_submitted(matrix: Matrix, name: str, times: int) -> None:
    """Each attempt at the same Pulsar is a job of the DRM, not the repeated end of the first."""
    matrix.end(name)
    assert len(matrix.submissions(name)) == times
