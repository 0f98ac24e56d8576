"""What PBS's Exit_status means, by flavour.

Negative numbers are PBS's own. Sources: OpenPBS,
https://github.com/openpbs/openpbs/blob/cd7ab5edaf03dcac2f1cb9e2f42d75eb117d468a/src/include/job.h
(-8 and -9 were Globus's and are gone); Torque,
https://github.com/adaptivecomputing/torque/blob/34ff845417cc0348dfe0a61a491e5e0f4adf6ef4/src/include/pbs_job.h
and .../torque/6-1-2/adminGuide/Content/topics/torque/2-jobs/jobExitStatus.htm

Above 256 it is 256 + the signal that ended the job's shell; 129 to 192 is 128 + a signal, told
by the shell (Torque never, OpenPBS for a script that a login shell wraps).
"""

from __future__ import annotations

from typing import Dict, NamedTuple, Optional, Tuple

from ...reason import Cause
from ..base import Ending
from .flavour import Flavour


class ExitCode(NamedTuple):
    """One negative Exit_status.

    ``requeues`` says that PBS starts the job again, so the number alone is no end.
    """

    name: str
    ending: Ending
    cause: Optional[Cause]
    detail: str = ""
    requeues: bool = False


_LIMIT, _INFRA, _CANCELLED, _BADLY = (
    Ending.LIMIT, Ending.INFRASTRUCTURE, Ending.CANCELLED, Ending.BADLY,
)
_RERUN = "PBS took it back to start it again"

_SHARED: Dict[int, ExitCode] = {
    -1: ExitCode(
        "JOB_EXEC_FAIL1", _BADLY, Cause.LAUNCH_ERROR, "it could not be started on its node"
    ),
    -2: ExitCode(
        "JOB_EXEC_FAIL2", _BADLY, Cause.LAUNCH_ERROR,
        "it could not be started on its node (prologue, home directory or the like)",
    ),
    -3: ExitCode(
        "JOB_EXEC_RETRY", _INFRA, Cause.NODE_FAILURE, "it could not be started on its node",
        requeues=True,
    ),
    -4: ExitCode("JOB_EXEC_INITABT", _INFRA, Cause.NODE_FAILURE, "its node was restarted"),
    -5: ExitCode("JOB_EXEC_INITRST", _INFRA, Cause.NODE_FAILURE, "its node was restarted"),
    -6: ExitCode(
        "JOB_EXEC_INITRMG", _INFRA, Cause.NODE_FAILURE, "its node was restarted", requeues=True
    ),
    -7: ExitCode(
        "JOB_EXEC_BADRESRT", _BADLY, Cause.LAUNCH_ERROR, "its restart from a checkpoint failed"
    ),
}

OPENPBS: Dict[int, ExitCode] = {
    **_SHARED,
    -10: ExitCode(
        "JOB_EXEC_FAILUID", _BADLY, Cause.LAUNCH_ERROR, "its user or group is not known there"
    ),
    -11: ExitCode("JOB_EXEC_RERUN", _INFRA, Cause.PREEMPTED, _RERUN, requeues=True),
    -12: ExitCode(
        "JOB_EXEC_CHKP", _INFRA, Cause.PREEMPTED, "it was checkpointed and stopped",
        requeues=True,
    ),
    -13: ExitCode(
        "JOB_EXEC_FAIL_PASSWORD", _BADLY, Cause.LAUNCH_ERROR, "its password is not right"
    ),
    -14: ExitCode(
        "JOB_EXEC_RERUN_SIS_FAIL", _INFRA, Cause.NODE_FAILURE, "one of its nodes failed"
    ),
    -15: ExitCode("JOB_EXEC_QUERST", _INFRA, Cause.PREEMPTED, _RERUN, requeues=True),
    -16: ExitCode(
        "JOB_EXEC_FAILHOOK_RERUN", _INFRA, Cause.NODE_FAILURE, "a hook of the site refused it",
        requeues=True,
    ),
    -17: ExitCode(
        "JOB_EXEC_FAILHOOK_DELETE", _BADLY, Cause.LAUNCH_ERROR, "a hook of the site refused it"
    ),
    -18: ExitCode("JOB_EXEC_HOOK_RERUN", _INFRA, Cause.PREEMPTED, _RERUN, requeues=True),
    -19: ExitCode(
        "JOB_EXEC_HOOK_DELETE", _CANCELLED, Cause.CANCELLED, "a hook of the site deleted it"
    ),
    -20: ExitCode(
        "JOB_EXEC_RERUN_MS_FAIL", _INFRA, Cause.NODE_FAILURE, "its first node was lost"
    ),
    -21: ExitCode(
        "JOB_EXEC_FAIL_SECURITY", _BADLY, Cause.LAUNCH_ERROR, "PBS's folders are not safe there"
    ),
    -22: ExitCode(
        "JOB_EXEC_HOOKERROR", _BADLY, Cause.LAUNCH_ERROR, "a hook of the site failed"
    ),
    -23: ExitCode(
        "JOB_EXEC_FAIL_KRB5", _BADLY, Cause.LAUNCH_ERROR, "it had no Kerberos credentials"
    ),
    # No cause of ours: neither time nor memory nor disk would help.
    -24: ExitCode(
        "JOB_EXEC_KILL_NCPUS_BURST", _LIMIT, Cause.UNKNOWN, "it used more CPUs than it asked for"
    ),
    -25: ExitCode(
        "JOB_EXEC_KILL_NCPUS_SUM", _LIMIT, Cause.UNKNOWN, "it used more CPUs than it asked for"
    ),
    -26: ExitCode("JOB_EXEC_KILL_VMEM", _LIMIT, Cause.MEMORY, "virtual memory"),
    -27: ExitCode("JOB_EXEC_KILL_MEM", _LIMIT, Cause.MEMORY),
    -28: ExitCode("JOB_EXEC_KILL_CPUT", _LIMIT, Cause.CPU_TIME),
    -29: ExitCode("JOB_EXEC_KILL_WALLTIME", _LIMIT, Cause.WALLTIME),
    -30: ExitCode(
        "JOB_EXEC_JOINJOB", _INFRA, Cause.NODE_FAILURE, "its nodes could not join the job"
    ),
}

TORQUE: Dict[int, ExitCode] = {
    **_SHARED,
    -8: ExitCode(
        "JOB_EXEC_CMDFAIL", _BADLY, Cause.LAUNCH_ERROR, "its command could not be executed"
    ),
    -9: ExitCode(
        "JOB_EXEC_STDOUTFAIL", _BADLY, Cause.DISK, "its output file could not be opened"
    ),
    -10: ExitCode("JOB_EXEC_OVERLIMIT_MEM", _LIMIT, Cause.MEMORY),
    -11: ExitCode("JOB_EXEC_OVERLIMIT_WT", _LIMIT, Cause.WALLTIME),
    -12: ExitCode("JOB_EXEC_OVERLIMIT_CPUT", _LIMIT, Cause.CPU_TIME),
    -13: ExitCode(
        "JOB_EXEC_RETRY_CGROUP", _INFRA, Cause.NODE_FAILURE, "its cgroup could not be made",
        requeues=True,
    ),
    -14: ExitCode(
        "JOB_EXEC_RETRY_PROLOGUE", _INFRA, Cause.NODE_FAILURE, "its prologue failed",
        requeues=True,
    ),
}


def exit_code_of(number: int, flavour: Flavour) -> Optional[ExitCode]:
    """Return the meaning of a negative Exit_status; None where it has none.

    Without a known flavour only numbers that the two read alike have one.
    """
    if flavour is Flavour.OPENPBS:
        return OPENPBS.get(number)
    if flavour is Flavour.TORQUE:
        return TORQUE.get(number)
    a, b = OPENPBS.get(number), TORQUE.get(number)
    return (a or b) if a is None or b is None or a == b else None


def split_exit_status(number: int) -> Tuple[Optional[int], Optional[int]]:
    """Return (exit code, signal) of an Exit_status that is not negative."""
    if number > 256:
        return None, number - 256
    if 128 < number <= 192:
        return number, number - 128
    return number, None
