"""Files beside the code that it loads by name: templates of job scripts, mostly."""

from __future__ import annotations

import ast
import posixpath
import re
from typing import Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple

from .findings import Finding, Kind, Place
from .tree import GALAXY, Tree

#: A loader is told where to look by one of these: resource_string(__name__, "X.sh").
ANCHORS = frozenset({"__file__", "__name__", "__package__"})
_FILE_NAME = re.compile(r"[\w.-]+(?:/[\w.-]+)*\.\w+")


class Load(NamedTuple):
    """One loading of a file: where it is written, and which file, by path in the shared tree."""

    path: str
    line: int
    resource: str


def loads_in(modules: Mapping[str, ast.Module]) -> List[Load]:
    """Return what the files load by name; ``modules`` are by path in the shared tree."""
    found: Dict[Tuple[str, str], Load] = {}
    for path, module in modules.items():
        for node in ast.walk(module):
            if isinstance(node, (ast.Call, ast.BinOp)) and _is_anchored(node):
                for name in _file_names(node):
                    resource = posixpath.normpath(posixpath.join(posixpath.dirname(path), name))
                    found.setdefault((path, resource), Load(path, node.lineno, resource))
    return list(found.values())


def _is_anchored(node: ast.AST) -> bool:
    return any(isinstance(item, ast.Name) and item.id in ANCHORS for item in ast.walk(node))


def _file_names(node: ast.AST) -> Iterator[str]:
    for item in ast.walk(node):
        if isinstance(item, ast.Constant) and isinstance(item.value, str):
            if _FILE_NAME.fullmatch(item.value):
                yield item.value


def find_missing(tree: Tree, other: Tree, loads: List[Load]) -> Iterator[Finding]:
    """Yield a finding for each file that is loaded by a tree and missing on a side."""
    ours, theirs = tree.mirrored(), other.mirrored()
    for load in loads:
        note = _lacking(tree, other, load.resource in ours, load.resource in theirs)
        if note is None:
            continue
        place = Place(line=load.line)
        galaxy = tree.project is GALAXY
        yield Finding(
            kind=Kind.RESOURCE, path=load.path, name=load.resource, side=tree.project.label,
            galaxy=place if galaxy else None, pulsar=None if galaxy else place, note=note,
        )


def _lacking(tree: Tree, other: Tree, here: bool, there: bool) -> Optional[str]:
    """Say who lacks a file that ``tree`` loads; None where both have it."""
    if not here:
        return f"{tree.project.label} loads it and lacks it"
    return None if there else f"{other.project.label} lacks it"
