"""Small trees of Galaxy and Pulsar for the tests of ``mirror``."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import List, Mapping, Sequence

from pulsar_failure_reasons.mirror import (
    GALAXY, PULSAR, Allowance, Report, compare_trees, open_tree,
)

GALAXY_FOLDER = "galaxy/jobs/runners/util"
PULSAR_FOLDER = "pulsar/managers/util"
STATUS = 'QUEUED = "queued"\nFAILED = "failed"\nLOST = "lost"\n'


def write(root: Path, files: Mapping[str, str]) -> Path:
    """Write files below a folder; each text without its common indentation."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    return root


def shared(folder: str, files: Mapping[str, str]) -> Mapping[str, str]:
    """Return the files of a shared tree by their whole paths."""
    return {f"{folder}/{name}": text for name, text in {"__init__.py": "", **files}.items()}


def compare(
    tmp_path: Path,
    galaxy: Mapping[str, str],
    pulsar: Mapping[str, str],
    outside: Mapping[str, str] = {},
    allowances: Sequence[Allowance] = (),
) -> Report:
    """Compare two shared trees; ``outside`` holds files elsewhere, by whole path."""
    write(tmp_path, {"pulsar-root/pulsar/managers/status.py": STATUS})
    for name, text in outside.items():
        write(tmp_path, {f"{name.split('/')[0]}-root/{name}": text})
    write(tmp_path / "galaxy-root", shared(GALAXY_FOLDER, galaxy))
    write(tmp_path / "pulsar-root", shared(PULSAR_FOLDER, pulsar))
    return compare_trees(
        open_tree(GALAXY, str(tmp_path / "galaxy-root")),
        open_tree(PULSAR, str(tmp_path / "pulsar-root")),
        allowances,
    )


def told(report: Report) -> List[str]:
    """Return what the findings are: ``kind path name``, and who alone has it."""
    return [
        " ".join([item.kind.value, item.path, item.name, item.side or "both"])
        for item in report.findings
    ]
