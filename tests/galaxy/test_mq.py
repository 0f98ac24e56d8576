"""Galaxy and Pulsar with a real RabbitMQ between them, two job handlers, and what goes wrong there.

One broker, one Pulsar, one database (PostgreSQL), two handler processes; each test's jobs are its
own. The tests that end something for all of them stand last.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple

import pytest

from tests.galaxy import rabbitmq
from tests.galaxy.galaxy import PATIENCE_S, Galaxy, states_of, times_resubmitted
from tests.galaxy.job_conf import (
    LITTLE_MEMORY,
    OURS,
    QUICK,
    TIGHT,
    JobConf,
    make_slurm,
    rule,
)
from tests.galaxy.rabbitmq import PrivateRabbit
from tests.pulsar_server import PulsarServer, wait_until
from tests.real import postgresql
from tests.real.conftest import private_home
from tests.real.postgresql import PrivatePostgresql
from tests.real.require import require_real
from tests.simulated import control

pytestmark = pytest.mark.galaxy

HANDLERS = ("one", "two")
#: Where Pulsar tells Galaxy of its jobs: its name of the queue of the default manager.
STATUS_UPDATES = "pulsar__status_update"
#: As sites have it that must not lose a message. (Acknowledgements of Pulsar's own are no help
#: there: in 0.16.0 the thread that would send anew ends with a TypeError.)
RETRIES = {"amqp_publish_retry": True, "amqp_publish_retry_max_retries": 1000,
           "amqp_publish_retry_interval_start": 1, "amqp_publish_retry_interval_step": 1,
           "amqp_publish_retry_interval_max": 2}


class Where(NamedTuple):
    """The parts, all started."""

    home: Path
    rabbit: PrivateRabbit
    database: PrivatePostgresql
    pulsar: PulsarServer
    slurm: str
    galaxies: List[Galaxy]

    @property
    def galaxy(self) -> Galaxy:
        """The first handler; it is asked about the jobs of both."""
        return self.galaxies[0]

    def logs(self) -> str:
        """Return what all handlers said."""
        return "".join(galaxy.log_text() for galaxy in self.galaxies)

    def file(self, name: str) -> Path:
        """Return the file that lets a tool with this name's UNTIL go on."""
        return self.home / f"{name}.go"

    def in_slurm(self, job_id: int) -> List[Dict[str, Any]]:
        """Return Slurm's records of the job, one for each submission."""
        return [job for job in control.jobs(self.slurm) if job["name"] == f"pulsar_{job_id}"]

    def running(self, job_id: int) -> None:
        """Wait until Galaxy says that the job runs."""
        self.galaxy.wait_for(job_id, ["running"])

    def out_of_time(self, job_id: int) -> None:
        """Give the job, which runs, a walltime limit that is over, or soon will be: two minutes.

        One that it was submitted with might be over before anybody has seen the job run.
        """
        for job in self.in_slurm(job_id):
            control.change(self.slurm, job["id"], time_limit=120)

    def ended_in_slurm(self, job_id: int) -> None:
        """Wait until Slurm has ended the job."""
        wait_until(lambda: all(job["state"] == "ended" for job in self.in_slurm(job_id)),
                   PATIENCE_S, f"job {job_id} to end in Slurm")


def job_conf(home: Path, pulsar: PulsarServer, rabbit: PrivateRabbit) -> JobConf:
    """Return the configuration: one runner with ours, one with stock's, their environments."""
    conf = JobConf()
    conf.content["handling"] = {"processes": {name: {} for name in HANDLERS}}
    conf.runner("mq", f"{OURS}:PulsarMQJobRunner", amqp_url=rabbit.url, **RETRIES)
    conf.runner("rest", f"{OURS}:PulsarRESTJobRunner")

    def environment(name: str, rules: List[Dict[str, Any]], runner: str = "mq",
                    spec: str = TIGHT, **env: str) -> str:
        return conf.environment(
            name, runner, rules, env, jobs_directory=str(pulsar.staging),
            default_file_action="remote_copy", submit_native_specification=spec,
            **({"url": pulsar.url} if runner == "rest" else {}))

    def waiting(name: str) -> Dict[str, str]:
        return {"ROOMY": "1", "UNTIL": str(home / f"{name}.go")}

    memory = [rule("memory_limit_reached and attempt < 3", "small"),
              rule("memory_limit_reached and attempt <= 3", "big")]
    environment("small", memory, spec=LITTLE_MEMORY)
    environment("big", [], ROOMY="1", spec="--time=60 --mem=400")
    for handler in HANDLERS:
        conf.tool(f"{handler}__hogs", "small", handler=handler)
        conf.tool(f"{handler}_late__sleeps", "late", handler=handler)
    environment("late", [rule("walltime_reached")], spec="--time=600 --mem=40")
    environment("stays", [rule("walltime_reached", "stays_on")])
    environment("stays_on", [rule("any_failure")], spec="--time=600", **waiting("stays"))
    conf.tool("stays__sleeps", "stays")
    environment("leaves", [rule("walltime_reached", "elsewhere")])
    conf.environment("elsewhere", "local", [rule("any_failure")], waiting("leaves"))
    conf.tool("leaves__sleeps", "leaves")
    environment("odd", [rule("walltime_reached", "nowhere"), rule("unknown_error")],
                spec="--time=600")
    conf.tool("odd__sleeps", "odd")
    environment("collides", [], spec="--time=600", **waiting("collides"))
    conf.tool("collides__fine", "collides")
    return conf


@pytest.fixture(scope="module")
def where(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Where]:
    """Broker, database, Pulsar and both handlers of one Galaxy."""
    require_real("RabbitMQ", rabbitmq.why_missing())
    require_real("PostgreSQL", postgresql.why_missing())
    home = tmp_path_factory.mktemp("mq")
    slurm = make_slurm(home)
    database_home, lock = private_home("postgresql")
    with contextlib.ExitStack() as stack:
        stack.callback(control.stop_all, slurm)
        stack.callback(os.close, lock)
        rabbit = PrivateRabbit(home / "rabbit").launch()
        stack.callback(rabbit.stop)
        database = stack.enter_context(PrivatePostgresql(database_home))
        rabbit.wait_up()
        app = {"manager": QUICK, "message_queue_url": rabbit.url, **RETRIES}
        pulsar = PulsarServer(home / "pulsar", app, control.environment(slurm))
        galaxies = start_galaxies(home / "galaxy", job_conf(home, pulsar, rabbit), database)
        stack.callback(lambda: [galaxy.kill() for galaxy in galaxies])
        pulsar.start()
        stack.callback(pulsar.stop)
        yield Where(home, rabbit, database, pulsar, slurm, galaxies)


def start_galaxies(home: Path, conf: JobConf, database: PrivatePostgresql) -> List[Galaxy]:
    """Return one Galaxy's two handlers, running."""
    galaxies = [
        Galaxy(home, conf.content, conf.tools, server_name=name, config={
            "database_connection": database.url.replace("+psycopg", "+psycopg2"),
            "database_engine_option_pool_size": 4,
            "database_engine_option_max_overflow": 4,
            "amqp_internal_connection": f"sqlalchemy+sqlite:///{home}/{name}.control.sqlite",
        }) for name in HANDLERS
    ]
    try:
        for galaxy in galaxies:  # one after the other: the first one makes the tables
            galaxy.start()
    except BaseException:
        for galaxy in galaxies:
            galaxy.kill()
        raise
    return galaxies


def test_the_messages_carry_the_reason(where: Where) -> None:
    """Each message of a job has its attempt, the last one why the DRM ended it."""
    with where.rabbit.overhear(STATUS_UPDATES) as ear:
        job_id = where.galaxy.submit("one_late__sleeps")
        wait_until(lambda: ear.heard(job_id=str(job_id), status="running"), PATIENCE_S,
                   "its start to be told")
        where.out_of_time(job_id)
        wait_until(lambda: ear.heard(job_id=str(job_id), status="failed"), PATIENCE_S,
                   "its failure to be told")
        told = ear.heard(job_id=str(job_id))
    assert {message["attempt"] for message in told} == {1}
    assert {"running", "failed"} <= {message["status"] for message in told}
    assert not any("runner_state" in message for message in told if message["status"] != "failed")
    failure = told[-1]
    assert failure["runner_state"] == "walltime_reached"
    assert "walltime limit is 2 min" in failure["runner_state_message"]
    assert failure["failure_reason"]["cause"] == "walltime"
    job = where.galaxy.wait_for_end(job_id)
    assert (job["state"], times_resubmitted(job), job["destination"]) == ("ok", 1, "local")


def test_three_kills_on_the_same_pulsar(where: Where) -> None:
    """Jobs of two handlers are killed for memory three times each, and end well with more."""
    jobs = [where.galaxy.submit(f"{name}__hogs") for name in (*HANDLERS, *HANDLERS)]
    ended = [where.galaxy.wait_for_end(job_id) for job_id in jobs]
    assert [job["handler"] for job in ended] == ["one", "two", "one", "two"]
    for job_id, job in zip(jobs, ended):
        assert (job["state"], times_resubmitted(job), job["destination"]) == ("ok", 3, "big"), job
        assert job["output"] == "fine\n"
        assert len(where.in_slurm(job_id)) == 4


@pytest.mark.parametrize("name, where_to", [("stays", "stays_on"), ("leaves", "elsewhere")])
def test_a_failure_told_twice(where: Where, name: str, where_to: str) -> None:
    """The first attempt's failure, told again, does nothing to the second attempt."""
    with where.rabbit.overhear(STATUS_UPDATES) as ear:
        job_id = where.galaxy.submit(f"{name}__sleeps")
        failure = wait_until(lambda: ear.heard(job_id=str(job_id), status="failed"),
                             PATIENCE_S, "its failure to be told")[0]
    # Not its new destination: that may be seen before its state, which is "running" until then.
    wait_until(lambda: times_resubmitted(where.galaxy.job(job_id)) == 1, PATIENCE_S,
               "its resubmission")
    where.running(job_id)
    ignored = f"({job_id}) ignoring its status 'failed'"
    where.rabbit.publish(STATUS_UPDATES, {
        key: value for key, value in failure.items() if key != "acknowledge_uuid"})
    wait_until(lambda: ignored in where.logs(), PATIENCE_S, "the message to be taken")
    assert where.galaxy.job(job_id)["state"] == "running"
    where.file(name).touch()
    job = where.galaxy.wait_for_end(job_id)
    assert (job["state"], times_resubmitted(job), job["destination"]) == ("ok", 1, where_to), job


def test_an_unknown_token(where: Where) -> None:
    """A runner_state that no Galaxy knows is no reason to do anything but what stock does."""
    job_id = where.galaxy.submit("odd__sleeps")
    where.running(job_id)
    where.rabbit.publish(STATUS_UPDATES, {
        "job_id": str(job_id), "complete": "true", "status": "failed", "returncode": None,
        "stdout": "", "stderr": "", "working_directory": "", "attempt": 1,
        "runner_state": "quantum_flux_reached", "runner_state_message": "It flickered.",
    })
    job = where.galaxy.wait_for_end(job_id)
    assert (job["state"], times_resubmitted(job), job["destination"]) == ("ok", 1, "local"), job


def test_another_galaxys_job_of_the_same_id(where: Where, tmp_path: Path) -> None:
    """Its submission to the same Pulsar does not remove the job that is there."""
    job_id = where.galaxy.submit("collides__fine")
    where.running(job_id)
    # Until then its script makes folders.
    wait_until((where.pulsar.staging / str(job_id) / "metadata" / "tool_stdout").exists,
               PATIENCE_S, "the tool to start")
    before = sorted(path.name for path in (where.pulsar.staging / str(job_id)).iterdir())
    set_up = where.pulsar.client(str(job_id))
    from pulsar_failure_reasons.attempt import Attempt

    with pytest.raises(Exception):
        set_up.remote_setup(tool_id="x", tool_version="1",
                            **Attempt(2, "another galaxy").setup_arguments())
    after = sorted(path.name for path in (where.pulsar.staging / str(job_id)).iterdir())
    assert after == before
    where.file("collides").touch()
    job = where.galaxy.wait_for_end(job_id)
    assert (job["state"], job["output"]) == ("ok", "fine\n"), job


def disturbed(where: Where, disturb: Callable[[], None], mend: Callable[[], None]) -> None:
    """Let a job of each handler be killed while something is away, and see both end well."""
    jobs = [where.galaxy.submit(f"{name}_late__sleeps") for name in HANDLERS]
    for job_id in jobs:
        where.running(job_id)
    disturb()
    for job_id in jobs:
        where.out_of_time(job_id)
        where.ended_in_slurm(job_id)
    mend()
    for job_id in jobs:
        job = where.galaxy.wait_for_end(job_id)
        assert (job["state"], times_resubmitted(job), job["destination"]) == (
            "ok", 1, "local"), (job, states_of(job))


def test_galaxy_is_killed_and_started_again(where: Where) -> None:
    """What ended while no Galaxy ran is resubmitted by the rules that its job had."""
    def kill() -> None:
        for galaxy in where.galaxies:
            galaxy.kill()

    def start() -> None:
        for galaxy in where.galaxies:
            galaxy.launch()
        for galaxy in where.galaxies:
            galaxy.wait_up()

    disturbed(where, kill, start)


def test_the_broker_is_killed_and_started_again(where: Where) -> None:
    """No end of a job is lost."""
    disturbed(where, where.rabbit.kill, lambda: where.rabbit.start() and None)


def test_the_database_is_away_as_the_failure_comes(where: Where) -> None:
    """The message is kept until the database is back."""
    def mend() -> None:
        heard_of = "a message of Pulsar"
        wait_until(lambda: heard_of in where.logs(), PATIENCE_S, "a handler to miss the database")
        where.database.up()

    disturbed(where, where.database.down, mend)
