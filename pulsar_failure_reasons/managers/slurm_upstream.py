"""Three functions with the names and signatures of Pulsar's own plan for runner states.

Thin over :mod:`pulsar_failure_reasons.drm.slurm`, :mod:`pulsar_failure_reasons.execute` and
:mod:`pulsar_failure_reasons.stderr_tail`. In spirit they are Galaxy's Slurm runner
(``galaxy.jobs.runners.slurm``): the controller is asked first, accounting only when the
controller has forgotten the job.
"""

from __future__ import annotations

import os
import secrets
from typing import Callable, Optional, Sequence, Tuple

from ..drm.base import Ending, JobView, Phase
from ..drm.combine import combine_views
from ..drm.external_ids import parse_external_id, same_job
from ..drm.slurm import (
    SlurmState,
    classify_stderr,
    clean_environment,
    describe_state,
    error_from_command,
    parse_sacct,
    parse_scontrol,
    sacct_command,
    scontrol_show_command,
)
from ..errors import OutputParseError
from ..execute import CommandResult, run
from ..reason import CAUSE_TABLE, Cause
from ..stderr_tail import read_tail

TIMEOUT_S = 20.0

#: Runs an argv list for at most so many seconds.
ExecuteCommand = Callable[[Sequence[str], float], CommandResult]

#: Galaxy's own word for a job that neither the controller nor accounting knows.
NOT_FOUND = "NOT_FOUND"

MEMORY_MESSAGE = "This job was terminated because it used more memory than it was allocated."

_MESSAGES = {
    Cause.WALLTIME: "This job was terminated because it ran longer than the maximum allowed "
    "job run time.",
    Cause.MEMORY: MEMORY_MESSAGE,
    Cause.CANCELLED: "This job was cancelled outside Galaxy.",
    Cause.PREEMPTED: "This job was preempted: it made way for another job.",
    Cause.NODE_FAILURE: "This job failed because its node failed.",
}


def slurm_job_state(
    job_id: str, cluster: Optional[str] = None, execute: Optional[ExecuteCommand] = None
) -> str:
    """Return the job's state as Slurm's full word, or ``NOT_FOUND``.

    Args:
        job_id: The external id, with or without its cluster (``123.cluster``).
        cluster: For ``--clusters``; None takes the one of the id, if it names one.
        execute: Called as ``execute(argv, timeout_s)``; None runs the command.

    Raises:
        DrmError: Slurm did not answer, or answered what we cannot read. That is no state.
    """
    execute = execute or _run
    cluster = cluster or parse_external_id(job_id).suffix
    argv = scontrol_show_command(job_id, cluster)
    result = execute(argv, TIMEOUT_S)
    # scontrol says "Job 13_7 not found" on stdout.
    error = error_from_command(argv, result.returncode, f"{result.stderr}\n{result.stdout}")
    if error is not None:
        raise error
    if result.returncode == 0:
        try:
            return parse_scontrol(result.stdout).job_state
        except OutputParseError:
            # With --clusters an unknown job can leave rc 0 and no record.
            if result.stdout.strip():
                raise
    view = _accounting_view(job_id, cluster, execute)
    return view.job_state if view else NOT_FOUND


def _run(argv: Sequence[str], timeout_s: float) -> CommandResult:
    return run(argv, timeout_s=timeout_s, env=clean_environment(os.environ))


def _accounting_view(
    job_id: str, cluster: Optional[str], execute: ExecuteCommand
) -> Optional[JobView]:
    separator = f"@{secrets.token_hex(6)}@"
    argv = sacct_command([job_id], separator, cluster)
    result = execute(argv, TIMEOUT_S)
    error = error_from_command(argv, result.returncode, result.stderr)
    if error is not None:
        raise error
    views = [v for v in parse_sacct(result.stdout, separator) if same_job(job_id, v.external_id)]
    return combine_views(views) if views else None


def check_memory_limit(efile_path: str) -> Optional[str]:
    """Return a message if Slurm wrote into this stderr file that it killed for memory, else None.

    None too where the file is missing or cannot be read.
    """
    finding = classify_stderr(read_tail(efile_path), None)
    return MEMORY_MESSAGE if finding and finding.cause is Cause.MEMORY else None


def classify_slurm_state(
    slurm_state: str, error_file: Optional[str] = None
) -> Tuple[Optional[str], Optional[str]]:
    """Return (Galaxy's runner_state token, message) for a Slurm job state.

    (None, None) where there is nothing to tell: the job has not ended, ended well, ended by
    itself, or Slurm's word is not known.

    Args:
        slurm_state: In any spelling.
        error_file: The job's stderr, in which a cancelled or failed job may turn out to have
            been killed for memory or time; None looks at no file.
    """
    described = describe_state(slurm_state)
    if described.phase is not Phase.ENDED or described.end is None:
        return None, None
    cause = described.end.cause
    if described.end.ending in (Ending.BADLY, Ending.CANCELLED) and error_file:
        finding = classify_stderr(read_tail(error_file), None)
        if finding is not None and CAUSE_TABLE[finding.cause].runner_state is not None:
            cause = finding.cause
    if cause is None:
        return None, None
    if described.state is SlurmState.DEADLINE:
        return CAUSE_TABLE[cause].runner_state, "This job was terminated at its deadline."
    return CAUSE_TABLE[cause].runner_state, _MESSAGES.get(cause, CAUSE_TABLE[cause].meaning)
