"""The configuration of a private Grid Engine: bootstrap file, global, scheduler, host and queue.

Formats: sge_bootstrap(5), sge_conf(5), sched_conf(5), host_conf(5), queue_conf(5) of SGE 8.1.9.
"""

from __future__ import annotations

from pathlib import Path
from typing import Dict, List, Mapping, Optional, Tuple

HOST = "localhost"
QUEUE = "all.q"
CELL = "default"
GIDS_PER_CELL = 32
FOLDERS = (
    f"{CELL}/common",
    "spool/qmaster/job_scripts",
    "spool/execd",
    "bin",
    "conf",
    "log",
    "tmp",
    "work",
)
SHARE = Path("/usr/share/gridengine")
DEFAULT_CONFIGURATION = SHARE / "default-configuration"
RESOURCES = SHARE / "util/resources"
DEFAULT_FLUSH_S = 15  # of Debian's own default-configuration


def bootstrap(home: Path) -> str:
    """Return the bootstrap file: classic spooling (text files), daemons as who starts them."""
    return table(
        {
            "admin_user": "none",
            "default_domain": "none",
            "ignore_fqdn": "true",
            "spooling_method": "classic",
            "spooling_lib": "libspoolc",
            "spooling_params": f"{home}/{CELL}/common;{home}/spool/qmaster",
            "binary_path": "/usr/sbin",
            "qmaster_spool_dir": f"{home}/spool/qmaster",
            "security_mode": "none",
            "listener_threads": "2",
            "worker_threads": "2",
            "scheduler_threads": "1",
        }
    )


def global_conf(
    home: Path, port: int, flush_time_s: Optional[int], settings: Mapping[str, str]
) -> str:
    """Return Debian's global configuration with short intervals and `settings`.

    Args:
        flush_time_s: seconds until an ended job is in the accounting file; None is Debian's own.
    """
    return table({**default_configuration(), **private_conf(home, port, flush_time_s), **settings})


def private_conf(home: Path, port: int, flush_time_s: Optional[int]) -> Dict[str, str]:
    """Return what a private cell needs otherwise than Debian's configuration."""
    first = first_gid(port)
    return {
        "execd_spool_dir": f"{home}/spool/execd",
        "mailer": "/bin/true",
        "administrator_mail": "none",
        "min_uid": "0",  # with Debian's 1000 a job of root is refused
        "min_gid": "0",
        "gid_range": f"{first}-{first + GIDS_PER_CELL - 1}",
        "load_report_time": "00:00:02",
        "loglevel": "log_info",
        "reporting_params": reporting_params(flush_time_s),
    }


def reporting_params(flush_time_s: Optional[int]) -> str:
    """Return the value of reporting_params; `flush_time_s` as in ``global_conf``."""
    flush = DEFAULT_FLUSH_S if flush_time_s is None else max(flush_time_s, 1)
    params = ["accounting=true", "reporting=false", f"flush_time={clock(flush)}"]
    if flush_time_s is not None:
        # accounting has a timer of its own; 0 writes each record at once
        params.append(f"accounting_flush_time={clock(flush_time_s)}")
    return " ".join([*params, "joblog=false", "sharelog=00:00:00"])


def first_gid(port: int) -> int:
    """Return the first of the groups that mark the processes of jobs.

    Grid Engine measures (and kills) whatever is in such a group, so no two cells may share any.
    """
    return 1_000_000 + port * GIDS_PER_CELL


def default_configuration() -> Dict[str, str]:
    """Return the global configuration that Debian ships, name to value."""
    pairs = [
        line.split(None, 1)
        for line in DEFAULT_CONFIGURATION.read_text().splitlines()
        if line.strip() and not line.startswith("#")
    ]
    return {pair[0]: pair[1].strip() for pair in pairs if pair[0] != "conf_version"}


def scheduler_conf() -> str:
    """Return the scheduler's configuration: it looks each second, and at once after a change."""
    rows = {
        "algorithm": "default",
        "schedule_interval": "0:0:1",
        "maxujobs": "0",
        "queue_sort_method": "load",
        "job_load_adjustments": "NONE",
        "load_adjustment_decay_time": "0:0:0",
        "load_formula": "np_load_avg",
        "schedd_job_info": "true",
        "flush_submit_sec": "1",
        "flush_finish_sec": "1",
        "params": "none",
        "reprioritize_interval": "0:0:0",
        "halftime": "168",
        "usage_weight_list": "cpu=1.000000,mem=0.000000,io=0.000000",
        "compensation_factor": "5.000000",
        "weight_user": "0.250000",
        "weight_project": "0.250000",
        "weight_department": "0.250000",
        "weight_job": "0.250000",
        "weight_tickets_functional": "0",
        "weight_tickets_share": "0",
        "share_override_tickets": "TRUE",
        "share_functional_shares": "TRUE",
        "max_functional_jobs_to_schedule": "200",
        "report_pjob_tickets": "TRUE",
        "max_pending_tasks_per_job": "50",
        "halflife_decay_list": "none",
        "policy_hierarchy": "OFS",
        "weight_ticket": "0.010000",
        "weight_waiting_time": "0.000000",
        "weight_deadline": "3600000.000000",
        "weight_urgency": "0.100000",
        "weight_priority": "1.000000",
        "max_reservation": "0",
        "default_duration": "INFINITY",
    }
    return table(rows)


def host_conf() -> str:
    """Return the execution host."""
    return table(
        {
            "hostname": HOST,
            "load_scaling": "NONE",
            "complex_values": "NONE",
            "user_lists": "NONE",
            "xuser_lists": "NONE",
            "projects": "NONE",
            "xprojects": "NONE",
            "usage_scaling": "NONE",
            "report_variables": "NONE",
        }
    )


def queue_conf(home: Path, slots: int, settings: Mapping[str, str]) -> str:
    """Return the queue: no limits, jobs start however busy the machine is; then `settings`."""
    rows = {
        "qname": QUEUE,
        "hostlist": HOST,
        "seq_no": "0",
        "load_thresholds": "NONE",
        "suspend_thresholds": "NONE",
        "nsuspend": "1",
        "suspend_interval": "00:05:00",
        "priority": "0",
        "min_cpu_interval": "00:05:00",
        "processors": "UNDEFINED",
        "qtype": "BATCH INTERACTIVE",
        "ckpt_list": "NONE",
        "pe_list": "NONE",
        "rerun": "FALSE",
        "slots": str(slots),
        "tmpdir": f"{home}/tmp",  # named by job number: in /tmp two cells would share them
        "shell": "/bin/sh",
        "prolog": "NONE",
        "epilog": "NONE",
        "shell_start_mode": "unix_behavior",  # heeds the script's #! line
        "starter_method": "NONE",
        "suspend_method": "NONE",
        "resume_method": "NONE",
        "terminate_method": "NONE",
        "notify": "00:00:02",
        "owner_list": "NONE",
        "user_lists": "NONE",
        "xuser_lists": "NONE",
        "subordinate_list": "NONE",
        "complex_values": "NONE",
        "projects": "NONE",
        "xprojects": "NONE",
        "calendar": "NONE",
        "initial_state": "default",
    }
    for resource in ("rt", "cpu", "fsize", "data", "stack", "core", "rss", "vmem"):
        rows[f"s_{resource}"] = rows[f"h_{resource}"] = "INFINITY"
    return table({**rows, **settings})


def clock(seconds: int) -> str:
    """Return seconds as Grid Engine writes them, e.g. 00:00:15."""
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def table(rows: Mapping[str, str]) -> str:
    """Return a file of names and values."""
    return "".join(f"{name:<32} {value}\n" for name, value in rows.items())


def spool_commands(home: Path) -> List[Tuple[str, ...]]:
    """Return the commands that make the empty spool of a cell whose bootstrap file is there."""
    libraries = "/usr/lib/gridengine"
    spooled = f"{home}/{CELL}/common;{home}/spool/qmaster"
    defaults = f"{libraries}/spooldefaults"
    return [
        (f"{libraries}/spoolinit", "classic", "libspoolc", spooled, "init"),
        (defaults, "configuration", f"{home}/conf/global"),
        (defaults, "complexes", f"{RESOURCES}/centry"),
        (defaults, "usersets", f"{RESOURCES}/usersets"),
        (defaults, "managers", "root"),
    ]
