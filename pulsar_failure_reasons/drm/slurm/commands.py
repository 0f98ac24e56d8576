"""The command lines for Slurm, as argv lists."""

from __future__ import annotations

import re
from typing import Dict, List, Mapping, Optional, Sequence

from ...errors import OutputParseError
from ..external_ids import parse_external_id

#: squeue's fields. tres-alloc has the memory of the whole job, which MinMemory (per CPU or per
#: node, it does not say) has not; where it is not known (before 20.02) squeue leaves it empty.
SQUEUE_FIELDS = (
    "ArrayJobID", "ArrayTaskID", "JobID", "HetJobID", "HetJobOffset", "State", "Reason",
    "exit_code", "RestartCnt", "SubmitTime", "StartTime", "EndTime", "TimeUsed", "TimeLimit",
    "tres-alloc", "MinMemory", "NumCPUs", "NumNodes", "NodeList", "WorkDir",
    "Name",
)

SACCT_FIELDS = (
    "JobID", "State", "ExitCode", "Submit", "Start", "End", "Elapsed", "Timelimit", "ReqMem",
    "AllocCPUS", "NNodes", "MaxRSS", "NodeList", "WorkDir", "JobName",
)

#: Variables that change what Slurm's commands ask for or print.
_SCRUBBED = re.compile(
    r"(?:SQUEUE|SACCT|SCONTROL|SCANCEL|SBATCH|LC)_.*|LANG|LANGUAGE"
    r"|SLURM_(?:TIME_FORMAT|CLUSTERS|JSON|YAML|BITSTR_LEN|DEBUG_FLAGS)"
)

# A digit first would be read as the width of the column, "," and "%" have meanings of their own.
_SEPARATOR = re.compile(r"[^0-9A-Za-z.,%\s:-][0-9A-Za-z]{4,}[^0-9A-Za-z.,%\s:-]")
_CLUSTER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


def clean_environment(environment: Mapping[str, str]) -> Dict[str, str]:
    """Return an environment in which Slurm's commands answer as these parsers expect.

    Their own variables are left out (``SQUEUE_FORMAT``, ``SLURM_TIME_FORMAT`` ...; what
    says where the cluster is stays, ``SLURM_CONF``), and the locale is C.
    """
    kept = {k: v for k, v in environment.items() if not _SCRUBBED.fullmatch(k)}
    # Longer than any task list of an array: a list that is cut cannot be searched.
    return {**kept, "LC_ALL": "C", "SLURM_BITSTR_LEN": "0"}


def squeue_command(user: str, separator: str, cluster: Optional[str] = None) -> List[str]:
    """Return the command that lists all jobs of a user that slurmctld knows, ended ones too.

    By user, because slurmctld filters by one user itself, while for a list of ids it sends
    every job of the cluster. With its row of headings: see :mod:`.rows`.

    Args:
        user: A login name or uid.
        separator: Random for each query, like ``@f3a9c1@``.
        cluster: For ``--clusters``; None asks the default cluster.

    Raises:
        ValueError: a user, separator or cluster that cannot be one.
    """
    if not user or re.search(r"[\s,]", user):
        raise ValueError(f"not a user: {user!r}")
    columns = ",".join(f"{name}:{_checked_separator(separator)}" for name in SQUEUE_FIELDS)
    return [
        "squeue", "--all", "--states=all", f"--user={user}", *_clusters(cluster),
        f"--Format={columns}",
    ]


def sacct_command(
    external_ids: Sequence[str], separator: str, cluster: Optional[str] = None
) -> List[str]:
    """Return the command that lists what accounting knows of these jobs, steps included.

    Raises:
        OutputParseError: one of the ids is none.
        ValueError: no ids, or a separator or cluster that cannot be one.
    """
    if not external_ids:
        # Without ids sacct lists everything since midnight.
        raise ValueError("no ids to ask accounting for")
    ids = list(dict.fromkeys(_accounting_id(external_id) for external_id in external_ids))
    return [
        "sacct", "--parsable", f"--delimiter={_checked_separator(separator)}",
        *_clusters(cluster), f"--format={','.join(SACCT_FIELDS)}", f"--jobs={','.join(ids)}",
    ]


def scontrol_show_command(external_id: str, cluster: Optional[str] = None) -> List[str]:
    """Return the command that shows one job.

    Raises:
        OutputParseError: the id is none.
        ValueError: a cluster that cannot be one.
    """
    return [
        "scontrol", *_clusters(cluster), "--oneliner", "show", "job", _control_id(external_id)
    ]


def scancel_command(external_ids: Sequence[str], cluster: Optional[str] = None) -> List[str]:
    """Return the command that cancels these jobs.

    Raises:
        OutputParseError: one of the ids is none.
        ValueError: no ids, or a cluster that cannot be one.
    """
    if not external_ids:
        raise ValueError("no ids to cancel")
    return ["scancel", *_clusters(cluster), *(_control_id(i) for i in external_ids)]


def sbatch_command(
    script: str,
    *,
    job_name: str,
    stdout: str,
    stderr: str,
    workdir: str,
    native_specification: Sequence[str] = (),
    cluster: Optional[str] = None,
) -> List[str]:
    """Return the command that submits a script.

    The last of two equal options wins in sbatch. So the operator's native specification comes
    after name and folder, which it may change, and before the output files, which it may not:
    the DRM's messages are read there.

    Raises:
        ValueError: a cluster that cannot be one.
    """
    return [
        "sbatch", "--parsable", f"--job-name={job_name}", f"--chdir={workdir}",
        *_clusters(cluster), *native_specification,
        f"--output={_literal_path(stdout)}", f"--error={_literal_path(stderr)}",
        script,
    ]


def parse_submission(text: str) -> str:
    """Return the external id that sbatch printed, as slurm-drmaa would store it.

    ``123``, or ``123.cluster`` for ``123;cluster``. The last line of that form counts, since
    sites print banners, with digits in them, before it.

    Raises:
        OutputParseError: no line has that form.
    """
    for line in reversed(text.splitlines()):
        match = re.fullmatch(r"\s*([1-9][0-9]{0,17})(?:;([A-Za-z0-9_][\w.-]*))?\s*", line, re.ASCII)
        match = match or re.fullmatch(
            r"\s*Submitted batch job ([1-9][0-9]{0,17})(?: on cluster ([A-Za-z0-9_][\w.-]*))?\s*",
            line,
            re.ASCII,
        )
        if match:
            return f"{match.group(1)}.{match.group(2)}" if match.group(2) else match.group(1)
    raise OutputParseError(
        f"sbatch printed no job id: {text[-200:]!r}; expected a last line like 123 or 123;cluster"
    )


def _literal_path(path: str) -> str:
    # sbatch replaces %j and the like in file names.
    return path.replace("%", "%%")


def _checked_separator(separator: str) -> str:
    if not _SEPARATOR.fullmatch(separator):
        raise ValueError(f"not a separator: {separator!r}; expected e.g. @f3a9c1@")
    return separator


def _clusters(cluster: Optional[str]) -> List[str]:
    if cluster is None:
        return []
    if not _CLUSTER.fullmatch(cluster):
        raise ValueError(f"not the name of a cluster: {cluster!r}")
    return [f"--clusters={cluster}"]


def _accounting_id(external_id: str) -> str:
    """One task is asked for by itself; all others by the whole job, and picked out after."""
    parsed = parse_external_id(external_id)
    if len(parsed.tasks) == 1 and parsed.tasks[0][0] == parsed.tasks[0][1]:
        return f"{parsed.base}_{parsed.tasks[0][0]}"
    return parsed.base


def _control_id(external_id: str) -> str:
    parsed = parse_external_id(external_id)
    if parsed.component is not None:
        return f"{parsed.base}+{parsed.component}"
    if not parsed.is_element:
        return parsed.base
    if not parsed.tasks:
        raise OutputParseError(f"the tasks of {external_id!r:.80} are cut short")
    if len(parsed.tasks) == 1 and parsed.tasks[0][0] == parsed.tasks[0][1]:
        return f"{parsed.base}_{parsed.tasks[0][0]}"
    ranges = ",".join(
        f"{first}-{last}" + (f":{step}" if step > 1 else "") if last != first else str(first)
        for first, last, step in parsed.tasks
    )
    return f"{parsed.base}_[{ranges}]"
