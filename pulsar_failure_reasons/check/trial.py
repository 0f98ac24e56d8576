"""The trial job: a tiny job that exceeds its walltime, and the reason that Galaxy would be told.

Pulsar's own application runs in this process, with one manager and nothing of the site's but that
manager's options, on a temporary folder beside the staging folder (the nodes must see it). Its
payloads come from the functions that the REST and AMQP endpoints call. Whatever happens, the job
is taken out of the DRM and the folder is removed.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional

from ..drm.base import IdSource, Phase
from ..drm.external_ids import same_job
from ..errors import DrmError
from ..reason import Cause, clean_text
from ..runner_state import WALLTIME_REACHED
from ..switch import reasons_are_off
from .findings import Finding
from .site import MadeManager, captured_log

#: Slurm looks at limits about once a minute, and its shortest limit is a minute.
DEFAULT_DEADLINE_S = 600.0
_TERMINAL = ("complete", "failed", "cancelled", "lost")
#: Longer than any of the walltimes below, and not for ever, should everything fail.
_COMMAND_LINE = "sleep 900"
_POLL_S = 0.5
_PROGRESS_EVERY_S = 10.0
_GONE_TIMEOUT_S = 60.0

#: Called with a line for people.
Progress = Callable[[str], None]

#: The options of each DRM's submit command for its shortest useful walltime. The last of several
#: equal options wins in all of them.
WALLTIME_OPTIONS: Mapping[str, str] = {
    "slurm": "--time=00:01:00",
    "lsf": "-W 1",
    "pbs": "-l walltime=00:00:20",
    "gridengine": "-l h_rt=20",
}
_CONDOR_WALLTIME_S = 20


def trial_options(made: MadeManager) -> Optional[Dict[str, Any]]:
    """Return a manager's options with a short walltime; None where we know no option for it."""
    given = dict(made.configured.options)
    # A trial is no end to be counted.
    given["failure_ledger"] = "off"
    drm = made.manager.drm
    if drm == "htcondor":
        given = {key: value for key, value in given.items() if key != "submit_request_walltime"}
        return {**given, "request_walltime": _CONDOR_WALLTIME_S}
    if drm not in WALLTIME_OPTIONS:
        return None
    native = made.manager.native_specification or ""
    return {**given, "native_specification": f"{native} {WALLTIME_OPTIONS[drm]}".strip()}


@dataclass
class Trial:
    """One trial of one manager.

    Args:
        made: The manager.
        folder: Where to make the temporary folder.
        deadline_s: How long the job may take from its submission to its end.
        progress: Told of every change, and every ten seconds.
        stop: Set to end the trial early; a submission under way is waited for, since its job
            could not be found again.
    """

    made: MadeManager
    folder: str
    deadline_s: float = DEFAULT_DEADLINE_S
    progress: Progress = lambda line: None
    stop: threading.Event = field(default_factory=threading.Event)
    #: The job's id in the DRM once it is known; the manager forgets it with the job's end.
    external_id: Optional[str] = field(default=None, init=False)

    def run(self) -> Iterator[Finding]:
        """Yield what came of it; KeyboardInterrupt is a finding too."""
        options = trial_options(self.made)
        if options is None:
            yield Finding("PFR407", f"DRM {self.made.manager.drm_label}", self.made.name)
            return
        try:
            home = tempfile.mkdtemp(prefix=".pulsar-failure-reasons-check-", dir=self.folder)
        except OSError as error:
            yield self._finding(
                "PFR404", f"no temporary folder in {self.folder}: {error.strerror}",
                do="--folder FOLDER: one that this user can write and the nodes can see",
            )
            return
        with captured_log("pulsar"), captured_log("galaxy"):
            yield from self._in_folder(home, options)

    def _in_folder(self, home: str, options: Dict[str, Any]) -> Iterator[Finding]:
        found: List[Finding] = []
        try:
            # Nodes may run the job as another user (root is nobody on NFS).
            os.chmod(home, 0o755)
            found.append(self._with_app(home, options))
        except KeyboardInterrupt:
            found.append(self._finding("PFR406", "interrupted"))
        finally:
            left = _remove(home)
        if left:
            found.append(self._finding("PFR405", f"{home}: {left}"))
        yield from found

    def _with_app(self, home: str, options: Dict[str, Any]) -> Finding:
        from pulsar.core import PulsarApp

        name = self.made.name
        app = PulsarApp(
            config_dir=home,
            staging_directory=os.path.join(home, "staging"),
            persistence_directory=os.path.join(home, "persisted"),
            tool_dependency_dir="none",
            managers={name: {
                **options, "type": self.made.configured.type, "assign_ids": "none",
                "staging_directory": os.path.join(home, "staging"),
            }},
        )
        try:
            return self._with_manager(app.managers[name])
        finally:
            app.shutdown(timeout=15)

    # ---- one job ---------------------------------------------------------------------------

    def _with_manager(self, proxy: Any) -> Finding:
        from pulsar import manager_endpoint_util

        # Numbers alone, as Galaxy's ids; not the same one twice, for the job's name in the DRM.
        job_id = str(int(time.time()))
        ended = False
        try:
            manager_endpoint_util.setup_job(proxy, job_id, "pulsar-failure-reasons-check", "1")
            self.progress(f"submitting a job that sleeps, to {self.made.manager.drm_label}")
            began = time.monotonic()
            try:
                manager_endpoint_util.submit_job(
                    proxy, {"job_id": job_id, "command_line": _COMMAND_LINE}
                )
            except Exception as error:  # stock raises what the submission raised
                ended = not self._external_id(proxy, job_id)
                return self._finding("PFR404", clean_text(str(error)))
            payload = self._wait(proxy, job_id, began)
            ended = payload["status"] in _TERMINAL
            return self._judge(proxy, job_id, payload, time.monotonic() - began)
        finally:
            if not ended:
                self._take_out(proxy, job_id)

    def _wait(self, proxy: Any, job_id: str, began: float) -> Dict[str, Any]:
        """Return the first terminal payload, or the last one before the deadline."""
        from pulsar import manager_endpoint_util

        told, status = began, ""
        while True:
            payload: Dict[str, Any] = manager_endpoint_util.status_dict(proxy, job_id)
            now = time.monotonic()
            if payload["status"] != status or now - told >= _PROGRESS_EVERY_S:
                told, status = now, payload["status"]
                external_id = self._external_id(proxy, job_id) or "no id yet"
                self.progress(f"{now - began:.0f} s: job {external_id} is {status}")
            if status in _TERMINAL or now - began >= self.deadline_s:
                return payload
            if self.stop.wait(_POLL_S):
                raise KeyboardInterrupt

    def _judge(
        self, proxy: Any, job_id: str, payload: Dict[str, Any], seconds: float
    ) -> Finding:
        label = self.made.manager.drm_label
        job = f"job {self._external_id(proxy, job_id)} of {label}"
        status, reason = payload["status"], payload.get("failure_reason") or {}
        if status not in _TERMINAL:
            return self._finding("PFR403", f"{job} is {status} after {seconds:.0f} s")
        numbers = {"seconds": round(seconds, 1)}
        if payload.get("runner_state") == WALLTIME_REACHED:
            return self._finding(
                "PFR401", f"{job} ended after {seconds:.0f} s; Galaxy would be told runner_state "
                f"walltime_reached: {payload['runner_state_message']!r}", numbers=numbers,
            )
        if reason.get("cause") == Cause.LAUNCH_ERROR.value and not self._external_id(proxy, job_id):
            return self._finding("PFR404", str(payload.get("runner_state_message")))
        if reasons_are_off():
            return self._finding("PFR408", f"{job} became {status}; reasons are switched off")
        stored = proxy._proxied_manager.runner_state(job_id) or {}
        if "runner_state" not in payload and stored.get("cause") == Cause.WALLTIME.value:
            return self._finding("PFR408", f"{job}: {stored.get('message')}", numbers=numbers)
        why = payload.get("runner_state_message") or "no reason"
        return self._finding(
            "PFR402", f"{job} became {status} after {seconds:.0f} s, with: {why}", numbers=numbers
        )

    def _external_id(self, proxy: Any, job_id: str) -> Optional[str]:
        self.external_id = self.external_id or proxy._proxied_manager._external_id(job_id)
        return self.external_id

    def _take_out(self, proxy: Any, job_id: str) -> None:
        """Cancel the job, and wait until the DRM has no more to do with its folder."""
        self.progress("cancelling the job")
        external_id = self._external_id(proxy, job_id)
        proxy.kill(job_id)
        if external_id is None:
            return
        source = proxy._proxied_manager.observer(external_id).source
        until = time.monotonic() + _GONE_TIMEOUT_S
        while time.monotonic() < until and _is_alive(source, external_id):
            time.sleep(_POLL_S)

    def _finding(self, code: str, what: str, **more: Any) -> Finding:
        return Finding(code, what, self.made.name, **more)


def _is_alive(source: Any, external_id: str) -> bool:
    """Tell whether the DRM still has the job; True where it gives no answer."""
    try:
        if isinstance(source, IdSource):
            views = source.query_these([external_id], [])
        else:
            views = source.query_jobs()
    except DrmError:
        return True
    return any(
        same_job(external_id, view.external_id) and view.phase is not Phase.ENDED for view in views
    )


def _remove(home: str) -> str:
    """Remove the temporary folder; return why something is left of it, "" where nothing is."""
    # A node may still write into it: what came meanwhile is removed in the next round.
    until = time.monotonic() + 10.0
    while True:
        shutil.rmtree(home, ignore_errors=True)
        if not os.path.exists(home):
            return ""
        if time.monotonic() > until:
            return "it could not be removed"
        time.sleep(_POLL_S)
