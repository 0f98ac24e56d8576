"""What our `.pth` costs a Python process that has nothing to do with Pulsar.

    python -m benchmarks.startup_cost [RUNS]

Starts `python -c pass` in two bare environments, one with the `.pth` and one without, in turn and
in random order within each pair, and prints medians. A third one holds an empty `.pth`, to tell
the cost of the code from that of reading one more file. Import of the hook's own module, which
only Pulsar and a `.start` file cause, is timed inside the interpreter.
"""

from __future__ import annotations

import os
import pathlib
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from typing import Dict, List, Tuple

ROOT = pathlib.Path(__file__).resolve().parent.parent
RUNS = 300
WARM_UP_RUNS = 5


def main(argv: List[str]) -> None:
    """Measure and print a table."""
    runs = int(argv[0]) if argv else RUNS
    with tempfile.TemporaryDirectory() as folder:
        times = _measure(_environments(pathlib.Path(folder)), runs)
    print("Start-up of `python -c pass`, %d runs each, in turn (Python %s, %s); medians in ms" % (
        runs, platform.python_version(), platform.machine()))
    print("%-12s %8s %8s %8s %8s" % ("", "wall", "cost", "CPU", "cost"))
    wall_without, cpu_without = _medians(times["no .pth"])
    for name, pairs in times.items():
        wall, cpu = _medians(pairs)
        print("%-12s %8.2f %+8.2f %8.2f %+8.2f" % (
            name, wall, wall - wall_without, cpu, cpu - cpu_without))
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


def _medians(pairs: List[Tuple[float, float]]) -> Tuple[float, float]:
    return (statistics.median(wall for wall, _ in pairs),
            statistics.median(cpu for _, cpu in pairs))


def _measure(
    pythons: Dict[str, pathlib.Path], runs: int
) -> Dict[str, List[Tuple[float, float]]]:
    """Return pairs of wall and CPU time in ms."""
    times: Dict[str, List[Tuple[float, float]]] = {name: [] for name in pythons}
    for run in range(runs + 5):
        for name in random.sample(list(pythons), len(pythons)):
            measured = _start_once(str(pythons[name]))
            if run >= WARM_UP_RUNS:
                times[name].append(measured)
    return times


def _start_once(python: str) -> Tuple[float, float]:
    """Return wall and CPU time in ms of one process.

    No timeout here, alone in this project: `subprocess` waits for one by polling with sleeps that
    double (0.5, 1, 2, 4, 8 ms), so that every start-up takes 15.5 ms and no cost is seen.
    """
    started = time.perf_counter()
    pid = os.posix_spawn(python, [python, "-c", "pass"], dict(os.environ))
    _, status, usage = os.wait4(pid, 0)
    wall = time.perf_counter() - started
    if status != 0:
        raise SystemExit("%s -c pass ended with wait status %d" % (python, status))
    return wall * 1000, (usage.ru_utime + usage.ru_stime) * 1000


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
