"""Texts about Slurm and HTCondor jobs as copies deform them (the other DRMs: in their modules)."""

from __future__ import annotations

from typing import Any, Dict, Tuple

import pytest

from pulsar_failure_reasons.drm.registry import DRM_MODULES
from tests.drm.wild_texts import TRUTHS, damaged, strict_cases, told

CASES = [(drm, case) for drm in ("slurm", "htcondor") for case in strict_cases(drm)]


@pytest.mark.parametrize("found", CASES, ids=[case["id"] for _, case in CASES])
def test_corpus_damaged(found: Tuple[str, Dict[str, Any]]) -> None:
    """Quotation marks, fences, entities and the like do not change what a text says."""
    drm, case = found
    for damage, text in damaged(case["text"]).items():
        captured = DRM_MODULES[drm].read_captured(text, case["kind"])
        assert told(captured) in TRUTHS[case["truth"]] | also_right(case["truth"]), damage


def also_right(truth: str) -> "set[str]":
    """An output file that cannot be opened is a launch error to HTCondor."""
    return {"launch_error"} if truth == "disk_or_output_failure" else set()
