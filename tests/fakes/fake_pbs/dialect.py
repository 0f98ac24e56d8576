"""What pbs_mom does on a node: how it starts and kills a job, its lines in the job's stderr."""

import os
import signal

from fake_drm import transitions
from fake_drm.submission import environment_of
from fake_pbs import words

RUNS_WITHOUT_OUTPUT = True  # output is spooled; that it cannot be delivered shows later
EXCEEDED = "=>> PBS: job killed: %s %s exceeded limit %s\n"


def environment(record, store):
    """The environment of the job's script: the stored one, and PBS's variables."""
    values = environment_of(record, store)
    nodes = store.spool_path(record["id"], "nodes")
    with open(nodes, "w") as handle:
        handle.write((store.settings["node"] + "\n") * record["cpus"])
    values.update(
        {
            "PBS_JOBID": words.job_id(store, record),
            "PBS_JOBNAME": record["name"],
            "PBS_QUEUE": record["partition"],
            "PBS_ENVIRONMENT": "PBS_BATCH",
            "PBS_NODEFILE": nodes,
            "PBS_JOBCOOKIE": "%032X" % record["id"],
            "ENVIRONMENT": "BATCH",
            "HOSTNAME": store.settings["node"],
            "NCPUS": str(record["cpus"]),
        }
    )
    if record["array_id"] is not None:
        values["PBS_ARRAYID" if words.is_torque(store) else "PBS_ARRAY_INDEX"] = str(
            record["task_id"]
        )
        values["PBS_ARRAY_ID"] = words.array_id(store, record)
    return values


def command_line(record, script):
    """OpenPBS feeds the script's path to a login shell; Torque's shell runs the script itself."""
    shell = record["extra"].get("shell") or "/bin/bash"
    if record["arguments"]:
        return record["arguments"][0], record["arguments"]
    if record["extra"]["torque"]:
        return shell, [shell, script]
    name = "-" + os.path.basename(shell)
    return shell, [name, "--noprofile"] if shell.endswith("bash") else [name]


def standard_input(record, script):
    """What the login shell reads."""
    return None if record["extra"]["torque"] or record["arguments"] else script + "\n"


def refuse_start(store, record, now):
    """Let a job fail in the prologue, where that is played."""
    if not store.settings["prolog_fails"]:
        return False
    transitions.start(record, now, store.settings["node"], None)
    transitions.end(record, "exited", now, 0)
    record["extra"]["exit_status"] = -2
    return True


def bad_workdir(record, error):
    """A home folder that is missing."""
    return "PBS: chdir to %s failed: %s\n" % (record["workdir"], error.strerror)


def bad_script(record, script, error):
    """The mom's line of a shell that cannot be run; the exit code is 254 then."""
    shell = record["extra"].get("shell") or script
    text = "pbs_mom, exec of %s failed with error: %s\n" % (shell, error.strerror)
    os.write(2, text.encode())
    os._exit(254)


def kill_signals(record):
    """SIGTERM, and SIGKILL later; at once for ``qdel -W force``."""
    return [signal.SIGKILL] if record["extra"].get("forced") else [signal.SIGTERM]


def killed(record, why, when):
    """The mom's line of a limit, "" for other causes."""
    if why == "time_limit":
        ran = int(when - record["start"] - record["paused_s"])
        # mom looks now and then, so it always finds more than the limit
        ran = max(ran, int(record["time_limit"]) + 1)
        return EXCEEDED % ("walltime", ran, int(record["time_limit"]))
    if why == "cpu_limit":
        limit = int(record["cpu_limit"])
        return EXCEEDED % ("cput", max(int(record["cpu_s"]), limit + 1), limit)
    return ""


def memory_kill(record, used, limit, when):
    """The mom's line of a job over its memory; Torque's numbers are bytes."""
    if record["extra"]["torque"]:
        return EXCEEDED % ("vmem", int(used), int(limit))
    return EXCEEDED % ("mem", "%dkb" % (used // 1024), "%dkb" % (limit // 1024))


def out_of_memory(record):
    """The kernel killed a process: the cgroup hook's line."""
    return "Cgroup mem limit exceeded: oom-kill\n"


def run_over(store, record, now):
    """Say who deleted a job, for its comment."""
    if record["why"] == "cancelled" and "deleted_by" not in record["extra"]:
        record["extra"]["deleted_by"] = "root@" + store.settings["cluster"]


def injected(store, record):
    """Fill in what qsub knows of a job, for one that was never submitted."""
    server = store.settings["cluster"]
    limit = record["time_limit"]
    values = {
        "torque": words.is_torque(store),
        "resources": [["walltime", words.hms(limit)]] if limit else [],
        "arguments": os.path.basename(record["command"]),
        "join": "n",
        "keep": "n",
        "variables": [["PBS_O_WORKDIR", record["workdir"]], ["PBS_O_HOST", server]],
        "output_path": "%s:%s" % (server, record["stdout"]),
        "error_path": "%s:%s" % (server, record["stderr"]),
        "indices": "",
    }
    record["extra"] = dict(values, **record["extra"])
