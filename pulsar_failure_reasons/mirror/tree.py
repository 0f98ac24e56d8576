"""The two trees as values: a path, a wheel or an installed package in, file contents out."""

from __future__ import annotations

import os
import re
import zipfile
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path
from typing import Dict, Iterator, List, Mapping, Optional, Tuple

from ..errors import MirrorError

#: Where a folder may hold the package: itself, a checkout of Galaxy, an environment.
PLACES = ("", "lib", "lib/python*/site-packages", "packages/app", "src")


@dataclass(frozen=True)
class Project:
    """One of the two projects: its package, where in it the shared tree is, who installs it."""

    label: str
    package: str
    mirrored: str
    distributions: Tuple[str, ...]

    @property
    def folder(self) -> str:
        """The shared tree's folder, seen from the folder that holds the package."""
        return f"{self.package}/{self.mirrored}"

    @property
    def dotted(self) -> str:
        """The shared tree as Python imports it."""
        return self.folder.replace("/", ".")


GALAXY = Project("Galaxy", "galaxy", "jobs/runners/util", ("galaxy-app",))
PULSAR = Project("Pulsar", "pulsar", "managers/util", ("pulsar-app", "pulsar-galaxy-lib"))


@dataclass(frozen=True)
class Tree:
    """What was read of one project.

    ``files`` maps paths such as ``galaxy/jobs/runners/util/env.py`` to contents: all files of the
    shared tree, and the Python files of the rest of the package. ``whole`` is False where only the
    shared tree was given. ``version`` is None where nothing tells it.
    """

    project: Project
    source: str
    version: Optional[str]
    whole: bool
    files: Mapping[str, bytes]

    def mirrored(self) -> Dict[str, bytes]:
        """Return the shared tree's files by their path in it, such as ``cli/job/lsf.py``."""
        prefix = self.project.folder + "/"
        return {
            path[len(prefix):]: content
            for path, content in self.files.items()
            if path.startswith(prefix)
        }


def open_tree(project: Project, source: str) -> Tree:
    """Return the tree that a path, a wheel or the name of an installed package stands for.

    Raises:
        MirrorError: there is nothing, it cannot be read, or it holds no such tree.
    """
    path = Path(source)
    try:
        if path.is_dir():
            return _open_folder(project, source, path.resolve())
        if path.is_file():
            return _open_wheel(project, source, path)
    except OSError as error:
        raise MirrorError(f"{source} cannot be read: {error.strerror or error}") from error
    if re.fullmatch(r"[A-Za-z0-9._-]+", source):
        return _open_installed(project, source)
    raise MirrorError(f"{source}: no such file or folder")


# --- folders ----------------------------------------------------------------------------------


def _open_folder(project: Project, source: str, folder: Path) -> Tree:
    for root in _roots(project, folder):
        if (root / project.folder).is_dir():
            files = dict(_read_folder(root / project.package, project.package, project))
            return Tree(project, source, _version_beside(project, root), True, files)
    if (folder / "__init__.py").is_file() and not _holds_other(folder):
        files = dict(_read_folder(folder, project.folder, project))
        return Tree(project, source, None, False, files)
    raise _no_tree(project, source, swapped=_holds_other(folder))


def _roots(project: Project, folder: Path) -> Iterator[Path]:
    """Yield the folders that may hold the package: below the one given, and above it."""
    for place in PLACES:
        yield from sorted(folder.glob(place)) if place else [folder]
    for package in (folder, *folder.parents):
        if package.name == project.package:
            yield package.parent


def _holds_other(folder: Path) -> bool:
    """Tell whether a folder is, or holds, one of the two packages."""
    return any(
        (root / project.folder).is_dir()
        for project in (GALAXY, PULSAR)
        for root in _roots(project, folder)
    )


def _read_folder(folder: Path, prefix: str, project: Project) -> Iterator[Tuple[str, bytes]]:
    for where, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not _is_left_out(name))
        for name in sorted(names):
            path = f"{prefix}/{(Path(where) / name).relative_to(folder).as_posix()}"
            if _is_wanted(path, project):
                yield path, (Path(where) / name).read_bytes()


def _is_left_out(name: str) -> bool:
    return name.startswith(".") or name in ("__pycache__", "node_modules")


def _is_wanted(path: str, project: Project) -> bool:
    if any(_is_left_out(part) for part in path.split("/")) or path.endswith((".pyc", ".pyo")):
        return False
    return path.startswith(project.folder + "/") or path.endswith(".py")


def _version_beside(project: Project, root: Path) -> Optional[str]:
    names = [path.name for path in sorted(root.glob("*.dist-info"))]
    return _version_in(project, names)


def _version_in(project: Project, names: List[str]) -> Optional[str]:
    """Return the version in the name of a ``.dist-info`` folder of the project, or None."""
    wanted = "|".join(name.replace("-", "[-_]") for name in project.distributions)
    for name in names:
        match = re.fullmatch(rf"(?:{wanted})-([^-]+)\.dist-info", name)
        if match:
            return match.group(1)
    return None


# --- wheels, installed packages ---------------------------------------------------------------


def _open_wheel(project: Project, source: str, path: Path) -> Tree:
    try:
        with zipfile.ZipFile(path) as wheel:
            names = [name for name in wheel.namelist() if not name.endswith("/")]
            files = {
                name: wheel.read(name)
                for name in names
                if name.startswith(project.package + "/") and _is_wanted(name, project)
            }
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError) as error:
        raise MirrorError(f"{source} is not a wheel that can be read: {error}") from error
    if not any(name.startswith(project.folder + "/") for name in files):
        others = tuple(other.folder + "/" for other in (GALAXY, PULSAR))
        raise _no_tree(project, source, swapped=any(name.startswith(others) for name in names))
    version = _version_in(project, sorted({name.split("/")[0] for name in names}))
    return Tree(project, source, version, True, files)


def _open_installed(project: Project, name: str) -> Tree:
    """Return the tree of a distribution or package that this Python could import."""
    for root in _installed_roots(project, name):
        if (root / project.folder).is_dir():
            files = dict(_read_folder(root / project.package, project.package, project))
            return Tree(project, name, _installed_version(project), True, files)
    raise MirrorError(
        f"{name}: no such file or folder, and no installed package of that name with "
        f"{project.folder}; give a path, a wheel, {project.distributions[0]} or {project.package}"
    )


def _installed_roots(project: Project, name: str) -> Iterator[Path]:
    try:
        yield Path(str(metadata.distribution(name).locate_file("")))
    except metadata.PackageNotFoundError:
        pass
    if name.split(".")[0] == project.package or name in project.distributions:
        # Of the top level only: looking for a package inside would import what holds it.
        found = util.find_spec(project.package)
        for folder in (found.submodule_search_locations or []) if found else []:
            yield Path(folder).parent


def _installed_version(project: Project) -> Optional[str]:
    for name in project.distributions:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return None


def _no_tree(project: Project, source: str, swapped: bool) -> MirrorError:
    hint = "; are the two arguments swapped?" if swapped else ""
    return MirrorError(f"{source} holds no {project.folder}{hint}")
