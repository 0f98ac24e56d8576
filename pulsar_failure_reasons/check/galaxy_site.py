"""What the checks of Galaxy's side are given: its configuration, as plain values.

The files are read as Galaxy reads them (26.1.2: galaxy/jobs/__init__.py), without Galaxy; what
only Galaxy's own Python can tell is asked for in a process of its own (:mod:`.galaxy_child`).
"""

from __future__ import annotations

import importlib
import os
from dataclasses import dataclass, field, replace
from typing import Any, Dict, FrozenSet, List, Mapping, Optional, Tuple
from xml.etree import ElementTree

from ..errors import ConfigurationError, DrmError
from . import galaxy_child
from .galaxy_source import OUR_NAMES, GalaxySource, read_galaxy_source

OURS = "pulsar_failure_reasons.galaxy_runners"
STOCK = "galaxy.jobs.runners.pulsar"
#: Keys of an environment that are no parameters of its destination.
_NOT_PARAMS = ("id", "tags", "runner", "shell", "env", "resubmit")


@dataclass(frozen=True)
class Environment:
    """One environment (destination) that jobs can be sent to.

    ``resubmit`` is as it stands in the file, None where there is none; ``runner`` is None where
    the file does not say (an abstract destination of TPV, or a tool of it).
    """

    id: str
    runner: Optional[str]
    params: Mapping[str, Any]
    resubmit: Any = None
    tags: Tuple[str, ...] = ()
    in_tpv: bool = False


@dataclass
class GalaxySite:
    """Galaxy's job configuration, and what its Python told of it.

    ``runners`` are the values of ``load`` by the runners' ids. ``told`` is what the process with
    Galaxy in it said, {} where there is no Galaxy here; ``trouble`` is why it said nothing.
    """

    path: str
    runners: Dict[str, str]
    environments: List[Environment]
    default_condition: Optional[str] = None
    source: GalaxySource = field(default_factory=GalaxySource)
    told: Mapping[str, Any] = field(default_factory=dict)
    trouble: Optional[str] = None

    def targets(self) -> FrozenSet[str]:
        """Return all names that a rule can send a job to."""
        names = {environment.id for environment in self.environments}
        return frozenset(names.union(*(e.tags for e in self.environments)))

    def is_pulsar(self, runner: Optional[str]) -> bool:
        """Tell whether a runner is one of Pulsar's, ours or Galaxy's own."""
        return self.runners.get(runner or "", "").partition(":")[0] in (OURS, STOCK)

    def is_ours(self, runner: Optional[str]) -> bool:
        """Tell whether a runner is loaded by our class, or has our mixin."""
        load = self.runners.get(runner or "", "")
        told = self.told.get("loads", {}).get(load, {})
        return bool(told.get("ours", load.partition(":")[0] == OURS))

    def any_is_ours(self) -> bool:
        """Tell whether our names are there for the rules of all environments."""
        return any(self.is_ours(runner) for runner in self.runners)


def describe_galaxy(job_conf: Optional[str], galaxy_yml: Optional[str]) -> GalaxySite:
    """Return what the checks need.

    Raises:
        ConfigurationError: a file cannot be read, or makes no sense.
    """
    settings = _settings(galaxy_yml)
    path, content = _job_config(job_conf, galaxy_yml, settings)
    runners = _runners(path, content)
    site = GalaxySite(
        path, runners, read_environments(path, content),
        default_condition=settings.get("default_job_resubmission_condition"),
        source=read_galaxy_source(),
    )
    if site.source.folder is not None:
        try:
            site.told = galaxy_child.ask(sorted(set(runners.values())))
            names = frozenset(site.told.get("our_names") or OUR_NAMES)
            site.source = replace(site.source, our_names=names)
        except DrmError as error:
            site.trouble = str(error)
    return site


def read_yaml(path: str) -> Any:
    """Return the content of a YAML file.

    Raises:
        ConfigurationError: it cannot be read.
    """
    try:
        # By name: it comes with Pulsar and with Galaxy, and is no dependency of ours.
        yaml = importlib.import_module("yaml")
    except ImportError:
        raise ConfigurationError("PyYAML is not here: pip install pyyaml") from None
    try:
        with open(path, encoding="utf-8") as handle:
            return yaml.safe_load(handle)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        reason = getattr(error, "strerror", None) or " ".join(str(error).split())
        raise ConfigurationError(f"{path} cannot be read: {reason}") from None


def _settings(galaxy_yml: Optional[str]) -> Dict[str, Any]:
    if galaxy_yml is None:
        return {}
    content = read_yaml(galaxy_yml)
    settings = content.get("galaxy") if isinstance(content, dict) else None
    if not isinstance(settings, dict):
        raise ConfigurationError(f"{galaxy_yml} has no section `galaxy`")
    return settings


def _job_config(
    job_conf: Optional[str], galaxy_yml: Optional[str], settings: Dict[str, Any]
) -> Tuple[str, Dict[str, Any]]:
    """Return the job configuration and where it stands."""
    if job_conf is None and isinstance(settings.get("job_config"), dict):
        return str(galaxy_yml), settings["job_config"]
    if job_conf is None:
        beside = os.path.dirname(os.path.abspath(galaxy_yml or ""))
        folder = str(settings.get("config_dir") or beside)
        job_conf = os.path.join(folder, str(settings.get("job_config_file", "job_conf.yml")))
    content = _read_xml(job_conf) if job_conf.endswith(".xml") else read_yaml(job_conf)
    if not isinstance(content, dict):
        raise ConfigurationError(f"{job_conf} holds no job configuration")
    return job_conf, content


def _read_xml(path: str) -> Dict[str, Any]:
    """Return the parts of an old job_conf.xml that matter here, in the form of the YAML."""
    try:
        root = ElementTree.parse(path).getroot()
    except (OSError, ElementTree.ParseError) as error:
        raise ConfigurationError(f"{path} cannot be read: {error}") from None
    return {
        "runners": {
            str(plugin.get("id")): {"load": plugin.get("load")}
            for plugin in root.findall("plugins/plugin")
        },
        "execution": {"environments": {
            str(destination.get("id")): _destination_of_xml(destination)
            for destination in root.findall("destinations/destination")
        }},
    }


def _destination_of_xml(destination: ElementTree.Element) -> Dict[str, Any]:
    rules = [
        # As Galaxy does: the XML's word for the target is another.
        {"environment" if key == "destination" else key: value
         for key, value in rule.attrib.items()}
        for rule in destination.findall("resubmit")
    ]
    return {
        "runner": destination.get("runner"),
        "tags": [tag.strip() for tag in (destination.get("tags") or "").split(",") if tag],
        "params": {
            str(param.get("id")): param.text for param in destination.findall("param")
        },
        **({"resubmit": rules} if rules else {}),
    }


def _runners(path: str, content: Dict[str, Any]) -> Dict[str, str]:
    runners = content.get("runners") or {}
    if not isinstance(runners, dict):
        raise ConfigurationError(f"{path}: `runners` must name runners by their ids")
    return {
        str(name): str(runner.get("load", "")) for name, runner in runners.items()
        if isinstance(runner, dict)
    }


def read_environments(path: str, content: Dict[str, Any]) -> List[Environment]:
    """Return the environments of a job configuration.

    Raises:
        ConfigurationError: they are neither a mapping nor a list.
    """
    execution = content.get("execution") or {}
    given = execution.get("environments") if isinstance(execution, dict) else None
    given = given or {}
    if isinstance(given, list):
        given = {str(one.get("id")): one for one in given if isinstance(one, dict)}
    if not isinstance(given, dict):
        raise ConfigurationError(f"{path}: `execution: environments:` must be a mapping or a list")
    return [
        _environment(str(name), one) for name, one in given.items() if isinstance(one, dict)
    ]


def _environment(name: str, given: Dict[str, Any]) -> Environment:
    params = given.get("params")
    if not isinstance(params, dict):
        params = {key: value for key, value in given.items() if key not in _NOT_PARAMS}
    tags = given.get("tags") or ()
    if isinstance(tags, str):
        tags = [tag.strip() for tag in tags.split(",")]
    runner = given.get("runner")
    return Environment(
        name, None if runner is None else str(runner), params, given.get("resubmit"),
        tuple(map(str, tags)) if isinstance(tags, (list, tuple)) else (),
    )
