"""The numbers by name, against HTCondor's own enumeration."""

from __future__ import annotations

import pytest

from pulsar_failure_reasons.drm.htcondor import (
    FAILURE_TO_RUNNER_STATE,
    HOLD_REASON_TO_RUNNER_STATE,
    HoldKind,
    HoldReasonCode,
    JobEvent,
    VacateReasonCode,
    classify_hold,
)

from .support import DATA
from .test_classify_hold import HOLDS


def _compiled_names():
    lines = (DATA / "hold_codes.txt").read_text().splitlines()
    pairs = (line.partition(" = ") for line in lines)
    return {name: int(number) for name, _, number in pairs if name != "VacateBase"}


def test_hold_and_vacate_codes_are_htcondors():
    """Each code of HTCondor's enumeration has its name here, and there are no others."""
    ours = {code.name: int(code) for names in (HoldReasonCode, VacateReasonCode) for code in names}
    assert ours == _compiled_names()


def test_every_hold_code_has_a_case():
    """No hold code of the header is without a row in the table of cases."""
    assert {row[1] for row in HOLDS} >= {int(code) for code in HoldReasonCode}


def test_hold_reasons_that_numbers_decide():
    """The map of the upstream plan has the codes of real pools, not 16, 26 and 34 as such."""
    assert HOLD_REASON_TO_RUNNER_STATE == {
        (46, None): "walltime_reached",
        (47, None): "walltime_reached",
        (21, 103): "walltime_reached",
        (21, 102): "memory_limit_reached",
        (34, 102): "memory_limit_reached",
        (6, 666670): "memory_limit_reached",
        (21, 101): "unknown_error",
        (21, 104): "unknown_error",
        (34, 104): "unknown_error",
        (3, 46001): "walltime_reached",
        (3, 46002): "memory_limit_reached",
        (3, 46003): "unknown_error",
        (3, 46004): "walltime_reached",
        (26, 46001): "walltime_reached",
        (26, 46002): "memory_limit_reached",
        (26, 46003): "unknown_error",
        (26, 46004): "walltime_reached",
    }


def test_failures_that_are_no_hold():
    """A shadow exception is no end, so Galaxy is told nothing of it."""
    assert FAILURE_TO_RUNNER_STATE == {
        "shadow_exception": None,
        "job_aborted": "unknown_error",
        "cluster_removed": "unknown_error",
        "executable_error": "unknown_error",
        "unknown": "unknown_error",
    }


#: As htcondor2.JobEventType of 25.14.1 has them.
EVENT_NUMBERS = {
    JobEvent.SUBMIT: 0,
    JobEvent.EXECUTE: 1,
    JobEvent.EXECUTABLE_ERROR: 2,
    JobEvent.CHECKPOINTED: 3,
    JobEvent.JOB_EVICTED: 4,
    JobEvent.JOB_TERMINATED: 5,
    JobEvent.IMAGE_SIZE: 6,
    JobEvent.SHADOW_EXCEPTION: 7,
    JobEvent.GENERIC: 8,
    JobEvent.JOB_ABORTED: 9,
    JobEvent.JOB_SUSPENDED: 10,
    JobEvent.JOB_UNSUSPENDED: 11,
    JobEvent.JOB_HELD: 12,
    JobEvent.JOB_RELEASED: 13,
    JobEvent.NODE_EXECUTE: 14,
    JobEvent.NODE_TERMINATED: 15,
    JobEvent.POST_SCRIPT_TERMINATED: 16,
    JobEvent.GLOBUS_SUBMIT: 17,
    JobEvent.GLOBUS_SUBMIT_FAILED: 18,
    JobEvent.GLOBUS_RESOURCE_UP: 19,
    JobEvent.GLOBUS_RESOURCE_DOWN: 20,
    JobEvent.REMOTE_ERROR: 21,
    JobEvent.JOB_DISCONNECTED: 22,
    JobEvent.JOB_RECONNECTED: 23,
    JobEvent.JOB_RECONNECT_FAILED: 24,
    JobEvent.GRID_RESOURCE_UP: 25,
    JobEvent.GRID_RESOURCE_DOWN: 26,
    JobEvent.GRID_SUBMIT: 27,
    JobEvent.JOB_AD_INFORMATION: 28,
    JobEvent.JOB_STATUS_UNKNOWN: 29,
    JobEvent.JOB_STATUS_KNOWN: 30,
    JobEvent.JOB_STAGE_IN: 31,
    JobEvent.JOB_STAGE_OUT: 32,
    JobEvent.ATTRIBUTE_UPDATE: 33,
    JobEvent.PRESKIP: 34,
    JobEvent.CLUSTER_SUBMIT: 35,
    JobEvent.CLUSTER_REMOVE: 36,
    JobEvent.FACTORY_PAUSED: 37,
    JobEvent.FACTORY_RESUMED: 38,
    JobEvent.NONE: 39,
    JobEvent.FILE_TRANSFER: 40,
    JobEvent.RESERVE_SPACE: 41,
    JobEvent.RELEASE_SPACE: 42,
    JobEvent.FILE_COMPLETE: 43,
    JobEvent.FILE_USED: 44,
    JobEvent.FILE_REMOVED: 45,
    JobEvent.DATAFLOW_JOB_SKIPPED: 46,
    JobEvent.COMMON_FILES: 47,
    JobEvent.EP_STARTUP: 100,
    JobEvent.EP_READY: 101,
    JobEvent.EP_RECONFIG: 102,
    JobEvent.EP_SHUTDOWN: 103,
    JobEvent.EP_REQUEST_CLAIM: 104,
    JobEvent.EP_RELEASE_CLAIM: 105,
    JobEvent.EP_ACTIVATE_CLAIM: 106,
    JobEvent.EP_DEACTIVATE_CLAIM: 107,
    JobEvent.EP_VACATE_CLAIM: 108,
    JobEvent.EP_DRAIN: 109,
    JobEvent.EP_RESOURCE_BREAK: 110,
    JobEvent.EP_RESOURCE_MEND: 111,
}

#: What sends a job back to the queue for which reason: none is a hold.
VACATES = [
    VacateReasonCode.JobPolicyVacate,
    VacateReasonCode.SystemPolicyVacate,
    VacateReasonCode.ShadowException,
    VacateReasonCode.JobNotStarted,
    VacateReasonCode.UserVacateJob,
    VacateReasonCode.JobShouldRequeue,
    VacateReasonCode.FailedToActivateClaim,
    VacateReasonCode.StarterError,
    VacateReasonCode.ReconnectFailed,
    VacateReasonCode.ClaimDeactivated,
    VacateReasonCode.StartdVacateCommand,
    VacateReasonCode.StartdPreemptExpression,
    VacateReasonCode.StartdException,
    VacateReasonCode.StartdShutdown,
    VacateReasonCode.StartdDraining,
    VacateReasonCode.StartdCoalesce,
    VacateReasonCode.StartdHibernate,
    VacateReasonCode.StartdReleaseCommand,
    VacateReasonCode.StartdPreemptingClaimRank,
    VacateReasonCode.StartdPreemptingClaimUserPrio,
    VacateReasonCode.VMError,
    VacateReasonCode.ContainerError,
    VacateReasonCode.ScheddVacate,
    VacateReasonCode.JobRemoved,
    VacateReasonCode.ScratchDirError,
    VacateReasonCode.SuccessfulCheckpoint,
    VacateReasonCode.ActivationRefusedBadRequest,
    VacateReasonCode.ActivationRefusedNoMatch,
    VacateReasonCode.ActivationRefusedStillCleaning,
    VacateReasonCode.ActivationRefusedWorklifeExpired,
    VacateReasonCode.ActivationRefusedPreempted,
    VacateReasonCode.ActivationRefusedBroken,
    VacateReasonCode.ActivationRefusedNotIdle,
    VacateReasonCode.ActivationRefusedUnclaimed,
    VacateReasonCode.ActivationRefusedClaimNotFound,
    VacateReasonCode.ActivationRefusedOldClaim,
    VacateReasonCode.ActivationRefusedUnhealthy,
    VacateReasonCode.StartdRehoming,
]


def test_event_numbers_are_the_bindings():
    """Each event of the log has the bindings' name and number."""
    assert {event: int(event) for event in JobEvent} == EVENT_NUMBERS


@pytest.mark.parametrize("code", VACATES)
def test_no_vacate_code_is_a_hold(code):
    """A vacate code in a hold means that the job goes back to the queue."""
    assert classify_hold(code, 0, "memory limit exceeded").kind is HoldKind.VACATE
