"""``qsub``: takes a script, or a command with -b y."""

import os
import signal
import sys

from fake_drm import submission
from fake_drm.arguments import parse, parse_anywhere, refuse, seconds, size_kb, task_list
from fake_drm.cli import CommandError, not_simulated
from fake_gridengine import jobs

WITH_VALUE = set(
    "N o e j l q A v P p r S wd t tc hold_jid b a m M w C i c ac sc dc js binding cal now jsv sync "
    "shell masterq ckpt dl R hold_jid_ad @ pty".split()
)
FLAGS = {"cwd", "V", "h", "terse", "notify", "hard", "soft", "clear", "verify", "help", "cal"}
TIMES = ("h_rt", "s_rt", "h_cpu", "s_cpu")
SIZES = ("h_vmem", "s_vmem", "h_fsize", "h_data", "h_rss", "s_rss", "mem_free", "virtual_free")
OTHERS = ("h", "hostname", "arch", "num_proc", "slots", "swap_free", "mem_total", "m_mem_free")
UNABLE = "Unable to run job: %s\nExiting.\n"
REJECTIONS = {
    "limit": "job rejected: Only 5 jobs are allowed per user (current job count: 5)",
    "access": "job rejected: you are not allowed to run jobs in this cluster",
    "project": 'job rejected: the project "%s" does not exist' % "nosuch",
    "jsv": "denied: rejected by JSV",
    "resources": "error: no suitable queues",
}


def main(store, argv):
    """Submit; returns the exit code."""
    usage = refuse('Unable to run job: Unknown option %s\nExiting.\n', 1)
    argv = _join_pe(argv)
    given, rest = parse(argv, WITH_VALUE | {"pe"}, FLAGS, usage, joined=False)
    binary = dict(given).get("b", "n")[:1] == "y"
    script, name = _read_script(rest, binary)
    prefix = dict(given).get("C", "#$")
    directed = []
    if not binary:
        directives = _join_pe(_directives(script, prefix))
        directed = parse_anywhere(directives, WITH_VALUE | {"pe"}, FLAGS, usage, joined=False)[0]
    options = dict(directed + given)
    if options.get("sync", "n")[:1] == "y":
        raise not_simulated("qsub", "-sync")
    requests = _requests(directed + given)
    fields, tasks = _fields(store, options, requests, name, binary, rest)
    jobs.require_qmaster(store, "qsub")
    _refuse(store, options, fields)
    records = submission.store_jobs(
        store,
        fields,
        script,
        tasks,
        int(options["tc"]) if "tc" in options else None,
        _environment(store, options),
        finish=lambda record: _set_paths(record, options),
    )
    print(_answer(records, options, "terse" in options))
    return 0


def _join_pe(argv):
    """``-pe smp 4`` has two values: they are put together."""
    out = list(argv)
    for at, word in enumerate(argv):
        if word == "-pe" and at + 2 < len(argv):
            out[at + 1: at + 3] = ["%s %s" % (argv[at + 1], argv[at + 2])]
            break
    return out


def _directives(script, prefix):
    words = []
    for line in script.decode("utf-8", "surrogateescape").splitlines():
        if line.startswith(prefix + " ") or line.startswith(prefix + "-"):
            words.extend(line[len(prefix):].split())
    return words


def _read_script(rest, binary):
    if binary:
        return b"", os.path.basename(rest[0]) if rest else ""
    if rest and rest[0] != "-":
        try:
            with open(rest[0], "rb") as handle:
                return handle.read(), os.path.basename(rest[0])
        except OSError as error:
            raise CommandError(
                "Unable to read script file because of error: error opening %s: %s\n"
                % (rest[0], error.strerror),
                14,
            ) from None
    return sys.stdin.buffer.read(), "STDIN"


def _requests(options):
    """{name: text} of all -l; the later wins."""
    found = {}
    for name, value in options:
        if name == "l":
            for part in value.split(","):
                key, _, wanted = part.partition("=")
                found[key] = wanted
    return found


def _bytes(text):
    """Upper-case units are binary, lower-case ones decimal."""
    step = 1000 if text[-1:].islower() else 1024
    return int(size_kb(text, "b", step) * 1024)


def _limits(requests):
    limits = {}
    for name, text in requests.items():
        if name not in TIMES + SIZES + OTHERS:
            raise CommandError(UNABLE % ('unknown resource "%s"' % name), 1)
        try:
            if name in TIMES:
                limits[name] = seconds(text)
            elif name in SIZES:
                limits[name] = _bytes(text)
        except (ValueError, KeyError):
            raise CommandError(UNABLE % ('"%s" is not a valid value' % text), 1) from None
    return limits


def _category(requests, limits, options):
    parts = ["-q %s" % options["q"]] if "q" in options else []
    shown = []
    for name in sorted(requests):
        value = "%d" % limits[name] if name in TIMES else requests[name]
        shown.append("%s=%s" % (name, value))
    parts += ["-l " + ",".join(shown)] if shown else []
    parts += ["-pe " + options["pe"]] if "pe" in options else []
    return " ".join(parts) or "NONE"


def _fields(store, options, requests, name, binary, rest):
    limits = _limits(requests)
    slots = int(options["pe"].split()[-1].split("-")[0]) if "pe" in options else 1
    tasks = None
    if "t" in options:
        try:
            tasks = task_list(options["t"])[0]
        except ValueError:
            raise CommandError(UNABLE % "invalid task id range", 1) from None
    soft = []
    if "s_rt" in limits:
        soft.append([limits["s_rt"], "time", int(signal.SIGUSR1)])
    if "s_cpu" in limits:
        soft.append([limits["s_cpu"], "cpu", int(signal.SIGXCPU)])
    if "wd" in options:
        workdir = options["wd"]
    else:
        workdir = os.getcwd() if "cwd" in options else os.path.expanduser("~")
    vmem = limits.get("h_vmem", 0)
    account = options.get("A", "sge")
    fields = dict(
        name=options.get("N", name),
        comment=account,
        options=submission.played_options(account),
        command=name,
        arguments=rest if binary else rest[1:],
        dialect="fake_gridengine",
        workdir=workdir,
        account=account,
        partition=options.get("q", store.settings["partitions"][0]).split("@")[0],
        cluster=store.settings["cluster"],
        append=True,
        cpus=slots,
        memory_mb=vmem * slots / 1048576.0,
        memory_per="node" if vmem else "default",
        time_limit=limits.get("h_rt"),
        cpu_limit=limits.get("h_cpu"),
        soft_limits=soft,
        requeue=options.get("r", "n")[:1] == "y",
        dependency=_dependency(store, options.get("hold_jid", "")),
        why="held_user" if "h" in options else "",
        extra={
            "binary": binary,
            "notify": "notify" in options,
            "limits": limits,
            "requests": requests,
            "category": _category(requests, limits, options),
            "project": options.get("P", "NONE"),
            "pe": options.get("pe", "").split()[0] if "pe" in options else "NONE",
            "tasks": options.get("t", ""),
            "submitted_from": os.getcwd(),
            "hold_jid": options.get("hold_jid", ""),
        },
    )
    return fields, tasks


def _dependency(store, text):
    """-hold_jid: ids, or names of jobs; any end will do."""
    ids = []
    for one in filter(None, text.split(",")):
        if one.isdigit():
            ids.append(one)
        else:
            ids += [str(record["id"]) for record in store.all() if record["name"] == one]
    return "afterany:" + ":".join(ids) if ids else ""


def _refuse(store, options, fields):
    settings = store.settings
    if fields["partition"] not in settings["partitions"]:
        text = 'Job was rejected because job requests unknown queue "%s"' % fields["partition"]
        raise CommandError(UNABLE % text, 1)
    if fields["name"][:1].isdigit():
        raise CommandError('Unable to run job: denied: "%s" is not a valid object name (cannot '
                           "start with a digit)\nExiting.\n" % fields["name"], 1)
    reject = fields["options"].get("reject") or settings["reject"]
    if reject:
        raise CommandError(UNABLE % REJECTIONS.get(reject, str(reject)), 1)
    if "pe" in options and fields["extra"]["pe"] not in ("smp", "mpi", "make", "orte"):
        text = 'job rejected: the requested parallel environment "%s" does not exist'
        raise CommandError(UNABLE % (text % fields["extra"]["pe"]), 1)


def _environment(store, options):
    kept = {
        name: os.environ[name]
        for name in ("HOME", "USER", "LOGNAME", "SHELL", "PATH", "LANG")
        if name in os.environ
    }
    if "V" in options:
        kept.update(os.environ)
    for part in filter(None, options.get("v", "").split(",")):
        name, equals, value = part.partition("=")
        kept[name] = value if equals else os.environ.get(name, "")
    kept["FAKE_DRM_STATE"] = store.path
    return kept


def _set_paths(record, options):
    number = str(submission.base_id(record))
    task = "" if record["task_id"] is None else ".%d" % record["task_id"]
    for key, letter, name in (("o", "o", "stdout"), ("e", "e", "stderr")):
        path = options.get(key, record["workdir"])
        path = path.split(":", 1)[1] if ":" in path.split("/")[0] else path
        for word, value in (
            ("$JOB_ID", number),
            ("$TASK_ID", str(record["task_id"] or "undefined")),
            ("$JOB_NAME", record["name"]),
            ("$HOME", os.path.expanduser("~")),
        ):
            path = path.replace(word, value)
        record["extra"]["%s_path" % name] = options.get(key, "")
        path = os.path.normpath(os.path.join(record["workdir"], path))
        if os.path.isdir(path):
            path = os.path.join(path, "%s.%s%s%s" % (record["name"], letter, number, task))
        record[name] = path
    if options.get("j", "n")[:1] == "y":
        record["stderr"] = record["stdout"]


def _answer(records, options, terse):
    first = records[0]
    number = submission.base_id(first)
    if first["array_id"] is None:
        return str(number) if terse else 'Your job %d ("%s") has been submitted' % (
            number, first["name"]
        )
    bounds, _, step = options["t"].partition(":")
    low, _, high = bounds.partition("-")
    tasks = "%d.%s-%s:%s" % (number, low, high or low, step or 1)
    return tasks if terse else 'Your job-array %s ("%s") has been submitted' % (
        tasks, first["name"]
    )
