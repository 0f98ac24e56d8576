"""The command lines for LSF, as argv lists."""

from __future__ import annotations

import re
from typing import Dict, List, Mapping, Optional, Sequence

from ...errors import OutputParseError
from ..external_ids import parse_external_id

#: bjobs' fields. The one that holds free text comes last; there is none that a user can write
#: (no job name), because the separator is a single character that a name could hold.
BJOBS_FIELDS = (
    "jobid", "jobindex", "stat", "exit_code", "submit_time", "start_time", "run_time",
    "runtimelimit", "memlimit", "max_mem", "exec_host", "exit_reason",
)
#: JSON quotes, so here the name is safe, and paths.
BJOBS_JSON_FIELDS = (*BJOBS_FIELDS, "job_name", "error_file", "output_file")

#: bjobs takes exactly one character.
_SEPARATOR = re.compile(r"[^\sA-Za-z0-9'\"\\:,.*()\[\]/_+-]")
_SCRUBBED = re.compile(
    r"LSB_(?:BJOBS|BHIST|BACCT|DISPLAY|SHORT|BSUB|SUB|DEFAULT)\w*|LSF_JOB_ARRAY_FORMAT"
    r"|LC_\w+|LANG|LANGUAGE"
)


def clean_environment(environment: Mapping[str, str]) -> Dict[str, str]:
    """Return an environment in which LSF's commands answer as these parsers expect.

    Their own variables are left out (``LSB_BJOBS_FORMAT`` ...; what says where the cluster is
    stays, ``LSF_ENVDIR``), and the locale is C.
    """
    kept = {k: v for k, v in environment.items() if not _SCRUBBED.fullmatch(k)}
    return {**kept, "LC_ALL": "C"}


def bjobs_command(external_ids: Sequence[str], separator: str = "^") -> List[str]:
    """Return the command that lists these jobs, ended ones too, as rows of fields.

    Raises:
        OutputParseError: one of the ids is none.
        ValueError: no ids, or a separator that cannot be one.
    """
    if not _SEPARATOR.fullmatch(separator):
        raise ValueError(f"not a separator for bjobs: {separator!r}; expected e.g. ^")
    columns = f"{' '.join(BJOBS_FIELDS)} delimiter='{separator}'"
    return ["bjobs", "-a", "-noheader", "-o", columns, *job_ids(external_ids)]


def bjobs_json_command(external_ids: Sequence[str]) -> List[str]:
    """Return the same question for LSF 10.1.0.2 and newer, answered in JSON.

    Raises:
        OutputParseError: one of the ids is none.
        ValueError: no ids.
    """
    return ["bjobs", "-a", "-json", "-o", " ".join(BJOBS_JSON_FIELDS), *job_ids(external_ids)]


def bjobs_user_json_command(user: str) -> List[str]:
    """Return the question for all jobs of a user, in JSON: for a job of which only the name is
    known.

    Raises:
        ValueError: a user that cannot be one.
    """
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.@+-]*\$?", user):
        raise ValueError(f"not a user: {user!r}")
    return ["bjobs", "-a", "-json", "-u", user, "-o", " ".join(BJOBS_JSON_FIELDS)]


def bhist_command(external_ids: Sequence[str], event_files: int = 2) -> List[str]:
    """Return the command that shows the history of jobs that bjobs has forgotten.

    Args:
        external_ids: The jobs.
        event_files: How many of mbatchd's event files are searched, the newest first; each
            may be large, so this is the price of the question.

    Raises:
        OutputParseError: one of the ids is none.
        ValueError: no ids.
    """
    return ["bhist", "-l", "-n", str(int(event_files)), *job_ids(external_ids)]


def bacct_command(external_ids: Sequence[str]) -> List[str]:
    """Return the command that shows what accounting knows of these jobs.

    Raises:
        OutputParseError: one of the ids is none.
        ValueError: no ids.
    """
    return ["bacct", "-l", *job_ids(external_ids)]


def bkill_command(external_ids: Sequence[str]) -> List[str]:
    """Return the command that kills these jobs.

    Raises:
        OutputParseError: one of the ids is none.
        ValueError: no ids ("bkill 0" kills all, so nothing is ever guessed).
    """
    return ["bkill", *job_ids(external_ids)]


def bsub_command(
    script: str,
    *,
    job_name: str,
    stdout: str,
    stderr: str,
    workdir: str,
    native_specification: Sequence[str] = (),
    queue: Optional[str] = None,
) -> List[str]:
    """Return the command that submits a script by its path."""
    options = ["-q", queue] if queue is not None else []
    return [
        "bsub", "-J", job_name, "-cwd", workdir, *options, *native_specification,
        "-oo", _literal_path(stdout), "-eo", _literal_path(stderr), script,
    ]


def parse_submission(text: str) -> str:
    """Return the external id from ``Job <123> is submitted to queue <normal>.``

    The last line of that form counts, since esub scripts of sites print text before it; in
    other languages it is the last line that begins with a word and ``<123>``.

    Raises:
        OutputParseError: no line has that form.
    """
    forms = (
        r"\s*Job <([1-9][0-9]{0,17})> is submitted to .*",
        r"\s*\S{1,20}\s?<([1-9][0-9]{0,17})>.{1,60}<[^<>]+>.*",
    )
    for form in forms:
        for line in reversed(text.splitlines()):
            match = re.fullmatch(form, line)
            if match:
                return match.group(1)
    raise OutputParseError(
        f"bsub printed no job id: {text[-200:]!r}; expected Job <123> is submitted to queue <q>."
    )


def _literal_path(path: str) -> str:
    # bsub replaces %J and %I in file names.
    return path.replace("%", "%%")


def job_ids(external_ids: Sequence[str]) -> List[str]:
    """Return the ids as LSF's commands take them, each once: ``123``, ``123[5]``, ``123[1-4]``.

    Raises:
        OutputParseError: one of the ids is none of LSF's (0 would mean all jobs).
        ValueError: there are none.
    """
    if not external_ids:
        # Without ids bjobs and bhist list all of one's jobs, and so does 0.
        raise ValueError("no ids to ask LSF for")
    return list(dict.fromkeys(_job_id(external_id) for external_id in external_ids))


def _job_id(external_id: str) -> str:
    parsed = parse_external_id(external_id)
    if parsed.base == "0" or parsed.component is not None:
        raise OutputParseError(f"not the id of an LSF job: {external_id!r:.80}")
    cluster = f"@{parsed.suffix}" if parsed.suffix else ""
    if not parsed.is_element:
        return parsed.base + cluster
    if not parsed.tasks:
        raise OutputParseError(f"the elements of {external_id!r:.80} are cut short")
    listed = ",".join(
        str(first) if first == last else f"{first}-{last}" + (f":{step}" if step > 1 else "")
        for first, last, step in parsed.tasks
    )
    return f"{parsed.base}[{listed}]{cluster}"
