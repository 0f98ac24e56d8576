"""A DRM whose module describes its commands (``drm.by_command``): its job plugin and source."""

from __future__ import annotations

from types import ModuleType
from typing import Any, Dict, List, Optional, Sequence

from ..drm.argv import chunk_ids
from ..drm.base import JobView
from ..drm.by_command import ByCommand
from .cli_shell import Link
from .cli_source import Asked


class ModulePlugin:
    """Submit to such a DRM, in the form of Pulsar's job plugins; it has no options of its own.

    Args:
        described: The DRM's commands.
        params: ``job_*`` options, of which there are none but the plugin's name.
    """

    def __init__(self, described: ByCommand, **params: Any) -> None:
        self._described = described
        self.params = params

    def job_script_kwargs(self, ofile: str, efile: str, job_name: str) -> Dict[str, str]:
        """Return the headers of the job script."""
        return {"headers": self._described.headers(ofile, efile, job_name)}

    def submit(self, script_file: str) -> str:
        """Return the command that submits a script."""
        return f"{self._described.submit_command} {script_file}"


class ModuleSource:
    """Such a DRM by its commands (see ``drm.base.IdSource``).

    Args:
        link: Where the commands run.
        module: The DRM's module.
        accounting: ``auto``, or ``none``: jobs that are no longer known are not asked for.
    """

    def __init__(self, link: Link, module: ModuleType, accounting: str) -> None:
        self.label = str(module.LABEL)
        self._described: ByCommand = module.BY_COMMAND
        self._asked = Asked(link, self._described.clean_environment, module.error_from_command)
        self._accounting = accounting

    def query_these(
        self, external_ids: Sequence[str], job_names: Sequence[str]
    ) -> Sequence[JobView]:
        """See ``drm.base.IdSource``; one command. Jobs whose id is lost cannot be found."""
        described = self._described
        results = self._asked.all([described.status(ids) for ids in chunk_ids(external_ids)])
        return [v for r in results for v in described.parse_status(r.stdout, r.stderr)]

    def query_ended(self, external_ids: Sequence[str]) -> Optional[List[JobView]]:
        """See ``drm.base.DrmSource``; one command of accounting, where there is one."""
        described = self._described
        if described.ended is None or described.parse_ended is None or self._accounting == "none":
            return None
        results = self._asked.all([described.ended(ids) for ids in chunk_ids(external_ids)])
        return [v for r in results for v in described.parse_ended(r.stdout, r.stderr)]

    def cancel(self, external_ids: Sequence[str]) -> None:
        """See ``drm.base.DrmSource``; one command."""
        self._asked.all([self._described.cancel(ids) for ids in chunk_ids(external_ids)])
