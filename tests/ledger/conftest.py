"""A real PostgreSQL for the ledger, started when the first test asks."""

from __future__ import annotations

import os
from typing import Iterator

import pytest

from tests.real import postgresql
from tests.real.conftest import private_home
from tests.real.postgresql import PrivatePostgresql
from tests.real.require import require_real


@pytest.fixture(scope="module")
def server() -> Iterator[PrivatePostgresql]:
    """A server with an empty database, the module's own."""
    require_real("PostgreSQL", postgresql.why_missing())
    home, lock = private_home("postgresql")
    with PrivatePostgresql(home) as running:
        yield running
    os.close(lock)
