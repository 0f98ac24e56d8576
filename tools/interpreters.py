"""Find the Python interpreters of this machine that can make a virtual environment."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys
from typing import Dict, Iterator, List, Optional, Tuple

Version = Tuple[int, int]

ROOT = pathlib.Path(__file__).resolve().parent.parent
INSTALL_TIMEOUT_S = 3600
OLDEST: Version = (3, 9)
MAIN: Version = (sys.version_info[0], sys.version_info[1])


def to_test_with() -> Tuple[Dict[Version, str], List[str]]:
    """Return the interpreters to test with (oldest, newest), and the names of missing ones.

    Where the one that runs me is neither: it runs all the other tests.
    """
    found = find()
    if OLDEST not in found:
        obtained = obtain()
        if obtained is not None:
            found[OLDEST] = obtained
    chosen = {version: found[version] for version in sorted({OLDEST, max(found)})
              if version in found}
    return chosen, [] if OLDEST in found else ["Python %d.%d" % OLDEST]


def find() -> Dict[Version, str]:
    """Return the path of one working interpreter for each Python version from the oldest on."""
    found: Dict[Version, str] = {MAIN: sys.executable}
    for path in _candidates():
        version = _version_in_name(path)
        if version is not None and version >= OLDEST and version not in found and _works(path):
            found[version] = path
    return found


def obtain() -> Optional[str]:
    """Return the path of a Python 3.9 kept in the cache folder, fetched the first time.

    None where there is no way to (no Debian, no network, no patchelf and not root); stderr says
    what is missing.
    """
    if shutil.which("apt-get") is None:
        return None
    installed = subprocess.run([sys.executable, "-m", "tests.real.install", "python39"], cwd=ROOT,
                               stdin=subprocess.DEVNULL, timeout=INSTALL_TIMEOUT_S)
    if installed.returncode != 0:
        return None
    where = "from tests.real import python39_install; print(python39_install.python39())"
    return subprocess.run([sys.executable, "-c", where], cwd=ROOT, check=True, timeout=60,
                          stdout=subprocess.PIPE, universal_newlines=True).stdout.strip()


def _candidates() -> Iterator[str]:
    folders = os.environ.get("PATH", "").split(os.pathsep)
    folders += [str(path) for path in sorted(pathlib.Path.home().glob(".pyenv/versions/*/bin"))]
    for folder in folders:
        # pyenv's shims are there for versions that are not selected, and then fail.
        if folder and pathlib.PurePath(folder).name != "shims":
            yield from (str(path) for path in sorted(pathlib.Path(folder).glob("python3.*")))


def _version_in_name(path: str) -> Optional[Version]:
    match = re.fullmatch(r"python(\d+)\.(\d+)", pathlib.PurePath(path).name)
    return (int(match.group(1)), int(match.group(2))) if match else None


def _works(path: str) -> bool:
    """Tell whether an interpreter starts and has what a virtual environment needs."""
    if shutil.which(path) is None:
        return False
    try:
        completed = subprocess.run(
            [path, "-c", "import ensurepip, ssl, venv"], timeout=20,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return completed.returncode == 0
