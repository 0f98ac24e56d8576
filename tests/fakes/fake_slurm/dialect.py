"""What a node of this Slurm tells and writes: a job's environment, slurmstepd's lines in its
stderr."""

import errno
import json

from fake_drm.clock import iso

CAUSES = {
    "time_limit": " DUE TO TIME LIMIT",
    "cancelled": "",
    "preempted": " DUE TO PREEMPTION",
    "requeued": " DUE TO JOB REQUEUE",
    "node_failure": " DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS",
}


def _stepd(record, text):
    return "slurmstepd-%s: error: %s\n" % (record["node"] or "node1", text)


def cancelled_at(record, node, cause, when):
    """The line of a job that is being killed."""
    return "slurmstepd-%s: error: *** JOB %d ON %s CANCELLED AT %s%s ***\n" % (
        node,
        record["id"],
        node,
        iso(when),
        cause,
    )


def killed(record, why, when):
    """slurmstepd's line when it starts to kill a job; "" for causes that write their own."""
    if why not in CAUSES:
        return ""
    node = record["node"] or (record["past"][-1]["node"] if record["past"] else "node1")
    return cancelled_at(record, node, CAUSES[why], when)


def memory_kill(record, used, limit, when):
    """The lines of OverMemoryKill; real slurmstepd writes the first two twice."""
    over = _stepd(
        record,
        "StepId=%d.batch exceeded memory limit (%d > %d), being killed"
        % (record["id"], used, limit),
    )
    over += _stepd(record, "Exceeded job memory limit")
    return over + cancelled_at(record, record["node"], "", when) + over


def out_of_memory(record):
    """The line after the kernel killed a process of the job's cgroup."""
    return _stepd(
        record,
        "Detected 1 oom-kill event(s) in StepId=%d.batch. Some of your processes may have "
        "been killed"
        " by the cgroup out-of-memory handler." % record["id"],
    )


def bad_workdir(record, error):
    """The two lines of a working directory that cannot be entered."""
    line = _stepd(
        record,
        "couldn't chdir to `%s': %s: going to /tmp instead" % (record["workdir"], error.strerror),
    )
    return line + line


def bad_script(record, script, error):
    """The line of a script that cannot be run."""
    if error.errno == errno.ENOENT:
        with open(script, "rb") as handle:
            first = handle.readline().decode("utf-8", "replace")
        interpreter = first[2:].split()[0] if first[2:].split() else ""
        return _stepd(record, "execve(): bad interpreter(%s): %s" % (interpreter, error.strerror))
    return _stepd(record, "execve(): %s: %s" % (script, error.strerror))


def environment(record, store):
    """The environment of the job's script: the stored one of sbatch, and Slurm's variables."""
    with open(store.spool_path(record["id"], "env.json")) as handle:
        values = json.load(handle)
    node = store.settings["node"]
    number = str(record["id"])
    values.update(
        {
            "ENVIRONMENT": "BATCH",
            "SLURM_CLUSTER_NAME": record["cluster"],
            "SLURM_CPUS_ON_NODE": str(record["cpus"]),
            "SLURM_GTIDS": "0",
            "SLURM_JOBID": number,
            "SLURM_JOB_ID": number,
            "SLURM_JOB_NAME": record["name"],
            "SLURM_JOB_CPUS_PER_NODE": str(record["cpus"]),
            "SLURM_JOB_GID": str(record["gid"]),
            "SLURM_JOB_NODELIST": node,
            "SLURM_JOB_NUM_NODES": str(record["nodes"]),
            "SLURM_JOB_PARTITION": record["partition"],
            "SLURM_JOB_UID": str(record["uid"]),
            "SLURM_JOB_USER": record["user"],
            "SLURM_LOCALID": "0",
            "SLURM_NNODES": str(record["nodes"]),
            "SLURM_NODEID": "0",
            "SLURM_NODELIST": node,
            "SLURM_NODE_ALIASES": "(null)",
            "SLURM_PROCID": "0",
            "SLURM_SUBMIT_DIR": values.get("SLURM_SUBMIT_DIR", record["workdir"]),
            "SLURM_TASKS_PER_NODE": "1",
            "SLURM_TOPOLOGY_ADDR": node,
            "SLURM_TOPOLOGY_ADDR_PATTERN": "node",
            "SLURMD_NODENAME": node,
            "HOSTNAME": node,
            "TMPDIR": values.get("TMPDIR", "/tmp"),
        }
    )
    if record["account"]:
        values["SLURM_JOB_ACCOUNT"] = record["account"]
    if record["qos"]:
        values["SLURM_JOB_QOS"] = record["qos"]
    if record["memory_per"] == "node":
        values["SLURM_MEM_PER_NODE"] = str(record["memory_mb"])
    else:
        values["SLURM_MEM_PER_CPU"] = str(record["memory_mb"])
    if record["restarts"]:
        values["SLURM_RESTART_COUNT"] = str(record["restarts"])
    if record["cpus_per_task"] > 1:
        values["SLURM_CPUS_PER_TASK"] = str(record["cpus_per_task"])
    if record["array_id"] is not None:
        values["SLURM_ARRAY_JOB_ID"] = str(record["array_id"])
        values["SLURM_ARRAY_TASK_ID"] = str(record["task_id"])
    return values
