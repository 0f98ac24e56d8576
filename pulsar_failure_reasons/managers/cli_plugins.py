"""Job plugins by name: Pulsar's own and those of the site, and those for DRMs that it lacks."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any, Dict, Mapping, Optional, Tuple

from pulsar.managers.util.cli import DEFAULT_SHELL_PLUGIN, CliInterface

from ..drm.registry import DRM_MODULES
from ..errors import ConfigurationError
from .cli_module import ModulePlugin

log = logging.getLogger("pulsar.failure_reasons.cli")

GRID_ENGINE = "SGE"

#: Other spellings, in lower case. Pulsar's own plugins are found in any case too.
_SPELLINGS = {
    "sge": GRID_ENGINE,
    "gridengine": GRID_ENGINE,
    "grid_engine": GRID_ENGINE,
    "soge": GRID_ENGINE,
    "ogs": GRID_ENGINE,
    "uge": GRID_ENGINE,
    "univa": GRID_ENGINE,
    "age": GRID_ENGINE,
    "pbspro": "OpenPBS",
    "pbs": "OpenPBS",
}


@dataclass(frozen=True)
class Drm:
    """What the manager knows of a DRM: its registry name and what people call it.

    ``module`` is None for a job plugin that we do not know. ``submit_command`` is how the
    module's ``error_from_command`` knows a submission; ``name_options`` begin the options that
    give a job its name.
    """

    name: str
    label: str
    module: Optional[ModuleType] = None
    submit_command: str = ""
    name_options: Tuple[str, ...] = ("-J", "-N")


def _drm(name: str, submit_command: str, name_options: Tuple[str, ...]) -> Drm:
    module = DRM_MODULES[name]
    return Drm(name, module.LABEL, module, submit_command, name_options)


_DRMS = {
    "slurm": _drm("slurm", "sbatch", ("--j", "-J")),
    "lsf": _drm("lsf", "bsub", ("-J",)),
    "pbs": _drm("pbs", "qsub", ("-N",)),
    "gridengine": _drm("gridengine", "qsub", ("-N",)),
}
_DRM_OF_PLUGIN = {
    "Slurm": "slurm",
    # Slurm's wrappers of Torque's commands: they submit, Slurm's own commands tell more.
    "SlurmTorque": "slurm",
    "LSF": "lsf",
    "Torque": "pbs",
    "OpenPBS": "pbs",
    GRID_ENGINE: "gridengine",
}
#: DRMs whose modules describe their commands, by the name of their job plugin.
_DESCRIBED = {
    module.BY_COMMAND.job_plugin: _drm(
        name, module.BY_COMMAND.submit_command, module.BY_COMMAND.name_options
    )
    for name, module in DRM_MODULES.items()
    if hasattr(module, "BY_COMMAND")
}


class Plugins:
    """The plugins that one manager's options choose.

    Raises:
        ConfigurationError: there is no job or shell plugin of that name.
    """

    def __init__(
        self, manager_name: str, shell_params: Mapping[str, Any], job_params: Mapping[str, Any]
    ) -> None:
        self._interface = CliInterface()
        self._shell_params = dict(shell_params)
        self.shell_name = str(shell_params.get("plugin", DEFAULT_SHELL_PLUGIN))
        known = {**self._interface.cli_job_interfaces, **_our_plugins()}
        name = _found(job_params.get("plugin"), known, _SPELLINGS)
        if name is None:
            raise ConfigurationError(
                f"manager {manager_name}: option job_plugin is {job_params.get('plugin')!r:.80}; "
                f"it must be one of: {', '.join(sorted(known))}"
            )
        if self.shell_name not in self._interface.cli_shells:
            raise ConfigurationError(
                f"manager {manager_name}: option shell_plugin is {self.shell_name!r:.80}; it must "
                f"be one of: {', '.join(sorted(self._interface.cli_shells))}"
            )
        self.job_name = name
        self.job = known[name](**job_params)
        self.drm = _drm_of(name, known[name])

    def make_shell(self) -> Any:
        """Return a new shell; may connect, and raise whatever the plugin raises."""
        return self._interface.cli_shells[self.shell_name](**self._shell_params)

    @property
    def where(self) -> str:
        """What messages call the host behind the shell."""
        host = self._shell_params.get("hostname")
        return f"{self.shell_name} to {host}" if host else self.shell_name


def _our_plugins() -> Dict[str, Any]:
    described = {
        name: partial(ModulePlugin, drm.module.BY_COMMAND)
        for name, drm in _DESCRIBED.items()
        if drm.module is not None
    }
    return {GRID_ENGINE: GridEngine, **described}


def _drm_of(name: str, plugin: Any) -> Drm:
    """Return the DRM that a job plugin submits to; of a site's own all we know is its name."""
    if name in _DESCRIBED:
        return _DESCRIBED[name]
    ours = plugin.__module__.startswith(("pulsar.", __name__.partition(".")[0] + "."))
    drm_name = _DRM_OF_PLUGIN.get(name) if ours else None
    return _DRMS[drm_name] if drm_name else Drm(name.lower(), name)


def _found(
    wanted: Any, known: Mapping[str, Any], spellings: Mapping[str, str]
) -> Optional[str]:
    if not isinstance(wanted, str):
        return None
    if wanted in known:
        return wanted
    by_case: Dict[str, str] = {name.lower(): name for name in known}
    return by_case.get(wanted.lower()) or spellings.get(wanted.lower())


class GridEngine:
    """Submit to Grid Engine (SGE, SoGE, OGS, UGE, AGE), in the form of Pulsar's job plugins.

    ``job_*`` options are qsub's: ``job_queue``, ``job_pe``, ``job_project``, ``job_resources``
    (``h_rt=3600,h_vmem=4G``), or any by its own name (``job_-l``).
    """

    _OPTIONS = {"queue": "-q", "pe": "-pe", "project": "-P", "resources": "-l"}

    def __init__(self, **params: Any) -> None:
        self.params = params

    def job_script_kwargs(self, ofile: str, efile: str, job_name: str) -> Dict[str, str]:
        """Return the headers of the job script; options of the site come last and win."""
        # Without -S the queue's shell would run the script, csh by default; before a colon in
        # a path stands a host.
        options = {"-S": "/bin/bash", "-o": f":{ofile}", "-e": f":{efile}", "-N": job_name}
        for name, value in self.params.items():
            if name == "plugin":
                continue
            option = name if name.startswith("-") else self._OPTIONS.get(name)
            if option is None:
                log.warning("Grid Engine has no option job_%s; write it as job_-OPTION", name)
            else:
                options[option] = str(value)
        return {"headers": "".join(f"#$ {name} {value}\n" for name, value in options.items())}

    def submit(self, script_file: str) -> str:
        """Return the command that submits a script."""
        return f"qsub {script_file}"

    def delete(self, job_id: str) -> str:
        """Return the command that deletes a job."""
        return f"qdel {job_id}"
