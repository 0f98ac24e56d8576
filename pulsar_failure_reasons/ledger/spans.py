"""Spans of time as people write them: ``90d``, ``12h``, ``2w``."""

from __future__ import annotations

import re
from typing import Optional

UNIT_S = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400, "y": 365 * 86400}
EXAMPLES = "12h, 7d, 2w, 1y"
#: More is a slip of the hand, and dates before year 1 cannot be shown.
LONGEST_S = 100 * UNIT_S["y"]

_SPAN = re.compile(r"(\d{1,9})\s*([smhdwy])", re.IGNORECASE)


def parse_span(text: str) -> Optional[int]:
    """Return the seconds of a number with a unit, None where the text is no such span."""
    match = _SPAN.fullmatch(text.strip())
    if match is None:
        return None
    seconds = int(match.group(1)) * UNIT_S[match.group(2).lower()]
    return seconds if 0 < seconds <= LONGEST_S else None
