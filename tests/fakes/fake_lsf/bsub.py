"""``bsub``: takes a command, or a script from its standard input."""

import os
import shlex
import sys

from fake_drm import submission
from fake_drm.arguments import parse, refuse, seconds, size_kb, task_list
from fake_drm.cli import CommandError, not_simulated
from fake_lsf import jobs

WITH_VALUE = set(
    "J Jd o oo e eo i q W We M n R cwd P w b c g G m app sp u L E Ep env p a C D F S T U v Zs t "
    "sla ext gpu outdir hl ti k".split()
)
FLAGS = {"H", "r", "rn", "x", "N", "B", "K", "I", "Is", "Ip", "ul", "V", "h"}
NOT_SIMULATED = {"K", "I", "Is", "Ip"}
NOT_SUBMITTED = " Job not submitted.\n"
REJECTIONS = {
    "limit": "User's pending job slot limit reached." + NOT_SUBMITTED,
    "threshold": "Pending job threshold reached. Retrying in 60 seconds..." + NOT_SUBMITTED,
    "queue": "User cannot use the queue." + NOT_SUBMITTED,
    "esub": "Request aborted by esub." + NOT_SUBMITTED,
    "runlimit": "RUNLIMIT: Cannot exceed queue's hard limit(s)." + NOT_SUBMITTED,
    "memlimit": "MEMLIMIT: Cannot exceed queue's hard limit(s)." + NOT_SUBMITTED,
    "resreq": "Bad resource requirement syntax." + NOT_SUBMITTED,
    "project": "The project name is not valid." + NOT_SUBMITTED,
}
USAGE = refuse("%s: Illegal option.\nUsage: bsub [options] command [arguments]\n", 255)


def main(store, argv):
    """Submit; returns the exit code."""
    given, command = parse(argv, WITH_VALUE, FLAGS, USAGE, joined=False)
    script = None
    if not command:
        script = sys.stdin.buffer.read()
        given = _parse_lines(script) + given
    options = dict(given)
    for name in NOT_SIMULATED & set(options):
        raise not_simulated("bsub", "-" + name)
    if "V" in options:
        sys.stderr.write("IBM Spectrum LSF Standard %s\n" % store.settings["version"])
        return 0
    if not command and not (script or b"").strip():
        raise CommandError("No command is specified." + NOT_SUBMITTED, 255)
    jobs.require_lsf(store)
    fields, tasks, throttle = _fields(store, options, command, script)
    _refuse(store, options, fields)
    records = submission.store_jobs(
        store,
        fields,
        _shell_file(command, script),
        tasks,
        throttle,
        finish=lambda record: _set_paths(store, record, options),
    )
    kind = "queue" if "q" in options else "default queue"
    number = submission.base_id(records[0])
    print("Job <%d> is submitted to %s <%s>." % (number, kind, fields["partition"]))
    return 0


def _parse_lines(script):
    """Options of the ``#BSUB`` lines; LSF reads them all, wherever they stand."""
    words = []
    for line in script.decode("utf-8", "surrogateescape").splitlines():
        if line.startswith("#BSUB"):
            words.extend(shlex.split(line[len("#BSUB"):], comments=True))
    return parse(words, WITH_VALUE, FLAGS, USAGE, joined=False)[0]


def _shell_file(command, script):
    """What sbatchd runs: the script, or a shell with the command line as it was typed."""
    if script is None:
        text = " ".join(command)
        return ("#!/bin/sh\n# LSBATCH: User input\n%s\n" % text).encode("utf-8", "surrogateescape")
    return script if script.startswith(b"#!") else b"#!/bin/sh\n" + script


def _value(function, text, message):
    try:
        return function(text)
    except (ValueError, KeyError):
        raise CommandError("%s: %s.%s" % (text, message, NOT_SUBMITTED), 255) from None


def _fields(store, options, command, script):
    name, tasks, throttle = options.get("J", ""), None, None
    if name.endswith("]") or "]%" in name:
        name, _, listed = name.partition("[")
        listed = listed.replace("]", "")
        tasks, throttle = _value(task_list, listed, "Bad job name")
    typed = " ".join(command) if script is None else script.decode("utf-8", "replace").rstrip("\n")
    limit = options.get("W")
    if limit is not None:
        limit = _value(lambda text: seconds(text.split("/")[0], 60, 3600), limit, "Bad RUNLIMIT")
    cpu = options.get("c")
    if cpu is not None:
        cpu = _value(lambda text: seconds(text.split("/")[0], 60, 3600), cpu, "Bad CPULIMIT")
    memory_mb = 0
    if "M" in options:
        unit = store.settings["memory_unit"]
        memory_mb = _value(lambda text: size_kb(text, unit), options["M"], "Bad MEMLIMIT") / 1024
    settings = store.settings
    fields = dict(
        name=name or typed.splitlines()[0],
        comment=options.get("Jd", ""),
        options=submission.played_options(options.get("Jd", "")),
        command=typed,
        dialect="fake_lsf",
        workdir=os.path.join(os.getcwd(), options.get("cwd", "")).rstrip("/") or "/",
        account=options.get("P", "default"),
        partition=options.get("q", settings["partitions"][0]).split()[0],
        cluster=settings["cluster"],
        stdin=options.get("i", "/dev/null"),
        append="o" in options and "oo" not in options,
        cpus=int(options.get("n", "1").split(",")[0]),
        memory_mb=memory_mb,
        memory_per="node" if memory_mb else "default",
        time_limit=limit,
        cpu_limit=cpu,
        requeue="r" in options,
        dependency=_dependency(options.get("w", "")),
        why="held_user" if "H" in options else "",
        extra={"from_host": settings["node"], "resreq": options.get("R", "")},
    )
    return fields, tasks, throttle


def _dependency(text):
    """``done(1) && ended(2)`` in the words of fake_drm; names of jobs are not simulated."""
    import re

    kinds = {"done": "afterok", "ended": "afterany", "exit": "afternotok", "started": "after"}
    parts = []
    for kind, number in re.findall(r"(\w+)\((\d+)", text):
        if kind in kinds:
            parts.append("%s:%s" % (kinds[kind], number))
    if text and not parts:
        raise not_simulated("bsub", "-w %s" % text)
    return ",".join(parts)


def _refuse(store, options, fields):
    settings = store.settings
    if fields["partition"] not in settings["partitions"]:
        raise CommandError("%s: No such queue.%s" % (fields["partition"], NOT_SUBMITTED), 255)
    reject = fields["options"].get("reject") or settings["reject"]
    if reject:
        text = REJECTIONS.get(reject, str(reject))
        raise CommandError(text if text.endswith("\n") else text + NOT_SUBMITTED, 255)
    if fields["memory_mb"] > settings["node_memory_mb"]:
        raise CommandError(REJECTIONS["memlimit"], 255)


def _set_paths(store, record, options):
    """-o and -e; without -o the output is mailed, that is, lost here."""
    output = options.get("oo", options.get("o"))
    error = options.get("eo", options.get("e"))
    spool = store.spool_path(record["id"], "out")
    record["stdout"] = spool
    if output is not None:
        path = _expanded(output, record, ".out")
        record["extra"]["output_file"] = path
        if store.settings["output_direct"]:
            record["stdout"] = path
    record["stderr"] = _expanded(error, record, ".err") if error is not None else record["stdout"]


def _expanded(path, record, suffix):
    number = str(submission.base_id(record))
    path = os.path.join(os.getcwd(), path)
    if os.path.isdir(path):
        path = os.path.join(path, number + suffix)
    values = {"%%": "%", "%J": number, "%I": str(record["task_id"] or 0)}
    import re

    return re.sub("%[%JI]", lambda match: values[match.group()], path)
