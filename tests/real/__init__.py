"""Tests against real parts (a private Slurm), and the harness that installs, starts and stops
them."""
