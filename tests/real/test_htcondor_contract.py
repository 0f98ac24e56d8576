"""The simulated HTCondor answers as the real one: the same scenarios on both, and a recording.

The recording (tests/data/htcondor/contract.json) was made with 23.9.6 and the client 25.14.1; make
it anew with ``python -m tests.real.test_htcondor_contract``. With it the simulated pool is held to
the real one's answers where there is no real one.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Callable, Dict

import pytest

from tests import simulated_htcondor
from tests.real import htcondor_conf as conf
from tests.real.htcondor import PrivatePool

REPOSITORY = Path(__file__).resolve().parents[2]
RECORDING = REPOSITORY / "tests/data/htcondor/contract.json"
SITE_HOLD = "SiteHold =?= True && JobStatus == 2"
SITE_REASON = "the site's rule"
#: A job that is being removed and does not care must still be there for what follows.
VACATE_S = 30
NAMES = sorted(json.loads(RECORDING.read_text())) if RECORDING.exists() else []


def play(env: Dict[str, str], work: Path) -> Dict[str, Any]:
    """Play all scenarios in a process of its own and return what they saw."""
    work.mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "tests.htcondor_scenarios", str(work)],
        env=env,
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    seen: Dict[str, Any] = json.loads(done.stdout)
    return seen


def rules() -> str:
    """The site's rules, as the simulated pool has them."""
    return conf.HOLD_IF_MEMORY_EXCEEDED + conf.system_periodic_hold(SITE_HOLD, SITE_REASON)


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Dict[str, Any]:
    """What the scenarios see on the simulated pool."""
    if not simulated_htcondor.wheel_installed():
        pytest.skip("the answers are of the classes of the Python package htcondor: not installed")
    folder = tmp_path_factory.mktemp("simulated")
    state = folder / "state"
    simulated_htcondor.control().configure(
        str(state),
        startd_hold_memory=True,
        vacate_time=VACATE_S,
        system_periodic_hold=SITE_HOLD,
        system_periodic_hold_reason=SITE_REASON,
        system_periodic_hold_subcode=conf.SYSTEM_HOLD_SUBCODE,
    )
    try:
        return play(simulated_htcondor.environment(state), folder / "work")
    finally:
        simulated_htcondor.stop(state)


@pytest.fixture(scope="module")
def real(
    make_htcondor: Callable[..., PrivatePool], tmp_path_factory: pytest.TempPathFactory
) -> Dict[str, Any]:
    """What the scenarios see on the real pool."""
    pool = make_htcondor(extra_config=f"{rules()}MACHINE_MAX_VACATE_TIME = {VACATE_S}\n")
    return play(pool.env, tmp_path_factory.mktemp("real") / "work")


@pytest.mark.parametrize("name", NAMES)
def test_the_simulated_pool_answers_as_recorded(name: str, simulated: Dict[str, Any]) -> None:
    """Events, ads, totals and refusals are those that a real pool gave when it was recorded."""
    assert simulated[name] == json.loads(RECORDING.read_text())[name]


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_real_pool_answers_as_recorded(name: str, real: Dict[str, Any]) -> None:
    """The recording is what the real pool of today answers."""
    assert real[name] == json.loads(RECORDING.read_text())[name]


def test_every_scenario_is_recorded(simulated: Dict[str, Any]) -> None:
    """No scenario is without its recording."""
    assert sorted(simulated) == NAMES


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir="/tmp") as scratch:  # short: the pool has sockets in it
        with PrivatePool(f"{scratch}/pool", rules()) as private:
            recorded = play(private.env, Path(scratch) / "work")
    RECORDING.write_text(json.dumps(recorded, indent=1, sort_keys=True) + "\n")
