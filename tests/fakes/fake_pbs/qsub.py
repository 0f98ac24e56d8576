"""``qsub``: takes a script, or a command behind ``--`` (OpenPBS)."""

import os
import sys

from fake_drm import submission
from fake_drm.arguments import parse_anywhere, parse, refuse, seconds, size_kb, task_list
from fake_drm.cli import CommandError, not_simulated
from fake_pbs import jobs, words

WITH_VALUE = set("N o e j l q h A v J t W r S m M p k a C c P u R w d D F b T f".split())
FLAGS = {"V", "z", "I", "X", "G"}
# By cause: (text, PBS's error number)
REJECTIONS = {
    "limit": ("would exceed limit on number of jobs in queue for user", 15172),
    "limit_torque": ("Maximum number of jobs already in queue for user", 15045),
    "queue_limits": ("Job violates queue and/or server resource limits", 15036),
    "disabled": ("Queue is not enabled", 15021),
    "user": ("Bad UID for job execution", 15023),
    "unauthorized": ("Unauthorized Request ", 15007),
    "account": ("Invalid credential", 15030),
    "resource": ("Illegal attribute or resource value", 15014),
    "hook": ("request rejected by filter hook", 15169),
}
VARIABLES = "HOME LANG LOGNAME PATH SHELL".split()


def main(store, argv):
    """Submit; returns the exit code."""
    usage = refuse("qsub: invalid option -- '%s'\nusage: qsub [options] [script]\n", 2)
    if argv[:1] == ["--version"]:
        return print_version(store)
    typed = " ".join(argv)
    argv, executable = _split_command(argv)
    argv = _with_hold_value(argv)
    given, rest = parse(argv, WITH_VALUE, FLAGS, usage)
    script, name = _read_script(store, rest, executable)
    prefix = dict(given).get("C", "#PBS")
    in_script = _with_hold_value(submission.directives(script, prefix))
    directed = parse_anywhere(in_script, WITH_VALUE, FLAGS, usage)[0]
    options = dict(directed)
    options.update(given)
    resources = _resources(directed, given)
    for one in ("I", "X"):
        if one in options:
            raise not_simulated("qsub", "-" + one)
    jobs.require_pbs(store, "qsub")
    fields, tasks, throttle = _fields(store, options, resources, name, executable, typed)
    _refuse(store, options, fields)
    environment, variables = _variables(store, options, fields)
    fields["extra"]["variables"] = variables
    records = submission.store_jobs(
        store,
        fields,
        script,
        tasks,
        throttle,
        environment,
        finish=lambda record: _set_paths(store, record, options),
    )
    first = records[0]
    print(words.job_id(store, first) if tasks is None else words.array_id(store, first))
    return 0


def print_version(store):
    """What ``--version`` prints: Torque on stderr."""
    if words.is_torque(store):
        sys.stderr.write("Version: %s\nCommit: (unknown)\n" % store.settings["version"])
    else:
        print("pbs_version = " + store.settings["version"])
    return 0


def _split_command(argv):
    if "--" in argv:
        at = argv.index("--")
        return argv[:at], argv[at + 1:]
    return argv, []


def _with_hold_value(argv):
    """``-h`` has no value; one is put in, so that all options with a letter are alike."""
    out = []
    for word in argv:
        out += ["-h", "u"] if word == "-h" else [word]
    return out


def _read_script(store, rest, executable):
    if executable:
        return b"", os.path.basename(executable[0])
    if rest and rest[0] != "-":
        try:
            with open(rest[0], "rb") as handle:
                return handle.read(), os.path.basename(rest[0])
        except OSError as error:
            text = "qsub: script file:: %s\n" % error.strerror
            if words.is_torque(store):
                text = "qsub: script file '%s' cannot be loaded - %s\n" % (rest[0], error.strerror)
            raise CommandError(text, 1) from None
    return sys.stdin.buffer.read(), "STDIN"


def _resources(directed, given):
    """[(name, value)] of all -l; those of the command line win."""
    found = {}
    for name, value in directed + given:
        if name == "l":
            for part in _split_resources(value):
                key, _, wanted = part.partition("=")
                found[key] = wanted
    return list(found.items())


def _split_resources(text):
    """Split at commas; select= and nodes= keep their colons."""
    return [part for part in text.split(",") if part]


def _fields(store, options, resources, name, executable, typed):
    asked = dict(resources)
    array = options.get("t") if words.is_torque(store) else options.get("J")
    tasks, throttle = None, None
    if array is not None:
        try:
            tasks, throttle = task_list(array)
        except ValueError:
            raise CommandError("qsub: illegal -J value\n", 1) from None
    bad = "qsub: Illegal attribute or resource value Resource_List.%s\n"
    limits = {}
    for key in ("walltime", "cput"):
        try:
            limits[key] = seconds(asked[key]) if key in asked else None
        except ValueError:
            raise CommandError(bad % key, 166) from None
    memory = _memory(asked, bad)
    cpus = _cpus(asked)
    if limits["walltime"] is not None:
        resources = [(k, words.hms(limits[k]) if k == "walltime" else v) for k, v in resources]
    account = options.get("A")
    played = submission.played_options(account or "")
    depend = options.get("W", "").partition("depend=")[2]
    hold = options.get("h")
    extra = {
        "torque": words.is_torque(store),
        "resources": resources,
        "arguments": typed,
        "join": options.get("j", "n"),
        "keep": options.get("k", "n"),
        "shell": options.get("S"),
        "hold_types": hold,
        "indices": array or "",
        "depend": _shown_dependency(store, depend),
    }
    return (
        dict(
            name=options.get("N", name)[:236],
            comment=account or "",
            options=played,
            command=name,
            arguments=executable,
            dialect="fake_pbs",
            workdir=os.path.expanduser("~"),
            account=account,
            partition=options.get("q", store.settings["partitions"][0]).split("@")[0],
            cluster=store.settings["cluster"],
            cpus=cpus,
            memory_mb=memory,
            memory_per="node" if memory else "default",
            time_limit=limits["walltime"],
            cpu_limit=limits["cput"],
            requeue=options.get("r", "y") != "n",
            dependency=_dependency(depend),
            why="held_user" if hold else "",
            extra=extra,
        ),
        tasks,
        throttle,
    )


def _memory(asked, bad):
    """MB that the job may have, of mem= or of one chunk's mem=; 0 if it did not ask."""
    chunk = dict(part.partition("=")[::2] for part in asked.get("select", "").split(":"))
    for key, text in (("mem", asked.get("mem")), ("mem", chunk.get("mem")),
                      ("vmem", asked.get("vmem")), ("pmem", asked.get("pmem"))):
        if text:
            try:
                return size_kb(text) / 1024
            except (ValueError, KeyError):
                raise CommandError(bad % key, 166) from None
    return 0


def _cpus(asked):
    for key in ("select", "nodes"):
        for part in asked.get(key, "").split(":"):
            name, _, value = part.partition("=")
            if name in ("ncpus", "ppn") and value.isdigit():
                return int(value)
    return int(asked.get("ncpus", "1"))


def _dependency(depend):
    """``afterok:45.pbs1`` in the words of fake_drm."""
    parts = []
    for one in filter(None, depend.split(",")):
        kind, *ids = one.split(":")
        parts.append(":".join([kind] + [text.split(".")[0].split("[")[0] for text in ids]))
    return ",".join(parts)


def _shown_dependency(store, depend):
    server = store.settings["cluster"]
    shown = []
    for one in filter(None, depend.split(",")):
        kind, *ids = one.split(":")
        full = ["%s@%s" % (jobs.full_id(store, text), server) for text in ids]
        shown.append(":".join([kind] + full))
    return ",".join(shown)


def _refuse(store, options, fields):
    settings = store.settings
    torque = words.is_torque(store)
    if fields["partition"] not in settings["partitions"]:
        text = "submit error (Unknown queue MSG=cannot locate queue)" if torque else "Unknown queue"
        raise CommandError("qsub: %s\n" % text, 170)
    if fields["name"][:1].isdigit() and torque:
        raise CommandError("qsub: illegal -N value\n", 1)
    reject = fields["options"].get("reject") or settings["reject"]
    if not reject:
        return
    text, number = REJECTIONS.get(reject, (str(reject), 15031))
    said = "submit error (%s)" % text if torque else text
    raise CommandError("qsub: %s\n" % said, number % 256)


def _variables(store, options, fields):
    """(environment of the job, Variable_List)."""
    kept = {name: os.environ[name] for name in VARIABLES + ["USER"] if name in os.environ}
    if "V" in options:
        kept.update(os.environ)
    given = []
    for part in filter(None, options.get("v", "").split(",")):
        name, equals, value = part.partition("=")
        given.append((name, value if equals else os.environ.get(name, "")))
    kept.update(given)
    kept["FAKE_DRM_STATE"] = store.path
    variables = [("PBS_O_" + name, os.environ[name]) for name in VARIABLES if name in os.environ]
    if not words.is_torque(store):
        variables += [("PBS_O_INTERACTIVE_AUTH_METHOD", "resvport")]
        variables += [("PBS_O_INTERACTIVE_ENCRYPT_METHOD", "")]
    variables += [("PBS_O_WORKDIR", os.getcwd()), ("PBS_O_SYSTEM", "Linux")]
    variables += given
    variables += [("PBS_O_QUEUE", fields["partition"]), ("PBS_O_HOST", store.settings["cluster"])]
    kept.update(variables)
    return kept, variables


def _set_paths(store, record, options):
    """-o and -e, or NAME.oN and NAME.eN in the folder of the submission (-k: at home)."""
    number = str(submission.base_id(record))
    if record["array_id"] is not None:
        number += ("-%d" if words.is_torque(store) else ".%d") % record["task_id"]
    host = store.settings["cluster"]
    for key, letter, spool, name in (
        ("o", "o", "OU", "stdout"), ("e", "e", "ER", "stderr")
    ):
        path = options.get(key)
        folder = os.path.expanduser("~") if letter in options.get("k", "") else os.getcwd()
        if path is None:
            path = "%s.%s%s" % (record["name"], letter, number)
        path = path.split(":", 1)[1] if ":" in path.split("/")[0] else path
        path = os.path.join(folder, path)
        if os.path.isdir(path):
            path = os.path.join(path, "%s.%s" % (words.job_id(store, record), spool))
        path = path.replace("^array_index^", str(record["task_id"]))
        path = path.replace("$PBS_JOBID", words.job_id(store, record))
        record[name] = path
        record["extra"]["output_path" if key == "o" else "error_path"] = "%s:%s" % (host, path)
    join = options.get("j", "n")
    if join in ("oe", "o"):
        record["stderr"] = record["stdout"]
    elif join == "eo":
        record["stdout"] = record["stderr"]
