"""`python -m pulsar_failure_reasons`."""

import sys

from pulsar_failure_reasons.cli import main

if __name__ == "__main__":
    sys.exit(main())
