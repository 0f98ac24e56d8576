"""Why the DRM ended a job, from a stock Pulsar to a stock Galaxy.

Nothing is imported here: Python's start-up may touch this package in processes that have nothing
to do with Pulsar.
"""


def install() -> None:
    """Put the seams into Pulsar by hand, for sites that forbid `.pth` files. May be called twice."""
    from pulsar_failure_reasons import pulsar_hooks

    pulsar_hooks.install()
