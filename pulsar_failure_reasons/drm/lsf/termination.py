"""Why LSF ended a job: its termination reasons.

Source: "Termination reasons displayed by bacct, bhist, and bjobs",
https://www.ibm.com/docs/SSWRJV_10.1.0/lsf_admin/termination_reasons_lsf.html (numbers as in
lsbatch.h and lsb.acct's JOB_FINISH); TERM_RMS and TERM_SLURM are those of the 7.3 manual,
TERM_CTRL_PID and TERM_RC_RECLAIM those of older headers.
"""

from __future__ import annotations

import re
from typing import Dict, List, NamedTuple, Optional, Tuple

from ...reason import Cause
from ..base import Ending


class Termination(NamedTuple):
    """One termination reason.

    ``number`` is that of lsbatch.h. ``requeues`` says that LSF starts the job again, so the
    word alone is no end. ``words`` are LSF's own, in lower case without blanks, by which a line
    is known whose keyword was cut off.
    """

    keyword: str
    number: int
    ending: Ending
    cause: Optional[Cause]
    detail: str = ""
    requeues: bool = False
    cancelled_by: Optional[str] = None
    words: Tuple[str, ...] = ()


_LIMIT, _INFRA, _CANCELLED, _BADLY = (
    Ending.LIMIT, Ending.INFRASTRUCTURE, Ending.CANCELLED, Ending.BADLY,
)

_TABLE: Tuple[Termination, ...] = (
    # Logged, but not displayed by LSF.
    Termination("TERM_UNKNOWN", 0, _BADLY, None, words=("jobexited,reasonunknown",)),
    Termination("TERM_PREEMPT", 1, _INFRA, Cause.PREEMPTED, words=("afterpreemption",)),
    Termination(
        "TERM_WINDOW", 2, _INFRA, Cause.PREEMPTED, "the queue's run window closed",
        words=("queuerunwindow",),
    ),
    Termination(
        "TERM_LOAD", 3, _INFRA, Cause.PREEMPTED, "the load of its host went over a threshold",
        words=("loadexceedsthreshold",),
    ),
    Termination(
        "TERM_OTHER", 4, _INFRA, Cause.PREEMPTED, "it was switched to another queue",
        requeues=True, words=("memberofachunkjob", "afterbeingswitchedtoanotherqueue"),
    ),
    Termination(
        "TERM_RUNLIMIT", 5, _LIMIT, Cause.WALLTIME,
        words=("lsfruntime", "reachingruntimelimit", "lsfrunlimit"),
    ),
    Termination(
        "TERM_DEADLINE", 6, _LIMIT, Cause.WALLTIME, "the job's deadline was reached",
        words=("afterdeadlineexpires",),
    ),
    # No cause of ours: neither time nor memory nor disk would help.
    Termination(
        "TERM_PROCESSLIMIT", 7, _LIMIT, Cause.UNKNOWN, "it had more processes than its limit",
        words=("lsfprocesslimit", "processlimit"),
    ),
    Termination(
        "TERM_FORCE_OWNER", 8, _CANCELLED, Cause.CANCELLED, "killed by its owner by force",
        cancelled_by="owner", words=("byownerwithouttimeforcleanup",),
    ),
    Termination(
        "TERM_FORCE_ADMIN", 9, _CANCELLED, Cause.CANCELLED, "killed by an admin by force",
        cancelled_by="admin", words=("administratorwithouttimeforcleanup",),
    ),
    Termination(
        "TERM_REQUEUE_OWNER", 10, _CANCELLED, Cause.CANCELLED, "its owner requeued it",
        requeues=True, cancelled_by="owner", words=("killedandrequeuedbyowner",),
    ),
    Termination(
        "TERM_REQUEUE_ADMIN", 11, _CANCELLED, Cause.CANCELLED, "an admin requeued it",
        requeues=True, cancelled_by="admin", words=("killedandrequeuedbyroot",),
    ),
    Termination(
        "TERM_CPULIMIT", 12, _LIMIT, Cause.CPU_TIME,
        words=("lsfcpuusage", "lsfcputime", "cpulimit"),
    ),
    Termination(
        "TERM_CHKPNT", 13, _CANCELLED, Cause.CANCELLED, "killed after a checkpoint",
        words=("aftercheckpointing",),
    ),
    Termination(
        "TERM_OWNER", 14, _CANCELLED, Cause.CANCELLED, cancelled_by="owner",
        words=("killedbyowner",),
    ),
    Termination(
        "TERM_ADMIN", 15, _CANCELLED, Cause.CANCELLED, cancelled_by="admin",
        words=("killedbyrootor", "killedbylsfadministrator", "killedbyadministrator"),
    ),
    Termination(
        "TERM_MEMLIMIT", 16, _LIMIT, Cause.MEMORY, words=("lsfmemoryusage", "memorylimit"),
    ),
    # Not BADLY with no cause: somebody else's signal is no tool error.
    Termination(
        "TERM_EXTERNAL_SIGNAL", 17, _BADLY, Cause.UNKNOWN,
        "killed by a signal that did not come from LSF", words=("signalexternaltolsf",),
    ),
    Termination(
        "TERM_RMS", 18, _INFRA, Cause.NODE_FAILURE, "an error of RMS",
        words=("rmssystemerror", "abnormallyinrms"),
    ),
    Termination(
        "TERM_ZOMBIE", 19, _INFRA, Cause.NODE_FAILURE, "it ended while LSF could not be reached",
        words=("lsfisnotavailable",),
    ),
    Termination(
        "TERM_SWAP", 20, _LIMIT, Cause.MEMORY, "swap space", words=("lsfswapusage",),
    ),
    Termination(
        "TERM_THREADLIMIT", 21, _LIMIT, Cause.UNKNOWN, "it had more threads than its limit",
        words=("lsfthread",),
    ),
    Termination(
        "TERM_SLURM", 22, _INFRA, Cause.NODE_FAILURE, "it ended abnormally in Slurm",
        words=("abnormallyinslurm",),
    ),
    Termination(
        "TERM_BUCKET_KILL", 23, _CANCELLED, Cause.CANCELLED, "killed with bkill -b",
        words=("bkill-b",),
    ),
    Termination(
        "TERM_CTRL_PID", 24, _INFRA, Cause.UNKNOWN, "its controlling process died",
        words=("controlpiddied",),
    ),
    Termination(
        "TERM_CWD_NOTEXIST", 25, _BADLY, Cause.DISK,
        "its working directory does not exist on the host",
        words=("currentworkingdirectory",),
    ),
    Termination(
        "TERM_REMOVE_HUNG_JOB", 26, _INFRA, Cause.NODE_FAILURE,
        "LSF removed it because it hung", words=("hungjobremoved", "removedfromlsf"),
    ),
    Termination(
        "TERM_ORPHAN_SYSTEM", 27, _CANCELLED, Cause.CANCELLED,
        "the job that it depended on failed", words=("orphanjob",),
    ),
    Termination(
        "TERM_PRE_EXEC_FAIL", 28, _BADLY, Cause.LAUNCH_ERROR,
        "its pre-execution command failed too often", words=("pre-executionretrylimit",),
    ),
    Termination(
        "TERM_DATA", 29, _BADLY, Cause.STAGE_ERROR, "LSF could not stage its data",
        words=("faileddatastaging", "stagingjob'sdata"),
    ),
    Termination(
        "TERM_MC_RECALL", 30, _INFRA, Cause.PREEMPTED, "its own cluster recalled it",
        words=("multiclusterjobrecall",),
    ),
    Termination(
        "TERM_REQUEUE_RC", 31, _INFRA, Cause.PREEMPTED, "its cloud host was reclaimed",
        requeues=True, words=("killedandrequeuedwhen",),
    ),
    Termination(
        "TERM_CSM_ALLOC", 32, _INFRA, Cause.NODE_FAILURE, "an error of CSM's allocation",
        words=("csmallocation",),
    ),
    Termination(
        "TERM_KUBE", 33, _INFRA, Cause.UNKNOWN, "killed by LSF for Kubernetes",
        words=("kubernetesintegration",),
    ),
    Termination(
        "TERM_RC", 34, _INFRA, Cause.PREEMPTED, "its cloud host was reclaimed",
        words=("killedbylsfwhenanlsfresourceconnector",),
    ),
)

TERMINATIONS: Dict[str, Termination] = {row.keyword: row for row in _TABLE}

#: Spellings in other versions and in the manual's own examples.
_ALIASES = {
    "TERM_SWAPLIMIT": "TERM_SWAP",
    "TERM_WINDOWS": "TERM_WINDOW",
    "TERM_USER": "TERM_OWNER",
    "TERM_RC_RECLAIM": "TERM_REQUEUE_RC",
}

_KEYWORD = re.compile(r"(?<![A-Z_])TERM_[A-Z_]+")


def find_termination(text: str) -> Optional[Termination]:
    """Return the termination reason that LSF's text gives; None where it gives none.

    Blanks and line breaks do not matter (``bhist`` wraps inside words), nor does the case of
    LSF's words, nor a keyword that is cut or missing: ``job killed after reaching LSF run``.

    Args:
        text: LSF's words only: an ``exit_reason``, or the line of an end.
    """
    squeezed = re.sub(r"\s+", "", text[:4000])
    for match in _KEYWORD.finditer(squeezed):
        found = termination_by_keyword(match.group())
        if found is not None:
            return found
    letters = squeezed.lower()
    for row in _BY_LENGTH:
        if any(words in letters for words in row.words):
            return row
    return None


#: The longest words first: "killed and requeued by owner" before "by owner".
_BY_LENGTH: List[Termination] = sorted(
    (row for row in _TABLE if row.words), key=lambda row: -max(len(words) for words in row.words)
)


def termination_by_keyword(word: str) -> Optional[Termination]:
    """Return the reason of a keyword, also of one with letters of what follows glued to it."""
    word = word.strip()
    exact = TERMINATIONS.get(_ALIASES.get(word, word))
    if exact is not None:
        return exact
    known = [k for k in (*TERMINATIONS, *_ALIASES) if word.startswith(k)]
    longest = max(known, key=len, default=None)
    return TERMINATIONS[_ALIASES.get(longest, longest)] if longest else None
