"""What a comparison found, as values: the renderers add nothing to them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Dict, List, Optional, Tuple

from .tree import Tree


class Kind(Enum):
    """What differs."""

    # parts of a file that both sides have
    FUNCTION = "function"
    CLASS = "class"
    CONSTANT = "constant"
    IMPORT = "import"
    CODE = "code"
    ORDER = "order"
    TEXT = "text"
    # the tree
    FILE = "file"
    ACROSS = "across"
    RESOURCE = "resource"
    STATUS = "status"


#: The kinds that make a file of both sides one that differs in behaviour.
PARTS_OF_FILES = (
    Kind.FUNCTION, Kind.CLASS, Kind.CONSTANT, Kind.IMPORT, Kind.CODE, Kind.ORDER, Kind.TEXT,
)


class Verdict(Enum):
    """How a file that both sides have compares."""

    IDENTICAL = "identical"
    FORMATTING = "formatting"
    BEHAVIOUR = "behaviour"


@dataclass(frozen=True)
class Place:
    """Where something stands on one side; ``words`` are those that the other side lacks there."""

    line: int
    words: Tuple[str, ...] = ()


@dataclass(frozen=True)
class Finding:
    """One difference, with all that tells it from others.

    ``path`` is a path in the shared tree (``cli/job/lsf.py``), or from the package on for files
    outside of it (``galaxy/jobs/runners/drmaa.py``). ``name`` is the function, the constant, the
    imported module, the resource file or the literal; for a whole file its path. ``galaxy`` and
    ``pulsar`` say where; None is "not there", or for a whole file that its lines do not matter.
    ``side`` is the project that has what the other lacks; None where both have it. ``allowed`` is
    the reason in the allow file, None where there is none.
    """

    kind: Kind
    path: str
    name: str
    side: Optional[str] = None
    galaxy: Optional[Place] = None
    pulsar: Optional[Place] = None
    note: str = ""
    used_by: Tuple[str, ...] = ()
    allowed: Optional[str] = None


@dataclass
class Report:
    """The outcome of one comparison.

    ``verdicts`` tells of each file that both sides have. ``not_checked`` names what could not be
    looked at with the trees given. ``unused_allowances`` are entries of the allow file that met no
    difference. ``never_compared`` are statuses of Pulsar that Galaxy compares nowhere.
    """

    galaxy: Tree
    pulsar: Tree
    verdicts: Dict[str, Verdict] = field(default_factory=dict)
    findings: List[Finding] = field(default_factory=list)
    not_checked: List[str] = field(default_factory=list)
    unused_allowances: List[str] = field(default_factory=list)
    never_compared: List[str] = field(default_factory=list)

    def of_kinds(self, *kinds: Kind) -> List[Finding]:
        """Return the findings of some kinds, in order."""
        return [finding for finding in self.findings if finding.kind in kinds]

    def files(self, verdict: Verdict) -> List[str]:
        """Return the paths of the files with one verdict."""
        return [path for path, found in self.verdicts.items() if found is verdict]

    @property
    def not_allowed(self) -> List[Finding]:
        """The findings for which the allow file has no entry."""
        return [finding for finding in self.findings if finding.allowed is None]
