"""How the observer looks at a DRM by a job plugin that we do not know, over a shell plugin."""

from __future__ import annotations

import logging
import re
from dataclasses import replace
from typing import Any, Dict, List, Optional, Sequence

from ..drm.base import End, Ending, JobView, Phase
from ..errors import DrmUnreachableError, OutputParseError
from ..execute import CommandResult
from ..reason import Cause, Confidence, Evidence, clean_text
from ..runner_state import MEMORY_LIMIT_REACHED, WALLTIME_REACHED
from .cli_shell import Link

log = logging.getLogger("pulsar.failure_reasons.cli")

_NO_SUCH_JOB = re.compile(
    r"unknown job|invalid job|no such job|not found|does not exist|do not exist|has finished"
    r"|cannot find|no matching|no job",
    re.I,
)


class PluginSource:
    """A job plugin that we do not know (see ``drm.base.IdSource``).

    Its status command is run for each job, all of them in one go over the link. What it says of
    an empty answer, or of a command that failed, counts for nothing: an end needs a word for it.

    Args:
        link: Where the commands run.
        plugin: The plugin (Pulsar's ``BaseJobExec``).
        label: What messages call it.
    """

    def __init__(self, link: Link, plugin: Any, label: str) -> None:
        self._link = link
        self._plugin = plugin
        self.label = label

    def query_these(
        self, external_ids: Sequence[str], job_names: Sequence[str]
    ) -> Sequence[JobView]:
        """See ``drm.base.IdSource``; jobs without an id cannot be found."""
        lines = [self._line("get_single_status", i) for i in external_ids]
        results = self._link.run_lines(lines) if lines else []
        silent = [result for result in results if _says_nothing(result)]
        if silent and len(silent) == len(results):
            said = clean_text(silent[0].stderr) or "no message"
            raise DrmUnreachableError(
                f"{self.label}: {lines[0]!r:.200} failed with exit code "
                f"{silent[0].returncode}: {said}"
            )
        views = [self._view(i, result) for i, result in zip(external_ids, results)]
        return self._with_reasons([view for view in views if view is not None])

    def _line(self, what: str, external_id: str) -> str:
        try:
            return str(getattr(self._plugin, what)(external_id))
        except Exception as error:  # somebody else's code
            raise OutputParseError(f"{self.label}: {what} raised {error!r}") from error

    def _view(self, external_id: str, result: CommandResult) -> Optional[JobView]:
        """Return what the plugin reads in an answer; None where that lacks the job.

        A non-zero exit with something on stdout is read: some status commands end so.
        """
        if _says_nothing(result):
            word = f"exit code {result.returncode}: {clean_text(result.stderr)[:200]}"
            return JobView(external_id, word, Phase.UNKNOWN, Confidence.CONTROLLER)
        if not result.stdout.strip():
            return None
        try:
            state = self._plugin.parse_single_status(result.stdout, external_id)
        except Exception as error:  # somebody else's code
            raise OutputParseError(
                f"{self.label}: parse_single_status raised {error!r} for {result.stdout[:200]!r}"
            ) from error
        word = str(getattr(state, "value", state))
        phase = _PLUGIN_PHASES.get(word, Phase.UNKNOWN)
        return JobView(
            external_id=external_id,
            job_state=word,
            phase=phase,
            confidence=Confidence.CONTROLLER,
            end=_PLUGIN_ENDS.get(word) if phase is Phase.ENDED else None,
            evidence=(Evidence(self.label, "status", clean_text(result.stdout)[:200]),),
        )

    def _with_reasons(self, views: List[JobView]) -> List[JobView]:
        """Return the views, those that ended badly with what ``parse_failure_reason`` says."""
        told: Dict[str, JobView] = {}
        lines: Dict[str, str] = {}
        for view in views:
            if view.end is not None and view.end.ending is Ending.BADLY:
                line = self._failure_line(view.external_id)
                if line:
                    lines[view.external_id] = line
        answers = self._link.run_lines(list(lines.values())) if lines else []
        for external_id, answer in zip(lines, answers):
            token = self._failure_reason(answer, external_id)
            cause = _CAUSES.get(token or "")
            if cause is not None:
                view = next(v for v in views if v.external_id == external_id)
                said = Evidence(self.label, "failure reason", str(token))
                told[external_id] = replace(
                    view, end=End(Ending.LIMIT, cause), evidence=(*view.evidence, said)
                )
        return [told.get(view.external_id, view) for view in views]

    def _failure_line(self, external_id: str) -> Optional[str]:
        try:
            line = self._plugin.get_failure_reason(external_id)
        except Exception as error:  # somebody else's code
            log.info("%s: get_failure_reason raised %r", self.label, error)
            return None
        return str(line) if line else None

    def _failure_reason(self, answer: CommandResult, external_id: str) -> Optional[str]:
        try:
            token = self._plugin.parse_failure_reason(answer.stdout, external_id)
        except Exception as error:  # somebody else's code
            log.info("%s: parse_failure_reason raised %r", self.label, error)
            return None
        word = getattr(token, "value", token)
        if word is not None and word not in _CAUSES:
            log.info("%s: parse_failure_reason said %r, which we do not know", self.label, word)
        return word if isinstance(word, str) else None

    def query_ended(self, external_ids: Sequence[str]) -> Optional[List[JobView]]:
        """See ``drm.base.IdSource``: a plugin knows no accounting."""
        return None

    def cancel(self, external_ids: Sequence[str]) -> None:
        """See ``drm.base.IdSource``; one command for each job, in one go.

        Their exit codes are not read: of a job that is gone already they tell an error.
        """
        lines = [self._line("delete", external_id) for external_id in external_ids]
        self._link.run_lines(lines)


def _says_nothing(result: CommandResult) -> bool:
    """Tell whether a status command failed without a word of whether the job is there."""
    if result.returncode == 0 or result.stdout.strip():
        return False
    return _NO_SUCH_JOB.search(result.stderr) is None


#: Pulsar's words and, where Galaxy can be imported, Galaxy's.
_PLUGIN_PHASES = {
    "queued": Phase.QUEUED,
    "running": Phase.RUNNING,
    "complete": Phase.ENDED,
    "ok": Phase.ENDED,
    "failed": Phase.ENDED,
    "error": Phase.ENDED,
}
_PLUGIN_ENDS = {
    "complete": End(Ending.WELL),
    "ok": End(Ending.WELL),
    "failed": End(Ending.BADLY),
    "error": End(Ending.BADLY),
}
_CAUSES = {
    WALLTIME_REACHED: Cause.WALLTIME,
    MEMORY_LIMIT_REACHED: Cause.MEMORY,
}
