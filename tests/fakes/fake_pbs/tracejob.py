"""``tracejob``: a job's lines of the server's (S), scheduler's (L), mom's (M) and accounting (A)
logs."""

import sys
import time

from fake_drm import submission
from fake_drm.arguments import parse_anywhere, refuse
from fake_drm.cli import CommandError
from fake_pbs import dialect, jobs, words


def main(store, argv):
    """Show; returns the exit code. The logs are files: no server is needed."""
    usage = refuse("usage: tracejob [-a|s|l|m|v] [-n days] job_identifier\n", 255)
    given, ids = parse_anywhere(argv, set("n w c p f z".split()), set("aslmvq"), usage)
    options = dict(given)
    for text in ids:
        number, tasks = jobs.parse(store, "tracejob", text)
        records = submission.elements(store, number)
        if isinstance(tasks, list):
            records = [one for one in records if one["task_id"] in tasks]
        if not records or store.settings["accounting"] == "off":
            days = options.get("n", "1")
            raise CommandError(
                "\ntracejob: Couldn't find Job Id %s in logs of past %s day%s\n\n"
                % (jobs.full_id(store, text), days, "" if days == "1" else "s"),
                1,
            )
        print("\nJob: %s\n" % jobs.full_id(store, text))
        lines = [line for record in records for line in _lines(store, record)]
        # only root may read the accounting files
        hidden = {name.upper() for name in options if name in "aslm"}
        hidden |= set() if submission.acting_user()[1] == 0 else {"A"}
        for when, who, said in sorted(lines, key=lambda line: int(line[0])):
            if who not in hidden:
                stamp = time.strftime("%m/%d/%Y %H:%M:%S", time.localtime(when))
                sep = "" if not words.is_torque(store) else ".%03d" % (int(when * 1000) % 1000)
                print("%s%s  %s    %s" % (stamp, sep, who, said))
    sys.stdout.flush()
    return 0


def _lines(store, record):
    """(simulated time, who, text), in the order in which they happened."""
    owner, queue = words.owner(store, record), record["partition"]
    first = record["past"][0]["submit"] if record["past"] else record["submit"]
    held = "H" if record["extra"].get("hold_types") else "Q"
    if words.is_torque(store):
        lines = [(first, "S", "enqueuing into %s, state 1 hop 1" % queue)]
    else:
        lines = [(first, "S", "enqueuing into %s, state %s hop 1" % (queue, held))]
    lines.append(
        (first, "S", "Job Queued at request of %s, owner = %s, job name = %s, queue = %s"
         % (owner, owner, record["name"], queue))
    )
    for run in record["past"]:
        if run["start"] is not None:
            lines += _began(store, record, run["start"])
    ran = record["start"] is not None and (record["state"] != "ended" or record["started"])
    if ran:
        lines += _began(store, record, record["start"])
    for when, what, who in record["log"]:
        if what == "rerun":
            lines.append((when, "S", "Job Rerun at request of %s" % who))
        elif what == "deleted":
            lines += _deleted(store, when, who, True)
    if words.is_ended(record):
        lines += _ended(store, record, ran)
    return lines


def _began(store, record, when):
    if words.is_torque(store):
        return [
            (when, "S", "Job Run at request of root@%s" % store.settings["cluster"]),
            (when, "S", "Job Modified at request of root@%s" % store.settings["cluster"]),
        ]
    vnode = words.vnode(store, record)
    server = store.settings["cluster"]
    return [
        (when, "L", "Considering job to run"),
        (when, "S", "Job Run at request of Scheduler@%s on exec_vnode %s" % (server, vnode)),
        (when, "L", "Job run"),
        (when, "M", "Started, pid = %d" % (1000 + record["id"])),
        (when, "A", _account(record, store) + " exec_vnode=%s" % vnode),
    ]


def _deleted(store, when, who, running):
    if words.is_torque(store):
        said = [(when, "S", "Job deleted at request of %s" % who)]
        return said + ([(when, "S", "Job sent signal SIGTERM on delete")] if running else [])
    said = [(when, "S", "delete job request received")]
    said += [(when, "S", "Job sent signal TermJob on delete")] if running else []
    said += [(when, "S", "Job to be deleted at request of %s" % who)]
    return said + [(when, "A", "requestor=%s" % who)]


def _ended(store, record, ran):
    when = record["end"]
    if not ran:
        who = record["extra"].get("deleted_by")
        return _deleted(store, when, who, False) if who else []
    lines = []
    line = dialect.killed(record, record["why"], when)
    if line and not words.is_torque(store):
        lines.append((when, "M", line.strip().partition("job killed: ")[2]))
    lines += [(when, "M", "kill_job"), (when, "M", "Obit sent")]
    lines.append((when, "S", "Obit received momhop:1 serverhop:1 state:R substate:42"))
    now = store.clock.now()
    used = (
        "resources_used.cpupercent=0 resources_used.cput=%s resources_used.mem=%dkb "
        "resources_used.ncpus=%d resources_used.vmem=%dkb resources_used.walltime=%s"
    ) % (
        words.hms(record["cpu_s"]),
        record["rss_kb"],
        record["cpus"],
        record["rss_kb"],
        words.hms(words.run_seconds(record, now)),
    )
    if words.is_torque(store):
        used = " ".join(one for one in used.split() if "ncpus" not in one and "perc" not in one)
        lines = []
    status = "Exit_status=%s %s" % (words.exit_status(store, record), used)
    lines.append((when, "S", status))
    if words.is_torque(store):
        return lines + [(when, "S", "dequeuing from %s, state COMPLETE" % record["partition"])]
    delivered = 0 if record["extra"].get("undelivered") else 2
    lines.append((when, "M", "Staged %d/2 items out over 0:00:00" % delivered))
    if not delivered:
        lines.append((when, "S", "Post job file processing error"))
    lines.append((when, "A", "%s end=%d %s" % (_account(record, store), when, status)))
    return lines


def _account(record, store):
    return "user=%s group=%s project=_pbs_project_default jobname=%s queue=%s ctime=%d start=%d" % (
        record["user"],
        record["group"],
        record["name"],
        record["partition"],
        record["submit"],
        record["start"] or 0,
    )
