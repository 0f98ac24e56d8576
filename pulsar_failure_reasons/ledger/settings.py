"""Where an operator wants the ledger: the options ``failure_ledger``, ``failure_ledger_retention``.

This needs no SQLAlchemy: it must be read on hosts that have none.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from importlib import util
from typing import Any, Mapping, Optional

from ..errors import ConfigurationError
from .spans import EXAMPLES, UNIT_S, parse_span

OPTIONS = ("failure_ledger", "failure_ledger_retention")
FILE_NAME = "failure-ledger.sqlite"
DEFAULT_RETENTION_S = 2 * UNIT_S["y"]
NEEDS = "SQLAlchemy 2 (pip install 'pulsar-failure-reasons[tools]')"

_OFF = ("off", "false", "no", "0", "none")
_ON = ("on", "true", "yes", "1", "auto")
_FOREVER = ("off", "forever", "never", "none", "false", "no")
_PASSWORD = re.compile(r"(://[^:/@]*:).*@")


@dataclass(frozen=True)
class LedgerSettings:
    """One ledger: ``url`` as SQLAlchemy takes it; rows older than ``retention_s`` are removed.

    ``retention_s`` is None where nothing is ever removed.
    """

    url: str
    retention_s: Optional[int] = DEFAULT_RETENTION_S

    def __str__(self) -> str:
        """Return the place for logs: no password in it."""
        return shown(self.url)


@dataclass(frozen=True)
class NoLedger:
    """Why there is no ledger; ``wanted`` is True where the operator asked for one."""

    why: str
    wanted: bool = False


def ledger_settings(
    manager_name: str, given: Mapping[str, Any], persistence_directory: Optional[str]
) -> "LedgerSettings | NoLedger":
    """Return the ledger of a manager, or why it has none.

    Default: ``failure-ledger.sqlite`` in Pulsar's persistence directory, where SQLAlchemy is
    installed. A relative path is taken from that directory.

    Raises:
        ConfigurationError: an option has a value that cannot work.
    """
    retention_s = _retention_s(manager_name, given.get("failure_ledger_retention"))
    value = given.get("failure_ledger")
    word = "auto" if value is None else str(value).strip()
    if word.lower() in _OFF:
        return NoLedger("failure_ledger is off")
    if not word:
        raise ConfigurationError(
            f"manager {manager_name}: option failure_ledger is empty; it must be off, a path or "
            "a URL such as postgresql+psycopg://host/database"
        )
    place = FILE_NAME if word.lower() in _ON else word
    wanted = value is not None
    if util.find_spec("sqlalchemy") is None:
        return NoLedger(f"it needs {NEEDS}", wanted)
    url = as_url(place, persistence_directory)
    if url is None:
        return NoLedger("Pulsar has no persistence_directory, and no full path is given", wanted)
    return LedgerSettings(url, retention_s)


def as_url(place: str, folder: Optional[str] = None) -> Optional[str]:
    """Return a path or URL as a URL; None for a relative path where there is no folder for it."""
    if "://" in place:
        return place
    path = os.path.expanduser(place)
    if not os.path.isabs(path):
        if folder is None:
            return None
        path = os.path.join(os.path.abspath(folder), path)
    return f"sqlite:///{path}"


def shown(url: str) -> str:
    """Return a ledger's place for people: a path as a path, and no password in a URL."""
    path = sqlite_path(url)
    return path if path is not None else _PASSWORD.sub(r"\1***@", url)


def sqlite_path(url: str) -> Optional[str]:
    """Return the file behind a URL, None for another database."""
    scheme, _, rest = url.partition("://")
    if scheme.partition("+")[0] != "sqlite":
        return None
    return rest[1:] if rest.startswith("/") else rest


def _retention_s(manager_name: str, value: Any) -> Optional[int]:
    """Return the seconds for which rows are kept, None for ever."""
    if value is None:
        return DEFAULT_RETENTION_S
    word = str(value).strip().lower()
    if word in _FOREVER:
        return None
    seconds = parse_span(word)
    if seconds is None:
        raise ConfigurationError(
            f"manager {manager_name}: option failure_ledger_retention is {value!r:.80}; it must "
            f"be off (keep all) or a span such as {EXAMPLES}"
        )
    return seconds
