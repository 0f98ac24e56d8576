"""The commands by name, as a Click group that imports a command's module when it is asked for."""

from __future__ import annotations

import importlib
from importlib import metadata
from typing import List, Optional

import click

from pulsar_failure_reasons.cli import PROGRAM

#: A new command is one line here: its module in this package, whose `command` is the Click command.
COMMANDS = {
    "check": "will reasons arrive from this host, and will Galaxy act on them?",
    "explain": "why did this job end, and how do you know?",
    "mirror": "have Galaxy's and Pulsar's shared trees parted?",
    "reconcile": "which jobs has the DRM lost while Pulsar was away?",
    "report": "what failed, how often, where, and which limits are too low?",
    "run": "start Pulsar with our seams, where .pth files are forbidden",
}
EXAMPLES = """\b
Examples:
  sacct -j 123 | pulsar-failure-reasons explain --drm slurm -
  pulsar-failure-reasons explain 42 --app /etc/pulsar/app.yml

\b
Shell completion (bash; also zsh_source and fish_source):
  eval "$(_PULSAR_FAILURE_REASONS_COMPLETE=bash_source pulsar-failure-reasons)"
"""


class Refused(click.ClickException):
    """The command could not run: one line on stderr that says what to do, exit code 2."""

    exit_code = 2


class LazyGroup(click.Group):
    """The list of commands costs no import of what only one of them needs."""

    def list_commands(self, ctx: click.Context) -> List[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> Optional[click.Command]:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"pulsar_failure_reasons.cli.{cmd_name}")
        # `run` is there for the list only: it goes past Click (see cli/__init__.py).
        command: click.Command = getattr(module, "command", click.Command(cmd_name))
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(sorted(COMMANDS.items()))


@click.command(
    cls=LazyGroup, epilog=EXAMPLES, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(metadata.version(PROGRAM), prog_name=PROGRAM)
def group() -> None:
    """Tell Galaxy why the DRM ended a Pulsar job."""


def main(arguments: List[str]) -> int:
    """Run one command and return its exit code."""
    try:
        group.main(arguments, prog_name=PROGRAM)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
