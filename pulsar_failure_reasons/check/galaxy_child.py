"""What a process with Galaxy's runners in it tells; run in one, since the import may break."""

from __future__ import annotations

import importlib
import json
import sys
from importlib import metadata
from typing import Any, Dict, List, Optional

from .child import told_by

#: Galaxy's runners take some seconds to import on a busy host.
TIMEOUT_S = 180.0
_OURS = "pulsar_failure_reasons."
_CHILD = f"from {__name__} import main; main(sys.argv[1:])"


def ask(loads: List[str]) -> Dict[str, Any]:
    """Return what a fresh process tells of the Pulsar library and of these ``load`` values.

    Raises:
        DrmUnreachableError: it could not be started, or did not come to its end.
        OutputParseError: it told nothing.
    """
    return told_by(_CHILD, loads, "a fresh Python process with Galaxy", TIMEOUT_S)


def main(loads: List[str]) -> None:
    """Import Galaxy's runners and print what is there."""
    told = {
        "galaxy": version_of("galaxy-app") or version_of("galaxy-job-execution"),
        "library": version_of("pulsar-galaxy-lib"),
        "pulsar_app": version_of("pulsar-app"),
        "tpv": version_of("total-perspective-vortex"),
        "pulsar": _pulsar_version(),
        "import_error": _import_error("galaxy.jobs.runners.pulsar"),
        "our_names": _our_names(),
        "loads": {load: _look_at(load) for load in loads if "pulsar" in load.lower()},
    }
    print()  # behind whatever a module printed
    print(json.dumps(told))


def version_of(distribution: str) -> Optional[str]:
    """Return a distribution's version, None where it is not installed."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _pulsar_version() -> Optional[str]:
    try:
        return str(importlib.import_module("pulsar").__version__)
    except Exception:  # a half of it, left by a removal
        return None


def _import_error(module: str) -> Optional[str]:
    try:
        importlib.import_module(module)
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]
    return None


def _our_names() -> Optional[List[str]]:
    """Return the names that our classes give to conditions, None where they cannot be imported."""
    if _import_error(f"{_OURS}galaxy_runners.conditions") is not None:
        return None
    conditions = sys.modules[f"{_OURS}galaxy_runners.conditions"]
    return sorted(conditions.values_for(None))


def _look_at(load: str) -> Dict[str, Any]:
    """Return whether a ``load`` value gives a class, and whether our mixin is in it."""
    module_name, _, class_name = load.partition(":")
    error = _import_error(module_name)
    if error is not None:
        return {"error": error}
    module = sys.modules[module_name]
    # Without a class Galaxy loads all of __all__, and the last one stays.
    class_name = class_name or list(getattr(module, "__all__", ()))[-1]
    runner = getattr(module, class_name, None)
    if not isinstance(runner, type):
        return {"error": f"{module_name} has no class {class_name}"}
    return {"class": class_name, "ours": _has_ours(runner)}


def _has_ours(runner: type) -> bool:
    if any(one.__module__.startswith(_OURS) for one in runner.__mro__):
        return True
    # Where our methods were put into Galaxy's own class.
    return any(
        str(getattr(method, "__module__", "")).startswith(_OURS)
        for one in runner.__mro__ for method in vars(one).values()
    )
