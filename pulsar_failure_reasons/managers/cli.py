"""``queued_cli_classified``: jobs by command line, here or over ssh, with the reason of their end.

A drop-in for ``queued_cli``: the same options (``job_plugin``, ``shell_plugin``, ``job_*``,
``shell_*``), the same external ids, so that an operator can go there and back with jobs in
flight. Submission is by the job plugin; job states come from the DRM's own commands, one for all
jobs, and never from the plugin where we know the DRM.
"""

from __future__ import annotations

import json
import logging
import re
import shlex
from dataclasses import replace
from typing import Any, List, Mapping, Optional

from pulsar.managers.stateful import DEFAULT_MIN_POLLING_INTERVAL
from pulsar.managers.util.cli import split_params
from pulsar.managers.util.external import parse_external_id as stock_external_id

from ..drm import lsf
from ..drm.base import StderrFinding
from ..drm.external_ids import parse_external_id
from ..errors import (
    DrmError,
    DrmUnreachableError,
    OutputParseError,
    SubmissionRefusedError,
)
from ..judgement import COMPLETE, FAILED, JobFiles
from ..observer import Observer, Source, shared_observer
from ..reason import clean_text
from ..stderr_tail import read_tail
from .cli_module import ModuleSource
from .cli_plugin_source import PluginSource
from .cli_plugins import Plugins
from .cli_shell import Link
from .cli_source import GridEngineSource, LsfSource, PbsSource
from .native_specification import split_native_specification, submitted_native_specification
from .options import Options
from .recording import Graces
from .recording_manager import RecordingManager
from .slurm_source import SlurmSource

log = logging.getLogger("pulsar.failure_reasons.cli")

OWN_OPTIONS = (
    "native_specification",
    "submit_native_specification",
    "status_poll_interval",
    "accounting",
    "missing_grace",
    "hold_grace",
    "limit_with_zero_exit",
    "command_timeout",
    "observe_only",
)
_STOCK_OPTIONS = ("min_polling_interval", "job_plugin", "shell_plugin", "job_name_template")
#: ``job_*`` options of Pulsar itself, which are none of the job plugin's.
_NOT_THE_PLUGINS = ("name_template", "directory_mode", "metrics_config_file")
#: A name that every DRM takes as it is, so that it can be compared.
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_.+-]+")
_NOT_FOUND, _NOT_EXECUTABLE = 127, 126


class CliQueueManager(RecordingManager):
    """Manager for DRMs by command line that records why a job ended (see the module's text).

    Options of its own, all optional (``docs/queued_cli_classified.md``):

    * ``native_specification``: options for the submit command; without it those that a job
      brings (``submit_native_specification``) hold
    * ``status_poll_interval``: seconds between two looks, 15; not below stock's
      ``min_polling_interval``
    * ``accounting``: ``auto`` or ``none``
    * ``missing_grace``, ``hold_grace``: seconds of successful answers, 60 and 3600
    * ``limit_with_zero_exit``: ``failed`` or ``complete``
    * ``command_timeout``: seconds, 60
    * ``observe_only``: classify, record and log, send nothing

    Raises:
        ConfigurationError: an option has a value that cannot work.
    """

    manager_type = "queued_cli_classified"

    def __init__(self, name: str, app: Any, **kwds: Any) -> None:
        options = Options(name, kwds)
        self._accounting = options.choice("accounting", ("auto", "none"), "auto")
        self._interval_s = max(
            options.seconds("status_poll_interval", 15.0),
            options.seconds("min_polling_interval", DEFAULT_MIN_POLLING_INTERVAL, zero=True),
        )
        self.graces = Graces(
            missing_s=options.seconds("missing_grace", 60.0, zero=True),
            hold_s=options.seconds("hold_grace", 3600.0, zero=True),
            limit_with_zero_exit=options.choice(
                "limit_with_zero_exit", (FAILED, COMPLETE), FAILED
            ),
        )
        self.observe_only = options.flag("observe_only")
        self.native_specification = (
            kwds.get("native_specification") or kwds.get("submit_native_specification")
        )
        split_native_specification(name, self.native_specification)
        shell_params, job_params = split_params(kwds)
        for param in _NOT_THE_PLUGINS:
            job_params.pop(param, None)
        self._plugins = Plugins(name, shell_params, job_params)
        self._job_params = job_params
        self.drm = self._plugins.drm.name
        self.drm_label = self._plugins.drm.label
        timeout_s = options.seconds("command_timeout", 60.0)
        self._link = Link(self._plugins.make_shell, timeout_s, self._plugins.where)
        self._link_key = json.dumps([shell_params, timeout_s], sort_keys=True, default=str)
        self._plugin_key = json.dumps(job_params, sort_keys=True, default=str)
        options.warn_of_misspellings(OWN_OPTIONS, _STOCK_OPTIONS)
        super().__init__(name, app, **kwds)
        log.info(
            "manager %s: %s submits to %s by %s, looks every %g s, accounting %s%s",
            name, self.manager_type, self.drm_label, self._plugins.where, self._interval_s,
            self._accounting, ", observes only" if self.observe_only else "",
        )
        self.begin(app)

    # ---- submission -----------------------------------------------------------------------

    def launch(
        self,
        job_id: str,
        command_line: str,
        submit_params: Mapping[str, str] = {},
        dependencies_description: Any = None,
        env: Any = (),
        setup_params: Any = None,
    ) -> None:
        """See Pulsar's manager; a refusal is recorded before it is raised."""
        self._check_execution_with_tool_file(job_id, command_line)

        def submit() -> str:
            script = self._setup_job_file(
                job_id,
                command_line,
                dependencies_description=dependencies_description,
                env=list(env),
                setup_params=setup_params,
            )
            workdir = self.job_directory(job_id).working_directory()
            return self._submit(script, workdir, submit_params)

        self.submit_once(job_id, submit)

    def _job_template_env(
        self, job_id: str, command_line: Optional[str] = None, **more: Any
    ) -> Any:
        """See Pulsar's manager; of a job script it has the plugin's headers too."""
        template_env = super()._job_template_env(job_id, command_line=command_line, **more)
        if command_line is not None:
            template_env.update(
                self._plugins.job.job_script_kwargs(
                    self._job_stdout_path(job_id),
                    self._job_stderr_path(job_id),
                    self._job_name(job_id),
                )
            )
        return template_env

    def _submit(self, script: str, workdir: str, submit_params: Mapping[str, str]) -> str:
        native = self.native_specification or submit_params.get("native_specification")
        options = split_native_specification(self.name, native)
        line = self._with_options(str(self._plugins.job.submit(shlex.quote(script))), options)
        # From the job's own folder: a job that was renamed is told by where it works.
        result = self._link.run_line(f"cd {shlex.quote(workdir)} && {line}")
        if result.returncode in (_NOT_FOUND, _NOT_EXECUTABLE) and not result.stdout.strip():
            # Nothing was asked of the DRM, so there is no doubt about the job.
            raise SubmissionRefusedError(
                f"{self._link.where}: cannot run {line.split()[0]}: {clean_text(result.stderr)}"
            )
        drm = self._plugins.drm
        if drm.module is None:
            return self._id_told_to_a_plugin(result.returncode, result.stdout, result.stderr)
        error = drm.module.error_from_command(
            [drm.submit_command], result.returncode, result.stderr
        )
        if error is not None:
            raise error
        return str(drm.module.parse_submission(result.stdout))

    def _with_options(self, line: str, options: List[str]) -> str:
        """Return the plugin's command line with options put in behind the command."""
        if self.drm == "lsf":
            # Stock cuts the id out with awk and sed, which end well whatever bsub said.
            line = line.partition("|")[0]
        command, _, rest = line.strip().partition(" ")
        return " ".join(part for part in (command, shlex.join(options), rest.strip()) if part)

    def _id_told_to_a_plugin(self, returncode: int, stdout: str, stderr: str) -> str:
        said = clean_text(stderr or stdout)
        if returncode != 0:
            raise SubmissionRefusedError(f"{self.drm_label} refused the submission: {said}")
        external_id = stock_external_id(stdout.strip())
        if not external_id:
            raise DrmUnreachableError(f"{self.drm_label} told no id of the job: {said}")
        try:
            return parse_external_id(external_id).text
        except OutputParseError:
            self._link.run_line(str(self._plugins.job.delete(shlex.quote(external_id))))
            raise

    def submits_under_our_name(self, job_id: str) -> bool:
        """See ``RecordingManager``: options may name the job, and a DRM may change the name."""
        names = self._plugins.drm.name_options
        if any(str(key).startswith((*names, "Job_Name")) for key in self._job_params):
            return False
        text = self.native_specification or submitted_native_specification(
            self.job_directory(job_id)
        )
        options = split_native_specification(self.name, text)
        named = any(option.startswith(names) for option in options)
        return not named and _PLAIN_NAME.fullmatch(self._job_name(job_id)) is not None

    # ---- looking and killing --------------------------------------------------------------

    def observer(self, external_id: Optional[str]) -> Observer:
        """See ``RecordingManager``: one for each DRM behind the same shell."""
        cluster = self._cluster_of(external_id)
        # What we do not know may hang on any of the plugin's options.
        plugin = self._plugin_key if self._plugins.drm.module is None else ""
        return shared_observer(
            ("cli", self.drm, cluster, self._link_key, plugin, self._accounting),
            self._interval_s,
            lambda: self._source(cluster),
        )

    def _cluster_of(self, external_id: Optional[str]) -> Optional[str]:
        """Return the Slurm cluster that an id names; PBS's server is no place to ask."""
        if self.drm != "slurm" or external_id is None:
            return None
        return parse_external_id(external_id).suffix

    def _source(self, cluster: Optional[str]) -> Source:
        if self.drm == "slurm":
            return SlurmSource(self._link, cluster, self._accounting)
        if self.drm == "lsf":
            return LsfSource(self._link, self._accounting)
        if self.drm == "pbs":
            return PbsSource(self._link, self._accounting)
        if self.drm == "gridengine":
            return GridEngineSource(self._link, self._accounting)
        if self._plugins.drm.module is not None:
            return ModuleSource(self._link, self._plugins.drm.module, self._accounting)
        return PluginSource(self._link, self._plugins.job, self.drm_label)

    def classify_stderr(self, text: str, external_id: Optional[str]) -> Optional[StderrFinding]:
        """See ``RecordingManager``."""
        module = self._plugins.drm.module
        if module is None:
            return None
        finding: Optional[StderrFinding] = module.classify_stderr(text, external_id)
        return finding

    def read_job_files(self, job_id: str, external_id: Optional[str]) -> JobFiles:
        """See ``RecordingManager``; LSF writes its report behind the job's stdout."""
        files = super().read_job_files(job_id, external_id)
        if self.drm != "lsf" or files.stderr is not None:
            return files
        stdout = read_tail(self._job_stdout_path(job_id))
        report = lsf.classify_report(stdout, external_id) if stdout else None
        return replace(files, stderr=report)

    def _kill_external(self, external_id: str) -> None:
        observer = self.observer(external_id)
        try:
            observer.source.cancel([external_id])
        except DrmError as error:
            log.info("(%s) could not be cancelled now, trying again: %s", external_id, error)
            observer.cancel_later(external_id)
