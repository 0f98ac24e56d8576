"""The summary that an epilogue of a site writes behind a job's output.

Torque's own sample has ``Limits:`` and ``Resources:``; NCI's and NAS's have a table of requested
and used. Nothing in it says why a job ended but its exit status, and used against requested.
"""

from __future__ import annotations

import re
from typing import Dict, Optional, Sequence

from ..captured import Captured, from_view
from .captured_lines import ended_view, requeued
from .flavour import Flavour

_MARK = re.compile(
    r"PBS Epilogue|Resource Usage on [0-9]|Job Resource Usage Summary"
    r"|Resources? (?:Used|Requested):", re.IGNORECASE,
)
_EXIT = re.compile(
    r"^\s*(?:Job )?Exit[ _]?(?:Status|Code|Value)\s*:\s*(?P<number>-?[0-9]{1,4})(?![0-9:.])", re.I
)
#: ``Limits: neednodes=1,walltime=01:00:00`` and ``Walltime requested: 00:10:00 ... Used: ...``.
_LIST = re.compile(r"^\s*(?P<what>Limits|Resources)\s*:\s*(?P<values>.*)$", re.IGNORECASE)
_CELL = re.compile(
    r"\b(?P<name>Wall ?time|Memory|CPU Time)\s+(?P<what>Requested|Used)\s*:"
    r"\s*(?P<value>[0-9][\w.:]*)", re.IGNORECASE,
)
_NAMES = {"walltime": "walltime", "memory": "mem", "cputime": "cput"}


def read_epilogue(lines: Sequence[str], flavour: Flavour) -> Optional[Captured]:
    """Return what an epilogue's summary says of the end; None where there is none."""
    if not any(_MARK.search(line) for line in lines):
        return None
    attributes: Dict[str, str] = {}
    evidence = ""
    for line in lines:
        match = _EXIT.match(line)
        if match:
            attributes["exit_status"], evidence = match.group("number"), line
        attributes.update(_used_and_requested(line[:2000]))
    if not evidence:
        return None
    again = requeued(attributes["exit_status"], flavour, evidence, "epilogue")
    return again or from_view(ended_view(attributes, flavour, "epilogue"), "PBS")


def _used_and_requested(line: str) -> Dict[str, str]:
    found: Dict[str, str] = {}
    listed = _LIST.match(line)
    if listed:
        group = "resource_list" if listed.group("what").lower() == "limits" else "resources_used"
        for name, value in re.findall(r"\b(walltime|v?mem|cput)=([^,\s]+)", listed.group("values")):
            found[f"{group}.{name}"] = value
    for cell in _CELL.finditer(line):
        group = "resources_used" if cell.group("what").lower() == "used" else "resource_list"
        name = _NAMES[cell.group("name").lower().replace(" ", "")]
        found[f"{group}.{name}"] = cell.group("value")
    return found
