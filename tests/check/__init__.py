"""Tests of ``pulsar-failure-reasons check``."""
