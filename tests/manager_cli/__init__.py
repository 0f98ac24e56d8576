"""``queued_cli_classified``: Pulsar's shell and job plugins on simulated and real DRMs."""
