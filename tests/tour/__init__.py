"""A tour of the command: every subcommand as a person runs it, on a server that has run jobs."""
