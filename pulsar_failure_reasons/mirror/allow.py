"""The file of intended differences: ``allow.toml``."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Dict, List, Sequence, Tuple

from ..errors import MirrorError
from .findings import Finding, Kind

KEYS = ("path", "kind", "name", "reason")
KINDS = tuple(kind.value for kind in Kind)


@dataclass(frozen=True)
class Allowance:
    """One entry: which findings are intended, and why.

    ``paths`` and ``names`` are patterns (``*``, ``?``, ``[...]``); one that fits is enough.
    """

    paths: Tuple[str, ...]
    reason: str
    kinds: Tuple[str, ...] = KINDS
    names: Tuple[str, ...] = ("*",)

    def fits(self, finding: Finding) -> bool:
        """Tell whether a finding is one of those meant."""
        return (
            finding.kind.value in self.kinds
            and any(fnmatchcase(finding.path, pattern) for pattern in self.paths)
            and any(fnmatchcase(finding.name, pattern) for pattern in self.names)
        )

    def __str__(self) -> str:
        """Name the entry as its file does."""
        return f"{', '.join(self.paths)} ({self.reason})"


def read_allowances(path: str) -> List[Allowance]:
    """Return the entries of an allow file.

    Raises:
        MirrorError: it cannot be read, or an entry is not understood; the message says which.
    """
    try:
        content = Path(path).read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise MirrorError(f"{path} cannot be read: {error}") from error
    values = _parse_toml(path, content)
    entries = values.pop("allow", [])
    if values or not isinstance(entries, list):
        raise MirrorError(f"{path}: only [[allow]] tables are understood, with {', '.join(KEYS)}")
    return [_allowance(f"{path}: entry {number}", entry) for number, entry in enumerate(entries, 1)]


def _parse_toml(path: str, content: str) -> Dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        try:
            import tomli as tomllib
        except ImportError as error:
            raise MirrorError(
                f"{path}: reading TOML on this Python needs tomli; "
                "pip install 'pulsar-failure-reasons[tools]'"
            ) from error
    try:
        return dict(tomllib.loads(content))
    except tomllib.TOMLDecodeError as error:
        raise MirrorError(f"{path} is not TOML: {error}") from error


def _allowance(where: str, entry: Any) -> Allowance:
    if not isinstance(entry, dict):
        raise MirrorError(f"{where}: expected a table, got {entry!r:.80}")
    unknown = sorted(set(entry) - set(KEYS))
    if unknown:
        raise MirrorError(f"{where}: unknown key {unknown[0]}; there are: {', '.join(KEYS)}")
    reason = entry.get("reason")
    if not isinstance(reason, str) or not reason.strip():
        raise MirrorError(f"{where}: needs a reason, a text that says why it is intended")
    kinds = _texts(where, "kind", entry.get("kind", list(KINDS)))
    wrong = [kind for kind in kinds if kind not in KINDS]
    if wrong:
        raise MirrorError(f"{where}: no kind {wrong[0]}; there are: {', '.join(KINDS)}")
    return Allowance(
        paths=_texts(where, "path", entry.get("path")), reason=reason.strip(), kinds=kinds,
        names=_texts(where, "name", entry.get("name", "*")),
    )


def _texts(where: str, key: str, value: Any) -> Tuple[str, ...]:
    """Return a text or a list of texts as a tuple."""
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not values or not all(
        isinstance(item, str) and item for item in values
    ):
        raise MirrorError(f"{where}: {key} must be a text or a list of texts, got {value!r:.80}")
    return tuple(values)


def apply_allowances(
    findings: Sequence[Finding], allowances: Sequence[Allowance]
) -> Tuple[List[Finding], List[Allowance]]:
    """Return the findings with their reasons, and the entries that fit none."""
    marked = []
    used = set()
    for finding in findings:
        fitting = [number for number, entry in enumerate(allowances) if entry.fits(finding)]
        used.update(fitting)
        reason = allowances[fitting[0]].reason if fitting else None
        marked.append(replace(finding, allowed=reason))
    return marked, [entry for number, entry in enumerate(allowances) if number not in used]
