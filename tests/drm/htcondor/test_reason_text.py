"""Reasons in words: HTCondor's own and those that sites write."""

from __future__ import annotations

import pytest

from pulsar_failure_reasons.drm.htcondor.reason_text import (
    is_by_person,
    is_by_policy,
    limit_in_text,
    other_cause_in_text,
    person_in,
)
from pulsar_failure_reasons.reason import Cause

_PERIODIC = "The job attribute PeriodicHold expression '{}' evaluated to TRUE"
_SYSTEM = "The system macro SYSTEM_PERIODIC_HOLD expression '{}' evaluated to TRUE"

LIMITS = [
    (Cause.MEMORY, "Job has gone over memory limit of 4096 megabytes. Peak usage: 4088 megabytes."),
    (Cause.MEMORY, "Job has encountered an out-of-memory event."),
    (Cause.MEMORY, "memory usage exceeded request_memory"),
    (Cause.MEMORY, "MEMORY EXCEEDED"),
    (Cause.MEMORY, "Memory usage 311 MB exceeded the 64 MB requested"),
    (Cause.MEMORY, "Job in status 2 put on hold by SYSTEM_PERIODIC_HOLD due to memory usage 9"),
    (Cause.MEMORY, "image size of job exceeded limit"),
    (Cause.MEMORY, "job used more memory than requested"),
    (Cause.MEMORY, "memory usage (5000 MB) > request (4000 MB)"),
    (Cause.MEMORY, "HELD due to high memory usage"),
    (Cause.MEMORY, "Used 5 GB memory, over its 4 GB request"),
    (Cause.MEMORY, "Docker job has gone over memory limit of 1024 Mb"),
    (Cause.MEMORY, _PERIODIC.format(
        "JobStatus == 2 && MemoryUsage =!= undefined && MemoryUsage > RequestMemory")),
    (Cause.MEMORY, _SYSTEM.format("ImageSize > 3000000 || ResidentSetSize >= 3000000")),
    (Cause.DISK, "disk usage exceeded allocated disk"),
    (Cause.DISK, "Job has exceeded request_disk (10.00 GB). Consider more request_memory."),
    (Cause.DISK, "Disk quota exceeded"),
    (Cause.DISK, "Job exceeded its disk quota, memory was fine"),
    (Cause.DISK, "(errno 28) No space left on device"),
    (Cause.WALLTIME, "runtime exceeded maximum (86400 seconds)"),
    (Cause.WALLTIME, "The job exceeded allowed execute duration of 00:04"),
    (Cause.WALLTIME, "The job exceeded allowed job duration of 1+00:00:00"),
    (Cause.WALLTIME, "Maximum wallclock time exceeded"),
    (Cause.WALLTIME, "walltime"),
    (Cause.WALLTIME, "Held by the site: ran longer than the queue allows"),
    (Cause.WALLTIME, "job has been running for more than 3 days"),
    (Cause.WALLTIME, "Running for over 72 hours"),
    (Cause.WALLTIME, _PERIODIC.format("JobStatus == 2 && (time() - EnteredCurrentStatus) > 60")),
    (Cause.CPU_TIME, "CPU time limit exceeded"),
    (Cause.CPU_TIME, "Job used more CPU time than allowed"),
    (None, "CPU usage exceeded request_cpus"),
    (None, "Job Is Wasting Memory using less than 20 percent of requested Memory"),
    (None, "Memory not exceeded, held for maintenance"),
    (None, "The job was not held for memory"),
    (None, "Memory usage averaged over 5 minutes"),
    (None, "segmentation violation: memory access violation"),
    (None, "Failed to set memory limit"),
    (None, "Job's RequestMemory exceeds any available machine"),
    (None, "Job removed: exceeded memory or disk"),
    (None, "Removed due to idle time limit"),
    (None, "exceeded max idle time"),
    (None, "job exceeded maximum number of restarts"),
    (None, "put on hold by SYSTEM_PERIODIC_HOLD due to no matching routes, route job limit"),
    (Cause.DISK, _SYSTEM.format("JobStatus == 2 && DiskUsage > RequestDisk")),
    (Cause.CPU_TIME, _SYSTEM.format("RemoteUserCpu > 3600")),
    (None, _PERIODIC.format("MemoryUsage < 0.2 * RequestMemory")),
    (None, _PERIODIC.format("(time() - EnteredCurrentStatus) > 60")),
    (None, _SYSTEM.format("JobStatus == 2 && (JobRunCount > 10 || ImageSize > 30)")),
    (None, _SYSTEM.format("MemoryUsage > 100 || DiskUsage > 100")),
    (None, "The job attribute OnExitHold expression 'ExitCode =!= 0' evaluated to TRUE"),
    (None, ""),
    (None, None),
]


@pytest.mark.parametrize("cause, text", [pytest.param(*row, id=str(row[1])[:60]) for row in LIMITS])
def test_limit_in_text(cause, text):
    """A text names a limit only where it states exactly one as exceeded."""
    found = limit_in_text(text)
    assert (found.cause if found else None) is cause


@pytest.mark.parametrize("cause, text", [
    (Cause.LAUNCH_ERROR, "Failed to execute '/x' with arguments a: (errno=8: 'Exec format error')"),
    (Cause.LAUNCH_ERROR, "Cannot access initial working directory /x: No such file or directory"),
    (Cause.LAUNCH_ERROR, "Error from slot1@n: Failed to open '/x' as standard input: (errno 2)"),
    (Cause.DISK, "Error from slot1@n: Failed to open '/x' as standard output: (errno 2)"),
    (Cause.STAGE_ERROR, "Error from slot1@n: STARTER at 192.0.2.32 failed to send file(s) to <x>"),
    (Cause.STAGE_ERROR, "Transfer input files failure at access point localhost while sending"),
    (Cause.STAGE_ERROR, "TransferInputSizeMB (4) is greater than MAX_TRANSFER_INPUT_MB (1)"),
    (None, "too many starts"),
])
def test_other_cause_in_text(cause, text):
    """Without a code, HTCondor's own texts tell files, transfers and executables apart."""
    assert other_cause_in_text(text) is cause


@pytest.mark.parametrize("text, who", [
    ("via condor_hold (by user alice)", "alice"),
    ("Python-initiated action (by user bob@site.org)", "bob"),
    ("Python-initiated action", None),
    ("via condor_hold", None),
    ("submitted on hold at user's request", None),
    ("Job was aborted by the user.", None),
])
def test_texts_of_persons(text, who):
    """What people's tools write is told from what policies and daemons write."""
    assert is_by_person(text)
    assert person_in(text) == who


@pytest.mark.parametrize("text", [
    "put on hold by the night shift's rule", "SYSTEM_PERIODIC_HOLD_Mem", "OnExitHold is true",
    "held by site policy", "wasting cores", "restarted too many times",
])
def test_texts_of_policies(text):
    """What a rule wrote is told from what we do not know."""
    assert is_by_policy(text)
    assert not is_by_policy("something else")


def test_a_policy_is_no_person():
    """"put on hold by" names no person."""
    assert not is_by_person("Job in status 2 put on hold by SYSTEM_PERIODIC_HOLD due to memory")
