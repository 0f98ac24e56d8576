"""``squeue``: the controller's jobs as a table of chosen columns."""

import sys

from fake_drm import transitions
from fake_slurm import cli, formats, jobs, words
from fake_slurm.options import UsageError, not_simulated, parse

LONGS = """account= all array array-unique clusters= federation Format= format= help hide iterate=
jobs= job= json licenses= local long me name= noconvert nodelist= noheader partition= priority qos=
reservation= sibling sort= start states= steps= usage user= users= verbose version yaml""".split()
SHORTS = {
    "A": "account",
    "a": "all",
    "r": "array",
    "M": "clusters",
    "O": "Format",
    "o": "format",
    "i": "iterate",
    "j": "jobs",
    "l": "long",
    "n": "name",
    "w": "nodelist",
    "h": "noheader",
    "p": "partition",
    "P": "priority",
    "q": "qos",
    "R": "reservation",
    "S": "sort",
    "s": "steps",
    "t": "states",
    "u": "user",
    "v": "verbose",
    "V": "version",
    "L": "licenses",
}
NOT_SIMULATED = (
    "json",
    "yaml",
    "iterate",
    "steps",
    "start",
    "long",
    "licenses",
    "reservation",
    "sibling",
    "help",
    "usage",
    "nodelist",
)
DEFAULT_FORMAT = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
NO_JOB = "slurm_load_jobs error: Invalid job id specified\n"


def main(store, argv):
    """Print the table; returns the exit code."""
    given, others = parse("squeue", argv, LONGS, SHORTS)
    options = {{"job": "jobs", "users": "user"}.get(name, name): value for name, value in given}
    for name in NOT_SIMULATED:
        if name in options:
            raise not_simulated("squeue", "--" + name)
    if others:
        raise UsageError("squeue: error: Unrecognized option: %s\n" % others[0])
    columns, warnings = _columns(options)
    states = _states(options.get("states"))
    ids = _ids(options.get("jobs"))
    users = _users(options)
    for name in sorted(users or ()):
        if "me" not in options and not jobs.user_exists(store, name):
            warnings += "squeue: error: Invalid user: %s\n\n" % name
    if "clusters" in options:
        cli.require_cluster(store, "squeue", options["clusters"])
    cli.require_controller(store, "slurm_load_jobs error")
    user = jobs.acting_user()
    records = _load(store, ids, user)
    records = [record for record in records if _wanted(record, options, users)]
    if "array" not in options:
        records = jobs.merge_arrays(records)
    rows = [(record, words.job_state(record)) for record in records]
    rows = [
        row
        for row in rows
        if (row[1] in words.LIVE if states is None else not states or row[1] in states)
    ]
    rows.sort(key=_order)
    sys.stderr.write(warnings)
    out = []
    if "noheader" not in options:
        if "clusters" in options:
            out.append("CLUSTER: %s" % store.settings["cluster"])
        out.append("".join(column(None, None) for column in columns))
    now = store.clock.now()
    for record, state in rows:
        record["shown_state"] = state
        out.append("".join(column(record, now) for column in columns))
    sys.stdout.write("".join(line + "\n" for line in out))
    return 0


def _states(text):
    """None: the default (jobs not over); an empty set: all; else the wanted states."""
    if text is None:
        return None
    if text.lower() == "all":
        return set()
    compact = {short: long for long, short in words.COMPACT.items()}
    wanted = set()
    for word in text.split(","):
        name = compact.get(word.upper(), word.upper())
        if name not in words.COMPACT:
            raise UsageError(
                "squeue: error: Invalid job state specified: %s\nsqueue: error: Valid job "
                "states include: "
                "%s\n\n" % (word, words.VALID_STATES)
            )
        wanted.add(name)
    return wanted


def _ids(text):
    if text is None:
        return None
    found = []
    for word in text.split(","):
        try:
            found.append(jobs.parse_id(word))
        except ValueError:
            raise UsageError("squeue: error: Invalid job id: %s\n" % word) from None
    return found


def _users(options):
    """None: everybody; else a set of names and uids as text."""
    if "me" in options:
        user = jobs.acting_user()
        return {user[0], str(user[1])}
    if "user" not in options:
        return None
    return set(options["user"].split(","))


def _load(store, ids, user):
    """The visible records of the wanted ids, or all; one single unknown id is an error, several
    are not."""
    if ids is None:
        return [record for record in store.all() if jobs.visible(store, record, user)]
    records = {}
    for number, tasks in ids:
        found = [
            record
            for record in jobs.find(store, number, tasks)
            if jobs.visible(store, record, user)
        ]
        if not found and len(ids) == 1 and tasks != []:
            raise UsageError(NO_JOB)
        records.update((record["id"], record) for record in found)
    return list(records.values())


def _wanted(record, options, users):
    if users is not None and record["user"] not in users and str(record["uid"]) not in users:
        return False
    for name in ("account", "name", "partition", "qos"):
        if name in options and record[name] not in options[name].split(","):
            return False
    return True


def _order(row):
    """Sort key: squeue's default, partition, compact state, falling priority; then an array's
    tasks in a row."""
    record, state = row
    array = record["array_id"] if record["array_id"] is not None else record["id"]
    return (
        record["partition"],
        words.COMPACT.get(state, state),
        -record["priority"],
        array,
        record["task_id"] or 0,
    )


# -- columns: name -> (heading, function of record and now)


def _start(record, now):
    if record["state"] == "pending":
        return formats.when(record["begin"], "N/A")
    return formats.when(record["start"], "N/A")


def _end(record, now):
    if record["state"] == "ended":
        return formats.when(record["end"], "N/A")
    start = record["start"] if record["state"] == "running" else record["begin"]
    if start is None:
        return "N/A"
    if record["end_by"] is not None:
        return formats.when(record["end_by"], "")
    return (
        "NONE" if record["time_limit"] is None else formats.when(start + record["time_limit"], "")
    )


def _nodes_or_reason(record, now):
    if record["shown_state"] in (
        "PENDING",
        "FAILED",
        "TIMEOUT",
        "OUT_OF_MEMORY",
        "DEADLINE",
        "SPECIAL_EXIT",
    ):
        return "(%s)" % words.squeue_reason(record)
    return record["node"]


def _time_left(record, now):
    if record["time_limit"] is None:
        return "UNLIMITED"
    return formats.short_duration(record["time_limit"] - formats.elapsed(record, now))


def _text(name, missing=""):
    return lambda record, now: missing if record[name] in (None, "") else str(record[name])


FIELDS = {
    "arrayjobid": (
        "ARRAY_JOB_ID",
        lambda r, now: str(r["array_id"] if r["array_id"] is not None else r["id"]),
    ),
    "arraytaskid": ("ARRAY_TASK_ID", lambda r, now: jobs.task_text(r) or "N/A"),
    "jobid": ("JOBID", lambda r, now: str(r["id"])),
    "jobarrayid": ("JOBID", lambda r, now: jobs.job_id_text(r)),
    "state": ("STATE", lambda r, now: r["shown_state"]),
    "statecompact": ("ST", lambda r, now: words.COMPACT.get(r["shown_state"], "??")),
    "exit_code": ("EXIT_CODE", lambda r, now: str(_shown_status(r))),
    "restartcnt": ("RESTART_COUNT", lambda r, now: str(r["restarts"])),
    "submittime": ("SUBMIT_TIME", lambda r, now: formats.when(r["submit"], "N/A")),
    "starttime": ("START_TIME", _start),
    "endtime": ("END_TIME", _end),
    "timeused": ("TIME", lambda r, now: formats.short_duration(formats.elapsed(r, now))),
    "timelimit": ("TIME_LIMIT", lambda r, now: formats.short_duration(r["time_limit"])),
    "timeleft": ("TIME_LEFT", _time_left),
    "minmemory": ("MIN_MEMORY", lambda r, now: formats.memory(r["memory_mb"])),
    "nodelist": ("NODELIST", _text("node")),
    "reasonlist": ("NODELIST(REASON)", _nodes_or_reason),
    "reason": ("REASON", lambda r, now: words.squeue_reason(r)),
    "hetjobid": ("HET_JOB_ID", lambda r, now: "N/A"),
    "hetjoboffset": ("HET_JOB_OFFSET", lambda r, now: "N/A"),
    "name": ("NAME", _text("name")),
    "username": ("USER", _text("user")),
    "userid": ("UID", _text("uid")),
    "groupname": ("GROUP", _text("group")),
    "numcpus": ("CPUS", _text("cpus")),
    "numnodes": ("NODES", _text("nodes")),
    "numtasks": ("TASKS", _text("ntasks")),
    "partition": ("PARTITION", _text("partition")),
    "account": ("ACCOUNT", _text("account", "(null)")),
    "qos": ("QOS", _text("qos", "(null)")),
    "comment": ("COMMENT", _text("comment", "(null)")),
    "command": ("COMMAND", _text("command", "(null)")),
    "workdir": ("WORK_DIR", _text("workdir")),
    "stdout": ("STDOUT", _text("stdout")),
    "stderr": ("STDERR", _text("stderr")),
    "dependency": ("DEPENDENCY", _text("dependency", "(null)")),
    "prioritylong": ("PRIORITY", _text("priority")),
    "cluster": ("CLUSTER", _text("cluster")),
}
LETTERS = {
    "i": "jobarrayid",
    "F": "arrayjobid",
    "K": "arraytaskid",
    "A": "jobid",
    "T": "state",
    "t": "statecompact",
    "r": "reason",
    "V": "submittime",
    "S": "starttime",
    "e": "endtime",
    "M": "timeused",
    "l": "timelimit",
    "m": "minmemory",
    "N": "nodelist",
    "j": "name",
    "k": "comment",
    "u": "username",
    "U": "userid",
    "D": "numnodes",
    "C": "numcpus",
    "R": "reasonlist",
    "L": "timeleft",
    "P": "partition",
    "a": "account",
    "q": "qos",
    "g": "groupname",
    "o": "command",
    "Z": "workdir",
    "E": "dependency",
    "Q": "prioritylong",
}


def _shown_status(record):
    """0 while the job's processes are not gone yet, as the real one."""
    return (
        0 if transitions.is_completing(record) and record["session"] else words.wait_status(record)
    )


def _column(name, width, right, suffix):
    """A function that renders the heading (record None) or a record. Width 0: as long as it is."""
    heading, read = FIELDS[name]

    def render(record, now):
        text = heading if record is None else read(record, now)
        if width:
            text = (text.rjust(width) if right else text.ljust(width))[:width]
        return text + suffix

    return render


def _literal(text):
    return lambda record, now: text


def _columns(options):
    """Return (columns, text for stderr)."""
    if "Format" in options:
        return _long_format(options["Format"])
    return _short_format(options.get("format", DEFAULT_FORMAT))


def _long_format(text):
    """``field[:[.][width]suffix],...``"""
    columns = []
    warnings = ""
    for item in text.split(","):
        name, colon, rest = item.partition(":")
        width, right, suffix = 20, False, ""
        if colon:
            right = rest.startswith(".")
            rest = rest[1:] if right else rest
            digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
            width, suffix = int(digits or 0), rest[len(digits):]
        if name.lower() not in FIELDS:
            warnings += "squeue: error: Invalid job format specification: %s\n" % name
            continue
        columns.append(_column(name.lower(), width, right, suffix))
    return columns, warnings


def _short_format(text):
    """``%[[.]width]letter`` and text between."""
    columns = []
    warnings = ""
    parts = text.split("%")
    columns.append(_literal(parts[0]))
    for part in parts[1:]:
        right = part.startswith(".")
        rest = part[1:] if right else part
        digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
        letter = rest[len(digits):][:1]
        suffix = rest[len(digits) + 1:]
        if letter in LETTERS:
            columns.append(_column(LETTERS[letter], int(digits or 0), right, suffix))
        else:
            warnings += "squeue: error: Invalid job format specification: %s\n" % letter
            columns.append(_literal("%" + part))
    return columns, warnings
