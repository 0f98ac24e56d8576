"""``explain`` on the Pulsar host of a site."""

from __future__ import annotations

import json
from pathlib import Path

from tests.tour.conftest import Visit


def test_by_job_id(site: Visit) -> None:
    """The job that was killed at its walltime, by its Pulsar id."""
    said = site.run("explain", "3", "--app", site.app_yml)
    assert (said.code, said.err) == (0, "")
    lines = said.out.splitlines()
    # --time=1 in the simulated Slurm of the demonstration.
    assert "walltime limit is 60 s" in lines[0]
    assert "  Galaxy sees:  walltime_reached" in lines
    assert any(set(line) == {" ", "^"} for line in lines)


def test_by_job_id_as_json(site: Visit) -> None:
    """Each job of the site: how it ended, as JSON with the keys that scripts count on."""
    found = {}
    for job_id in "12345":
        said = site.run("explain", job_id, "--app", site.app_yml, "--format", "json")
        assert (said.code, said.err) == (0, "")
        answer = json.loads(said.out)
        found[job_id] = (answer["ended"], answer["cause"], answer["runner_state"])
    assert found == {
        "1": (True, None, None),
        "2": (True, None, None),
        "3": (True, "walltime", "walltime_reached"),
        "4": (True, "memory", "memory_limit_reached"),
        "5": (False, None, None),
    }


def test_by_external_id(site: Visit) -> None:
    """The DRM is asked about its own id, of a job that ended and of one that runs."""
    for job_id, ended, cause in (("3", True, "walltime"), ("5", False, None)):
        external_id = site.pulsar.external_id(job_id)
        assert external_id is not None
        said = site.run("explain", "--drm", "slurm", external_id, "--format", "json")
        assert (said.code, said.err) == (0, "")
        answer = json.loads(said.out)
        assert (answer["ended"], answer["cause"]) == (ended, cause), answer


def test_a_pipe(site: Visit) -> None:
    """What a DRM printed, through standard input."""
    said = site.run("explain", "--drm", "slurm", "-", given="JobID|State\n7|NODE_FAIL\n")
    assert (said.code, said.err) == (0, "")
    assert "  cause:        node_failure" in said.out.splitlines()


def test_nothing_to_read(site: Visit) -> None:
    """Errors go to stderr, in one line, with exit code 2."""
    for argv in (["6", "--app", site.app_yml], ["3", "--app", "nowhere.yml"],
                 ["--drm", "slurm", "nowhere.txt"], ["--drm", "slurm", "-"], ["3"],
                 ["--drm", "slurm", "--hold-code", "34"], ["--drm", "slurm", "987654"]):
        said = site.run("explain", *argv)
        assert (said.code, said.out) == (2, ""), argv
        assert len(said.err.splitlines()) == 1, said.err


def test_a_job_whose_directory_is_gone(site: Visit, tmp_path: Path) -> None:
    """Galaxy has removed the job: the ledger has its reason still."""
    directory = site.pulsar.staging / "4"
    kept = tmp_path / "4"
    directory.rename(kept)
    try:
        said = site.run("explain", "4", "--app", site.app_yml, "--format", "json")
    finally:
        kept.rename(directory)
    assert (said.code, said.err) == (0, "")
    answer = json.loads(said.out)
    assert (answer["cause"], answer["read_from"]) == ("memory", "ledger")
    assert answer["evidence"]
