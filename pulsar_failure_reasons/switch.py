"""Switches in the environment.

``PULSAR_FAILURE_REASONS=off`` in a Pulsar server's keeps the managers registered (else Pulsar
would not start) and stops recording and sending. ``PULSAR_FAILURE_REASONS_GALAXY=1`` in Galaxy's
gives its stock Pulsar runners our mixin in place.
"""

from __future__ import annotations

import os

VARIABLE = "PULSAR_FAILURE_REASONS"
GALAXY_VARIABLE = "PULSAR_FAILURE_REASONS_GALAXY"


def reasons_are_off() -> bool:
    """Tell whether the operator has switched reasons off."""
    return os.environ.get(VARIABLE, "").strip().lower() in ("off", "0", "false", "no")


def galaxy_opted_in() -> bool:
    """Tell whether Galaxy's stock runner classes are to get ours in place."""
    value = os.environ.get(GALAXY_VARIABLE, "").strip().lower()
    return value in ("1", "on", "true", "yes")
