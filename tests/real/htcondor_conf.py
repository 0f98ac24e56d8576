"""The configuration of a private HTCondor pool (see htcondor.py): text only, no processes."""

from __future__ import annotations

from pathlib import Path

FOLDERS = ("log", "lock", "run", "spool", "execute", "passwords.d", "tokens.d", "cred", "config.d")
SYSTEM_HOLD_SUBCODE = 99

# Blocks for PrivatePool(extra_config=...). The subcodes are those of the templates' own.
HOLD_IF_MEMORY_EXCEEDED = "use policy:Hold_If_Memory_Exceeded\n"  # 21/102
SHORT_LEASE = "JOB_DEFAULT_LEASE_DURATION = 8\n"  # a lost startd is given up after 8 s


def hold_if_runtime_exceeds(seconds: int) -> str:
    """Return the lines with which the execute side holds jobs that run longer (21/103)."""
    return f"use policy:Hold_If_Runtime_Exceeds({seconds})\n"


def preempt_if_runtime_exceeds(seconds: int) -> str:
    """Return the lines with which the execute side evicts such jobs, to run again and again."""
    return f"use policy:Preempt_If_Runtime_Exceeds({seconds})\n"


def system_periodic_hold(
    expression: str, reason: str = "the site's rule", subcode: int = SYSTEM_HOLD_SUBCODE
) -> str:
    """Return the lines with which the schedd holds each job for which `expression` is true (26)."""
    return (
        f"SYSTEM_PERIODIC_HOLD = {expression}\n"
        f'SYSTEM_PERIODIC_HOLD_REASON = "{reason}"\n'
        f"SYSTEM_PERIODIC_HOLD_SUBCODE = {subcode}\n"
    )


def condor_config(
    *,
    home: Path,
    prefix: Path,
    port: int,
    user: str,
    cpus: int,
    memory_mb: int,
    extra_config: str,
) -> str:
    """Return the whole configuration file of a pool in `home` on the loopback port `port`.

    Args:
        user: who the daemons are, to themselves (``daemon`` inside the user namespace).
        cpus: of the one partitionable slot; more than the machine has is fine.
        extra_config: further lines; they come last and so win.
    """
    parts = [_folders(home, prefix), _network(port), _security(user), QUICK, _slot(cpus, memory_mb)]
    return "".join([*parts, "\n", extra_config, "\n"])


def _folders(home: Path, prefix: Path) -> str:
    return f"""# Made by tests/real/htcondor.py
RELEASE_DIR = {prefix}/usr
LOCAL_DIR = {home}
BIN = $(RELEASE_DIR)/bin
SBIN = $(RELEASE_DIR)/sbin
LIB = $(RELEASE_DIR)/lib/condor
LIBEXEC = $(RELEASE_DIR)/libexec/condor
SHARE = $(RELEASE_DIR)/share/condor
ETC = {home}
LOG = {home}/log
LOCK = {home}/lock
RUN = {home}/run
SPOOL = {home}/spool
EXECUTE = {home}/execute
LOCAL_CONFIG_DIR = {home}/config.d
SEC_PASSWORD_DIRECTORY = {home}/passwords.d
SEC_TOKEN_DIRECTORY = {home}/tokens.d
SEC_TOKEN_SYSTEM_DIRECTORY = {home}/tokens.d
CRED_STORE_DIR = {home}/cred
MAIL = /bin/true
SENDMAIL = /bin/true
JOB_QUEUE_LOG = $(SPOOL)/job_queue.log
MASTER_ADDRESS_FILE = $(LOG)/.master_address
COLLECTOR_ADDRESS_FILE = $(LOG)/.collector_address
SCHEDD_ADDRESS_FILE = $(LOG)/.schedd_address
"""


def _network(port: int) -> str:
    # one port for all: a restarted master is where the old one was, so that clients find it again
    return f"""
DAEMON_LIST = MASTER COLLECTOR NEGOTIATOR SCHEDD STARTD
CONDOR_HOST = 127.0.0.1
COLLECTOR_HOST = 127.0.0.1:{port}
SHARED_PORT_PORT = {port}
BIND_ALL_INTERFACES = False
NETWORK_INTERFACE = 127.0.0.1
NETWORK_HOSTNAME = localhost
ENABLE_IPV6 = False
UID_DOMAIN = localhost
FILESYSTEM_DOMAIN = localhost
TRUST_UID_DOMAIN = True
CONDOR_DEVELOPERS = NONE
CONDOR_DEVELOPERS_COLLECTOR = NONE
"""


def _security(user: str) -> str:
    # FS: whoever can make a folder in /tmp as the daemons' user is that user. Clients of 24 and
    # later need the first line with a 23.x server.
    roles = ("READ", "WRITE", "DAEMON", "ADMINISTRATOR", "NEGOTIATOR")
    roles += ("ADVERTISE_MASTER", "ADVERTISE_STARTD", "ADVERTISE_SCHEDD")
    allowed = "\n".join(f"ALLOW_{role} = {user}@$(UID_DOMAIN)" for role in roles)
    return f"""
SEC_FS_ENFORCE_CHANNEL_BINDING = False
SEC_DEFAULT_AUTHENTICATION = REQUIRED
SEC_DEFAULT_AUTHENTICATION_METHODS = FS
{allowed}
ALLOW_CLIENT = *
"""


# Intervals in seconds, all much shorter than a site's: a job takes 1-2 s from submission to end.
QUICK = """
UPDATE_INTERVAL = 5
POLLING_INTERVAL = 1
NEGOTIATOR_INTERVAL = 2
NEGOTIATOR_MIN_INTERVAL = 1
NEGOTIATOR_CYCLE_DELAY = 1
SCHEDD_INTERVAL = 2
SCHEDD_MIN_INTERVAL = 1
STARTER_UPDATE_INTERVAL = 2
STARTER_INITIAL_UPDATE_INTERVAL = 1
SHADOW_QUEUE_UPDATE_INTERVAL = 2
PERIODIC_EXPR_INTERVAL = 2
MAX_PERIODIC_EXPR_INTERVAL = 4
PERIODIC_EXPR_TIMESLICE = 0.9
JOB_START_DELAY = 0
MACHINE_MAX_VACATE_TIME = 3
SHUTDOWN_GRACEFUL_TIMEOUT = 8
MASTER_BACKOFF_CONSTANT = 1
MASTER_BACKOFF_FACTOR = 1
RunBenchmarks = False
SCHEDD_ASSUME_NEGOTIATOR_GONE = 30
"""


def _slot(cpus: int, memory_mb: int) -> str:
    # No cgroups: memory is measured all the same, so that policies on it work.
    return f"""
START = True
SUSPEND = False
PREEMPT = False
KILL = False
WANT_SUSPEND = False
WANT_VACATE = False
NUM_CPUS = {cpus}
MEMORY = {memory_mb}
NUM_SLOTS = 1
NUM_SLOTS_TYPE_1 = 1
SLOT_TYPE_1 = 100%
SLOT_TYPE_1_PARTITIONABLE = True
BASE_CGROUP =
CGROUP_MEMORY_LIMIT_POLICY = none
SINGULARITY =
DOCKER =
STARTD_ENFORCE_DISK_LIMITS = False
"""
