"""Jobs whose name in Slurm is not, or no longer, the one that Pulsar gives them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.simulated import control

from .conftest import MakePulsar
from .harness import Pulsar, Slurm, reason_of


def _still_running(pulsar: Pulsar, job_id: str) -> None:
    pulsar.wait_for(job_id, "running")
    pulsar.wait_for_looks(2)
    assert pulsar.status(job_id) == "running"


def test_administrator_renames_a_running_job(make_pulsar: MakePulsar, slurm: Slurm) -> None:
    """scontrol update JobName: the job is still the same, and its end is told."""
    pulsar = make_pulsar(missing_grace=0)
    external_id = pulsar.submit("1", "sleep 600", "-t 6000")
    pulsar.wait_for("1", "running")
    control.change(slurm.state, external_id, name="urgent")
    _still_running(pulsar, "1")
    slurm.scancel(external_id)
    assert reason_of(pulsar.end("1")) == "cancelled"


@pytest.mark.parametrize("restarted", [False, True])
def test_submission_plugin_of_the_site_renames_jobs(
    make_pulsar: MakePulsar, slurm: Slurm, odd_command: Any, restarted: bool
) -> None:
    """A job_submit plugin gives every job another name: no job is lost for it."""
    pulsar = make_pulsar(missing_grace=0)
    slurm.set(latency={"squeue": 0.3})
    external_id = pulsar.submit("1", "sleep 600", "-t 6000")
    control.change(slurm.state, external_id, name="galaxy-prod")
    if restarted:
        _still_running(pulsar, "1")
        pulsar.shutdown()
        pulsar = make_pulsar(missing_grace=0)
        pulsar.status("1")
    _still_running(pulsar, "1")
    slurm.scancel(external_id)
    assert reason_of(pulsar.end("1")) == "cancelled"


def test_operator_changes_the_template_with_jobs_in_flight(
    make_pulsar: MakePulsar, slurm: Slurm
) -> None:
    """A new job_name_template does not lose the jobs that were submitted under the old one."""
    before = make_pulsar(missing_grace=0)
    external_id = before.submit("1", "sleep 600", "-t 6000")
    before.wait_for("1", "running")
    before.shutdown()
    after = make_pulsar(missing_grace=0, job_name_template="galaxy_$job_id")
    after.status("1")
    _still_running(after, "1")
    slurm.scancel(external_id)
    assert reason_of(after.end("1")) == "cancelled"


def test_renamed_job_that_ended_and_was_forgotten_while_pulsar_was_down(
    make_pulsar: MakePulsar, slurm: Slurm
) -> None:
    """Accounting's record under another name is still taken for ours."""
    before = make_pulsar(missing_grace=0)
    external_id = before.submit("1", "sleep 600", "-t 6000 --comment=fake:min_job_age=0")
    before.wait_for("1", "running")
    before.shutdown()
    slurm.scancel(external_id)
    after = make_pulsar(missing_grace=0, job_name_template="galaxy_$job_id")
    assert reason_of(after.end("1")) == "cancelled"


def _job_of_another_server(slurm: Slurm, name: str) -> str:
    """Submit a job of another Pulsar of this user, which numbers its jobs as we do."""
    done = control.run(slurm.state, "sbatch", "--parsable", "-J", name, "-D", "/tmp", "-t", "600",
                       "--wrap", "sleep 600")
    slurm.wait_for(done.stdout.strip(), "RUNNING")
    return str(done.stdout.strip())


def test_lost_id_is_not_replaced_by_another_servers_job(
    make_pulsar: MakePulsar, slurm: Slurm
) -> None:
    """Its name is ours, its directory is not: it is not adopted, and so never cancelled by us."""
    before = make_pulsar()
    before.submit("1", "true", "--comment=fake:min_job_age=0")
    before.shutdown()
    (before.directory("1") / "external_id").unlink()
    (before.directory("1") / "return_code").unlink(missing_ok=True)
    slurm.wait_for("1", "COMPLETED")
    other = _job_of_another_server(slurm, "pulsar_1")
    after = make_pulsar()
    after.status("1")
    after.wait_for_looks(3)
    assert after.external_id("1") is None
    after.proxy().kill("1")
    assert slurm.state_of(other) == "RUNNING"


def test_launch_that_was_cut_short_does_not_take_up_another_servers_job(
    pulsar: Pulsar, slurm: Slurm
) -> None:
    """Killed between job script and sbatch: the job of that name in Slurm is another server's."""
    _job_of_another_server(slurm, "pulsar_1")
    directory = pulsar.directory("1")
    directory.mkdir(parents=True)
    (directory / "command.sh").write_text("true\n")
    assert not pulsar.manager().takes_up_launch("1")
    assert pulsar.external_id("1") is None
