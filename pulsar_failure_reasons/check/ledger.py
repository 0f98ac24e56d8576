"""Checks of the failure ledger, without writing a row."""

from __future__ import annotations

import os
from typing import Iterator

from ..errors import ConfigurationError, LedgerError
from ..ledger.settings import LedgerSettings, NoLedger, ledger_settings, sqlite_path
from .findings import Finding
from .folders import why_not_made
from .site import MadeManager, Site


def check_ledger(site: Site) -> Iterator[Finding]:
    """See whether each manager's ledger is there, of our version, and can be written."""
    for made in site.usable():
        yield _of_one(made, site)


def _of_one(made: MadeManager, site: Site) -> Finding:
    options = made.configured.options
    try:
        settings = ledger_settings(made.name, options, site.config.persistence_directory)
    except ConfigurationError as error:
        return Finding("PFR131", str(error), made.name)
    if isinstance(settings, NoLedger):
        return Finding("PFR322" if settings.wanted else "PFR323", settings.why, made.name)
    try:
        why_not = _why_not(settings)
    except LedgerError as error:
        why_not = str(error)
    if why_not:
        return Finding("PFR322", f"{settings}: {why_not}", made.name)
    return Finding("PFR321", str(settings), made.name)


def _why_not(settings: LedgerSettings) -> str:
    """Return why rows cannot be written, "" where they can.

    Raises:
        LedgerError: the database is not there, or not of our version.
    """
    path = sqlite_path(settings.url)
    if path is None:
        _look_into(settings)
        return ""
    folder = os.path.dirname(path)
    if not os.path.exists(path):
        return why_not_made(folder)
    if os.path.getsize(path):
        _look_into(settings)
    if not os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
        return "it cannot be written by this user"
    # SQLite keeps its journal beside it.
    return why_not_made(folder)


def _look_into(settings: LedgerSettings) -> None:
    from ..ledger.database import LedgerDatabase

    with LedgerDatabase(settings.url, read_only=True).transaction():
        pass
