"""Pulsar's statuses that Galaxy's runners compare as bare literals, where nothing ties the two."""

from __future__ import annotations

import ast
from typing import Dict, Iterator, List, NamedTuple, Set, Tuple

from .findings import Finding, Kind, Place

#: Where Pulsar defines them, each as NAME = "word".
STATUS_MODULE = "pulsar/managers/status.py"


class Literal(NamedTuple):
    """A text that a function compares something with."""

    function: str
    compared: str
    text: str
    line: int


def statuses_of(module: ast.Module) -> Dict[str, str]:
    """Return the statuses that Pulsar's module defines: name by word."""
    return {
        statement.value.value: target.id
        for statement in module.body if isinstance(statement, ast.Assign)
        for target in statement.targets
        if isinstance(target, ast.Name) and target.id.isupper()
        and isinstance(statement.value, ast.Constant) and isinstance(statement.value.value, str)
    }


def literals_in(module: ast.Module) -> List[Literal]:
    """Return the texts that a file compares something with, in order."""
    return list(_literals(module, ""))


def _literals(node: ast.AST, function: str) -> Iterator[Literal]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        function = f"{function}.{node.name}".lstrip(".")
    if isinstance(node, ast.Compare):
        yield from _compared(function, [node.left, *node.comparators])
    elif type(node).__name__ == "Match":  # Python 3.10
        cases = [item for case in getattr(node, "cases") for item in ast.walk(case.pattern)]
        yield from _compared(function, [getattr(node, "subject"), *cases])
    for child in ast.iter_child_nodes(node):
        yield from _literals(child, function)


def _compared(function: str, operands: List[ast.AST]) -> Iterator[Literal]:
    subject = ast.unparse(operands[0])
    for operand in operands:
        for text, line in _texts(operand):
            yield Literal(function, subject, text, line)


def _texts(node: ast.AST) -> List[Tuple[str, int]]:
    """Return the texts that an operand is: one, or those of a tuple, list or set."""
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return [found for item in node.elts for found in _texts(item)]
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [(node.value, node.lineno)]
    return []


def find_bare(path: str, literals: List[Literal], statuses: Dict[str, str]) -> Iterator[Finding]:
    """Yield a finding for each status that a file compares, and for each word beside one.

    What is compared with one of Pulsar's statuses is a status: a word that it is also compared
    with, and that Pulsar does not have, can never be equal.
    """
    subjects = {item.compared for item in literals if item.text in statuses}
    seen: Set[Tuple[str, str]] = set()
    for item in literals:
        key = (item.function, item.text)
        if item.compared not in subjects or key in seen:
            continue
        seen.add(key)
        lines = [other.line for other in literals
                 if (other.function, other.text) == key and other.compared in subjects]
        yield _finding(path, item, lines, statuses)


def _finding(path: str, item: Literal, lines: List[int], statuses: Dict[str, str]) -> Finding:
    known = statuses.get(item.text)
    note = f"pulsar.managers.status.{known}" if known else "Pulsar has no such status"
    if len(lines) > 1:
        note += "; lines " + ", ".join(str(line) for line in lines)
    return Finding(
        kind=Kind.STATUS, path=path, name=f"{item.function}: {item.text}",
        galaxy=Place(line=lines[0]), note=f"{note}; compared: {item.compared}",
    )
