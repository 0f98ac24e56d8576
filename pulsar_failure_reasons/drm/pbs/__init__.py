"""OpenPBS, PBS Pro and Torque. Pure: text in, values out.

==================  ==================================================================
``flavour``         OpenPBS or Torque: asked first, numbers differ
``states``          the job states
``exit_status``     what Exit_status means, by flavour
``classify``        what a job's attributes say: phase, end, cause
``commands``        argv lists; qsub's answer
``qstat``           the batched answers: JSON, XML, plain text
``command_errors``  what a failed command means
``stderr``          ``=>> PBS: job killed`` in a job's stderr
``captured``        texts as people copy them, for ``explain``
==================  ==================================================================
"""

from __future__ import annotations

from .captured import read_captured
from .classify import PbsJob, view_of
from .command_errors import error_from_command
from .commands import (
    clean_environment,
    parse_qselect,
    parse_submission,
    qdel_command,
    qselect_command,
    qstat_command,
    qstat_text_command,
    qsub_command,
    tracejob_command,
    version_command,
)
from .exit_status import exit_code_of
from .flavour import Flavour, flavour_from_version, guess_flavour
from .qstat import parse_qstat_json, parse_qstat_text, parse_qstat_xml
from .states import PbsState, canonical_state
from .stderr import classify_stderr

#: For people.
LABEL = "PBS"
#: What else people call it.
OTHER_NAMES = ("torque", "openpbs", "pbspro")

#: What an admin would ask about one job: with history, where PBS keeps one, then the logs.
EXPLAIN_COMMANDS = (
    ("qstat", "-x", "-f", "{id}"),
    ("qstat", "-f", "{id}"),
    ("tracejob", "-n", "7", "{id}"),
)

__all__ = [
    "EXPLAIN_COMMANDS",
    "Flavour",
    "LABEL",
    "OTHER_NAMES",
    "PbsJob",
    "PbsState",
    "canonical_state",
    "classify_stderr",
    "clean_environment",
    "error_from_command",
    "exit_code_of",
    "flavour_from_version",
    "guess_flavour",
    "parse_qselect",
    "parse_qstat_json",
    "parse_qstat_text",
    "parse_qstat_xml",
    "parse_submission",
    "qdel_command",
    "qselect_command",
    "qstat_command",
    "qstat_text_command",
    "qsub_command",
    "read_captured",
    "tracejob_command",
    "version_command",
    "view_of",
]
