"""Checks of Pulsar: its version, our seams in a fresh process, and the types of the managers."""

from __future__ import annotations

import configparser
import difflib
import getpass
import os
import re
import sys
from typing import Any, Dict, Iterable, Iterator, List, Optional

from ..errors import DrmError
from ..switch import VARIABLE, reasons_are_off
from . import child
from .findings import Finding
from .site import Site, is_ours

#: What an operator would use instead of one of stock Pulsar's types.
BETTER_TYPE = {
    "queued_drmaa": "queued_slurm, if the DRM is Slurm",
    "queued_cli": "queued_cli_classified",
    "queued_condor": "queued_htcondor_classified",
}
OUR_FACTORY = "pulsar_failure_reasons.wsgi:app_factory"
ROUTES = {
    "run": "started by `pulsar-failure-reasons run ...`",
    "wsgi": f"served with paste.app_factory = {OUR_FACTORY}",
    "install": "its WSGI file calls pulsar_failure_reasons.install()",
}


def check_user(site: Site) -> Iterator[Finding]:
    """Tell who checks: the service may be another user with another PATH."""
    yield Finding(
        "PFR104",
        f"checked as {_user()} with {sys.executable} and PATH={os.environ.get('PATH', '')}",
    )


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a uid without a name
        return f"uid {os.geteuid()}"


def check_seams(site: Site) -> Iterator[Finding]:
    """See Pulsar's version, and which way the seams come in, in a fresh process."""
    try:
        told = _ask(site, child.STARTUP)
        yield from _version(told)
        if told["refusal"]:
            return
        if told["at_start"]:
            yield from _at_start(told)
            return
        by_hand = _ask(site, child.BY_HAND)
    except DrmError as error:
        yield Finding("PFR105", str(error))
        return
    yield from _by_hand(site, by_hand)


def _ask(site: Site, route: str) -> Dict[str, Any]:
    """Return what a fresh process told, started once for each route; raises as ``child.ask``."""
    if route not in site.told:
        site.told[route] = child.ask(route)
    return site.told[route]


def _version(told: Dict[str, Any]) -> Iterator[Finding]:
    version = told["pulsar"]
    if told["refusal"]:
        yield Finding("PFR102", told["refusal"])
    elif not re.match(r"\d+\.\d+\.\d+", version):
        yield Finding("PFR103", f"Pulsar says that its version is {version!r:.80}")
    else:
        yield Finding("PFR101", f"pulsar-app {version}, pulsar-failure-reasons {told['plugin']}")


def _at_start(told: Dict[str, Any]) -> Iterator[Finding]:
    lacking = _lacking(told)
    if lacking:
        yield lacking
        return
    # The class that a .pth makes belongs to no module of ours, that of a .start file does.
    kind = ".start" if told["at_start"][0].startswith("pulsar_failure_reasons") else ".pth"
    files = [path for path in told["files"] if path.endswith(kind)]
    yield Finding(
        "PFR110", f"active in a fresh process, by {files[0] if files else 'a ' + kind + ' file'}"
    )


def _by_hand(site: Site, told: Dict[str, Any]) -> Iterator[Finding]:
    lacking = _lacking(told)
    if lacking:
        yield lacking
    elif site.route != "auto":
        code = "PFR111" if site.route == "wsgi" else "PFR112"
        yield Finding(code, f"active where Pulsar is {ROUTES[site.route]}")
    elif _app_factory(site.server_ini) == OUR_FACTORY:
        yield Finding("PFR111", f"no .pth file; active by paste.app_factory of {site.server_ini}")
    else:
        found = ", ".join(told["files"])
        yield Finding("PFR113", (
            f"Python does not read {found} (started with -S or -I, or not in a site folder?)"
            if found else "there is no pulsar_failure_reasons.pth, and no other way in is known"
        ))


def _lacking(told: Dict[str, Any]) -> Optional[Finding]:
    """Return the finding for seams that are not in place."""
    lacking = [name for name, active in told["seams"].items() if not active]
    if not lacking:
        return None
    why = "; ".join(told["log"]) or f"not wrapped in pulsar-app {told['pulsar']}"
    return Finding("PFR114", f"{' and '.join(lacking)}: {why}")


def _app_factory(server_ini: Optional[str]) -> Optional[str]:
    if server_ini is None:
        return None
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read(server_ini)
    except (configparser.Error, UnicodeDecodeError, OSError):
        return None  # the check of the logging configuration says so
    for section in parser.sections():
        if section.startswith("app:") and parser.has_option(section, "paste.app_factory"):
            return parser.get(section, "paste.app_factory").strip()
    return None


# ---- the types ----------------------------------------------------------------------------


def check_types(site: Site) -> Iterator[Finding]:
    """See whether each manager's type is there, and can tell why a job ended."""
    if site.trouble is not None:
        yield Finding("PFR114", f"the types of managers cannot be listed: {site.trouble}")
        return
    telling = 0
    for configured in site.config.managers:
        manager_class = site.types.get(configured.type)
        if manager_class is None:
            yield Finding("PFR121", _no_type(configured.type, site), configured.name)
        elif is_ours(manager_class):
            telling += 1
            origin = f"{manager_class.__module__}:{manager_class.__name__}"
            yield Finding("PFR120", f"type {configured.type}, from {origin}", configured.name)
        else:
            better = BETTER_TYPE.get(configured.type)
            yield Finding(
                "PFR122", f"type {configured.type}", configured.name,
                do=f"use {better}" if better else
                "queued_slurm, queued_htcondor_classified and queued_cli_classified can",
            )
    if not telling:
        yield Finding("PFR123", f"{site.config.path} has no manager of ours")


def _no_type(wanted: str, site: Site) -> str:
    # A type that was left out says why in its own words.
    try:
        site.types[wanted]
    except KeyError as error:
        words = str(error)
        if " " in words:
            return words
    near = difflib.get_close_matches(wanted, list(site.types), n=1)
    return f"Pulsar has no manager type {wanted!r:.80}" + (
        f" (did you mean {near[0]!r}?)" if near else ""
    )


def check_entry_points(site: Site) -> Iterator[Finding]:
    """Tell of entry points that clash, or that cannot be imported."""
    try:
        told = _ask(site, child.STARTUP)
        if not told["at_start"]:
            told = _ask(site, child.BY_HAND)
    except DrmError:
        return  # the check of the seams says so
    for line in _without_doubles(told["log"]):
        if "manager type" in line or "entry points" in line:
            yield Finding("PFR124", line)


def _without_doubles(lines: Iterable[str]) -> List[str]:
    return list(dict.fromkeys(lines))


# ---- switches and company -----------------------------------------------------------------


def check_switches(site: Site) -> Iterator[Finding]:
    """Tell of what keeps reasons from being sent on purpose."""
    if reasons_are_off():
        yield Finding("PFR140", f"{VARIABLE}={os.environ.get(VARIABLE)}: nothing is recorded "
                                "or sent; managers, statuses and log lines stay")
    for made in site.usable():
        if made.manager.observe_only:
            yield Finding("PFR141", "observe_only: true", made.name)


def check_company(site: Site) -> Iterator[Finding]:
    """Tell which managers share a look at the DRM, or a staging folder."""
    looks: Dict[int, List[str]] = {}
    for made in site.usable():
        looks.setdefault(id(made.manager.observer(None)), []).append(made.name)
    for names in looks.values():
        if len(names) > 1:
            yield Finding("PFR142", f"{', '.join(names)} share one query for jobs", names[0])
    folders: Dict[str, List[str]] = {}
    for configured in site.config.managers:
        folders.setdefault(configured.staging_directory, []).append(configured.name)
    for folder, names in folders.items():
        if len(names) > 1:
            yield Finding(
                "PFR142", f"{', '.join(names)} share the staging folder {folder}", names[0],
                do="with more than one Galaxy, assign_ids: uuid keeps their job ids apart",
            )
