"""All checks of a Pulsar host, in the order in which they are made and shown."""

from __future__ import annotations

from typing import Tuple

from .drm import check_commands, check_queries
from .folders import check_folders
from .ledger import check_ledger
from .logs import check_logs
from .options import check_options
from .pulsar import check_company, check_entry_points, check_seams, check_switches, check_types
from .pulsar import check_user
from .run import Check
from .site import Site
from .slurm import check_slurm, check_slurm_user

CHECKS: Tuple[Check[Site], ...] = (
    ("the user", check_user),
    ("the seams", check_seams),
    ("entry points", check_entry_points),
    ("manager types", check_types),
    ("the managers' options", check_options),
    ("the switches", check_switches),
    ("managers that share", check_company),
    ("the DRM's commands", check_commands),
    ("Slurm's configuration", check_slurm),
    ("whom Slurm is asked for", check_slurm_user),
    ("the queries", check_queries),
    ("the folders", check_folders),
    ("the log", check_logs),
    ("the ledger", check_ledger),
)
