"""The command `pulsar-failure-reasons`.

Exit code: 0 fine, 1 found a problem, 2 could not run. Data goes to stdout, all else to stderr.
`run` needs nothing but the standard library, since Pulsar is started with it; all other commands
need the extra `[tools]`.
"""

from __future__ import annotations

import sys
from typing import List, Optional

PROGRAM = "pulsar-failure-reasons"


def main(argv: Optional[List[str]] = None) -> int:
    """Run one command and return the process's exit code."""
    arguments = sys.argv[1:] if argv is None else argv
    if arguments[:1] == ["run"]:
        from pulsar_failure_reasons.cli import run

        return run.main(arguments[1:])
    try:
        from pulsar_failure_reasons.cli import commands
    except ModuleNotFoundError as missing:
        print(
            f"{PROGRAM}: there is no {missing.name} here; only `run` works without it. "
            f"Install: pip install '{PROGRAM}[tools]'", file=sys.stderr,
        )
        return 2
    return commands.main(arguments)
