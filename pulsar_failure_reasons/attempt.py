"""The number of an attempt of a Galaxy job: how it travels from Galaxy to Pulsar. Pure.

Galaxy's job id is the name of the job directory on a Pulsar, and stays the same when Galaxy
resubmits the job. So each attempt carries its number and the Galaxy it comes from: with the
submission as environment variables of the job (Pulsar stores them in ``launch_config``), and with
a REST set-up, which comes before it, as arguments of the request. A stock Pulsar takes no notice
of either.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional

ENV_NUMBER = "PULSAR_FAILURE_REASONS_ATTEMPT"
ENV_GALAXY = "PULSAR_FAILURE_REASONS_ATTEMPT_OF"
#: Added by the Pulsar that takes the job: managers may share one staging folder.
ENV_MANAGER = "PULSAR_FAILURE_REASONS_ATTEMPT_AT"

ARGUMENT_NUMBER = "failure_reasons_attempt"
ARGUMENT_GALAXY = "failure_reasons_galaxy"


@dataclass(frozen=True)
class Attempt:
    """One attempt of a job: its number, from 1, and the Galaxy that counts.

    ``galaxy`` is an opaque word, the same for all attempts of all jobs of one Galaxy.
    ``manager`` is the name of the Pulsar manager that took it, None on its way there.
    """

    number: int
    galaxy: str
    manager: Optional[str] = None

    def env(self) -> List[Dict[str, Any]]:
        """Return it as entries of a Galaxy job's environment."""
        values = {ENV_NUMBER: str(self.number), ENV_GALAXY: self.galaxy, ENV_MANAGER: self.manager}
        return [
            {"name": name, "value": value, "raw": False}
            for name, value in values.items() if value is not None
        ]

    def setup_arguments(self) -> Dict[str, str]:
        """Return it as arguments of a REST set-up."""
        return {ARGUMENT_NUMBER: str(self.number), ARGUMENT_GALAXY: self.galaxy}


def from_env(env: object) -> Optional[Attempt]:
    """Return the attempt in a job's environment, None where it is not numbered."""
    if not isinstance(env, list):
        return None
    values = {
        entry.get("name"): entry.get("value") for entry in env if isinstance(entry, Mapping)
    }
    return _attempt(values.get(ENV_NUMBER), values.get(ENV_GALAXY), values.get(ENV_MANAGER))


def from_setup_arguments(arguments: Mapping[str, Any]) -> Optional[Attempt]:
    """Return the attempt in the arguments of a REST set-up, None where it is not numbered."""
    return _attempt(arguments.get(ARGUMENT_NUMBER), arguments.get(ARGUMENT_GALAXY), None)


def without_attempt(env: List[Any]) -> List[Any]:
    """Return a job's environment without our entries."""
    ours = (ENV_NUMBER, ENV_GALAXY, ENV_MANAGER)
    return [e for e in env if not (isinstance(e, Mapping) and e.get("name") in ours)]


def _attempt(number: object, galaxy: object, manager: object) -> Optional[Attempt]:
    try:
        counted = int(str(number))
    except ValueError:
        return None
    if counted < 1 or not isinstance(galaxy, str):
        return None
    return Attempt(counted, galaxy, manager if isinstance(manager, str) else None)
