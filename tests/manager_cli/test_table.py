"""Every row of ``queued_slurm``'s table holds by command line too: the same judgement, the same
words."""

from __future__ import annotations

from typing import Iterator

import pytest

from tests.manager.harness import Pulsar, Slurm, own_observers, reason_of, running
from tests.manager.test_table import ROWS, interfere

from .conftest import CLI


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pulsar]:
    """A server with a job for each row, all submitted; what comes from outside is done."""
    home = tmp_path_factory.mktemp("table")
    with Slurm(home / "slurm").in_use() as slurm, own_observers():
        with running(Pulsar(home, manager=CLI)) as pulsar:
            ids = {name: pulsar.submit(name, row.command, row.native) for name, row in ROWS.items()}
            for name, row in ROWS.items():
                if row.scancel or row.event:
                    interfere(slurm, pulsar, name, ids[name])
            yield pulsar


@pytest.mark.parametrize("name", ROWS)
def test_row(table: Pulsar, name: str) -> None:
    """Each row of the table has its status, reason, token and message in the payload."""
    row = ROWS[name]
    payload = table.end(name)
    assert (payload["status"], reason_of(payload)) == (row.status, row.cause)
    assert payload.get("runner_state") == row.runner_state
    assert payload["returncode"] == row.returncode
    if row.cause is not None:
        assert row.message in payload["runner_state_message"]
        assert payload["failure_reason"]["confidence"] == row.confidence
        assert payload["failure_reason"]["external_id"] == table.external_id(name)
