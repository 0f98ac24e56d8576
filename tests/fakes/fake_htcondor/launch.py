"""Start a job's runner and return at once: ``python launch.py STATE CLUSTER PROC``."""

import os
import sys

FAKES = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def detach():
    """Go on as nobody's child, with none of the files of whoever started us."""
    if os.fork():
        os._exit(0)
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)


if __name__ == "__main__":
    detach()
    sys.path[0] = FAKES  # was the folder of this file
    from fake_htcondor import runner

    sys.exit(runner.main(sys.argv[1:]))
