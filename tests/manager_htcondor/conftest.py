"""Fixtures: a simulated pool of the test's own, and Pulsars on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Iterator, List

import pytest

from tests.pulsar_in_process import own_observers

from .harness import Pool, Pulsar

MakePulsar = Callable[..., Pulsar]


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[Pool]:
    """A simulated pool."""
    with Pool(tmp_path / "pool").in_use() as simulated:
        yield simulated


@pytest.fixture
def make_pulsar(tmp_path: Path, pool: Pool) -> Iterator[MakePulsar]:
    """Start a server: ``make_pulsar(missing_grace=1)``; all are shut down at the end.

    Servers of one test share folders, so that the second one is the first one restarted.
    """
    servers: List[Pulsar] = []

    def make(**options: Any) -> Pulsar:
        managers = options.pop("managers", None)
        servers.append(Pulsar(tmp_path, manager=options, managers=managers))
        return servers[-1]

    with own_observers():
        try:
            yield make
        finally:
            for server in servers:
                server.shutdown()


@pytest.fixture
def pulsar(make_pulsar: MakePulsar) -> Pulsar:
    """A server with the options of ``QUICK``."""
    return make_pulsar()
