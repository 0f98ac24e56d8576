"""Python environments for the launcher tests.

A stock Pulsar takes 20 s to install, so one environment per Pulsar version is kept under
`.env/launchers/`. A test's own environment is a fresh one that has the stock one's packages on its
path (as a plain path line: their `.pth` files are not read), and our package installed by pip.
"""

from __future__ import annotations

import fcntl
import hashlib
import pathlib
import shutil
import subprocess
import sys
import venv
from typing import Dict, NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CACHE = ROOT / ".env" / "launchers"
STUB = pathlib.Path(__file__).resolve().parent / "stub"

NEWEST = "0.16.0"
OLDEST = "0.15.16"
TOO_OLD = "0.15.15"

# gunicorn and paste serve, kombu is the AMQP client, the last two build our package.
WITH_PULSAR = (
    "webob", "paste", "pastedeploy", "gunicorn", "kombu", "hatchling>=1.21", "editables")

STUB_ENTRY_POINTS = {"stub": "stub_managers:StubManager"}


class Environment(NamedTuple):
    """A virtual environment."""

    folder: pathlib.Path

    @property
    def python(self) -> pathlib.Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"

    @property
    def site_packages(self) -> pathlib.Path:
        """Where its packages are."""
        version = "python%d.%d" % sys.version_info[:2]
        return self.folder / "lib" / version / "site-packages"

    def script(self, name: str) -> str:
        """Return the path of one of its console scripts."""
        return str(self.folder / "bin" / name)


def stock(pulsar: str) -> Environment:
    """Return the environment of a stock Pulsar, made the first time."""
    requirements = ["pulsar-app==%s" % pulsar] + list(WITH_PULSAR)
    digest = hashlib.sha256("\n".join(requirements).encode()).hexdigest()[:8]
    environment = Environment(
        CACHE / ("pulsar-%s-py%d.%d-%s" % ((pulsar,) + sys.version_info[:2] + (digest,)))
    )
    CACHE.mkdir(parents=True, exist_ok=True)
    with open("%s.lock" % environment.folder, "w") as lock:
        # The workers of pytest-xdist must not build the same environment.
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp = environment.folder / "complete"
        if not stamp.is_file():
            shutil.rmtree(environment.folder, ignore_errors=True)
            venv.create(environment.folder, with_pip=True, symlinks=True)
            _run([str(environment.python), "-m", "pip", "install", "-q"] + requirements)
            stamp.touch()
    return environment


def layered(folder: pathlib.Path, pulsar: str = NEWEST) -> Environment:
    """Return a fresh environment with a stock Pulsar and its console scripts."""
    below = stock(pulsar)
    environment = Environment(folder)
    venv.create(folder, with_pip=False, symlinks=True)
    (environment.site_packages / "below.pth").write_text("%s\n" % below.site_packages)
    for name in ("pulsar-main", "pulsar-serve", "gunicorn"):
        text = (below.folder / "bin" / name).read_text()
        script = environment.folder / "bin" / name
        script.write_text(text.replace(str(below.python), str(environment.python), 1))
        script.chmod(0o755)
    return environment


def build_wheel(folder: pathlib.Path) -> pathlib.Path:
    """Return a wheel of this checkout."""
    _run([str(stock(NEWEST).python), "-m", "pip", "wheel", "-q", "--no-deps", "--no-index",
          "--no-build-isolation", "--wheel-dir", str(folder), str(ROOT)])
    (wheel,) = folder.glob("*.whl")
    return wheel


def pip_install(environment: Environment, *what: str) -> None:
    """Install into a layered environment, with the pip of the stock one and nothing fetched."""
    _run([str(stock(NEWEST).python), "-m", "pip", "--python", str(environment.python), "install",
          "-q", "--no-deps", "--no-index", "--no-build-isolation", *what])


def add_distribution(environment: Environment, name: str, entry_points: Dict[str, str]) -> None:
    """Put a distribution with manager entry points there, and the modules of the stub with it."""
    for module in STUB.glob("*.py"):
        shutil.copy(module, environment.site_packages)
    info = environment.site_packages / ("%s-1.0.dist-info" % name.replace("-", "_"))
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: %s\nVersion: 1.0\n" % name)
    lines = ["[pulsar.managers]"] + ["%s = %s" % pair for pair in entry_points.items()]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")


def forbid_startup_files(environment: Environment) -> None:
    """Remove our `.pth` and `.start` files, as sites do that forbid them."""
    for name in ("pulsar_failure_reasons.pth", "pulsar_failure_reasons.start"):
        (environment.site_packages / name).unlink()


def _run(command: list) -> None:
    subprocess.run(command, check=True, timeout=1800, stdin=subprocess.DEVNULL)
