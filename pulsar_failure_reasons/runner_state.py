"""Galaxy's words for why a job ended, and which of them may be sent to Galaxy.

Source: ``galaxy.jobs.runners.util.runner_states`` (galaxy-app 26.1.2) and Pulsar's copy,
``pulsar.managers.util.runner_states`` (pulsar-app 0.16.0).
"""

from __future__ import annotations

WALLTIME_REACHED = "walltime_reached"
MEMORY_LIMIT_REACHED = "memory_limit_reached"
UNKNOWN_ERROR = "unknown_error"

#: The tokens that this package puts on the wire. ``output_size_limit`` is missing on purpose:
#: Galaxy evaluates no resubmit condition at all for it.
WIRE_TOKENS = frozenset({WALLTIME_REACHED, MEMORY_LIMIT_REACHED, UNKNOWN_ERROR})
