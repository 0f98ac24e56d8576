"""The configuration files of a private Slurm, as text."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import List, Optional

CLUSTER = "private"
MAIN, PREEMPT_REQUEUE, PREEMPT_CANCEL, URGENT = "main", "requeued", "cancelled", "urgent"

# partition: (PriorityTier, PreemptMode, further options)
PARTITIONS = {
    MAIN: (5, "OFF", "Default=YES"),
    PREEMPT_REQUEUE: (1, "REQUEUE", ""),
    PREEMPT_CANCEL: (1, "CANCEL", ""),
    URGENT: (10, "OFF", ""),
}

CGROUP_CONF = """CgroupPlugin=cgroup/v1
ConstrainRAMSpace=yes
AllowedRAMSpace=100
MinRAMSpace=1
"""


@dataclass(frozen=True)
class Layout:
    """Where a private cluster lives: folders, ports, names."""

    home: Path
    port: int
    host: str
    user: str
    nodes: List[str]
    plugin_dir: Optional[Path]
    """None: the program's own default."""

    @property
    def etc(self) -> Path:
        """The folder of the configuration files."""
        return self.home / "etc"

    @property
    def conf(self) -> Path:
        """What SLURM_CONF points to."""
        return self.etc / "slurm.conf"

    @property
    def patient_conf(self) -> Path:
        """The same for the harness's own commands, which wait long for an answer."""
        return self.etc / "patient.conf"

    @property
    def munge_socket(self) -> Path:
        """The socket of the cluster's own munged."""
        return self.home / "munge" / "socket"

    @property
    def database_socket(self) -> Path:
        """The only way to its MariaDB, which listens on no port."""
        return self.home / "database" / "socket"

    @property
    def ctld_port(self) -> int:
        """slurmctld's port."""
        return self.port

    @property
    def dbd_port(self) -> int:
        """slurmdbd's port."""
        return self.port + 1

    def node_port(self, index: int) -> int:
        """Return the port of the slurmd of a node."""
        return self.port + 2 + index


def auth_lines(layout: Layout, auth: str) -> List[str]:
    """Return the authentication lines that slurm.conf and slurmdbd.conf share."""
    if auth == "none":
        return ["AuthType=auth/none"]
    return ["AuthType=auth/munge", f"AuthInfo=socket={layout.munge_socket}"]


def plugin_lines(layout: Layout) -> List[str]:
    """Return the PluginDir line of an unpacked Slurm."""
    return [f"PluginDir={layout.plugin_dir}"] if layout.plugin_dir else []


def slurmdbd_conf(layout: Layout, auth: str) -> str:
    """Return slurmdbd.conf. MariaDB lets its own user in by the socket, without a password."""
    return "\n".join(
        [
            *auth_lines(layout, auth),
            *plugin_lines(layout),
            f"DbdHost={layout.host}",
            "DbdAddr=127.0.0.1",
            f"DbdPort={layout.dbd_port}",
            # without it slurmdbd listens on all interfaces
            "CommunicationParameters=NoInAddrAny",
            f"SlurmUser={layout.user}",
            f"PidFile={layout.home}/run/slurmdbd.pid",
            f"LogFile={layout.home}/log/slurmdbd.log",
            "DebugLevel=info",
            "StorageType=accounting_storage/mysql",
            "StorageHost=localhost",
            f"StorageUser={layout.user}",
            "StorageLoc=slurm_acct_db",
            "",
        ]
    )


def accounting_lines(layout: Layout, auth: str, accounting: bool, enforce: bool) -> List[str]:
    """Return slurm.conf's accounting lines."""
    if not accounting:
        return ["AccountingStorageType=accounting_storage/none"]
    lines = [
        "AccountingStorageType=accounting_storage/slurmdbd",
        "AccountingStorageHost=127.0.0.1",
        f"AccountingStoragePort={layout.dbd_port}",
        "AccountingStoreFlags=job_comment",
    ]
    if auth == "munge":
        # without this sacct looks for munge's standard socket, whatever AuthInfo says
        lines.append(f"AccountingStoragePass={layout.munge_socket}")
    if enforce:
        lines.append("AccountingStorageEnforce=associations,limits,qos")
    return lines


def limit_lines(cgroup: bool) -> List[str]:
    """Return the lines that say how processes are tracked and memory limits enforced."""
    if cgroup:
        return ["ProctrackType=proctrack/cgroup", "TaskPlugin=task/cgroup"]
    return [
        "ProctrackType=proctrack/linuxproc",
        "TaskPlugin=task/none",
        "JobAcctGatherParams=OverMemoryKill",
    ]


def cgroup_conf(cgroup: bool, version: str) -> Optional[str]:
    """Return cgroup.conf, or None where there must be none."""
    if cgroup:
        return CGROUP_CONF + ("CgroupAutomount=no\n" if version == "22.05" else "")
    # 24.11 picks a plugin by itself, and fails where it finds none that works
    return None if version == "22.05" else "CgroupPlugin=disabled\n"


def node_lines(layout: Layout, memory_mb: int) -> List[str]:
    """Return one line per virtual node, each with a slurmd port of its own."""
    return [
        f"NodeName={name} NodeHostname={layout.host} NodeAddr=127.0.0.1 "
        f"Port={layout.node_port(index)} CPUs=4 RealMemory={memory_mb} State=UNKNOWN"
        for index, name in enumerate(layout.nodes)
    ]


def partition_lines() -> List[str]:
    """Return the partitions: one for all, two whose jobs the fourth one's throw out."""
    return ["PreemptType=preempt/partition_prio", "PreemptMode=REQUEUE"] + [
        f"PartitionName={name} Nodes=ALL MaxTime=INFINITE State=UP PriorityTier={tier} "
        f"PreemptMode={mode} {more}"
        for name, (tier, mode, more) in PARTITIONS.items()
    ]


def slurm_conf(
    layout: Layout,
    *,
    auth: str,
    accounting: bool,
    enforce: bool,
    cgroup: bool,
    min_job_age_s: int,
    slurmd_timeout_s: int,
    message_timeout_s: int,
    memory_mb: int,
    private_data: bool,
    extra_conf: str,
) -> str:
    """Return slurm.conf."""
    home = layout.home
    return "\n".join(
        [
            f"ClusterName={CLUSTER}",
            *plugin_lines(layout),
            f"SlurmctldHost={layout.host}(127.0.0.1)",
            f"SlurmctldPort={layout.ctld_port}",
            f"SlurmUser={layout.user}",
            f"SlurmdUser={layout.user}",
            *auth_lines(layout, auth),
            f"CredType=cred/{auth}",
            # the daemons bind to the address of the host's name, which must be a loopback one
            "CommunicationParameters=NoCtldInAddrAny,NoInAddrAny",
            f"StateSaveLocation={home}/ctld",
            f"SlurmdSpoolDir={home}/spool/%n",
            f"SlurmctldPidFile={home}/run/slurmctld.pid",
            f"SlurmdPidFile={home}/run/slurmd-%n.pid",
            f"SlurmctldLogFile={home}/log/slurmctld.log",
            f"SlurmdLogFile={home}/log/slurmd-%n.log",
            "MpiDefault=none",
            *limit_lines(cgroup),
            "JobAcctGatherType=jobacct_gather/linux",
            "JobAcctGatherFrequency=task=1",
            "SelectType=select/cons_tres",
            "SelectTypeParameters=CR_Core_Memory",
            "DefMemPerCPU=100",
            "SchedulerType=sched/backfill",
            "PriorityType=priority/basic",
            "SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0,"
            "bf_interval=1",
            # 2 would bring back at once a node that was declared down while its slurmd lives
            "ReturnToService=1",
            f"MinJobAge={min_job_age_s}",
            "KillWait=2",
            "OverTimeLimit=0",
            f"MessageTimeout={message_timeout_s}",
            f"SlurmdTimeout={slurmd_timeout_s}",
            "MaxJobCount=20000",
            "MaxArraySize=2001",
            "SlurmdParameters=config_overrides",
            *(["PrivateData=jobs,usage"] if private_data else []),
            *accounting_lines(layout, auth, accounting, enforce),
            *node_lines(layout, memory_mb),
            *partition_lines(),
            extra_conf,
            "",
        ]
    )
