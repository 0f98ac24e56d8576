"""What all tests share."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _no_switches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the environment of whoever runs the tests out of them."""
    for name in ("PULSAR_FAILURE_REASONS", "PULSAR_FAILURE_REASONS_OVERRIDE", "PULSAR_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
