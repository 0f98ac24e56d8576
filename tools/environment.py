"""Run Python in an environment of this checkout, made first if it is not there or out of date.

    python3 tools/environment.py EXTRA [--python PATH] -- PYTHON-ARGUMENTS...

EXTRA is one of the extras of pyproject.toml. The environment `.env/EXTRA-X.Y` holds this checkout
(editable) and that extra. Or it is a release of Galaxy (`galaxy-26.1`): then `.env/galaxy-26.1`
holds that Galaxy, what the tests need beside it, and this checkout without extras, as a site has
it: a pulsar-app would overwrite the Pulsar library that Galaxy brings. Progress goes to stderr, the
full output of pip or uv to a log beside it.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
from typing import Dict, List, Optional

import galaxy_releases

ROOT = pathlib.Path(__file__).resolve().parent.parent
ENVIRONMENTS = ROOT / ".env"
# What an installed environment copies out of the checkout: a change means install again.
COPIED = ("pulsar_failure_reasons.pth", "pulsar_failure_reasons.start")
# The tables of pyproject.toml that say what is installed. The others set up tools.
INSTALLED_TABLES = ("build-system", "project", "tool.hatch")
INSTALL_TIMEOUT_S = 1200
# A download may fail that goes well a moment later: an index that is restarted, a lock of apt's.
ATTEMPTS = 4
PAUSE_S = 15
# What pip and uv wait for an answer, and how often they ask again; also for the tests' own pips.
PATIENCE = {"PIP_DEFAULT_TIMEOUT": "60", "PIP_RETRIES": "8",
            "UV_HTTP_TIMEOUT": "120", "UV_HTTP_RETRIES": "8"}


def ensure(extra: str, python: str = sys.executable) -> pathlib.Path:
    """Return the interpreter of an up-to-date environment.

    Raises:
        SystemExit: it cannot be made; the message says why and what to do.
    """
    if extra in galaxy_releases.REQUIREMENTS:
        name, make = extra, _make_galaxy
    else:
        name, make = "%s-%s" % (extra, _version(python)), _make
    folder = ENVIRONMENTS / name
    ENVIRONMENTS.mkdir(exist_ok=True)
    for variable, value in PATIENCE.items():
        os.environ.setdefault(variable, value)
    stamp = folder / "stamp"
    with open("%s.lock" % folder, "w") as lock:
        # Two `make` at once must not build the same environment.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.is_file() or stamp.read_text() != _fingerprint(extra):
            make(folder, extra, python)
            stamp.write_text(_fingerprint(extra))
    return folder / "bin" / "python"


def _make_galaxy(folder: pathlib.Path, release: str, python: str) -> None:
    _say("making %s (about 300 packages; a minute or some) ..." % folder.relative_to(ROOT))
    inside = str(folder / "bin" / "python")
    python = galaxy_releases.interpreter(python)
    if not (folder / "bin" / "pip").is_file():
        shutil.rmtree(folder, ignore_errors=True)
        _provide_venv(python)
        _run([python, "-m", "venv", str(folder)], folder)
    packages = [*galaxy_releases.REQUIREMENTS[release], "--editable", str(ROOT)]
    try:
        # pip needs four minutes for what takes uv half a one.
        uv = [_uv(python), "pip", "install", "--compile-bytecode", "--python", inside]
        _fetch(uv + packages, folder, _uv_settings(inside))
    except SystemExit as error:
        _say("%s\nuv cannot do it; trying pip (some minutes)" % error)
        _fetch([inside, "-m", "pip", "install", "--disable-pip-version-check"] + packages, folder)


def _uv(python: str) -> str:
    """Return the program uv, kept in an environment of its own."""
    folder = ENVIRONMENTS / "uv"
    program = folder / "bin" / "uv"
    pip = [str(folder / "bin" / "python"), "-m", "pip"]
    with open("%s.lock" % folder, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.is_file():
            _run([python, "-m", "venv", str(folder)], folder)
            _fetch(pip + ["install", "--disable-pip-version-check", "uv"], folder)
    return str(program)


def _uv_settings(python: str) -> Dict[str, str]:
    """Return variables that tell uv what pip's own configuration on this machine tells pip."""
    listed = subprocess.run([python, "-m", "pip", "config", "list"], stdout=subprocess.PIPE,
                            universal_newlines=True, timeout=60).stdout
    found = dict(re.findall(r"^(?:global|install|:env:)\.(\S+?)='(.*)'$", listed, re.MULTILINE))
    names = {"cert": "SSL_CERT_FILE", "index-url": "UV_DEFAULT_INDEX",
             "extra-index-url": "UV_INDEX", "find-links": "UV_FIND_LINKS"}
    settings = {names[name]: found[name] for name in names if name in found}
    return {**os.environ, **settings, "UV_INDEX_STRATEGY": "unsafe-best-match"}


def _make(folder: pathlib.Path, extra: str, python: str) -> None:
    _say("making %s (about a minute the first time) ..." % folder.relative_to(ROOT))
    if not (folder / "bin" / "pip").is_file():
        shutil.rmtree(folder, ignore_errors=True)
        _provide_venv(python)
        _run([python, "-m", "venv", str(folder)], folder)
    pip = [str(folder / "bin" / "python"), "-m", "pip"]
    install = pip + ["install", "--disable-pip-version-check"]
    # An older one, as Debian 11 and RHEL 9 have, makes no editable installs without a setup.py.
    _fetch(install + ["pip>=21.3"], folder)
    _fetch(install + ["--editable", "%s[%s]" % (ROOT, extra)], folder)


def _provide_venv(python: str) -> None:
    """Install Debian's python3-venv where Python came without what makes environments."""
    if subprocess.run([python, "-c", "import ensurepip"], stderr=subprocess.DEVNULL,
                      timeout=60).returncode == 0:
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise SystemExit("%s cannot make virtual environments (no ensurepip). On Debian: "
                         "apt-get install python3-venv" % python)
    _say("installing python3-venv ...")
    log = ENVIRONMENTS / "python3-venv"
    env = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    apt = ["apt-get", "-oDPkg::Lock::Timeout=600", "-oAcquire::Retries=5"]
    _fetch(apt + ["update"], log, env)
    _fetch(apt + ["install", "-y", "python3-venv"], log, env)


def _fetch(command: List[str], folder: pathlib.Path, env: Optional[Dict[str, str]] = None) -> None:
    """Run an installer that downloads, several times if need be; SystemExit as of ``_run``."""
    for left in reversed(range(ATTEMPTS)):
        try:
            return _run(command, folder, env)
        except SystemExit as error:
            if not left:
                raise
            _say("%s\ntrying again in %d s (%d more)" % (error, PAUSE_S, left))
            time.sleep(PAUSE_S)


def _run(command: List[str], folder: pathlib.Path, env: Optional[Dict[str, str]] = None) -> None:
    log = pathlib.Path("%s.log" % folder)
    how = "failed"
    with open(log, "wb") as output:
        try:
            if subprocess.run(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                              timeout=INSTALL_TIMEOUT_S, env=env).returncode == 0:
                return
        except subprocess.TimeoutExpired:
            how = "not done in %d s" % INSTALL_TIMEOUT_S
    tail = log.read_text(errors="replace").splitlines()[-15:]
    raise SystemExit("%s\n%s: %s (all of it: %s)" % (
        "\n".join(tail), how, " ".join(command), log))


def _version(python: str) -> str:
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    return subprocess.run([python, "-c", code], check=True, timeout=60, stdout=subprocess.PIPE,
                          universal_newlines=True).stdout.strip()


def _fingerprint(extra: str) -> str:
    digest = hashlib.sha256(_installed_tables((ROOT / "pyproject.toml").read_text()).encode())
    for name in COPIED:
        digest.update((ROOT / name).read_bytes())
    for requirement in galaxy_releases.REQUIREMENTS.get(extra, ()):
        digest.update(requirement.encode())
    return digest.hexdigest()


def _installed_tables(text: str) -> str:
    """Return the part of a pyproject.toml that installs read (tomllib came with Python 3.11)."""
    tables = re.split(r"^(?=\[)", text, flags=re.MULTILINE)
    return "".join(table for table in tables if table.lstrip("[").startswith(INSTALLED_TABLES))


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


def main() -> None:
    """Make the environment and become its Python."""
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("extra")
    parser.add_argument("--python", default=sys.executable)
    # argparse would take what follows "--" for ours if an option stands before it.
    end = (sys.argv + ["--"]).index("--")
    options = parser.parse_args(sys.argv[1:end])
    arguments = sys.argv[end + 1:]
    python = str(ensure(options.extra, options.python))
    if arguments:
        # So that commands that these tests start (pulsar-main ...) are this environment's.
        os.environ["PATH"] = "%s:%s" % (os.path.dirname(python), os.environ.get("PATH", ""))
        os.chdir(ROOT)
        os.execv(python, [python] + arguments)
    print(python)


if __name__ == "__main__":
    main()
