"""Settings of a state folder (``settings.json``) and of single jobs, with their defaults.

Every duration is in real seconds, except ``requeue_delay`` and ``default_time_limit`` which, like
a job's own time limit, are on the simulated clock (see ``clock.py``).
"""

import json
import os

DEFAULTS = {
    # the cluster
    "flavour": "slurm",  # slurm | lsf | openpbs | pbspro | torque | sge: whose commands work
    "cluster": "private",
    "node": "node1",
    "version": "22.05.8",
    "partitions": ["main"],  # the first is the default
    "accounts": None,  # list of the accounts that may submit; None: any
    "qos": None,  # list of known QOS; None: any
    "node_memory_mb": 65536,  # a request above is refused
    "default_memory_mb": 100,  # per CPU, reported for jobs that ask for nothing; not enforced
    "default_time_limit": None,  # seconds on the simulated clock; None: unlimited
    "requeue": True,  # a job may be requeued unless it says --no-requeue
    "requeue_delay": 120,  # simulated seconds until a requeued job may start again
    "kill_invalid_dependency": False,
    "first_job_id": 1,
    # the clock
    "time_scale": 1,
    "clock_anchor": None,  # [real, simulated] seconds: set when time_scale changes
    # a job's life
    "start_delay": 0,
    "completing": 0,  # seconds an ended job is still cleaned up
    "kill_wait": 2,  # seconds between SIGTERM and SIGKILL
    "limit_slack": 0,  # simulated seconds after the time limit until it is enforced
    "memory_limit": "cgroup",  # cgroup | overmemkill (the DRM itself kills) | none
    "prolog_fails": False,  # no job can be started
    "output_direct": False,  # LSF: LSB_STDOUT_DIRECT
    "memory_unit": "KB",  # LSF: LSF_UNIT_FOR_LIMITS
    "min_job_age": 300,  # seconds after its end until the controller forgets a job
    # the accounting
    "accounting": "on",  # on | off | down
    "accounting_lag": 0,  # seconds after a job's end until its row says so
    "accounting_lag_shows": "absent",  # absent | pending | running
    "accounting_requeue_lag": 5,  # seconds after a requeue until the new, pending row appears
    # faults of the commands
    "controller_down": None,  # true, or {"delay": seconds, "text": ..., "rc": ...}
    "latency": {},  # {"squeue": seconds, "*": seconds}
    "private_data": False,
    "job_file_append": 0,  # what `scontrol show config` tells; output is truncated all the same
    "banner": "",
    "banner_stream": "stdout",
    "banner_commands": None,  # list of names; None: every command
    "reject": "",  # qos_limit | bad_account | bad_partition | bad_qos | busy | any other text
}

# What one job may set for itself with --comment=fake:key=value,key=value
JOB_OPTIONS = (
    "start_delay",
    "completing",
    "kill_wait",
    "limit_slack",
    "memory_limit",
    "min_job_age",
    "accounting_lag",
    "accounting_lag_shows",
    "accounting_requeue_lag",
    "requeue_delay",
    "reject",
    # events: seconds after the start, in real time; or a bare word for those before the start
    "node_failure",
    "preempt",
    "requeue",
    "requeue_hold",
    "forget",
    "suspend",
    "resume",
    "boot_failure",
    "launch_failure",
    "deadline",
    "dependency_never",
    "times",
)
# The words the task's users know from Slurm, accepted for the neutral ones above
SYNONYMS = {
    "sacct_lag": "accounting_lag",
    "sacct_lag_shows": "accounting_lag_shows",
    "node_fail": "node_failure",
    "sacct_requeue_lag": "accounting_requeue_lag",
    "boot_fail": "boot_failure",
    "launch_failed": "launch_failure",
}


class SettingsError(Exception):
    """A setting is unknown or cannot be read; the message says which and what is allowed."""


def load(path):
    """Return the settings of the state folder ``path``, defaults filled in.

    Raises SettingsError if the file is no JSON object or names an unknown setting.
    """
    values = dict(DEFAULTS)
    try:
        with open(os.path.join(path, "settings.json"), "rb") as handle:
            raw = handle.read()
    except FileNotFoundError:
        return values
    try:
        given = json.loads(raw)
        given.items()
    except (ValueError, AttributeError) as error:
        raise SettingsError("%s/settings.json is no JSON object: %s" % (path, error)) from error
    for key, value in given.items():
        key = SYNONYMS.get(key, key)
        if key not in DEFAULTS:
            raise SettingsError(
                "%s/settings.json: unknown setting %r; known: %s"
                % (path, key, ", ".join(sorted(DEFAULTS)))
            )
        values[key] = value
    return values


def save(path, changes):
    """Write ``changes`` over the settings of the folder, atomically, and return the result."""
    current = load(path)
    for key, value in changes.items():
        key = SYNONYMS.get(key, key)
        if key not in DEFAULTS:
            raise SettingsError(
                "unknown setting %r; known: %s" % (key, ", ".join(sorted(DEFAULTS)))
            )
        current[key] = value
    stored = {key: value for key, value in current.items() if value != DEFAULTS[key]}
    temporary = os.path.join(path, ".settings.%d" % os.getpid())
    with open(temporary, "w") as handle:
        json.dump(stored, handle, indent=1, sort_keys=True)
    os.replace(temporary, os.path.join(path, "settings.json"))
    return current


def job_options(comment):
    """Return what a comment such as ``fake:completing=3,node_failure=1`` asks for; ``{}`` for any
    other.

    Raises SettingsError on an unknown key.
    """
    if not comment or not comment.startswith("fake:"):
        return {}
    options = {}
    for item in filter(None, comment[len("fake:"):].split(",")):
        key, _, value = item.partition("=")
        key = SYNONYMS.get(key, key)
        if key not in JOB_OPTIONS:
            raise SettingsError(
                "unknown option %r in the comment %r; known: %s"
                % (key, comment, ", ".join(JOB_OPTIONS))
            )
        options[key] = _number(value) if value else 1
    return options


def _number(text):
    try:
        return float(text)
    except ValueError:
        return text
