"""``qacct -j``: the accounting file, which knows a job some time after qstat has dropped it."""

import sys
import time

from fake_drm import submission
from fake_drm.arguments import parse, refuse, task_list
from fake_drm.cli import CommandError, not_simulated
from fake_gridengine import words

ZEROS = (
    "".join("ru_%-9s 0.000B\n" % name for name in ("ixrss", "ismrss", "idrss", "isrss"))
    + "".join(
        "ru_%-9s %-20s\n" % (name, "0")
        for name in (
            "minflt majflt nswap inblock oublock msgsnd msgrcv nsignals nvcsw nivcsw".split()
        )
    )
)


def main(store, argv):
    """Show; returns the exit code. It is a plain file: no qmaster is needed."""
    job, argv = _job_of(argv)
    usage = refuse("error: unknown option %s\n", 1)
    given, _ = parse(argv, {"o", "d", "b", "e", "t", "P", "q", "h", "f", "A"}, set(), usage, False)
    options = dict(given)
    if job is None:
        raise not_simulated("qacct", "a summary (no -j)")
    entries = _entries(store)
    if store.settings["accounting"] != "on" or not _has_begun(store):
        sys.stdout.write("no jobs running since startup\n")
        sys.stdout.flush()
        text = "/var/lib/gridengine/%s/common/accounting: No such file or directory\n"
        raise CommandError(text % store.settings["cluster"], 1)
    if "o" in options:
        entries = [one for one in entries if one[0]["user"] == options["o"]]
    if "d" in options:
        since = store.clock.now() - 86400 * float(options["d"])
        entries = [one for one in entries if one[1]["start"] and one[1]["start"] >= since]
    if job:
        entries = [one for one in entries if _is_named(one[0], job)]
        if not entries:
            kind = "id" if job.isdigit() else "name"
            raise CommandError("error: job %s %s not found\n" % (kind, job), 1)
    if "t" in options:
        wanted = task_list(options["t"])[0]
        entries = [one for one in entries if one[0]["task_id"] in wanted]
        if not entries:
            text = "error: Job-array tasks %s.%d-%d:1 not found\n"
            raise CommandError(text % (job, wanted[0], wanted[-1]), 1)
    for record, entry in entries:
        sys.stdout.write(_text(store, record, entry))
    if not job:
        _print_total(entries, options.get("o"))
    return 0


def _has_begun(store):
    return any(one["extra"].get("accounting") for one in store.all())


def _print_total(entries, owner):
    """What follows the records of a -j without an id: a table, in which no line is a field."""
    columns = "WALLCLOCK UTIME STIME CPU MEMORY IO IOW".split()
    print(_total_line("OWNER" if owner else "", columns, owner))
    print("=" * len(_total_line("", columns, owner)))
    if not entries:
        return
    wall = sum(int(one["end"]) - int(one["start"]) for _, one in entries if one["start"])
    cpu = "%.3f" % sum(one["cpu"] for _, one in entries)
    cells = [str(wall), cpu, "0.000", cpu, "0.000", "0.000", "0.000"]
    print(_total_line(owner or "", cells, owner))


def _total_line(first, cells, owner):
    widths = (14 if owner else 13, 14, 14, 14, 19, 19, 19)
    start = first.ljust(max(5, len(owner))) if owner else ""
    return start + "".join(cell.rjust(width) for cell, width in zip(cells, widths))


def _job_of(argv):
    """What -j names ("" for all jobs, None without -j), and the other arguments."""
    if "-j" not in argv:
        return None, argv
    at = argv.index("-j")
    named = argv[at + 1: at + 2]
    if named and not named[0].startswith("-"):
        return named[0], argv[:at] + argv[at + 2:]
    return "", argv[:at] + argv[at + 1:]


def _is_named(record, job):
    return job in (str(submission.base_id(record)), record["name"])


def _entries(store):
    """(record, accounting entry) of all that the file has by now, oldest first."""
    if store.settings["accounting"] != "on":
        return []
    found = []
    for record in store.all():
        lag = float(store.option(record, "accounting_lag"))
        for entry in record["extra"].get("accounting", ()):
            if time.time() >= entry["at"] + lag:
                found.append((record, entry))
    found.sort(key=lambda one: one[1]["at"])
    return found


def _text(store, record, entry):
    wall = 0 if entry["start"] is None else int(entry["end"]) - int(entry["start"])
    cpu = "%.3fs" % entry["cpu"]
    rows = [
        ("qname", record["partition"].ljust(20)),
        ("hostname", store.settings["node"].ljust(20)),
        ("group", record["group"].ljust(20)),
        ("owner", record["user"].ljust(20)),
        ("project", record["extra"]["project"].ljust(20)),
        ("department", "defaultdepartment".ljust(20)),
        ("jobname", record["name"].ljust(20)),
        ("jobnumber", str(submission.base_id(record)).ljust(20)),
        ("taskid", str(record["task_id"] or "undefined")),
        ("account", record["account"].ljust(20)),
        ("priority", "0".ljust(20)),
        ("qsub_time", words.ctime(entry["qsub"])),
        ("start_time", words.ctime(entry["start"])),
        ("end_time", words.ctime(entry["end"])),
        ("granted_pe", record["extra"]["pe"].ljust(20)),
        ("slots", str(record["cpus"]).ljust(20)),
        ("failed", words.failed_text(entry["failed"])),
        ("exit_status", words.exit_status_text(entry["exit_status"])),
        ("ru_wallclock", "%ds" % wall),
        ("ru_utime", cpu),
        ("ru_stime", "0.000s"),
        # kilobytes, printed as if they were bytes
        ("ru_maxrss", words.size(entry["rss_kb"])),
    ]
    text = "=" * 62 + "\n" + "".join("%-12s %s\n" % row for row in rows) + ZEROS
    rows = [
        ("cpu", cpu),
        ("mem", words.size(0.0, "Bs")),
        ("io", words.size(0.0)),
        ("iow", "0.000s"),
        ("maxvmem", words.size(1024.0 * entry["rss_kb"])),
        ("arid", "undefined"),
        ("ar_sub_time", "undefined"),
        ("category", record["extra"]["category"]),
    ]
    return text + "".join("%-12s %s\n" % row for row in rows)
