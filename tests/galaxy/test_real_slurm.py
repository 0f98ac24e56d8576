"""Galaxy, Pulsar and a real Slurm: the demonstration, which is also the smoke test of the three."""

from __future__ import annotations

import pytest

from tests import demo_galaxy
from tests.real.require import require_real
from tests.real.slurm import why_missing

pytestmark = pytest.mark.galaxy


def test_the_demonstration_on_a_real_slurm(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A job killed at its walltime is resubmitted and ends well, and the history is shown."""
    require_real("Slurm", why_missing())
    monkeypatch.setenv("SIMULATED", "0")
    assert demo_galaxy.main() == 0
    shown = capfd.readouterr()
    assert "a real Slurm" in shown.err
    assert "From the DRM's end of the job to its resubmission: " in shown.out
    states = [line.split()[1] for line in shown.out.splitlines() if line.startswith("  ")]
    assert states == ["new", "queued", "running", "resubmitted", "queued", "ok"] or (
        states == ["new", "queued", "running", "resubmitted", "queued", "running", "ok"])
