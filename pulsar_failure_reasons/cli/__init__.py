"""The command `pulsar-failure-reasons`.

It works in the base install, so it needs nothing but the standard library. Exit code: 0 fine, 1
found a problem, 2 could not run.
"""

from __future__ import annotations

import argparse
from importlib import metadata
from typing import List, Optional

from pulsar_failure_reasons.cli import explain, run


def main(argv: Optional[List[str]] = None) -> int:
    """Run one subcommand and return the process's exit code."""
    arguments = _parser().parse_args(argv)
    exit_code: int = arguments.handler(arguments)
    return exit_code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="pulsar-failure-reasons",
        description="Tell Galaxy why the DRM ended a Pulsar job.",
    )
    parser.add_argument(
        "--version", action="version", version=metadata.version("pulsar-failure-reasons")
    )
    subcommands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    run.add_parser(subcommands)
    explain.add_parser(subcommands)
    return parser
