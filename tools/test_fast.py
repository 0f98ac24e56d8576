"""Run the fast tests on the oldest supported Python and on the newest one found.

Those on a simulated DRM wait for its jobs, so only their core runs, and on the oldest Python only:
`make test-simulated` runs all of them. A missing oldest Python is named; with REQUIRE_REAL=1 it
fails the run. Arguments are handed on to pytest.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

import environment
import interpreters

PURE = "not (real or slow or launcher or simulated)"
PURE_AND_CORE = "%s or (core and not slow)" % PURE
TIMEOUT_S = 900


def main() -> int:
    """Return 0 if all went well, else 1."""
    pythons, missing = interpreters.to_test_with()
    failed = []
    for number, (version, path) in enumerate(pythons.items()):
        name = "Python %d.%d" % version
        python = str(environment.ensure("test", path))
        print("== fast tests on %s" % name, flush=True)
        started = time.monotonic()
        # Several Pythons in one checkout: each keeps its own cache.
        # By file: a module's set-up (a simulated DRM) must not run once in each worker.
        command = [python, "-m", "pytest", "-n", "2", "--dist", "loadfile",
                   "-m", PURE if number else PURE_AND_CORE,
                   "-o", "cache_dir=.env/pytest-%d.%d" % version] + sys.argv[1:]
        if subprocess.run(command, cwd=environment.ROOT, timeout=TIMEOUT_S).returncode != 0:
            failed.append(name)
        print("== %s: %.0f s" % (name, time.monotonic() - started), flush=True)
    for name in missing:
        print("NOT RUN: the fast tests on %s: no such interpreter found, none to fetch" % name)
    if missing and os.environ.get("REQUIRE_REAL") == "1":
        failed += missing
    if failed:
        print("FAILED: fast tests on %s" % ", ".join(failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
