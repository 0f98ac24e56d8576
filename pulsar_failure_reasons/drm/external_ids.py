"""The DRMs' names for jobs, and which of them mean the same job.

===========================  ==========================================================
``123``                      a job (any DRM)
``12345_7``                  task 7 of a Slurm array; ``12345_[1-10%2]`` what of it waits
``1234[5]``, ``4018898[]``   task 5 of an LSF or PBS array; a whole PBS array
``46.1-6:1``, ``46.2``       tasks of a Grid Engine array; an HTCondor cluster and process
``123+1``                    component 1 of a heterogeneous Slurm job
``123.cluster``              the Slurm cluster it is on, as slurm-drmaa writes it
``4018898[0].server``        the PBS server it is on
``123@cluster``              the LSF cluster it was sent to
===========================  ==========================================================
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Iterable, List, Optional, Tuple

from ..errors import OutputParseError
from .base import JobView, Phase

#: Longest id we read: Slurm abbreviates a long task list, others print none.
_LONGEST_ID = 4096

_NUMBER = r"[0-9]{1,18}"
_TASK_LIST = r"[0-9,:%. -]*"
# No leading "-" and nothing but these characters, so an id can never be taken for an option.
_ID = re.compile(
    rf"""
    (?P<base>{_NUMBER})
    (?:
        _(?P<slurm_task>{_NUMBER})
      | _?\[(?P<list>{_TASK_LIST})\]
      | \+(?P<component>{_NUMBER})
      | \.(?P<dotted>{_NUMBER}(?:-{_NUMBER}(?::{_NUMBER})?)?)(?![A-Za-z0-9_.-])
    )?
    (?:[.@](?P<suffix>[A-Za-z0-9][A-Za-z0-9_.-]*))?
    """,
    re.VERBOSE,
)
_RANGE = re.compile(rf"({_NUMBER})(?:-({_NUMBER})(?::({_NUMBER}))?)?")


@dataclass(frozen=True)
class ExternalId:
    """A DRM's name for a job, taken apart.

    ``base`` is the number of the job, array or heterogeneous job. ``tasks`` are the array
    tasks meant, as (first, last, step); empty for a whole job, or where the list could not be
    told. ``is_element`` says that the id means a part of ``base`` and not all of it.
    ``component`` is the offset in a heterogeneous job, ``suffix`` a cluster or server.
    """

    text: str
    base: str
    tasks: Tuple[Tuple[int, int, int], ...] = ()
    is_element: bool = False
    component: Optional[int] = None
    suffix: Optional[str] = None


def parse_external_id(text: str) -> ExternalId:
    """Take an external id apart.

    Raises:
        OutputParseError: the text could not be the id of any DRM.
    """
    word = text.strip()
    match = _ID.fullmatch(word) if len(word) <= _LONGEST_ID else None
    if match is None:
        raise OutputParseError(f"not the id of a job: {text!r:.80}; expected e.g. 123 or 123_4")
    component = match.group("component")
    listed = match.group("slurm_task") or match.group("dotted") or match.group("list")
    return ExternalId(
        text=word,
        base=str(int(match.group("base"))),
        tasks=_parse_tasks(listed or ""),
        # "[]" is the whole PBS array.
        is_element=bool(listed) or component is not None,
        component=int(component) if component is not None else None,
        suffix=match.group("suffix"),
    )


def _parse_tasks(listed: str) -> Tuple[Tuple[int, int, int], ...]:
    tasks: List[Tuple[int, int, int]] = []
    for part in listed.partition("%")[0].split(","):
        if not part.strip():
            continue
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            # "..." where Slurm cut a long list: all that is known is that it is a part.
            return ()
        first = int(match.group(1))
        tasks.append((first, int(match.group(2) or first), max(1, int(match.group(3) or 1))))
    return tuple(tasks)


def base_id(text: str) -> str:
    """Return the number of the job, array or heterogeneous job that an id belongs to.

    Raises:
        OutputParseError: see :func:`parse_external_id`.
    """
    return parse_external_id(text).base


def same_job(wanted: str, seen: str) -> bool:
    """Tell whether ``seen`` is the job ``wanted`` or an element of it.

    ``13`` is seen in ``13_1`` and ``13_[4-10%3]``; ``13_7`` is seen in ``13_[4-10%3]`` (it
    still waits there), but not in ``13_1`` nor in ``13``. A cluster or server that one of the
    two does not name is no difference.

    Raises:
        OutputParseError: one of them is no id.
    """
    a, b = parse_external_id(wanted), parse_external_id(seen)
    if a.base != b.base or not _same_suffix(a.suffix, b.suffix):
        return False
    if not a.is_element:
        return True
    if not b.is_element:
        return False
    if a.component is not None or b.component is not None:
        return a.component == b.component
    return _tasks_meet(a.tasks, b.tasks)


def _same_suffix(a: Optional[str], b: Optional[str]) -> bool:
    # PBS prints its server with or without the domain.
    if a is None or b is None or a.lower() == b.lower():
        return True
    return a.lower().startswith(b.lower() + ".") or b.lower().startswith(a.lower() + ".")


def _tasks_meet(
    wanted: Tuple[Tuple[int, int, int], ...], seen: Tuple[Tuple[int, int, int], ...]
) -> bool:
    if not wanted or not seen:
        # A list that Slurm cut short may hold any task.
        return True
    if len(wanted) == 1 and wanted[0][0] == wanted[0][1]:
        task = wanted[0][0]
        return any(low <= task <= high and (task - low) % step == 0 for low, high, step in seen)
    return any(low <= last and first <= high for first, last, _ in wanted for low, high, _ in seen)


def alive_ids(external_id: str, views: Iterable[JobView]) -> List[str]:
    """Return the ids of the job's elements that have not ended, in the order seen.

    Raises:
        OutputParseError: ``external_id`` or the id of a view is none.
    """
    return [
        view.external_id
        for view in views
        if view.phase is not Phase.ENDED and same_job(external_id, view.external_id)
    ]
