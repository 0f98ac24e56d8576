"""What this Python's Galaxy has in its source: which names its conditions know, and what it reads.

Galaxy's modules are read, not imported, which takes seconds and may fail for what is checked here.
"""

from __future__ import annotations

import ast
import importlib.util
import os
from dataclasses import dataclass
from typing import FrozenSet, Optional

_RESUBMIT = os.path.join("jobs", "runners", "state_handlers", "resubmit.py")

#: The names of 26.1.2, used where there is no Galaxy to look at.
GALAXY_NAMES = frozenset({
    "walltime_reached", "memory_limit_reached", "unknown_error", "tool_detected_failure",
    "tool_timelimit_reached", "any_failure", "any_potential_job_failure", "attempt",
    "seconds_running", "seconds_since_queued",
})
#: The names of galaxy_runners.conditions, which can be imported with Galaxy only; a process with
#: Galaxy in it tells those that are there.
OUR_NAMES = frozenset({
    "infrastructure_failure", "node_failure", "preempted", "cancelled_externally",
    "disk_limit_reached", "cpu_time_reached", "launch_error", "used_memory_bytes",
    "requested_memory_bytes", "used_walltime_s", "requested_walltime_s", "failed_node",
})


@dataclass(frozen=True)
class GalaxySource:
    """A Galaxy's own names, and whether it takes a rule's target from ``destination``.

    ``folder`` is None where there is no Galaxy; then ``reads_destination`` is None too.
    """

    folder: Optional[str] = None
    names: FrozenSet[str] = GALAXY_NAMES
    our_names: FrozenSet[str] = OUR_NAMES
    reads_destination: Optional[bool] = None


def read_galaxy_source() -> GalaxySource:
    """Return what this Python's Galaxy is like."""
    found = importlib.util.find_spec("galaxy")
    for folder in (found.submodule_search_locations or ()) if found else ():
        path = os.path.join(folder, _RESUBMIT)
        if os.path.isfile(path):
            with open(path, encoding="utf-8") as handle:
                text = handle.read()
            return GalaxySource(
                folder, condition_names(text) or GALAXY_NAMES,
                reads_destination=reads_destination(text),
            )
    return GalaxySource()


def condition_names(text: str) -> FrozenSet[str]:
    """Return the names that the resubmit handler gives to conditions: the keys of its dict."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Dict):
            keys = {key.value for key in node.keys if isinstance(key, ast.Constant)}
            if {"any_failure", "attempt"} <= keys:
                return frozenset(str(key) for key in keys)
    return frozenset()


def reads_destination(text: str) -> bool:
    """Tell whether the handler takes a rule's target from ``destination`` too (25.1 does)."""
    return any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        and node.func.attr == "get" and bool(node.args)
        and isinstance(node.args[0], ast.Constant) and node.args[0].value == "destination"
        for node in ast.walk(ast.parse(text))
    )
