"""The histories that bhist -l, bacct -l and bjobs -l print.

They wrap after 79 columns, inside words, and indent what follows; so blanks are taken out
before anything is read. Only lines with LSF's date are read: what a user could write (job name,
command) stands before the first of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import List, Optional

from ...errors import OutputParseError
from ...reason import Confidence, Evidence
from ..base import JobView
from ..external_ids import parse_external_id
from .classify import Description, describe_state
from .command_errors import says_not_found
from .termination import find_termination

_RECORD = re.compile(r"^\s*Job <(?P<id>[0-9]{1,18}(?:\[[0-9]+\])?)>", re.MULTILINE)
#: ``Tue Jul 24 10:26:53: ``, ``Tue Jul 24 10:26:53 2012: ``, and the like in other languages.
_DATED = re.compile(
    r"^(?P<date>\S{1,14} (?:\S{1,14} +){1,3}[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?: [0-9]{4})?): "
    r"(?P<said>.*)"
)
_STARTS = re.compile(r"(?:\[[0-9]+\])?(?:start|running|dispatched|resum)")
_INDENT = re.compile(r"^\s{5,}\S")


@dataclass
class History:
    """One job's dated lines, unwrapped, and what they say.

    ``state`` is LSF's word for the last of them, None where none tells one.
    """

    external_id: Optional[str]
    header: str = ""
    said: List[str] = field(default_factory=list)
    state: Optional[str] = None
    reason: str = ""
    exit_code: Optional[int] = None
    signal: Optional[int] = None
    killed_by: Optional[str] = None
    started: bool = False
    submitted: bool = False
    host_lost: bool = False

    def read(self, said: str) -> None:
        """Take one more line into account; the newest run decides."""
        squeezed = re.sub(r"\s+", "", said)
        word = squeezed.lower()
        if _STARTS.match(word):
            self._begin("RUN")
            self.started = True
        elif word.startswith(("submitted", "pending", "requeue", "jobhasbeenrequeued", "migrat")):
            self._begin("PEND")
            self.submitted = self.submitted or word.startswith("submitted")
        elif word.startswith("unknown;"):
            self.host_lost = True
        elif word.startswith("signal<"):
            self._signal_requested(squeezed)
        elif word.startswith("done") or word.startswith("completed<done>"):
            self.state = "DONE"
        elif word.startswith(("exited", "completed<exit>", "terminated", "zombie", "killed")):
            self._exited(said, squeezed)

    def _begin(self, state: str) -> None:
        self.state, self.reason = state, ""
        self.exit_code = self.signal = None
        self.host_lost = False

    def _signal_requested(self, squeezed: str) -> None:
        match = re.match(r"Signal<(KILL|TERM|INT)>requestedby[^<]*<([^<>]{1,60})>", squeezed, re.I)
        if match:
            self.killed_by = match.group(2)

    def _exited(self, said: str, squeezed: str) -> None:
        self.state = "EXIT"
        if find_termination(said) is not None:
            self.reason = said
        code = re.search(r"exitcode([0-9]{1,3})(?![0-9])", squeezed, re.IGNORECASE)
        number = re.search(r"by(?:LSF)?signal([0-9]{1,3})", squeezed, re.IGNORECASE)
        if code:
            self.exit_code = int(code.group(1))
        elif number:
            self.signal = int(number.group(1))

    def describe(self) -> Optional[Description]:
        """Return what the history says in the end; None where it says nothing."""
        if self.state is None:
            return None
        reason = self.reason
        if self.state == "EXIT" and not reason and self.exit_code is None:
            if self.host_lost:
                reason = "TERM_ZOMBIE"
            elif self.killed_by is not None:
                reason = "TERM_OWNER"
        return describe_state(
            self.state, reason, self.exit_code, signal=self.signal,
            # Without the line of its submission, that of its start may be cut off as well.
            started=self.started if self.started or self.submitted else None,
        )


def parse_bhist(stdout: str, stderr: str = "") -> List[JobView]:
    """Return the jobs of an answer of ``bhist -l`` or ``bacct -l`` whose state it tells.

    Raises:
        OutputParseError: no record of a job, and no word of LSF's that it knows none.
    """
    histories = read_histories(stdout)
    if not histories and not says_not_found(f"{stderr}\n{stdout}"):
        raise OutputParseError(f"bhist printed neither a job nor why: {stdout[:200]!r}")
    views = [view_of_history(h, "bhist") for h in histories if h.external_id]
    return [view for view in views if view is not None]


def read_histories(text: str) -> List[History]:
    """Return the histories in a text; one without an id where no line names a job."""
    text = text.replace("\r\n", "\n")
    starts = [match.start() for match in _RECORD.finditer(text)]
    if not starts:
        return [h for h in [_read_record(text, None)] if h.said]
    pieces = [text[a:b] for a, b in zip(starts, starts[1:] + [len(text)])]
    return [_read_record(piece, _RECORD.match(piece)) for piece in pieces]


def _read_record(text: str, head: Optional["re.Match[str]"]) -> History:
    history = History(head.group("id") if head else None)
    for line in _unwrapped(text):
        match = _DATED.match(line)
        if match:
            history.said.append(match.group("said"))
            history.read(match.group("said"))
        elif not history.said and not history.header:
            history.header = line
    return history


def _unwrapped(text: str) -> List[str]:
    lines: List[str] = []
    for line in text.split("\n"):
        if lines and lines[-1] and _INDENT.match(line):
            lines[-1] += line.strip()
        else:
            lines.append(line.strip() if not lines else line.rstrip())
    return lines


def view_of_history(history: History, source: str) -> Optional[JobView]:
    """Return the job of a history; None where it tells no state."""
    described = history.describe()
    if described is None:
        return None
    end = described.end
    killer = history.killed_by
    if end is not None and end.cancelled_by and killer:
        end = replace(end, cancelled_by=killer)
    return JobView(
        external_id=parse_external_id(history.external_id).text if history.external_id else "",
        job_state=described.word,
        phase=described.phase,
        confidence=Confidence.INFERRED if described.inferred else Confidence.ACCOUNTING,
        end=end,
        evidence=tuple(Evidence(source, "line", said) for said in history.said[-3:]),
    )
