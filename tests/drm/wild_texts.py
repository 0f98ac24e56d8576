"""The corpus of texts from the wild, and its words against ours."""

from __future__ import annotations

import html
import json
import textwrap
from pathlib import Path
from typing import Any, Dict, List

from pulsar_failure_reasons.drm.captured import Captured

DATA = Path(__file__).resolve().parent.parent / "data"

TRUTHS = {
    "walltime_reached": {"walltime", "cpu_time"},
    "memory_limit_reached": {"memory"},
    "cancelled": {"cancelled"},
    "node_failure": {"node_failure"},
    "preempted": {"preempted"},
    "disk_or_output_failure": {"disk", "stage_error"},
    "executable_error": {"launch_error"},
    "tool_error": {"tool_error"},
    "success": {"success"},
    "still_running/pending": {"alive"},
    "unknown": {"unknown", "lost", "tool_error"},
}


def strict_cases(drm: str) -> List[Dict[str, Any]]:
    """Return the texts about one DRM that can be decided."""
    lines = (DATA / drm / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    return [case for case in map(json.loads, lines) if case["strict"]]


def told(captured: Captured) -> str:
    """Return the answer in one word."""
    if captured.ended is False:
        return "alive"
    if captured.ended and captured.cause is None:
        return "success"
    assert captured.cause is not None
    return captured.cause.value


def damaged(text: str) -> Dict[str, str]:
    """Return the text as copies deform it, without changing what it says."""
    return {
        "crlf": text.replace("\n", "\r\n"),
        "coloured": "\x1b[1m" + text + "\x1b[0m",
        "banner": "Welcome to node1!\nAll jobs failed? Mail help@site.\n\n" + text,
        "bom": "\ufeff" + text,
        "quoted": "\n".join("> " + line for line in text.split("\n")),
        "fenced": "```text\n" + text + "\n```\n",
        "escaped": html.escape(text, quote=False),
        "indented": textwrap.indent(text, "    "),
        "listed": "- " + text,
        "before_a_prompt": text + "\n[eve@login1 ~]$ \n",
    }
