"""``sacct``: what the accounting has kept, seen through its lag."""

import sys
import time

from fake_slurm import formats, jobs, words
from fake_slurm.options import UsageError, not_simulated, parse
from fake_slurm.sbatch import parse_when

LONGS = """accounts= allclusters allocations allusers array associations= batch-script brief
clusters= completion constraints= delimiter= duplicates endtime= env-vars federation fields= flags=
format= group= gid= help helpformat jobs= json local long name= ncpus= nnodes= noconvert nodelist=
noheader parsable parsable2 partition= qos= reason= starttime= state= timelimit-max= timelimit-min=
truncate uid= units= usage user= use-local-uid verbose version whole-hetjob=? wckeys=
yaml""".split()
SHORTS = {
    "A": "accounts",
    "L": "allclusters",
    "X": "allocations",
    "a": "allusers",
    "b": "brief",
    "M": "clusters",
    "c": "completion",
    "D": "duplicates",
    "E": "endtime",
    "F": "flags",
    "o": "format",
    "g": "group",
    "h": "help",
    "e": "helpformat",
    "j": "jobs",
    "l": "long",
    "N": "nodelist",
    "n": "noheader",
    "p": "parsable",
    "P": "parsable2",
    "r": "partition",
    "q": "qos",
    "S": "starttime",
    "s": "state",
    "T": "truncate",
    "u": "user",
    "v": "verbose",
    "V": "version",
}
NOT_SIMULATED = (
    "json",
    "yaml",
    "long",
    "completion",
    "batch-script",
    "env-vars",
    "help",
    "usage",
    "nodelist",
    "brief",
    "helpformat",
)
DEFAULT_FORMAT = "jobid,jobname,partition,account,alloccpus,state,exitcode"
DATABASE_DOWN = (
    "sacct: error: slurm_persist_conn_open_without_init: failed to open persistent connection to "
    "host:127.0.0.1:26819: Connection refused\nsacct: error: Sending PersistInit msg: "
    "Connection refused\n"
    "sacct: error: Problem talking to the database: Connection refused\n"
)


def main(store, argv):
    """Print the rows; returns the exit code."""
    given, others = parse("sacct", argv, LONGS, SHORTS, hint=False)
    options = {{"fields": "format", "uid": "user"}.get(name, name): value for name, value in given}
    for name in NOT_SIMULATED:
        if name in options:
            raise not_simulated("sacct", "--" + name)
    if others:
        raise UsageError("sacct: error: Unknown arguments:\nsacct: error:  %s\n" % " ".join(others))
    ids = _ids(options.get("jobs"))
    columns = _columns(options.get("format", DEFAULT_FORMAT))
    _require_accounting(store)
    if "clusters" in options and store.settings["cluster"] not in options["clusters"].split(","):
        return _print(options, columns, [], 0)
    rows = _rows(store, options, ids)
    return _print(options, columns, rows, store.clock.now())


def _require_accounting(store):
    mode = store.settings["accounting"]
    if mode == "off":
        raise UsageError("Slurm accounting storage is disabled\n")
    if mode == "down":
        raise UsageError(DATABASE_DOWN)


def _ids(text):
    """None: all; else [(id, tasks, step or None)]."""
    if text is None:
        return None
    found = []
    for word in filter(None, text.split(",")):
        job, dot, step = word.partition(".")
        try:
            found.append(jobs.parse_id(job) + (step if dot else None,))
        except ValueError:
            raise UsageError("sacct: fatal: Bad job/step specified: %s\n" % word) from None
    return found


# -- which rows


def _rows(store, options, ids):
    """The rows to print, as records; those of steps carry ``step``."""
    records, steps = _select(store, options, ids)
    views = []
    for record in records:
        views.append(_views(store, record))
    if "duplicates" not in options:
        views = [shown[-1:] for shown in views]
    flat = [view for shown in views for view in shown if _in_window(store, options, ids, view)]
    merged = jobs.merge_arrays(flat)
    merged = [one for one in merged if "tasks" not in one] + [
        one for one in merged if "tasks" in one
    ]
    states = _states(options.get("state"))
    rows = []
    for view in merged:
        if states and words.accounting_state(view).split()[0] not in states:
            continue
        if steps.get(view["id"], "") in ("", None):
            rows.append(view)
        if "allocations" not in options and view["batch_row"]:
            rows.append(dict(view, step=True))
    return rows


def _select(store, options, ids):
    """Return (records, {id: wanted step})."""
    if ids is None:
        user = jobs.acting_user()
        names = options["user"].split(",") if "user" in options else None
        everybody = "allusers" in options or user[1] == 0
        return [
            record
            for record in store.all()
            if (
                record["user"] in names or str(record["uid"]) in names
                if names
                else everybody or record["uid"] == user[1]
            )
        ], {}
    found = {}
    steps = {}
    for number, tasks, step in ids:
        for record in jobs.find(store, number, tasks):
            found[record["id"]] = record
            steps[record["id"]] = step
    return [found[number] for number in sorted(found)], steps


def _in_window(store, options, ids, view):
    """True for jobs asked for by id, and for those that were started in the window (default: since
    midnight)."""
    if ids is not None and "starttime" not in options:
        return True
    now = store.clock.now()
    try:
        since = (
            parse_when(options["starttime"], now)
            if "starttime" in options
            else parse_when("00:00", now)
        )
        until = parse_when(options["endtime"], now) if "endtime" in options else now
    except ValueError:
        raise UsageError("sacct: error: Invalid time specification\n") from None
    if ids is None and not view["started"] and view["state"] != "running":
        return False
    begin = view["start"] if view["start"] is not None else view["submit"]
    return begin <= until + 1 and (view["end"] is None or view["end"] >= since - 1)


def _states(text):
    if text is None:
        return None
    compact = {short: long for long, short in words.COMPACT.items()}
    return {compact.get(word.upper(), word.upper()) for word in text.split(",")}


def _views(store, record):
    """The runs of a job as the accounting shows them now: records, oldest first; none if it lags
    that much."""
    if record["erased"]:
        return []
    views = [
        dict(record, batch_row=run["batch"], state="ended", started=True, **run)
        for run in record["past"]
    ]
    lag_text = store.option(record, "accounting_lag")
    lag = float(lag_text or 0)
    now = time.time()
    if record["state"] == "pending" and record["requeue_real"] is not None:
        if (
            now >= record["requeue_real"] + float(store.option(record, "accounting_requeue_lag"))
            or not views
        ):
            views.append(dict(record, batch_row=None))
        return views
    if record["state"] == "ended" and lag and now < record["end_real"] + lag:
        return views + _lagging(store, record)
    batch = record["batch"]
    if record["state"] == "running" or (record["state"] == "ended" and record["session"]):
        batch = {"why": "running", "exit": 0, "start": record["start"], "end": None, "rss_kb": 0}
        if record["state"] == "ended":  # decided, and the script not yet gone
            batch.update(why="unfinished", end=record["end"])
    views.append(dict(record, batch_row=batch))
    return views


def _lagging(store, record):
    """What is shown of an ended job while the accounting lags behind."""
    shows = store.option(record, "accounting_lag_shows")
    if shows == "absent":
        return []
    if shows == "pending":
        return [
            dict(
                record,
                state="pending",
                why="",
                name="allocation",
                end=None,
                time_limit="",
                memory_mb=None,
                batch_row=None,
            )
        ]
    batch = {"why": "running", "exit": 0, "start": record["start"], "end": None, "rss_kb": 0}
    return [dict(record, state="running", why="", end=None, batch_row=batch)]


# -- columns: name -> (heading, width, function of the row and now); the row of a step has "step"


def _suffix(row):
    return ".batch" if "step" in row else ""


def _state(row, now):
    if "step" not in row:
        return words.accounting_state(row)
    return (
        "RUNNING" if row["batch_row"]["why"] == "running" else words.batch_state(row["batch_row"])
    )


def _exit(row, now):
    if "step" in row:
        return words.accounting_exit_code(row["batch_row"]["exit"])
    return words.accounting_exit_code(row["ended_exit"] if row["state"] == "ended" else 0)


def _start(row, now):
    if "step" in row:
        return formats.when(row["batch_row"]["start"], "Unknown")
    if row["state"] == "ended" and not row["started"]:
        return "None"
    return formats.when(row["start"], "Unknown")


def _end(row, now):
    return formats.when(row["batch_row"]["end"] if "step" in row else row["end"], "Unknown")


def _elapsed(row, now):
    source = row["batch_row"] if "step" in row else row
    if "step" not in row and row["state"] == "ended" and not row["started"]:
        return 0
    return formats.elapsed(source, now)


def _limit(row, now):
    if row["time_limit"] == "":
        return ""
    if row["time_limit"] is None and not row["started"] and row["state"] != "running":
        return "Partition_Limit"
    return formats.long_duration(row["time_limit"])


def _limit_raw(row, now):
    text = _limit(row, now)
    return text if text in ("", "UNLIMITED", "Partition_Limit") else str(row["time_limit"] // 60)


def _memory(row, now):
    return (
        "16?"
        if row["memory_mb"] is None
        else formats.memory(row["memory_mb"] * (1 if row["memory_per"] == "node" else row["cpus"]))
    )


def _reason(row, now):
    why = row["why"] if row["state"] == "pending" else row["waited_for"]
    return words.PENDING_REASON.get(why, "None").replace("DependencyNeverSatisfied", "Dependency")


def _job(read):
    """A column that steps leave empty."""
    return lambda row, now: "" if "step" in row else read(row, now)


def _both(read):
    return lambda row, now: str(read(row, now))


def _text(name):
    return lambda row, now: "" if row[name] is None else str(row[name])


FIELDS = {
    "jobid": ("JobID", -12, lambda r, now: jobs.job_id_text(r) + _suffix(r)),
    "jobidraw": ("JobIDRaw", -12, lambda r, now: str(r["id"]) + _suffix(r)),
    "jobname": ("JobName", 10, lambda r, now: "batch" if "step" in r else r["name"]),
    "state": ("State", 10, _state),
    "exitcode": ("ExitCode", 8, _exit),
    "derivedexitcode": ("DerivedExitCode", 15, _job(lambda r, now: "0:0")),
    "reason": ("Reason", 22, _job(_reason)),
    "comment": ("Comment", 14, _job(_text("comment"))),
    "systemcomment": ("SystemComment", 14, _job(lambda r, now: "")),
    "admincomment": ("AdminComment", 14, _job(lambda r, now: "")),
    "submit": (
        "Submit",
        19,
        lambda r, now: _start(r, now) if "step" in r else formats.when(r["submit"], "Unknown"),
    ),
    "eligible": ("Eligible", 19, lambda r, now: formats.when(r["submit"], "Unknown")),
    "start": ("Start", 19, _start),
    "end": ("End", 19, _end),
    "elapsed": ("Elapsed", 10, lambda r, now: formats.long_duration(_elapsed(r, now))),
    "elapsedraw": ("ElapsedRaw", 10, _both(_elapsed)),
    "timelimit": ("Timelimit", 10, _job(_limit)),
    "timelimitraw": ("TimelimitRaw", 12, _job(_limit_raw)),
    "reqmem": ("ReqMem", 10, _job(_memory)),
    "maxrss": (
        "MaxRSS",
        10,
        lambda r, now: (
            "%dK" % r["batch_row"]["rss_kb"] if "step" in r and r["batch_row"]["rss_kb"] else ""
        ),
    ),
    "nodelist": ("NodeList", 15, lambda r, now: r["node"] or "None assigned"),
    "user": ("User", 9, _job(_text("user"))),
    "uid": ("UID", 6, _job(_text("uid"))),
    "group": ("Group", 9, _job(_text("group"))),
    "partition": ("Partition", 10, _job(_text("partition"))),
    "account": ("Account", 10, _text("account")),
    "cluster": ("Cluster", 10, _text("cluster")),
    "qos": ("QOS", 10, _job(_text("qos"))),
    "alloccpus": ("AllocCPUS", 10, _text("cpus")),
    "ncpus": ("NCPUS", 10, _text("cpus")),
    "reqcpus": ("ReqCPUS", 8, _text("cpus")),
    "nnodes": ("NNodes", 8, _text("nodes")),
    "workdir": ("WorkDir", 20, _job(_text("workdir"))),
}


def _columns(text):
    """[(heading, width, read)] of ``-o``; ``%-32`` after a name sets the width. Raises
    UsageError."""
    columns = []
    for item in filter(None, text.split(",")):
        name, percent, width = item.partition("%")
        if name.lower() not in FIELDS:
            raise UsageError('sacct: error: Invalid field requested: "%s"\n' % name)
        heading, usual, read = FIELDS[name.lower()]
        try:
            columns.append((heading, int(width) if percent else usual, read))
        except ValueError:
            raise UsageError('sacct: error: Invalid field requested: "%s"\n' % item) from None
    return columns


def _print(options, columns, rows, now):
    out = [[read(row, now) for _, _, read in columns] for row in rows]
    parsable = "parsable" in options or "parsable2" in options
    delimiter = options.get("delimiter", "|")
    lines = []
    if parsable:
        end = delimiter if "parsable" in options else ""
        if "noheader" not in options:
            lines.append(delimiter.join(heading for heading, _, _ in columns) + end)
        lines += [delimiter.join(values) + end for values in out]
    else:
        if "noheader" not in options:
            lines.append(
                "".join(_cell(heading[: abs(width)], width) for heading, width, _ in columns)
            )
            lines.append("".join("-" * abs(width) + " " for _, width, _ in columns))
        lines += [
            "".join(_cell(value, column[1]) for value, column in zip(values, columns))
            for values in out
        ]
    sys.stdout.write("".join(line + "\n" for line in lines))
    return 0


def _cell(text, width):
    size = abs(width)
    if len(text) > size:
        text = text[: size - 1] + "+"
    return (text.ljust(size) if width < 0 else text.rjust(size)) + " "
