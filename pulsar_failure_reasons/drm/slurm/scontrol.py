"""What ``scontrol show job`` prints, with or without ``--oneliner``.

Job name, comment, command and folders are printed as they are, with blanks, ``=`` and
newlines, so they can hold what looks like other fields. The state stands after the job name
and before all the others, and always in one sequence of fields: where that sequence is there
twice, nobody can tell which one Slurm wrote, and the record is refused.
"""

from __future__ import annotations

import re
from typing import List, Match, Optional, Tuple

from ...errors import OutputParseError
from ...reason import Confidence, Evidence
from ..base import JobView
from ..combine import combine_views
from ..external_ids import base_id, parse_external_id
from .classify import describe_state, parse_exit_code, signal_from_reason
from .fields import duration, memory, text_or_none, tres_memory, whole_number

_RECORD_START = re.compile(r"^[ \t]*(?=JobId=[0-9])", re.MULTILINE)
_HEAD = re.compile(
    r"JobId=(?P<id>[0-9]+)"
    r"(?:\s+ArrayJobId=(?P<array>[0-9]+)\s+ArrayTaskId=(?P<task>\S+)"
    r"(?:\s+ArrayTaskThrottle=\S+)?)?"
    r"(?:\s+(?:Het|Pack)JobId=(?P<het>[0-9]+)\s+(?:Het|Pack)JobOffset=(?P<offset>[0-9]+))?"
    r"\s+JobName="
)
# WCKey is there where the site tracks it, FailedNode since 23.02.
_ANCHOR = re.compile(
    r"(?:\s+(?:Het|Pack)JobIdSet=\S+)?\s+UserId=\S+\s+GroupId=\S.*?\s+"
    r"(?:MCS_label=\S+\s+)?Priority=[0-9]+\s+Nice=-?[0-9]+\s+Account=\S*\s+"
    r"QOS=\S*\s+(?:WCKey=\S*\s+)?JobState=(?P<state>[A-Za-z_,+]+)\s+Reason=(?P<reason>\S.*?)\s+"
    r"(?:FailedNode=\S*\s+)?Dependency=\S",
)
_SECOND_STATE = re.compile(r"QOS=\S*\s+(?:WCKey=\S*\s+)?JobState=")


def parse_scontrol(text: str) -> JobView:
    """Return the job that ``scontrol show job ID`` shows.

    The records of an array's tasks or a heterogeneous job's components are combined into one.

    Raises:
        OutputParseError: there is no record, records of different jobs, or a record in which
            the state cannot be told from a job name or comment that looks like one.
    """
    views = [parse_record(record) for record in _records(text)]
    if not views:
        raise OutputParseError(f"scontrol showed no job: {text!r:.200}")
    ids = [view.external_id for view in views]
    if len({base_id(external_id) for external_id in ids}) > 1 or len(set(ids)) < len(ids):
        raise OutputParseError(f"scontrol showed several jobs: {', '.join(ids)[:200]}")
    return combine_views(views)


def _records(text: str) -> List[str]:
    starts = [match.end() for match in _RECORD_START.finditer(text)]
    return [text[a:b] for a, b in zip(starts, starts[1:] + [len(text)])]


def parse_record(record: str) -> JobView:
    """Return the job of one record.

    Raises:
        OutputParseError: see :func:`parse_scontrol`.
    """
    head, anchor = _head_and_anchor(record)
    rest = record[anchor.end("reason"):]
    exit_code, signal = parse_exit_code(_after(rest, "ExitCode") or "")
    reason = anchor.group("reason")
    state = describe_state(
        anchor.group("state"), reason, exit_code, signal or signal_from_reason(reason)
    )
    return JobView(
        external_id=_external_id(head),
        job_state=state.word,
        phase=state.phase,
        confidence=Confidence.CONTROLLER,
        end=state.end,
        stuck_detail=state.stuck_detail,
        job_name=record[head.end():anchor.start()],
        submitted_at=text_or_none(_after(rest, "SubmitTime")),
        restarts=whole_number(_after(rest, "Restarts")),
        elapsed_s=duration(_after(rest, "RunTime")),
        walltime_s=duration(_after(rest, "TimeLimit")),
        memory_bytes=_memory(rest),
        node=text_or_none(_after(rest, "NodeList")),
        evidence=tuple(
            Evidence("scontrol", name, value)
            for name, value in (
                ("JobState", anchor.group("state")),
                ("Reason", reason),
                ("ExitCode", _after(rest, "ExitCode") or ""),
            )
            if value
        ),
    )


def _head_and_anchor(record: str) -> Tuple[Match[str], Match[str]]:
    head = _HEAD.match(record)
    if head is None:
        raise OutputParseError(f"not a record of scontrol: {record!r:.200}")
    anchors = list(_ANCHOR.finditer(record, head.end()))
    if len(anchors) != 1 or len(_SECOND_STATE.findall(record)) != 1:
        raise OutputParseError(
            f"scontrol's record of job {head.group('id')} has {len(anchors)} fields JobState "
            "where one was expected: its name or comment looks like one; ask squeue or sacct"
        )
    return head, anchors[0]


def _external_id(head: Match[str]) -> str:
    if head.group("array"):
        task = head.group("task")
        shown = task if task.isdigit() else f"[{task}]"
        return parse_external_id(f"{head.group('array')}_{shown}").text
    if head.group("het"):
        return f"{head.group('het')}+{head.group('offset')}"
    return head.group("id")


def _after(rest: str, field: str) -> Optional[str]:
    """The first such field after the state: those that a comment could hold come later."""
    match = re.search(rf"(?<=\s){field}=(\S*)", rest)
    return match.group(1) if match else None


def _memory(rest: str) -> Optional[int]:
    for field in ("AllocTRES", "ReqTRES", "TRES"):
        size = tres_memory(_after(rest, field))
        if size:
            return size
    one_node = _after(rest, "NumNodes") == "1"
    return (memory(_after(rest, "MinMemoryNode")) or None) if one_node else None
