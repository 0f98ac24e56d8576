"""Unpack Debian trixie's HTCondor into the cache folder (part ``htcondor`` of tests.real.install).

Debian bookworm has no condor. trixie's programs run there once they use their own ld.so and
libraries, so nothing but ``patchelf`` is installed on the machine itself. 16 MB of downloads, 60 MB
unpacked, about 15 s; nothing to do the next time.
"""

from __future__ import annotations

import fcntl
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import List, Optional, Sequence

from tests.real import install
from tests.real.processes import HarnessError

# What the programs of a personal pool load. apt's own idea of condor's dependencies is 113 packages
# (Perl, Python, Kerberos, Boost): these are those that `ldd` names for the daemons and tools used.
PACKAGES = [
    "condor",
    "libc6",
    "libexpat1",
    "libgcc-s1",
    "libgomp1",
    "libmunge2",
    "libpcre2-8-0",
    "libscitokens0t64",
    "libssl3t64",
    "libstdc++6",
    "libuuid1",
    "libzstd1",
    "zlib1g",
]
PROGRAMS = ("usr/bin/condor_*", "usr/sbin/condor_*", "usr/libexec/condor/*")
UNWANTED = ("./usr/share/doc", "./usr/share/man", "./usr/share/locale", "./etc", "./var")
REINSTALL = "run python -m tests.real.install htcondor"


def htcondor_prefix() -> Optional[Path]:
    """Return the folder of an unpacked HTCondor, whole and in its own place, or None."""
    for done in sorted(install.cache_folder().glob("htcondor-*/.done"), reverse=True):
        if done.read_text().strip() == str(done.parent):  # its programs hold this path
            return done.parent
    return None


def install_htcondor() -> None:
    """Download and unpack HTCondor unless it is there; raise HarnessError if that fails."""
    if platform.machine() not in ("x86_64", "aarch64"):
        raise HarnessError(f"htcondor: no packages for {platform.machine()}")
    if htcondor_prefix() is not None:
        return
    if shutil.which("patchelf") is None:  # by whatever way it came
        install.install_packages("htcondor", ["patchelf"])
    cache = install.cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / "htcondor.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another run may be at it
        if htcondor_prefix() is None:
            with tempfile.TemporaryDirectory(dir=cache, prefix="download-") as scratch:
                _make_prefix(cache, Path(scratch))


def _make_prefix(cache: Path, scratch: Path) -> None:
    """Bring the packages into `scratch` and make ``<cache>/htcondor-<version>`` out of them."""
    debs = _download(scratch)
    version = _version(debs)
    prefix, partial = cache / f"htcondor-{version}", scratch / "prefix"
    install.say(f"htcondor: unpacking {len(debs)} packages into {prefix}")
    _unpack(debs, partial)
    patched = _point_programs_home(partial, prefix)
    install.say(f"htcondor: {patched} programs point to their own ld.so and libraries")
    (partial / ".done").write_text(f"{prefix}\n")
    shutil.rmtree(prefix, ignore_errors=True)
    partial.chmod(0o755)
    partial.rename(prefix)
    shown = subprocess.run(
        [str(prefix / "usr/bin/condor_version")],
        env={"CONDOR_CONFIG": "/dev/null"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    if version.split("+")[0] not in shown.stdout:
        (prefix / ".done").unlink()
        said = shown.stderr.strip() or shown.stdout
        raise HarnessError(f"htcondor: its condor_version does not run: {said!r}")


def _download(scratch: Path) -> List[Path]:
    """Download the packages into `scratch` with an apt state of its own; return their files."""
    options = install.suite_options(scratch)
    install.say("htcondor: downloading Debian trixie's HTCondor and its libraries")
    return install.download("htcondor", options, PACKAGES, scratch / "debs")


def _version(debs: Sequence[Path]) -> str:
    """Return the upstream version of the downloaded HTCondor, such as ``23.9.6``."""
    for deb in debs:
        if deb.name.startswith("condor_"):
            return deb.name.split("_")[1].split("-")[0].split("+")[0]
    raise HarnessError(f"htcondor: apt downloaded no condor, but {[deb.name for deb in debs]}")


def _unpack(debs: Sequence[Path], prefix: Path) -> None:
    """Unpack the packages (no documentation, no configuration) into a usr-merged `prefix`."""
    for name in ("bin", "sbin", "lib", "lib64"):
        (prefix / "usr" / name).mkdir(parents=True)
        (prefix / name).symlink_to(f"usr/{name}")  # packages that still ship /lib land in /usr/lib
    tar = ["tar", "-x", "--keep-directory-symlink", "--no-same-owner", "-C", str(prefix)]
    tar += [f"--exclude={path}" for path in UNWANTED]
    for deb in debs:
        with subprocess.Popen(
            ["dpkg-deb", "--fsys-tarfile", str(deb)], stdout=subprocess.PIPE
        ) as content:
            subprocess.run(tar, stdin=content.stdout, check=True, timeout=300)
        if content.returncode != 0:
            raise HarnessError(f"htcondor: dpkg-deb could not read {deb.name}")


def _point_programs_home(partial: Path, prefix: Path) -> int:
    """Make the programs under `partial` use the ld.so and libraries of `prefix`."""
    libraries = sorted(partial.glob("usr/lib/*/libc.so.6"))
    if not libraries:
        raise HarnessError(f"htcondor: no libc.so.6 in what was unpacked; {REINSTALL}")
    final = prefix / libraries[0].parent.relative_to(partial)
    programs = [
        path
        for pattern in PROGRAMS
        for path in partial.glob(pattern)
        if install.is_elf(path) and ".so" not in path.name
    ]
    for path in programs:
        shown = _patchelf("--print-interpreter", str(path))
        loader = final / Path(shown.strip()).name
        # DT_RPATH, not RUNPATH: it also holds for what the libraries load in their turn
        _patchelf("--force-rpath", "--set-rpath", f"{final}:{prefix}/usr/lib", str(path))
        _patchelf("--set-interpreter", str(loader), str(path))
    return len(programs)


def _patchelf(*arguments: str) -> str:
    """Run patchelf and return what it printed; raise HarnessError with its words if it fails."""
    done = subprocess.run(["patchelf", *arguments], capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        raise HarnessError(f"htcondor: patchelf {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout
