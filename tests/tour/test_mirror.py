"""``mirror`` on two small trees, as a CI job runs it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Tuple

import pytest

from tests.tour.conftest import Visit


@pytest.fixture
def trees(tmp_path: Path) -> Tuple[str, str]:
    """A Galaxy and a Pulsar: one file is the same, of one a constant differs."""
    places = {"galaxy": "galaxy/jobs/runners/util", "pulsar": "pulsar/managers/util"}
    for side, place in places.items():
        folder = tmp_path / side / place
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text('"""Shared."""\n')
        (folder / "retry.py").write_text(f"TRIES = {3 if side == 'galaxy' else 5}\n")
    return str(tmp_path / "galaxy"), str(tmp_path / "pulsar")


def test_a_difference(site: Visit, trees: Tuple[str, str]) -> None:
    """Exit 1, and the file and constant are named on stdout."""
    said = site.run("mirror", *trees)
    assert (said.code, said.err) == (1, "")
    assert "retry.py" in said.out and "TRIES" in said.out


def test_no_difference(site: Visit, trees: Tuple[str, str]) -> None:
    """A tree against itself in Pulsar's place: exit 0."""
    (Path(trees[1]) / "pulsar/managers/util/retry.py").write_text("TRIES = 3\n")
    said = site.run("mirror", *trees, "--format", "json")
    assert (said.code, said.err) == (0, "")
    assert json.loads(said.out)


def test_could_not_run(site: Visit, trees: Tuple[str, str]) -> None:
    """Exit 2, nothing on stdout, one line on stderr."""
    for argv in ([trees[0], "/nowhere"], [*trees, "--allow", "nowhere.toml"]):
        said = site.run("mirror", *argv)
        assert (said.code, said.out) == (2, ""), argv
        assert len(said.err.splitlines()) == 1, said.err
