"""Whatever comes in: nothing raises, and nothing unknown is success."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from pulsar_failure_reasons.drm.base import Ending
from pulsar_failure_reasons.drm.htcondor import (
    classify_hold,
    classify_removal,
    summarize_events,
    view_of,
    view_of_history_ad,
)
from pulsar_failure_reasons.drm.htcondor.captured import read_captured
from pulsar_failure_reasons.reason import Cause

from .support import DATA, corpus

NAMES = st.sampled_from([
    "EventTypeNumber", "Cluster", "Proc", "HoldReason", "HoldReasonCode", "HoldReasonSubCode",
    "Reason", "TerminatedNormally", "ReturnValue", "TerminatedBySignal", "MemoryUsage",
    "RequestMemory", "SlotName", "EventTime", "JobStatus", "LastJobStatus", "ExitBySignal",
    "ExitCode", "ExitSignal", "LastHoldReasonCode", "LastHoldReason", "RemoveReason", "QDate",
    "PeriodicRelease", "ServerTime", "JobCurrentStartDate", "RequestDisk", "ResidentSetSize",
])
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.integers(-2, 60), st.floats(), st.text(max_size=30),
    st.binary(max_size=5), st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)
DICTS = st.dictionaries(NAMES, VALUES, max_size=12)
REASONS = st.one_of(st.none(), st.text(), st.sampled_from(["memory", "exceeded", "disk limit"]))
#: As HTCondor writes it in its event 005, from 23 on also in the event's last line.
WELL = r"Normal termination \(return value 0\)|own accord at \S+ with exit-code 0\b"
SNIPPETS = [case["text"] for case in corpus()] + [
    path.read_text() for path in sorted((DATA / "logs").glob("*.log"))[::9]
]


@given(st.one_of(st.none(), st.integers()), st.one_of(st.none(), st.integers()), REASONS)
def test_any_hold_has_a_cause(code, subcode, reason):
    """Every code, subcode and reason is classified."""
    finding = classify_hold(code, subcode, reason)
    assert isinstance(finding.cause, Cause)
    assert isinstance(classify_removal(reason, finding).cause, Cause)


@given(st.lists(DICTS, max_size=8), st.one_of(st.none(), DICTS))
def test_any_events_and_ad_give_a_view(events, ad):
    """A job ended well only where an event or ad says exit code 0."""
    view = view_of(summarize_events(events), ad)
    if view.end is not None and view.end.ending is Ending.WELL:
        values = [item for source in [*events, ad or {}] for item in (
            source.get("ReturnValue"), source.get("ExitCode"))]
        assert any(_is_zero(value) for value in values)


def _is_zero(value):
    try:
        return not isinstance(value, bool) and int(value) == 0
    except (TypeError, ValueError, OverflowError):
        return False


@given(DICTS)
def test_any_history_ad_gives_a_view(ad):
    """No ad makes it raise."""
    view = view_of_history_ad(ad)
    if view.end is not None and view.end.ending is Ending.WELL:
        assert _is_zero(ad.get("ExitCode"))


@given(st.text())
def test_any_text_is_read(text):
    """No text makes it raise, and none without an exit code 0 is success."""
    found = read_captured(text)
    assert not (found.ended and found.cause is None)


@given(st.sampled_from(SNIPPETS), st.data())
def test_any_cut_of_a_real_text_is_read(text, data):
    """A cut text is success only where a line about the exit code 0 is still whole."""
    start = data.draw(st.integers(0, len(text)))
    piece = text[start: data.draw(st.integers(start, len(text)))]
    found = read_captured(piece)
    if found.ended and found.cause is None:
        assert re.search(WELL, piece)


def test_long_text_is_read_in_time():
    """No text makes a pattern run for ever."""
    import time

    for unit in ("memory ", "exceeded ", "failed to open '", "a = ", "Hold reason: ", "> ", "0 "):
        began = time.process_time()
        read_captured(unit * 20_000)
        read_captured("HoldReason = \"" + unit * 20_000 + "\"\nHoldReasonCode = 3")
        assert time.process_time() - began < 60  # a tenth of a second on an idle machine
