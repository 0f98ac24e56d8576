"""HTCondor: codes by name, why a job is held or ended, what its event log says.

Pure: plain dicts of event attributes and job ads in, values out; htcondor2 is not imported.

* :mod:`.codes` numbers by name; :mod:`.classify` holds and removals; :mod:`.reason_text`
  reasons in words
* :mod:`.events` a job's log as one summary; :mod:`.hold_policy` wait or fail; :mod:`.views` the
  job for the judgement
* :mod:`.captured` texts from the wild
"""

from __future__ import annotations

from .captured import read_captured
from .classify import (
    FAILURE_TO_RUNNER_STATE,
    HOLD_REASON_TO_RUNNER_STATE,
    HoldFinding,
    HoldKind,
    Removal,
    classify_hold,
    classify_removal,
    name_hold,
)
from .codes import HoldReasonCode, JobEvent, JobStatus, VacateReasonCode
from .events import JobState, JobSummary, advance, summarize_events
from .hold_policy import DEFAULT_HOLD_POLICY, HoldDecision, HoldPolicy, hold_decision
from .views import EndFinding, classify_end, view_of, view_of_history_ad, with_ad

#: For people.
LABEL = "HTCondor"
#: What else people call it.
OTHER_NAMES = ("condor",)

#: What an admin would ask about one job: the schedd's queue first, then its history.
EXPLAIN_COMMANDS = (
    ("condor_q", "-long", "{id}"),
    ("condor_history", "-long", "-limit", "1", "{id}"),
)

__all__ = [
    "DEFAULT_HOLD_POLICY",
    "EXPLAIN_COMMANDS",
    "EndFinding",
    "FAILURE_TO_RUNNER_STATE",
    "HOLD_REASON_TO_RUNNER_STATE",
    "HoldDecision",
    "HoldFinding",
    "HoldKind",
    "HoldPolicy",
    "HoldReasonCode",
    "JobEvent",
    "JobState",
    "JobStatus",
    "JobSummary",
    "LABEL",
    "OTHER_NAMES",
    "Removal",
    "VacateReasonCode",
    "advance",
    "classify_end",
    "classify_hold",
    "classify_removal",
    "hold_decision",
    "name_hold",
    "read_captured",
    "summarize_events",
    "view_of",
    "view_of_history_ad",
    "with_ad",
]
