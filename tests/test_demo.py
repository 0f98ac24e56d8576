"""``make demo``: what it prints of each job."""

from __future__ import annotations

import shlex

import pytest

from tests import demo


@pytest.mark.parametrize("drm", sorted(demo.DRMS))
def test_titles(drm: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A job's title is one line with its whole command, as one could type it."""
    for job in demo.DRMS[drm].jobs:
        demo.show(job, {"status": "complete"})
        title = capsys.readouterr().out.splitlines()[1]
        assert title.startswith(f"=== {job.what}: ") and title.endswith("]")
        command = title.partition(": ")[2].rpartition("   [")[0]
        assert shlex.split(command) == shlex.split(job.command)
