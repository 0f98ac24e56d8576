"""What all tests share: markers by place, how long hypothesis searches, a clean environment."""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path
from typing import List, Optional, Tuple

import pytest
from hypothesis import HealthCheck, settings

TESTS = Path(__file__).resolve().parent

#: Tests whose jobs run in a simulated DRM. They wait more than they compute.
SIMULATED = (
    "manager*/*", "attempts/*", "test_reconcile.py", "check/test_app_*", "tour/*", "test_fake_*",
    "real/test_*_contract.py",
)
#: Those of them that ``make test-fast`` runs too: rows of the table, recorded answers. Not those of
#: HTCondor: each of its calls is a process, which is too much for a minute.
CORE = ("manager/test_table.py", "manager_cli/test_table.py", "test_fake_slurm_contract.py")

#: Collected only where they are asked for by name: they need Galaxy's environments, which
#: `make test-galaxy` makes.
GALAXIES = ("galaxy", "galaxy_unit")

# No deadline, no health check of speed: they measure how busy the machine is, not us.
PATIENT = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("fast", max_examples=40, **PATIENT)
settings.register_profile("full", max_examples=400, **PATIENT)
settings.load_profile("fast")  # pytest --hypothesis-profile=full


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> Optional[bool]:
    """Leave out what needs a Galaxy where it is not asked for."""
    if collection_path.parent == TESTS and collection_path.name in GALAXIES:
        return None if any("galaxy" in argument for argument in config.args) else True
    return None


@pytest.hookimpl(tryfirst=True)  # before -m selects
def pytest_collection_modifyitems(items: List[pytest.Item]) -> None:
    """Mark the tests on simulated DRMs, so that a new module needs no marker of its own."""
    for item in items:
        place = _place(item)
        if _is_one_of(place, SIMULATED) and item.get_closest_marker("real") is None:
            item.add_marker("simulated")
            if _is_one_of(place, CORE):
                item.add_marker("core")


def _place(item: pytest.Item) -> str:
    try:
        return item.path.relative_to(TESTS).as_posix()
    except ValueError:
        return ""


def _is_one_of(place: str, patterns: Tuple[str, ...]) -> bool:
    return any(fnmatch(place, pattern) for pattern in patterns)


@pytest.fixture(autouse=True)
def _no_switches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the environment of whoever runs the tests out of them."""
    for name in ("PULSAR_FAILURE_REASONS", "PULSAR_FAILURE_REASONS_OVERRIDE",
                 "PULSAR_FAILURE_REASONS_GALAXY", "PULSAR_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
