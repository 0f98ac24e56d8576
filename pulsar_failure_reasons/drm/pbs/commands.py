"""The command lines for PBS, as argv lists."""

from __future__ import annotations

import re
from typing import Dict, List, Mapping, Sequence

from ...errors import OutputParseError
from ..external_ids import parse_external_id
from .flavour import Flavour

_SCRUBBED = re.compile(r"PBS_(?:JOBID|QSTAT\w*|DPREFIX)|QSTAT_\w+|LC_\w+|LANG|LANGUAGE")


def clean_environment(environment: Mapping[str, str]) -> Dict[str, str]:
    """Return an environment in which PBS's commands answer as these parsers expect.

    What says where the server is stays (``PBS_DEFAULT``, ``PBS_SERVER``, ``PBS_CONF_FILE``).
    """
    kept = {k: v for k, v in environment.items() if not _SCRUBBED.fullmatch(k)}
    return {**kept, "LC_ALL": "C"}


def version_command() -> List[str]:
    """Return the command whose answer tells the flavour; it needs no server."""
    return ["qstat", "--version"]


def qstat_command(
    external_ids: Sequence[str], flavour: Flavour, history: bool = False
) -> List[str]:
    """Return the command that shows these jobs.

    OpenPBS answers in JSON, Torque in XML (its ``-x``); of an unknown flavour plain text is
    asked for, which both have.

    Args:
        external_ids: The jobs.
        flavour: Who is asked.
        history: Ask OpenPBS for ended jobs too (its ``-x``). Where it keeps no history it then
            shows no job at all; see :func:`.command_errors.error_from_command`.

    Raises:
        OutputParseError: one of the ids is none.
        ValueError: no ids.
    """
    ids = job_ids(external_ids)
    if flavour is Flavour.OPENPBS:
        return ["qstat", *(["-x"] if history else []), "-f", "-F", "json", *ids]
    if flavour is Flavour.TORQUE:
        return ["qstat", "-x", *ids]
    return ["qstat", "-f", *ids]


def qstat_text_command(external_ids: Sequence[str], history: bool = False) -> List[str]:
    """Return the question whose answer is plain text, for servers without JSON and XML.

    Raises:
        OutputParseError: one of the ids is none.
        ValueError: no ids.
    """
    return ["qstat", *(["-x"] if history else []), "-f", *job_ids(external_ids)]


def qselect_command(job_name: str, user: str) -> List[str]:
    """Return the command that lists the ids of a user's living jobs of this name, one a line.

    Raises:
        ValueError: a name or a user that cannot be one.
    """
    if not job_name or job_name.startswith("-") or re.search(r"[\x00-\x20\x7f]", job_name):
        raise ValueError(f"not the name of a job: {job_name!r}")
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.@+-]*\$?", user):
        raise ValueError(f"not a user: {user!r}")
    return ["qselect", "-u", user, "-N", job_name]


def parse_qselect(text: str) -> List[str]:
    """Return the ids that qselect printed; lines that are none are skipped."""
    words = (line.strip() for line in text.splitlines())
    return [word for word in words if re.fullmatch(r"[0-9]{1,18}(?:\[[0-9]*\])?(?:\.\S+)?", word)]


def tracejob_command(external_id: str, days: int = 2) -> List[str]:
    """Return the command that shows one job's lines of the server's logs.

    Mostly only the server's host and root may read them.

    Raises:
        OutputParseError: the id is none.
    """
    return ["tracejob", "-n", str(int(days)), *job_ids([external_id])]


def qdel_command(external_ids: Sequence[str]) -> List[str]:
    """Return the command that deletes these jobs.

    Raises:
        OutputParseError: one of the ids is none.
        ValueError: no ids.
    """
    return ["qdel", *job_ids(external_ids)]


def qsub_command(
    script: str,
    *,
    job_name: str,
    stdout: str,
    stderr: str,
    native_specification: Sequence[str] = (),
) -> List[str]:
    """Return the command that submits a script by its path.

    PBS takes 15 characters of a name in old versions; names that begin with a digit it refuses.
    """
    return [
        "qsub", "-N", job_name, *native_specification, "-o", stdout, "-e", stderr, script,
    ]


def parse_submission(text: str) -> str:
    """Return the external id that qsub printed: ``123.server``, ``123[].server`` or ``123``.

    The last line of that form counts, since sites print banners before it.

    Raises:
        OutputParseError: no line has that form.
    """
    for line in reversed(text.splitlines()):
        word = line.strip()
        if re.fullmatch(r"[0-9]{1,18}(?:\[\])?(?:\.[A-Za-z0-9][A-Za-z0-9_.-]*)?", word):
            return parse_external_id(word).text
    raise OutputParseError(
        f"qsub printed no job id: {text[-200:]!r}; expected a last line like 123.server"
    )


def job_ids(external_ids: Sequence[str]) -> List[str]:
    """Return the ids as PBS's commands take them, each once; 0 is an id like any other.

    Raises:
        OutputParseError: one of the ids is none of PBS's.
        ValueError: there are none (qstat would then show everybody's jobs).
    """
    if not external_ids:
        raise ValueError("no ids to ask PBS for")
    return list(dict.fromkeys(map(_job_id, external_ids)))


def _job_id(external_id: str) -> str:
    parsed = parse_external_id(external_id)
    if not re.fullmatch(r"[0-9]+(?:\[[0-9,:-]*\])?(?:\.[A-Za-z0-9_.-]+)?(?:@.+)?", parsed.text):
        raise OutputParseError(f"not the id of a PBS job: {external_id!r:.80}")
    return parsed.text
