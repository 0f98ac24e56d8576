"""The report as a snippet for Total Perspective Vortex: memory for the tools that run out of it.

TPV's ``mem`` is in GB, which Galaxy and the DRMs read as GiB, and its tool ids are regular
expressions.
"""

from __future__ import annotations

import json
import re
from typing import Dict, List

from ..reason import Cause
from .build import HEADROOM, NEWEST_JOBS, Limit, Report
from .words import show_amount

GIB = 2**30


def render_tpv(report: Report) -> str:
    """Return YAML to be merged into a TPV file by hand; comments only where nothing is known."""
    lines = [
        "# Memory for tools whose jobs were killed for memory, from the failure ledger.",
        f"# Period: {report.period}.",
        f"# Suggested: {HEADROOM} times the 95 % of what the newest {NEWEST_JOBS} killed jobs",
        "# asked for or used. They were stopped on their way, so what they need is not known:",
        "# raise by hand what fails again.",
    ]
    by_tool = _by_tool(report)
    if not by_tool:
        return "\n".join([*lines, "# No tool was killed for memory.", "tools: {}", ""])
    lines.append("tools:")
    for tool, limits in by_tool.items():
        lines += _tool_lines(tool, limits)
    return "\n".join([*lines, ""])


def _by_tool(report: Report) -> Dict[str, List[Limit]]:
    """Return the memory limits by tool, all versions of a tool together."""
    found: Dict[str, List[Limit]] = {}
    for limit in report.limits:
        if limit.cause == Cause.MEMORY.value and limit.suggested is not None:
            found.setdefault(tool_pattern(limit.tool), []).append(limit)
    return found


def tool_pattern(tool: str) -> str:
    """Return TPV's key for a tool: any version of one from a tool shed."""
    parts = tool.split("/")
    from_shed = "repos" in parts and len(parts) >= 5
    name, version = ("/".join(parts[:-1]) + "/", ".*") if from_shed else (tool, "")
    # A dot is left as it is, as TPV's own shared database does: readable, and wide enough.
    return re.sub(r"([\\^$*+?{}\[\]|()])", r"\\\1", name) + version


def _tool_lines(pattern: str, limits: List[Limit]) -> List[str]:
    suggested = max(limit.suggested or 0 for limit in limits)
    kills, ended = sum(limit.kills for limit in limits), sum(limit.ends for limit in limits)
    asked = max((limit.requested_p50 or 0 for limit in limits), default=0) or None
    return [
        f"  {json.dumps(pattern)}:",
        f"    # {kills:,} of {ended:,} ended jobs killed; they asked for "
        f"{show_amount(asked, 'memory_bytes')}",
        f"    mem: {int(suggested // GIB)}",
    ]
