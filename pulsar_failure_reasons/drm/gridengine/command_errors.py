"""What a failed Grid Engine command says: an answer, an outage, or a refusal.

The texts are those of the captures (SGE 8.1.9).
"""

from __future__ import annotations

import os
import re
from typing import Optional, Sequence

from ...errors import DrmError, DrmUnreachableError, SubmissionRefusedError
from ...reason import clean_text

_UNKNOWN_JOB = re.compile(
    r"do(?:es)? not exist|job id .{1,60} not found|Job-array tasks .{1,60} not found"
    r"|no jobs running since startup|job is already in deletion|already in deletion",
    re.IGNORECASE,
)
_UNREACHABLE = re.compile(
    r"commlib error|unable to (?:send message to|contact) qmaster|got (?:select|send|read) error"
    r"|Connection (?:refused|reset|timed out)|not reachable|can't (?:connect|get connection)"
    r"|qmaster (?:is )?(?:not|down)|timed? ?out|failed receiving gdi|authentication"
    r"|can't resolve (?:group|user)|Please set the environment variable SGE_ROOT"
    r"|cell directory|act_qmaster|critical error|unable to read qmaster name"
    r"|Too many open files|Cannot allocate memory|No route to host|command not found"
    r"|temporarily|try again",
    re.IGNORECASE,
)
_REFUSALS = (
    (
        r"max(?:imum)? .{0,40}jobs|exceed|limit|quota",
        "a limit of the user or the queue was reached",
    ),
    (r"access|permission|not allowed|root user|project|no such user", "the account is not usable"),
    (r"parallel environment|no suitable queues|unknown resource|unknown queue|resolve hostname",
     "the requested resources do not exist"),
    (r"JSV|server_jsv|verif", "the site's submission script turned it down"),
    (r"script file|No such file|reading", "the script is not usable"),
    (r"usage|Unknown option|invalid option", "an option is not valid"),
)


def error_from_command(
    argv: Sequence[str], returncode: int, stderr_text: str
) -> Optional[DrmError]:
    """Return the exception that a command's end stands for; None where it is an answer.

    An unknown job is an answer: qstat forgets jobs as soon as they end, and qacct knows them
    only some seconds later. qdel of such a job is no error either.
    """
    if returncode == 0:
        return None
    command = os.path.basename(argv[0]) if argv else "qstat"
    words = clean_text(stderr_text[:20000])
    if command == "qsub":
        return _submission_error(words, returncode)
    if _UNKNOWN_JOB.search(stderr_text) and not _UNREACHABLE.search(stderr_text):
        return None
    return DrmUnreachableError(f"{command} failed with {_end(returncode)}: {words or 'no message'}")


def _submission_error(words: str, returncode: int) -> DrmError:
    if returncode < 0 or not words or _UNREACHABLE.search(words):
        return DrmUnreachableError(f"qsub failed with {_end(returncode)}: {words or 'no message'}")
    for pattern, kind in _REFUSALS:
        if re.search(pattern, words, re.IGNORECASE):
            return SubmissionRefusedError(f"Grid Engine refused the submission, {kind}: {words}")
    return SubmissionRefusedError(f"Grid Engine refused the submission: {words}")


def _end(returncode: int) -> str:
    return f"exit code {returncode}" if returncode >= 0 else f"signal {-returncode}"
