"""The DRMs we know, one line each. A new one is its module and a line here."""

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
