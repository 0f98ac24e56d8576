"""A stock Pulsar in this process, and active jobs for its managers that no DRM has to start."""

from __future__ import annotations

import os
import pwd
from pathlib import Path
from typing import Any, List, Mapping, Sequence

from pulsar.core import PulsarApp
from pulsar.managers.stateful import JOB_FILE_PREPROCESSED, JOB_METADATA_RUNNING

import pulsar_failure_reasons

pulsar_failure_reasons.install()  # harmless where the .pth has done so

#: The observer's own thread looks once and then sleeps: we make the passes.
OURS = {"type": "queued_slurm", "status_poll_interval": 3600}
STOCK = {"type": "queued_cli", "shell_plugin": "LocalShell", "job_plugin": "Slurm"}


class PulsarSite:
    """A Pulsar whose managers are asked by nobody but us (no message queue, so no monitor)."""

    def __init__(self, home: Path, managers: Mapping[str, Mapping[str, Any]]) -> None:
        self.app = PulsarApp(
            staging_directory=str(home / "staging"),
            persistence_directory=str(home / "persisted"),
            tool_dependency_dir="none",
            managers=managers,
        )

    def __enter__(self) -> PulsarSite:
        return self

    def __exit__(self, *_: object) -> None:
        self.app.shutdown(10)

    def proxy(self, name: str) -> Any:
        """Return a manager as Pulsar itself uses it, in its ``StatefulManagerProxy``."""
        return self.app.managers[name]


def user_name() -> str:
    """Return the name of the user we run as, whose jobs the manager asks for."""
    return pwd.getpwuid(os.geteuid()).pw_name


def job_ids(manager_name: str, count: int) -> List[str]:
    """Return job_ids; each manager has its own, since they share one staging folder."""
    return [f"{manager_name}-{number}" for number in range(count)]


def job_name(job_id: str) -> str:
    """Return the name under which Pulsar submits a job."""
    return f"pulsar_{job_id}"


def make_active(proxy: Any, ids: Sequence[str], external_ids: Sequence[str]) -> None:
    """Make jobs as they are after submission, each known to Galaxy as running."""
    for job_id, external_id in zip(ids, external_ids):
        proxy.setup_job(job_id, None, None)
        manager = proxy._proxied_manager
        manager._register_external_id(job_id, external_id)
        for name in (JOB_FILE_PREPROCESSED, JOB_METADATA_RUNNING):
            manager.job_directory(job_id).store_metadata(name, True)
        proxy.active_jobs.activate_job(job_id)


def watching(proxy: Any, ids: Sequence[str]) -> Any:
    """Return the observer of a queued_slurm manager: it watches these jobs, its thread is ended."""
    manager = proxy._proxied_manager
    for job_id in ids:
        manager.get_status(job_id)
    observer = manager.observer(None)
    observer.stop(60)
    assert observer.watched() == len(ids), (observer.watched(), len(ids))
    return observer
