"""The simulated Slurm's controls, for tests and the demonstration.

``tests/fakes`` is a folder of its own, as a DRM's programs are: it is put on the path here and
nowhere else.
"""

from __future__ import annotations

import sys
from pathlib import Path

FAKES = str(Path(__file__).parent / "fakes")
if FAKES not in sys.path:
    sys.path.insert(0, FAKES)

from fake_slurm import control  # noqa: E402

__all__ = ["control"]
