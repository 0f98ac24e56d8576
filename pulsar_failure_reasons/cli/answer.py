"""The answer of ``explain``, as JSON values and as lines for people. Pure."""

from __future__ import annotations

import re
from typing import Any, Dict, List, Mapping, Optional

from pulsar_failure_reasons.drm.captured import Captured
from pulsar_failure_reasons.message import write_message
from pulsar_failure_reasons.reason import CAUSE_TABLE, Cause, FailureReason, clean_text

#: The words in a longer line that decide, per cause (sentences of Slurm, LSF, PBS, HTCondor).
_DECISIVE = {
    Cause.WALLTIME: r"DUE TO TIME LIMIT|TERM_RUNLIMIT|walltime|time limit|h_rt|duration",
    Cause.CPU_TIME: r"TERM_CPULIMIT|CPU ?time|CPU ?LIMIT|cput|h_cpu",
    Cause.MEMORY: r"OUT_OF_MEMORY|oom[-_ ]kill\w*|TERM_MEMLIMIT|exceeded \w*memory \w+|"
    r"v?mem(?:ory)?\b[^,;]*\bexceeded|memory|vmem|pmem",
    Cause.DISK: r"No space left on device|disk quota|quota exceeded|disk|File too large",
    Cause.CANCELLED: r"CANCELLED(?: by \d+)?|TERM_OWNER|TERM_ADMIN|removed|deleted|cancell?ed",
    Cause.NODE_FAILURE: r"NODE[ _]FAIL\w*|node failure|communication|unreachable",
    Cause.PREEMPTED: r"PREEMPT\w*|TERM_PREEMPT|evict\w*",
    Cause.HELD: r"held|hold|DependencyNeverSatisfied|Eqw",
    Cause.LAUNCH_ERROR: r"No such file or directory|Permission denied|not found|cannot execute",
    Cause.STAGE_ERROR: r"transfer|stage\w*|Transfer\w+",
}


def answer_of_text(captured: Captured, label: str) -> Dict[str, Any]:
    """Return what a text says.

    ``ended`` is true, false or null (cannot tell); ``cause`` is null for a job that ended well
    or has not ended; ``runner_state`` is what Galaxy would be told, null for nothing.
    """
    cause = captured.cause if captured.ended is not False else None
    row = CAUSE_TABLE[cause] if cause is not None else None
    told = captured.ended is True and row is not None
    return {
        "ended": captured.ended,
        "cause": cause.value if cause else None,
        "runner_state": row.runner_state if told and row else None,
        "fault": row.fault.value if told and row else None,
        "confidence": captured.confidence.value if captured.confidence else None,
        "message": _message(captured, cause, label),
        "external_id": captured.external_id,
        "cancelled_by": captured.cancelled_by,
        "evidence": [
            {"source": item.source, "field": item.field, "value": item.value}
            for item in captured.evidence
        ],
    }


def guessed_source(captured: Captured) -> Dict[str, Any]:
    """Return what a text was taken for, for the answer; null where nothing in it was known."""
    sources = list(dict.fromkeys(item.source for item in captured.evidence))
    return {"guessed_source": ", ".join(sources) or None}


def answer_of_record(reason: FailureReason) -> Dict[str, Any]:
    """Return what was recorded of a job: its record, with ``ended``, and every key present."""
    stored = reason.to_dict()
    first = ("cause", "runner_state", "fault", "confidence", "message", "external_id")
    return {
        "ended": True,
        **{name: stored.get(name) for name in (*first, "cancelled_by")},
        "evidence": stored.get("evidence", []),
        **{name: value for name, value in stored.items() if name not in first},
    }


def answer_without_record(
    ended: Optional[bool], message: str, external_id: Optional[str] = None
) -> Dict[str, Any]:
    """Return the answer for a job without a reason: it ended well, has not ended, or who knows.

    With ``ended`` None the cause is ``unknown``.
    """
    return {
        "ended": ended,
        "cause": Cause.UNKNOWN.value if ended is None else None,
        "runner_state": None,
        "fault": None,
        "confidence": None,
        "message": message,
        "external_id": external_id,
        "cancelled_by": None,
        "evidence": [],
    }


def _message(captured: Captured, cause: Optional[Cause], label: str) -> str:
    detail = clean_text(captured.detail)
    if captured.ended is None:
        return "the text does not tell whether and how the job ended"
    if captured.ended is False:
        return "the job has not ended" + (f": {detail}" if detail else "")
    if cause is None:
        return "the job ended well"
    return write_message(
        label, cause, detail, None,
        external_id=captured.external_id, cancelled_by=captured.cancelled_by,
    )


def as_lines(answer: Mapping[str, Any]) -> List[str]:
    """Return the answer for people: the sentence, what Galaxy sees, and the evidence."""
    lines = [answer["message"]]
    for name in ("cause", "fault", "confidence", "recorded_at"):
        if answer.get(name):
            lines.append(f"  {name + ':':<14}{answer[name]}")
    if answer["ended"] is True:
        lines.append(f"  {'Galaxy sees:':<14}{answer['runner_state'] or 'no reason'}")
    if "guessed_source" in answer:
        guessed = answer["guessed_source"]
        unknown = "nothing that tells; name --source, and --job where there are several"
        lines.append(f"  {'read as:':<14}{f'{guessed} (guessed)' if guessed else unknown}")
    for item in answer["evidence"]:
        lines.extend(_evidence_lines(item, answer["cause"]))
    return lines


def _evidence_lines(item: Mapping[str, str], cause: Optional[str]) -> List[str]:
    """Return one piece of evidence, with the decisive words underlined."""
    start = f"  {'evidence:':<14}{item['source']} {item['field']} = "
    value = item["value"]
    pattern = _DECISIVE.get(Cause(cause)) if cause else None
    found = re.search(pattern, value, re.IGNORECASE) if pattern else None
    # A short value, such as TIMEOUT, decides as a whole.
    begin, end = found.span() if found else (0, len(value))
    return [start + value, " " * (len(start) + begin) + "^" * max(end - begin, 1)]
