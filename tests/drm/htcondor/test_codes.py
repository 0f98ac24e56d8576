"""The numbers by name, against HTCondor's own enumeration."""

from __future__ import annotations

from pulsar_failure_reasons.drm.htcondor import (
    FAILURE_TO_RUNNER_STATE,
    HOLD_REASON_TO_RUNNER_STATE,
    HoldReasonCode,
    VacateReasonCode,
)

from .support import DATA
from .test_classify_hold import HOLDS


def _compiled_names():
    lines = (DATA / "hold_codes.txt").read_text().splitlines()
    pairs = (line.partition(" = ") for line in lines)
    return {name: int(number) for name, _, number in pairs if name != "VacateBase"}


def test_hold_and_vacate_codes_are_htcondors():
    """Each code of HTCondor's enumeration has its name here, and there are no others."""
    ours = {code.name: int(code) for names in (HoldReasonCode, VacateReasonCode) for code in names}
    assert ours == _compiled_names()


def test_every_hold_code_has_a_case():
    """No hold code of the header is without a row in the table of cases."""
    assert {row[1] for row in HOLDS} >= {int(code) for code in HoldReasonCode}


def test_hold_reasons_that_numbers_decide():
    """The map of the upstream plan has the codes of real pools, not 16, 26 and 34 as such."""
    assert HOLD_REASON_TO_RUNNER_STATE == {
        (46, None): "walltime_reached",
        (47, None): "walltime_reached",
        (21, 103): "walltime_reached",
        (21, 102): "memory_limit_reached",
        (34, 102): "memory_limit_reached",
        (6, 666670): "memory_limit_reached",
        (21, 101): "unknown_error",
        (21, 104): "unknown_error",
        (34, 104): "unknown_error",
        (3, 46001): "walltime_reached",
        (3, 46002): "memory_limit_reached",
        (3, 46003): "unknown_error",
        (3, 46004): "walltime_reached",
        (26, 46001): "walltime_reached",
        (26, 46002): "memory_limit_reached",
        (26, 46003): "unknown_error",
        (26, 46004): "walltime_reached",
    }


def test_failures_that_are_no_hold():
    """A shadow exception is no end, so Galaxy is told nothing of it."""
    assert FAILURE_TO_RUNNER_STATE == {
        "shadow_exception": None,
        "job_aborted": "unknown_error",
        "cluster_removed": "unknown_error",
        "executable_error": "unknown_error",
        "unknown": "unknown_error",
    }
