"""Checks of Pulsar itself: seams in a fresh process, types, options, switches.

``PYTHONPATH`` gives the fresh process another Pulsar, or an environment without our ``.pth``.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

from pulsar_failure_reasons.check.options import check_options
from pulsar_failure_reasons.check.pulsar import (
    check_company,
    check_entry_points,
    check_seams,
    check_switches,
    check_types,
    check_user,
)
from pulsar_failure_reasons.pulsar_hooks import active_seams
from tests.manager.harness import Slurm

from .harness import codes, found_in, said, slurm_app, write_app

#: Takes the finder of our .pth away, as a site does that removes the file.
WITHOUT_PTH = """\
import sys
sys.meta_path[:] = [f for f in sys.meta_path if type(f).__name__ != "PulsarFailureReasonsFinder"]
"""
FACTORY = "[app:main]\npaste.app_factory = pulsar_failure_reasons.wsgi:app_factory\n"
STOCK_FACTORY = "[app:main]\npaste.app_factory = pulsar.web.wsgi:app_factory\n"


@pytest.fixture(autouse=True)
def slurm(tmp_path: Path) -> Iterator[Slurm]:
    """A simulated Slurm, so that a manager finds its commands."""
    with Slurm(tmp_path / "slurm").in_use() as simulated:
        yield simulated


@pytest.fixture
def first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that comes first on the path of processes started from here."""
    folder = tmp_path / "first"
    folder.mkdir()
    monkeypatch.setenv("PYTHONPATH", str(folder))
    return folder


@pytest.fixture
def other_pulsar(first: Path) -> Callable[..., None]:
    """Give fresh processes a Pulsar of a few lines: ``other_pulsar(version, seams)``."""
    def make(version: str, *seams: str, init: str = "") -> None:
        (first / "pulsar").mkdir()
        (first / "pulsar" / "__init__.py").write_text(f"__version__ = {version!r}\n{init}\n")
        for seam in seams:
            module, function = seam.split(".")
            with open(first / "pulsar" / f"{module}.py", "a") as handle:
                handle.write(f"def {function}(*_): return {{}}\n")
        (first / "pulsar" / "manager_factory.py").touch()
        (first / "pulsar" / "manager_endpoint_util.py").touch()

    return make


#: The functions that we wrap, but for those of the web server, which a webless host may lack.
SEAMS = [name.partition(".")[2] for name in active_seams() if ".web." not in name]


# ---- the seams ------------------------------------------------------------------------------


def test_seams_by_pth(tmp_path: Path) -> None:
    """This environment's .pth is at work, and its Pulsar will do."""
    found = found_in(slurm_app(tmp_path), check_seams)
    assert codes(found) == {"PFR101", "PFR110"}
    assert said(found, "PFR110").endswith("/pulsar_failure_reasons.pth")


@pytest.mark.parametrize(
    "version, code", [("0.15.15", "PFR102"), ("0.15.16", "PFR101"), ("fork", "PFR103")],
)
def test_version(
    tmp_path: Path, other_pulsar: Callable[..., None], version: str, code: str
) -> None:
    """A Pulsar before 0.15.16 is refused, a version that is none is told of."""
    other_pulsar(version, *SEAMS)
    found = found_in(slurm_app(tmp_path), check_seams)
    assert codes(found) & {"PFR101", "PFR102", "PFR103"} == {code}
    assert ("PFR110" in codes(found)) is (version != "0.15.15")


def test_a_seam_that_is_gone(tmp_path: Path, other_pulsar: Callable[..., None]) -> None:
    """PFR114 names the function that this Pulsar lacks."""
    other_pulsar("0.99.0", *(name for name in SEAMS if not name.endswith("full_status")))
    found = found_in(slurm_app(tmp_path), check_seams)
    assert codes(found) == {"PFR101", "PFR114"}
    assert "pulsar.manager_endpoint_util.full_status" in said(found, "PFR114")


def test_a_process_that_dies(tmp_path: Path, other_pulsar: Callable[..., None]) -> None:
    """PFR105: a Pulsar that cannot be imported, with the process's last line."""
    other_pulsar("0.16.0", init="import sys; print('no libfoo', file=sys.stderr); sys.exit(3)")
    found = found_in(slurm_app(tmp_path), check_seams)
    assert codes(found) == {"PFR105"}
    assert "ended with 3: no libfoo" in said(found, "PFR105")


@pytest.mark.parametrize(
    "ini, route, code",
    [
        (None, "auto", "PFR113"),
        (STOCK_FACTORY, "auto", "PFR113"),
        (FACTORY, "auto", "PFR111"),
        (None, "run", "PFR112"),
        (None, "install", "PFR112"),
        (None, "wsgi", "PFR111"),
    ],
)
def test_without_pth(tmp_path: Path, first: Path, ini: Any, route: str, code: str) -> None:
    """Without the .pth another way in must be known, and is tried."""
    (first / "sitecustomize.py").write_text(WITHOUT_PTH)
    server_ini = None
    if ini is not None:
        server_ini = str(tmp_path / "server.ini")
        Path(server_ini).write_text(ini)
    found = found_in(slurm_app(tmp_path), check_seams, server_ini=server_ini, route=route)
    assert codes(found) == {"PFR101", code}


def test_who_checks(tmp_path: Path) -> None:
    """PFR104 tells the PATH under which was checked."""
    found = found_in(slurm_app(tmp_path), check_user)
    assert codes(found) == {"PFR104"} and os.environ["PATH"] in found[0].what


# ---- types and entry points -----------------------------------------------------------------


def test_types_that_tell(tmp_path: Path) -> None:
    """Our managers are told with the class that they come from."""
    found = found_in(slurm_app(tmp_path), check_types)
    assert codes(found) == {"PFR120"}
    assert "pulsar_failure_reasons.managers.slurm:SlurmQueueManager" in found[0].what


def test_types_that_do_not_tell(tmp_path: Path) -> None:
    """A stock type is a warning with ours instead; without any of ours it is an error too."""
    managers = {"_default_": {"type": "queued_drmaa"}, "b": {"type": "queued_python"}}
    found = found_in(write_app(tmp_path, managers=managers), check_types)
    assert codes(found) == {"PFR122", "PFR123"}
    assert found[0].advice == "use queued_slurm, if the DRM is Slurm"


def test_an_unknown_type(tmp_path: Path) -> None:
    """A misspelt type is an error with the nearest name."""
    managers = {"_default_": {"type": "queued_slrum"}, "b": {"type": "queued_slurm"}}
    found = found_in(write_app(tmp_path, managers=managers), check_types)
    assert codes(found) == {"PFR121", "PFR120"}
    assert "did you mean 'queued_slurm'?" in said(found, "PFR121")


def test_entry_points(tmp_path: Path, first: Path) -> None:
    """PFR124: an entry point that cannot be imported, and none without one."""
    path = slurm_app(tmp_path)
    assert codes(found_in(path, check_entry_points)) == set()
    info = first / "home_made-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: home-made\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[pulsar.managers]\nhome = no_such_module:Manager\n")
    found = found_in(path, check_entry_points)
    assert codes(found) == {"PFR124"}
    assert "no_such_module:Manager of home-made" in found[0].what


# ---- options --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options, code, words",
    [
        ({"cluster": "gpu", "status_poll_interval": 30}, "PFR130",
         "cluster, status_poll_interval"),
        ({}, "PFR130", "all defaults"),
        ({"accounting": "sact"}, "PFR131", "must be one of: auto, sacct, none"),
        ({"native_specification": "--time='1"}, "PFR131", "native_specification"),
        ({"status_pol_interval": 30}, "PFR132", "is 'status_poll_interval' meant?"),
        ({"job_plugin": "x", "env_A": "1", "colour": "red"}, "PFR133", "'colour'"),
        ({"maximum_stream_size": "much"}, "PFR134", "ValueError"),
    ],
)
def test_options(tmp_path: Path, options: Any, code: str, words: str) -> None:
    """Values are judged by the manager's own reader; unknown names are told of."""
    path = write_app(tmp_path, manager={"type": "queued_slurm", **options})
    found = found_in(path, check_options)
    assert codes(found) - {"PFR130"} == {code} - {"PFR130"}
    assert words in said(found, code)


# ---- switches and company -------------------------------------------------------------------


def test_switches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The off switch and observe_only are told of, and nothing where neither is on."""
    assert found_in(slurm_app(tmp_path), check_switches) == []
    monkeypatch.setenv("PULSAR_FAILURE_REASONS", "off")
    found = found_in(slurm_app(tmp_path, observe_only=True), check_switches)
    assert codes(found) == {"PFR140", "PFR141"}


def test_company(tmp_path: Path) -> None:
    """Managers of one cluster share a query, and those of one folder are told of."""
    assert found_in(slurm_app(tmp_path), check_company) == []
    managers = {
        name: {"type": "queued_slurm", "staging_directory": str(tmp_path / name), **more}
        for name, more in {"a": {}, "b": {}, "c": {"cluster": "other"}}.items()
    }
    found = found_in(write_app(tmp_path, managers=managers), check_company)
    assert codes(found) == {"PFR142"}
    assert [finding.what for finding in found] == ["a, b share one query for jobs"]
    managers["b"]["staging_directory"] = managers["c"]["staging_directory"]
    found = found_in(write_app(tmp_path, managers=managers), check_company)
    assert f"b, c share the staging folder {tmp_path / 'c'}" in said(found, "PFR142")
