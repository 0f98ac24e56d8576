"""What is known of a Pulsar job by its id: its job directory, or the ledger where that is gone."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Optional

from pulsar_failure_reasons.app_config import AppConfig, ConfiguredManager, load_app_config
from pulsar_failure_reasons.cli.answer import answer_of_record, answer_without_record
from pulsar_failure_reasons.errors import ConfigurationError
from pulsar_failure_reasons.job_record import load_current_record
from pulsar_failure_reasons.ledger.settings import LedgerSettings, ledger_settings, sqlite_path


def explain_job(app_path: str, job_id: str, manager_name: Optional[str]) -> Dict[str, Any]:
    """Return the answer for a job of a Pulsar server.

    Raises:
        ConfigurationError: app.yml cannot be read, has no such manager, or there is no trace of
            the job.
        LedgerError: the ledger is there and cannot be read.
    """
    config = load_app_config(app_path)
    managers = _managers(config, manager_name)
    for manager in managers:
        if _is_job_id(job_id) and os.path.isdir(os.path.join(manager.staging_directory, job_id)):
            return {"manager": manager.name, "job_id": job_id, **_explain(manager, job_id)}
    places = sorted({manager.staging_directory for manager in managers})
    for manager in managers:
        settings = ledger_settings(manager.name, manager.options, config.persistence_directory)
        if isinstance(settings, LedgerSettings):
            found = _newest_in_ledger(settings.url, job_id, manager.name)
            if found is not None:
                return found
            places.append(f"the ledger {settings}")
    raise ConfigurationError(
        f"there is no job {job_id!r} in {', '.join(places)}; a relative folder in app.yml is taken "
        "from the current one: run this in the one that Pulsar runs in"
    )


def _newest_in_ledger(url: str, job_id: str, manager_name: str) -> Optional[Dict[str, Any]]:
    """Return the answer of the ledger, None where it has no failure of the job or is not there."""
    from pulsar_failure_reasons.ledger.database import LedgerDatabase
    from pulsar_failure_reasons.ledger.lookup import find_failures

    path = sqlite_path(url)
    if path is not None and not os.path.exists(path):
        return None  # no job has ended yet
    failures = find_failures(LedgerDatabase(url, read_only=True), job_id, manager_name)
    if not failures:
        return None
    answer = answer_of_record(failures[0].reason)
    return {"manager": manager_name, "job_id": job_id, **answer, "read_from": "ledger"}


def _managers(config: AppConfig, name: Optional[str]) -> List[ConfiguredManager]:
    found = [manager for manager in config.managers if name in (None, manager.name)]
    if not found:
        known = ", ".join(manager.name for manager in config.managers)
        raise ConfigurationError(f"{config.path} has no manager {name!r}; it has: {known}")
    return found


def _is_job_id(job_id: str) -> bool:
    return bool(job_id) and os.sep not in job_id and not job_id.startswith(".")


def _explain(manager: ConfiguredManager, job_id: str) -> Dict[str, Any]:
    from pulsar import locks
    from pulsar.managers.base import JobDirectory

    directory = JobDirectory(manager.staging_directory, job_id, locks.LockManager())
    reason = load_current_record(directory)
    if reason is not None:
        return answer_of_record(reason)
    external_id = _load(directory, "external_id")
    ended, message = _without_reason(directory)
    return answer_without_record(ended, message, external_id and str(external_id))


def _without_reason(directory: Any) -> Any:
    """Return (ended, message) for a job directory that holds no reason."""
    status = _load(directory, "final_status")
    if status == "complete":
        return True, "the job ended well, or with its tool's own exit code, which Galaxy judges"
    if status == "cancelled" or directory.has_metadata("cancelled"):
        return True, "the job was cancelled by Galaxy"
    if status is not None:
        return None, f"the job is {status}, and no reason was recorded: see Pulsar's log"
    if directory.has_metadata("running"):
        return False, "the job has not ended, as far as Pulsar has noted: it is running"
    return False, "the job has not ended, as far as Pulsar has noted: it was not seen running yet"


def _load(directory: Any, name: str) -> Any:
    try:
        return directory.load_metadata(name)
    except (ValueError, OSError):
        return None
