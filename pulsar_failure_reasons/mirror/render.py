"""A report for people, for programs, and for a pull request's page."""

from __future__ import annotations

import json
from typing import Any, Dict, Iterator, List, Optional, Tuple

from .findings import PARTS_OF_FILES, Finding, Kind, Place, Report, Verdict
from .tree import Tree

#: Words of a difference that one line shows; JSON has them all.
MAX_WORDS = 6

SECTIONS: Tuple[Tuple[str, Tuple[Kind, ...]], ...] = (
    ("Files of both sides that differ in behaviour", PARTS_OF_FILES),
    ("Files on one side only", (Kind.FILE,)),
    ("Imports that reach across", (Kind.ACROSS,)),
    ("Resource files loaded by name that one side lacks", (Kind.RESOURCE,)),
    ("Pulsar statuses that Galaxy compares as bare literals", (Kind.STATUS,)),
)


def summary(report: Report) -> Dict[str, int]:
    """Return the numbers of a report."""
    return {
        "identical": len(report.files(Verdict.IDENTICAL)),
        "formatting": len(report.files(Verdict.FORMATTING)),
        "behaviour": len(report.files(Verdict.BEHAVIOUR)),
        "only_galaxy": _count(report, Kind.FILE, "Galaxy"),
        "only_pulsar": _count(report, Kind.FILE, "Pulsar"),
        "imports_across": len(report.of_kinds(Kind.ACROSS)),
        "resources_missing": len(report.of_kinds(Kind.RESOURCE)),
        "bare_statuses": len(report.of_kinds(Kind.STATUS)),
        "differences": len(report.findings),
        "allowed": len(report.findings) - len(report.not_allowed),
        "not_allowed": len(report.not_allowed),
    }


def _count(report: Report, kind: Kind, side: str) -> int:
    return sum(finding.side == side for finding in report.of_kinds(kind))


# --- JSON -------------------------------------------------------------------------------------


def as_json(report: Report) -> str:
    """Return the whole report; ``allowed`` is null for a difference without an entry."""
    return json.dumps({
        "galaxy": _tree_values(report.galaxy),
        "pulsar": _tree_values(report.pulsar),
        "summary": summary(report),
        "files": {path: verdict.value for path, verdict in report.verdicts.items()},
        "differences": [_finding_values(finding) for finding in report.findings],
        "statuses_never_compared": report.never_compared,
        "not_checked": report.not_checked,
        "unused_allowances": report.unused_allowances,
    }, indent=2)


def _tree_values(tree: Tree) -> Dict[str, Any]:
    return {"source": tree.source, "version": tree.version, "folder": tree.project.folder}


def _finding_values(finding: Finding) -> Dict[str, Any]:
    return {
        "kind": finding.kind.value,
        "path": finding.path,
        "name": finding.name,
        "only_in": finding.side,
        "galaxy": _place_values(finding.galaxy),
        "pulsar": _place_values(finding.pulsar),
        "note": finding.note,
        "used_by": list(finding.used_by),
        "allowed": finding.allowed,
    }


def _place_values(place: Optional[Place]) -> Optional[Dict[str, Any]]:
    return None if place is None else {"line": place.line, "words": list(place.words)}


# --- text -------------------------------------------------------------------------------------


def as_text(report: Report) -> str:
    """Return the report for a terminal."""
    lines = [_headline(tree) for tree in (report.galaxy, report.pulsar)]
    lines += ["", *_counts(report)]
    for title, kinds in SECTIONS:
        findings = report.of_kinds(*kinds)
        if findings:
            lines += ["", f"{title}:", *_text_section(findings)]
    return "\n".join([*lines, "", *_ending(report)])


def _headline(tree: Tree) -> str:
    version = f" {tree.version}" if tree.version else ""
    return f"{tree.project.label}{version}: {tree.project.folder} of {tree.source}"


def _counts(report: Report) -> List[str]:
    numbers = summary(report)
    both = len(report.verdicts)
    return [
        f"{both} files on both sides: {numbers['identical']} identical, {numbers['formatting']} "
        f"differ in formatting only, {numbers['behaviour']} in behaviour",
        f"{numbers['only_galaxy']} files only in Galaxy, {numbers['only_pulsar']} only in Pulsar",
    ]


def _text_section(findings: List[Finding]) -> Iterator[str]:
    path = None
    for finding in findings:
        if finding.kind is not Kind.FILE and finding.path != path:
            path = finding.path
            yield f"  {path}"
        indent = "  " if finding.kind is Kind.FILE else "    "
        yield f"{indent}{_described(finding)}{_allowed(finding)}"


def _allowed(finding: Finding) -> str:
    return f"  [allowed: {finding.allowed}]" if finding.allowed is not None else ""


def _described(finding: Finding) -> str:
    """Return what one difference is, on one line without its path."""
    if finding.kind is Kind.FILE:
        return f"{finding.path}, only in {finding.side}{_users(finding)}"
    if finding.kind is Kind.TEXT:
        return f"{finding.note}{_users(finding) or '; nothing loads it'}"
    if finding.kind in PARTS_OF_FILES:
        return _described_part(finding)
    where = _lines(finding)
    if finding.kind is Kind.ACROSS:
        return f"{where}: {finding.side} imports {finding.name}{_names(finding)} ({finding.note})"
    return f"{where}: {finding.name} ({finding.note})"


def _users(finding: Finding) -> str:
    verb = "imported" if finding.path.endswith(".py") else "loaded"
    return f"; {verb} by {', '.join(finding.used_by)}" if finding.used_by else ""


def _described_part(finding: Finding) -> str:
    what = f"{finding.kind.value} {finding.name}" if finding.kind is not Kind.ORDER \
        else finding.name
    if finding.side is not None:
        return f"{what}: only in {finding.side}, {_lines(finding)}"
    words = [f"only {label}: {_shortened(place.words)}" for label, place in _places(finding)
             if place.words]
    return "; ".join([f"{what}: {_lines(finding)}", *words])


def _places(finding: Finding) -> List[Tuple[str, Place]]:
    pairs = (("Galaxy", finding.galaxy), ("Pulsar", finding.pulsar))
    return [(label, place) for label, place in pairs if place is not None]


def _lines(finding: Finding) -> str:
    places = _places(finding)
    if len(places) == 1:
        return f"line {places[0][1].line}"
    return ", ".join(f"{label} line {place.line}" for label, place in places)


def _names(finding: Finding) -> str:
    names = [name for _, place in _places(finding) for name in place.words]
    return f": {', '.join(names)}" if names else ""


def _shortened(words: Tuple[str, ...]) -> str:
    more = f" and {len(words) - MAX_WORDS} more" if len(words) > MAX_WORDS else ""
    return ", ".join(words[:MAX_WORDS]) + more


def _ending(report: Report) -> List[str]:
    numbers = summary(report)
    lines = []
    if report.never_compared:
        lines.append("Pulsar statuses that Galaxy compares nowhere: "
                     + ", ".join(report.never_compared))
    lines += [f"not looked at: {what}" for what in report.not_checked]
    lines += [f"this entry of the allow file fits nothing: {entry}"
              for entry in report.unused_allowances]
    lines.append(f"{numbers['differences']} differences, {numbers['allowed']} of them allowed")
    return lines


# --- Markdown ---------------------------------------------------------------------------------


def as_markdown(report: Report) -> str:
    """Return the report as a page, such as the summary of a job of GitHub Actions."""
    lines = ["# Galaxy and Pulsar: drift of the shared tree", ""]
    lines += [f"* {_escaped(_headline(tree))}" for tree in (report.galaxy, report.pulsar)]
    lines += [f"* {line}" for line in _counts(report)]
    for title, kinds in SECTIONS:
        findings = report.of_kinds(*kinds)
        if findings:
            lines += ["", f"## {title}", "", "| file | difference | allowed |", "|---|---|---|"]
            lines += [_row(finding) for finding in findings]
    return "\n".join([*lines, "", *(f"* {_escaped(line)}" for line in _ending(report))])


def _row(finding: Finding) -> str:
    what = _described(finding)
    if finding.kind is Kind.FILE:
        what = what[len(finding.path) + 2:]
    return f"| `{finding.path}` | {_escaped(what)} | {_escaped(finding.allowed or '')} |"


def _escaped(text: str) -> str:
    """Return text in which a table and Markdown see nothing of their own."""
    for character in "\\`*_<>|[]":
        text = text.replace(character, "\\" + character)
    return text.replace("\n", " ")
