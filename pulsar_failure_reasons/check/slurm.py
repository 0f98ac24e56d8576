"""Checks of slurmctld's configuration against what ``queued_slurm`` needs of it.

``scontrol show config``: https://slurm.schedmd.com/slurm.conf.html (AccountingStorageType,
MinJobAge, JobFileAppend); seen on 22.05.8 and 24.11.5.
"""

from __future__ import annotations

import re
from typing import Any, Dict, Iterator, Optional

from ..drm.slurm import clean_environment
from ..errors import DrmError, DrmUnreachableError
from ..reason import clean_text
from .drm import commands_of
from .findings import Finding
from .site import MadeManager, Site

#: Looks at Slurm within which an ended job must stay known.
LOOKS = 4
#: As the commands tell the user: by number here, by name behind a shell plugin.
_ROOT = ("0", "root")
#: "(null)" since 23.11, "accounting_storage/none" before.
_NO_ACCOUNTING = ("(null)", "accounting_storage/none", "none", "")
_LINE = re.compile(r"(\w+)\s+=\s?(.*)")


def check_slurm(site: Site) -> Iterator[Finding]:
    """Read Slurm's configuration once for each manager on Slurm."""
    for made in site.usable():
        if made.manager.drm == "slurm":
            yield from _of_one(made)


def _of_one(made: MadeManager) -> Iterator[Finding]:
    try:
        config = query_config(made.manager)
    except DrmError as error:
        yield Finding("PFR217", str(error), made.name)
        return
    kept = config.get("AccountingStorageType", "") not in _NO_ACCOUNTING
    # Without sacct what slurmdbd keeps cannot be asked for; that has a finding of its own.
    asked = kept and made.manager._accounting != "none"
    yield from _accounting(made, config, kept)
    yield from _memory(made, config, asked)
    if config.get("JobFileAppend", "0") == "1":
        yield Finding("PFR216", "JobFileAppend = 1", made.name)


def check_slurm_user(site: Site) -> Iterator[Finding]:
    """See whether Slurm can leave out the jobs of other users when it is asked for ours."""
    for made in site.usable():
        if made.manager.drm != "slurm":
            continue
        try:
            user = commands_of(made.manager).user()
        except DrmError:
            continue  # the check of the commands says so
        if user in _ROOT:
            yield Finding("PFR218", f"squeue --user={user}", made.name)


def query_config(manager: Any) -> Dict[str, str]:
    """Return slurmctld's configuration, name by name.

    Raises:
        DrmError: it could not be had.
    """
    cluster = getattr(manager, "_cluster", None)
    argv = ["scontrol", *([f"--clusters={cluster}"] if cluster else []), "show", "config"]
    result = commands_of(manager).run(argv, clean_environment)
    if result.returncode != 0:
        said = clean_text(result.stderr or result.stdout)
        raise DrmUnreachableError(f"{' '.join(argv)} ended with {result.returncode}: {said}")
    return parse_config(result.stdout)


def parse_config(text: str) -> Dict[str, str]:
    """Return the rows of ``scontrol show config``; what has another form is left out."""
    rows = (_LINE.match(line) for line in text.splitlines())
    return {row.group(1): row.group(2).strip() for row in rows if row}


def _accounting(made: MadeManager, config: Dict[str, str], kept: bool) -> Iterator[Finding]:
    kind = config.get("AccountingStorageType", "not told")
    wanted = made.manager._accounting
    if kept and wanted != "none":
        yield Finding("PFR210", f"AccountingStorageType = {kind}", made.name)
    elif wanted == "auto":
        yield Finding("PFR211", f"AccountingStorageType = {kind}", made.name)
    elif wanted == "sacct":
        yield Finding("PFR212", f"AccountingStorageType = {kind}", made.name)


def _memory(made: MadeManager, config: Dict[str, str], asked: bool) -> Iterator[Finding]:
    age_s = _seconds(config.get("MinJobAge"))
    interval_s = made.manager.observer(None).interval_s
    seen = f"MinJobAge is {config.get('MinJobAge')}, and Slurm is looked at every {interval_s:g} s"
    if age_s is None:
        yield Finding("PFR217", "scontrol show config tells no MinJobAge", made.name)
    elif age_s == 0:  # never purged
        yield Finding("PFR213", "MinJobAge is 0: ended jobs are never forgotten", made.name)
    elif age_s <= interval_s and not asked:
        yield Finding("PFR215", seen, made.name)
    elif age_s < LOOKS * interval_s:
        yield Finding("PFR214", seen, made.name)
    else:
        yield Finding("PFR213", seen, made.name)


def _seconds(text: Optional[str]) -> Optional[int]:
    """Return a number of seconds such as ``300 sec``; None where there is none."""
    found = re.match(r"(\d+)\s*(?:sec|s)?\s*$", text or "")
    return int(found.group(1)) if found else None
