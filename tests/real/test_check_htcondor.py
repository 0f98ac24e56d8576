"""``pulsar-failure-reasons check`` on a real HTCondor, with its trial job."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Dict, Iterator, List

import pytest

from tests.check.harness import write_app
from tests.real.htcondor import PrivatePool

pytestmark = pytest.mark.real


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder that the pool's own user may enter, which pytest's are not."""
    folder = Path(tempfile.mkdtemp(prefix="check-htcondor-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def test_queries_and_the_trial_job(real_htcondor: PrivatePool, home: Path) -> None:
    """Schedd and history answer, and the job's hold at its walltime becomes a reason."""
    app = write_app(home, manager={
        "type": "queued_htcondor_classified", "status_poll_interval": 1,
        "command_timeout": 90,
        "submit_request_memory": "64", "submit_request_disk": "1024",
        "submit_should_transfer_files": "NO",
    })
    done = subprocess.run(
        [sys.executable, "-m", "pulsar_failure_reasons", "check", app, "--format", "json",
         "--submit", "--deadline", "600"],
        env=real_htcondor.env, cwd=str(home), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, universal_newlines=True, timeout=900,
    )
    found: List[Dict[str, Any]] = json.loads(done.stdout)["findings"]
    codes = [finding["code"] for finding in found]
    assert codes.count("PFR220") == 2 and "PFR204" in codes, found
    (trial,) = [finding for finding in found if finding["code"].startswith("PFR4")]
    assert trial["code"] == "PFR401", (trial, done.stderr)
    assert "its walltime limit of 20 s" in trial["what"]
    assert done.returncode == 0
    assert list(home.glob(".pulsar-failure-reasons-check-*")) == []
