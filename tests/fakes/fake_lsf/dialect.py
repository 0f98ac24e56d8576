"""What sbatchd does on a node: how it starts and kills a job, and the report in its output."""

import os
import signal

from fake_drm import transitions
from fake_drm.submission import base_id, environment_of
from fake_lsf import words

RUNS_WITHOUT_OUTPUT = True  # LSF mails the output then
LINE = "-" * 60


def environment(record, store):
    """The environment of the job's script."""
    values = environment_of(record, store)
    number = str(base_id(record))
    index = str(record["task_id"] or 0)
    values.update(
        {
            "LSB_JOBID": number,
            "LSB_JOBINDEX": index,
            "LSB_BATCH_JID": number if index == "0" else "%s[%s]" % (number, index),
            "LSB_JOBNAME": words.name_of(record),
            "LSB_QUEUE": record["partition"],
            "LSB_HOSTS": " ".join([store.settings["node"]] * record["cpus"]),
            "LSB_MCPU_HOSTS": "%s %d" % (store.settings["node"], record["cpus"]),
            "LSB_SUB_HOST": record["extra"]["from_host"],
            "LS_SUBCWD": record["workdir"],
            "LSFUSER": record["user"],
            "HOSTNAME": store.settings["node"],
        }
    )
    return values


def refuse_start(store, record, now):
    """End a job whose folder is not there (as LSB_CWD_... sites do), or that pre-exec refuses."""
    if "launch_failure" in record["options"] or store.settings["prolog_fails"]:
        word = "TERM_PRE_EXEC_FAIL"
    elif not os.path.isdir(record["workdir"]):
        word = "TERM_CWD_NOTEXIST"
    else:
        return False
    transitions.end(record, "exited", now, 0)
    record["extra"].update(termination=word, exit_code=1 if word == "TERM_PRE_EXEC_FAIL" else 2)
    return True


def bad_workdir(record, error):
    """Not reached: refuse_start looked."""
    return "%s: %s\n" % (record["workdir"], error.strerror)


def bad_script(record, script, error):
    """The shell's line of a script that cannot be run."""
    return "%s: %s\n" % (script, error.strerror)


def kill_signals(record):
    """SIGUSR2 for the run limit, SIGXCPU for the CPU limit, then what bkill sends."""
    if record["killing"] == "time_limit":
        return [signal.SIGUSR2, signal.SIGINT, signal.SIGTERM]
    if record["killing"] == "cpu_limit":
        return [signal.SIGXCPU, signal.SIGINT, signal.SIGTERM]
    if record["extra"].get("forced"):
        return [signal.SIGKILL]
    return [signal.SIGINT, signal.SIGTERM]


def killed(record, why, when):
    """LSF writes nothing while it kills: all is in the report."""
    return ""


def memory_kill(record, used, limit, when):
    """The same."""
    return ""


def out_of_memory(record):
    """The same."""
    return ""


def run_over(store, record, now):
    """Write the report into the job's output, where it has such a file."""
    path = record["extra"].get("output_file")
    if record["state"] != "ended" or not path or record["killing"] == "node_failure":
        return
    report = _report(store, record, now)
    direct = store.settings["output_direct"]
    try:
        if direct:
            said = "\n%s\n%s\nThe output (if any) is above this job summary.\n" % (LINE, report)
            with open(path, "a") as handle:
                handle.write(said + _afterword(record))
            return
        with open(record["stdout"], "rb") as handle:
            output = handle.read()
        with open(path, "ab" if record["append"] else "wb") as handle:
            handle.write((report + "\nThe output (if any) follows:\n\n").encode())
            handle.write(output + _afterword(record).encode())
    except OSError:
        record["extra"]["undelivered"] = path


def injected(store, record):
    """Fill in what bsub knows of a job, for one that was never submitted."""
    record["extra"] = dict({"from_host": store.settings["node"]}, **record["extra"])
    record["account"] = record["account"] or "default"


def _afterword(record):
    if record["stderr"] == record["stdout"]:
        return "\n"
    return "\n\nPS:\n\nRead file <%s> for stderr output of this job.\n\n" % record["stderr"]


def _report(store, record, now):
    node, cluster = store.settings["node"], record["cluster"]
    user, queue, name = record["user"], record["partition"], words.name_of(record)
    well = words.exit_code(record) == 0 and record["why"] == "exited"
    index = "" if record["array_id"] is None else "[%d]" % record["task_id"]
    lines = [
        "Sender: LSF System <lsfadmin@%s>" % node,
        "Subject: Job %d%s: <%s> in cluster <%s> %s"
        % (base_id(record), index, name, cluster, "Done" if well else "Exited"),
        "",
        "Job <%s> was submitted from host <%s> by user <%s> in cluster <%s> at %s"
        % (name, record["extra"]["from_host"], user, cluster, words.year_time(record["submit"])),
        "Job was executed on host(s) <%s>, in queue <%s>, as user <%s> in cluster <%s> at %s"
        % (node, queue, user, cluster, words.year_time(record["start"])),
        "<%s> was used as the home directory." % os.path.expanduser("~"),
        "<%s> was used as the working directory." % record["workdir"],
        "Started at %s" % words.year_time(record["start"]),
        "Terminated at %s" % words.year_time(now),
        "Results reported at %s" % words.year_time(now),
        "",
        "Your job looked like:",
        "",
        LINE,
        "# LSBATCH: User input",
        record["command"],
        LINE,
        "",
    ]
    word = words.termination(record)
    if well:
        lines.append("Successfully completed.")
    else:
        lines += ["%s." % words.reason_line(word)] if word else []
        lines.append(words.how_it_exited(record))
    lines += ["", "Resource usage summary:", ""]
    used = "%d MB" % (record["rss_kb"] // 1024) if record["rss_kb"] >= 1024 else "-"
    asked = "%.2f MB" % record["memory_mb"] if record["memory_per"] == "node" else "-"
    for label, value in (
        ("CPU time", "%.2f sec." % record["cpu_s"]),
        ("Max Memory", used),
        ("Average Memory", used.replace(" MB", ".00 MB")),
        ("Total Requested Memory", asked),
        ("Delta Memory", "-"),
        ("Max Swap", "-"),
        ("Max Processes", "-"),
        ("Max Threads", "-"),
        ("Run time", "%d sec." % words.run_seconds(record, now)),
        ("Turnaround time", "%d sec." % (now - record["submit"])),
    ):
        lines.append("    %-45s%s" % (label + " :", value))
    return "\n".join(lines) + "\n"
