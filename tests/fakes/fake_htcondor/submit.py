"""Submit commands to a job ad (a dict of attribute name to ClassAd expression text)."""

import os
import re
import time

from fake_htcondor import expressions
from fake_htcondor.expressions import literal, quote

STRINGS = {
    "input": "In",
    "output": "Out",
    "error": "Err",
    "transfer_input_files": "TransferInput",
    "transfer_output_files": "TransferOutput",
    "should_transfer_files": "ShouldTransferFiles",
    "when_to_transfer_output": "WhenToTransferOutput",
    "batch_name": "JobBatchName",
    "accounting_group": "AcctGroup",
    "accounting_group_user": "AcctGroupUser",
    "description": "JobDescription",
    "concurrency_limits": "ConcurrencyLimits",
    "docker_image": "DockerImage",
}
EXPRESSIONS = {
    "requirements": "Requirements",
    "rank": "Rank",
    "priority": "JobPrio",
    "request_cpus": "RequestCpus",
    "request_gpus": "RequestGPUs",
    "request_memory": "RequestMemory",
    "request_disk": "RequestDisk",
    "periodic_hold": "PeriodicHold",
    "periodic_hold_reason": "PeriodicHoldReason",
    "periodic_hold_subcode": "PeriodicHoldSubCode",
    "periodic_release": "PeriodicRelease",
    "periodic_remove": "PeriodicRemove",
    "on_exit_hold": "OnExitHold",
    "on_exit_hold_reason": "OnExitHoldReason",
    "on_exit_hold_subcode": "OnExitHoldSubCode",
    "on_exit_remove": "OnExitRemove",
    "leave_in_queue": "LeaveJobInQueue",
    "allowed_job_duration": "AllowedJobDuration",
    "allowed_execute_duration": "AllowedExecuteDuration",
    "job_lease_duration": "JobLeaseDuration",
    "max_transfer_input_mb": "MaxTransferInputMB",
    "max_transfer_output_mb": "MaxTransferOutputMB",
}
UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
DEFAULT_REQUIREMENTS = (
    '(TARGET.Arch == "X86_64") && (TARGET.OpSys == "LINUX") && (TARGET.Disk >= RequestDisk) && '
    "(TARGET.Memory >= RequestMemory) && (TARGET.FileSystemDomain == MY.FileSystemDomain)"
)
UNIVERSES = {"vanilla": 5, "scheduler": 7, "local": 12, "grid": 9, "docker": 5, "container": 5}


class SubmitError(ValueError):
    """The commands make no job; the message is HTCondor's."""


def job_ad(commands, cluster, proc, settings, extra=None):
    """Return the ad of one job; raise SubmitError with HTCondor's words if the commands make none.

    ``commands`` maps lower-case command names to text; ``extra`` are the macros of this item.
    """
    macros = dict(commands, **(extra or {}))
    macros.update(
        {
            "cluster": str(cluster),
            "clusterid": str(cluster),
            "process": str(proc),
            "procid": str(proc),
            "step": "0",
            "row": "0",
        }
    )
    known = {name: expand(value, macros) for name, value in commands.items()}
    if not known.get("executable"):
        raise SubmitError("No 'executable' parameter was provided")
    ad = _basics(known, cluster, proc, settings)
    for name, value in known.items():
        if name.startswith("+") or name.startswith("my."):
            ad[name.lstrip("+").split(".")[-1] if name.startswith("+") else name[3:]] = _checked(
                name, value
            )
        elif name in STRINGS:
            ad[STRINGS[name]] = quote(value)
        elif name in EXPRESSIONS and value.strip():
            ad[EXPRESSIONS[name]] = _expression(name, value)
    if "max_retries" in known:
        ad["JobMaxRetries"] = known["max_retries"]
        ad.setdefault("OnExitRemove", "NumJobCompletions > JobMaxRetries || ExitCode =?= 0")
    if known.get("hold", "").lower() in ("true", "1", "yes"):
        ad.update(
            JobStatus="5",
            HoldReason=quote("submitted on hold at user's request"),
            HoldReasonCode="15",
            NumHolds="1",
            NumHoldsByReason="[ SubmittedOnHold = 1 ]",
        )
    return ad


def expand(value, macros, depth=0):
    """Replace ``$(name)`` and ``$(name:default)``; unknown names become empty."""

    def replace(match):
        found = macros.get(match.group(1).lower())
        if found is None:
            found = match.group(2) or ""
        return expand(found, macros, depth + 1) if depth < 10 else ""

    return re.sub(r"\$\(([\w.+]+)(?::([^)]*))?\)", replace, value)


def _basics(known, cluster, proc, settings):
    now = int(time.time())
    iwd = os.path.abspath(known.get("initialdir") or os.getcwd())
    if not os.path.isdir(iwd):
        raise SubmitError("No such directory: %s" % iwd)
    owner = settings["owner"]
    ad = {
        "MyType": '"Job"',
        "TargetType": '"Machine"',
        "ClusterId": str(cluster),
        "ProcId": str(proc),
        "GlobalJobId": quote("%s#%d.%d#%d" % (settings["schedd_name"], cluster, proc, now)),
        "Owner": quote(owner),
        "User": quote(owner + "@localhost"),
        "QDate": str(now),
        "EnteredCurrentStatus": str(now),
        "JobStatus": "1",
        "JobUniverse": str(_universe(known)),
        "Cmd": quote(os.path.join(iwd, known["executable"])),
        "Iwd": quote(iwd),
        "In": '"/dev/null"',
        "Out": '"/dev/null"',
        "Err": '"/dev/null"',
        "RequestCpus": "1",
        "RequestMemory": "128",
        "RequestDisk": "1024",
        "Requirements": DEFAULT_REQUIREMENTS,
        "FileSystemDomain": '"localhost"',
        "Rank": "0.0",
        "JobPrio": "0",
        "JobNotification": "0",
        "JobLeaseDuration": "2400",
        "LeaveJobInQueue": "false",
        "ShouldTransferFiles": '"IF_NEEDED"',
        "ImageSize": "1",
        "DiskUsage": "1",
        "NumJobStarts": "0",
        "NumShadowStarts": "0",
        "NumJobMatches": "0",
        "NumJobCompletions": "0",
        "NumRestarts": "0",
        "NumHolds": "0",
        "NumSystemHolds": "0",
        "ExitStatus": "0",
        "ExitBySignal": "false",
        "RemoteWallClockTime": "0.0",
        "RemoteUserCpu": "0.0",
        "RemoteSysCpu": "0.0",
        "CompletionDate": "0",
        "MaxHosts": "1",
        "MinHosts": "1",
        "TotalSubmitProcs": "1",
        "CondorVersion": quote("$CondorVersion: %s 2024-06-01 $" % settings["version"]),
    }
    arguments = known.get("arguments", "")
    if arguments.startswith('"'):
        ad["Arguments"] = quote(arguments[1:-1].replace('""', '"'))
    else:
        ad["Args"] = quote(arguments)
    environment = known.get("environment", known.get("env", ""))
    if environment.startswith('"'):
        ad["Environment"] = quote(environment[1:-1].replace('""', '"'))
    elif environment:
        ad["Env"] = quote(environment)
    if known.get("log"):
        ad["UserLog"] = quote(os.path.join(iwd, known["log"]))
    return ad


def _universe(known):
    word = known.get("universe", "vanilla").lower()
    if word not in UNIVERSES:
        raise SubmitError("I don't know about the '%s' universe." % word)
    return UNIVERSES[word]


def _expression(name, value):
    if name in ("request_memory", "request_disk"):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)b?\s*", value, re.IGNORECASE)
        if match:
            default = "m" if name == "request_memory" else "k"
            size = float(match.group(1)) * UNITS[match.group(2).lower() or default]
            return str(-int(-size // UNITS[default]))
    return _checked(name, value)


def _checked(name, value):
    try:
        expressions.parse(value)
    except expressions.ParseError:
        raise SubmitError("Parse error in expression: \n\t%s = %s\n\t" % (name, value)) from None
    return value.strip()


def arguments_of(job):
    """Return a job's arguments as a list: the new syntax (quotes) or the old one (blanks)."""
    new = job["Arguments"]
    return _words(new) if new else (job["Args"] or "").split()


def environment_of(job):
    """Return the environment that a job asks for."""
    if job["Environment"]:
        pairs = _words(job["Environment"])
    else:
        pairs = (job["Env"] or "").split(";")
    return dict(pair.split("=", 1) for pair in pairs if "=" in pair)


def _words(text):
    """Split at blanks outside single quotes; two single quotes within are one."""
    found = re.findall(r"(?:'(?:[^']|'')*'|[^\s'])+", text)
    return [
        re.sub(r"'((?:[^']|'')*)'", lambda match: match.group(1).replace("''", "'"), word)
        for word in found
    ]


def item_value(value):
    """Return the text of one value of itemdata."""
    return value if isinstance(value, str) else literal(value)
