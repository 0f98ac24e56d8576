"""An app.yml of a test's own, and what the checks find in it."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Set

import yaml

from pulsar_failure_reasons.app_config import load_app_config
from pulsar_failure_reasons.check.findings import Finding
from pulsar_failure_reasons.check.run import Check, run_checks
from pulsar_failure_reasons.check.site import Site, describe_site
from tests.pulsar_in_process import own_observers

NOBODY = 65534
#: A query that takes half of it is a finding of its own.
PATIENCE_S = 240


def write_app(home: Path, **app: Any) -> str:
    """Write an app.yml whose folders are there; a value of None leaves an option out."""
    for name in ("staging", "persisted"):
        (home / name).mkdir(exist_ok=True)
    options = {
        "staging_directory": str(home / "staging"),
        "persistence_directory": str(home / "persisted"),
        **app,
    }
    path = home / "app.yml"
    path.write_text(yaml.safe_dump({k: v for k, v in options.items() if v is not None}))
    return str(path)


def describe(path: str, **more: Any) -> Site:
    """Return the site of an app.yml."""
    return describe_site(load_app_config(path), **more)


def found_in(path: str, *checks: Any, **more: Any) -> List[Finding]:
    """Return what these checks find; a check that fails is no finding here but an error."""
    with own_observers():
        site = describe(path, **more)
        return [finding for check in checks for finding in check(site)]


def run_all(path: str, checks: Iterable[Check[Site]], **more: Any) -> List[Finding]:
    """Return what all these checks find, as the command runs them."""
    with own_observers():
        return list(run_checks(list(checks), describe(path, **more)))


def codes(findings: Iterable[Finding]) -> Set[str]:
    """Return the codes that were found."""
    return {finding.code for finding in findings}


def said(findings: Iterable[Finding], code: str) -> str:
    """Return the text of the findings with this code."""
    return "\n".join(finding.what for finding in findings if finding.code == code)


def slurm_app(home: Path, **manager: Any) -> str:
    """Write an app.yml with one ``queued_slurm``, to which a stalling machine is no slow DRM."""
    patient = {"type": "queued_slurm", "command_timeout": PATIENCE_S}
    return write_app(home, manager={**patient, **manager})


@contextlib.contextmanager
def as_nobody() -> Iterator[None]:
    """Be an ordinary user for the block, where the tests run as root."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if before == 0:
            os.seteuid(before)


def listing(folder: Path) -> Dict[str, int]:
    """Return every path below a folder with its time of change, to see that nothing changed."""
    return {str(path): path.lstat().st_mtime_ns for path in sorted(folder.rglob("*"))}
