"""How the observer and the manager look at Slurm: its commands, and nothing remembered but
whether accounting is there.
"""

from __future__ import annotations

import logging
import secrets
from typing import List, Optional, Sequence

from ..drm.base import JobView
from ..drm.slurm import (
    clean_environment,
    error_from_command,
    parse_sacct,
    parse_squeue,
    parse_submission,
    sacct_command,
    scancel_command,
    squeue_command,
)
from ..errors import AccountingDisabledError, SubmissionRefusedError
from ..execute import CommandResult
from .commands import CleanEnvironment, Commands

log = logging.getLogger("pulsar.failure_reasons.slurm")

#: Ids per sacct command: far below the kernel's limit for one argument (128 KiB).
IDS_PER_COMMAND = 5000


class SlurmSource:
    """Slurm's commands for one cluster and user (see ``drm.base.DrmSource``).

    Args:
        commands: Where Slurm's commands run.
        cluster: For ``-M``; None asks the default cluster.
        accounting: ``auto`` (where sacct is there and not disabled), ``sacct`` or ``none``.
    """

    label = "Slurm"

    def __init__(
        self, commands: Commands, cluster: Optional[str] = None, accounting: str = "auto"
    ) -> None:
        self._commands = commands
        self._cluster = cluster
        self._accounting = accounting
        self._told_that_accounting_is_off = False

    def query_jobs(self) -> Sequence[JobView]:
        """See ``drm.base.DrmSource``; one squeue command.

        The row of headings and exit code 0 are an answer, also with errors on stderr: some sites'
        squeue complains of its configuration every time. The one error that is none ("Invalid
        user") is told by :func:`error_from_command`.
        """
        separator = _fresh_separator()
        result = self._run(squeue_command(self._commands.user(), separator, self._cluster))
        return parse_squeue(result.stdout, separator)

    def query_ended(self, external_ids: Sequence[str]) -> Optional[List[JobView]]:
        """See ``drm.base.DrmSource``; one sacct command per 5000 ids."""
        if self._accounting == "none":
            return None
        if self._accounting == "auto" and not self._commands.has("sacct"):
            return None
        views: List[JobView] = []
        try:
            for start in range(0, len(external_ids), IDS_PER_COMMAND):
                separator = _fresh_separator()
                ids = external_ids[start:start + IDS_PER_COMMAND]
                result = self._run(sacct_command(ids, separator, self._cluster))
                views.extend(parse_sacct(result.stdout, separator))
        except AccountingDisabledError as error:
            if self._accounting == "sacct":
                raise
            if not self._told_that_accounting_is_off:
                self._told_that_accounting_is_off = True
                log.warning(
                    "%s: the end of a job that slurmctld has forgotten can only be inferred "
                    "(accounting: none silences this)", error,
                )
            return None
        return views

    def cancel(self, external_ids: Sequence[str]) -> None:
        """See ``drm.base.DrmSource``; one scancel command."""
        self._run(scancel_command(external_ids, self._cluster))

    def submit(self, argv: Sequence[str]) -> str:
        """Run an sbatch command and return the external id.

        Raises:
            SubmissionRefusedError: with Slurm's own words.
            DrmError: Slurm gave no answer; the job may have been submitted all the same.
        """
        if not self._commands.has(argv[0]):
            # Nothing was asked of Slurm, so there is no doubt about the job.
            raise SubmissionRefusedError(f"cannot run {argv[0]}: it is not on PATH")
        # In its own environment: sbatch gives it to the job.
        return parse_submission(self._run(argv, clean=None).stdout)

    def _run(
        self, argv: Sequence[str], clean: Optional[CleanEnvironment] = clean_environment
    ) -> CommandResult:
        """Run a command; "unknown job id" is an answer, not an error."""
        result = self._commands.run(argv, clean)
        error = error_from_command(argv, result.returncode, result.stderr)
        if error is not None:
            raise error
        return result


def _fresh_separator() -> str:
    # Not to be guessed, so no job name or comment can hold it and pass for other fields.
    return f"@{secrets.token_hex(6)}@"
