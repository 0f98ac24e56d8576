"""Unpack Python 3.9 from Debian bullseye into the cache folder (part ``python39``).

RHEL 9 has Python 3.9, so the tests run on it; newer Debians no longer have it. Nothing but
``patchelf`` is installed on the machine itself. 12 MB of downloads, 45 MB unpacked, about 15 s;
nothing to do the next time. What it gives makes virtual environments; their pip (20.3) is too old
for editable installs of projects without setup.py and needs an upgrade first.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import List, Optional

from tests.real import install
from tests.real.processes import HarnessError

SUITE = "bullseye"
PYTHON_PACKAGES = [
    "python3.9",
    "python3.9-minimal",
    "libpython3.9-minimal",
    "libpython3.9-stdlib",
    "python3.9-venv",
    "python3-distutils",
    "python3-lib2to3",
    "python-pip-whl",
]
# What its modules link to, but for libc and its kin, which may be newer than those it was built on.
LIBRARIES = [
    "libbz2-1.0",
    "libcrypt1",
    "libexpat1",
    "libffi7",
    "liblzma5",
    "libmpdec3",
    "libncursesw6",
    "libreadline8",
    "libsqlite3-0",
    "libssl1.1",
    "libtinfo6",
    "libuuid1",
    "zlib1g",
]
MODULES = "ctypes, decimal, hashlib, lzma, readline, sqlite3, ssl, ensurepip, lib2to3.pgen2"
#: Debian's ensurepip takes its wheels from there.
WHEELS = "/usr/share/python-wheels"


def python39() -> Optional[Path]:
    """Return the program of an unpacked Python 3.9, whole and in its own place, or None."""
    prefix = _prefix()
    done = prefix / ".done"
    if done.is_file() and done.read_text().strip() == str(prefix):  # its program holds this path
        return prefix / "usr/bin/python3.9"
    return None


def _prefix() -> Path:
    return install.cache_folder() / "python-3.9"


def install_python39() -> None:
    """Download and unpack Python 3.9 unless it is there; raise HarnessError if that fails."""
    if python39() is not None:
        return
    if shutil.which("patchelf") is None:  # by whatever way it came
        install.install_packages("python39", ["patchelf"])
    cache = install.cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / "python39.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another run may be at it
        if python39() is None:
            with tempfile.TemporaryDirectory(dir=cache, prefix="download-") as scratch:
                _make_prefix(Path(scratch))


def _make_prefix(scratch: Path) -> None:
    """Bring the packages into `scratch` and make ``<cache>/python-3.9`` out of them."""
    debs = _download(scratch)
    prefix, partial = _prefix(), scratch / "prefix"
    install.say(f"python39: unpacking {len(debs)} packages into {prefix}")
    for deb in debs:
        _dpkg_deb("--extract", str(deb), str(partial))
    _make_at_home(partial, prefix)
    shutil.rmtree(prefix, ignore_errors=True)
    partial.chmod(0o755)
    partial.rename(prefix)
    _check(prefix)
    (prefix / ".done").write_text(f"{prefix}\n")


def _download(scratch: Path) -> List[Path]:
    """Download the packages into `scratch` with an apt state of its own; return their files."""
    options = install.suite_options(scratch, SUITE)
    install.say(f"python39: downloading Python 3.9 of Debian {SUITE}")
    return install.download(
        "python39", options, PYTHON_PACKAGES + LIBRARIES, scratch / "debs"
    )


def _dpkg_deb(*arguments: str) -> None:
    done = subprocess.run(
        ["dpkg-deb", *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=300,
    )
    if done.returncode != 0:
        raise HarnessError(f"python39: dpkg-deb {' '.join(arguments)}: {done.stderr.strip()}")


def _make_at_home(partial: Path, prefix: Path) -> None:
    """Make the Python in `partial` find in `prefix` what Debian's has in system folders."""
    libraries = {library.parent for library in partial.glob("**/lib*.so.*")}
    # DT_RPATH, not RUNPATH: it also holds for what the program loads later, its modules
    rpath = ":".join(str(prefix / folder.relative_to(partial)) for folder in sorted(libraries))
    install.patchelf(
        "--force-rpath", "--set-rpath", rpath, str(partial / "usr/bin/python3.9"))
    ensurepip = partial / "usr/lib/python3.9/ensurepip/__init__.py"
    ensurepip.write_text(ensurepip.read_text().replace(WHEELS, f"{prefix}{WHEELS}"))
    for link in partial.glob("usr/lib/python3.9/**/*"):
        if link.is_symlink() and os.readlink(link).startswith("/"):
            target = os.readlink(link)
            link.unlink()
            if (partial / target[1:]).exists():
                link.symlink_to(f"{prefix}{target}")


def _check(prefix: Path) -> None:
    """Raise HarnessError unless the Python runs and has what the tests need of it."""
    code = f"import sys, {MODULES}; print(sys.prefix)"
    shown = subprocess.run(
        [str(prefix / "usr/bin/python3.9"), "-I", "-c", code],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
    )
    if shown.stdout.strip() != str(prefix / "usr"):
        said = shown.stderr.strip() or shown.stdout
        raise HarnessError(f"python39: its python3.9 does not run: {said[-500:]!r}")
