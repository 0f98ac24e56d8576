"""What a DRM's module says of its commands, so that ``queued_cli_classified`` can use them.

A module with such a description as its ``BY_COMMAND`` needs no code in the manager: see
``docs/adding-a-drm.md``. LSF, PBS, Grid Engine and Slurm have sources of their own, because each
asks in several ways.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from .base import JobView

#: A command (argv) for many ids, which are checked and few enough for one command line.
CommandForIds = Callable[[Sequence[str]], List[str]]
#: What it printed, as (stdout, stderr), read; raises ``OutputParseError`` for what is no answer.
ParseAnswer = Callable[[str, str], List[JobView]]


def c_locale(environment: Mapping[str, str]) -> Dict[str, str]:
    """Return the environment with the C locale, and otherwise as it is."""
    return {**environment, "LC_ALL": "C"}


@dataclass(frozen=True)
class ByCommand:
    """How jobs are submitted, watched and cancelled.

    ``job_plugin`` is what operators write as ``job_plugin``. ``submit_command`` takes the path
    of a job script as its last argument. ``headers`` returns the lines that the job script
    begins with, from the paths of stdout and stderr and the job's name. ``name_options`` begin
    the options of ``submit_command`` that give a job another name.

    ``status`` asks about many jobs at once. ``ended`` asks accounting about those that are no
    longer known; None where there is none. ``clean_environment`` returns the environment in
    which the commands print what the parsers expect.
    """

    job_plugin: str
    submit_command: str
    headers: Callable[[str, str, str], str]
    status: CommandForIds
    parse_status: ParseAnswer
    cancel: CommandForIds
    ended: Optional[CommandForIds] = None
    parse_ended: Optional[ParseAnswer] = None
    name_options: Tuple[str, ...] = ()
    clean_environment: Callable[[Mapping[str, str]], Dict[str, str]] = c_locale
