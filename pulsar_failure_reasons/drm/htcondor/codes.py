"""HTCondor's numbers by name: hold and vacate reason codes, job states, log events.

Checked against the enumerations inside htcondor 25.14.1. The tables of the manual:
https://htcondor.readthedocs.io/en/latest/codes-other-values/
"""

from __future__ import annotations

from enum import IntEnum
from typing import Mapping

from ...reason import Cause


class HoldReasonCode(IntEnum):
    """``HoldReasonCode`` of a job ad, as named in ``condor_holdcodes.h``."""

    Unspecified = 0
    UserRequest = 1
    GlobusGramError = 2
    #: The job's own ``periodic_hold`` or ``on_exit_hold`` was true.
    JobPolicy = 3
    CorruptedCredential = 4
    JobPolicyUndefined = 5
    FailedToCreateProcess = 6
    UnableToOpenOutput = 7
    UnableToOpenInput = 8
    UnableToOpenOutputStream = 9
    UnableToOpenInputStream = 10
    InvalidTransferAck = 11
    TransferOutputError = 12
    TransferInputError = 13
    IwdError = 14
    SubmittedOnHold = 15
    #: No error: input files are being spooled. (Not a "periodic hold", as some code has it.)
    SpoolingInput = 16
    JobShadowMismatch = 17
    InvalidTransferGoAhead = 18
    HookPrepareJobFailure = 19
    MissedDeferredExecutionTime = 20
    #: The execute side's WANT_HOLD was true; the subcode tells which of its rules.
    StartdHeldJob = 21
    UnableToInitUserLog = 22
    FailedToAccessUserAccount = 23
    NoCompatibleShadow = 24
    InvalidCronSettings = 25
    #: The pool's SYSTEM_PERIODIC_HOLD was true: any rule of the site, not memory as such.
    SystemPolicy = 26
    SystemPolicyUndefined = 27
    GlexecChownSandboxToUser = 28
    PrivsepChownSandboxToUser = 29
    GlexecChownSandboxToCondor = 30
    PrivsepChownSandboxToCondor = 31
    MaxTransferInputSizeExceeded = 32
    MaxTransferOutputSizeExceeded = 33
    #: Over a provisioned limit: memory or disk, by subcode or text.
    JobOutOfResources = 34
    InvalidDockerImage = 35
    FailedToCheckpoint = 36
    EC2UserError = 37
    EC2InternalError = 38
    EC2AdminError = 39
    EC2ConnectionProblem = 40
    EC2ServerError = 41
    EC2InstancePotentiallyLostError = 42
    PreScriptFailed = 43
    PostScriptFailed = 44
    SingularityTestFailed = 45
    #: ``allowed_job_duration``.
    JobDurationExceeded = 46
    #: ``allowed_execute_duration``.
    JobExecuteExceeded = 47
    HookShadowPrepareJobFailure = 48
    CannotSwitchPrimaryGroup = 49


class VacateReasonCode(IntEnum):
    """``VacateReasonCode``: the job was sent back to the queue. Never a hold."""

    JobPolicyVacate = 1000
    SystemPolicyVacate = 1001
    ShadowException = 1002
    JobNotStarted = 1003
    UserVacateJob = 1004
    JobShouldRequeue = 1005
    FailedToActivateClaim = 1006
    StarterError = 1007
    ReconnectFailed = 1008
    ClaimDeactivated = 1009
    StartdVacateCommand = 1010
    StartdPreemptExpression = 1011
    StartdException = 1012
    StartdShutdown = 1013
    StartdDraining = 1014
    StartdCoalesce = 1015
    StartdHibernate = 1016
    StartdReleaseCommand = 1017
    StartdPreemptingClaimRank = 1018
    StartdPreemptingClaimUserPrio = 1019
    VMError = 1020
    ContainerError = 1021
    ScheddVacate = 1022
    JobRemoved = 1023
    ScratchDirError = 1024
    SuccessfulCheckpoint = 1025
    ActivationRefusedBadRequest = 1026
    ActivationRefusedNoMatch = 1027
    ActivationRefusedStillCleaning = 1028
    ActivationRefusedWorklifeExpired = 1029
    ActivationRefusedPreempted = 1030
    ActivationRefusedBroken = 1031
    ActivationRefusedNotIdle = 1032
    ActivationRefusedUnclaimed = 1033
    ActivationRefusedClaimNotFound = 1034
    ActivationRefusedOldClaim = 1035
    ActivationRefusedUnhealthy = 1036
    StartdRehoming = 1037


#: The first vacate code. Since 25.x a hold with a subcode of -1000 or less is a vacate too.
FIRST_VACATE_CODE = 1000
LAST_VACATE_SUBCODE = -1000


class JobStatus(IntEnum):
    """``JobStatus`` of a job ad."""

    IDLE = 1
    RUNNING = 2
    REMOVED = 3
    COMPLETED = 4
    HELD = 5
    TRANSFERRING_OUTPUT = 6
    SUSPENDED = 7


class JobEvent(IntEnum):
    """``EventTypeNumber`` of a job event log, as ``htcondor2.JobEventType`` names them."""

    SUBMIT = 0
    EXECUTE = 1
    EXECUTABLE_ERROR = 2
    CHECKPOINTED = 3
    JOB_EVICTED = 4
    JOB_TERMINATED = 5
    IMAGE_SIZE = 6
    SHADOW_EXCEPTION = 7
    GENERIC = 8
    JOB_ABORTED = 9
    JOB_SUSPENDED = 10
    JOB_UNSUSPENDED = 11
    JOB_HELD = 12
    JOB_RELEASED = 13
    NODE_EXECUTE = 14
    NODE_TERMINATED = 15
    POST_SCRIPT_TERMINATED = 16
    GLOBUS_SUBMIT = 17
    GLOBUS_SUBMIT_FAILED = 18
    GLOBUS_RESOURCE_UP = 19
    GLOBUS_RESOURCE_DOWN = 20
    REMOTE_ERROR = 21
    JOB_DISCONNECTED = 22
    JOB_RECONNECTED = 23
    JOB_RECONNECT_FAILED = 24
    GRID_RESOURCE_UP = 25
    GRID_RESOURCE_DOWN = 26
    GRID_SUBMIT = 27
    JOB_AD_INFORMATION = 28
    JOB_STATUS_UNKNOWN = 29
    JOB_STATUS_KNOWN = 30
    JOB_STAGE_IN = 31
    JOB_STAGE_OUT = 32
    ATTRIBUTE_UPDATE = 33
    PRESKIP = 34
    CLUSTER_SUBMIT = 35
    CLUSTER_REMOVE = 36
    FACTORY_PAUSED = 37
    FACTORY_RESUMED = 38
    NONE = 39
    FILE_TRANSFER = 40
    RESERVE_SPACE = 41
    RELEASE_SPACE = 42
    FILE_COMPLETE = 43
    FILE_USED = 44
    FILE_REMOVED = 45
    DATAFLOW_JOB_SKIPPED = 46
    COMMON_FILES = 47
    EP_STARTUP = 100
    EP_READY = 101
    EP_RECONFIG = 102
    EP_SHUTDOWN = 103
    EP_REQUEST_CLAIM = 104
    EP_RELEASE_CLAIM = 105
    EP_ACTIVATE_CLAIM = 106
    EP_DEACTIVATE_CLAIM = 107
    EP_VACATE_CLAIM = 108
    EP_DRAIN = 109
    EP_RESOURCE_BREAK = 110
    EP_RESOURCE_MEND = 111


#: Subcodes of the pool templates ``use policy: Hold_If_*`` (code 21) and of the limits that
#: HTCondor itself enforces (code 34, since 24.0.12 and 24.12.0; 0 before).
SUBCODE_CPUS_EXCEEDED = 101
SUBCODE_MEMORY_EXCEEDED = 102
SUBCODE_RUNTIME_EXCEEDED = 103
SUBCODE_DISK_EXCEEDED = 104
#: With code 6, since 25.10: killed by the cgroup's memory limit before the start.
SUBCODE_OOM_BEFORE_START = 666670

#: Our own ``periodic_hold_subcode``. Nobody else is known to use numbers here, and a site may
#: use the same ones in SYSTEM_PERIODIC_HOLD_SUBCODE to have its rules read without guessing.
OWN_SUBCODE_WALLTIME = 46001
OWN_SUBCODE_MEMORY = 46002
OWN_SUBCODE_DISK = 46003
OWN_SUBCODE_CPU_TIME = 46004

CAUSE_BY_OWN_SUBCODE: Mapping[int, Cause] = {
    OWN_SUBCODE_WALLTIME: Cause.WALLTIME,
    OWN_SUBCODE_MEMORY: Cause.MEMORY,
    OWN_SUBCODE_DISK: Cause.DISK,
    OWN_SUBCODE_CPU_TIME: Cause.CPU_TIME,
}

ERRNO_NO_SPACE = 28
ERRNO_QUOTA = 122
