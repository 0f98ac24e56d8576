"""``scontrol``: show job, hold, release, requeue, requeuehold, update, ping."""

import sys

from fake_drm import process, runner, transitions
from fake_slurm import cli, formats, jobs, words
from fake_slurm.options import UsageError, not_simulated, parse
from fake_slurm.sbatch import parse_when

LONGS = """all clusters= cluster= details federation future help hide local oneliner quiet sibling
uid= usage verbose version""".split()
SHORTS = {
    "a": "all",
    "M": "clusters",
    "d": "details",
    "F": "future",
    "h": "help",
    "o": "oneliner",
    "Q": "quiet",
    "u": "uid",
    "v": "verbose",
    "V": "version",
}
NO_JOB = "slurm_load_jobs error: Invalid job id specified\n"
SUPPORTED = "show job, show config, hold, release, requeue, requeuehold, update jobid=, ping"


def main(store, argv):
    """Run one scontrol command; returns the exit code."""
    given, others = parse("scontrol", argv, LONGS, SHORTS)
    options = dict(given)
    for name in ("help", "usage", "federation"):
        if name in options:
            raise not_simulated("scontrol", "--" + name)
    cluster = options.get("clusters", options.get("cluster"))
    if cluster:
        cli.require_cluster(store, "scontrol", cluster)
    if not others:
        raise not_simulated("scontrol", "the interactive mode")
    keyword = others[0].lower()
    if keyword == "show":
        return _show(store, others[1:], "oneliner" in options, "details" in options)
    if keyword == "ping":
        return _ping(store)
    if keyword in ("hold", "uhold", "release", "requeue", "requeuehold"):
        return _each(store, keyword, others[1:])
    if keyword == "update":
        return _update(store, others[1:])
    if keyword in (
        "suspend",
        "resume",
        "top",
        "write",
        "reconfigure",
        "create",
        "delete",
        "listpids",
        "wait_job",
    ):
        raise not_simulated("scontrol", "'%s' (only: %s)" % (keyword, SUPPORTED))
    raise UsageError("invalid keyword: %s\n" % others[0])


def _ping(store):
    host = "node1"
    try:
        cli.require_controller(store, "")
    except UsageError:
        stars = "*" * 41
        print(
            "Slurmctld(primary) at %s is DOWN\n%s\n** RESTORE SLURMCTLD DAEMON TO SERVICE **\n%s"
            % (host, stars, stars)
        )
        return 1
    print("Slurmctld(primary) at %s is UP" % host)
    return 0


def _show(store, arguments, one_line, details):
    if not arguments:
        raise UsageError("too few arguments for keyword:show\n")
    entity, equals, value = arguments[0].partition("=")
    values = ([value] if equals else []) + arguments[1:]
    if entity.lower() == "config":
        return _show_config(store)
    if entity.lower() not in ("job", "jobs", "jobid"):
        if entity.lower() in (
            "node",
            "nodes",
            "partition",
            "hostnames",
            "step",
            "assoc",
            "reservation",
        ):
            raise not_simulated("scontrol", "'show %s' (only: %s)" % (entity, SUPPORTED))
        raise UsageError("invalid entity:%s for keyword:show \n" % entity)
    if len(values) > 1:
        raise UsageError("too many arguments for keyword:show\n")
    user = jobs.acting_user()
    if not values:
        cli.require_controller(store, "slurm_load_jobs error")
        records = jobs.merge_arrays(
            [record for record in store.all() if jobs.visible(store, record, user)]
        )
        if not records:
            print("No jobs in the system")
    else:
        records = _find_shown(store, values[0], user)
    now = store.clock.now()
    sys.stdout.write("".join(render(record, now, one_line, details) for record in records))
    return 0


def _show_config(store):
    """Some of the 150 rows, as 22.05 has them (see tests/data/slurm/config)."""
    cli.require_controller(store, "slurm_load_ctl_conf error")
    kept = "slurmdbd" if store.settings["accounting"] != "off" else "none"
    rows = [
        ("AccountingStorageType", "accounting_storage/" + kept),
        ("ClusterName", store.settings["cluster"]),
        ("JobFileAppend", str(store.settings["job_file_append"])),
        ("MinJobAge", "%d sec" % store.settings["min_job_age"]),
        ("SLURM_VERSION", store.settings["version"]),
    ]
    now = formats.when(store.clock.now(), "")
    print("Configuration data as of %s" % now)
    print("\n".join("%-23s = %s" % row for row in rows))
    print("\nSlurmctld(primary) at %s is UP" % store.settings["node"])
    return 0


def _find_shown(store, text, user):
    try:
        number, tasks = jobs.parse_id(text)
    except ValueError:
        raise UsageError("scontrol_print_job error: Invalid job id specified\n") from None
    cli.require_controller(store, "slurm_load_jobs error")
    found = [
        record for record in jobs.find(store, number, tasks) if jobs.visible(store, record, user)
    ]
    if not found:
        if tasks and any(jobs.visible(store, one, user) for one in jobs.find(store, number, None)):
            sys.stdout.write("Job %s not found\n" % text)
            raise UsageError("")
        raise UsageError(NO_JOB)
    found = jobs.merge_arrays(found)
    if tasks is not None and len(tasks) == 1 and "tasks" in found[0]:
        paths = {
            name: found[0][name].replace("_4294967294.", "_%d." % tasks[0])
            for name in ("stdout", "stderr")
        }
        return [dict(found[0], tasks=tasks, one_task=True, **paths)]
    metas = [record for record in found if "tasks" in record]
    return metas + [record for record in reversed(found) if "tasks" not in record]


def _dependency(record):
    if not record["dependency"]:
        return "(null)"
    mark = {"dependency_never": "failed"}.get(
        record["why"] if record["state"] == "pending" else record["waited_for"], "unfulfilled"
    )
    kind, _, ids = record["dependency"].partition(":")
    return ",".join("%s:%s(%s)" % (kind, one, mark) for one in ids.split(":"))


def _head(record):
    """The fields that name the job."""
    pairs = [("JobId", str(record["id"]))]
    if record["array_id"] is not None:
        tasks = str(record["tasks"][0]) if record.get("one_task") else jobs.task_text(record)
        pairs += [("ArrayJobId", str(record["array_id"])), ("ArrayTaskId", tasks)]
        if record["throttle"]:
            pairs.append(("ArrayTaskThrottle", str(record["throttle"])))
    return pairs + [("JobName", record["name"])]


def _times(record):
    """(EligibleTime, AccrueTime, StartTime, EndTime)."""
    if record["state"] == "pending":
        begin = formats.when(record["begin"], "Unknown")
        waits = record["why"] in ("held_user", "dependency", "dependency_never", "held_admin")
        eligible = (
            "Unknown"
            if waits and record["begin"] is None
            else formats.when(
                record["begin"] if record["begin"] is not None else record["submit"], "Unknown"
            )
        )
        if "tasks" in record:
            eligible = "Unknown"
        accrue = formats.when(record["submit"], "") if "tasks" in record and not waits else eligible
        end = (
            "Unknown"
            if record["begin"] is None or record["time_limit"] is None
            else formats.when(record["begin"] + record["time_limit"], "")
        )
        return eligible, accrue, begin, end
    eligible = formats.when(
        record["begin"] if record["begin"] is not None else record["submit"], "Unknown"
    )
    if not record["started"] and record["state"] == "ended" and record["waited_for"]:
        eligible = "Unknown"
    end = record["end"]
    if record["state"] == "running":
        end = transitions.end_by(record)
    return (
        eligible,
        eligible,
        formats.when(record["start"], "Unknown"),
        formats.when(end, "Unknown"),
    )


def _allocated(record, memory):
    """The lines that ``--details`` adds for a job that has, or had, a node."""
    if not record["node"]:
        return []
    cpus = "0" if record["cpus"] == 1 else "0-%d" % (record["cpus"] - 1)
    return [
        [("JOB_GRES", "(null)")],
        [("  Nodes", record["node"]), ("CPU_IDs", cpus), ("Mem", str(memory)), ("GRES", "")],
    ]


def lines(record, now, details=False):
    """The lines of ``show job``: lists of (key, value). One-line output only joins them."""
    status = record["exit"]
    if transitions.is_completing(record) and record["session"]:
        status = 0
    eligible, accrue, start, end = _times(record)
    never = record["state"] == "ended" and not record["started"]
    per_node = record["memory_per"] == "node"
    memory = record["memory_mb"] * (1 if per_node else record["cpus"])
    times = [
        ("SuspendTime", "None"),
        ("SecsPreSuspend", "0"),
        ("LastSchedEval", formats.when(record["start"] or record["submit"], "")),
        ("Scheduler", "Main"),
    ]
    if record["why"] == "preempted":
        times[:0] = [("PreemptEligibleTime", start), ("PreemptTime", end)]
    result = [
        _head(record),
        [
            ("UserId", "%s(%d)" % (record["user"], record["uid"])),
            ("GroupId", "%s(%d)" % (record["group"], record["gid"])),
            ("MCS_label", "N/A"),
        ],
        [
            ("Priority", str(record["priority"])),
            ("Nice", "0"),
            ("Account", record["account"] or "(null)"),
            ("QOS", record["qos"] or "(null)"),
        ],
        [
            ("JobState", words.job_state(record)),
            ("Reason", words.reason(record)),
            ("Dependency", _dependency(record)),
        ],
        [
            ("Requeue", "1" if record["requeue"] else "0"),
            ("Restarts", str(record["restarts"])),
            ("BatchFlag", "1"),
            ("Reboot", "0"),
            ("ExitCode", words.exit_code(status)),
        ],
        *([[("DerivedExitCode", "0:0")]] if details else []),
        [
            ("RunTime", formats.long_duration(formats.elapsed(record, now))),
            ("TimeLimit", formats.long_duration(record["time_limit"])),
            ("TimeMin", "N/A"),
        ],
        [("SubmitTime", formats.when(record["submit"], "")), ("EligibleTime", eligible)],
        [("AccrueTime", accrue)],
        [
            ("StartTime", start),
            ("EndTime", end),
            ("Deadline", formats.when(record["deadline"], "N/A")),
        ],
        times,
        [
            ("Partition", record["partition"]),
            ("AllocNode:Sid", "localhost:%d" % (record["id"] + 4000)),
        ],
        [("ReqNodeList", "(null)"), ("ExcNodeList", "(null)")],
        [("NodeList", record["node"])],
    ]
    if record["node"]:
        result.append([("BatchHost", record["node"])])
    comment = [[("Comment", record["comment"] + " ")]] if record["comment"] else []
    cpus = str(record["cpus"])
    return (
        result
        + [
            [
                ("NumNodes", str(record["nodes"])),
                ("NumCPUs", cpus),
                ("NumTasks", "N/A" if never else str(record["ntasks"])),
                ("CPUs/Task", str(record["cpus_per_task"])),
                ("ReqB:S:C:T", "0:0:*:*"),
            ],
            [
                (
                    "TRES",
                    "cpu=%s,mem=%s,node=%d,billing=%s"
                    % (cpus, formats.memory(memory), record["nodes"], cpus),
                )
            ],
            [("Socks/Node", "*"), ("NtasksPerN:B:S:C", "0:0:*:*"), ("CoreSpec", "*")],
            *(_allocated(record, memory) if details else []),
            [
                ("MinCPUsNode", str(record["cpus_per_task"])),
                (
                    "MinMemoryNode" if per_node else "MinMemoryCPU",
                    formats.memory(record["memory_mb"]),
                ),
                ("MinTmpDiskNode", "0"),
            ],
            [("Features", "(null)"), ("DelayBoot", "00:00:00")],
            [
                ("OverSubscribe", "OK"),
                ("Contiguous", "0"),
                ("Licenses", "(null)"),
                ("Network", "(null)"),
            ],
            [("Command", " ".join([record["command"] or "(null)"] + record["arguments"]))],
            [("WorkDir", record["workdir"])],
        ]
        + comment
        + [
            [("StdErr", record["stderr"])],
            [("StdIn", record["stdin"])],
            [("StdOut", record["stdout"])],
            [("Power", "")],
        ]
    )


def render(record, now, one_line, details=False):
    """The text of one job."""
    rows = [" ".join("%s=%s" % pair for pair in line) for line in lines(record, now, details)]
    if one_line:
        return " ".join(rows) + " \n"
    return "\n   ".join(rows) + "\n   \n\n"


# -- commands that change jobs


def _each(store, keyword, arguments):
    if not arguments:
        raise UsageError("too few arguments for keyword:%s\n" % keyword)
    cli.require_controller(store, "slurm_update error")
    errors = ""
    for text in ",".join(arguments).split(","):
        number, tasks = _target(text)
        problem = _apply(
            store, number, tasks, lambda record, now: _change(store, keyword, record, now)
        )
        if problem:
            errors += "%s for job %s\n" % (problem, text)
            if keyword in ("hold", "uhold", "release"):
                errors += "slurm_suspend error: %s\n" % problem
    if errors:
        raise UsageError(errors)
    return 0


def _target(text):
    try:
        return jobs.parse_id(text.split("=")[-1])
    except ValueError:
        raise UsageError("Invalid job id specified for job %s\n" % text) from None


def _apply(store, number, tasks, change):
    """Change every record the id names, under the lock; returns the first problem, or None."""
    user = jobs.acting_user()
    woken = []
    problem = None
    with store.lock():
        found = [
            record
            for record in jobs.find(store, number, tasks)
            if jobs.visible(store, record, user)
        ]
        if not found:
            return "Invalid job id specified"
        now = store.clock.now()
        for record in found:
            if user[1] not in (0, record["uid"]):
                problem = "Access/permission denied"
                continue
            said = change(record, now)
            if said:
                problem = problem or said
                continue
            store.write(record)
            woken.append(record)
    for record in woken:
        wake_or_spawn(store, record)
    return problem


def wake_or_spawn(store, record):
    """Let the job's runner look again; start one where a waiting job has none."""
    if process.alive(record["runner"]):
        process.wake(record["runner"])
    elif (
        record["state"] == "pending"
        and record["why"] not in transitions.NEVER_STARTS
        and not record["options"].get("no_process")
    ):
        runner.spawn(store, record["id"])


def _change(store, keyword, record, now):
    """Apply one keyword; returns Slurm's objection or None."""
    if keyword in ("requeue", "requeuehold"):
        if record["state"] == "pending":
            return "Job is pending execution"
        if not record["requeue"]:
            return "Requested operation is presently disabled"
        why = "begin_time" if keyword == "requeue" else "requeued_held"
        transitions.requeue(
            record, "requeued", now, float(store.option(record, "requeue_delay")), why
        )
        return None
    if record["state"] == "ended":
        return "Job has already finished"
    if keyword == "release":
        transitions.release(record)
    else:
        admin = keyword == "hold" and jobs.acting_user()[1] == 0
        transitions.hold(record, "held_admin" if admin else "held_user")
    return None


def _update(store, arguments):
    pairs = [(key.lower(), value) for key, _, value in (word.partition("=") for word in arguments)]
    values = dict(pairs)
    if "jobid" not in values and "job" not in values:
        raise UsageError(
            'No valid entity in update command\nInput line must include "NodeName", '
            '"PartitionName", '
            '"Reservation", "JobId", or "SlurmctldDebug"\n'
        )
    text = values.pop("jobid", None) or values.pop("job")
    unknown = set(values) - {"endtime", "timelimit", "comment", "jobname", "name", "requeue"}
    if unknown:
        raise not_simulated("scontrol", "'update %s='" % sorted(unknown)[0])
    _check_times(store, values)
    cli.require_controller(store, "slurm_update error")
    number, tasks = _target(text)
    problem = _apply(store, number, tasks, lambda record, now: _set(record, values, now))
    if problem:
        raise UsageError("%s for job %s\n" % (problem, text))
    return 0


def _check_times(store, values):
    try:
        if "timelimit" in values:
            formats.parse_time_limit(values["timelimit"])
    except ValueError:
        raise UsageError("scontrol: error: Invalid TimeLimit value\n") from None
    try:
        if "endtime" in values:
            parse_when(values["endtime"], store.clock.now())
    except ValueError:
        raise UsageError(
            "Invalid time specification (pos=0): %s\n" % values["endtime"], 0
        ) from None


def _set(record, values, now):
    if record["state"] == "ended":
        return "Job has already finished"
    if "endtime" in values:
        if record["state"] != "running":
            return "Job is not running"
        record["end_by"] = parse_when(values["endtime"], now)
        record["time_limit"] = -(-int(max(record["end_by"] - record["start"], 1)) // 60) * 60
    if "timelimit" in values:
        record["time_limit"] = formats.parse_time_limit(values["timelimit"])
        record["end_by"] = None
    if "comment" in values:
        record["comment"] = values["comment"]
    if "requeue" in values:
        record["requeue"] = values["requeue"] != "0"
    record["name"] = values.get("jobname", values.get("name", record["name"]))
    return None
