"""The off switch: ``PULSAR_FAILURE_REASONS=off`` in the server's environment.

It keeps the managers registered (else Pulsar would not start) and stops recording and sending.
"""

from __future__ import annotations

import os

VARIABLE = "PULSAR_FAILURE_REASONS"


def reasons_are_off() -> bool:
    """Tell whether the operator has switched reasons off."""
    return os.environ.get(VARIABLE, "").strip().lower() in ("off", "0", "false", "no")
