"""`pulsar-failure-reasons run pulsar-main ...`: start Pulsar with our seams, without a `.pth`.

The command is one of this environment's console scripts, run in this process after `install()`.
"""

from __future__ import annotations

import argparse
import sys
from importlib import metadata
from typing import Any, Dict, List, Optional

from pulsar_failure_reasons import pulsar_hooks

# What Pulsar is served with; other console scripts can be run too, but are not suggested.
_SERVERS = ("pulsar-main", "pulsar-serve", "gunicorn", "uwsgi", "waitress-serve")


def add_parser(subcommands: Any) -> None:
    """Add `run` to the subcommands of `pulsar-failure-reasons`."""
    parser = subcommands.add_parser(
        "run",
        help="run a console script of this environment with the seams in place",
        description="Run a console script of this environment (pulsar-main, pulsar-serve, "
        "gunicorn ...) in this process with the seams in place. For sites that forbid .pth files.",
    )
    parser.add_argument("script", metavar="SCRIPT", help="such as pulsar-main")
    parser.add_argument("arguments", metavar="...", nargs=argparse.REMAINDER,
                        help="its arguments, passed as they are")
    parser.set_defaults(handler=lambda arguments: run(arguments.script, arguments.arguments))


def run(script: str, arguments: List[str]) -> int:
    """Run a console script after `install()`, and return its exit code, or 2 if it cannot run."""
    scripts = _console_scripts()
    if script not in scripts:
        servers = ", ".join(name for name in _SERVERS if name in scripts)
        return _refuse("no console script %r in this environment; there are: %s"
                       % (script, servers or "none that serve Pulsar"))
    try:
        pulsar_hooks.install()
    except ImportError as exc:
        return _refuse("Pulsar cannot be imported (%s); install it with: pip install "
                       "'pulsar-failure-reasons[server]'" % exc)
    sys.argv = [script] + arguments
    returned: Optional[object] = scripts[script].load()()
    return returned if isinstance(returned, int) else 0


def _refuse(why: str) -> int:
    print("pulsar-failure-reasons run: %s" % why, file=sys.stderr)
    return 2


def _console_scripts() -> Dict[str, metadata.EntryPoint]:
    """Return this environment's console scripts by name; the first on `sys.path` wins."""
    scripts: Dict[str, metadata.EntryPoint] = {}
    for distribution in metadata.distributions():
        for entry_point in distribution.entry_points:
            if entry_point.group == "console_scripts":
                scripts.setdefault(entry_point.name, entry_point)
    return scripts
