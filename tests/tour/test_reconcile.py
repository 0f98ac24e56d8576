"""``reconcile`` on the site: beside its running server it only shows."""

from __future__ import annotations

import json

from tests.tour.conftest import Visit


def test_nothing_to_change(site: Visit) -> None:
    """All jobs of the site are as Pulsar and the DRM say: exit 0, and that said."""
    said = site.run("reconcile", site.app_yml, "--format", "json")
    assert said.code == 0, said.out + said.err
    assert json.loads(said.out) == {"applied": False, "jobs": []}


def test_not_beside_a_running_server(site: Visit) -> None:
    """``--apply`` is refused while the server runs: exit 2, nothing on stdout."""
    said = site.run("reconcile", site.app_yml, "--apply")
    assert (said.code, said.out) == (2, "")
    assert "running" in said.err


def test_could_not_run(site: Visit) -> None:
    """Exit 2, nothing on stdout, one line on stderr."""
    said = site.run("reconcile", "nowhere.yml")
    assert (said.code, said.out) == (2, "")
    assert len(said.err.splitlines()) == 1, said.err
