"""A syntax tree without what does not change behaviour, so that the rest can be compared.

Taken out: docstrings and other lone constants, annotations, blocks for type checkers, imports that
only annotations used, how imports are ordered and grouped, how relative they are, the order of
``__all__``. The fields of a dataclass and the like are annotations with an effect: they stay.
"""

from __future__ import annotations

import ast
from typing import Any, Dict, List, Optional, Sequence, Set, Union

from .source import absolute_module, is_not_type_checking, is_type_checking, package_of
from .tree import GALAXY, PULSAR

#: Stands for the shared tree's own package, on both sides.
SHARED = "<shared>"
#: Modules whose names are for annotations, and go where no other use of them is left.
TYPING_MODULES = ("__future__", "collections.abc", "typing", "typing_extensions")
#: Base classes whose annotations have no effect when the code runs.
INERT_BASES = frozenset({"ABC", "Generic", "Protocol", "TypedDict", "object"})
#: Base classes that read the annotations' types too (pydantic's).
TYPED_BASES = frozenset({"BaseModel", "BaseSettings"})
#: An annotation with one of these is no field, or another kind of field.
FIELD_MARKS = frozenset({"ClassVar", "InitVar", "KW_ONLY"})

Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]


def normalise(path: str, module: ast.Module) -> ast.Module:
    """Change a syntax tree into its comparable form, and return it.

    ``path`` says what its relative imports mean.
    """
    _Normaliser(package_of(path)).visit(module)
    _drop_typing_imports(module)
    _sort_imports_everywhere(module)
    return module


def dump(node: Union[ast.AST, Sequence[ast.AST]]) -> str:
    """Return a text that is equal for equal trees, wherever they stand in a file."""
    if isinstance(node, ast.AST):
        return ast.dump(node)
    return "\n".join(ast.dump(item) for item in node)


class _Normaliser(ast.NodeTransformer):
    def __init__(self, package: str) -> None:
        self._package = package
        self._fields: List[Optional[ast.ClassDef]] = [None]

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        for name in ("body", "orelse", "finalbody"):
            statements = getattr(node, name, None)
            if isinstance(statements, list):
                setattr(node, name, _meaningful(statements, name == "body"))
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._visit_function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._visit_function(node)

    def _visit_function(self, node: Function) -> ast.AST:
        node.returns = None
        _drop_type_parameters(node)
        return self._visit_scope(node, None)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        _drop_type_parameters(node)
        return self._visit_scope(node, node if _has_fields(node) else None)

    def _visit_scope(self, node: ast.AST, fields: Optional[ast.ClassDef]) -> ast.AST:
        self._fields.append(fields)
        self.generic_visit(node)
        self._fields.pop()
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Optional[ast.AST]:
        if self._fields[-1] is not None:
            if not _bases(self._fields[-1]) & TYPED_BASES:
                node.annotation = _field_mark(node.annotation)
            return self.generic_visit(node)
        if node.value is None:
            return None
        return self.generic_visit(
            ast.copy_location(ast.Assign(targets=[node.target], value=node.value), node)
        )

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        named_all = any(isinstance(item, ast.Name) and item.id == "__all__"
                        for item in node.targets)
        if named_all and isinstance(node.value, (ast.List, ast.Tuple)):
            node.value.elts.sort(key=ast.dump)
        return node

    def visit_If(self, node: ast.If) -> Any:
        self.generic_visit(node)
        if is_type_checking(node.test):
            return node.orelse
        return node.body if is_not_type_checking(node.test) else node

    def visit_Import(self, node: ast.Import) -> List[ast.stmt]:
        for alias in node.names:
            alias.name = _shared_name(alias.name)
        return [_at(node, ast.Import(names=[alias])) for alias in node.names]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> List[ast.stmt]:
        module = _shared_name(absolute_module(node, self._package))
        return [
            _at(node, ast.ImportFrom(module=module, names=[alias], level=0))
            for alias in node.names
        ]

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        node.kind = None  # u"..."
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        self.generic_visit(node)
        if all(isinstance(item, ast.Constant) for item in node.values):
            text = "".join(str(item.value) for item in node.values
                           if isinstance(item, ast.Constant))
            return ast.copy_location(ast.Constant(value=text, kind=None), node)
        return node


def _at(node: ast.stmt, made: ast.stmt) -> ast.stmt:
    return ast.copy_location(made, node)


def _meaningful(statements: List[Any], needs_one: bool) -> List[Any]:
    """Leave out docstrings, lone constants and ``pass``; a body keeps one ``pass`` if empty."""
    kept = [
        statement for statement in statements
        if not isinstance(statement, ast.Pass)
        and not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
    ]
    return kept or ([ast.Pass()] if needs_one else [])


def _drop_type_parameters(node: ast.AST) -> None:
    if hasattr(node, "type_params"):  # Python 3.12
        node.type_params = []


def _shared_name(module: str) -> str:
    """Return a module's name with the shared tree's package, of either side, made the same."""
    for prefix in (GALAXY.dotted, PULSAR.dotted):
        if module == prefix or module.startswith(prefix + "."):
            return SHARED + module[len(prefix):]
    return module


def _bases(node: ast.ClassDef) -> Set[str]:
    names = {getattr(base, "attr", getattr(base, "id", "?")) for base in node.bases}
    return {str(name) for name in names}


def _has_fields(node: ast.ClassDef) -> bool:
    """Tell whether annotations in a class may make fields: as a dataclass, a named tuple ..."""
    return bool(node.decorator_list or _bases(node) - INERT_BASES)


def _field_mark(annotation: ast.expr) -> ast.expr:
    """Return what of a field's annotation has an effect: that there is one, and ClassVar."""
    names = {getattr(item, "attr", getattr(item, "id", "")) for item in ast.walk(annotation)}
    return ast.Constant(value=",".join(sorted(names & FIELD_MARKS)), kind=None)


# --- imports ----------------------------------------------------------------------------------


def _drop_typing_imports(module: ast.Module) -> None:
    """Remove imports of names for annotations that nothing uses any more."""
    used = _used_names(module)
    for body in _bodies(module):
        body[:] = [
            statement for statement in body
            if not (_is_typing_import(statement) and not _imported_name(statement) in used)
        ]


def _used_names(module: ast.Module) -> Set[str]:
    used: Set[str] = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Name):
            used.add(node.id)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            used.add(node.value)  # __all__, getattr()
    return used


def _is_typing_import(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.ImportFrom):
        return statement.module in TYPING_MODULES
    return isinstance(statement, ast.Import) and statement.names[0].name in TYPING_MODULES


def _imported_name(statement: ast.stmt) -> str:
    assert isinstance(statement, (ast.Import, ast.ImportFrom))
    alias = statement.names[0]
    return alias.asname or alias.name.split(".")[0]


def _bodies(module: ast.Module) -> List[List[ast.stmt]]:
    found = []
    for node in ast.walk(module):
        for name in ("body", "orelse", "finalbody"):
            statements = getattr(node, name, None)
            if isinstance(statements, list) and statements:
                found.append(statements)
    return found


def _sort_imports_everywhere(module: ast.Module) -> None:
    for body in _bodies(module):
        body[:] = _with_sorted_imports(body)


def _with_sorted_imports(body: List[ast.stmt]) -> List[ast.stmt]:
    """Return statements with each run of imports in one order, and none of them twice."""
    result: List[ast.stmt] = []
    run: Dict[str, ast.stmt] = {}
    for statement in [*body, None]:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            run[ast.dump(statement)] = statement
            continue
        result += [run[key] for key in sorted(run)]
        run = {}
        if statement is not None:
            result.append(statement)
    return result
