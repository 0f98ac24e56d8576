"""OpenPBS (PBS Pro) or Torque: the same numbers mean other things, so this is asked first."""

from __future__ import annotations

import re
from enum import Enum


class Flavour(Enum):
    """Which family of PBS answers."""

    #: OpenPBS, PBS Professional, Altair PBS.
    OPENPBS = "openpbs"
    TORQUE = "torque"
    #: Numbers that the two read differently then mean nothing.
    UNKNOWN = "unknown"


def flavour_from_version(text: str) -> Flavour:
    """Return the flavour that ``qstat --version`` or ``qstat -B -f`` shows.

    OpenPBS prints ``pbs_version = 23.06.06`` (``PBSPro_13.1.1`` before 18), Torque prints
    ``Version: 6.1.2`` and, as a server attribute, ``pbs_version = 6.1.2``. Torque stayed below
    8; PBS Pro without its name begins with 18.
    """
    if re.search(r"PBS ?Pro|OpenPBS|PBS Professional|Altair", text, re.IGNORECASE):
        return Flavour.OPENPBS
    if re.search(r"\btorque\b|^(?:Commit|Revision): ", text, re.IGNORECASE | re.MULTILINE):
        # Torque's qstat prints its commit behind its version, whatever the number is.
        return Flavour.TORQUE
    match = re.search(r"(?:pbs_)?version\s*[=:]\s*([0-9]{1,4})\.[0-9]", text, re.IGNORECASE)
    if match is None:
        return Flavour.UNKNOWN
    major = int(match.group(1))
    if major >= 13:
        return Flavour.OPENPBS
    return Flavour.TORQUE if major <= 7 else Flavour.UNKNOWN


_TORQUE_MARKS = re.compile(
    r"torque|moab|maui|\bMOAB_INFO\b|energy_used|PBS_Server;|^\s*exit_status =|job_state = C\b"
    r"|<job_state>|exceeded \w+ usage (?:hard|soft) limit|^Exit_status=-?[0-9]+\s*$"
    r"|^\s*start_time = |mom_priv/jobs/[0-9]+\S*\.SC\b",
    re.MULTILINE,
)
_OPENPBS_MARKS = re.compile(
    r"openpbs|pbs ?pro|\"pbs_version\"|^\s*(?:substate|run_count|Stageout_status|exec_vnode) = "
    r"|resources_used\.(?:cpupercent|ncpus)|Server@|exceeded resource|exec_vnode"
    r"|^\s*Exit_status = |^\s*Resource_List\.(?:select|place) = |job_state = [FMBX]\b",
    re.MULTILINE,
)


def guess_flavour(text: str, source: str = "") -> Flavour:
    """Return the flavour that a text from the wild gives away, by what only one of them writes.

    Args:
        text: The text.
        source: What is known of its origin; a flavour named there decides.
    """
    named = source.lower()
    if re.search(r"torque|moab|maui", named):
        return Flavour.TORQUE
    if re.search(r"openpbs|pbs ?pro", named):
        return Flavour.OPENPBS
    torque, openpbs = _TORQUE_MARKS.search(text), _OPENPBS_MARKS.search(text)
    if bool(torque) == bool(openpbs):
        return Flavour.UNKNOWN
    return Flavour.TORQUE if torque else Flavour.OPENPBS
