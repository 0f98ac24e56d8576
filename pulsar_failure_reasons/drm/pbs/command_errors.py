"""What a failed PBS command says: an answer, an outage, or a refusal.

The texts and exit codes are those of the captures (OpenPBS 23.06) and of pbs_error.h.
"""

from __future__ import annotations

import os
import re
from typing import Optional, Sequence

from ...errors import (
    AccountingDisabledError,
    DrmError,
    DrmUnreachableError,
    SubmissionRefusedError,
)
from ...reason import clean_text

_NO_HISTORY = re.compile(r"not configured to maintain job history", re.IGNORECASE)
#: qstat ends with 153 and 35 then; qdel says the rest of a job that is gone already.
_UNKNOWN_JOB = re.compile(
    r"Unknown Job ?Id|Job has finished|Request invalid for (?:state|finished) of job"
    r"|Request invalid for state|Job has already (?:finished|completed)",
    re.IGNORECASE,
)
_UNREACHABLE = re.compile(
    r"cannot connect to server|Couldn't connect|Connection (?:refused|reset|timed out)"
    r"|Unknown Host|errno=15\d\d\d\d?|\b150(?:08|10|33|34|96|137)\b|Communication failure"
    r"|End of File|Premature end|timed? ?out|No route to host|Unauthorized Request|pbs_iff"
    r"|munge|trqauthd|authd|Invalid credential|Resource temporarily unavailable|try again"
    r"|server shutting down|shutting down|Too many open files|Cannot allocate memory"
    r"|pbsconf error|pbs conf|command not found|No Permission|Protocol",
    re.IGNORECASE,
)
_SUBMISSION_UNREACHABLE = re.compile(
    _UNREACHABLE.pattern.replace("|Unauthorized Request", "").replace("|No Permission", ""),
    re.IGNORECASE,
)
_REFUSALS = (
    (
        r"would exceed|exceeds? .{0,40}(?:limit|maximum)|limit .{0,40}(?:reached|exceeded)"
        r"|Maximum number of jobs|violates? queue and/or server resource limits"
        r"|exceeds queue resource limits",
        "a limit of the queue or the user was reached",
    ),
    (r"queue|Job rejected by all possible destinations", "the queue is not usable"),
    (
        r"Unauthorized|Bad UID|not authorized|account|permission|Bad GID|root",
        "the account is not usable",
    ),
    (r"hook|filter", "a hook of the site turned it down"),
    (r"resource|Illegal attribute|cannot locate feasible nodes|node", "the requested resources "
     "do not exist"),
    (r"script|No such file", "the script is not usable"),
    (r"usage:|illegal|invalid option|unrecognized", "an option is not valid"),
)


def error_from_command(
    argv: Sequence[str], returncode: int, stderr_text: str
) -> Optional[DrmError]:
    """Return the exception that a command's end stands for; None where it is an answer.

    An unknown or finished job is an answer (exit codes 153 and 35), also beside known ones,
    whose output is then good. "Not configured to maintain job history" comes with exit code 0
    and hides running jobs too.
    """
    if _NO_HISTORY.search(stderr_text):
        return AccountingDisabledError(f"qstat -x: {clean_text(stderr_text[:2000])}")
    if returncode == 0:
        return None
    command = os.path.basename(argv[0]) if argv else "pbs"
    words = clean_text(stderr_text[:20000])
    if command == "qsub":
        return _submission_error(words, returncode)
    if _UNKNOWN_JOB.search(stderr_text) and not _UNREACHABLE.search(stderr_text):
        return None
    return DrmUnreachableError(f"{command} failed with {_end(returncode)}: {words or 'no message'}")


def _submission_error(words: str, returncode: int) -> DrmError:
    if returncode < 0 or not words or _SUBMISSION_UNREACHABLE.search(words):
        return DrmUnreachableError(f"qsub failed with {_end(returncode)}: {words or 'no message'}")
    for pattern, kind in _REFUSALS:
        if re.search(pattern, words, re.IGNORECASE):
            return SubmissionRefusedError(f"PBS refused the submission, {kind}: {words}")
    return SubmissionRefusedError(f"PBS refused the submission: {words}")


def _end(returncode: int) -> str:
    return f"exit code {returncode}" if returncode >= 0 else f"signal {-returncode}"
