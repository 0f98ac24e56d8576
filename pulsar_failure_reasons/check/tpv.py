"""The destinations of Total Perspective Vortex's configuration files, as environments.

Only what stands in files of this host is read, and no expression is evaluated. Form:
https://total-perspective-vortex.readthedocs.io (``destinations``, ``resubmit`` by rule names).
"""

from __future__ import annotations

import os
from typing import Any, Dict, Iterator, List, Optional, Tuple

from ..errors import ConfigurationError
from .findings import Finding
from .galaxy_site import Environment, GalaxySite, read_yaml

#: Sections whose entries may have a ``resubmit`` of their own.
_SECTIONS = ("destinations", "tools", "roles", "users")
_LONGEST_CHAIN = 20


def read_tpv(site: GalaxySite) -> Tuple[List[Environment], List[Finding]]:
    """Return what TPV's files have, and findings about files that were not read."""
    environments: List[Environment] = []
    findings: List[Finding] = []
    for source in _sources(site):
        try:
            content = _content(source, site.path)
        except ConfigurationError as error:
            findings.append(Finding("PFR541", str(error)))
            continue
        if content is None:
            findings.append(Finding("PFR540", str(source)))
            continue
        environments.extend(_environments(content))
    return environments, findings


def _sources(site: GalaxySite) -> Iterator[Any]:
    """Yield the files, addresses or inline configurations that dispatchers of TPV name, once."""
    seen: List[Any] = []
    for environment in site.environments:
        given = environment.params.get("tpv_config_files") or environment.params.get("tpv_configs")
        for source in given if isinstance(given, list) else [given] if given else []:
            if source not in seen:
                seen.append(source)
                yield source


def _content(source: Any, job_conf: str) -> Optional[Dict[str, Any]]:
    """Return a configuration, None where it is not on this host."""
    if isinstance(source, dict):
        return source
    path = _path(str(source), job_conf)
    if path is None:
        return None
    content = read_yaml(path)
    if not isinstance(content, dict):
        raise ConfigurationError(f"{path} holds no configuration of TPV")
    return content


def _path(source: str, job_conf: str) -> Optional[str]:
    """Return where a file is: paths are relative to Galaxy's folder, mostly the parent of config.
    """
    if "://" in source:
        return None
    beside = os.path.dirname(os.path.abspath(job_conf))
    for folder in ("", beside, os.path.dirname(beside)):
        path = os.path.join(folder, source)
        if os.path.isfile(path):
            return path
    return None


def _environments(content: Dict[str, Any]) -> Iterator[Environment]:
    shared = content.get("global")
    inherited = shared.get("default_inherits") if isinstance(shared, dict) else None
    for section in _SECTIONS:
        entries = content.get(section)
        if not isinstance(entries, dict):
            continue
        for name, entry in entries.items():
            if not isinstance(entry, dict):
                continue
            is_place = section == "destinations" and not (
                entry.get("abstract") or name == inherited)
            # What others inherit is checked where it stands, once.
            if is_place or entry.get("resubmit"):
                yield _environment(section, str(name), entries)


def _environment(section: str, name: str, entries: Dict[str, Any]) -> Environment:
    chain = list(_chain(name, entries))
    params: Dict[str, Any] = {}
    for entry in reversed(chain):
        given = entry.get("params")
        params.update(given if isinstance(given, dict) else {})
    is_destination = section == "destinations"
    runner = next((entry["runner"] for entry in chain if entry.get("runner")), None)
    return Environment(
        f"TPV {section[:-1]} {name}",
        str(runner) if runner and is_destination else None,
        params,
        next((entry["resubmit"] for entry in chain if entry.get("resubmit")), None),
        in_tpv=True,
    )


def _chain(name: str, entries: Dict[str, Any]) -> Iterator[Dict[str, Any]]:
    """Yield an entry and those it inherits from."""
    for _ in range(_LONGEST_CHAIN):
        entry = entries.get(name)
        if not isinstance(entry, dict):
            return
        yield entry
        name = str(entry.get("inherits") or "")
