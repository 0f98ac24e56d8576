"""Measurements: ``make bench``, or ``python -m benchmarks`` in the test environment.

One module per measurement, each with ``measure()`` and a result that knows its ``section()`` of
RESULTS.md and its ``targets()``. ``pulsar_site`` and ``child`` are what they share.
"""
