"""Imports that reach from one project's code into the other's shared tree."""

from __future__ import annotations

import ast
from typing import Dict, Iterator, List, Mapping, Optional, Tuple

from ..errors import MirrorError
from .findings import Finding, Kind, Place
from .source import Import, bound_names, imports_of, module_of, parse
from .tree import GALAXY, Tree

#: Galaxy's libraries that Pulsar requires (Requires-Dist of pulsar-app 0.16.0): no reaching across.
SHARED_LIBRARIES = (
    "galaxy.job_metrics", "galaxy.objectstore", "galaxy.tool_util", "galaxy.util",
)

Imports = Mapping[str, List[Import]]


def read_imports(tree: Tree, other: Tree, not_checked: List[str]) -> Dict[str, List[Import]]:
    """Return the imports of the shared tree's files and of all that name the other package.

    A file that cannot be read is added to ``not_checked``; for one of the shared tree,
    ``parse_all`` raises.
    """
    found = {}
    for path, content in tree.files.items():
        if not path.endswith(".py") or not _may_matter(tree, other, path, content):
            continue
        try:
            found[path] = imports_of(path, parse(path, content))
        except MirrorError as error:
            not_checked.append(f"the imports of {error}")
    return found


def _may_matter(tree: Tree, other: Tree, path: str, content: bytes) -> bool:
    return is_shared(tree, path) or other.project.package.encode() in content


def is_shared(tree: Tree, path: str) -> bool:
    """Tell whether a file is one of the shared tree."""
    return path.startswith(tree.project.folder + "/")


def shown_path(tree: Tree, path: str) -> str:
    """Return a file's path in the shared tree, or from the package on where it is outside."""
    return path[len(tree.project.folder) + 1:] if is_shared(tree, path) else path


def find_across(tree: Tree, other: Tree, imports: Imports) -> Iterator[Finding]:
    """Yield one finding for each module of the other project that a file imports."""
    for path, imported in imports.items():
        by_module: Dict[str, List[Import]] = {}
        for item in imported:
            if _reaches_across(tree, other, path, item):
                by_module.setdefault(item.module, []).append(item)
        for module, items in by_module.items():
            yield _finding(tree, other, path, module, items)


def _reaches_across(tree: Tree, other: Tree, path: str, item: Import) -> bool:
    target = item.targets[0]
    if _is_in(target, other.project.dotted):
        return True
    own_library = other.project is GALAXY and any(_is_in(target, name) for name in SHARED_LIBRARIES)
    return is_shared(tree, path) and _is_in(target, other.project.package) and not own_library


def _is_in(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


def _finding(tree: Tree, other: Tree, path: str, module: str, items: List[Import]) -> Finding:
    names = dict.fromkeys(item.name for item in items if item.name)
    place = Place(line=items[0].line, words=tuple(names))
    missing = [item for item in items if _is_there(other, item) is False]
    note = items[0].condition.value
    if missing:
        what = ", ".join(item.name or item.module for item in missing)
        note = f"{other.project.label} has no {what}; {note}"
    ours = tree.project is GALAXY
    return Finding(
        kind=Kind.ACROSS, path=shown_path(tree, path), name=module, side=tree.project.label,
        galaxy=place if ours else None, pulsar=None if ours else place, note=note,
    )


def _is_there(other: Tree, item: Import) -> Optional[bool]:
    """Tell whether what is imported exists; None where the other tree cannot tell."""
    if not _is_in(item.module, other.project.dotted):
        return None
    if any(_file_of(other, target) for target in item.targets[:1]):
        return True
    path = _file_of(other, item.module)
    if path is None or item.name is None:
        return False
    names = bound_names(parse(path, other.files[path]).body)
    return item.name in names or item.name == "*" or "*" in names


def _file_of(tree: Tree, module: str) -> Optional[str]:
    base = module.replace(".", "/")
    paths = (f"{base}.py", f"{base}/__init__.py")
    return next((path for path in paths if path in tree.files), None)


def users_of(relative: str, owner: Tree, other: Tree, imports: Imports) -> Tuple[str, ...]:
    """Return where the other project imports a file that only the owner has.

    Also where it does so under its own name: then the file is missing there. Each is a
    ``path:line``; ``imports`` are the other project's.
    """
    names = {module_of(f"{tree.project.folder}/{relative}") for tree in (owner, other)}
    return tuple(
        f"{path}:{line}"
        for path, imported in imports.items()
        for line in sorted({item.line for item in imported if names & set(item.targets)})
    )


def imports_package(imported: List[Import], package: str) -> bool:
    """Tell whether one of the imports is of that package."""
    return any(_is_in(item.module, package) for item in imported)


def parse_all(tree: Tree) -> Dict[str, ast.Module]:
    """Return the syntax trees of the shared tree's Python files, by path in it.

    Raises:
        MirrorError: one of them cannot be read.
    """
    prefix = tree.project.folder + "/"
    return {
        path: parse(prefix + path, content)
        for path, content in tree.mirrored().items() if path.endswith(".py")
    }
