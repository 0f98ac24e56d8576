"""The tour: what failed on the site, from the ledger that its Pulsar kept by itself."""

from __future__ import annotations

import json

import pytest

from tests.pulsar_server import wait_until

from .conftest import Visit


@pytest.fixture(scope="module", autouse=True)
def written(site: Visit) -> None:
    """Wait until the ends of the site's four jobs are in the ledger; it is not asked at once."""
    def four() -> bool:
        said = site.run("report", "--app", site.app_yml, "--format", "json")
        return said.code == 0 and json.loads(said.out)["ends"] == 4

    wait_until(four, 60, "four ends in the ledger", 0.5)


def test_what_failed(site: Visit) -> None:
    """One walltime, one memory, of four ended jobs; the tool's own exit is no failure of ours."""
    said = site.run("report", "--app", site.app_yml, "--by", "cause", "--format", "csv")
    assert (said.code, said.err) == (0, "")
    assert said.out.splitlines() == [
        "cause,failures,ends,rate", "memory,1,4,0.25", "walltime,1,4,0.25"]


def test_table(site: Visit) -> None:
    """For a person; stdout has the report and stderr nothing."""
    said = site.run("report", "--app", site.app_yml, "--since", "1d", "--by", "cause,tool")
    assert (said.code, said.err) == (0, "")
    assert said.out.startswith("2 of 4 ended jobs failed with a reason (50.0%), ")


def test_no_such_group(site: Visit) -> None:
    """An error names what there is, on stderr alone."""
    said = site.run("report", "--app", site.app_yml, "--by", "user")
    assert (said.code, said.out) == (2, "")
    assert "choose of: cause, tool, node, manager" in said.err
