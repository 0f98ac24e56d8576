"""How a Grid Engine job ended: ``failed``, ``exit_status``, and used against requested."""

from __future__ import annotations

import re
from typing import Optional, Tuple

from ...reason import Cause
from ..base import End, Ending
from ..captured import CANNOT_RUN_EXIT_CODES
from .failed import FAILED_CODES
from .limits import Usage

_SIGUSR1, _SIGXCPU, _SIGXFSZ = 10, 24, 25
#: A script that ends with 100 asks for the state Eqw.
_APPLICATION_ERROR, _APPLICATION_ERROR_EXIT = 30, 100
_FROM_OUTSIDE = frozenset({1, 2, 9, 12, 15})


def how_it_ended(
    failed: Optional[int],
    exit_status: Optional[int],
    usage: Usage,
    deleted_by: Optional[str] = None,
) -> Tuple[End, bool]:
    """Return the end that a record of qacct tells, and whether it was inferred. Never raises.

    Nothing in it tells a deletion (but in Univa's ``deleted_by``), and one that root forces
    looks like success, 0 and 0: only the file ``return_code`` tells then.

    Args:
        failed: The code; None where it is not shown.
        exit_status: None where it is not shown.
        usage: Requested and used.
        deleted_by: Univa's: a user, None for NONE and where not shown.
    """
    if failed == _APPLICATION_ERROR and exit_status is None:
        exit_status = _APPLICATION_ERROR_EXIT
    code, signal = exit_status, _signal(exit_status)
    row = FAILED_CODES.get(failed) if failed is not None else None
    if failed is not None and row is None:
        return End(Ending.BADLY, Cause.UNKNOWN, f"failed code {failed}", code, signal), False
    if row is not None and row.ending is Ending.LIMIT:
        return _enforced(usage, code, signal)
    if deleted_by:
        return End(Ending.CANCELLED, Cause.CANCELLED, "", code, signal, deleted_by), False
    if row is not None and row.cause is not None:
        return End(row.ending, row.cause, row.detail, code, signal), False
    if signal:
        return _by_signal(signal, code, usage)
    if code is None or (code == 0 and failed not in (None, 0)):
        return End(Ending.BADLY, Cause.UNKNOWN, row.text if row else "", code), False
    if code == 0:
        # Without the failed code it could be 26 as well, with exit_status 0.
        if failed is None:
            return End(Ending.BADLY, Cause.UNKNOWN, "its failed code is not shown", 0), True
        return End(Ending.WELL, exit_code=0), False
    if code in CANNOT_RUN_EXIT_CODES:
        return End(Ending.BADLY, Cause.LAUNCH_ERROR, CANNOT_RUN_EXIT_CODES[code], code), False
    return End(Ending.BADLY, None, "", code), False


def _signal(exit_status: Optional[int]) -> Optional[int]:
    if exit_status is None or not 128 < exit_status <= 192:
        return None
    return exit_status - 128


def _enforced(
    usage: Usage, code: Optional[int], signal: Optional[int]
) -> Tuple[End, bool]:
    """The qmaster or execd enforced a limit; it does not say which."""
    cause = usage.reached() or usage.only_limit()
    # Without any number it is mostly h_rt, as the manual's own explanation has it.
    return End(Ending.LIMIT, cause or Cause.WALLTIME, "", code, signal), cause is None


def _by_signal(signal: int, code: Optional[int], usage: Usage) -> Tuple[End, bool]:
    if signal == _SIGXFSZ:
        detail = "it wrote a file larger than its limit"
        return End(Ending.LIMIT, Cause.DISK, detail, code, signal), False
    if signal == _SIGXCPU:
        asked_cpu, asked_memory = usage.has("s_cpu", "h_cpu"), usage.has("s_vmem", "h_vmem")
        cause = Cause.MEMORY if asked_memory and not asked_cpu else Cause.CPU_TIME
        reached = usage.reached() if asked_cpu and asked_memory else None
        return End(Ending.LIMIT, reached or cause, "", code, signal), True
    if signal == _SIGUSR1 and usage.has("s_rt"):
        detail = f"its soft walltime limit (s_rt) of {usage.time('s_rt') or '?'} s was reached"
        return End(Ending.LIMIT, Cause.WALLTIME, detail, code, signal), True
    if signal in _FROM_OUTSIDE:
        reached = usage.reached()
        if reached is not None:
            return End(Ending.LIMIT, reached, "", code, signal), True
    return End(Ending.BADLY, None, "", code, signal), False


#: What stands in ``error reason`` of a job in Eqw.
_ERROR_REASONS: "Tuple[Tuple[str, Cause, str], ...]" = (
    (
        r"can't (?:open|create|stat\(\)?)|as std(?:out|err|in)_path|opening input/output"
        r"|No space left|quota exceeded",
        Cause.DISK, "its output file could not be opened",
    ),
    (r"can't chdir|changing into working dir", Cause.DISK, "its working directory could not be "
     "entered"),
    (
        r"execvlp|unable to find (?:shell|job file|script)|searching requested shell"
        r"|bad interpreter|exec format|can't execute",
        Cause.LAUNCH_ERROR, "its script or shell could not be executed",
    ),
    (r"exit_status of job start = 100", Cause.TOOL_ERROR, "its script ended with exit code 100"),
    (
        r"password|getpw|can't set|uid|user .{0,40}(?:not|unknown)|supplementary|setgroups",
        Cause.LAUNCH_ERROR, "its account is not usable on the host",
    ),
    (r"exit_status of (?:prolog|pe_start|epilog|pe_stop)|prolog|pe_start", Cause.NODE_FAILURE,
     "the site's prolog failed"),
)


def classify_error_reason(text: str) -> Tuple[Cause, str]:
    """Return (cause, detail) of the error reason of a job in Eqw; HELD where it is unknown."""
    for pattern, cause, detail in _ERROR_REASONS:
        if re.search(pattern, text[:4000], re.IGNORECASE):
            return cause, detail
    return Cause.HELD, text.strip()[:200]
