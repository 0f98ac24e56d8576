"""What a failed Slurm command says: an answer, an outage, or a refusal.

The texts are those of the captures (22.05 and 24.11) and of slurm_errno.c.
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

_ACCOUNTING_OFF = re.compile(
    r"accounting storage is disabled|accounting_storage/none|job accounting .{0,20}not enabled",
    re.IGNORECASE,
)
_UNKNOWN_JOB = re.compile(
    r"Invalid job id specified|Job \S+ not found|already completing or completed"
    r"|Invalid job array",
    re.IGNORECASE,
)
# "Invalid job id abc" (scancel), "Invalid job id: abc" (squeue) are about our own command.
_UNREACHABLE = re.compile(
    r"Unable to contact|Connection (?:refused|reset|timed out)|connect failure|timed out"
    r"|Problem talking to|can(?:no|')t be reached|No clusters can be reached"
    r"|authentication error|Munge|configuration (?:source|file)|fetch config|DNS SRV"
    r"|temporarily unable|not responding|Transport endpoint|Zero Bytes|communication"
    r"|Resource temporarily unavailable|backup controller|Slurm is (?:down|in standby)"
    r"|Incompatible versions|Header lengths|No route to host|Unknown host|try again"
    r"|Slurm database|slurmdbd|SlurmDBD|Too many open files|Cannot allocate memory",
    re.IGNORECASE,
)

#: What kind of refusal it is, for people: a limit passes with time, a bad account does not.
_REFUSALS = (
    (
        r"accounting/QOS policy|QOS\w*Limit|Assoc\w*Limit|MaxSubmitJob|MaxJob"
        r"|(?:size|time) limits?|limit (?:is )?(?:exceeded|reached)|exceeds? .{0,30}limit",
        "a limit of the QOS or the association was reached",
    ),
    (
        r"invalid account|account/partition|Invalid user|not (?:permitted|allowed).{0,20}account"
        r"|account.{0,40}not (?:permitted|allowed)",
        "the account is not usable",
    ),
    (r"qos", "the QOS is not usable"),
    (r"partition", "the partition is not usable"),
    (
        r"node (?:configuration|count|name)|memory specification|CPU count|constraint|feature"
        r"|gres|Requested .{0,40}not available",
        "the requested resources do not exist",
    ),
    (r"Unable to open file|No such file|not a batch script|script", "the script is not usable"),
    (r"unrecognized option|Invalid .*specification|invalid option", "an option is not valid"),
)


def error_from_command(
    argv: Sequence[str], returncode: int, stderr_text: str
) -> Optional[DrmError]:
    """Return the exception that a command's end stands for; None where it is an answer.

    An unknown job id is an answer: slurmctld forgets ended jobs after MinJobAge, and says the
    same of other people's jobs under PrivateData. scontrol prints ``Job 13_7 not found`` on
    stdout, so callers of scontrol pass both texts.
    """
    command = os.path.basename(argv[0]) if argv else "slurm"
    words = _words(stderr_text)
    if returncode == 0:
        # squeue of a user that the host's accounts do not know (now): headings, no jobs, rc 0.
        unanswered = command == "squeue" and re.search(r"error: Invalid user", stderr_text)
        return DrmUnreachableError(f"squeue did not answer: {words}") if unanswered else None
    if command == "sbatch":
        return _submission_error(words, returncode)
    if _ACCOUNTING_OFF.search(stderr_text):
        return AccountingDisabledError(f"{command}: {words}")
    if _UNKNOWN_JOB.search(stderr_text) and not _UNREACHABLE.search(stderr_text):
        return None
    return _unreachable(command, returncode, words)


def _unreachable(command: str, returncode: int, words: str) -> DrmUnreachableError:
    return DrmUnreachableError(f"{command} failed with {_end(returncode)}: {words or 'no message'}")


def _submission_error(words: str, returncode: int) -> DrmError:
    if returncode < 0 or _UNREACHABLE.search(words):
        return _unreachable("sbatch", returncode, words)
    for pattern, kind in _REFUSALS:
        if re.search(pattern, words, re.IGNORECASE):
            return SubmissionRefusedError(f"Slurm refused the submission, {kind}: {words}")
    return SubmissionRefusedError(
        f"Slurm refused the submission: {words or 'sbatch ended with ' + _end(returncode)}"
    )


def _end(returncode: int) -> str:
    return f"exit code {returncode}" if returncode >= 0 else f"signal {-returncode}"


def _words(stderr_text: str) -> str:
    """Slurm's own words without its prefixes, each line once, on one line."""
    lines = []
    for line in stderr_text[:20000].splitlines():
        line = re.sub(r"^\s*s[a-z]+: (?:error|fatal): ", "", line).strip()
        if line and line not in lines:
            lines.append(line)
    return clean_text("; ".join(lines))
