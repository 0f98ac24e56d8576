"""Why HTCondor held or removed a job: codes first, then words, then "we do not know"."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Mapping, NamedTuple, Optional, Tuple

from ... import runner_state
from ...reason import CAUSE_TABLE, Cause, Confidence
from . import codes
from .codes import HoldReasonCode, VacateReasonCode
from .reason_text import (
    clean_reason,
    is_by_person,
    is_by_policy,
    is_plugin_failure,
    limit_in_text,
    other_cause_in_text,
    person_in,
    says_no_space,
)


class HoldKind(Enum):
    """What a hold means for the job."""

    #: A limit, a policy or a daemon stopped the job.
    FAILURE = "failure"
    #: Somebody holds it, and will release or remove it.
    PERSON = "person"
    #: Part of submitting with spooled files; ends by itself.
    TRANSIENT = "transient"
    #: No hold: the job goes back to the queue.
    VACATE = "vacate"


@dataclass(frozen=True)
class HoldFinding:
    """Why a job is held.

    ``cause`` is what a job would be failed for; HELD or UNKNOWN where no limit and no defect
    was stated. ``confidence`` is INFERRED where only a policy's expression was read, None where
    it is that of the source. ``code`` and ``subcode`` are as read, None where nobody said.
    ``held_by`` is a user's name, None where no person or none is named.
    """

    kind: HoldKind
    cause: Cause
    detail: str
    code: Optional[int] = None
    subcode: Optional[int] = None
    reason: str = ""
    confidence: Optional[Confidence] = None
    held_by: Optional[str] = None


#: What code and subcode decide alone. A subcode of None stands for any: subcodes are free
#: numbers for codes 1, 3, 21 and 26, so they are never read without the code.
CAUSE_BY_HOLD_REASON: Mapping[Tuple[int, Optional[int]], Cause] = {
    (HoldReasonCode.JobDurationExceeded, None): Cause.WALLTIME,
    (HoldReasonCode.JobExecuteExceeded, None): Cause.WALLTIME,
    (HoldReasonCode.StartdHeldJob, codes.SUBCODE_RUNTIME_EXCEEDED): Cause.WALLTIME,
    (HoldReasonCode.StartdHeldJob, codes.SUBCODE_MEMORY_EXCEEDED): Cause.MEMORY,
    (HoldReasonCode.StartdHeldJob, codes.SUBCODE_DISK_EXCEEDED): Cause.DISK,
    # More cores busy than requested: no limit that Galaxy has a word for.
    (HoldReasonCode.StartdHeldJob, codes.SUBCODE_CPUS_EXCEEDED): Cause.HELD,
    (HoldReasonCode.JobOutOfResources, codes.SUBCODE_MEMORY_EXCEEDED): Cause.MEMORY,
    (HoldReasonCode.JobOutOfResources, codes.SUBCODE_DISK_EXCEEDED): Cause.DISK,
    # By its code this would be an executable that cannot be started.
    (HoldReasonCode.FailedToCreateProcess, codes.SUBCODE_OOM_BEFORE_START): Cause.MEMORY,
    **{
        (code, subcode): cause
        for code in (HoldReasonCode.JobPolicy, HoldReasonCode.SystemPolicy)
        for subcode, cause in codes.CAUSE_BY_OWN_SUBCODE.items()
    },
}

#: What Galaxy is told, by code and subcode. Codes that are missing are decided by their text.
HOLD_REASON_TO_RUNNER_STATE: Mapping[Tuple[int, Optional[int]], Optional[str]] = {
    pair: CAUSE_TABLE[cause].runner_state for pair, cause in CAUSE_BY_HOLD_REASON.items()
}

#: What Galaxy is told of an event that is no hold. None: no end, HTCondor runs the job again.
FAILURE_TO_RUNNER_STATE: Mapping[str, Optional[str]] = {
    "shadow_exception": None,
    "job_aborted": runner_state.UNKNOWN_ERROR,
    "cluster_removed": runner_state.UNKNOWN_ERROR,
    "executable_error": runner_state.UNKNOWN_ERROR,
    "unknown": runner_state.UNKNOWN_ERROR,
}

_PERSONS = frozenset({HoldReasonCode.UserRequest, HoldReasonCode.SubmittedOnHold})
#: Any rule of the job, the site or the machine: only the words tell which.
_POLICIES = frozenset(
    {HoldReasonCode.JobPolicy, HoldReasonCode.SystemPolicy, HoldReasonCode.StartdHeldJob}
)
#: Something could not be read or written; a full disk (by errno or text) makes it ``disk``.
_FILE_CAUSE: Mapping[HoldReasonCode, Cause] = {
    # Output that cannot be opened counts as disk with every DRM (see the cause table).
    HoldReasonCode.UnableToOpenOutput: Cause.DISK,
    HoldReasonCode.UnableToOpenOutputStream: Cause.DISK,
    HoldReasonCode.UnableToOpenInput: Cause.LAUNCH_ERROR,
    HoldReasonCode.UnableToOpenInputStream: Cause.LAUNCH_ERROR,
    HoldReasonCode.IwdError: Cause.LAUNCH_ERROR,
    HoldReasonCode.UnableToInitUserLog: Cause.LAUNCH_ERROR,
    HoldReasonCode.InvalidTransferAck: Cause.STAGE_ERROR,
    HoldReasonCode.InvalidTransferGoAhead: Cause.STAGE_ERROR,
    HoldReasonCode.TransferOutputError: Cause.STAGE_ERROR,
    HoldReasonCode.TransferInputError: Cause.STAGE_ERROR,
    HoldReasonCode.MaxTransferInputSizeExceeded: Cause.STAGE_ERROR,
    HoldReasonCode.MaxTransferOutputSizeExceeded: Cause.STAGE_ERROR,
}
_OTHER_CAUSE: Mapping[HoldReasonCode, Cause] = {
    HoldReasonCode.GlobusGramError: Cause.HELD,
    HoldReasonCode.CorruptedCredential: Cause.LAUNCH_ERROR,
    HoldReasonCode.JobPolicyUndefined: Cause.HELD,
    HoldReasonCode.JobShadowMismatch: Cause.HELD,
    HoldReasonCode.HookPrepareJobFailure: Cause.LAUNCH_ERROR,
    HoldReasonCode.MissedDeferredExecutionTime: Cause.HELD,
    HoldReasonCode.FailedToAccessUserAccount: Cause.LAUNCH_ERROR,
    HoldReasonCode.NoCompatibleShadow: Cause.HELD,
    HoldReasonCode.InvalidCronSettings: Cause.HELD,
    HoldReasonCode.SystemPolicyUndefined: Cause.HELD,
    HoldReasonCode.GlexecChownSandboxToUser: Cause.HELD,
    HoldReasonCode.PrivsepChownSandboxToUser: Cause.HELD,
    HoldReasonCode.GlexecChownSandboxToCondor: Cause.HELD,
    HoldReasonCode.PrivsepChownSandboxToCondor: Cause.HELD,
    HoldReasonCode.InvalidDockerImage: Cause.LAUNCH_ERROR,
    HoldReasonCode.FailedToCheckpoint: Cause.HELD,
    HoldReasonCode.EC2UserError: Cause.HELD,
    HoldReasonCode.EC2InternalError: Cause.HELD,
    HoldReasonCode.EC2AdminError: Cause.HELD,
    HoldReasonCode.EC2ConnectionProblem: Cause.HELD,
    HoldReasonCode.EC2ServerError: Cause.HELD,
    HoldReasonCode.EC2InstancePotentiallyLostError: Cause.HELD,
    HoldReasonCode.PreScriptFailed: Cause.LAUNCH_ERROR,
    # After the tool: its own doing or the site's, nobody can tell.
    HoldReasonCode.PostScriptFailed: Cause.HELD,
    HoldReasonCode.SingularityTestFailed: Cause.LAUNCH_ERROR,
    HoldReasonCode.HookShadowPrepareJobFailure: Cause.LAUNCH_ERROR,
    HoldReasonCode.CannotSwitchPrimaryGroup: Cause.LAUNCH_ERROR,
}


def classify_hold(
    code: Optional[int], subcode: Optional[int], reason: Optional[str]
) -> HoldFinding:
    """Return why a job is held, from ``HoldReasonCode``, ``HoldReasonSubCode``, ``HoldReason``.

    Each may be None (nobody said). A code of 0 counts as none.
    """
    kind, cause, confidence = _kind_and_cause(code, subcode, reason)
    return HoldFinding(
        kind=kind,
        cause=cause,
        detail=_detail(kind, cause, code, subcode, reason),
        code=code,
        subcode=subcode,
        reason=clean_reason(reason),
        confidence=confidence,
        held_by=person_in(reason) if kind is HoldKind.PERSON else None,
    )


class _Verdict(NamedTuple):
    kind: HoldKind
    cause: Cause
    confidence: Optional[Confidence] = None


def _kind_and_cause(
    code: Optional[int], subcode: Optional[int], reason: Optional[str]
) -> _Verdict:
    if code is None or code == HoldReasonCode.Unspecified:
        return _by_words(reason)
    if is_vacate(code, subcode):
        return _Verdict(HoldKind.VACATE, Cause.PREEMPTED)
    if code in _PERSONS:
        return _Verdict(HoldKind.PERSON, Cause.HELD)
    if code == HoldReasonCode.SpoolingInput:
        return _Verdict(HoldKind.TRANSIENT, Cause.HELD)
    for pair in ((code, subcode), (code, None)):
        if pair in CAUSE_BY_HOLD_REASON:
            return _Verdict(HoldKind.FAILURE, CAUSE_BY_HOLD_REASON[pair])
    try:
        return _by_known_code(HoldReasonCode(code), subcode, reason)
    except ValueError:
        return _Verdict(HoldKind.FAILURE, Cause.UNKNOWN)


def is_vacate(code: Optional[int], subcode: Optional[int]) -> bool:
    """Tell whether the numbers mean a vacate: the job goes back to the queue."""
    return (code is not None and code >= codes.FIRST_VACATE_CODE) or (
        subcode is not None and subcode <= codes.LAST_VACATE_SUBCODE
    )


def _by_known_code(
    code: HoldReasonCode, subcode: Optional[int], reason: Optional[str]
) -> _Verdict:
    if code in _POLICIES:
        return _by_stated_limit(reason, otherwise=Cause.HELD)
    if code is HoldReasonCode.JobOutOfResources:
        # Before 24.0.12 and 24.12.0 memory and disk both have subcode 0.
        return _by_stated_limit(reason, Cause.HELD if subcode else Cause.MEMORY)
    if code is HoldReasonCode.FailedToCreateProcess:
        stated = limit_in_text(reason)
        out_of_memory = stated is not None and stated.cause is Cause.MEMORY
        cause = Cause.MEMORY if out_of_memory else Cause.LAUNCH_ERROR
        return _Verdict(HoldKind.FAILURE, cause)
    if code in _FILE_CAUSE:
        full = _is_full_disk(subcode, reason)
        return _Verdict(HoldKind.FAILURE, Cause.DISK if full else _FILE_CAUSE[code])
    return _Verdict(HoldKind.FAILURE, _OTHER_CAUSE[code])


def _by_stated_limit(reason: Optional[str], otherwise: Cause) -> _Verdict:
    stated = limit_in_text(reason)
    if stated is None:
        return _Verdict(HoldKind.FAILURE, otherwise)
    inferred = Confidence.INFERRED if stated.from_expression else None
    return _Verdict(HoldKind.FAILURE, stated.cause, inferred)


def _is_full_disk(subcode: Optional[int], reason: Optional[str]) -> bool:
    if says_no_space(reason):
        return True
    full = subcode in (codes.ERRNO_NO_SPACE, codes.ERRNO_QUOTA)
    return full and not is_plugin_failure(reason)


def _by_words(reason: Optional[str]) -> _Verdict:
    """Return what a text without a code says; UNKNOWN where it says nothing that we know."""
    text = clean_reason(reason)
    if text.lower().startswith("spooling input"):
        return _Verdict(HoldKind.TRANSIENT, Cause.HELD)
    if is_by_person(text):
        return _Verdict(HoldKind.PERSON, Cause.HELD)
    if limit_in_text(text):
        return _by_stated_limit(text, Cause.UNKNOWN)
    policy = Cause.HELD if is_by_policy(text) else Cause.UNKNOWN
    return _Verdict(HoldKind.FAILURE, other_cause_in_text(text) or policy)


def name_hold(code: Optional[int], subcode: Optional[int]) -> str:
    """Return code and subcode with the code's name, such as "34/102 JobOutOfResources"."""
    if code is None:
        return "no code"
    numbers = f"{code}" if subcode is None else f"{code}/{subcode}"
    for names in (HoldReasonCode, VacateReasonCode):
        try:
            return f"{numbers} {names(code).name}"
        except ValueError:
            continue
    return f"{numbers} (unknown)"


def _detail(
    kind: HoldKind,
    cause: Cause,
    code: Optional[int],
    subcode: Optional[int],
    reason: Optional[str],
) -> str:
    said = clean_reason(reason)
    if kind is HoldKind.PERSON:
        who = person_in(reason)
        return f"held by {who or 'a person'}" + (f" ({said})" if said else "")
    if cause is Cause.UNKNOWN:
        number = f"hold reason code {name_hold(code, subcode)}"
        return f"{number}: {said}" if said else number
    return said or f"held with code {name_hold(code, subcode)}"


class Removal(NamedTuple):
    """Why a job was removed from the queue.

    ``by`` is a user's name or the policy that did it, None where nobody said.
    """

    cause: Cause
    detail: str
    by: Optional[str]
    confidence: Optional[Confidence] = None


#: Holds that explain the end of a job that is removed while it is held.
_EXPLAINS_REMOVAL = frozenset(
    {
        Cause.WALLTIME, Cause.MEMORY, Cause.CPU_TIME, Cause.DISK, Cause.LAUNCH_ERROR,
        Cause.STAGE_ERROR,
    }
)


def classify_removal(reason: Optional[str], hold: Optional[HoldFinding]) -> Removal:
    """Return why a job was removed.

    Args:
        reason: ``RemoveReason``, or the reason of JOB_ABORTED; None where there is none.
        hold: The hold that the job was in when it was removed; None where it was not held.
    """
    by = _who_removed(reason)
    if hold is not None and hold.kind is HoldKind.FAILURE and hold.cause in _EXPLAINS_REMOVAL:
        # Sites release memory holds with more memory, and remove the job when that is used up.
        return Removal(hold.cause, hold.detail, by, hold.confidence)
    stated = limit_in_text(reason)
    if stated is not None and not stated.from_expression:
        return Removal(stated.cause, clean_reason(reason), by)
    detail = clean_reason(reason)
    if hold is not None:
        detail = "; ".join(part for part in (detail, f"it was held before: {hold.detail}") if part)
    return Removal(Cause.CANCELLED, detail, by)


def _who_removed(reason: Optional[str]) -> Optional[str]:
    who = person_in(reason)
    if who is not None or not reason:
        return who
    for policy in ("SYSTEM_PERIODIC_REMOVE", "PeriodicRemove", "OnExitRemove"):
        if f"{policy}" in reason and "expression" in reason:
            return policy
    return None
