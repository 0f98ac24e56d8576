"""Real DRMs and sshds for the tests, each started when the first test asks.

``pytest -x`` and a crash leave nothing behind for long: they live in folders that belong to this
checkout and are taken over, with whatever still runs in them, by the next run.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import tempfile
from pathlib import Path
from typing import Any, Callable, Iterator, List, Tuple

import pytest

from tests.real import gridengine, htcondor, sshd
from tests.real.gridengine import PrivateGridEngine
from tests.real.htcondor import PrivatePool
from tests.real.require import require_real
from tests.real.slurm import PrivateSlurm, why_missing
from tests.real.slurm_machine import cgroup_usable
from tests.real.sshd import PrivateSshd

SlurmFactory = Callable[..., PrivateSlurm]
PoolFactory = Callable[..., PrivatePool]
CellFactory = Callable[..., PrivateGridEngine]
SshdFactory = Callable[..., PrivateSshd]
NO_CGROUP = (
    "cgroup v1 memory limits cannot be set here: needs root and a kernel that has them mounted"
)


def private_home(kind: str) -> Tuple[Path, int]:
    """Return a folder for one cluster or pool, and the lock that keeps other runs out of it.

    Short, because it holds sockets, and below the same folder for every run of this checkout.
    """
    checkout = hashlib.sha256(str(Path(__file__).resolve()).encode()).hexdigest()[:8]
    base = Path(tempfile.gettempdir()) / f"real-{kind}-{os.geteuid()}-{checkout}"
    base.mkdir(mode=0o755, exist_ok=True)
    for number in range(1000):
        lock = os.open(base / f"{number}.lock", os.O_CREAT | os.O_RDWR)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            continue
        return base / str(number), lock
    raise AssertionError(f"1000 clusters are in use below {base}")


@pytest.fixture(scope="session")
def make_slurm() -> Iterator[SlurmFactory]:
    """Return a function that starts a cluster with PrivateSlurm's options; all end with the
    session."""
    started: List[PrivateSlurm] = []
    locks: List[int] = []

    def make(version: str = "22.05", **options: Any) -> PrivateSlurm:
        accounting = bool(options.get("accounting", True))
        require_real(
            f"Slurm {version}", why_missing(version, accounting, options.get("auth", "munge"))
        )
        if options.get("cgroup") is True:
            require_real("Slurm with cgroups", None if cgroup_usable() else NO_CGROUP)
        home, lock = private_home("slurm")
        locks.append(lock)
        slurm = PrivateSlurm(home, version=version, **options)
        slurm.start()
        started.append(slurm)
        return slurm

    yield make
    for slurm in started:
        slurm.stop()
    for lock in locks:
        os.close(lock)


@pytest.fixture(scope="session")
def real_slurm(make_slurm: SlurmFactory) -> PrivateSlurm:
    """Slurm 22.05 with accounting, two nodes, and cgroups where the kernel has them."""
    return make_slurm(nodes=2)


@pytest.fixture(scope="session")
def real_slurm_24(make_slurm: SlurmFactory) -> PrivateSlurm:
    """Slurm 24.11 with accounting, two nodes, and cgroups where the kernel has them."""
    return make_slurm("24.11", nodes=2)


@pytest.fixture(scope="session", params=["22.05", "24.11"])
def real_slurm_each(request: pytest.FixtureRequest) -> PrivateSlurm:
    """Each of the two versions in turn, as in ``real_slurm`` and ``real_slurm_24``."""
    name = "real_slurm" if request.param == "22.05" else "real_slurm_24"
    slurm: PrivateSlurm = request.getfixturevalue(name)
    return slurm


@pytest.fixture(scope="session")
def real_slurm_fast_forget(make_slurm: SlurmFactory) -> PrivateSlurm:
    """Slurm 22.05 whose controller forgets an ended job after about 10 s."""
    return make_slurm(min_job_age=2)


@pytest.fixture(scope="session")
def real_slurm_24_fast_forget(make_slurm: SlurmFactory) -> PrivateSlurm:
    """Slurm 24.11 whose controller forgets an ended job after about 10 s."""
    return make_slurm("24.11", min_job_age=2)


@pytest.fixture(scope="session")
def real_slurm_no_accounting(make_slurm: SlurmFactory) -> PrivateSlurm:
    """Slurm 22.05 without accounting that forgets an ended job after about 10 s."""
    return make_slurm(accounting=False, min_job_age=2)


@pytest.fixture(scope="session")
def real_slurm_no_cgroup(make_slurm: SlurmFactory) -> PrivateSlurm:
    """Slurm 22.05 without cgroups or accounting: memory limits by OverMemoryKill."""
    return make_slurm(cgroup=False, accounting=False)


@pytest.fixture(scope="session")
def real_slurm_limits(make_slurm: SlurmFactory) -> PrivateSlurm:
    """Slurm 22.05 that enforces accounts and QOS limits; QOS ``one`` allows one job at a time."""
    slurm = make_slurm(enforce_limits=True)
    slurm.add_qos("one", [slurm.user], max_submit_jobs=1)
    return slurm


@pytest.fixture(scope="session")
def real_slurm_private_data(make_slurm: SlurmFactory) -> PrivateSlurm:
    """Slurm 22.05 in which users see their own jobs only (munge: auth/none would trust anybody)."""
    return make_slurm(private_data=True)


@pytest.fixture(scope="session")
def make_htcondor() -> Iterator[PoolFactory]:
    """Return a function that starts a pool with PrivatePool's options; all end with the session."""
    started: List[PrivatePool] = []
    locks: List[int] = []

    def make(**options: Any) -> PrivatePool:
        require_real("HTCondor", htcondor.why_missing())
        home, lock = private_home("htcondor")
        locks.append(lock)
        pool = PrivatePool(home, **options)
        pool.start()
        started.append(pool)
        return pool

    yield make
    for pool in started:
        pool.stop()
    for lock in locks:
        os.close(lock)


@pytest.fixture(scope="session")
def real_htcondor(make_htcondor: PoolFactory) -> PrivatePool:
    """HTCondor 23.9 with 16 slots and without rules of the site."""
    return make_htcondor()


@pytest.fixture(scope="session")
def make_gridengine() -> Iterator[CellFactory]:
    """Return a function that starts a cell with PrivateGridEngine's options; all end with the
    session."""
    started: List[PrivateGridEngine] = []
    locks: List[int] = []

    def make(**options: Any) -> PrivateGridEngine:
        require_real("Grid Engine", gridengine.why_missing())
        home, lock = private_home("gridengine")
        locks.append(lock)
        cell = PrivateGridEngine(home, **options)
        cell.start()
        started.append(cell)
        return cell

    yield make
    for cell in started:
        cell.stop()
    for lock in locks:
        os.close(lock)


@pytest.fixture(scope="session")
def real_gridengine(make_gridengine: CellFactory) -> PrivateGridEngine:
    """Grid Engine 8.1.9 with 16 slots whose accounting does not lag."""
    return make_gridengine()


@pytest.fixture(scope="session")
def make_sshd() -> Iterator[SshdFactory]:
    """Return a function that starts an sshd with PrivateSshd's options; all end with the
    session."""
    started: List[PrivateSshd] = []
    locks: List[int] = []

    def make(**options: Any) -> PrivateSshd:
        require_real("sshd", sshd.why_missing())
        home, lock = private_home("sshd")
        locks.append(lock)
        server = PrivateSshd(home, **options)
        server.start()
        started.append(server)
        return server

    yield make
    for server in started:
        server.stop()
    for lock in locks:
        os.close(lock)
