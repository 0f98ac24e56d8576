"""Slurm: job states, command lines, parsers and classifiers. Pure: text in, values out.

==================  ==================================================================
``states``          the job states and their spellings
``classify``        what a state says: phase, end, cause
``commands``        argv lists; sbatch's answer
``rows``            the framing of squeue's and sacct's answers
``squeue``          the batched question to slurmctld
``sacct``           the batched question to accounting
``scontrol``        one job as slurmctld shows it
``command_errors``  what a failed command means
``stderr``          Slurm's lines in a job's stderr
``captured``        texts as people copy them, for ``explain``
==================  ==================================================================
"""

from __future__ import annotations

from .captured import read_captured
from .classify import Description, describe_state, parse_exit_code
from .command_errors import error_from_command
from .commands import (
    clean_environment,
    parse_submission,
    sacct_command,
    sbatch_command,
    scancel_command,
    scontrol_show_command,
    squeue_command,
)
from .sacct import parse_sacct
from .scontrol import parse_scontrol
from .squeue import parse_squeue
from .states import COMPACT_CODES, END_STATES, SlurmState, cancelled_by, canonical_state
from .stderr import classify_stderr

#: For people.
LABEL = "Slurm"

#: What an admin would ask about one job: the controller first, then accounting.
EXPLAIN_COMMANDS = (
    ("scontrol", "--oneliner", "show", "job", "{id}"),
    ("sacct", "--parsable2", "--jobs", "{id}", "--format",
     "JobID,JobName,State,ExitCode,Elapsed,Timelimit,ReqMem,MaxRSS,NodeList"),
)

__all__ = [
    "COMPACT_CODES",
    "Description",
    "END_STATES",
    "EXPLAIN_COMMANDS",
    "LABEL",
    "SlurmState",
    "cancelled_by",
    "canonical_state",
    "classify_stderr",
    "clean_environment",
    "describe_state",
    "error_from_command",
    "parse_exit_code",
    "parse_sacct",
    "parse_scontrol",
    "parse_squeue",
    "parse_submission",
    "read_captured",
    "sacct_command",
    "sbatch_command",
    "scancel_command",
    "scontrol_show_command",
    "squeue_command",
]
