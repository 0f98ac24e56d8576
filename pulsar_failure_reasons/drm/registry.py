"""The DRMs we know, one line each. A new one is its module and a line here.

What each module has is told in ``docs/adding-a-drm.md``.
"""

from __future__ import annotations

from types import ModuleType
from typing import Dict

from . import gridengine, htcondor, lsf, pbs, slurm

DRM_MODULES: Dict[str, ModuleType] = {
    "slurm": slurm,
    "htcondor": htcondor,
    "lsf": lsf,
    "pbs": pbs,
    "gridengine": gridengine,
}

#: What people call each DRM.
LABELS: Dict[str, str] = {name: module.LABEL for name, module in DRM_MODULES.items()}
#: The other names that a DRM goes by, and which of ours that is.
OTHER_NAMES: Dict[str, str] = {
    other: name
    for name, module in DRM_MODULES.items()
    for other in getattr(module, "OTHER_NAMES", ())
}
