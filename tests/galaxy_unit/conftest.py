"""Collects nothing where Galaxy is not installed: these tests are for its environments."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any, Iterator, List

import pytest

HERE = Path(__file__).resolve().parent


def _has_galaxy() -> bool:
    # A Pulsar environment has parts of the package `galaxy`, and not this one.
    return importlib.util.find_spec("galaxy.jobs") is not None


collect_ignore_glob: List[str] = [] if _has_galaxy() else ["*.py"]


@pytest.fixture(scope="session")
def database(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Galaxy's model on an SQLite file, made once."""
    from galaxy.model.mapping import init
    from sqlalchemy import event
    from sqlalchemy.engine import Engine

    # Hundreds of tables: on a busy disk the syncs alone would take a quarter of a minute.
    @event.listens_for(Engine, "connect")
    def _do_not_sync(connection: Any, _record: Any) -> None:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA journal_mode = MEMORY")

    folder = tmp_path_factory.mktemp("galaxy")
    return init(str(folder), f"sqlite:///{folder}/galaxy.sqlite", create_tables=True)


@pytest.fixture
def galaxy(database: Any) -> Iterator[Any]:
    """A stub Galaxy: real model, real runners, nothing started."""
    from .stub import Galaxy

    stub = Galaxy(database)
    try:
        yield stub
    finally:
        database.context.remove()
