"""LSF: job states, command lines, parsers and classifiers. Pure: text in, values out.

==================  ==================================================================
``states``          the job states and their spellings
``termination``     LSF's termination reasons (TERM_MEMLIMIT ...)
``classify``        what a state with its exit code says: phase, end, cause
``commands``        argv lists; bsub's answer
``bjobs``           the batched question to mbatchd
``bhist``           the histories of bhist -l, bacct -l, bjobs -l
``report``          LSF's report in the job's output
``command_errors``  what a failed command means
``captured``        texts as people copy them, for ``explain``
==================  ==================================================================
"""

from __future__ import annotations

from .bhist import parse_bhist
from .bjobs import parse_bjobs, parse_bjobs_json
from .captured import read_captured
from .classify import Description, describe_state
from .command_errors import error_from_command
from .commands import (
    bacct_command,
    bhist_command,
    bjobs_command,
    bjobs_json_command,
    bjobs_user_json_command,
    bkill_command,
    bsub_command,
    clean_environment,
    parse_submission,
)
from .report import classify_report, classify_stderr
from .states import LsfState, canonical_state
from .termination import TERMINATIONS, find_termination

#: For people.
LABEL = "LSF"

#: What an admin would ask about one job: the controller first, then the event files.
EXPLAIN_COMMANDS = (
    ("bjobs", "-l", "{id}"),
    ("bhist", "-n", "0", "-l", "{id}"),
)

__all__ = [
    "Description",
    "EXPLAIN_COMMANDS",
    "LABEL",
    "LsfState",
    "TERMINATIONS",
    "bacct_command",
    "bhist_command",
    "bjobs_command",
    "bjobs_json_command",
    "bjobs_user_json_command",
    "bkill_command",
    "bsub_command",
    "canonical_state",
    "classify_report",
    "classify_stderr",
    "clean_environment",
    "describe_state",
    "error_from_command",
    "find_termination",
    "parse_bhist",
    "parse_bjobs",
    "parse_bjobs_json",
    "parse_submission",
    "read_captured",
]
