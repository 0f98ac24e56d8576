"""Where the captured Slurm texts are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List

DATA = Path(__file__).resolve().parent.parent / "data" / "slurm"
SEPARATOR = "@q7f3a9c1@"


def capture(version: str, case: str, name: str) -> str:
    """Return one file of a captured case."""
    return (DATA / "captures" / version / case / name).read_text(encoding="utf-8")


def batched(version: str, name: str) -> str:
    """Return a captured answer to one of our own commands."""
    return (DATA / "batched" / version / f"{name}.txt").read_text(encoding="utf-8")


def corpus() -> List[Dict[str, Any]]:
    """Return the texts from the wild."""
    lines = (DATA / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]
