"""A stock ``PulsarApp`` in this process, its ``queued_slurm`` on a simulated Slurm."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any, Iterator, List, Optional

import pytest

from tests.pulsar_in_process import (
    REASON_KEYS,
    TERMINAL,
    PulsarInProcess,
    own_observers,
    reason_of,
    running,
)
from tests.simulated import control

__all__ = [
    "QUICK", "REASON_KEYS", "TERMINAL", "Pulsar", "Slurm", "own_observers",
    "reason_of", "running",
]

#: Graces of a few answers, so that tests need not wait for what operators have minutes for.
QUICK = {
    "type": "queued_slurm",
    "status_poll_interval": 0.1,
    "min_polling_interval": 0.05,
    "missing_grace": 0.3,
    "hold_grace": 0.5,
    # None of a busy machine's stalls is to be taken for an outage.
    "command_timeout": 60,
}


class Slurm:
    """A simulated Slurm; this process finds its commands on PATH while :meth:`in_use`."""

    def __init__(self, home: Path, **settings: Any) -> None:
        self.state = control.create(home, **{"time_scale": 120, "kill_wait": 0.1, **settings})

    @contextlib.contextmanager
    def in_use(self) -> Iterator[Slurm]:
        """Put the commands into this process's environment; end all jobs afterwards."""
        with pytest.MonkeyPatch.context() as patch:
            for name, value in control.environment(self.state).items():
                patch.setenv(name, value)
            try:
                yield self
            finally:
                control.stop_all(self.state)

    def set(self, **settings: Any) -> None:
        """Change settings (``tests/fakes/README.md``)."""
        control.set_settings(self.state, **settings)

    def commands(self, name: str) -> List[List[str]]:
        """Return the argv of each command of this name so far."""
        return [argv for _, argv in control.commands(self.state, name)]

    def scancel(self, external_id: str) -> None:
        """Cancel a job as an administrator would."""
        done = control.run(self.state, "scancel", external_id, user="root:0")
        assert done.returncode == 0, done.stderr

    def state_of(self, external_id: str) -> str:
        """Return the job state as scontrol would show it."""
        return str(control.job_state(self.state, external_id))

    def wait_for(self, external_id: str, *states: str) -> None:
        """Wait until the job has one of these states."""
        control.wait_for(self.state, external_id, *states, timeout=60)


class Pulsar(PulsarInProcess):
    """A server whose managers are ``queued_slurm``."""

    quick = QUICK

    def submit(
        self,
        job_id: str,
        command_line: str = "true",
        native_specification: Optional[str] = None,
        manager: str = "_default_",
    ) -> str:
        """Set up and launch a job; return its external id."""
        submit_params = {}
        if native_specification is not None:
            submit_params["native_specification"] = native_specification
        return self.launch(job_id, command_line, submit_params, manager)
