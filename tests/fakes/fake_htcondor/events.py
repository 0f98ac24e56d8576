"""The text of events in a job's log, byte for byte as HTCondor 23.9 writes it (times are local).

Each function returns ``(number, text)``; ``append`` puts head and end around it. Checked against
captured logs in tests/test_fake_htcondor2.py.
"""

import os
import time

NO_USAGE = "Usr 0 00:00:00, Sys 0 00:00:00"
EVICTED_USAGE = ("Run Remote Usage", "Run Local Usage")
ALL_USAGE = EVICTED_USAGE + ("Total Remote Usage", "Total Local Usage")
EVICTED_BYTES = ("Run Bytes Sent By Job", "Run Bytes Received By Job")
ALL_BYTES = EVICTED_BYTES + ("Total Bytes Sent By Job", "Total Bytes Received By Job")
TRANSFERS = {
    2: "Started transferring input files",
    3: "Finished transferring input files",
    5: "Started transferring output files",
    6: "Finished transferring output files",
}


def submit(host):
    """SUBMIT."""
    return 0, "Job submitted from host: %s\n" % host


def execute(host, slot, scratch, cpus=1, disk=2048, memory=128):
    """EXECUTE, with what the slot gives (KB, MB)."""
    return 1, (
        'Job executing on host: %s\n\tSlotName: %s\n\tCondorScratchDir = "%s"\n\tCpus = %d\n'
        "\tDisk = %d\n\tGPUs = 0\n\tMemory = %d\n" % (host, slot, scratch, cpus, disk, memory)
    )


def image_size(size_kb, memory_mb, rss_kb):
    """IMAGE_SIZE."""
    return 6, (
        "Image size of job updated: %d\n\t%d  -  MemoryUsage of job (MB)\n"
        "\t%d  -  ResidentSetSize of job (KB)\n" % (size_kb, memory_mb, rss_kb)
    )


def terminated(exit_code, signal, table, when):
    """JOB_TERMINATED; ``signal`` is None for a normal end. ``table`` is of ``usage_table``."""
    if signal is None:
        how, own = (
            "\t(1) Normal termination (return value %d)\n" % exit_code,
            "exit-code %d" % exit_code,
        )
    else:
        how = "\t(0) Abnormal termination (signal %d)\n\t(0) No core file\n" % signal
        own = "signal %d" % signal
    return 5, (
        "Job terminated.\n%s%s%s%s\n\tJob terminated of its own accord at %s with %s.\n"
        % (how, _usages(ALL_USAGE), _bytes(ALL_BYTES), table, _zulu(when), own)
    )


def evicted(reason="", table=""):
    """JOB_EVICTED: put back, held or removed."""
    return 4, (
        "Job was evicted.\n\t(0) CPU times\n%s%s%s%s"
        % (
            _usages(EVICTED_USAGE),
            _bytes(EVICTED_BYTES),
            "\t%s\n" % reason if reason else "",
            table,
        )
    )


def requeued(exit_code, signal, reason):
    """JOB_EVICTED of a job that ended and runs again by its on_exit_remove."""
    how = (
        "(1) Normal termination (return value %d)\n" % exit_code
        if signal is None
        else "(0) Abnormal termination (signal %d)\n\t(0) No core file\n" % signal
    )
    return 4, (
        "Job was evicted.\n\t(0) Job terminated and was requeued\n%s%s\t%s\t%s\n"
        % (_usages(EVICTED_USAGE), _bytes(EVICTED_BYTES), how, reason)
    )


def held(reason, code, subcode):
    """JOB_HELD; a reason of several lines becomes one, none is ``Reason unspecified``."""
    return 12, (
        "Job was held.\n\t%s\n\tCode %d Subcode %d\n"
        % ((reason or "Reason unspecified").replace("\n", "|"), code, subcode)
    )


def released(reason):
    """JOB_RELEASED."""
    return 13, "Job was released.\n%s" % ("\t%s\n" % reason if reason else "")


def aborted(reason, killed_at=None):
    """JOB_ABORTED; ``killed_at`` is when its processes were ended, None if it did not run."""
    ended = (
        ""
        if killed_at is None
        else (
            "\n\tJob terminated by <127.0.0.1:9618> at %s (using method 1: "
            "DEACTIVATE_CLAIM).\n" % _zulu(killed_at)
        )
    )
    return 9, "Job was aborted.\n%s%s" % ("\t%s\n" % reason if reason else "", ended)


def remote_error(slot, message, code, subcode, daemon="starter"):
    """REMOTE_ERROR."""
    return 21, (
        "Error from %s on %s:\n\t%s\n\tCode %d Subcode %d\n"
        % (daemon, slot, message.replace("\n", "\n\t"), code, subcode)
    )


def shadow_exception(message):
    """SHADOW_EXCEPTION."""
    return 7, "Shadow exception!\n\t%s\n%s" % (message, _bytes(EVICTED_BYTES))


def disconnected(reason, slot, startd):
    """JOB_DISCONNECTED."""
    return 22, (
        "Job disconnected, attempting to reconnect\n    %s\n    Trying to reconnect to %s %s\n"
        % (reason, slot, startd)
    )


def reconnected(slot, startd, starter):
    """JOB_RECONNECTED."""
    return 23, "Job reconnected to %s\n    startd address: %s\n    starter address: %s\n" % (
        slot,
        startd,
        starter,
    )


def reconnect_failed(reason, slot):
    """JOB_RECONNECT_FAILED."""
    return 24, (
        "Job reconnection failed\n    %s\n    Can not reconnect to %s, rescheduling job\n"
        % (reason, slot)
    )


def suspended(processes):
    """JOB_SUSPENDED."""
    return 10, "Job was suspended.\n\tNumber of processes actually suspended: %d\n" % processes


def unsuspended():
    """JOB_UNSUSPENDED."""
    return 11, "Job was unsuspended.\n"


def transfer(kind, host=""):
    """FILE_TRANSFER; ``kind`` is one of TRANSFERS."""
    return 40, "%s\n%s" % (TRANSFERS[kind], "\tTransferring to host: %s\n" % host if host else "")


def usage_table(
    request, provisioned, disk_kb=1, memory_mb=None, seconds=None, cpus=None, executed=True
):
    """The table of resources; ``request`` and ``provisioned`` are (cpus, disk KB, memory MB)."""
    rows = [
        ("Cpus", cpus, request[0], provisioned[0]),
        ("Disk (KB)", disk_kb, request[1], provisioned[1]),
        ("GPUs", None, None, 0),
        ("Memory (MB)", memory_mb, request[2], provisioned[2]),
    ]
    if seconds is not None:
        rows += [("TimeExecute (s)", seconds, None, None)] if executed else []
        rows.append(("TimeSlotBusy (s)", seconds, None, None))
    lines = ["\tPartitionable Resources :    Usage  Request Allocated \n"]
    for name, *values in rows:
        used, asked, given = ["" if value is None else str(value) for value in values]
        lines.append("\t   %-21s: %8s %8s %9s \n" % (name, used, asked, given))
    return "".join(lines)


def full_text(cluster, proc, event, when):
    """Return an event as it stands in the log, with the line of three dots."""
    number, text = event
    head = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(when))
    return "%03d (%03d.%03d.000) %s %s...\n" % (number, cluster, proc, head, text)


def append(path, cluster, proc, event, when=None):
    """Write an event at the end of a log; False where that cannot be (the job goes on, as in
    23.9)."""
    text = full_text(cluster, proc, event, time.time() if when is None else when)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o664)
    except OSError:
        return False
    try:
        os.write(descriptor, text.encode("utf-8", "surrogateescape"))
    finally:
        os.close(descriptor)
    return True


def _usages(names):
    return "".join("\t\t%s  -  %s\n" % (NO_USAGE, name) for name in names)


def _bytes(names):
    return "".join("\t0  -  %s\n" % name for name in names)


def _zulu(when):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(when))
