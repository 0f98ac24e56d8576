"""Builds a ``job_conf.yml`` for the tests' Galaxies: runners, environments, who goes where."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional

from tests.simulated import control

STOCK = "galaxy.jobs.runners.pulsar"
OURS = "pulsar_failure_reasons.galaxy_runners"
NO_METADATA = Path(__file__).resolve().parent / "no_metadata"

#: Of the simulated Slurm: its minute is three seconds; it forgets no job, as it would else after
#: 15 s in which a busy Pulsar may not have asked for it.
SLURM = {"time_scale": 20, "kill_wait": 0.2, "min_job_age": 10 ** 6}
#: Options of ``queued_slurm`` that spare tests the minutes that operators have.
QUICK = {"type": "queued_slurm", "status_poll_interval": 0.5, "min_polling_interval": 0.3,
         "missing_grace": 3}
#: Ends a job that sleeps after a minute.
TIGHT = "--time=1 --mem=40"
#: Ends one that hogs; its time must not run out first on a busy machine.
LITTLE_MEMORY = "--time=600 --mem=40"
ENOUGH_MEMORY = "--time=1 --mem=400"
#: As slurm-drmaa wants it; otherwise the same.
TIGHT_DRMAA = "--time=00:01:00 --mem=40"


def make_slurm(home: Path) -> str:
    """Return the state folder of a new simulated Slurm below this folder."""
    return str(control.create(home / "slurm", **SLURM))


class JobConf:
    """A ``job_conf.yml`` that grows; :attr:`content` is what to write."""

    def __init__(self) -> None:
        self.content: Dict[str, Any] = {
            "runners": {"local": {"load": "galaxy.jobs.runners.local:LocalJobRunner",
                                  "workers": 2}},
            "execution": {"default": "local", "environments": {
                "local": {"runner": "local", "env": _env(ROOMY="1", PYTHONPATH=str(NO_METADATA))},
            }},
            "tools": [],
        }

    @property
    def tools(self) -> List[str]:
        """Ids of the tools that have an environment of their own."""
        return [entry["id"] for entry in self.content["tools"]]

    def runner(self, name: str, load: str, **params: Any) -> str:
        """Add a runner, ``load`` as in ``MODULE:CLASS``; return its name."""
        self.content["runners"][name] = {"load": load, "workers": 2, **params}
        return name

    def environment(
        self, name: str, runner: str, resubmit: List[Dict[str, Any]],
        env: Optional[Mapping[str, str]] = None, **params: Any,
    ) -> str:
        """Add an environment with its rules; return its id."""
        self.content["execution"]["environments"][name] = {
            "runner": runner, "resubmit": resubmit, "env": _env(**(env or {})), **params,
        }
        return name

    def tool(self, tool: str, environment: str, **more: Any) -> str:
        """Send a tool to an environment; return the tool's id."""
        self.content["tools"].append({"id": tool, "environment": environment, **more})
        return tool


def _env(**variables: str) -> List[Dict[str, str]]:
    return [{"name": name, "value": value} for name, value in variables.items()]


def rule(condition: str, environment: str = "local", **more: Any) -> Dict[str, Any]:
    """Return one entry of ``resubmit``."""
    return {"condition": condition, "environment": environment, **more}
