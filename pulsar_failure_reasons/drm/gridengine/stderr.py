"""What Grid Engine writes into a job's stderr: nothing.

execd and qmaster write to their own message files, mails and accounting; what a job's stderr
holds is the shell's and the tool's. So there is never a finding, and a tool that prints
"exceeded hard wallclock time" proves nothing.
"""

from __future__ import annotations

from typing import Optional

from ..base import StderrFinding


def classify_stderr(text: str, external_id: Optional[str]) -> Optional[StderrFinding]:
    """Return None: see above. Takes what every DRM's function of this name takes."""
    del text, external_id
    return None
