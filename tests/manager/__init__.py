"""``queued_slurm`` inside stock Pulsar, on the simulated Slurm."""
