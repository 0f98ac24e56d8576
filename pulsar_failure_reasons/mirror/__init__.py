"""Drift between the tree that Galaxy and Pulsar share, and keep in step by hand.

Galaxy's ``galaxy/jobs/runners/util`` and Pulsar's ``pulsar/managers/util`` began as one. Nothing in
either project notices when they part, so this does: :func:`compare_trees` reads both (a path, a
wheel or an installed package, see :func:`open_tree`), runs nothing of them, and returns a
:class:`Report` of what differs and whether it was meant to.
"""

from __future__ import annotations

from .allow import Allowance, read_allowances
from .compare import compare_trees
from .findings import Finding, Report
from .render import as_json, as_markdown, as_text
from .tree import GALAXY, PULSAR, Tree, open_tree

__all__ = (
    "GALAXY",
    "PULSAR",
    "Allowance",
    "Finding",
    "Report",
    "Tree",
    "as_json",
    "as_markdown",
    "as_text",
    "compare_trees",
    "open_tree",
    "read_allowances",
)
