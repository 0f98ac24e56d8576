"""Which functions, classes and constants of two files differ, and in which words."""

from __future__ import annotations

import ast
from typing import Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

from .findings import Kind, Place
from .normalise import dump

#: Longer texts are cut in reports.
MAX_WORD_CHARS = 60


class Unit(NamedTuple):
    """A part of a file that has a name: all statements that define it, in order."""

    kind: Kind
    name: str
    nodes: Tuple[ast.AST, ...]


class Difference(NamedTuple):
    """A unit that is on one side only (the other is None), or not the same on both."""

    kind: Kind
    name: str
    galaxy: Optional[Place]
    pulsar: Optional[Place]


def compare_modules(galaxy: ast.Module, pulsar: ast.Module) -> List[Difference]:
    """Return the differences of two normalised files, in the order of their lines.

    Empty exactly where the syntax trees are equal.
    """
    if dump(galaxy) == dump(pulsar):
        return []
    ours, theirs = _units(galaxy), _units(pulsar)
    differences = [
        _difference(key, ours.get(key), theirs.get(key))
        for key in [*ours, *(key for key in theirs if key not in ours)]
        if _dumped(ours.get(key)) != _dumped(theirs.get(key))
    ]
    if not differences:  # the same parts in another order
        start = Place(line=1)
        return [Difference(Kind.ORDER, "order of definitions", start, start)]
    return _without_members(differences)


def _without_members(differences: List[Difference]) -> List[Difference]:
    """Leave out what is in a class that one side lacks as a whole."""
    whole = tuple(
        f"{item.name}." for item in differences
        if item.kind is Kind.CLASS and (item.galaxy is None or item.pulsar is None)
    )
    return [item for item in differences if not item.name.startswith(whole)]


def _dumped(unit: Optional[Unit]) -> Optional[str]:
    return None if unit is None else dump(unit.nodes)


def _difference(
    key: Tuple[Kind, str], galaxy: Optional[Unit], pulsar: Optional[Unit]
) -> Difference:
    here, there = _words(galaxy), _words(pulsar)
    both = galaxy is not None and pulsar is not None
    return Difference(
        key[0], key[1],
        _place(galaxy, here - there if both else set()),
        _place(pulsar, there - here if both else set()),
    )


def _place(unit: Optional[Unit], words: Set[str]) -> Optional[Place]:
    if unit is None:
        return None
    return Place(line=getattr(unit.nodes[0], "lineno", 1), words=tuple(sorted(words)))


# --- the parts of a file ----------------------------------------------------------------------


def _units(module: ast.Module) -> Dict[Tuple[Kind, str], Unit]:
    nodes_by_key: Dict[Tuple[Kind, str], List[ast.AST]] = {}
    for kind, name, node in _parts(module.body, ""):
        nodes_by_key.setdefault((kind, name), []).append(node)
    return {key: Unit(*key, tuple(nodes)) for key, nodes in nodes_by_key.items()}


def _parts(body: List[ast.stmt], prefix: str) -> Iterator[Tuple[Kind, str, ast.AST]]:
    for statement in body:
        if isinstance(statement, ast.ClassDef):
            yield Kind.CLASS, prefix + statement.name, _header(statement)
            yield from _parts(statement.body, f"{prefix}{statement.name}.")
        elif not isinstance(statement, ast.Pass):
            yield _part(statement, prefix)


def _part(statement: ast.stmt, prefix: str) -> Tuple[Kind, str, ast.AST]:
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return Kind.FUNCTION, prefix + statement.name, statement
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return Kind.IMPORT, prefix + _import_name(statement), statement
    if isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
        return Kind.CONSTANT, prefix + _target_name(statement), statement
    return Kind.CODE, prefix + _block_name(statement), statement


def _header(node: ast.ClassDef) -> ast.ClassDef:
    """Return a class without its body: bases, decorators, keywords."""
    header = ast.ClassDef(
        name=node.name, bases=node.bases, keywords=node.keywords, body=[],
        decorator_list=node.decorator_list,
    )
    header.type_params = []  # type: ignore[attr-defined]
    return ast.copy_location(header, node)


def _import_name(statement: ast.stmt) -> str:
    if isinstance(statement, ast.ImportFrom):
        return f"{statement.module}.{_alias(statement.names[0])}"
    assert isinstance(statement, ast.Import)
    return _alias(statement.names[0])


def _alias(alias: ast.alias) -> str:
    return f"{alias.name} as {alias.asname}" if alias.asname else alias.name


def _target_name(statement: ast.stmt) -> str:
    targets = getattr(statement, "targets", None) or [getattr(statement, "target")]
    return ", ".join(ast.unparse(target) for target in targets)


def _block_name(statement: ast.stmt) -> str:
    """Return a name for a statement that has none: ``try``, ``if``, ``call``."""
    return "call" if isinstance(statement, ast.Expr) else type(statement).__name__.lower()


# --- words ------------------------------------------------------------------------------------


def _words(unit: Optional[Unit]) -> Set[str]:
    """Return the names and constants in a unit, as a person would look for them."""
    if unit is None:
        return set()
    words = {_word(node) for top in unit.nodes for node in ast.walk(top)}
    return {word for word in words if word}


def _word(node: ast.AST) -> str:
    if isinstance(node, ast.Constant):
        text = repr(node.value)
        return text if len(text) <= MAX_WORD_CHARS else text[: MAX_WORD_CHARS - 1] + "…"
    for name in ("id", "attr", "arg"):  # Name, Attribute, keyword and parameter
        value = getattr(node, name, None)
        if isinstance(value, str):
            return value
    return ""
