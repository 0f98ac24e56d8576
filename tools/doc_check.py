"""docs/check.md: the text of tools/doc_check.md, with the tables that the code holds."""

from __future__ import annotations

import pathlib
from typing import List

from pulsar_failure_reasons.check.codes import CODES, THEMES
from pulsar_failure_reasons.check.trial import WALLTIME_OPTIONS
from tools.doc_tables import GENERATED, table

TEXT = pathlib.Path(__file__).resolve().with_suffix(".md")


def check_page() -> str:
    """Return docs/check.md."""
    parts = {"GENERATED": [GENERATED], "WALLTIMES": _walltimes(), "CODES": _codes()}
    page = TEXT.read_text()
    for name, lines in parts.items():
        page = page.replace("@%s@" % name, "\n".join(lines))
    return page


def _walltimes() -> List[str]:
    rows = [[drm, "`%s`" % option] for drm, option in WALLTIME_OPTIONS.items()]
    rows.append(["htcondor", "`request_walltime: 20` (the manager's own option)"])
    return table(["DRM", "option"], rows)


def _codes() -> List[str]:
    lines: List[str] = []
    for prefix, heading in THEMES:
        rows = ([code, row.level.value, row.means, row.do]
                for code, row in CODES.items() if code.startswith(prefix))
        lines += ["### %s" % heading.replace("`", ""), ""]
        lines += [*table(["code", "level", "means", "do"], rows), ""]
    return lines[:-1]
