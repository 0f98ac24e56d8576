"""Released wheels of Galaxy and Pulsar, fetched once with pip and kept under ``.env/wheels``.

They are read only, never installed, so the Python that they are for does not matter.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / ".env" / "wheels"
TIMEOUT_S = 600
#: Seconds before each further attempt: an index may be away for a moment.
PAUSES_S = (10, 30)


class WheelError(Exception):
    """A wheel could not be fetched; the message has pip's own words."""


def wheel(distribution: str, version: str) -> Path:
    """Return the wheel of a released version, from the folder or fetched into it.

    Raises:
        WheelError: it is not there, and pip cannot fetch it.
    """
    FOLDER.mkdir(parents=True, exist_ok=True)
    with open(FOLDER / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run in several processes
        kept = _kept(distribution, version)
        if not kept:
            _fetch(distribution, version)
            kept = _kept(distribution, version)
    if not kept:
        raise WheelError(f"pip fetched {distribution} {version}, but left no wheel in {FOLDER}")
    return kept[0]


def _kept(distribution: str, version: str) -> "list[Path]":
    return sorted(FOLDER.glob(f"{distribution.replace('-', '_')}-{version}-*.whl"))


def _fetch(distribution: str, version: str) -> None:
    for pause_s in PAUSES_S:
        try:
            return _download(distribution, version)
        except WheelError as error:
            print(f"{error}\ntrying again in {pause_s} s", file=sys.stderr, flush=True)
            time.sleep(pause_s)
    _download(distribution, version)


def _download(distribution: str, version: str) -> None:
    with tempfile.TemporaryDirectory(dir=FOLDER) as scratch:
        command = [
            sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
            "--no-deps", "--only-binary=:all:", "--python-version=3.12", f"--dest={scratch}",
            f"{distribution}=={version}",
        ]
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired as error:
            raise WheelError(f"{' '.join(command)}: no answer in {TIMEOUT_S} s") from error
        if done.returncode != 0:
            raise WheelError(f"{' '.join(command)}: {done.stdout.strip()[-500:]}")
        for path in Path(scratch).glob("*.whl"):
            os.replace(path, FOLDER / path.name)  # whole or not at all
