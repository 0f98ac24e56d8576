"""``mirror`` on code that people wrote: formatting never counts, a changed constant always does.

The files are this package's own. Each is rewritten at random, by code that knows nothing of how the
comparison is made.
"""

from __future__ import annotations

import ast
import random
from pathlib import Path
from typing import Any, Dict, Iterator, List

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import pulsar_failure_reasons
from pulsar_failure_reasons.mirror import GALAXY, PULSAR, Report, Tree, compare_trees
from pulsar_failure_reasons.mirror.findings import PARTS_OF_FILES

pytestmark = pytest.mark.slow

PACKAGE = Path(pulsar_failure_reasons.__file__).parent
LARGEST_BYTES = 10_000  # for the time that it takes
#: So deep in the shared tree that no relative import leads out of it, to other modules.
PLACE = "a/b/c/d/x.py"
FILES = sorted(path for path in PACKAGE.rglob("*.py") if 0 < path.stat().st_size < LARGEST_BYTES)
ANY_FILE = st.sampled_from(FILES)
RANDOM = st.integers(0, 2**32).map(random.Random)


def compare(galaxy: str, pulsar: str) -> Report:
    """Compare two texts of one file of the shared tree."""
    trees = [
        Tree(project, "test", None, False, {f"{project.folder}/{PLACE}": text.encode()})
        for project, text in ((GALAXY, galaxy), (PULSAR, pulsar))
    ]
    return compare_trees(*trees)


def unparsed(tree: ast.Module) -> str:
    """Return a tree as text, laid out anew; some f-strings cannot be written before 3.12."""
    try:
        text = ast.unparse(ast.fix_missing_locations(tree))
        ast.parse(text)
    except (ValueError, SyntaxError):
        assume(False)
    return text


# --- rewriting without effect -----------------------------------------------------------------


class Rewriter(ast.NodeTransformer):
    """Change docstrings, annotations, imports and their order, each where a coin falls so."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._in_class = False

    def visit(self, node: ast.AST) -> Any:
        outside, self._in_class = self._in_class, isinstance(node, ast.ClassDef)
        node = super().visit(node)
        self._in_class = outside
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            node.body = self._with_other_docstring(node.body)
        for name in ("body", "orelse", "finalbody"):
            if isinstance(getattr(node, name, None), list):
                setattr(node, name, self._with_other_imports(getattr(node, name)))
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = self._other_annotation(node.annotation)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = self._other_annotation(node.returns)
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """Annotations in classes may be fields, and are left alone."""
        if self._in_class or node.value is None or self._chance.random() < 0.5:
            return node
        return ast.Assign(targets=[node.target], value=node.value)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        in_class = isinstance(node, ast.ClassDef)
        for name, value in ast.iter_fields(node):
            if isinstance(value, list):
                setattr(node, name, [self._visited(item, in_class) for item in value])
            elif isinstance(value, ast.AST):
                setattr(node, name, self._visited(value, in_class))
        return node

    def _visited(self, item: Any, in_class: bool) -> Any:
        if in_class and isinstance(item, ast.AnnAssign):
            return item
        return self.visit(item) if isinstance(item, ast.AST) else item

    def _other_annotation(self, annotation: Any) -> Any:
        return self._chance.choice([annotation, None, ast.Constant(value="list[int]")])

    def _with_other_docstring(self, body: List[ast.stmt]) -> List[ast.stmt]:
        first = body[0] if body else None
        has = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
        rest = body[1:] if has else body
        said = [ast.Expr(value=ast.Constant(value=f"Say {self._chance.random()}."))]
        return self._chance.choice([body, [*said, *rest], rest or [ast.Pass()]])

    def _with_other_imports(self, body: List[ast.stmt]) -> List[ast.stmt]:
        result: List[ast.stmt] = []
        run: List[ast.stmt] = []
        for statement in [*body, None]:
            if isinstance(statement, (ast.Import, ast.ImportFrom)):
                run += self._split(statement)
                continue
            self._chance.shuffle(run)
            result += run + ([statement] if statement is not None else [])
            run = []
        return result

    def _split(self, statement: Any) -> List[ast.stmt]:
        names = list(statement.names)
        self._chance.shuffle(names)
        if self._chance.random() < 0.5 or isinstance(statement, ast.Import):
            statement.names = names
            return [statement]
        return [ast.ImportFrom(module=statement.module, names=[name], level=statement.level)
                for name in names]


@given(path=ANY_FILE, chance=RANDOM)
def test_rewriting_without_effect_is_never_behaviour(path: Path, chance: random.Random) -> None:
    """Layout, docstrings, annotations, the order and grouping of imports: formatting at most."""
    text = path.read_text()
    report = compare(text, unparsed(Rewriter(chance).visit(ast.parse(text))))
    assert report.of_kinds(*PARTS_OF_FILES) == []
    assert report.verdicts[PLACE].value in ("identical", "formatting")


@given(path=ANY_FILE, blank=st.sampled_from(["\n", "\n\n", "\n# a remark\n", "\r\n"]))
def test_blank_lines_and_remarks_are_never_behaviour(path: Path, blank: str) -> None:
    """Between statements of the file there may be anything that Python passes over."""
    text = path.read_text()
    starts = {_first_line(node) for node in ast.parse(text).body}
    spread = "".join((blank if number in starts else "") + line + "\n"
                     for number, line in enumerate(text.split("\n"), 1))
    assert compare(text, spread).of_kinds(*PARTS_OF_FILES) == []


def _first_line(node: ast.stmt) -> int:
    return min([node.lineno, *(item.lineno for item in getattr(node, "decorator_list", []))])


# --- changed constants ------------------------------------------------------------------------


def live_constants(node: ast.AST) -> Iterator[ast.Constant]:
    """Yield the constants of a tree that are neither docstrings nor in annotations."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns"):
            continue
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, ast.Constant):
                yield item
            elif isinstance(item, ast.AST):
                yield from live_constants(item)


CHANGES: Dict[type, Any] = {
    bool: lambda value: not value,
    int: lambda value: value + 1,
    float: lambda value: value * 2 + 1,
    str: lambda value: value + "~",
    bytes: lambda value: value + b"~",
    type(None): lambda value: 0,
    type(...): lambda value: None,
}


@given(path=ANY_FILE, data=st.data(), chance=RANDOM)
def test_a_changed_constant_is_always_behaviour(
    path: Path, data: st.DataObject, chance: random.Random
) -> None:
    """Also where all around it was rewritten: the file's verdict is never "formatting"."""
    text = path.read_text()
    tree = ast.parse(text)
    constants = list(live_constants(tree))
    assume(constants)
    chosen = data.draw(st.sampled_from(constants))
    chosen.value = CHANGES[type(chosen.value)](chosen.value)
    changed = unparsed(Rewriter(chance).visit(tree))
    report = compare(text, changed)
    assert report.verdicts[PLACE].value == "behaviour"
    assert report.of_kinds(*PARTS_OF_FILES)
