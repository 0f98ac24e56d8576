"""What our `.pth` costs a Python process that has nothing to do with Pulsar.

    python -m benchmarks.startup_cost [RUNS]

Starts `python -c pass` in two bare environments, one with the `.pth` and one without, in turn and
in random order within each pair, and prints medians. A third one holds an empty `.pth`, to tell
the cost of the code from that of reading one more file. Import of the hook's own module, which
only Pulsar and a `.start` file cause, is timed inside the interpreter.
"""

from __future__ import annotations

import pathlib
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from typing import Dict, List

ROOT = pathlib.Path(__file__).resolve().parent.parent
RUNS = 300


def main(argv: List[str]) -> None:
    """Measure and print a table."""
    runs = int(argv[0]) if argv else RUNS
    with tempfile.TemporaryDirectory() as folder:
        times = _measure(_environments(pathlib.Path(folder)), runs)
    without = statistics.median(times["no .pth"])
    print("Start-up of `python -c pass`, %d runs each, in turn (Python %s, %s)" % (
        runs, platform.python_version(), platform.machine()))
    print("%-12s %10s %10s %12s" % ("", "median ms", "p10 ms", "cost ms"))
    for name, values in times.items():
        print("%-12s %10.2f %10.2f %+12.2f" % (
            name, statistics.median(values), statistics.quantiles(values, n=10)[0],
            statistics.median(values) - without))
    print("\nThe line itself, timed inside the interpreter:    %.2f ms" % _inside(_EXEC_LINE))
    print("Importing the module that a .start file names:    %.2f ms" % _inside(_IMPORT_HOOK))


def _environments(folder: pathlib.Path) -> Dict[str, pathlib.Path]:
    contents = {
        "no .pth": None,
        "empty .pth": "",
        "our .pth": (ROOT / "pulsar_failure_reasons.pth").read_text(),
    }
    pythons = {}
    for number, (name, text) in enumerate(contents.items()):
        environment = folder / str(number)
        venv.create(environment, with_pip=False, symlinks=True)
        (site_packages,) = environment.glob("lib/python*/site-packages")
        if text is not None:
            (site_packages / "pulsar_failure_reasons.pth").write_text(text)
        pythons[name] = environment / "bin" / "python"
    return pythons


def _measure(pythons: Dict[str, pathlib.Path], runs: int) -> Dict[str, List[float]]:
    """Return the wall times in ms."""
    times: Dict[str, List[float]] = {name: [] for name in pythons}
    for run in range(runs + 5):
        for name in random.sample(list(pythons), len(pythons)):
            started = time.perf_counter()
            subprocess.run([str(pythons[name]), "-c", "pass"], check=True, timeout=60)
            if run >= 5:  # the first ones warm the file cache
                times[name].append((time.perf_counter() - started) * 1000)
    return times


_EXEC_LINE = """
import sys, time
line = open(%r).read().splitlines()[-1]
started = time.perf_counter()
exec(line)
print((time.perf_counter() - started) * 1000)
"""
_IMPORT_HOOK = """
import sys, time
sys.path.insert(0, %r)
started = time.perf_counter()
import pulsar_failure_reasons._import_hook
print((time.perf_counter() - started) * 1000)
"""


def _inside(code: str) -> float:
    """Return the median of what a snippet prints, in fresh interpreters."""
    path = ROOT if code is _IMPORT_HOOK else ROOT / "pulsar_failure_reasons.pth"
    printed = [
        float(subprocess.run([sys.executable, "-I", "-c", code % str(path)], check=True,
                             timeout=60, stdout=subprocess.PIPE).stdout)
        for _ in range(30)
    ]
    return statistics.median(printed)


if __name__ == "__main__":
    main(sys.argv[1:])
