"""Run the fast tests on the oldest supported Python and on the newest one found.

    python3 tools/test_fast.py [PYTEST-ARGUMENTS...]
    python3 tools/test_fast.py --rest [PYTEST-ARGUMENTS...]

Tests on a simulated DRM wait for its jobs, so only their core is fast enough, and runs on the
oldest Python only. With --rest the others of them run on the oldest Python, and nothing else. A
missing oldest Python is named; with REQUIRE_REAL=1 it fails the run.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import Dict, Iterator, List, Tuple

import environment
import interpreters

PURE = "not (real or slow or launcher or simulated)"
PURE_AND_CORE = "%s or (core and not slow)" % PURE
REST = "simulated and not (core or slow or launcher or real)"
TIMEOUT_S = 7200


def main() -> int:
    """Return 0 if all went well, else 1."""
    arguments = sys.argv[1:]
    rest = arguments[:1] == ["--rest"]
    pythons, missing = interpreters.to_test_with()
    failed = []
    for version, path, expression in _runs(pythons, rest):
        name = "Python %d.%d" % version
        print("== %s tests on %s" % ("simulated DRMs:" if rest else "fast", name), flush=True)
        if not _run(version, path, expression, arguments[rest:]):
            failed.append(name)
    for name in missing:
        print("NOT RUN: tests on %s: no such interpreter found, none to fetch" % name)
    if missing and os.environ.get("REQUIRE_REAL") == "1":
        failed += missing
    if failed:
        print("FAILED: tests on %s" % ", ".join(failed))
    return 1 if failed else 0


def _runs(
    pythons: Dict[interpreters.Version, str], rest: bool
) -> Iterator[Tuple[interpreters.Version, str, str]]:
    for number, (version, path) in enumerate(pythons.items()):
        if not rest:
            yield version, path, PURE if number else PURE_AND_CORE
        elif version == interpreters.OLDEST:
            yield version, path, REST


def _run(
    version: interpreters.Version, path: str, expression: str, arguments: List[str]
) -> bool:
    """Run pytest in that Python's environment; return whether all went well."""
    python = str(environment.ensure("test", path))
    started = time.monotonic()
    # Several Pythons in one checkout: each keeps its own cache.
    # By file: a module's set-up (a simulated DRM) must not run once in each worker.
    workers = "3" if expression == REST else "2"  # the rest mostly waits
    command = [python, "-m", "pytest", "-n", workers, "--dist", "loadfile", "-m", expression,
               "-o", "cache_dir=.env/pytest-%d.%d" % version] + arguments
    done = subprocess.run(command, cwd=environment.ROOT, timeout=TIMEOUT_S)
    print("== Python %d.%d: %.0f s" % (*version, time.monotonic() - started), flush=True)
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
