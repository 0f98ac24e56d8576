"""Tests of ``galaxy_runners`` with Galaxy's own code; run by the Python of a Galaxy environment."""
