"""All checks of Galaxy's side, in the order in which they are made and shown."""

from __future__ import annotations

from typing import Iterator, List, Set, Tuple

from ..switch import GALAXY_VARIABLE
from .findings import Finding
from .galaxy_rules import check_rules, read_rules
from .galaxy_site import OURS, Environment, GalaxySite
from .run import Check
from .tpv import read_tpv

DEFAULT_RULE = "default_job_resubmission_condition"


def check_library(site: GalaxySite) -> Iterator[Finding]:
    """See whether Galaxy's Pulsar library is the one that Galaxy brings."""
    if site.source.folder is None:
        yield Finding("PFR502", f"no Galaxy here; {site.path} is read as by 26.1")
        return
    if site.trouble is not None:
        yield Finding("PFR504", site.trouble)
        return
    told = site.told
    version = told["library"]
    mend = (
        "pip uninstall --yes pulsar-app; pip install --force-reinstall --no-deps "
        f"pulsar-galaxy-lib=={version or 'VERSION'}, the version that Galaxy pins"
    )
    if told["pulsar_app"] and told["pulsar"] != version:
        yield Finding(
            "PFR503", f"the folder pulsar/ is version {told['pulsar']}, of pulsar-app "
            f"{told['pulsar_app']}; Galaxy brought pulsar-galaxy-lib {version}", do=mend,
        )
    elif told["pulsar_app"]:
        yield Finding("PFR505", f"pulsar-app {told['pulsar_app']}, pulsar-galaxy-lib {version}")
    if told["import_error"]:
        yield Finding("PFR504", told["import_error"], do=mend)
    elif not told["pulsar_app"]:
        yield Finding("PFR501", f"Galaxy {told['galaxy']}, pulsar-galaxy-lib {version}")


def check_runners(site: GalaxySite) -> Iterator[Finding]:
    """See whether each of Galaxy's Pulsar runners is loaded by our class."""
    pulsar = [name for name in site.runners if site.is_pulsar(name)]
    if not pulsar:
        yield Finding("PFR513", f"runners: {', '.join(site.runners) or 'none'}")
    for name in pulsar:
        yield _runner(site, name)


def _runner(site: GalaxySite, name: str) -> Finding:
    load = site.runners[name]
    told = site.told.get("loads", {}).get(load, {})
    about = f"runner {name}"
    if told.get("error"):
        return Finding("PFR512", f"load: {load}: {told['error']}", about)
    if not site.is_ours(name):
        class_name = load.partition(":")[2] or told.get("class", "PulsarRESTJobRunner")
        return Finding("PFR511", f"load: {load}", about, do=(
            f"load: {OURS}:{class_name} (or {GALAXY_VARIABLE}=1 in Galaxy's environment)"
        ))
    if load.startswith(OURS):
        return Finding("PFR510", f"load: {load}", about)
    return Finding("PFR514", f"load: {load}", about)


def check_resubmission(site: GalaxySite) -> Iterator[Finding]:
    """Check the resubmit rules of job_conf, of TPV's files and of galaxy.yml."""
    tpv, findings = read_tpv(site)
    yield from findings
    environments = [*site.environments, *tpv, *_default(site)]
    yield from check_rules(site, environments)
    pulsar = [e for e in environments if site.is_pulsar(e.runner)]
    # Of what TPV's tools have, nobody knows where it will hold.
    ruled = any(e.resubmit for e in environments if e in pulsar or e.runner is None)
    if pulsar and not ruled:
        yield Finding("PFR532", f"environments: {', '.join(e.id for e in pulsar)}")
    yield from _file_actions(site, environments)


def _default(site: GalaxySite) -> List[Environment]:
    """Return the rule that holds where an environment has none, as an environment's."""
    if not site.default_condition:
        return []
    return [Environment(DEFAULT_RULE, None, {}, [{"condition": site.default_condition}])]


def _file_actions(site: GalaxySite, environments: List[Environment]) -> Iterator[Finding]:
    """See whether the environments that take part in resubmission say how files travel.

    Resubmission merges the parameters of the environment that a job leaves into those of the one
    that it comes to (seen on 26.1.2).
    """
    involved = _involved(environments)
    for environment in environments:
        takes_part = environment.id in involved or any(
            tag in involved for tag in environment.tags)
        if takes_part and site.is_pulsar(environment.runner) and not (
            environment.params.get("default_file_action")
        ):
            yield Finding("PFR531", f"runner {environment.runner}", environment.id)


def _involved(environments: List[Environment]) -> Set[str]:
    """Return the environments with rules, and the targets of rules."""
    names: Set[str] = set()
    for environment in environments:
        if environment.resubmit:
            names.add(environment.id)
            names.update(rule.target for rule in read_rules(environment) or () if rule.target)
    return names


CHECKS: Tuple[Check[GalaxySite], ...] = (
    ("Galaxy's Pulsar library", check_library),
    ("Galaxy's runners", check_runners),
    ("Galaxy's resubmit rules", check_resubmission),
)
