"""Install what the real parts of the tests need: ``python -m tests.real.install slurm slurm24``.

* ``slurm``: Debian's own Slurm, munge, slurmdbd and MariaDB, by apt. Needs root unless it is there.
* ``slurm24``: Slurm 24.11 from Debian trixie's packages, which are downloaded with a sources list
  and an apt state of their own and unpacked into a cache folder; the machine's apt configuration
  and packages stay as they are (but for ``patchelf``, munge and MariaDB, which come by apt).
* ``htcondor``: HTCondor 23.9 from trixie in the same way; only ``patchelf`` comes by apt.
* ``gridengine``: Debian's Grid Engine (SGE 8.1.9) by apt, with a mail command that it demands.
* ``python39``: Python 3.9 from bullseye in the same way, for the fast tests.
* ``rabbitmq``: Debian's rabbitmq-server by apt.
* ``sshd``: Debian's openssh-server by apt. Like all others it is not started.
* ``chromium``: Debian's Chromium by apt, to look at the report page.
* ``postgresql``: Debian's PostgreSQL server by apt, for the failure ledger and for Galaxy.

Idempotent, and quick once everything is there. Progress goes to stderr. Exit status: 0 all there, 2
not possible here (the message says what to do).
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Callable, Dict, Iterator, List, Optional, Sequence

from tests.real import chromium
from tests.real.processes import HarnessError

APT_PACKAGES = {
    "slurm": ["slurmctld", "slurmd", "slurm-client", "munge", "slurmdbd", "mariadb-server"],
    "slurm24": ["munge", "mariadb-server", "patchelf"],
    "gridengine": [
        "gridengine-common",
        "gridengine-client",
        "gridengine-master",
        "gridengine-exec",
    ],
    "sshd": ["openssh-server", "openssh-client"],
    "chromium": ["chromium", "fonts-dejavu-core"],
    "postgresql": ["postgresql"],
    "rabbitmq": ["rabbitmq-server"],
}
MAIL_COMMAND = ["bsd-mailx", "msmtp-mta"]  # msmtp-mta: else apt takes a whole mail server
TRIXIE_PACKAGES = ["slurmctld", "slurmd", "slurm-client", "slurmdbd"]
LEAVE_PROGRAMS = [f"--exclude=.{folder}" for folder in ("/bin", "/sbin", "/usr/bin", "/usr/sbin")]
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
POLICY_FILE = Path("/usr/sbin/policy-rc.d")
POLICY_MARK = "# put here by pulsar-failure-reasons' tests while they install packages"
POLICY_DENIES = 101  # invoke-rc.d(8): action forbidden by policy
#: Seconds before each further attempt: an archive may be away for a moment, and another apt-get at
#: work on the lists, for whose lock apt-get itself does not wait (as it does for dpkg's).
PAUSES_S = (1, 10, 30)
APT_TIMEOUT_S = 1800
Done = subprocess.CompletedProcess  # of text


def say(text: str) -> None:
    """Show progress on stderr."""
    print(f"tests.real.install: {text}", file=sys.stderr, flush=True)


# ---- apt packages ----------------------------------------------------------------------------


def missing_packages(packages: Sequence[str]) -> List[str]:
    """Return those Debian packages that are not installed; all of them where there is no dpkg."""
    if shutil.which("dpkg-query") is None:
        return list(packages)
    missing = []
    for package in packages:
        shown = subprocess.run(
            ["dpkg-query", "-W", "-f", "${db:Status-Status}", package],
            capture_output=True,
            text=True,
            timeout=60,
        )
        if shown.returncode != 0 or shown.stdout.strip() != "installed":
            missing.append(package)
    return missing


def install_packages(part: str, packages: Sequence[str]) -> None:
    """Install Debian packages without starting a service; raise HarnessError where that cannot
    be."""
    missing = missing_packages(packages)
    if not missing:
        return
    command = "apt-get install -y --no-install-recommends " + " ".join(missing)
    if shutil.which("apt-get") is None:
        raise HarnessError(
            f"{part}: not a Debian system (no apt-get); install by hand: " + ", ".join(missing)
        )
    if os.geteuid() != 0:
        raise HarnessError(f"{part}: not root; run as root, or let an admin run: {command}")
    say(f"{part}: {command}")
    with services_held_back():
        apt_install(part, missing)


def apt_install(part: str, packages: Sequence[str]) -> None:
    """Run apt-get install; before each further attempt mend what the last one left, and update."""

    def attempt(again: bool) -> Done[str]:
        if again:
            run(["dpkg", "--configure", "-a"])
            run_apt(["update"])
        return run_apt(["install", "-y", "--no-install-recommends", *packages])

    until_done(part, "apt-get install", attempt)
    missing = missing_packages(packages)
    if missing:
        raise HarnessError(f"{part}: apt-get did not install {', '.join(missing)}")


def until_done(part: str, what: str, attempt: Callable[[bool], Done[str]]) -> None:
    """Call `attempt` (with whether it is called again) until it ends well.

    Raises:
        HarnessError: it never did; with its last words.
    """
    attempts = len(PAUSES_S) + 1
    for number, pause_s in enumerate((0, *PAUSES_S), 1):
        time.sleep(pause_s)
        done = attempt(number > 1)
        if done.returncode == 0:
            return
        say(f"{part}: {what} failed ({number} of {attempts} attempts): {tail(done, 1)}")
    raise HarnessError(f"{part}: {what} failed {attempts} times:\n{tail(done)}")


def run_apt(
    arguments: Sequence[str], options: Sequence[str] = (), cwd: Optional[Path] = None
) -> Done[str]:
    """Run apt-get with nothing asked, waiting for another's lock on dpkg."""
    argv = [
        "apt-get",
        "-q",
        "-oDPkg::Lock::Timeout=600",
        "-oAcquire::Retries=5",
        "-oAcquire::http::Timeout=60",
        "-oAcquire::https::Timeout=60",
        *options,
        *arguments,
    ]
    return run(argv, cwd)


def run(argv: Sequence[str], cwd: Optional[Path] = None) -> Done[str]:
    """Run a command of Debian's and return what it said; status 124 where it did not end."""
    env = dict(os.environ, DEBIAN_FRONTEND="noninteractive", LC_ALL="C.UTF-8")
    try:
        return subprocess.run(
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=env,
            cwd=cwd,
            timeout=APT_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        said = f"{' '.join(argv)}: not done in {APT_TIMEOUT_S} s\n"
        return subprocess.CompletedProcess(list(argv), 124, said)


def tail(done: Done[str], lines: int = 15) -> str:
    """Return the last lines of a command's output, for an error message."""
    return "\n".join(done.stdout.splitlines()[-lines:])


@contextlib.contextmanager
def services_held_back() -> Iterator[None]:
    """Keep packages from starting their daemons while they are installed; put all back
    afterwards."""
    backup = POLICY_FILE.with_name(POLICY_FILE.name + ".before-pulsar-failure-reasons")
    if policy_denies():
        yield  # a container image brings such a policy; not ours to remove
        return
    if POLICY_FILE.exists() and not backup.exists():
        POLICY_FILE.rename(backup)
    POLICY_FILE.write_text(f"#!/bin/sh\n{POLICY_MARK}\nexit {POLICY_DENIES}\n")
    POLICY_FILE.chmod(0o755)
    try:
        yield
    finally:
        POLICY_FILE.unlink(missing_ok=True)
        if backup.exists():
            backup.rename(POLICY_FILE)


def policy_denies() -> bool:
    """Tell whether somebody else's policy-rc.d already forbids to start services."""
    try:
        if POLICY_MARK in POLICY_FILE.read_text(errors="replace"):
            return False  # left by a crashed run of ours: taken over, and removed at its end
        asked = subprocess.run(
            [str(POLICY_FILE), "slurmctld", "start"], capture_output=True, timeout=20
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return asked.returncode == POLICY_DENIES


# ---- Slurm 24.11 from trixie -----------------------------------------------------------------


def cache_folder() -> Path:
    """Return the folder of what is unpacked, under XDG_CACHE_HOME or ~/.cache."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "pulsar-failure-reasons"


def slurm24_prefix() -> Optional[Path]:
    """Return the folder of an unpacked Slurm 24.11, whole and in its own place, or None."""
    for done in sorted(cache_folder().glob("slurm-24.11-*/.done"), reverse=True):
        if done.read_text().strip() == str(done.parent):  # its programs hold this path
            return done.parent
    return None


def library_folder(prefix: Path) -> Path:
    """Return ``usr/lib/<triplet>`` of an unpacked Slurm."""
    found = sorted(prefix.glob("usr/lib/*/slurm-wlm"))
    if not found:
        raise HarnessError(
            f"slurm24: no Slurm plugins under {prefix}/usr/lib; remove it and try again"
        )
    return found[0].parent


def install_slurm24() -> None:
    """Download and unpack Slurm 24.11 unless it is there; raise HarnessError if that fails."""
    install_packages("slurm24", APT_PACKAGES["slurm24"])
    if slurm24_prefix() is not None:
        return
    cache = cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another run may be at it
        if slurm24_prefix() is None:
            with tempfile.TemporaryDirectory(dir=cache, prefix="download-") as scratch:
                unpack_slurm24(cache, Path(scratch))


def unpack_slurm24(cache: Path, scratch: Path) -> None:
    """Bring the packages into `scratch` and make ``<cache>/slurm-24.11-<version>`` out of them."""
    debs = download_trixie(scratch)
    version = slurm_version(debs)
    if not version.startswith("24.11."):
        raise HarnessError(f"slurm24: trixie offers Slurm {version}, not 24.11")
    prefix = cache / f"slurm-24.11-{version}"
    partial = scratch / "prefix"
    say(f"slurm24: unpacking {len(debs)} packages into {prefix}")
    unpack(debs, partial)
    patched = point_programs_home(partial, prefix)
    say(f"slurm24: {patched} programs and libraries point to their own ld.so and libraries")
    (partial / ".done").write_text(f"{prefix}\n")
    shutil.rmtree(prefix, ignore_errors=True)
    partial.chmod(0o755)
    partial.rename(prefix)
    shown = subprocess.run(
        [str(prefix / "usr/sbin/slurmctld"), "-V"], capture_output=True, text=True, timeout=60
    )
    if "24.11" not in shown.stdout:
        (prefix / ".done").unlink()
        raise HarnessError(
            f"slurm24: its slurmctld does not run: {shown.stderr.strip() or shown.stdout!r}"
        )


def debian_archive() -> str:
    """Return the address of the Debian archive in the machine's own apt configuration."""
    fields = "$(REPO_URI)|$(RELEASE)|$(COMPONENT)"
    shown = subprocess.run(
        ["apt-get", "indextargets", "--format", fields, "Created-By: Packages"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    for line in shown.stdout.splitlines():
        uri, release, component = (line.split("|") + [""] * 3)[:3]
        plain = "-" not in release and "/" not in release  # neither -updates nor -security
        if component == "main" and plain and uri.rstrip("/").endswith("/debian"):
            return uri
    raise HarnessError(
        "apt's sources name no Debian archive (an address that ends in /debian "
        f"with component main); apt-get indextargets said: {shown.stdout[:300]!r}"
    )


def suite_options(scratch: Path, suite: str = "trixie") -> List[str]:
    """Return apt-get's options for a Debian release with an apt state of its own in `scratch`."""
    for folder in ("lists/partial", "cache/archives/partial"):
        (scratch / folder).mkdir(parents=True)
    (scratch / "status").touch()
    (scratch / "sources.list").write_text(
        f"deb [signed-by={KEYRING}] {debian_archive()} {suite} main\n"
    )
    return [
        f"-oDir::Etc::sourcelist={scratch}/sources.list",
        "-oDir::Etc::sourceparts=/dev/null",
        "-oDir::Etc::preferences=/dev/null",
        "-oDir::Etc::preferencesparts=/dev/null",
        f"-oDir::State={scratch}",
        f"-oDir::State::Lists={scratch}/lists",
        f"-oDir::State::status={scratch}/status",
        f"-oDir::Cache={scratch}/cache",
        "-oAPT::Sandbox::User=root",
        "-oAcquire::Languages=none",
        "-oDebug::NoLocking=1",
        "-oAPT::Keep-Downloaded-Packages=1",
        "-oDpkg::Post-Invoke=",
        "-oAPT::Update::Post-Invoke=",
    ]


def download_trixie(scratch: Path) -> List[Path]:
    """Download Slurm and all it needs (30 MB) into `scratch`; return the package files.

    apt resolves the dependencies against an empty package status, so libc6 and the like come too.
    """
    options = suite_options(scratch)
    fetch = ["install", "-y", "--download-only", "--no-install-recommends", *TRIXIE_PACKAGES]
    say("slurm24: downloading Debian trixie's Slurm and its libraries")

    def attempt(again: bool) -> Done[str]:
        updated = run_apt(["update"], options)
        return run_apt(fetch, options) if updated.returncode == 0 else updated

    until_done("slurm24", "the download", attempt)
    return sorted((scratch / "cache/archives").glob("*.deb"))


def download(
    part: str, options: Sequence[str], packages: Sequence[str], folder: Path
) -> List[Path]:
    """Download just these packages into a new folder, with suite_options; return their files."""
    folder.mkdir()

    def attempt(again: bool) -> Done[str]:
        done = run_apt(["update"], options)
        return done if done.returncode else run_apt(["download", *packages], options, cwd=folder)

    until_done(part, "the download", attempt)
    return sorted(folder.glob("*.deb"))


def slurm_version(debs: Sequence[Path]) -> str:
    """Return the upstream version of the downloaded Slurm, such as ``24.11.5``."""
    for deb in debs:
        if deb.name.startswith("slurmctld_"):
            return deb.name.split("_")[1].split("-")[0].replace("%3a", ":")
    raise HarnessError(f"slurm24: apt downloaded no slurmctld, but {[deb.name for deb in debs]}")


def unpack(debs: Sequence[Path], prefix: Path) -> None:
    """Unpack programs and libraries (no documentation, no locale) into a usr-merged `prefix`."""
    for name in ("bin", "sbin", "lib", "lib64"):
        (prefix / "usr" / name).mkdir(parents=True)
        (prefix / name).symlink_to(f"usr/{name}")  # packages that still ship /lib land in /usr/lib
    tar = [
        "tar",
        "-x",
        "--keep-directory-symlink",
        "--no-same-owner",
        "-C",
        str(prefix),
        "--exclude=./usr/share",
        "--exclude=./etc",
        "--exclude=./var",
    ]
    for deb in debs:
        # only Slurm's own programs: its bin comes first on PATH, and those of others are not
        # patched
        programs = [] if deb.name.startswith("slurm") else LEAVE_PROGRAMS
        with subprocess.Popen(
            ["dpkg-deb", "--fsys-tarfile", str(deb)], stdout=subprocess.PIPE
        ) as content:
            subprocess.run([*tar, *programs], stdin=content.stdout, check=True, timeout=300)
        if content.returncode != 0:
            raise HarnessError(f"slurm24: dpkg-deb could not read {deb.name}")
    for name in ("slurmctld", "slurmd", "slurmstepd"):  # Debian does this with update-alternatives
        link = prefix / "usr/sbin" / name
        if not link.exists():
            link.symlink_to(f"{name}-wlm")


def point_programs_home(partial: Path, prefix: Path) -> int:
    """Make Slurm's ELF files under `partial` use the libraries and ld.so they will find in
    `prefix`."""
    libraries = library_folder(partial)
    final = prefix / libraries.relative_to(partial)
    files = [
        *partial.glob("usr/bin/*"),
        *partial.glob("usr/sbin/slurm*"),
        *libraries.glob("slurm-wlm/*"),
        *libraries.glob("libslurm*"),
    ]
    elf_files = [path for path in files if is_elf(path)]
    for path in elf_files:
        # DT_RPATH, not RUNPATH: it also holds for what the libraries load in their turn
        patchelf("--force-rpath", "--set-rpath", f"{final}:{final}/slurm-wlm", str(path))
        shown = subprocess.run(
            ["patchelf", "--print-interpreter", str(path)],
            capture_output=True,
            text=True,
            timeout=60,
        )
        if shown.returncode == 0:
            patchelf("--set-interpreter", str(final / Path(shown.stdout.strip()).name), str(path))
    return len(elf_files)


def is_elf(path: Path) -> bool:
    """Tell whether a plain file (no link) is an ELF program or library."""
    if path.is_symlink() or not path.is_file():
        return False
    with open(path, "rb") as handle:
        return handle.read(4) == b"\x7fELF"


def patchelf(*arguments: str) -> None:
    """Run patchelf; raise HarnessError with its words if it fails."""
    done = subprocess.run(["patchelf", *arguments], capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        raise HarnessError(f"patchelf {' '.join(arguments)}: {done.stderr.strip()}")


# ---- command line ----------------------------------------------------------------------------


def install_slurm() -> None:
    """Install Debian's own Slurm unless it is there; raise HarnessError if that fails."""
    install_packages("slurm", APT_PACKAGES["slurm"])


def install_htcondor() -> None:
    """Unpack HTCondor from trixie unless it is there; raise HarnessError if that fails."""
    from tests.real import htcondor_install  # which needs this module

    htcondor_install.install_htcondor()


def install_python39() -> None:
    """Unpack Python 3.9 from bullseye unless it is there; raise HarnessError if that fails."""
    from tests.real import python39_install  # which needs this module

    python39_install.install_python39()


def install_gridengine() -> None:
    """Install Debian's Grid Engine unless it is there; raise HarnessError if that fails."""
    mail = [] if shutil.which("mail") else MAIL_COMMAND
    install_packages("gridengine", [*mail, *APT_PACKAGES["gridengine"]])


def install_sshd() -> None:
    """Install OpenSSH's server and client unless they are there; raise HarnessError if that
    fails."""
    install_packages("sshd", APT_PACKAGES["sshd"])


def install_rabbitmq() -> None:
    """Install Debian's RabbitMQ unless it is there; raise HarnessError if that fails."""
    install_packages("rabbitmq", APT_PACKAGES["rabbitmq"])


def install_chromium() -> None:
    """Install Debian's Chromium unless there is one; raise HarnessError if that fails."""
    if chromium.program() is None:
        install_packages("chromium", APT_PACKAGES["chromium"])


def install_postgresql() -> None:
    """Install Debian's PostgreSQL unless it is there; raise HarnessError if that fails."""
    install_packages("postgresql", APT_PACKAGES["postgresql"])


INSTALLERS = {
    "slurm": install_slurm,
    "slurm24": install_slurm24,
    "htcondor": install_htcondor,
    "python39": install_python39,
    "gridengine": install_gridengine,
    "sshd": install_sshd,
    "chromium": install_chromium,
    "postgresql": install_postgresql,
    "rabbitmq": install_rabbitmq,
}


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Install the named parts (all when none is named); return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.real.install",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "part", nargs="*", help=f"what to install: {', '.join(INSTALLERS)} (default: all)"
    )
    parts = parser.parse_args(arguments).part or list(INSTALLERS)
    unknown = [part for part in parts if part not in INSTALLERS]
    if unknown:
        parser.error(f"no such part: {', '.join(unknown)} (known: {', '.join(INSTALLERS)})")
    failures: Dict[str, str] = {}
    for part in parts:
        try:
            INSTALLERS[part]()
            say(f"{part}: ready")
        except (HarnessError, OSError, subprocess.SubprocessError) as error:
            failures[part] = str(error)
            say(f"{part}: NOT installed: {error}")
    return 2 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
