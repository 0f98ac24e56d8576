"""The fields of ``bjobs -o``: heading, default width and value, after the table in bjobs(1)."""

from fake_drm.submission import base_id
from fake_lsf import words

ALIASES = {
    "id": "jobid",
    "name": "job_name",
    "description": "job_description",
    "proj": "proj_name",
    "project": "proj_name",
    "ugroup": "user_group",
    "cmd": "command",
    "pid": "pids",
}
WIDTHS = {
    "jobid": 7,
    "jobindex": 8,
    "stat": 5,
    "user": 7,
    "user_group": 15,
    "queue": 10,
    "job_name": 10,
    "job_description": 17,
    "proj_name": 11,
    "command": 15,
    "pids": 20,
    "exit_code": 10,
    "exit_reason": 50,
    "pend_reason": 11,
    "suspend_reason": 50,
    "kill_reason": 50,
    "from_host": 11,
    "first_host": 11,
    "exec_host": 11,
    "nexec_host": 10,
    "slots": 5,
    "submit_time": 15,
    "start_time": 15,
    "finish_time": 16,
    "time_left": 11,
    "cpu_used": 10,
    "run_time": 15,
    "mem": 10,
    "max_mem": 10,
    "avg_mem": 10,
    "memlimit": 10,
    "swap": 10,
    "runtimelimit": 12,
    "effective_resreq": 17,
    "sub_cwd": 10,
    "exec_cwd": 10,
    "output_file": 11,
    "error_file": 10,
    "input_file": 10,
    "dependency": 15,
    "nthreads": 10,
    "exec_home": 10,
    "job_group": 10,
    "job_priority": 12,
}
PENDING = {
    "": "New job is waiting for scheduling;",
    "held_user": "The job was suspended by the user while pending;",
    "held_admin": "The job was suspended by LSF admin or root while pending;",
    "requeued_held": "The job was suspended by the user while pending;",
    "dependency": "Job dependency condition not satisfied;",
    "dependency_never": "Dependency condition invalid or never satisfied;",
    "array_limit": "The job array has reached its running element limit;",
    "begin_time": "Job's requeue exit code or its start time has not been reached;",
}


def canonical(name):
    """The field's own name, None if there is none of that name."""
    name = ALIASES.get(name.lower(), name.lower())
    return name if name in WIDTHS else None


def values(store, record):
    """All fields of one job as texts, "" for what bjobs shows as ``-``."""
    now = store.clock.now()
    state = words.stat(record)
    began = record["state"] == "running" or (record["state"] == "ended" and record["started"])
    ended = words.is_ended(record)
    code = words.exit_code(record) if ended else None
    host = record["node"] or store.settings["node"]
    ran = words.run_seconds(record, now)
    limit = record["time_limit"]
    size = words.size(record["rss_kb"]) if record["rss_kb"] else ""
    asked = _limit(record["memory_mb"]) if record["memory_per"] == "node" else ""
    finish = _finish_time(record, limit, began, ended)
    return {
        "jobid": str(base_id(record)),
        "jobindex": str(record["task_id"] or 0),
        "stat": state,
        "user": record["user"],
        "user_group": "",
        "queue": record["partition"],
        "job_name": words.name_of(record),
        "job_description": record["comment"],
        "proj_name": record["account"] or "default",
        "command": record["command"].replace("\n", ";"),
        "pids": str(record["session"][0]) if record["session"] else "",
        "exit_code": str(code) if code else "",
        "exit_reason": words.exit_reason(record),
        "pend_reason": PENDING.get(record["why"], "") if state in ("PEND", "PSUSP") else "",
        "suspend_reason": "",
        "kill_reason": "",
        "from_host": record["extra"].get("from_host", host),
        "first_host": host if began else "",
        "exec_host": host if began else "",
        "nexec_host": "1" if began else "",
        "slots": str(record["cpus"]) if began else "",
        "submit_time": words.short_time(record["submit"]),
        "start_time": words.short_time(record["start"]) if began else "",
        "finish_time": finish,
        "time_left": "",
        "cpu_used": "%.1f second(s)" % record["cpu_s"] if began else "",
        "run_time": "%d second(s)" % ran,
        "mem": size if not ended else "",
        "max_mem": size,
        "avg_mem": size,
        "memlimit": asked,
        "swap": "",
        "runtimelimit": "%.1f" % (limit / 60.0) if limit else "",
        "effective_resreq": "select[type == local] order[r15s:pg] " if began else "",
        "sub_cwd": record["workdir"],
        "exec_cwd": record["workdir"] if began else "",
        "output_file": record["extra"].get("output_file", ""),
        "error_file": record["stderr"] if record["stderr"] != record["stdout"] else "",
        "input_file": "" if record["stdin"] == "/dev/null" else record["stdin"],
        "dependency": "",
        "nthreads": "",
        "exec_home": "",
        "job_group": "",
        "job_priority": "",
    }


def _finish_time(record, limit, began, ended):
    if ended and record["end"] is not None:
        return words.short_time(record["end"]) + " L"
    if began and limit:
        return words.short_time(record["start"] + limit) + " L"
    return ""


def _limit(megabytes):
    """``4 G``, ``512 M``, as memlimit shows it."""
    kilobytes = megabytes * 1024
    for unit, size in (("G", 1024 * 1024), ("M", 1024)):
        if kilobytes >= size:
            return ("%.1f" % (kilobytes / size)).replace(".0", "") + " " + unit
    return "%d K" % kilobytes
