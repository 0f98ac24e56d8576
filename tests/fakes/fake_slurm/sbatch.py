"""``sbatch``: takes a script, writes the job's record(s), starts a runner for each."""

import json
import os
import shlex
import sys

from fake_drm import runner, transitions
from fake_drm.settings import SettingsError, job_options
from fake_slurm import cli, formats
from fake_slurm.jobs import acting_user
from fake_slurm.options import UsageError, not_simulated, parse

# Every option of the real one; those that READ does not name are accepted and change nothing.
LONGS = """account= acctg-freq= array= batch= bb= bbf= begin= bell chdir= clusters=
cluster-constraint= comment= constraint= container= contiguous core-spec= cores-per-socket=
cpu-freq= cpus-per-gpu= cpus-per-task= deadline= delay-boot= dependency= distribution= error=
exclude= exclusive=? export= export-file= extra-node-info= get-user-env=? gid= gpu-bind= gpu-freq=
gpus= gpus-per-node= gpus-per-socket= gpus-per-task= gres= gres-flags= help hint= hold ignore-pbs
input= job-name= kill-on-invalid-dep= licenses= mail-type= mail-user= mcs-label= mem= mem-bind=
mem-per-cpu= mem-per-gpu= mincpus= network= nice=? no-kill=? no-requeue nodefile= nodelist= nodes=
ntasks= ntasks-per-core= ntasks-per-gpu= ntasks-per-node= ntasks-per-socket= open-mode= output=
overcommit oversubscribe parsable partition= power= prefer= priority= profile= propagate=? qos=
quiet reboot requeue reservation= signal= sockets-per-node= spread-job switches= test-only
thread-spec= threads-per-core= time= time-min= tmp= uid= usage use-min-nodes verbose version wait
wait-all-nodes= wckey= wrap=""".split()
SHORTS = {
    "A": "account",
    "a": "array",
    "b": "begin",
    "B": "extra-node-info",
    "C": "constraint",
    "c": "cpus-per-task",
    "d": "dependency",
    "D": "chdir",
    "e": "error",
    "F": "nodefile",
    "G": "gpus",
    "H": "hold",
    "h": "help",
    "i": "input",
    "J": "job-name",
    "k": "no-kill",
    "L": "licenses",
    "M": "clusters",
    "m": "distribution",
    "N": "nodes",
    "n": "ntasks",
    "O": "overcommit",
    "o": "output",
    "p": "partition",
    "Q": "quiet",
    "q": "qos",
    "S": "core-spec",
    "s": "oversubscribe",
    "t": "time",
    "u": "usage",
    "v": "verbose",
    "V": "version",
    "w": "nodelist",
    "W": "wait",
    "x": "exclude",
}
READ = (
    "account array begin chdir clusters comment cpus-per-task dependency error export hold "
    "input job-name "
    "kill-on-invalid-dep mem mem-per-cpu no-requeue nodes ntasks open-mode output parsable "
    "partition qos quiet "
    "requeue time wrap"
).split()
NOT_SIMULATED = (
    "test-only",
    "wait",
    "help",
    "usage",
    "get-user-env",
    "uid",
    "gid",
    "reservation",
    "deadline",
    "licenses",
    "export-file",
    "container",
)

POLICY = "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"
FAILED = "sbatch: error: Batch job submission failed: "
REJECTIONS = {
    "qos_limit": "sbatch: error: QOSMaxSubmitJobPerUserLimit\n" + FAILED + POLICY + "\n",
    "qos_walltime": "sbatch: error: QOSMaxWallDurationPerJobLimit\n" + FAILED + POLICY + "\n",
    "bad_account": FAILED + "Invalid account or account/partition combination specified\n",
    "bad_partition": FAILED + "Invalid partition name specified\n",
    "bad_qos": FAILED + "Invalid qos specification\n",
    "busy": FAILED + "Resource temporarily unavailable\n",
}


def main(store, argv):
    """Submit; returns the exit code."""
    given, rest = parse("sbatch", argv, LONGS, SHORTS, permute=False, code=255)
    if ":" in rest:
        raise not_simulated("sbatch", "a heterogeneous job (:)")
    asked = dict(given)
    script, command = _read_script(asked, rest)
    options = dict(_directives(script), **asked)
    for name in NOT_SIMULATED:
        if name in options:
            raise not_simulated("sbatch", "--" + name)
    fields = _fields(store, options, command)
    cli.require_controller(store, FAILED.rstrip(": "))
    fields["options"].update(_refusals(store, options, fields))
    first = _store_jobs(store, options, fields, script, rest[1:])
    if "quiet" not in options or "parsable" in options:
        print(_answer(store, options, first))
    return 0


def _answer(store, options, job_id):
    cluster = store.settings["cluster"] if "clusters" in options else None
    if "parsable" in options:
        return "%d;%s" % (job_id, cluster) if cluster else str(job_id)
    return "Submitted batch job %d%s" % (job_id, " on cluster %s" % cluster if cluster else "")


def _read_script(asked, rest):
    """Return (the script's bytes, its path or None)."""
    if "wrap" in asked:
        if rest:
            raise UsageError("sbatch: error: Script arguments not permitted with --wrap option\n")
        text = "#!/bin/sh\n# This script was created by sbatch --wrap.\n\n%s\n" % asked["wrap"]
        return text.encode("utf-8", "surrogateescape"), None
    if rest:
        path = os.path.abspath(rest[0])
        try:
            with open(path, "rb") as handle:
                script = handle.read()
        except OSError:
            raise UsageError("sbatch: error: Unable to open file %s\n" % rest[0]) from None
    else:
        path = None
        script = sys.stdin.buffer.read()
    if not script:
        raise UsageError("sbatch: error: Batch script is empty!\n")
    if not script.startswith(b"#!"):
        raise UsageError(
            "sbatch: error: This does not look like a batch script.  The first\n"
            "sbatch: error: line must start with #! followed by the path to an interpreter.\n"
            "sbatch: error: For instance: #!/bin/sh\n"
        )
    return script, path


def _directives(script):
    """Options of the ``#SBATCH`` lines, up to the first line that is a command."""
    options = {}
    for line in script.decode("utf-8", "surrogateescape").splitlines():
        if line.startswith("#SBATCH"):
            words = shlex.split(line[len("#SBATCH"):], comments=True)
            options.update(parse("sbatch", words, LONGS, SHORTS, code=255)[0])
        elif line.strip() and not line.startswith("#"):
            break
    return options


def _number(options, name, default):
    text = options.get(name)
    if text is None:
        return default
    first = text.split("-")[0]
    if not first.isdigit() or int(first) == 0:
        raise UsageError('sbatch: error: Invalid numeric value "%s" for --%s.\n' % (text, name))
    return int(first)


def _fields(store, options, command):
    """The record's values that the options decide."""
    settings = store.settings
    if "clusters" in options:
        cli.require_cluster(store, "sbatch", options["clusters"])
    try:
        limit = (
            formats.parse_time_limit(options["time"])
            if "time" in options
            else settings["default_time_limit"]
        )
    except ValueError:
        raise UsageError("sbatch: error: Invalid --time specification\n", 255) from None
    memory_mb, memory_per = settings["default_memory_mb"], "default"
    for name, per in (("mem-per-cpu", "cpu"), ("mem", "node")):
        if name in options:
            try:
                memory_mb, memory_per = formats.parse_memory(options[name]), per
            except ValueError:
                raise UsageError(
                    "sbatch: error: Invalid --%s specification\n" % name, 255
                ) from None
    ntasks = _number(options, "ntasks", 1)
    per_task = _number(options, "cpus-per-task", 1)
    comment = options.get("comment", "")
    try:
        played = job_options(comment)
    except SettingsError as error:
        raise UsageError("sbatch: fake: %s\n" % error, 70) from None
    workdir = os.path.join(os.getcwd(), options["chdir"]) if "chdir" in options else os.getcwd()
    user, uid, group, gid = acting_user()
    return dict(
        name=options.get("job-name")
        or (os.path.basename(command) if command else "wrap" if "wrap" in options else "sbatch"),
        comment=comment,
        options=played,
        command=command,
        dialect="fake_slurm",
        user=user,
        uid=uid,
        group=group,
        gid=gid,
        workdir=workdir,
        account=options.get("account", user if settings["accounting"] != "off" else None),
        partition=options.get("partition", settings["partitions"][0]),
        qos=options.get("qos", "normal" if settings["accounting"] != "off" else None),
        cluster=settings["cluster"],
        stdin=options.get("input", "/dev/null"),
        append=options.get("open-mode", "").startswith("a"),
        cpus=ntasks * per_task,
        cpus_per_task=per_task,
        ntasks=ntasks,
        nodes=_number(options, "nodes", 1),
        memory_mb=memory_mb,
        memory_per=memory_per,
        time_limit=limit,
        requeue="no-requeue" not in options and ("requeue" in options or bool(settings["requeue"])),
        dependency=options.get("dependency", ""),
        why="held_user" if "hold" in options else "",
        begin=_begin(store, options),
    )


def _begin(store, options):
    text = options.get("begin")
    if text is None:
        return None
    try:
        return parse_when(text, store.clock.now())
    except ValueError:
        raise UsageError(
            "Invalid time specification (pos=0): %s\nsbatch: error: Invalid --begin specification\n"
            % text,
            255,
        ) from None


def parse_when(text, now):
    """Seconds for ``now``, ``now+30``, ``now+2minutes``, ``now-1hour``,
    ``2026-11-29[T10:00[:00]]``, ``10:00``.

    Raises ValueError on any other form.
    """
    import time

    if text.lower().startswith("now"):
        rest = text[3:]
        if not rest:
            return now
        sign = {"+": 1, "-": -1}[rest[0]] if rest[0] in "+-" else None
        digits = rest[1:].rstrip("abcdefghijklmnopqrstuvwxyz")
        units = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
        unit = rest[1 + len(digits):][:1]
        if sign is None or unit not in units:
            raise ValueError(text)
        return now + sign * int(digits) * units[unit]
    for form in ("%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d"):
        try:
            return time.mktime(time.strptime(text, form))
        except ValueError:
            continue
    today = time.strftime("%Y-%m-%dT", time.localtime(now))
    return time.mktime(
        time.strptime(today + (text if text.count(":") == 2 else text + ":00"), "%Y-%m-%dT%H:%M:%S")
    )


def _refusals(store, options, fields):
    """Raise UsageError if this submission is refused; return nothing to add."""
    settings = store.settings
    reject = fields["options"].get("reject", settings["reject"])
    if reject:
        raise UsageError(REJECTIONS.get(reject, "%s\n" % reject))
    if fields["partition"] not in settings["partitions"]:
        raise UsageError(
            "sbatch: error: invalid partition specified: %s\n%s"
            % (fields["partition"], REJECTIONS["bad_partition"])
        )
    if (
        "account" in options
        and settings["accounts"] is not None
        and options["account"] not in settings["accounts"]
    ):
        raise UsageError(REJECTIONS["bad_account"])
    if "qos" in options and settings["qos"] is not None and options["qos"] not in settings["qos"]:
        raise UsageError(REJECTIONS["bad_qos"])
    memory = fields["memory_mb"] * (1 if fields["memory_per"] == "node" else fields["cpus"])
    if fields["memory_per"] != "default" and memory > settings["node_memory_mb"]:
        raise UsageError(
            "sbatch: error: Memory specification can not be satisfied\n"
            + FAILED
            + "Requested node configuration is not available\n"
        )
    return {}


def _store_jobs(store, options, fields, script, arguments):
    """Write the job, or the elements of the array; start their runners. Returns the id to
    report."""
    tasks, throttle = [None], None
    if "array" in options:
        try:
            tasks, throttle = formats.parse_task_list(options["array"])
        except ValueError:
            raise UsageError(FAILED + "Invalid job array specification\n") from None
    environment = _environment(options.get("export", "ALL"))
    records = []
    with store.lock():
        first = store.new_ids(len(tasks))
        for position, task in enumerate(tasks):
            # as in the real one, the array's own id becomes that of the element which starts last
            number = first if task is None else first + (position + 1) % len(tasks)
            record = transitions.new_record(
                number, store.clock.now(), arguments=arguments, **fields
            )
            record["usual_priority"] = 4294901760 - first
            record["priority"] = 0 if record["why"] else record["usual_priority"]
            if task is not None:
                record.update(
                    array_id=first, task_id=task, throttle=throttle, array_size=len(tasks)
                )
            _set_paths(store, record, options)
            _spool(store, number, script, environment)
            store.write(record)
            records.append(record)
    for record in records:
        if record["why"] not in transitions.NEVER_STARTS:
            runner.spawn(store, record["id"])
    return first


def _set_paths(store, record, options):
    default = "slurm-%A_%a.out" if record["array_id"] is not None else "slurm-%j.out"
    node = store.settings["node"]
    record["stdout"] = formats.expand_pattern(options.get("output", default), record, node)
    record["stderr"] = (
        formats.expand_pattern(options["error"], record, node)
        if "error" in options
        else record["stdout"]
    )
    record["stdin"] = formats.expand_pattern(record["stdin"], record, node)


def _environment(export):
    """The job's environment for an ``--export`` value: ALL, NONE, NIL, or names and NAME=VALUE,
    maybe after ALL."""
    words = [word for word in export.split(",") if word]
    everything = not words or "ALL" in words
    values = {
        name: value
        for name, value in os.environ.items()
        if everything
        or (words[0] == "NONE" and name in ("HOME", "PATH", "SHELL", "USER", "LOGNAME"))
    }
    for word in words:
        name, equals, value = word.partition("=")
        if equals:
            values[name] = value
        elif name not in ("ALL", "NONE", "NIL") and name in os.environ:
            values[name] = os.environ[name]
    values["SLURM_SUBMIT_DIR"] = os.getcwd()
    values["FAKE_SLURM_STATE"] = os.environ["FAKE_SLURM_STATE"]
    return values


def _spool(store, number, script, environment):
    path = store.spool_path(number, "script")
    with open(path, "wb") as handle:
        handle.write(script)
    os.chmod(path, 0o700)
    with open(store.spool_path(number, "env.json"), "w") as handle:
        json.dump(environment, handle)
