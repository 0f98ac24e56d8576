"""`pulsar-failure-reasons run pulsar-main ...`: start Pulsar with our seams, without a `.pth`.

The command is one of this environment's console scripts, run in this process after `install()`.
"""

from __future__ import annotations

import sys
from importlib import metadata
from typing import Dict, List, Optional

from pulsar_failure_reasons import pulsar_hooks

USAGE = """\
Usage: pulsar-failure-reasons run SCRIPT [ARGUMENTS]...

Run a console script of this environment (pulsar-main, pulsar-serve, gunicorn ...) in this process
with the seams in place, for sites that forbid .pth files. The arguments are passed as they are.

Example:
  pulsar-failure-reasons run pulsar-main --mode paster -c /etc/pulsar
"""
# What Pulsar is served with; other console scripts can be run too, but are not suggested.
_SERVERS = ("pulsar-main", "pulsar-serve", "gunicorn", "uwsgi", "waitress-serve")


def main(arguments: List[str]) -> int:
    """Run the console script that the arguments name, and return its exit code."""
    if arguments[:1] in (["-h"], ["--help"]):
        print(USAGE, end="")
        return 0
    if not arguments or arguments[0].startswith("-"):
        print(USAGE, end="", file=sys.stderr)
        return _refuse("name the console script to run, such as pulsar-main")
    return run(arguments[0], arguments[1:])


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
