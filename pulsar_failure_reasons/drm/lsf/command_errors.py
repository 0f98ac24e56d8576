"""What a failed LSF command says: an answer, an outage, or a refusal."""

from __future__ import annotations

import os
import re
from typing import Optional, Sequence

from ...errors import DrmError, DrmUnreachableError, SubmissionRefusedError
from ...reason import clean_text

_NOT_FOUND = re.compile(
    r"Job <[^<>]{1,60}> is not found|No (?:unfinished |matching |started |pending |such )?jobs? "
    r"(?:was )?found|No matching job|: No such job",
    re.IGNORECASE,
)
_ALREADY_ENDED = re.compile(
    r"Job <[^<>]{1,60}>: (?:Job has already finished|Job already finished|No matching job found)",
    re.IGNORECASE,
)
_UNREACHABLE = re.compile(
    r"LSF is down|Cannot connect to LSF|not responding|still trying|Please wait"
    r"|Failed in an LSF library call|LIM is (?:down|not)|Slave LIM"
    r"|Communication (?:time ?out|error)"
    r"|Connection (?:refused|reset|timed out)|mbatchd|Unable to contact|No route to host"
    r"|Resource temporarily unavailable|try (?:again )?later|rate limit|server is busy"
    r"|Too many open files|Cannot allocate memory|command not found|ssh: |host key|lsf\.conf"
    r"|License|User permission denied by eauth|external authentication",
    re.IGNORECASE,
)
_REFUSALS = (
    (
        r"Pending job (?:threshold|slot)|job limit|Too many (?:jobs|processors)"
        r"|limit .{0,30}reached"
        r"|exceeds? .{0,40}limit|MAX_PEND",
        "a limit of the user or the queue was reached",
    ),
    (r"Request aborted by esub", "the site's esub script turned it down"),
    (r"no such queue|queue", "the queue is not usable"),
    (r"project|user group|User cannot|permission", "the account is not usable"),
    (
        r"resource requirement|host specification|No such host|Bad resource|not qualified",
        "the requested resources do not exist",
    ),
    (r"Illegal option|Bad argument|Usage:|-[A-Za-z]+: ", "an option is not valid"),
)


def says_not_found(text: str) -> bool:
    """Tell whether LSF says that it does not know a job (any more)."""
    return _NOT_FOUND.search(text) is not None


def error_from_command(
    argv: Sequence[str], returncode: int, stderr_text: str
) -> Optional[DrmError]:
    """Return the exception that a command's end stands for; None where it is an answer.

    bjobs ends with 255 for a job that it does not know, and as well where mbatchd does not
    answer, so the words decide. ``Please wait`` alone is no error: LSF's commands wait by
    themselves, and end with 0 when the answer came.
    """
    if returncode == 0:
        return None
    command = os.path.basename(argv[0]) if argv else "lsf"
    words = clean_text(stderr_text[:20000])
    if command == "bsub":
        return _submission_error(words, returncode)
    known = _NOT_FOUND.search(stderr_text) or _ALREADY_ENDED.search(stderr_text)
    if known and not _UNREACHABLE.search(stderr_text):
        return None
    return DrmUnreachableError(f"{command} failed with {_end(returncode)}: {words or 'no message'}")


def _submission_error(words: str, returncode: int) -> DrmError:
    if returncode < 0 or not words or _UNREACHABLE.search(words):
        return DrmUnreachableError(f"bsub failed with {_end(returncode)}: {words or 'no message'}")
    for pattern, kind in _REFUSALS:
        if re.search(pattern, words, re.IGNORECASE):
            return SubmissionRefusedError(f"LSF refused the submission, {kind}: {words}")
    return SubmissionRefusedError(f"LSF refused the submission: {words}")


def _end(returncode: int) -> str:
    return f"exit code {returncode}" if returncode >= 0 else f"signal {-returncode}"
