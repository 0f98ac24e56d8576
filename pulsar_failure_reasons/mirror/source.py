"""Python files as syntax trees, and the imports in them."""

from __future__ import annotations

import ast
import platform
import warnings
from enum import Enum
from typing import Iterator, List, NamedTuple, Optional

from ..errors import MirrorError


class Condition(Enum):
    """When an import is tried."""

    ALWAYS = "always"
    GUARDED = "guarded: may fail"
    FALLBACK = "fallback: only where another import fails"
    TYPING = "type checking only"


class Import(NamedTuple):
    """One imported name; ``name`` is None for ``import a.b``, ``module`` is absolute."""

    module: str
    name: Optional[str]
    line: int
    condition: Condition

    @property
    def targets(self) -> List[str]:
        """The modules that it may mean, the longest first: ``from a import b`` may be ``a.b``."""
        return [self.module] if self.name is None else [f"{self.module}.{self.name}", self.module]


def parse(path: str, content: bytes) -> ast.Module:
    """Return the syntax tree of a Python file; nothing is run.

    Raises:
        MirrorError: this Python cannot read it.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd escapes in strings are not ours to mend
            return ast.parse(content, filename=path)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = f" line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        raise MirrorError(
            f"{path}{line}: Python {platform.python_version()} cannot read it ({error}); "
            "a newer Python may"
        ) from error


def package_of(path: str) -> str:
    """Return the package that relative imports of a file start from."""
    return path.rpartition("/")[0].replace("/", ".")


def module_of(path: str) -> str:
    """Return a file's name as Python imports it."""
    return path[: -len(".py")].replace("/", ".").replace(".__init__", "")


def absolute_module(node: ast.ImportFrom, package: str) -> str:
    """Return the module that ``from ... import`` names, also where the dots lead out of it all."""
    if not node.level:
        return node.module or ""
    parts = package.split(".")
    base = parts[: max(len(parts) - node.level + 1, 0)]
    return ".".join(base + ([node.module] if node.module else []))


def imports_of(path: str, module: ast.Module) -> List[Import]:
    """Return every import of a file, also those inside functions."""
    return list(_imports(module, package_of(path), Condition.ALWAYS))


def _imports(node: ast.AST, package: str, condition: Condition) -> Iterator[Import]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield Import(alias.name, None, node.lineno, condition)
    elif isinstance(node, ast.ImportFrom):
        module = absolute_module(node, package)
        for alias in node.names:
            yield Import(module, alias.name, node.lineno, condition)
    elif isinstance(node, ast.Try) and any(_catches_import(item) for item in node.handlers):
        yield from _imports_of_all(node.body, package, Condition.GUARDED)
        yield from _imports_of_all(node.handlers, package, Condition.FALLBACK)
        yield from _imports_of_all(node.orelse + node.finalbody, package, condition)
    elif isinstance(node, ast.If) and is_type_checking(node.test):
        yield from _imports_of_all(node.body, package, Condition.TYPING)
        yield from _imports_of_all(node.orelse, package, condition)
    else:
        yield from _imports_of_all(ast.iter_child_nodes(node), package, condition)


def _imports_of_all(
    nodes: "Iterator[ast.AST] | List[ast.stmt] | List[ast.ExceptHandler]",
    package: str,
    condition: Condition,
) -> Iterator[Import]:
    for node in nodes:
        yield from _imports(node, package, condition)


def _catches_import(handler: ast.ExceptHandler) -> bool:
    caught = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"}
    if handler.type is None:
        return True
    names = {node.id for node in ast.walk(handler.type) if isinstance(node, ast.Name)}
    return bool(names & caught)


def is_type_checking(test: ast.expr) -> bool:
    """Tell whether a condition is ``TYPE_CHECKING``, which is False when the code runs."""
    if isinstance(test, ast.Attribute):
        return test.attr == "TYPE_CHECKING"
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"


def is_not_type_checking(test: ast.expr) -> bool:
    """Tell whether a condition is ``not TYPE_CHECKING``, which is True when the code runs."""
    negated = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
    return negated and is_type_checking(test.operand)  # type: ignore[attr-defined]


def bound_names(statements: List[ast.stmt]) -> List[str]:
    """Return the names that statements of a module or class bind, in order, also inside blocks."""
    names: List[str] = []
    for statement in statements:
        names += _bound_by(statement)
    return names


def _bound_by(node: ast.AST) -> List[str]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [node.name]
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return [alias.asname or alias.name.split(".")[0] for alias in node.names]
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return [node.id]
    return [name for child in ast.iter_child_nodes(node) for name in _bound_by(child)]
