"""Run the fast tests on the oldest supported Python, the one that runs me, and the newest found.

A missing oldest Python is named; with REQUIRE_REAL=1 it fails the run.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

import environment
import interpreters

FAST = "not real and not slow and not launcher"
TIMEOUT_S = 900


def main() -> int:
    """Return 0 if all went well, else 1."""
    pythons, missing = interpreters.to_test_with()
    failed = []
    for version, path in pythons.items():
        name = "Python %d.%d" % version
        python = str(environment.ensure("test", path))
        print("== fast tests on %s" % name, flush=True)
        started = time.monotonic()
        # Several Pythons in one checkout: each keeps its own cache.
        # By file: a module's set-up (a simulated DRM) must not run once in each worker.
        command = [python, "-m", "pytest", "-q", "-n", "2", "--dist", "loadfile", "-m", FAST,
                   "-o", "cache_dir=.env/pytest-%d.%d" % version] + sys.argv[1:]
        if subprocess.run(command, cwd=environment.ROOT, timeout=TIMEOUT_S).returncode != 0:
            failed.append(name)
        print("== %s: %.0f s" % (name, time.monotonic() - started), flush=True)
    for name in missing:
        print("NOT RUN: the fast tests on %s: no such interpreter on PATH or in ~/.pyenv" % name)
    if missing and os.environ.get("REQUIRE_REAL") == "1":
        failed += missing
    if failed:
        print("FAILED: fast tests on %s" % ", ".join(failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
