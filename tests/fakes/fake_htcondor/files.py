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
    """The job cannot start; ``hold`` is (reason, code, subcode, the starter's own text)."""

    def __init__(self, reason, code, subcode, remote=None):
        super().__init__(reason)
        self.hold = (reason, code, subcode, remote)


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
        raise Held("Input files are larger than the allowed %d MB" % limit, 32, 0)
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
    """Copy what the job asked for back; what to hold the job with if that fails, or None."""
    names = [name.strip() for name in (job["TransferOutput"] or "").split(",") if name.strip()]
    if job["TransferOutput"] is None:
        inputs = {
            os.path.basename(name.strip()) for name in (job["TransferInput"] or "").split(",")
        }
        names = sorted(set(os.listdir(scratch)) - inputs - {os.path.basename(job["Cmd"])})
    changes.log(job, events.transfer(5))
    limit, sent = job["MaxTransferOutputMB"], 0
    problem = None
    for name in names:
        source = os.path.join(scratch, name)
        try:
            sent += os.path.getsize(source)
            if limit is not None and limit >= 0 and sent > limit * 2**20:
                problem = (
                    "max total download bytes exceeded (max=%d MB, this file=%d MB)"
                    % (limit, sent // 2**20),
                    33,
                    0,
                )
                break
            shutil.copy(source, os.path.join(job["Iwd"], os.path.basename(name)))
        except OSError as error:
            where = (
                "execution",
                changes.slot(job),
                "sending",
                "to access point localhost",
                "reading from",
                source,
                error.errno,
                error.strerror,
            )
            problem = (
                TRANSFER_OUTPUT % where,
                12,
                error.errno,
                "STARTER at 127.0.0.1 failed to send file(s): "
                "|Error: reading from file %s: (errno %d) %s" % where[5:],
            )
            break
    changes.log(job, events.transfer(6))
    return problem
