"""How the observer looks at a DRM by its commands, over a shell plugin.

One source for each DRM that we know (Slurm's is the one of ``queued_slurm``; job plugins that we do
not know have ``cli_plugin_source``). A pass is one status command, whatever the number of jobs, and
one command more for those that are no longer known; long lists of ids make several commands, which
go over the link together as far as a command line holds them.
"""

from __future__ import annotations

import logging
import re
from dataclasses import replace
from typing import Callable, Dict, List, Optional, Sequence, Set

from ..drm import gridengine, lsf, pbs
from ..drm.argv import chunk_ids
from ..drm.base import JobView, Phase
from ..drm.external_ids import base_id
from ..errors import AccountingDisabledError, DrmError, DrmUnreachableError, OutputParseError
from ..execute import CommandResult
from .cli_shell import Link
from .commands import CleanEnvironment

log = logging.getLogger("pulsar.failure_reasons.cli")

_OPTION_NOT_KNOWN = re.compile(r"illegal option|invalid option|unrecogni[sz]ed|usage:", re.I)
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
        self._told_that_answers_are_broken = False

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

    def tell_of_broken_answers(self, error: OutputParseError, instead: str) -> None:
        """Log once that an answer cannot be read in the form asked for, and what is done."""
        if not self._told_that_answers_are_broken:
            self._told_that_answers_are_broken = True
            log.info("%s; as long as that is so %s", error, instead)


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
        views = self._query_ids(external_ids) if external_ids else []
        known = {view.external_id for view in views}
        if not job_names:
            return views
        named = [view for view in self._query_user() if view.job_name in job_names]
        return views + [view for view in named if view.external_id not in known]

    def _query_user(self) -> List[JobView]:
        """Return all jobs of ours; none where LSF is too old to tell their names safely."""
        if self._speaks_json is False:
            return []
        return self._in_json([lsf.bjobs_user_json_command(self._asked.link.user())]) or []

    def _query_ids(self, external_ids: Sequence[str]) -> List[JobView]:
        chunks = chunk_ids(external_ids)
        if self._speaks_json is not False:
            try:
                views = self._in_json([lsf.bjobs_json_command(ids) for ids in chunks])
            except OutputParseError as error:
                # Rows have no field of a user's, so they can be read whatever breaks the JSON.
                self._asked.tell_of_broken_answers(error, "its rows are read")
                views = None
            if views is not None:
                return views
        results = self._asked.all([lsf.bjobs_command(ids) for ids in chunks])
        return [v for r in results for v in lsf.parse_bjobs(r.stdout, stderr=r.stderr)]

    def _in_json(self, commands: Sequence[Sequence[str]]) -> Optional[List[JobView]]:
        """Return the answer in JSON, None where this LSF turns out to be too old for it."""
        try:
            views = self._query_json(commands)
            self._speaks_json = True
            return views
        except DrmError as error:
            if self._speaks_json or not _OPTION_NOT_KNOWN.search(str(error)):
                raise
            log.info("LSF is too old for bjobs -json; its rows are read")
            self._speaks_json = False
            return None

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
            user = self._asked.link.user()
            found = self._asked.all([pbs.qselect_command(name, user) for name in job_names])
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
            except OutputParseError as error:
                if flavour is pbs.Flavour.UNKNOWN:
                    raise
                # Up to 2022 a comma or quote in the environment of one job breaks OpenPBS's
                # JSON, and up to 18.1 any two jobs do: else no job would ever end.
                self._asked.tell_of_broken_answers(error, "its text is read")
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
    """Grid Engine by qstat, and qacct once qmaster has forgotten (see ``drm.base.IdSource``).

    Args:
        link: Where the commands run.
        accounting: ``auto``, or ``none`` for qstat alone.
    """

    label = "Grid Engine"

    def __init__(self, link: Link, accounting: str) -> None:
        self._asked = Asked(link, gridengine.clean_environment, gridengine.error_from_command)
        self._accounting = accounting
        self._error_reasons: Dict[str, str] = {}

    def query_these(
        self, external_ids: Sequence[str], job_names: Sequence[str]
    ) -> Sequence[JobView]:
        """See ``drm.base.IdSource``; one qstat command, whatever is asked for.

        One more for jobs in error, and one while an id is lost: where those jobs work.
        """
        argv = gridengine.qstat_command(self._asked.link.user())
        views = gridengine.parse_qstat(self._asked.one(argv).stdout)
        stuck = {base_id(view.external_id) for view in views if view.phase is Phase.STUCK}
        unknown = sorted(stuck - set(self._error_reasons))
        self._error_reasons = {i: why for i, why in self._error_reasons.items() if i in stuck}
        if unknown:
            details = self._asked.one(gridengine.qstat_details_command(unknown))
            self._error_reasons.update(gridengine.parse_error_reasons(details.stdout))
        views = self._with_workdirs(views, set(job_names))
        return gridengine.with_error_reasons(views, self._error_reasons)

    def _with_workdirs(self, views: List[JobView], job_names: Set[str]) -> List[JobView]:
        named = sorted({base_id(v.external_id) for v in views if v.job_name in job_names})
        if not named:
            return views
        details = self._asked.one(gridengine.qstat_details_command(named))
        workdirs = gridengine.parse_workdirs(details.stdout)
        return [replace(v, workdir=workdirs.get(base_id(v.external_id))) for v in views]

    def query_ended(self, external_ids: Sequence[str]) -> Optional[List[JobView]]:
        """See ``drm.base.IdSource``; one qacct command, a few more for what it did not tell."""
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
        return views

    def cancel(self, external_ids: Sequence[str]) -> None:
        """See ``drm.base.IdSource``; one qdel command."""
        self._asked.all([gridengine.qdel_command(ids) for ids in chunk_ids(external_ids)])
