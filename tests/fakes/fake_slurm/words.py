"""Slurm's words for a job's record: states, reasons, exit codes. Seen on Slurm 22.05.8 unless
noted."""

from fake_drm import transitions

COMPACT = {
    "PENDING": "PD",
    "RUNNING": "R",
    "COMPLETING": "CG",
    "COMPLETED": "CD",
    "FAILED": "F",
    "TIMEOUT": "TO",
    "CANCELLED": "CA",
    "NODE_FAIL": "NF",
    "PREEMPTED": "PR",
    "BOOT_FAIL": "BF",
    "DEADLINE": "DL",
    "OUT_OF_MEMORY": "OOM",
    "REQUEUED": "RQ",
    "SPECIAL_EXIT": "SE",
    "SUSPENDED": "S",
    "CONFIGURING": "CF",
    "RESIZING": "RS",
    "RESV_DEL_HOLD": "RD",
    "REQUEUE_FED": "RF",
    "REQUEUE_HOLD": "RH",
    "REVOKED": "RV",
    "SIGNALING": "SI",
    "STAGE_OUT": "SO",
    "STOPPED": "ST",
}
# The order of squeue's own message about a wrong --states
VALID_STATES = (
    "PENDING,RUNNING,SUSPENDED,COMPLETED,CANCELLED,FAILED,TIMEOUT,NODE_FAIL,PREEMPTED,"
    "BOOT_FAIL,DEADLINE,"
    "OUT_OF_MEMORY,COMPLETING,CONFIGURING,RESIZING,RESV_DEL_HOLD,REQUEUED,REQUEUE_FED,"
    "REQUEUE_HOLD,REVOKED,"
    "SIGNALING,SPECIAL_EXIT,STAGE_OUT,STOPPED"
)
LIVE = (
    "PENDING",
    "RUNNING",
    "SUSPENDED",
    "COMPLETING",
    "CONFIGURING",
    "RESIZING",
    "STAGE_OUT",
    "STOPPED",
    "SIGNALING",
    "REQUEUED",
    "SPECIAL_EXIT",
)

PENDING_REASON = {
    "": "None",
    "held_user": "JobHeldUser",
    "held_admin": "JobHeldAdmin",
    "requeued_held": "job_requeued_in_held_state",
    "launch_failed_held": "launch_failed_requeued_held",
    "begin_time": "BeginTime",
    "dependency": "Dependency",
    "dependency_never": "DependencyNeverSatisfied",
    "array_limit": "JobArrayTaskLimit",
}
# why -> (state, reason); "exited" depends on the wait status. BOOT_FAIL
# is from Slurm's sources, not seen.
ENDED = {
    "time_limit": ("TIMEOUT", "TimeLimit"),
    "memory_limit": ("OUT_OF_MEMORY", "OutOfMemory"),
    "memory_kill": ("FAILED", "JobLaunchFailure"),
    "cancelled": ("CANCELLED", "None"),
    "node_failure": ("NODE_FAIL", "NodeDown"),
    "boot_failure": ("BOOT_FAIL", "JobLaunchFailure"),
    "preempted": ("PREEMPTED", "None"),
    "deadline": ("DEADLINE", "DeadLine"),
    "output_error": ("FAILED", "JobLaunchFailure"),
    "requeued": ("REQUEUED", "None"),
    "lost": ("CANCELLED", "None"),
}
# What squeue -O exit_code shows for an output file that cannot be opened: its low seven bits are 53
OUTPUT_ERROR_STATUS = 4021


def ended_words(record):
    """Return (state, reason) of an ended record."""
    if record["why"] != "exited":
        state, reason = ENDED[record["why"]]
        if not record["started"] and record["why"] == "cancelled":
            reason = PENDING_REASON[record["waited_for"]]
        return state, reason
    if record["exit"] == 0:
        return "COMPLETED", "None"
    return "FAILED", "JobLaunchFailure" if record["exit"] & 0x7F else "NonZeroExitCode"


def job_state(record):
    """``JobState`` as the controller shows it."""
    if record["shown"] and record["shown"].get("state"):
        return record["shown"]["state"]
    if transitions.is_completing(record):
        return "COMPLETING"
    if record["state"] == "ended":
        return ended_words(record)[0]
    return "PENDING" if record["state"] == "pending" else _on_a_node(record)


def _on_a_node(record):
    return "SUSPENDED" if record["suspended"] else "RUNNING"


def reason(record):
    """``Reason`` as scontrol shows it; squeue puts spaces for the underscores."""
    if record["shown"] and record["shown"].get("reason"):
        return record["shown"]["reason"]
    if record["state"] == "ended":
        return ended_words(record)[1]
    if record["state"] == "running":
        return "JobHeldAdmin" if record["priority"] == 0 else "None"
    return PENDING_REASON[record["why"]]


def squeue_reason(record):
    """``Reason`` as squeue shows it."""
    return reason(record).replace("_", " ")


def wait_status(record):
    """The raw wait status, squeue's ``exit_code``."""
    return OUTPUT_ERROR_STATUS if record["why"] == "output_error" else record["exit"]


def exit_code(status):
    """``CODE:SIGNAL`` as scontrol shows it."""
    number = status & 0x7F
    return "0:%d" % number if number else "%d:0" % (status >> 8)


def accounting_exit_code(status):
    """``CODE:SIGNAL`` as sacct shows it: a plain 1 is no signal there, and 128 is taken off (exit
    137: 9:0)."""
    if status is None:
        return ""
    if status == 1:
        return "1:0"
    number = status & 0x7F
    if number:
        return "0:%d" % number
    code = status >> 8
    return "%d:0" % (code - 128 if code >= 128 else code)


def accounting_state(record):
    """State of the allocation's row in sacct."""
    if record["shown"] and record["shown"].get("accounting_state"):
        return record["shown"]["accounting_state"]
    if record["state"] == "pending":
        return "PENDING"
    if record["state"] == "running":
        return _on_a_node(record)
    state = ended_words(record)[0]
    if record["why"] == "cancelled" and record["cancelled_by"] is not None:
        return "CANCELLED by %d" % record["cancelled_by"]
    return state


def batch_state(batch):
    """State of the .batch row in sacct, from how the script ended."""
    if batch["why"] == "memory_limit":
        return "OUT_OF_MEMORY"
    if batch["why"] == "memory_kill":
        return "CANCELLED by 0"
    status = batch["exit"]
    if status is None or status & 0x7F or batch["why"] in ("unfinished", "lost"):
        return "CANCELLED"
    return "FAILED" if status else "COMPLETED"
