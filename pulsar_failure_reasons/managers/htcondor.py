"""``queued_htcondor_classified``: jobs through HTCondor's bindings, with the reason of their end.

The same external ids and the same event log in the job directory as stock ``queued_condor``, so
that an operator can go there and back with jobs in flight.
"""

from __future__ import annotations

import logging
import math
import os
import sys
from typing import Any, Dict, FrozenSet, Mapping, Optional, Tuple

from pulsar.managers.stateful import DEFAULT_MIN_POLLING_INTERVAL
from pulsar.managers.util.condor import submission_params

from ..drm.base import StderrFinding
from ..drm.external_ids import base_id
from ..drm.htcondor import HoldPolicy
from ..drm.htcondor.submit import Limits, canonical_commands, submit_commands
from ..drm.units import parse_duration, parse_memory
from ..errors import ConfigurationError, DrmError, OutputParseError
from ..execute import DEFAULT_TIMEOUT_S
from ..judgement import COMPLETE, FAILED
from ..observer import Observer, shared_observer
from ..reason import Cause
from .htcondor_log import JobLog
from .htcondor_source import FollowedJob, HTCondorSource, load_bindings
from .options import Options
from .recording import Graces, JobWatch
from .recording_manager import RecordingManager

log = logging.getLogger("pulsar.failure_reasons.htcondor")

#: The name that stock queued_condor gives the log.
LOG_NAME = "job_condor.log"

#: Causes that an operator may name in ``fail_at_once`` and ``wait_for_release``.
HOLD_CAUSES = tuple(
    cause.value
    for cause in (
        Cause.WALLTIME, Cause.MEMORY, Cause.CPU_TIME, Cause.DISK, Cause.LAUNCH_ERROR,
        Cause.STAGE_ERROR, Cause.HELD, Cause.UNKNOWN,
    )
)
DEFAULT_FAIL_AT_ONCE = HOLD_CAUSES[:6]

OWN_OPTIONS = (
    "schedd",
    "pool",
    "status_poll_interval",
    "command_timeout",
    "missing_grace",
    "hold_grace",
    "user_hold_grace",
    "hold_releases_max",
    "fail_at_once",
    "wait_for_release",
    "sigkill_means_memory",
    "limit_with_zero_exit",
    "request_walltime",
    "request_memory",
    "request_disk",
    "observe_only",
)
_STOCK_OPTIONS = ("min_polling_interval",)
_LIMITS = ("request_walltime", "request_memory", "request_disk")


class HTCondorQueueManager(RecordingManager):
    """HTCondor manager that records why a job ended (see the module's text).

    Options of its own, all optional (``docs/queued_htcondor_classified.md``); ``submit_*``
    options become submit commands as in stock ``queued_condor``.

    Raises:
        ConfigurationError: an option has a value that cannot work, or the bindings are missing.
    """

    manager_type = "queued_htcondor_classified"
    drm = "htcondor"
    drm_label = "HTCondor"

    def __init__(self, name: str, app: Any, **kwds: Any) -> None:
        options = Options(name, kwds)
        self._bindings = load_bindings(name)
        self._schedd_name = options.address("schedd")
        self._pool = options.address("pool")
        self._timeout_s = options.seconds("command_timeout", DEFAULT_TIMEOUT_S)
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
        self._user_hold_grace_s = options.seconds_or_none("user_hold_grace")
        self._releases_max = options.whole("hold_releases_max", 3)
        self._fail_at_once = _causes(options.choices(
            "fail_at_once", HOLD_CAUSES, DEFAULT_FAIL_AT_ONCE
        ))
        self._wait_for_release = _causes(options.choices("wait_for_release", HOLD_CAUSES, ()))
        self._sigkill_means_memory = options.flag("sigkill_means_memory", True)
        self.observe_only = options.flag("observe_only")
        options.warn_of_misspellings(OWN_OPTIONS, _STOCK_OPTIONS)
        super().__init__(name, app, **kwds)
        self._submission_params = self._canonical(submission_params(**kwds))
        self._limits: Dict[str, Any] = {key: kwds[key] for key in _LIMITS if key in kwds}
        self._read_limits({**self._limits, **_walltime_of(self._submission_params)})
        log.info(
            "manager %s: %s looks every %g s at the schedd %s%s",
            name, self.manager_type, self._interval_s, self._schedd_name or "of this host",
            ", observes only" if self.observe_only else "",
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
            # An earlier attempt's events are not this job's.
            self.job_directory(job_id).remove_file(LOG_NAME)
            source = self._source(self.observer(None))
            return source.submit(self._commands(job_id, script, submit_params))

        self.submit_once(job_id, submit)

    def _commands(
        self, job_id: str, script: str, submit_params: Mapping[str, str]
    ) -> Dict[str, str]:
        # As in stock, the manager's commands win over those of the submission.
        given = {**self._canonical(submit_params), **self._submission_params}
        given, limits = self._split_limits(given)
        return submit_commands(
            executable=script,
            stdout=self._job_stdout_path(job_id),
            stderr=self._job_stderr_path(job_id),
            log=self._job_file(job_id, LOG_NAME),
            initialdir=self.job_directory(job_id).working_directory(),
            job_name=self._job_name(job_id),
            job_directory=self.expected_job_name(job_id),
            given=given,
            limits=self._read_limits(limits),
        )

    def _canonical(self, given: Mapping[str, Any]) -> Dict[str, str]:
        try:
            return canonical_commands(given)
        except ConfigurationError as error:
            raise ConfigurationError(f"manager {self.name}: {error}") from error

    def _split_limits(
        self, given: Mapping[str, str]
    ) -> Tuple[Dict[str, str], Dict[str, Any]]:
        """Return submit commands, and the limits that the job's own policy is to enforce.

        The options are what a job gets that asks for nothing else. Without them
        ``request_memory`` and ``request_disk`` of a submission are requests as always; with
        them they are limits too, unless they are expressions.
        """
        commands, limits = dict(given), dict(self._limits)
        for name in _LIMITS:
            if name not in commands:
                continue
            if name == "request_walltime" or (name in limits and _is_size(commands[name])):
                limits[name] = commands.pop(name)
            else:
                limits.pop(name, None)
        return commands, limits

    def _read_limits(self, given: Mapping[str, Any]) -> Limits:
        """Return limits as HTCondor's own requests are written: memory in MB, disk in KB."""
        try:
            return Limits(
                walltime_s=_seconds(given.get("request_walltime")),
                memory_bytes=_bytes(given.get("request_memory"), "m"),
                disk_bytes=_bytes(given.get("request_disk"), "k"),
            )
        except OutputParseError as error:
            raise ConfigurationError(
                f"manager {self.name}: {error}; request_walltime is seconds or HH:MM:SS, "
                "request_memory like 4096 (MB) or 4G, request_disk like 1048576 (KB) or 1G, "
                "all above 0"
            ) from error

    def expected_job_name(self, job_id: str) -> str:
        """See ``RecordingManager``: what an attribute of our own holds, the job directory."""
        return str(os.path.realpath(self.job_directory(job_id).path))

    # ---- looking and killing --------------------------------------------------------------

    def observer(self, external_id: Optional[str]) -> Observer:
        """See ``RecordingManager``: one for each schedd."""
        return shared_observer(
            (self.drm, self._schedd_name, self._pool),
            self._interval_s,
            lambda: HTCondorSource(self._schedd_name, self._pool, self._timeout_s),
        )

    def _source(self, observer: Observer) -> HTCondorSource:
        source = observer.source
        assert isinstance(source, HTCondorSource)
        return source

    def stored_form(self, external_id: str) -> str:
        """See ``RecordingManager``: stock stores the cluster alone."""
        return base_id(external_id)

    def watch_begins(self, watch: JobWatch) -> None:
        """See ``RecordingManager``: the job's log is followed."""
        if watch.external_id is None:
            return
        observer = self.observer(watch.external_id)
        job = FollowedJob(
            JobLog(
                self._job_file(watch.job_id, LOG_NAME),
                self._bindings,
                watch.external_id,
                watch.job_name,
            ),
            lambda: self._hold_policy(observer.interval_s),
            self._sigkill_means_memory,
        )
        self._source(observer).follow(watch.external_id, job)

    def watch_ends(self, watch: JobWatch) -> None:
        """See ``RecordingManager``."""
        if watch.external_id is not None:
            log_path = self._job_file(watch.job_id, LOG_NAME)
            self._source(self.observer(watch.external_id)).unfollow(watch.external_id, log_path)

    def _hold_policy(self, interval_s: float) -> HoldPolicy:
        grace_s = self._user_hold_grace_s
        return HoldPolicy(
            fail_at_once=self._fail_at_once,
            wait_for_release=self._wait_for_release,
            # The judgement counts hold_grace itself, as for every DRM.
            hold_grace_answers=sys.maxsize,
            hold_releases_max=self._releases_max,
            user_hold_grace_answers=(
                None if grace_s is None else 1 + math.ceil(grace_s / interval_s)
            ),
        )

    def classify_stderr(self, text: str, external_id: Optional[str]) -> Optional[StderrFinding]:
        """See ``RecordingManager``: HTCondor writes nothing into a job's stderr."""
        return None

    def _kill_external(self, external_id: str) -> None:
        observer = self.observer(external_id)
        try:
            observer.source.cancel([external_id])
        except DrmError as error:
            log.warning("(%s) could not be removed now, trying again: %s", external_id, error)
            observer.cancel_later(external_id)


def _causes(names: FrozenSet[str]) -> FrozenSet[Cause]:
    return frozenset(Cause(name) for name in names)


def _walltime_of(commands: Mapping[str, str]) -> Dict[str, str]:
    return {name: value for name, value in commands.items() if name == "request_walltime"}


def _is_size(text: str) -> bool:
    try:
        return parse_memory(text) is not None
    except OutputParseError:
        return False


def _seconds(value: Any) -> Optional[int]:
    return None if value is None else _above_0(parse_duration(str(value)), value)


def _bytes(value: Any, bare_unit: str) -> Optional[int]:
    return None if value is None else _above_0(parse_memory(str(value), bare_unit=bare_unit), value)


def _above_0(amount: Optional[int], value: Any) -> Optional[int]:
    if amount == 0:
        raise OutputParseError(f"{value!r:.80} is no limit that a job could keep")
    return amount
