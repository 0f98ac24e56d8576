"""Attempts of one job on a Pulsar whose managers are stock's own."""
