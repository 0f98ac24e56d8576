"""``pulsar-failure-reasons reconcile``: bring Pulsar's jobs into line with what the DRM knows."""

from __future__ import annotations

import contextlib
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Iterator, List, Tuple

import click

from pulsar_failure_reasons.app_config import AppConfig, load_app_config
from pulsar_failure_reasons.cli.commands import Refused
from pulsar_failure_reasons.errors import ConfigurationError, DrmError

if TYPE_CHECKING:
    from pulsar_failure_reasons.managers.reconciling import Change, LookingWatch

#: For the last rows of the ledger, where its database is slow.
SHUTDOWN_TIMEOUT_S = 30.0
EPILOG = """\b
Examples:
  pulsar-failure-reasons reconcile /etc/pulsar/app.yml
  systemctl stop pulsar
  pulsar-failure-reasons reconcile /etc/pulsar/app.yml --apply
  systemctl start pulsar

\b
Exit code: 0 nothing to change, or all of it was changed; 1 there is something; 2 could not run.
"""


@click.command("reconcile", epilog=EPILOG)
@click.argument("app_yml")
@click.option("--apply", "applies", is_flag=True, help="Write it down; Pulsar must be stopped.")
@click.option("--server-is-stopped", "stopped", is_flag=True,
              help="With --apply, where the file system has no locks that would tell.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text")
def command(app_yml: str, applies: bool, stopped: bool, form: str) -> None:
    """Show which jobs of Pulsar's have ended, been lost or been left by a kill: one line a job.

    The DRM is asked once; what a server would give its missing_grace is shown as if that were over.
    Nothing is changed without --apply, beside a running Pulsar too. With it the DRM is asked until
    that grace is over, and what ends is written into the job directories: Pulsar then stages
    outputs back and tells Galaxy when it is started. A running Pulsar does all this by itself.
    """
    try:
        config = load_app_config(app_yml)
        with _pulsar_stopped(config, stopped) if applies else contextlib.nullcontext():
            changes, failures = _reconcile(config, applies)
    except (ConfigurationError, DrmError) as error:
        raise Refused(f"{error}; nothing was changed") from None
    except ImportError as error:
        raise Refused(
            f"{error}: run this with the Python of Pulsar's own environment") from None
    if form == "json":
        click.echo(json.dumps({"applied": applies, "jobs": [asdict(c) for c in changes]}, indent=2))
    else:
        for change in changes:
            click.echo(_line(change))
    _tell(len(changes), applies, failures)
    click.get_current_context().exit(1 if failures or (changes and not applies) else 0)


def _line(change: "Change") -> str:
    job = f"{change.manager}/{change.job_id} {change.external_id or '-'}"
    cause = f" ({change.cause})" if change.cause else ""
    return f"{job}: {change.was} -> {change.becomes}{cause}: {change.message}"


def _tell(count: int, applies: bool, failures: List[str]) -> None:
    for failure in failures:
        click.echo(f"not changed: {failure}", err=True)
    jobs = "1 job" if count == 1 else f"{count} jobs"
    if not count:
        click.echo("nothing to change", err=True)
    elif applies:
        click.echo(f"{jobs} changed; start Pulsar to have Galaxy told", err=True)
    else:
        click.echo(f"{jobs} would change; --apply does it while Pulsar is stopped", err=True)


def _reconcile(config: AppConfig, applies: bool) -> "Tuple[List[Change], List[str]]":
    """Return what changes and, with ``applies``, what could not be written."""
    from pulsar_failure_reasons.managers.reconciling import (
        MANAGERS,
        build_manager,
        look,
        watches_of,
    )

    if not any(found.type in MANAGERS for found in config.managers):
        raise ConfigurationError(
            f"{config.path} has no manager of the types {', '.join(sorted(MANAGERS))}"
        )
    with contextlib.ExitStack() as managers:
        watches: "List[LookingWatch]" = []
        for found in config.managers:
            manager = build_manager(
                found.type, found.name, found.options, found.staging_directory,
                config.persistence_directory, writes=applies,
            )
            if manager is not None:
                # The ledger's rows are written in a thread, which would end with this process.
                managers.callback(manager.shutdown, SHUTDOWN_TIMEOUT_S)
                watches += watches_of(manager, graceless=not applies)
        look(watches)
        return _changes(watches, applies)


def _changes(
    watches: "List[LookingWatch]", applies: bool
) -> "Tuple[List[Change], List[str]]":
    changes, failures = [], []
    for watch in watches:
        change = watch.change()
        if change is None:
            continue
        try:
            if applies:
                watch.apply()
            changes.append(change)
        except OSError as error:
            failures.append(f"{change.manager}/{change.job_id}: {error}")
    return changes, failures


@contextlib.contextmanager
def _pulsar_stopped(config: AppConfig, stopped: bool) -> Iterator[None]:
    """Hold the locks that a server would hold.

    Raises:
        ConfigurationError: a server holds one, or nobody can tell.
    """
    from pulsar_failure_reasons.managers.reconciling import MANAGERS
    from pulsar_failure_reasons.managers.server_lock import CannotTell, lock_path, no_server

    folder = config.persistence_directory
    if folder is None:
        raise ConfigurationError(
            f"{config.path} switches persistence off, so Pulsar would not find what is written; "
            "start it: it judges each job when Galaxy asks for it"
        )
    with contextlib.ExitStack() as stack:
        for manager in config.managers:
            if manager.type not in MANAGERS:
                continue
            try:
                alone = stack.enter_context(no_server(lock_path(folder, manager.name)))
            except CannotTell as error:
                if stopped:
                    continue
                raise ConfigurationError(
                    f"nobody can tell whether a Pulsar is running: {error}; if none is, add "
                    "--server-is-stopped"
                ) from None
            if not alone:
                raise ConfigurationError(
                    f"a Pulsar with the manager {manager.name} is running on {config.path}: it "
                    "does all this by itself; stop it first, or leave out --apply"
                )
        yield
