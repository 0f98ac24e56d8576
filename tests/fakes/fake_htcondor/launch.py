"""Start a job's runner: ``python launch.py STATE CLUSTER PROC``."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.remove(os.path.dirname(os.path.abspath(__file__)))  # its queue.py is not the standard one

from fake_htcondor import runner  # noqa: E402

if __name__ == "__main__":
    sys.exit(runner.main(sys.argv[1:]))
