"""``bacct -l``: the accounting records of ended jobs."""

import sys

from fake_drm.arguments import parse_anywhere, refuse
from fake_drm.submission import base_id
from fake_lsf import bhist, jobs, words

WITH_VALUE = set("u q m P C S D f app N".split())
FLAGS = set("l a d e b w x UF V h E".split())
USAGE = refuse("%s: Illegal option.\nUsage: bacct [options] [job_ID ...]\n", 255)
HEAD = """
Accounting information about jobs that are:
  - submitted by %s.
  - accounted on all projects.
  - completed normally or exited
  - executed on all hosts.
  - submitted to all queues.
  - accounted on all service classes.
------------------------------------------------------------------------------
"""


def main(store, argv):
    """Show; returns the exit code."""
    given, ids = parse_anywhere(argv, WITH_VALUE, FLAGS, USAGE, joined=False)
    options = dict(given)
    jobs.require_lsf(store)
    records = []
    for one in ids:
        records += [record for record in jobs.find(store, one) if words.is_ended(record)]
    if not ids:
        records = [one for one in store.all() if words.is_ended(one) and jobs.visible(one)]
    if store.settings["accounting"] == "off":
        records = []
    if ids and not records:
        sys.stderr.write("No matching job found\n")
        return 255
    sys.stdout.write(HEAD % ("all users" if ids else "users %s" % options.get("u", "")).strip())
    for record in records if "l" in options else ():
        _print_record(store, record)
    done = sum(words.stat(record) == "DONE" for record in records)
    print("\nSUMMARY:      ( time unit: second ) ")
    print(" Total number of done jobs: %7d      Total number of exited jobs: %5d"
          % (done, len(records) - done))
    return 0


def _print_record(store, record):
    index = "" if record["array_id"] is None else "[%d]" % record["task_id"]
    print()
    bhist.print_wrapped(
        "Job <%d%s>, Job Name <%s>, User <%s>, Project <%s>, Status <%s>, Queue <%s>, Command <%s>"
        % (
            base_id(record),
            index,
            words.name_of(record),
            record["user"],
            record["account"],
            words.stat(record),
            record["partition"],
            record["command"].replace("\n", ";"),
        )
    )
    for when, said in bhist.events(store, record):
        if said.startswith(("Submitted", "Dispatched")):
            bhist.print_wrapped("%s: %s;" % (words.long_time(when), said))
    word = words.termination(record)
    how = "done" if words.stat(record) == "DONE" else "exit"
    said = "Completed <%s>" % how + ("; " + words.reason_line(word) if word else "")
    bhist.print_wrapped("%s: %s." % (words.long_time(record["end"]), said))
    wait = int((record["start"] or record["end"]) - record["submit"])
    print("\nAccounting information about this job:")
    print("     CPU_T     WAIT     TURNAROUND   STATUS     HOG_FACTOR    MEM    SWAP")
    print(
        "%10.2f %8d %14d     %4s         %.4f %5dM     0M"
        % (record["cpu_s"], wait, record["end"] - record["submit"], how, 0, record["rss_kb"] >> 10)
    )
    print("-" * 78)
