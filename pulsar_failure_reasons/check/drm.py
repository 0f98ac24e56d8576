"""Checks of the DRM as each manager reaches it: commands, bindings, a dry run of its queries."""

from __future__ import annotations

import time
from importlib import metadata
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

from ..drm.base import IdSource
from ..errors import AccountingDisabledError, DrmError
from ..execute import run
from . import child
from .findings import Finding
from .site import MadeManager, Site, captured_log

#: A job id that may or may not be known: a query for it costs what any query costs.
SOME_ID = "1"
_HOUR_S = 3600.0
#: qacct, where no job of the cell has ended yet, or its file is not shared with this host.
_NO_FILE_YET = "accounting: No such file or directory"


class Needs(NamedTuple):
    """Commands of a DRM: without the first ones no job works, without the others some ends."""

    always: Tuple[str, ...]
    accounting: Tuple[str, ...] = ()


#: What the sources run (managers/slurm_source.py, managers/cli_source.py).
COMMANDS: Dict[str, Needs] = {
    "slurm": Needs(("squeue", "sbatch", "scancel"), ("sacct",)),
    "lsf": Needs(("bjobs", "bsub", "bkill"), ("bhist",)),
    "pbs": Needs(("qstat", "qsub", "qdel")),
    "gridengine": Needs(("qstat", "qsub", "qdel"), ("qacct",)),
}


def commands_of(manager: Any) -> Any:
    """Return where a manager's commands run; None for one that runs none (HTCondor)."""
    link = getattr(manager, "_link", None)
    if link is not None:
        return link
    return getattr(manager.observer(None).source, "_commands", None)


# ---- commands and libraries ---------------------------------------------------------------


def check_commands(site: Site) -> Iterator[Finding]:
    """See whether the commands or bindings of each manager's DRM are there."""
    for made in site.usable():
        if made.manager.drm == "htcondor":
            yield from _bindings(made)
        else:
            yield from _commands(made)
            yield from _drmaa(made)


def _commands(made: MadeManager) -> Iterator[Finding]:
    manager, commands = made.manager, commands_of(made.manager)
    needs = _needs(manager)
    if needs is None or commands is None:
        return
    try:
        lacking = [name for name in needs.always if not commands.has(name)]
        helpful = [name for name in needs.accounting if not commands.has(name)]
    except DrmError as error:
        yield Finding("PFR208", str(error), made.name)
        return
    where = getattr(commands, "where", "PATH")
    for name in lacking:
        yield Finding("PFR202", f"{name} is not there ({where})", made.name)
    for name in helpful:
        yield Finding("PFR203", f"{name} is not there ({where})", made.name)
    if not lacking:
        found = [name for name in (*needs.always, *needs.accounting) if name not in helpful]
        yield Finding("PFR201", f"{', '.join(found)} ({where})", made.name)


def _needs(manager: Any) -> Optional[Needs]:
    """Return what a manager needs; None for a job plugin that we do not know."""
    needs = COMMANDS.get(manager.drm) or _described_needs(manager)
    if needs is None:
        return None
    accounting = needs.accounting if getattr(manager, "_accounting", "auto") != "none" else ()
    always = needs.always
    if submits_by_drmaa(manager):
        always = tuple(name for name in always if name not in ("sbatch", "scancel"))
    return Needs(always, accounting)


def _described_needs(manager: Any) -> Optional[Needs]:
    drm = getattr(getattr(manager, "_plugins", None), "drm", None)
    described = getattr(getattr(drm, "module", None), "BY_COMMAND", None)
    if described is None:
        return None
    ids = [SOME_ID]
    always = (
        described.status(ids)[0], described.submit_command.split()[0], described.cancel(ids)[0]
    )
    ended = () if described.ended is None else (described.ended(ids)[0],)
    return Needs(tuple(dict.fromkeys(always)), ended)


def submits_by_drmaa(manager: Any) -> bool:
    """Tell whether a manager would submit through DRMAA on this host."""
    return manager.manager_type == "queued_slurm" and not manager._submits_by_sbatch()


def _drmaa(made: MadeManager) -> Iterator[Finding]:
    if not submits_by_drmaa(made.manager):
        return
    # In a process of its own: a library of another architecture may end it.
    code = "import drmaa; print(drmaa.Session.__module__)"
    try:
        done = run([child.python(), "-c", code], child.TIMEOUT_S, called="import drmaa")
    except DrmError as error:
        yield Finding("PFR207", str(error), made.name)
        return
    if done.returncode == 0:
        yield Finding("PFR206", "the package drmaa finds its library", made.name)
    else:
        last = done.stderr.strip().rpartition("\n")[2]
        yield Finding("PFR207", f"import drmaa: {last:.300}", made.name)


def _bindings(made: MadeManager) -> Iterator[Finding]:
    try:
        version = metadata.version("htcondor")
    except metadata.PackageNotFoundError:
        version = "of unknown version"
    yield Finding("PFR204", f"htcondor2 {version}", made.name)


# ---- a dry run ----------------------------------------------------------------------------


class Query(NamedTuple):
    """One kind of query: what people call it, and how it is made; it returns what it got."""

    label: str
    make: Callable[[], Any]


def check_queries(site: Site) -> Iterator[Finding]:
    """Make each query once, and tell its time and its cost; managers that share it, once."""
    for made, names in _lookers(site):
        if _is_foreign_plugin(made.manager):
            yield Finding("PFR225", f"job plugin {made.manager.drm_label}", made.name)
            continue
        with captured_log():
            findings = list(_dry_run(made, names))
        yield from findings


def _lookers(site: Site) -> List[Tuple[MadeManager, List[str]]]:
    """Return one manager for each observer, with the names of all that share it."""
    lookers: Dict[int, Tuple[MadeManager, List[str]]] = {}
    for made in site.usable():
        _, names = lookers.setdefault(id(made.manager.observer(None)), (made, []))
        names.append(made.name)
    return list(lookers.values())


def _is_foreign_plugin(manager: Any) -> bool:
    drm = getattr(getattr(manager, "_plugins", None), "drm", None)
    return drm is not None and drm.module is None


def _dry_run(made: MadeManager, names: List[str]) -> Iterator[Finding]:
    observer = made.manager.observer(None)
    about = ", ".join(names)
    seconds, error, views = _timed(lambda: _query_jobs(observer.source))
    if error is not None:
        yield Finding("PFR221", f"after {seconds:.1f} s: {error}", about)
        return
    yield from _cost(made, about, seconds, len(views), observer.interval_s)
    yield from _accounting(made, about, observer.source)


def _query_jobs(source: Any) -> Any:
    if isinstance(source, IdSource):
        return source.query_these([SOME_ID], [])
    return source.query_jobs()


def _timed(query: Callable[[], Any]) -> Tuple[float, Optional[DrmError], Any]:
    began = time.monotonic()
    try:
        answer, error = query(), None
    except DrmError as failed:
        answer, error = None, failed
    return time.monotonic() - began, error, answer


def _cost(
    made: MadeManager, about: str, seconds: float, jobs: int, interval_s: float
) -> Iterator[Finding]:
    hourly = _HOUR_S / interval_s
    yield Finding(
        "PFR220",
        f"{made.manager.drm_label} told of {jobs} jobs in {seconds:.3f} s; one query per "
        f"{interval_s:g} s while there is a job to look at, whatever the number of jobs: at most "
        f"{hourly:.0f} an hour, that is {hourly * seconds:.0f} s of answering",
        about,
        numbers={
            "seconds": round(seconds, 4), "jobs": jobs, "interval_s": interval_s,
            "queries_per_hour": round(hourly, 1),
        },
    )
    yield from _slow(made, about, seconds, "the query for jobs")


def _slow(made: MadeManager, about: str, seconds: float, what: str) -> Iterator[Finding]:
    timeout_s = timeout_of(made.manager)
    if seconds > timeout_s / 2:
        yield Finding(
            "PFR222", f"{what} took {seconds:.1f} s of the {timeout_s:g} s it may take", about
        )


def timeout_of(manager: Any) -> float:
    """Return how long one command or call of a manager may take, in seconds."""
    for owner in (manager, getattr(manager, "_link", None)):
        for name in ("_command_timeout_s", "_timeout_s"):
            if hasattr(owner, name):
                return float(getattr(owner, name))
    raise AttributeError(f"{type(manager).__name__} has no timeout")


def _accounting(made: MadeManager, about: str, source: Any) -> Iterator[Finding]:
    seconds, error, views = _timed(lambda: source.query_ended([SOME_ID]))
    if isinstance(error, AccountingDisabledError):
        yield Finding("PFR212", str(error), about)
    elif error is not None and _NO_FILE_YET in str(error):
        yield Finding("PFR226", str(error), about)
    elif error is not None:
        yield Finding("PFR223", f"after {seconds:.1f} s: {error}", about)
    elif views is None:
        yield Finding("PFR224", _why_not_asked(made.manager), about)
    else:
        yield Finding(
            "PFR220",
            f"accounting answered in {seconds:.3f} s; asked only in a look in which the "
            "controller does not know some job, once for all of them", about,
            numbers={"seconds": round(seconds, 4)},
        )
        yield from _slow(made, about, seconds, "the query of accounting")


def _why_not_asked(manager: Any) -> str:
    if getattr(manager, "_accounting", "auto") == "none":
        return "accounting: none"
    return f"{manager.drm_label} keeps no accounting that could be asked"
