"""Compare two trees: what :mod:`~pulsar_failure_reasons.mirror` is for."""

from __future__ import annotations

import ast
from collections import Counter
from typing import Dict, Iterator, List, Mapping, Sequence, Tuple

from . import across, resources, statuses
from .allow import Allowance, apply_allowances
from .findings import Finding, Kind, Place, Report, Verdict
from .normalise import normalise
from .source import parse
from .tree import Tree
from .units import compare_modules


def compare_trees(
    galaxy: Tree, pulsar: Tree, allowances: Sequence[Allowance] = ()
) -> Report:
    """Return how Galaxy's and Pulsar's shared trees differ, and which of it is intended.

    Raises:
        MirrorError: a file cannot be read by this Python.
    """
    report = Report(galaxy, pulsar)
    imports = {
        "Galaxy": across.read_imports(galaxy, pulsar, report.not_checked),
        "Pulsar": across.read_imports(pulsar, galaxy, report.not_checked),
    }
    loads = {
        "Galaxy": resources.loads_in(across.parse_all(galaxy)),
        "Pulsar": resources.loads_in(across.parse_all(pulsar)),
    }
    _compare_files(report, loads)
    for tree, other in ((galaxy, pulsar), (pulsar, galaxy)):
        label, other_label = tree.project.label, other.project.label
        report.findings += _only_in(tree, other, imports[other_label], loads[other_label])
        report.findings += across.find_across(tree, other, imports[label])
        report.findings += resources.find_missing(tree, other, loads[label])
        if not tree.whole:
            report.not_checked.append(f"{label} outside of its shared tree: it was not given")
    _compare_statuses(report, imports["Galaxy"])
    report.findings, unused = apply_allowances(report.findings, allowances)
    report.unused_allowances = [str(entry) for entry in unused]
    return report


# --- files of both sides ----------------------------------------------------------------------


def _compare_files(report: Report, loads: Mapping[str, List[resources.Load]]) -> None:
    ours, theirs = report.galaxy.mirrored(), report.pulsar.mirrored()
    for path in sorted(set(ours) & set(theirs)):
        findings: List[Finding] = []
        if ours[path] == theirs[path]:
            verdict = Verdict.IDENTICAL
        else:
            if path.endswith(".py"):
                findings = list(_differences(report, path, ours[path], theirs[path]))
            else:
                users = (*_loaders(report.galaxy, loads["Galaxy"], path),
                         *_loaders(report.pulsar, loads["Pulsar"], path))
                findings = [_text_difference(path, ours[path], theirs[path], users)]
            verdict = Verdict.BEHAVIOUR if findings else Verdict.FORMATTING
        report.verdicts[path] = verdict
        report.findings += findings


def _differences(report: Report, path: str, ours: bytes, theirs: bytes) -> Iterator[Finding]:
    for difference in compare_modules(
        _comparable(report.galaxy, path, ours), _comparable(report.pulsar, path, theirs)
    ):
        side = None
        if difference.galaxy is None or difference.pulsar is None:
            side = "Galaxy" if difference.pulsar is None else "Pulsar"
        yield Finding(
            kind=difference.kind, path=path, name=difference.name, side=side,
            galaxy=difference.galaxy, pulsar=difference.pulsar,
        )


def _comparable(tree: Tree, path: str, content: bytes) -> ast.Module:
    full = f"{tree.project.folder}/{path}"
    return normalise(full, parse(full, content))


def _text_difference(
    path: str, ours: bytes, theirs: bytes, users: Tuple[str, ...]
) -> Finding:
    here, there = Counter(ours.splitlines()), Counter(theirs.splitlines())
    galaxy, pulsar = sum((here - there).values()), sum((there - here).values())
    note = f"{galaxy} lines only in Galaxy, {pulsar} only in Pulsar"
    if not galaxy and not pulsar:
        note = "the same lines, in another order or with other line ends"
    return Finding(kind=Kind.TEXT, path=path, name=path, galaxy=Place(line=1),
                   pulsar=Place(line=1), note=note, used_by=users)


def _loaders(tree: Tree, loads: List[resources.Load], path: str) -> Tuple[str, ...]:
    """Return where a tree loads a file by name, each as ``path:line``."""
    folder = tree.project.folder
    return tuple(f"{folder}/{load.path}:{load.line}" for load in loads if load.resource == path)


# --- files of one side ------------------------------------------------------------------------


def _only_in(
    tree: Tree, other: Tree, imports: across.Imports, loads: List[resources.Load]
) -> Iterator[Finding]:
    """Yield the files that the other tree lacks; imports and loads are the other's."""
    for path in sorted(set(tree.mirrored()) - set(other.mirrored())):
        if path.endswith(".py"):
            users = across.users_of(path, tree, other, imports)
        else:
            users = _loaders(other, loads, path)
        yield Finding(
            kind=Kind.FILE, path=path, name=path, side=tree.project.label, used_by=users
        )


# --- statuses ---------------------------------------------------------------------------------


def _compare_statuses(report: Report, imports: across.Imports) -> None:
    content = report.pulsar.files.get(statuses.STATUS_MODULE)
    if content is None or not report.galaxy.whole:
        report.not_checked.append("statuses as bare literals: needs Pulsar's "
                                  f"{statuses.STATUS_MODULE} and the whole of Galaxy's package")
        return
    known = statuses.statuses_of(parse(statuses.STATUS_MODULE, content))
    literals: Dict[str, List[statuses.Literal]] = {
        path: statuses.literals_in(parse(path, report.galaxy.files[path]))
        for path, imported in imports.items()
        if across.imports_package(imported, report.pulsar.project.package)
    }
    for path, found in literals.items():
        report.findings += statuses.find_bare(path, found, known)
    compared = {item.text for found in literals.values() for item in found}
    report.never_compared = [status for status in known if status not in compared]
