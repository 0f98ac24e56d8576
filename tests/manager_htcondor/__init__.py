"""The manager ``queued_htcondor_classified`` on a simulated pool."""
