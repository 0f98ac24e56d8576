"""The command lines for Grid Engine, as argv lists."""

from __future__ import annotations

import re
from typing import Dict, List, Mapping, Sequence

from ...errors import OutputParseError
from ..external_ids import parse_external_id

_SCRUBBED = re.compile(
    r"SGE_(?:LONG_\w+|SINGLE_LINE|DEBUG_LEVEL|QSTAT\w*)|LC_\w+|LANG|LANGUAGE"
)


def clean_environment(environment: Mapping[str, str]) -> Dict[str, str]:
    """Return an environment in which Grid Engine's commands answer as these parsers expect.

    What says where the cell is stays (``SGE_ROOT``, ``SGE_CELL``, ``SGE_QMASTER_PORT`` ...).
    """
    kept = {k: v for k, v in environment.items() if not _SCRUBBED.fullmatch(k)}
    return {**kept, "LC_ALL": "C"}


def qstat_command(user: str) -> List[str]:
    """Return the command that lists all living jobs of a user, with what they asked for.

    By user: there is no list by ids, and ``qstat -j`` does not tell the state.

    Raises:
        ValueError: a user that cannot be one.
    """
    return ["qstat", "-xml", "-r", "-u", _user(user)]


def qstat_details_command(external_ids: Sequence[str]) -> List[str]:
    """Return the command that shows the error reasons of these jobs.

    Raises:
        OutputParseError: one of the ids is none.
        ValueError: no ids.
    """
    return ["qstat", "-xml", "-j", ",".join(_bases(external_ids))]


def qacct_command(external_id: str) -> List[str]:
    """Return the command that shows all records of one job or task.

    Raises:
        OutputParseError: the id is none.
    """
    parsed = parse_external_id(external_id)
    task = [f"{a}-{b}:{s}" for a, b, s in parsed.tasks[:1]]
    return ["qacct", "-j", parsed.base, *(["-t", *task] if task else [])]


def qacct_user_command(user: str, days: int = 2) -> List[str]:
    """Return the one command that shows all records of a user, for many jobs at once.

    Args:
        user: Whose.
        days: How far back; jobs that never started have no time and are not shown.

    Raises:
        ValueError: a user that cannot be one.
    """
    return ["qacct", "-o", _user(user), "-d", str(int(days)), "-j"]


def qdel_command(external_ids: Sequence[str]) -> List[str]:
    """Return the command that deletes these jobs.

    Raises:
        OutputParseError: one of the ids is none.
        ValueError: no ids.
    """
    if not external_ids:
        raise ValueError("no ids to delete")
    return ["qdel", *dict.fromkeys(_range_id(external_id) for external_id in external_ids)]


def qsub_command(
    script: str,
    *,
    job_name: str,
    stdout: str,
    stderr: str,
    native_specification: Sequence[str] = (),
) -> List[str]:
    """Return the command that submits a script by its path; of equal options the last wins."""
    return [
        "qsub", "-terse", "-N", job_name, *native_specification, "-o", _path(stdout),
        "-e", _path(stderr), script,
    ]


def parse_submission(text: str) -> str:
    """Return the external id of ``Your job 10 ("job.sh") has been submitted`` or ``-terse``.

    ``46`` for an array as well (``46.1-6:1``): its tasks are found by it. The last line of that
    form counts, since submit scripts of sites print text before it.

    Raises:
        OutputParseError: no line has that form.
    """
    for line in reversed(text.splitlines()):
        match = re.fullmatch(
            r"\s*(?:Your job(?:-array)? )?([1-9][0-9]{0,17})(?:\.[0-9]+-[0-9]+:[0-9]+)?"
            r"(?: \(\".*\"\) has been submitted)?\s*",
            line,
        )
        if match:
            return match.group(1)
    raise OutputParseError(
        f"qsub printed no job id: {text[-200:]!r}; expected Your job 10 (\"name\") has been "
        "submitted"
    )


def _path(path: str) -> str:
    # Before a colon stands a host; "$JOB_ID" and the like are replaced.
    return ":" + path


def _user(user: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.@+-]*\$?", user):
        raise ValueError(f"not a user: {user!r}")
    return user


def _bases(external_ids: Sequence[str]) -> List[str]:
    if not external_ids:
        raise ValueError("no ids to ask Grid Engine for")
    return list(dict.fromkeys(_checked(external_id) for external_id in external_ids))


def _checked(external_id: str) -> str:
    parsed = parse_external_id(external_id)
    if parsed.suffix or parsed.component is not None or parsed.base == "0":
        raise OutputParseError(f"not the id of a Grid Engine job: {external_id!r:.80}")
    return parsed.base


def _range_id(external_id: str) -> str:
    base = _checked(external_id)
    tasks = parse_external_id(external_id).tasks
    if not tasks:
        return base
    first, last, step = tasks[0]
    return f"{base}.{first}" if first == last else f"{base}.{first}-{last}:{step}"
