"""Real Galaxies with real Pulsars: each Galaxy is a process in an environment of its own."""
