"""How the observer looks at a DRM by its commands, over a shell plugin.

One source for each DRM that we know (Slurm's is the one of ``queued_slurm``), and one for job
plugins that we do not know. A pass is one status command, whatever the number of jobs, and one
command more for those that are no longer known; long lists of ids make several commands, which
go over the link together as far as a command line holds them.
"""

from __future__ import annotations

import logging
import re
from dataclasses import replace
from typing import Any, Callable, Dict, List, Optional, Sequence, Set

from ..drm import gridengine, lsf, pbs
from ..drm.argv import chunk_ids
from ..drm.base import End, Ending, JobView, Phase
from ..drm.external_ids import base_id
from ..errors import AccountingDisabledError, DrmError, DrmUnreachableError, OutputParseError
from ..execute import CommandResult
from ..reason import Cause, Confidence, Evidence, clean_text
from ..runner_state import MEMORY_LIMIT_REACHED, WALLTIME_REACHED
from .cli_shell import Link
from .commands import CleanEnvironment

log = logging.getLogger("pulsar.failure_reasons.cli")

_OPTION_NOT_KNOWN = re.compile(r"illegal option|invalid option|unrecogni[sz]ed|usage:", re.I)
_NO_SUCH_JOB = re.compile(
    r"unknown job|invalid job|no such job|not found|does not exist|do not exist|has finished"
    r"|cannot find|no matching|no job",
    re.I,
)
#: Ids that qacct is asked for one by one in a pass: each time it reads all of its file.
_SINGLE_QACCT = 10

ErrorFromCommand = Callable[[Sequence[str], int, str], Optional[DrmError]]


class Asked:
    """Commands of one DRM: run, and their failure told from an answer."""

    def __init__(
        self, link: Link, clean: CleanEnvironment, error_from_command: ErrorFromCommand
    ) -> None:
        self.link = link
        self._clean = clean
        self._error_from_command = error_from_command

    def one(self, argv: Sequence[str]) -> CommandResult:
        """Run a command."""
        return self.all([argv])[0]

    def all(self, commands: Sequence[Sequence[str]]) -> List[CommandResult]:
        """Run commands, together; the first failure is raised."""
        results = self.unchecked(commands)
        for argv, result in zip(commands, results):
            error = self.error(argv, result)
            if error is not None:
                raise error
        return results

    def unchecked(self, commands: Sequence[Sequence[str]]) -> List[CommandResult]:
        """Run commands, together, and return what they left."""
        return self.link.run_all(commands, self._clean)

    def error(self, argv: Sequence[str], result: CommandResult) -> Optional[DrmError]:
        """Return what a command's end stands for where that is no answer."""
        return self._error_from_command(argv, result.returncode, result.stderr)


class LsfSource:
    """LSF by bjobs, and by bhist what bjobs has forgotten (see ``drm.base.IdSource``).

    Args:
        link: Where the commands run.
        accounting: ``auto``, or ``none`` for bjobs alone.
    """

    label = "LSF"

    def __init__(self, link: Link, accounting: str) -> None:
        self._asked = Asked(link, lsf.clean_environment, lsf.error_from_command)
        self._accounting = accounting
        self._speaks_json: Optional[bool] = None

    def query_these(
        self, external_ids: Sequence[str], job_names: Sequence[str]
    ) -> Sequence[JobView]:
        """See ``drm.base.IdSource``; one bjobs command, one more while an id is lost."""
        views: List[JobView] = []
        if external_ids:
            views.extend(self._query_ids(external_ids))
        if job_names and self._speaks_json is not False:
            argv = lsf.bjobs_user_json_command(self._asked.link.user())
            known = {view.external_id for view in views}
            for view in self._query_json([argv]):
                if view.job_name in job_names and view.external_id not in known:
                    views.append(view)
        return views

    def _query_ids(self, external_ids: Sequence[str]) -> List[JobView]:
        chunks = chunk_ids(external_ids)
        if self._speaks_json is not False:
            try:
                views = self._query_json([lsf.bjobs_json_command(ids) for ids in chunks])
                self._speaks_json = True
                return views
            except DrmError as error:
                if self._speaks_json or not _OPTION_NOT_KNOWN.search(str(error)):
                    raise
                log.info("LSF is too old for bjobs -json; its rows are read")
                self._speaks_json = False
        results = self._asked.all([lsf.bjobs_command(ids) for ids in chunks])
        return [v for r in results for v in lsf.parse_bjobs(r.stdout, stderr=r.stderr)]

    def _query_json(self, commands: Sequence[Sequence[str]]) -> List[JobView]:
        """Run bjobs -json, which tells of unknown jobs in the JSON, and ends with 255."""
        views: List[JobView] = []
        for argv, result in zip(commands, self._asked.unchecked(commands)):
            error = self._asked.error(argv, result)
            if error is not None and result.stderr.strip():
                raise error
            try:
                views.extend(lsf.parse_bjobs_json(result.stdout))
            except OutputParseError as unreadable:
                raise error or unreadable
        return views

    def query_ended(self, external_ids: Sequence[str]) -> Optional[List[JobView]]:
        """See ``drm.base.DrmSource``; one bhist command."""
        if self._accounting == "none":
            return None
        results = self._asked.all([lsf.bhist_command(ids) for ids in chunk_ids(external_ids)])
        return [view for r in results for view in lsf.parse_bhist(r.stdout, r.stderr)]

    def cancel(self, external_ids: Sequence[str]) -> None:
        """See ``drm.base.DrmSource``; one bkill command."""
        self._asked.all([lsf.bkill_command(ids) for ids in chunk_ids(external_ids)])


class PbsSource:
    """OpenPBS, PBS Pro or Torque by qstat (see ``drm.base.IdSource``).

    The flavour is asked for once; what the server said then holds for the process.

    Args:
        link: Where the commands run.
        accounting: ``auto``, or ``none``: OpenPBS's history is not asked for.
    """

    label = "PBS"

    def __init__(self, link: Link, accounting: str) -> None:
        self._asked = Asked(link, pbs.clean_environment, pbs.error_from_command)
        self._accounting = accounting
        self._flavour: Optional[pbs.Flavour] = None
        self._speaks_text_only = False
        self._told_that_history_is_off = False

    def flavour(self) -> pbs.Flavour:
        """Return whose qstat it is, asking if nobody has.

        Raises:
            DrmError: no answer.
        """
        if self._flavour is None:
            told = self._asked.link.run(pbs.version_command(), pbs.clean_environment)
            self._flavour = pbs.flavour_from_version(f"{told.stdout}\n{told.stderr}")
            log.info("PBS: %s tells the flavour %s", "qstat --version", self._flavour.value)
        return self._flavour

    def query_these(
        self, external_ids: Sequence[str], job_names: Sequence[str]
    ) -> Sequence[JobView]:
        """See ``drm.base.IdSource``; one qstat command, one qselect more while an id is lost."""
        ids = list(external_ids)
        if job_names:
            found = self._asked.all([pbs.qselect_command(name) for name in job_names])
            ids += [i for result in found for i in pbs.parse_qselect(result.stdout)]
        return self._query(ids, history=False) if ids else []

    def _query(self, external_ids: Sequence[str], history: bool) -> List[JobView]:
        flavour, chunks = self.flavour(), chunk_ids(external_ids)
        if not self._speaks_text_only:
            try:
                results = self._asked.all(
                    [pbs.qstat_command(ids, flavour, history) for ids in chunks]
                )
                return [view for result in results for view in self._parsed(result, flavour)]
            except DrmUnreachableError as error:
                if flavour is pbs.Flavour.UNKNOWN or not _OPTION_NOT_KNOWN.search(str(error)):
                    raise
                log.info("this PBS is too old for qstat in JSON or XML; its text is read")
                self._speaks_text_only = True
        results = self._asked.all([pbs.qstat_text_command(ids, history) for ids in chunks])
        return [v for r in results for v in pbs.parse_qstat_text(r.stdout, flavour, r.stderr)]

    def _parsed(self, result: CommandResult, flavour: pbs.Flavour) -> List[JobView]:
        if flavour is pbs.Flavour.OPENPBS:
            return pbs.parse_qstat_json(result.stdout, flavour)
        if flavour is pbs.Flavour.TORQUE:
            # Of jobs that it does not know alone it prints no XML, and says so on stderr.
            nothing = not result.stdout.strip() and result.returncode != 0
            return [] if nothing else pbs.parse_qstat_xml(result.stdout, flavour)
        return pbs.parse_qstat_text(result.stdout, flavour, result.stderr)

    def query_ended(self, external_ids: Sequence[str]) -> Optional[List[JobView]]:
        """See ``drm.base.DrmSource``; one qstat -x command, OpenPBS's alone."""
        if self._accounting == "none" or self.flavour() is not pbs.Flavour.OPENPBS:
            return None
        try:
            return self._query(external_ids, history=True)
        except AccountingDisabledError as error:
            if not self._told_that_history_is_off:
                self._told_that_history_is_off = True
                log.warning(
                    "%s: the end of a job that PBS has forgotten can only be inferred "
                    "(qmgr -c 'set server job_history_enable=True' keeps it; accounting: none "
                    "silences this)", error,
                )
            return None

    def cancel(self, external_ids: Sequence[str]) -> None:
        """See ``drm.base.DrmSource``; one qdel command."""
        self._asked.all([pbs.qdel_command(ids) for ids in chunk_ids(external_ids)])


class GridEngineSource:
    """Grid Engine by qstat, and qacct once qmaster has forgotten (see ``drm.base.DrmSource``).

    qacct tells no deletion, and keeps no record of a job that was deleted before it began; so
    the source remembers which jobs it has seen being deleted.

    Args:
        link: Where the commands run.
        accounting: ``auto``, or ``none`` for qstat alone.
    """

    label = "Grid Engine"

    def __init__(self, link: Link, accounting: str) -> None:
        self._asked = Asked(link, gridengine.clean_environment, gridengine.error_from_command)
        self._accounting = accounting
        self._error_reasons: Dict[str, str] = {}
        self._being_deleted: Set[str] = set()

    def query_jobs(self) -> Sequence[JobView]:
        """See ``drm.base.DrmSource``; one qstat command, one more for jobs in error."""
        argv = gridengine.qstat_command(self._asked.link.user())
        views = gridengine.parse_qstat(self._asked.one(argv).stdout)
        self._being_deleted |= {
            view.external_id for view in views if gridengine.is_being_deleted(view.job_state)
        }
        stuck = {base_id(view.external_id) for view in views if view.phase is Phase.STUCK}
        unknown = sorted(stuck - set(self._error_reasons))
        self._error_reasons = {i: why for i, why in self._error_reasons.items() if i in stuck}
        if unknown:
            details = self._asked.one(gridengine.qstat_details_command(unknown))
            self._error_reasons.update(gridengine.parse_error_reasons(details.stdout))
        return gridengine.with_error_reasons(views, self._error_reasons)

    def query_ended(self, external_ids: Sequence[str]) -> Optional[List[JobView]]:
        """See ``drm.base.DrmSource``; one qacct command, a few more for what it did not tell."""
        if self._accounting == "none":
            return None
        ids = list(external_ids)
        views: List[JobView] = []
        if len(ids) > 1:
            # One reading of the file for all of them.
            argv = gridengine.qacct_user_command(self._asked.link.user())
            result = self._asked.one(argv)
            if result.stdout.strip():
                views = gridengine.parse_qacct(result.stdout, result.stderr)
        told = {base_id(view.external_id) for view in views}
        rest = [i for i in ids if base_id(i) not in told][:_SINGLE_QACCT]
        if rest:
            for result in self._asked.all([gridengine.qacct_command(i) for i in rest]):
                views.extend(gridengine.parse_qacct(result.stdout, result.stderr))
        told |= {base_id(view.external_id) for view in views}
        gone = [i for i in ids if base_id(i) not in told and i in self._being_deleted]
        return [self._with_deletion(view) for view in views] + [_deleted(i) for i in gone]

    def _with_deletion(self, view: JobView) -> JobView:
        end = view.end
        if view.external_id not in self._being_deleted or end is None or end.ending in (
            Ending.LIMIT, Ending.CANCELLED,
        ):
            return view
        seen = Evidence("qstat", "state", "d: somebody had deleted it")
        cancelled = replace(end, ending=Ending.CANCELLED, cause=Cause.CANCELLED, detail="")
        return replace(view, end=cancelled, evidence=(*view.evidence, seen))

    def cancel(self, external_ids: Sequence[str]) -> None:
        """See ``drm.base.DrmSource``; one qdel command."""
        self._asked.all([gridengine.qdel_command(ids) for ids in chunk_ids(external_ids)])


def _deleted(external_id: str) -> JobView:
    """Return the view of a job that was last seen being deleted and that qacct does not know."""
    return JobView(
        external_id=external_id,
        job_state="deleted",
        phase=Phase.ENDED,
        confidence=Confidence.INFERRED,
        end=End(Ending.CANCELLED, Cause.CANCELLED),
        evidence=(Evidence("qstat", "state", "d: somebody had deleted it"),),
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
