"""Grid Engine's ``failed`` codes: what went wrong around a job.

Source: sge_status(5), https://github.com/daimh/sge/blob/master/doc/man/man5/sge_status.5, and
https://github.com/daimh/sge/blob/master/source/common/execution_states.c
"""

from __future__ import annotations

import re
from typing import Dict, NamedTuple, Optional

from ...reason import Cause
from ..base import Ending


class FailedCode(NamedTuple):
    """One ``failed`` code with the text that qacct shows beside it.

    ``cause`` is None where the exit status decides. ``requeues`` says that the job goes on.
    """

    number: int
    text: str
    ending: Ending
    cause: Optional[Cause]
    detail: str = ""
    requeues: bool = False


_INFRA, _BADLY, _LIMIT = Ending.INFRASTRUCTURE, Ending.BADLY, Ending.LIMIT
_NODE, _LAUNCH, _DISK = Cause.NODE_FAILURE, Cause.LAUNCH_ERROR, Cause.DISK
_NOT_STARTED = "it could not be started on its host"
_AFTER = "its host failed after the job itself had ended"

_TABLE = (
    FailedCode(0, "", _BADLY, None),
    FailedCode(1, "assumedly before job", _INFRA, _NODE, _NOT_STARTED),
    FailedCode(2, "on executing shepherd", _INFRA, _NODE, _NOT_STARTED),
    FailedCode(3, "before writing config", _INFRA, _NODE, _NOT_STARTED),
    FailedCode(4, "before writing pid", _INFRA, _NODE, _NOT_STARTED),
    FailedCode(5, "on reading config file", _INFRA, _NODE, _NOT_STARTED),
    FailedCode(6, "setting processor set", _INFRA, _NODE, _NOT_STARTED),
    FailedCode(7, "before prolog", _INFRA, _NODE, _NOT_STARTED),
    FailedCode(8, "in prolog", _INFRA, _NODE, "the site's prolog failed"),
    FailedCode(9, "before pestart", _INFRA, _NODE, _NOT_STARTED),
    FailedCode(10, "in pestart", _INFRA, _NODE, "its parallel environment could not be started"),
    FailedCode(11, "before job", _INFRA, _NODE, _NOT_STARTED),
    FailedCode(12, "before pestop", _BADLY, _NODE, _AFTER),
    FailedCode(13, "in pestop", _BADLY, _NODE, _AFTER),
    FailedCode(14, "before epilog", _BADLY, _NODE, _AFTER),
    FailedCode(15, "in epilog", _BADLY, _NODE, "the site's epilog failed"),
    FailedCode(16, "releasing processor set", _BADLY, _NODE, _AFTER),
    # Like 100: a signal, and nobody says whose.
    FailedCode(17, "through signal", _BADLY, None),
    FailedCode(18, "shepherd returned error", _INFRA, _NODE, "its shepherd failed"),
    FailedCode(
        19, "before writing exit_status", _INFRA, _NODE, "its shepherd or its host crashed"
    ),
    FailedCode(20, "found unexpected error file", _INFRA, _NODE, "its shepherd failed"),
    FailedCode(21, "in recognizing job", _INFRA, _NODE, "its host did not know it any more"),
    FailedCode(22, "removed manually", Ending.CANCELLED, Cause.CANCELLED, "removed by hand"),
    FailedCode(24, "migrating", _INFRA, Cause.PREEMPTED, "it migrates", requeues=True),
    FailedCode(
        25, "rescheduling", _INFRA, Cause.PREEMPTED, "it will be started again", requeues=True
    ),
    FailedCode(
        26, "opening input/output file", _BADLY, _DISK, "its output file could not be opened"
    ),
    FailedCode(27, "searching requested shell", _BADLY, _LAUNCH, "its shell was not found"),
    FailedCode(
        28, "changing into working directory", _BADLY, _DISK,
        "its working directory could not be entered",
    ),
    FailedCode(29, "AFS setup", _BADLY, _DISK, "its AFS file system could not be set up"),
    # The script's own exit code 100; the job stays in Eqw.
    FailedCode(30, "application error returned", _BADLY, None),
    FailedCode(31, "accessing sgepasswd file", _BADLY, _LAUNCH, "its account is not usable"),
    FailedCode(
        32, "entry is missing in sgepasswd file", _BADLY, _LAUNCH, "its account is not usable"
    ),
    FailedCode(33, "wrong password", _BADLY, _LAUNCH, "its account is not usable"),
    FailedCode(
        34, "communicating with Grid Engine Helper Service", _INFRA, _NODE, _NOT_STARTED
    ),
    FailedCode(35, "before job in Grid Engine Helper Service", _INFRA, _NODE, _NOT_STARTED),
    FailedCode(36, "checking configured daemons", _INFRA, _NODE, _NOT_STARTED),
    # Which limit: see classify.
    FailedCode(37, "qmaster enforced h_rt, h_cpu, or h_vmem limit", _LIMIT, None),
    FailedCode(38, "adding supplementary group", _INFRA, _NODE, _NOT_STARTED),
    FailedCode(100, "assumedly after job", _BADLY, None),
)

FAILED_CODES: Dict[int, FailedCode] = {row.number: row for row in _TABLE}

#: The manual's and older versions' texts where they differ from the source's.
_OTHER_TEXTS = {
    "opening output file": 26,
    "changing to working directory": 28,
    "entry is missing in password file": 32,
    "qmaster enforced h_rt limit": 37,
    "qmaster enforced h_rt": 37,
    "qmaster enforced": 37,
    "no failure": 0,
}


def parse_failed(text: str) -> Optional[int]:
    """Return the code of ``26  : opening input/output file``, ``0`` or the text alone.

    None where there is neither a number nor a known text.
    """
    match = re.match(r"\s*([0-9]{1,3})(?![0-9])", text)
    return int(match.group(1)) if match else code_of_text(text)


def code_of_text(text: str) -> Optional[int]:
    """Return the code whose text stands in the text; None where none does."""
    letters = re.sub(r"\s+", " ", text.lower())
    known = {row.text.lower(): row.number for row in _TABLE if row.text}
    known.update(_OTHER_TEXTS)
    for words in sorted(known, key=len, reverse=True):
        if words in letters:
            return known[words]
    return None
