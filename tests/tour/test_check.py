"""``check`` on the site: will reasons arrive from this host?"""

from __future__ import annotations

import json

from tests.tour.conftest import Visit


def test_a_site_in_order(site: Visit) -> None:
    """No error among the findings, each with its code; nothing on stderr."""
    said = site.run("check", site.app_yml)
    assert said.code == 0, said.out + said.err
    assert "PFR101" in said.out


def test_json(site: Visit) -> None:
    """A monitoring system reads it: an object whose findings have code, level and words."""
    said = site.run("check", site.app_yml, "--format", "json")
    assert said.code == 0, said.out + said.err
    findings = json.loads(said.out)["findings"]
    assert findings
    assert all({"code", "level"} <= set(finding) for finding in findings)
    assert "error" not in {finding["level"] for finding in findings}


def test_a_problem(site: Visit) -> None:
    """Switched off: exit 1, on stdout, with what to do."""
    said = site.run("check", site.app_yml, env={"PATH": "/usr/bin:/bin", "SLURM_CONF": "/nowhere"})
    assert said.code == 1, said.out + said.err
    assert "squeue" in said.out or "sbatch" in said.out


def test_could_not_run(site: Visit) -> None:
    """Exit 2, nothing on stdout, one line on stderr."""
    for argv in (["nowhere.yml"], [], ["app.yml", "--manager", "nobody", "--submit"]):
        said = site.run("check", *argv)
        assert said.code == 2, (argv, said)
        assert said.err
