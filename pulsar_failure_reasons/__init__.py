"""Why the DRM ended a job, from a stock Pulsar to a stock Galaxy.

Nothing is imported here: Python's start-up may touch this package in processes that have nothing
to do with Pulsar.
"""


def install() -> None:
    """Put the seams into Pulsar by hand, for sites that forbid `.pth` files. May be called twice.

    Raises:
        ImportError: there is no pulsar-app in this environment.
    """
    # By name: an import statement would make the package's root, which every module imports,
    # depend on the module above all of them.
    import importlib

    importlib.import_module("pulsar_failure_reasons.pulsar_hooks").install()
