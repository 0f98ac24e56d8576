"""What a check can find: the stable codes and a finding.

The text of a code in :data:`.codes.CODES` is general and goes into ``docs/check.md``; a finding
adds what was seen here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, Iterable, Mapping, Optional

from .codes import CODES, Level

#: Exit codes of the command.
FINE, PROBLEMS = 0, 1


@dataclass(frozen=True)
class Finding:
    """One thing that a check found.

    Args:
        code: One of :data:`.codes.CODES`.
        what: What was seen here, in one sentence.
        about: The manager, file or environment of Galaxy it is about; "" for the host.
        do: What to do; None for what the table says.
        numbers: Measurements for the JSON form.
    """

    code: str
    what: str
    about: str = ""
    do: Optional[str] = None
    numbers: Mapping[str, float] = field(default_factory=dict)

    @property
    def level(self) -> Level:
        """How bad it is."""
        return CODES[self.code].level

    @property
    def advice(self) -> str:
        """What to do; "" where nothing is."""
        return CODES[self.code].do if self.do is None else self.do

    def to_dict(self) -> Dict[str, Any]:
        """Return the finding as JSON values."""
        return {
            "code": self.code,
            "level": self.level.value,
            "about": self.about,
            "what": self.what,
            "do": self.advice,
            **({"numbers": dict(self.numbers)} if self.numbers else {}),
        }


def count_by_level(findings: Iterable[Finding]) -> Dict[str, int]:
    """Return how many findings there are of each level."""
    counts = {level.value: 0 for level in Level}
    for finding in findings:
        counts[finding.level.value] += 1
    return counts


def exit_code_of(findings: Iterable[Finding]) -> int:
    """Return 1 where there is an error among the findings, else 0."""
    return PROBLEMS if any(finding.level is Level.ERROR for finding in findings) else FINE
