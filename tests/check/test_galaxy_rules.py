"""Checks of Galaxy's side on job configurations of a test's own, without Galaxy."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any, Dict, List, Optional, Set

import pytest
import yaml

from pulsar_failure_reasons.check.findings import Finding
from pulsar_failure_reasons.check.galaxy_checks import (
    CHECKS,
    check_library,
    check_resubmission,
    check_runners,
)
from pulsar_failure_reasons.check.galaxy_site import GalaxySite, describe_galaxy
from pulsar_failure_reasons.check.galaxy_source import GALAXY_NAMES, OUR_NAMES, GalaxySource
from pulsar_failure_reasons.check.run import run_checks
from pulsar_failure_reasons.errors import ConfigurationError
from pulsar_failure_reasons.reason import CAUSE_TABLE, Cause

from .harness import codes, said

OURS = "pulsar_failure_reasons.galaxy_runners:PulsarRESTJobRunner"
STOCK = "galaxy.jobs.runners.pulsar:PulsarRESTJobRunner"
#: A Galaxy as a process with it tells of itself; 26.1.2 with TPV 3.3.0.
TOLD: Dict[str, Any] = {
    "galaxy": "26.1.2", "library": "0.15.16", "pulsar": "0.15.16", "pulsar_app": None,
    "tpv": "3.3.0", "import_error": None, "loads": {},
}
NEW = GalaxySource("/galaxy", reads_destination=False)
OLD = GalaxySource(
    "/galaxy", GALAXY_NAMES - {"tool_timelimit_reached"}, reads_destination=True)
#: With these a Pulsar environment has nothing to be said about but its rules.
FINE = {"runner": "pulsar", "default_file_action": "remote_transfer"}


def conf(load: str = OURS, **environments: Any) -> Dict[str, Any]:
    """Return a job configuration with a Pulsar runner, and the environment local."""
    return {
        "runners": {
            "local": {"load": "galaxy.jobs.runners.local:LocalJobRunner"},
            "pulsar": {"load": load, "galaxy_url": "http://localhost"},
        },
        "execution": {"default": "local", "environments": {
            "local": {"runner": "local"}, **environments}},
    }


def site(tmp_path: Path, content: Dict[str, Any], **more: Any) -> GalaxySite:
    """Return the site of a job configuration; ``more`` is what only Galaxy could tell."""
    path = tmp_path / "job_conf.yml"
    path.write_text(yaml.safe_dump(content))
    described = describe_galaxy(str(path), None)
    for name, value in {"source": NEW, "told": TOLD, **more}.items():
        setattr(described, name, value)
    return described


def rules(tmp_path: Path, *given: Any, load: str = OURS, **more: Any) -> List[Finding]:
    """Return what is found in the rules of one Pulsar environment."""
    content = conf(load, p={**FINE, "resubmit": list(given)})
    return list(check_resubmission(site(tmp_path, content, **more)))


# ---- the library ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "told, expected",
    [
        ({}, {"PFR501"}),
        ({"pulsar_app": "0.16.0", "pulsar": "0.16.0", "import_error": "ImportError: no"},
         {"PFR503", "PFR504"}),
        ({"pulsar_app": "0.15.16"}, {"PFR505"}),
        ({"pulsar": None, "import_error": "ModuleNotFoundError: pulsar"}, {"PFR504"}),
    ],
)
def test_library(tmp_path: Path, told: Dict[str, Any], expected: Set[str]) -> None:
    """An overwritten library is told of with the line that mends it."""
    found = list(check_library(site(tmp_path, conf(), told={**TOLD, **told})))
    assert codes(found) == expected
    if "PFR503" in expected:
        assert "pulsar-galaxy-lib==0.15.16" in found[0].advice


def test_no_galaxy(tmp_path: Path) -> None:
    """PFR502 where this Python has no Galaxy; PFR504 where its process said nothing."""
    there = site(tmp_path, conf(), source=GalaxySource(), told={})
    assert codes(check_library(there)) == {"PFR502"}
    broken = site(tmp_path, conf(), told={}, trouble="it ended with -11")
    assert codes(check_library(broken)) == {"PFR504"}


# ---- runners --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "load, told, code",
    [
        (OURS, {}, "PFR510"),
        (OURS, {"error": "has no class X"}, "PFR512"),
        (STOCK, {}, "PFR511"),
        (STOCK, {"class": "PulsarRESTJobRunner", "ours": False}, "PFR511"),
        (STOCK, {"class": "PulsarRESTJobRunner", "ours": True}, "PFR514"),
        ("galaxy.jobs.runners.slurm:SlurmJobRunner", {}, "PFR513"),
    ],
)
def test_runners(tmp_path: Path, load: str, told: Dict[str, Any], code: str) -> None:
    """Whose class a Pulsar runner is, as Galaxy's process saw it."""
    described = site(tmp_path, conf(load), told={**TOLD, "loads": {load: told} if told else {}})
    found = list(check_runners(described))
    assert codes(found) == {code}
    if code == "PFR511":
        assert found[0].advice == (
            f"load: {OURS} (or PULSAR_FAILURE_REASONS_GALAXY=1 in Galaxy's environment)")


# ---- rules ----------------------------------------------------------------------------------


SENT_ON = {"environment": "local"}


@pytest.mark.parametrize(
    "rule, expected",
    [
        ({"condition": "walltime_reached", **SENT_ON}, {"PFR520"}),
        ({"condition": "walltime_reached and attempt <= 3"}, {"PFR520"}),
        ({"condition": "unknown_error and not cancelled_externally and attempt < 4",
          "delay": "attempt * 30"}, {"PFR520"}),
        ({"condition": "used_memory_bytes > 1000 and memory_limit_reached", **SENT_ON},
         {"PFR520"}),
        ({"condition": "waltime_reached", **SENT_ON}, {"PFR521"}),
        ({"condition": "output_size_limit", **SENT_ON}, {"PFR521"}),
        ({"condition": "walltime_reached", "delay": "atempt * 30", **SENT_ON}, {"PFR521"}),
        ({"condition": "walltime_reached && attempt", **SENT_ON}, {"PFR522"}),
        ({"condition": "walltime_reached and node_failure", **SENT_ON}, {"PFR523"}),
        ({"condition": "walltime_reached", "destination": "local"}, {"PFR524"}),
        ({"condition": "walltime_reached", "environment": "lokal"}, {"PFR525"}),
        ({"condition": "any_failure and attempt <= 3"}, {"PFR520", "PFR527"}),
        (SENT_ON, {"PFR520", "PFR527"}),
        ({"condition": "memory_limit_reached"}, {"PFR520", "PFR528"}),
        ({"condition": "memory_limit_reached", "environment": "p"}, {"PFR520", "PFR528"}),
    ],
)
def test_rules(tmp_path: Path, rule: Dict[str, Any], expected: Set[str]) -> None:
    """Each fault of a rule has its own code, and a rule without one has none."""
    assert codes(rules(tmp_path, rule)) == expected


@pytest.mark.parametrize(
    "name, advice",
    [
        ("waltime_reached", "did you mean walltime_reached?"),
        ("node_fail", "did you mean node_failure?"),
        ("output_size_limit", "remove the rule: Galaxy evaluates no condition for "
         "output_size_limit"),
    ],
)
def test_names_are_suggested(tmp_path: Path, name: str, advice: str) -> None:
    """The nearest name, of Galaxy's and of ours, is offered."""
    (found,) = [f for f in rules(tmp_path, {"condition": name, **SENT_ON}) if f.code == "PFR521"]
    assert found.advice == advice


def test_our_names_need_our_class(tmp_path: Path) -> None:
    """Without a runner of ours our names are unknown; elsewhere they stay false (PFR529)."""
    rule = {"condition": "node_failure", **SENT_ON}
    assert codes(rules(tmp_path, rule, load=STOCK)) == {"PFR521"}
    content = conf(slurm={"runner": "slurm", "resubmit": [rule]},
                   p={**FINE, "resubmit": [{"condition": "walltime_reached", **SENT_ON}]})
    content["runners"]["slurm"] = {"load": "galaxy.jobs.runners.slurm:SlurmJobRunner"}
    found = list(check_resubmission(site(tmp_path, content)))
    assert {(f.code, f.about) for f in found} == {
        ("PFR520", "slurm"), ("PFR529", "slurm"), ("PFR520", "p")}


def test_limits_need_our_class(tmp_path: Path) -> None:
    """PFR529: a stock Pulsar runner never sets the limits."""
    found = rules(tmp_path, {"condition": "walltime_reached", **SENT_ON}, load=STOCK)
    assert codes(found) == {"PFR520", "PFR529"}


def test_a_name_of_a_newer_galaxy(tmp_path: Path) -> None:
    """tool_timelimit_reached is 26.1's; Galaxy 25.1 does not know it, and reads destination."""
    rule = {"condition": "tool_timelimit_reached", "destination": "local"}
    assert codes(rules(tmp_path, rule, source=OLD)) == {"PFR521"}
    assert codes(rules(tmp_path, rule)) == {"PFR524"}


def test_order(tmp_path: Path) -> None:
    """PFR530: nothing comes behind a rule that always holds."""
    always = {"environment": "local"}
    limited = {"condition": "walltime_reached", "environment": "local"}
    assert "PFR530" in codes(rules(tmp_path, always, limited))
    assert "PFR530" not in codes(rules(tmp_path, limited, always))


@pytest.mark.parametrize("given", [{"condition": "walltime_reached"}, "local", ["local"]])
def test_form(tmp_path: Path, given: Any) -> None:
    """PFR526: Galaxy goes through a list of mappings, and nothing else."""
    content = conf(p={**FINE, "resubmit": given})
    assert codes(check_resubmission(site(tmp_path, content))) == {"PFR526"}


def test_no_rules(tmp_path: Path) -> None:
    """PFR532 where nothing is ever resubmitted; not with Galaxy's default condition."""
    described = site(tmp_path, conf(p=FINE))
    assert codes(check_resubmission(described)) == {"PFR532"}
    described.default_condition = "walltime_reached and attempt < 3"
    assert codes(check_resubmission(described)) == {"PFR520"}
    described.default_condition = "waltime_reached"
    assert codes(check_resubmission(described)) == {"PFR521"}


def test_file_action(tmp_path: Path) -> None:
    """PFR531: source and target of a rule say how files travel, others need not."""
    rule = {"condition": "walltime_reached", "environment": "big"}
    content = conf(
        p={"runner": "pulsar", "resubmit": [rule]}, q={"runner": "pulsar", "tags": ["big"]},
        r={"runner": "pulsar"},
    )
    found = list(check_resubmission(site(tmp_path, content)))
    assert {f.about for f in found if f.code == "PFR531"} == {"p", "q"}
    assert codes(found) == {"PFR520", "PFR531"}


# ---- TPV ------------------------------------------------------------------------------------


def tpv(
    tmp_path: Path, content: Any, version: Optional[str] = "3.3.0", load: str = OURS, **more: Any
) -> List[Finding]:
    """Return what is found with a TPV file beside job_conf.yml."""
    (tmp_path / "tpv.yml").write_text(
        content if isinstance(content, str) else yaml.safe_dump(content))
    dispatcher = {"runner": "dynamic_tpv", "tpv_config_files": ["tpv.yml"]}
    described = site(
        tmp_path, conf(load, tpv_dispatcher=dispatcher), told={**TOLD, "tpv": version}, **more)
    return list(check_resubmission(described))


def destinations(**rules: Any) -> Dict[str, Any]:
    """Return a TPV configuration with a Pulsar destination that inherits."""
    return {
        "global": {"default_inherits": "default"},
        "destinations": {
            "base": {"abstract": True, "runner": "pulsar",
                     "params": {"default_file_action": "copy"}},
            "pulsar_1": {"inherits": "base", "resubmit": rules},
        },
    }


@pytest.mark.parametrize(
    "rule, version, source, expected",
    [
        ({"condition": "walltime_reached and attempt <= 3", "destination": "tpv_dispatcher"},
         "3.3.0", NEW, {"PFR520"}),
        ({"condition": "walltime_reached and attempt <= 3", "destination": "tpv_dispatcher"},
         "3.2.1", NEW, {"PFR520"}),
        ({"condition": "walltime_reached and attempt <= 3", "destination": "tpv_dispatcher"},
         None, NEW, {"PFR520"}),
        ({"condition": "waltime_reached", "destination": "tpv_dispatcher"},
         "3.3.0", NEW, {"PFR521"}),
        ({"condition": "walltime_reached", "destination": "pulsar_1"}, "3.3.0", NEW, {"PFR525"}),
        ({"condition": "{context['when']}", "destination": "tpv_dispatcher"},
         "3.3.0", NEW, {"PFR520"}),
    ],
)
def test_tpv(
    tmp_path: Path, rule: Any, version: Optional[str], source: GalaxySource, expected: Set[str]
) -> None:
    """TPV's rules are judged by what TPV and Galaxy make of them."""
    found = tpv(tmp_path, destinations(again=rule), version, source=source)
    assert codes(found) == expected
    assert {f.about for f in found} == {"TPV destination pulsar_1"}


def test_tpv_and_stock_runners(tmp_path: Path) -> None:
    """PFR524: TPV 3.2.1 hands `destination` on, which our class reads and Galaxy 26.1 does not."""
    rule = {"condition": "unknown_error and attempt <= 3", "destination": "tpv_dispatcher"}
    content = destinations(again=rule)
    for version, source, expected in (
        ("3.2.1", NEW, {"PFR524"}), ("3.2.1", OLD, {"PFR520"}), ("3.3.0", NEW, {"PFR520"}),
    ):
        assert codes(tpv(tmp_path, content, version, STOCK, source=source)) == expected
    tool = {"tools": {"default": {"resubmit": {"again": rule}}}}
    assert codes(tpv(tmp_path, tool, "3.2.1", STOCK)) == {"PFR524"}
    assert codes(tpv(tmp_path, tool, "3.2.1", OURS)) == {"PFR520"}


def test_tpv_tools(tmp_path: Path) -> None:
    """A tool's own rules are checked too; the form is a mapping by names."""
    rule = {"condition": "nothing", "destination": "local"}
    found = tpv(tmp_path, {"tools": {"bwa": {"resubmit": {"a": rule}},
                                     "bowtie": {"resubmit": [rule]}}})
    assert {(f.code, f.about) for f in found} == {
        ("PFR521", "TPV tool bwa"), ("PFR526", "TPV tool bowtie")}


def test_tpv_inheritance(tmp_path: Path) -> None:
    """Rules of an entry that all inherit are checked where they stand; so are the heirs'."""
    rule = {"condition": "nothing", "environment": "local"}
    found = tpv(tmp_path, {
        "global": {"default_inherits": "default"},
        "tools": {"default": {"resubmit": {"a": rule}}, "bwa": {"inherits": "default"}},
        "destinations": {"base": {"abstract": True, "runner": "pulsar", "resubmit": {"b": rule}},
                         "p": {"inherits": "base", "params": {"default_file_action": "copy"}}},
    })
    assert {(f.code, f.about) for f in found if f.code != "PFR531"} == {
        ("PFR521", "TPV tool default"), ("PFR521", "TPV destination base"),
        ("PFR521", "TPV destination p")}


def test_tpv_files_that_are_not_read(tmp_path: Path) -> None:
    """PFR540 for what is elsewhere, PFR541 for what is no YAML."""
    assert codes(tpv(tmp_path, "a: [b")) == {"PFR541"}
    dispatcher = {"runner": "dynamic_tpv",
                  "tpv_config_files": ["https://gxy.io/tpv/db-latest.yml", "none.yml"]}
    found = list(check_resubmission(site(tmp_path, conf(tpv_dispatcher=dispatcher))))
    assert [f.code for f in found] == ["PFR540", "PFR540"]
    assert said(found, "PFR540") == "https://gxy.io/tpv/db-latest.yml\nnone.yml"


# ---- files ----------------------------------------------------------------------------------


def test_galaxy_yml(tmp_path: Path) -> None:
    """galaxy.yml names the job configuration, or holds it; and the default condition."""
    (tmp_path / "jobs.yml").write_text(yaml.safe_dump(conf(p=FINE)))
    galaxy = tmp_path / "galaxy.yml"
    galaxy.write_text(yaml.safe_dump({"galaxy": {
        "job_config_file": "jobs.yml", "default_job_resubmission_condition": "any_failure"}}))
    described = describe_galaxy(None, str(galaxy))
    assert described.path == str(tmp_path / "jobs.yml")
    assert described.default_condition == "any_failure"
    galaxy.write_text(yaml.safe_dump({"galaxy": {"job_config": conf(q=FINE)}}))
    assert [e.id for e in describe_galaxy(None, str(galaxy)).environments] == ["local", "q"]


XML = """\
<job_conf>
  <plugins><plugin id="pulsar" type="runner" load="galaxy.jobs.runners.pulsar"/></plugins>
  <destinations default="p">
    <destination id="p" runner="pulsar" tags="a,b">
      <param id="default_file_action">copy</param>
      <resubmit condition="waltime_reached" destination="b"/>
    </destination>
  </destinations>
</job_conf>
"""


def test_xml(tmp_path: Path) -> None:
    """The old job_conf.xml is read as well; its word for the target is Galaxy's own there."""
    path = tmp_path / "job_conf.xml"
    path.write_text(XML)
    found = list(run_checks(CHECKS, describe_galaxy(str(path), None)))
    assert codes(found) == {"PFR502", "PFR511", "PFR521"}
    path.write_text("<job_conf>")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        describe_galaxy(str(path), None)


@pytest.mark.parametrize(
    "content", ["[1, 2]", "runners: [a]", "execution: {environments: 3}"],
)
def test_files_that_make_no_sense(tmp_path: Path, content: str) -> None:
    """A file that is no job configuration is refused with a line."""
    path = tmp_path / "job_conf.yml"
    path.write_text(content)
    with pytest.raises(ConfigurationError):
        describe_galaxy(str(path), None)


def test_environments_as_a_list(tmp_path: Path) -> None:
    """Galaxy takes environments as a list too, and params flat or apart."""
    content = conf()
    content["execution"]["environments"] = [
        {"id": "p", "runner": "pulsar", "params": {"default_file_action": "copy"},
         "resubmit": [{"condition": "walltime_reached and attempt < 3"}]}]
    assert codes(check_resubmission(site(tmp_path, content))) == {"PFR520"}


def test_our_names() -> None:
    """The names kept for hosts without Galaxy stand for causes and values of the design."""
    causes: Dict[str, Optional[Cause]] = {
        "node_failure": Cause.NODE_FAILURE, "preempted": Cause.PREEMPTED,
        "cancelled_externally": Cause.CANCELLED, "disk_limit_reached": Cause.DISK,
        "cpu_time_reached": Cause.CPU_TIME, "launch_error": Cause.LAUNCH_ERROR,
    }
    assert set(causes) <= OUR_NAMES
    from pulsar_failure_reasons.check.conditions import RUNNER_STATE_OF_CAUSE

    assert {name: CAUSE_TABLE[cause].runner_state for name, cause in causes.items() if cause} == (
        dict(RUNNER_STATE_OF_CAUSE))


def test_the_examples_of_the_documentation(tmp_path: Path) -> None:
    """Runners, rules and TPV's entries of docs/galaxy.md have no fault but that they are parts."""
    page = Path(__file__).resolve().parents[2] / "docs" / "galaxy.md"
    seen: Set[str] = set()
    for block in re.findall(r"^ *```yaml\n(.*?)^ *```", page.read_text(), re.S | re.M):
        example = yaml.safe_load(textwrap.dedent(block))
        if isinstance(example, dict) and "runners" in example:
            found = list(run_checks(CHECKS, site(tmp_path, example)))
            # It names environments that it does not show.
            assert not {f.code for f in found if f.level.value == "error"} - {"PFR525"}
            seen.add("job_conf")
        elif isinstance(example, dict) and "destinations" in example:
            assert not [f for f in tpv(tmp_path, example) if f.level.value == "error"]
            seen.add("tpv")
    assert seen == {"job_conf", "tpv"}
