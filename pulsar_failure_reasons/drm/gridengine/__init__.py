"""Grid Engine (SGE, Son of Grid Engine, Univa, Altair). Pure: text in, values out.

==================  ==================================================================
``states``          the job states, words made of letters
``failed``          qacct's failed codes
``limits``          what was asked for, what was used, which limit that reaches
``classify``        how a job ended; why one is in error
``commands``        argv lists; qsub's answer
``qstat``           the batched question to qmaster, and error reasons
``qacct``           the records of accounting
``command_errors``  what a failed command means
``stderr``          nothing: Grid Engine writes none
``captured``        texts as people copy them, for ``explain``
==================  ==================================================================
"""

from __future__ import annotations

from .captured import read_captured
from .classify import classify_error_reason, how_it_ended
from .command_errors import error_from_command
from .commands import (
    clean_environment,
    parse_submission,
    qacct_command,
    qacct_user_command,
    qdel_command,
    qstat_command,
    qstat_details_command,
    qsub_command,
)
from .failed import FAILED_CODES
from .qacct import parse_qacct
from .qstat import parse_error_reasons, parse_qstat, parse_workdirs, with_error_reasons
from .states import StateLetter, canonical_state, is_being_deleted, phase_of
from .stderr import classify_stderr

#: For people.
LABEL = "Grid Engine"
#: What else people call it.
OTHER_NAMES = ("sge", "uge")

#: What an admin would ask about one job: the qmaster first, then accounting.
EXPLAIN_COMMANDS = (
    ("qstat", "-j", "{id}"),
    ("qacct", "-j", "{id}"),
)

__all__ = [
    "EXPLAIN_COMMANDS",
    "FAILED_CODES",
    "LABEL",
    "OTHER_NAMES",
    "StateLetter",
    "canonical_state",
    "classify_error_reason",
    "classify_stderr",
    "clean_environment",
    "error_from_command",
    "how_it_ended",
    "is_being_deleted",
    "parse_error_reasons",
    "parse_qacct",
    "parse_qstat",
    "parse_submission",
    "parse_workdirs",
    "phase_of",
    "qacct_command",
    "qacct_user_command",
    "qdel_command",
    "qstat_command",
    "qstat_details_command",
    "qsub_command",
    "read_captured",
    "with_error_reasons",
]
