"""Ask a DRM about one job, with the commands that an admin would use, and read what they print."""

from __future__ import annotations

import os
import shutil
from typing import List, Tuple

from pulsar_failure_reasons.drm.captured import CANNOT_TELL, Captured
from pulsar_failure_reasons.drm.registry import DRM_MODULES, LABELS
from pulsar_failure_reasons.errors import ConfigurationError, DrmError
from pulsar_failure_reasons.execute import run
from pulsar_failure_reasons.reason import clean_text

TIMEOUT_S = 60.0


def ask_drm(drm: str, external_id: str) -> Captured:
    """Return what the first of the DRM's commands that can tell says of a job.

    The controller is asked first, accounting only where it no longer knows the job.

    Raises:
        ConfigurationError: none of the commands is on this host.
        DrmError: none gave an answer, with what they said.
    """
    commands = DRM_MODULES[drm].EXPLAIN_COMMANDS
    present = [argv for argv in commands if shutil.which(argv[0])]
    if not present:
        names = ", ".join(sorted({argv[0] for argv in commands}))
        raise ConfigurationError(
            f"none of {LABELS[drm]}'s commands is here ({names}): run this on a host that has "
            f"them, or give a file with their output"
        )
    return _first_that_tells(drm, external_id, present)


def _first_that_tells(drm: str, external_id: str, commands: List[Tuple[str, ...]]) -> Captured:
    complaints: List[str] = []
    environment = {**os.environ, "LC_ALL": "C"}
    for argv in commands:
        result = run([part.format(id=external_id) for part in argv], TIMEOUT_S, environment)
        captured: Captured = DRM_MODULES[drm].read_captured(result.stdout, "auto", external_id)
        if captured.ended is not None:
            return captured
        if result.stderr.strip():
            complaints.append(f"{argv[0]}: {clean_text(result.stderr.strip())}")
    if complaints:
        raise DrmError(f"{LABELS[drm]} does not tell of {external_id}: {'; '.join(complaints)}")
    return CANNOT_TELL
