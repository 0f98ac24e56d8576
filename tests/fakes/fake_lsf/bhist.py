"""``bhist``: the history of jobs, also of those that bjobs has forgotten."""

import sys

from fake_drm.arguments import parse_anywhere, refuse
from fake_drm.submission import base_id
from fake_lsf import jobs, words

WITH_VALUE = set("n u q m J P S C D N T f app".split())
FLAGS = set("l a d e p r s w b t UF V h".split())
USAGE = refuse("%s: Illegal option.\nUsage: bhist [options] [job_ID ...]\n", 255)
WIDTH, INDENT = 79, " " * 21


def main(store, argv):
    """Show the history; returns the exit code."""
    given, ids = parse_anywhere(argv, WITH_VALUE, FLAGS, USAGE, joined=False)
    options = dict(given)
    # It reads mbatchd's files, yet asks the LIM where they are.
    jobs.require_lsf(store)
    records = _select(store, options, [one for one in ids if one != "0"])
    if not records:
        sys.stderr.write("No matching job found\n")
        return 255
    if "l" in options:
        for number, record in enumerate(records):
            if number:
                print("-" * 78)
            _print_long(store, record)
        return 0
    print("Summary of time in seconds spent in various states:")
    print("JOBID   USER    JOB_NAME  PEND    PSUSP   RUN     USUSP   SSUSP   UNKWN   TOTAL")
    for record in records:
        row = (base_id(record), record["user"][:7], words.name_of(record)[:9])
        print("%-7s %-7s %-9s " % row + "".join("%-8d" % one for one in _times(store, record)))
    return 0


def _select(store, options, ids):
    if store.settings["accounting"] == "off":
        return []
    if ids:
        records = []
        for one in ids:
            records += [record for record in jobs.find(store, one) if record not in records]
        return records
    everyone = options.get("u") == "all"
    return [
        record
        for record in store.all()
        if (everyone or jobs.visible(record))
        and ("a" in options or not words.is_ended(record) or "l" in options)
    ]


def _times(store, record):
    """Seconds in PEND, PSUSP, RUN, USUSP, SSUSP, UNKWN, and in all."""
    now = record["end"] if record["end"] is not None else store.clock.now()
    began = record["start"] is not None and (record["state"] != "ended" or record["started"])
    pending = int((record["start"] if began else now) - record["submit"])
    ran = words.run_seconds(record, now)
    stood = int(record["paused_s"])
    times = [pending, 0, ran, stood, 0, 0]
    return times + [sum(times)]


def print_wrapped(text):
    """Print a line as LSF does: cut after 79 columns, also inside words, the rest indented."""
    print(text[:WIDTH])
    rest = text[WIDTH:]
    step = WIDTH - len(INDENT)
    while rest:
        print(INDENT + rest[:step])
        rest = rest[step:]


def _print_long(store, record):
    print()
    index = "" if record["array_id"] is None else "[%d]" % record["task_id"]
    print_wrapped(
        "Job <%d%s>, Job Name <%s>, User <%s>, Project <%s>, Command <%s>"
        % (
            base_id(record),
            index,
            words.name_of(record),
            record["user"],
            record["account"],
            record["command"].replace("\n", ";"),
        )
    )
    for when, said in events(store, record):
        print_wrapped("%s: %s;" % (words.long_time(when), said))
    until = record["end"] if record["end"] is not None else store.clock.now()
    print("\nSummary of time in seconds spent in various states by  %s" % words.long_time(until))
    print("  PEND     PSUSP    RUN      USUSP    SSUSP    UNKWN    TOTAL")
    print("  " + "".join("%-9d" % one for one in _times(store, record)))


def events(store, record):
    """(simulated time, text without its end) of all that happened to a job."""
    host = record["extra"].get("from_host", store.settings["node"])
    output = record["extra"].get("output_file")
    first = record["past"][0]["submit"] if record["past"] else record["submit"]
    lines = [
        (
            first,
            "Submitted from host <%s>, to Queue <%s>, CWD <%s>%s"
            % (
                host,
                record["partition"],
                record["workdir"],
                ", Output File <%s>" % output if output else "",
            ),
        )
    ]
    for run in record["past"]:
        if run["why"] in ("requeued", "node_failure", "preempted") and run["start"] is not None:
            lines += _began(store, record, run["start"])
            lines.append((run["end"], "Pending: Requeued job is waiting for rescheduling"))
    if record["start"] is not None and (record["state"] != "ended" or record["started"]):
        lines += _began(store, record, record["start"])
    kinds = {"suspended": "Suspended by %s", "resumed": "Running", "killed": None, "signal": None}
    for when, what, who in record["log"]:
        if what == "suspended":
            by = "the system" if who == "system" else "the user or administrator"
            lines.append((when, kinds[what] % by))
        elif what == "resumed":
            lines.append((when, "Running"))
        elif what == "killed":
            said = "Signal <%s> requested by user or administrator <%s>"
            lines.append((when, said % (who.split()[0], who.split()[1])))
    if words.is_ended(record):
        lines += _ended(record)
    return lines


def _began(store, record, when):
    node = store.settings["node"]
    return [
        (
            when,
            "Dispatched %d Task(s) on Host(s) <%s>, Allocated %d Slot(s) on Host(s) <%s>, "
            "Effective RES_REQ <select[type == local] order[r15s:pg] >"
            % (record["cpus"], node, record["cpus"], node),
        ),
        (when, "Starting (Pid %d)" % (1000 + record["id"])),
    ]


def _ended(record):
    when = record["end"]
    used = "The CPU time used is %.1f seconds" % record["cpu_s"]
    word = words.termination(record)
    if words.stat(record) == "DONE":
        return [
            (when, "Done successfully. " + used),
            (when, "Post job process done successfully"),
        ]
    lines = []
    if words.exit_code(record) is not None:
        number = words.signal_of(record)
        how = "by signal %d" % number if number else "with exit code %d" % words.exit_code(record)
        lines.append((when, "Exited %s. %s" % (how, used)))
    elif word:
        lines.append((when, "Exited"))
    lines.append((when, "Completed <exit>" + ("; " + words.reason_line(word) if word else "")))
    return lines
