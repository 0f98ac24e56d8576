"""Each way that sites start Pulsar, with real processes and real environments."""
