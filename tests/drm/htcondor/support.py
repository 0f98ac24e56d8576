"""The captured logs, ads and texts of tests/data/htcondor."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List

DATA = Path(__file__).parents[2] / "data" / "htcondor"


def captured_events() -> Dict[str, List[Dict[str, Any]]]:
    """Return the events of every captured case, as the bindings yielded them."""
    lines = (DATA / "events.jsonl").read_text().splitlines()
    return {case["case"]: case["events"] for case in map(json.loads, lines)}


def captured_log(case: str) -> str:
    """Return the text of a captured job event log."""
    return (DATA / "logs" / f"{case}.log").read_text()


def captured_ad(case: str, which: str = "history") -> str:
    """Return a captured job ad in long form."""
    return (DATA / "ads" / f"{case}.{which}.ad").read_text()


def corpus() -> List[Dict[str, Any]]:
    """Return the texts from the wild that can be decided from the text alone."""
    lines = (DATA / "corpus.jsonl").read_text().splitlines()
    return [case for case in map(json.loads, lines) if case["strict"]]


def event(number: int, **attributes: Any) -> Dict[str, Any]:
    """Return one event of job 7.0."""
    return {"EventTypeNumber": number, "Cluster": 7, "Proc": 0, **attributes}


SUBMIT = event(0)
EXECUTE = event(1, SlotName="slot1_1@node1", EventTime="2026-11-29T11:00:00")
EVICTED = event(4, TerminatedAndRequeued=False, TerminatedNormally=False)
RELEASED = event(13, Reason="via condor_release (by user galaxy)")


def held(code: Any, subcode: Any = 0, reason: Any = "") -> Dict[str, Any]:
    """Return a JOB_HELD of job 7.0."""
    return event(
        12,
        HoldReasonCode=code,
        HoldReasonSubCode=subcode,
        HoldReason=reason,
        EventTime="2026-11-29T11:01:02",
    )


def aborted(reason: Any = None) -> Dict[str, Any]:
    """Return a JOB_ABORTED of job 7.0."""
    return event(9, Reason=reason, EventTime="2026-11-29T11:01:02")


def exited(value: int, **attributes: Any) -> Dict[str, Any]:
    """Return a JOB_TERMINATED of job 7.0 with an exit code."""
    return event(5, TerminatedNormally=True, ReturnValue=value, **attributes)


def killed(signal: int, **attributes: Any) -> Dict[str, Any]:
    """Return a JOB_TERMINATED of job 7.0 by a signal."""
    return event(5, TerminatedNormally=False, TerminatedBySignal=signal, **attributes)
