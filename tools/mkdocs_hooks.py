"""Hooks of MkDocs (see mkdocs.yml): links out of docs/, and a site that needs no other host.

Pages may link files of the checkout outside of docs/. Those that a reader wants become pages of the
site; a link to the README leads to the overview.
"""

from __future__ import annotations

import pathlib
import re
from typing import Any, List

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

ROOT = pathlib.Path(__file__).resolve().parent.parent
#: Page of the site by file of the checkout. index.md is in docs/, the others are made.
PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "benchmarks/RESULTS.md": "benchmarks.md",
}
#: What a browser would fetch by itself from elsewhere; a link that a reader may follow is fine.
ELSEWHERE = r"(?:https?:)?//[^\s\"')>]+"
FETCHED = re.compile(
    rf"<(?:script|img|iframe|source|video|link)\b[^>]*?\b(?:src|href)=[\"']?{ELSEWHERE}"
    rf"|@import\s+(?:url\()?[\"']?{ELSEWHERE}|url\([\"']?{ELSEWHERE}"
)


def on_files(files: Any, config: Any) -> Any:
    """Add the files as pages."""
    for path, page in PAGES.items():
        if page != "index.md":
            files.append(File.generated(config, page, content=(ROOT / path).read_text()))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Let the links to those files, and theirs to pages of docs/, lead to their pages."""
    markdown = re.sub(r"\]\((?:\.\./)?docs/", "](", markdown)
    for path, page in PAGES.items():
        markdown = re.sub(r"\]\(\.\./%s(?=[#)])" % re.escape(path), "](%s" % page, markdown)
    return markdown


def on_post_build(config: Any) -> None:
    """End the build where a page of the site needs another host."""
    found = fetched_from_elsewhere(pathlib.Path(config["site_dir"]))
    if found:
        raise PluginError("the site would fetch from other hosts:\n" + "\n".join(found))


def fetched_from_elsewhere(site: pathlib.Path) -> List[str]:
    """Return a line for each thing that a browser would fetch from another host."""
    return [
        f"{path.relative_to(site)}: {match.group()}"
        for path in sorted(site.rglob("*")) if path.suffix in (".html", ".css")
        for match in FETCHED.finditer(path.read_text(encoding="utf-8"))
    ]
