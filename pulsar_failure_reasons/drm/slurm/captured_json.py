"""sacct's, squeue's and scontrol's ``--json``, old (21.08) and new (23.11 and later).

Old: the state is a string, numbers are numbers, and sacct's exit code is always SUCCESS/0. New:
the state is a list (base state and flags), numbers are ``{"set", "infinite", "number"}``. In both
an empty list of jobs says nothing: a dead controller prints the same as an unknown job.
"""

from __future__ import annotations

import json
import re
from typing import Any, Dict, List, Optional

from ...reason import Confidence
from ..base import JobView
from .captured_views import sighting
from .sacct import with_step
from .states import canonical_state, shown_state

_LARGEST_DEPTH_ERRORS = (ValueError, RecursionError)


def read_json(text: str) -> Optional[List[JobView]]:
    """Return the jobs of a JSON text with banners around it; None where it is no JSON."""
    starts = [i for i in (text.find("{"), text.find("[{")) if i >= 0]
    for start in sorted(starts):
        try:
            document, _ = json.JSONDecoder().raw_decode(text, start)
        except _LARGEST_DEPTH_ERRORS:
            continue
        jobs = _jobs(document)
        if jobs is not None:
            return [view for view in map(_view, jobs) if view is not None]
    return _read_cut_json(text)


def _jobs(document: Any) -> Optional[List[Dict[str, Any]]]:
    if isinstance(document, dict):
        listed = document.get("jobs", document.get("job"))
        if isinstance(listed, list):
            return [job for job in listed if isinstance(job, dict)]
        if "job_state" in document or "state" in document:
            return [document]
    if isinstance(document, list) and document and isinstance(document[0], dict):
        if any("job_state" in job or "state" in job for job in document if isinstance(job, dict)):
            return [job for job in document if isinstance(job, dict)]
    return None


def _view(job: Dict[str, Any]) -> Optional[JobView]:
    accounting = "job_state" not in job
    held = job.get("state") if accounting else job.get("job_state")
    reason = job.get("state_reason", "")
    if isinstance(held, dict):
        reason = held.get("reason", reason)
        held = held.get("current")
    state = _state_text(held)
    if not state:
        return None
    killer = job.get("kill_request_user")
    if state == "CANCELLED" and isinstance(killer, str) and killer:
        state = f"CANCELLED by {killer}"
    exit_code, signal = _exit(job.get("exit_code"))
    if state == "FAILED" and not exit_code and not signal:
        # 22.05's sacct says SUCCESS/0 for every exit code.
        exit_code = signal = None
    view = sighting(
        "sacct --json" if accounting else "--json",
        Confidence.ACCOUNTING if accounting else Confidence.CONTROLLER,
        state,
        job=_id(job),
        reason=reason if isinstance(reason, str) else "",
        exit_code=exit_code,
        signal=signal,
    )
    for step in job.get("steps", []) if isinstance(job.get("steps"), list) else []:
        view = _with_json_step(view, step)
    return view


def _with_json_step(view: JobView, step: Any) -> JobView:
    if not isinstance(step, dict):
        return view
    named = step.get("step")
    name = named.get("name", "") if isinstance(named, dict) else ""
    return with_step(view, str(name), _state_text(step.get("state")))


def _state_text(held: Any) -> str:
    if isinstance(held, dict):
        held = held.get("current")
    if isinstance(held, list):
        words = [word for word in held if isinstance(word, str)]
        shown = shown_state([canonical_state(word) for word in words])
        return shown.value if shown.value != "UNKNOWN" else ",".join(words)
    return held.strip() if isinstance(held, str) else ""


def _id(job: Dict[str, Any]) -> Optional[str]:
    array = job.get("array") if isinstance(job.get("array"), dict) else {}
    het = job.get("het") if isinstance(job.get("het"), dict) else {}
    array_id = _number(job.get("array_job_id")) or _number((array or {}).get("job_id"))
    task = _number(job.get("array_task_id"))
    if task is None:
        task = _number((array or {}).get("task_id"))
    tasks = job.get("array_task_string") or (array or {}).get("task")
    if array_id and task is not None:
        return f"{array_id}_{task}"
    if array_id and isinstance(tasks, str) and tasks:
        return f"{array_id}_[{tasks}]"
    het_id = _number(job.get("het_job_id")) or _number((het or {}).get("job_id"))
    offset = _number(job.get("het_job_offset"))
    offset = _number((het or {}).get("job_offset")) if offset is None else offset
    if het_id:
        return f"{het_id}+{offset or 0}"
    number = _number(job.get("job_id", job.get("jobid")))
    return str(number) if number is not None else None


def _exit(held: Any) -> "tuple[Optional[int], Optional[int]]":
    if isinstance(held, dict):
        signal = held.get("signal")
        if isinstance(signal, dict):
            signal = signal.get("id", signal.get("signal_id"))
        return _number(held.get("return_code")), _number(signal) or None
    status = _number(held)
    if status is None:
        return None, None
    return (status >> 8) & 0xFF, (status & 0x7F) or None


def _number(held: Any) -> Optional[int]:
    if isinstance(held, dict):
        held = held.get("number") if held.get("set") else None
    if isinstance(held, bool) or not isinstance(held, (int, float)) or abs(held) > 1e18:
        return None
    return int(held)


def _read_cut_json(text: str) -> Optional[List[JobView]]:
    """JSON cut by the clipboard: only the first job's state can still be told."""
    found = re.findall(r'"job_state"\s*:\s*(\[[^\]]*\]|"[^"]*")', text) or re.findall(
        r'"state"\s*:\s*\{\s*"current"\s*:\s*(\[[^\]]*\]|"[^"]*")', text
    )
    if not found:
        return None
    words = re.findall(r'"([^"]*)"', found[0])
    return [sighting("json", Confidence.INFERRED, _state_text(words))]
