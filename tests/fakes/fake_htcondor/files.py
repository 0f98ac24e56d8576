"""The files of a job: its streams, and what is transferred to and from its scratch folder."""

import os
import shutil

from fake_htcondor import changes, events

TRANSFER_INPUT = (
    "Transfer input files failure at access point localhost while sending files to execution point "
    "%s. Details: reading from file %s: (errno %d) %s"
)
TRANSFER_OUTPUT = (
    "Transfer output files failure at %s point %s while %s files %s. Details: %s file %s: "
    "(errno %d) %s"
)


class Held(Exception):
    """The job is to be held: arguments for ``changes.hold``."""

    def __init__(self, reason, code, subcode=0, remote_message=None, remote_code=None):
        super().__init__(reason)
        self.hold = (reason, code, subcode, remote_message, remote_code)


def transfers(job):
    return (job["ShouldTransferFiles"] or "NO").upper() == "YES"


def transfer_input(job, scratch):
    """Copy program and input files into the scratch folder; return the program's new path."""
    files = [job["Cmd"]] + [
        name.strip() for name in (job["TransferInput"] or "").split(",") if name.strip()
    ]
    sources = [os.path.join(job["Iwd"], name) for name in files]
    limit = job["MaxTransferInputMB"]
    size_mb = sum(os.path.getsize(path) for path in sources if os.path.isfile(path)) / 2.0**20
    if limit is not None and limit >= 0 and size_mb > limit:
        words = "TransferInputSizeMB (%d) is greater than MAX_TRANSFER_INPUT_MB (%d) at submit time"
        raise Held(words % (-int(-size_mb // 1), limit), 32)
    changes.log(job, events.transfer(2, changes.ADDRESS % "slot1_1_fake"))
    for path in sources:
        try:
            shutil.copy(path, scratch)
        except OSError as error:
            changes.log(job, events.transfer(3))
            where = (changes.slot(job), path, error.errno, error.strerror)
            remote = (
                "Failed to transfer files: SHADOW at 127.0.0.1 failed to send file(s): "
                "|Error: reading from file %s: (errno %d) %s" % where[1:]
            )
            raise Held(TRANSFER_INPUT % where, 13, error.errno, remote)
    changes.log(job, events.transfer(3))
    program = os.path.join(scratch, os.path.basename(job["Cmd"]))
    os.chmod(program, 0o755)
    return program


def open_streams(job):
    opened = []
    folder = job["Iwd"]
    plans = (
        ("In", "input", 8, os.O_RDONLY),
        ("Out", "output", 7, os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
        ("Err", "error", 7, os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
    )
    for name, word, code, flags in plans:
        path = os.path.join(folder, job[name])
        try:
            opened.append(os.open(path, flags, 0o644))
        except OSError as error:
            for descriptor in opened:
                os.close(descriptor)
            text = "Failed to open '%s' as standard %s: %s (errno %d)"
            raise Held(
                "Error from %s: " % changes.slot(job)
                + text % (path, word, error.strerror, error.errno),
                code,
                error.errno,
                text % (path, word, error.strerror, error.errno),
            )
    return opened


def transfer_output(job, scratch):
    """Copy what the job asked for back; raise Held if that fails."""
    changes.log(job, events.transfer(5))
    try:
        _send_back(job, scratch)
    finally:
        changes.log(job, events.transfer(6))


def _send_back(job, scratch):
    limit, sent = job["MaxTransferOutputMB"], 0
    for name in _output_names(job, scratch):
        source = os.path.join(scratch, name)
        target = os.path.join(job["Iwd"], os.path.basename(name))
        try:
            sent += os.path.getsize(source)
        except OSError as error:
            told = (source, error.errno, error.strerror)
            where = ("execution", changes.slot(job), "sending", "to access point localhost")
            remote = "STARTER at 127.0.0.1 failed to send file(s): |Error: reading from file %s: "
            # the transfer object calls this a failed input (13) while JOB_HELD calls it output (12)
            raise Held(
                TRANSFER_OUTPUT % (where + ("reading from",) + told),
                12,
                error.errno,
                remote % source + "(errno %d) %s" % told[1:],
                13,
            )
        if limit is not None and limit >= 0 and sent > limit * 2**20:
            raise Held(
                "STARTER at 127.0.0.1 failed to send file(s) to <127.0.0.1:9618>: |Error: sending "
                "file %s: max total download bytes exceeded (max=%d MB, this file=%d MB); SHADOW "
                "failed to receive file(s) from <127.0.0.1:9618>"
                % (source, limit, os.path.getsize(source) // 2**20),
                33,
            )
        try:
            shutil.copy(source, target)
        except OSError as error:
            told = (target, error.errno, error.strerror)
            where = ("access", "localhost", "receiving")
            where += ("from execution point %s" % changes.slot(job), "writing to")
            remote = "SHADOW at 127.0.0.1 - |Error: writing to file %s: (errno %d) %s" % told
            raise Held(TRANSFER_OUTPUT % (where + told), 12, error.errno, remote)


def _output_names(job, scratch):
    """The names that the job asks for, or all new files."""
    if job["TransferOutput"] is not None:
        return [name.strip() for name in job["TransferOutput"].split(",") if name.strip()]
    inputs = {os.path.basename(name.strip()) for name in (job["TransferInput"] or "").split(",")}
    return sorted(set(os.listdir(scratch)) - inputs - {os.path.basename(job["Cmd"])})
