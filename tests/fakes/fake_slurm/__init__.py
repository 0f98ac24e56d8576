"""A simulated Slurm 22.05: ``sbatch``, ``squeue``, ``scontrol``, ``sacct``, ``scancel`` over one
folder.

See ../README.md. ``control`` is for tests; the other modules are what the commands are made of.
"""

import os
import sys

_FAKES = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
if _FAKES not in sys.path:  # imported by a test under another name
    sys.path.insert(0, _FAKES)
