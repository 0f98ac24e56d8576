"""``queued_slurm``: jobs through Slurm, with the reason when Slurm ends one.

A drop-in for ``queued_drmaa``: the same options, the same ``native_specification``, the same
external ids, so that an operator can go there and back with jobs in flight. Job states never
come from DRMAA (it calls a forgotten job done); they come from squeue, and from sacct once
slurmctld has forgotten a job.
"""

from __future__ import annotations

import logging
import shutil
from typing import Any, Mapping, Optional

from pulsar.managers.queued_drmaa import DrmaaQueueManager
from pulsar.managers.stateful import DEFAULT_MIN_POLLING_INTERVAL
from pulsar.managers.util.drmaa import DrmaaSessionFactory

from ..drm.base import StderrFinding
from ..drm.external_ids import parse_external_id
from ..drm.slurm import classify_stderr, sbatch_command
from ..errors import SubmissionRefusedError
from ..judgement import COMPLETE, FAILED
from ..observer import Observer, shared_observer
from .commands import LocalCommands
from .native_specification import split_native_specification, submitted_native_specification
from .options import Options
from .recording import Graces
from .recording_manager import RecordingManager
from .slurm_source import SlurmSource

log = logging.getLogger("pulsar.failure_reasons.slurm")

#: sbatch itself tries again for some two minutes while the queue is full. One that we end may
#: have submitted the job all the same, so it is given that time, whatever ``command_timeout``.
SUBMIT_TIMEOUT_S = 150.0

SUBMIT_CHOICES = ("auto", "sbatch", "drmaa")
ACCOUNTING_CHOICES = ("auto", "sacct", "none")
ZERO_EXIT_CHOICES = (FAILED, COMPLETE)

#: Our own options; everything else is stock's.
OWN_OPTIONS = (
    "submit",
    "cluster",
    "status_poll_interval",
    "accounting",
    "missing_grace",
    "hold_grace",
    "limit_with_zero_exit",
    "command_timeout",
    "observe_only",
)
#: Stock's options whose names come near one of ours.
_STOCK_OPTIONS = ("min_polling_interval", "native_specification")


class LazyDrmaaSession:
    """A DRMAA session that is opened when it is first used.

    Stock opens one in the manager's constructor, which fails on the many hosts that have
    Slurm's commands and no libdrmaa.
    """

    def __init__(self, session_factory_class: Any) -> None:
        self._session_factory_class = session_factory_class
        self._session: Any = None

    def get(self) -> LazyDrmaaSession:
        """Return the session, unopened: what stock asks of its session factory."""
        return self

    def run_job(self, **attributes: str) -> str:
        """Submit a job, see ``pulsar.managers.util.drmaa.DrmaaSession``."""
        return str(self._opened().run_job(**attributes))

    def kill(self, external_id: str) -> None:
        """Terminate a job, see ``pulsar.managers.util.drmaa.DrmaaSession``."""
        self._opened().kill(external_id)

    def close(self) -> None:
        """Close the session if it was ever opened."""
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def _opened(self) -> Any:
        if self._session is None:
            self._session = self._session_factory_class().get()
        return self._session


class SlurmQueueManager(RecordingManager, DrmaaQueueManager):  # type: ignore[misc]
    """Slurm manager that records why a job ended (see the module's text).

    Options of its own, all optional (``docs/queued_slurm.md``):

    * ``submit``: ``auto`` (sbatch where it is on PATH, else DRMAA), ``sbatch``, ``drmaa``
    * ``cluster``: for ``-M``; default: the cluster of slurm.conf
    * ``status_poll_interval``: seconds between two looks, 15; not below stock's
      ``min_polling_interval``
    * ``accounting``: ``auto``, ``sacct``, ``none``
    * ``missing_grace``, ``hold_grace``: seconds of successful answers, 60 and 3600
    * ``limit_with_zero_exit``: ``failed`` or ``complete``
    * ``command_timeout``: seconds, 20
    * ``observe_only``: classify, record and log, send nothing

    Raises:
        ConfigurationError: an option has a value that cannot work.
    """

    manager_type = "queued_slurm"
    drm = "slurm"
    drm_label = "Slurm"

    def __init__(self, name: str, app: Any, **kwds: Any) -> None:
        options = Options(name, kwds)
        self._submit_by = options.choice("submit", SUBMIT_CHOICES, "auto")
        self._cluster = options.word("cluster")
        self._accounting = options.choice("accounting", ACCOUNTING_CHOICES, "auto")
        self._command_timeout_s = options.seconds("command_timeout", 20.0)
        self._interval_s = max(
            options.seconds("status_poll_interval", 15.0),
            options.seconds("min_polling_interval", DEFAULT_MIN_POLLING_INTERVAL, zero=True),
        )
        self.graces = Graces(
            missing_s=options.seconds("missing_grace", 60.0, zero=True),
            hold_s=options.seconds("hold_grace", 3600.0, zero=True),
            limit_with_zero_exit=options.choice("limit_with_zero_exit", ZERO_EXIT_CHOICES, FAILED),
        )
        self.observe_only = options.flag("observe_only")
        options.warn_of_misspellings(OWN_OPTIONS, _STOCK_OPTIONS)
        factory_class = kwds.pop("drmaa_session_factory_class", DrmaaSessionFactory)
        super().__init__(
            name,
            app,
            drmaa_session_factory_class=lambda: LazyDrmaaSession(factory_class),
            **kwds,
        )
        split_native_specification(name, self.native_specification)
        self._log_start()
        self.begin(app)

    def _log_start(self) -> None:
        log.info(
            "manager %s: queued_slurm submits by %s, looks every %g s, accounting %s%s",
            self.name, self._submit_by, self._interval_s, self._accounting,
            ", observes only" if self.observe_only else "",
        )
        # Not fatal: /opt may be mounted later than Pulsar starts, and a crash loop takes down
        # the other managers of this server too.
        if shutil.which("squeue") is None:
            log.error(
                "manager %s: squeue is not on PATH, so no job's state can be seen; put Slurm's "
                "commands on the PATH of the Pulsar service",
                self.name,
            )

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
        """See ``DrmaaQueueManager.launch``; a refusal is recorded before it is raised."""
        self._check_execution_with_tool_file(job_id, command_line)
        self.submit_once(
            job_id,
            lambda: self._submit(
                self._build_template_attributes(
                    job_id,
                    command_line,
                    dependencies_description=dependencies_description,
                    env=list(env),
                    submit_params=dict(submit_params),
                    setup_params=setup_params,
                )
            ),
        )

    def _submit(self, attributes: Mapping[str, str]) -> str:
        if self._submits_by_sbatch():
            return self._submit_by_sbatch(attributes)
        try:
            return str(self.drmaa_session.run_job(**attributes))
        except Exception as error:  # whatever the DRMAA library raises is its word of refusal
            no_sbatch = "sbatch is not on PATH; " if self._submit_by == "auto" else ""
            raise SubmissionRefusedError(f"{no_sbatch}DRMAA: {error}") from error

    def _submits_by_sbatch(self) -> bool:
        if self._submit_by == "auto":
            return shutil.which("sbatch") is not None
        return self._submit_by == "sbatch"

    def _submit_by_sbatch(self, attributes: Mapping[str, str]) -> str:
        native_specification = attributes.get("nativeSpecification")
        command = sbatch_command(
            attributes["remoteCommand"],
            job_name=attributes["jobName"],
            # DRMAA's paths are host:path.
            stdout=attributes["outputPath"].partition(":")[2],
            stderr=attributes["errorPath"].partition(":")[2],
            workdir=attributes["workingDirectory"],
            native_specification=split_native_specification(self.name, native_specification),
            cluster=self._cluster,
        )
        timeout_s = max(self._command_timeout_s, SUBMIT_TIMEOUT_S)
        commands = LocalCommands(timeout_s)
        return SlurmSource(commands, self._cluster, self._accounting).submit(command)

    def submits_under_our_name(self, job_id: str) -> bool:
        """See ``RecordingManager``: a native specification may name the job itself."""
        text = self.native_specification or submitted_native_specification(
            self.job_directory(job_id)
        )
        options = split_native_specification(self.name, text)
        # sbatch takes any beginning of a long option that only one has.
        return not any(option.startswith(("--j", "-J")) for option in options)

    # ---- looking and killing --------------------------------------------------------------

    def observer(self, external_id: Optional[str]) -> Observer:
        """See ``RecordingManager``: an id with a cluster of its own is looked for there."""
        cluster = self._cluster_of(external_id)
        return shared_observer(
            (self.drm, cluster, self._accounting),
            self._interval_s,
            lambda: self._source(cluster),
        )

    def _cluster_of(self, external_id: Optional[str]) -> Optional[str]:
        own = parse_external_id(external_id).suffix if external_id else None
        return own or self._cluster

    def _source(self, cluster: Optional[str]) -> SlurmSource:
        return SlurmSource(LocalCommands(self._command_timeout_s), cluster, self._accounting)

    def classify_stderr(self, text: str, external_id: Optional[str]) -> Optional[StderrFinding]:
        """See ``RecordingManager``."""
        return classify_stderr(text, external_id)

    def _kill_external(self, external_id: str) -> None:
        try:
            if self._submits_by_sbatch():
                self._source(self._cluster_of(external_id)).cancel([external_id])
            else:
                super()._kill_external(external_id)
        except Exception as error:  # a DrmError, or whatever the DRMAA library raises
            log.info("(%s) could not be cancelled now, trying again: %s", external_id, error)
            self.observer(external_id).cancel_later(external_id)
