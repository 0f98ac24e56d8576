"""Checks of the logging configuration: are our lines shown?

What ``logging.config.fileConfig`` would do is told from the file, since doing it would open the
handlers' files. Pulsar's webless launcher calls it with its default, which disables every logger
that exists already and is not named in the file or below a named one.
"""

from __future__ import annotations

import configparser
import logging
from dataclasses import dataclass
from typing import Dict, Iterator, List, Optional, Tuple

from .findings import Finding
from .site import LOGGER, Site

#: The logger of the two lines that each job has.
JOB_LOGGER = f"{LOGGER}.recording"


@dataclass(frozen=True)
class LoggerRow:
    """One ``[logger_X]``: level None where it is NOTSET."""

    name: str
    level: Optional[int]
    handlers: Tuple[str, ...]
    propagate: bool


def check_logs(site: Site) -> Iterator[Finding]:
    """See which of our lines the site's ``server.ini`` lets through."""
    if site.server_ini is None:
        yield Finding("PFR314", "no server.ini beside app.yml")
        return
    about = site.server_ini
    parser = configparser.RawConfigParser(strict=False)
    try:
        with open(site.server_ini, encoding="utf-8") as handle:
            parser.read_file(handle)
        if not parser.has_section("loggers"):
            yield Finding("PFR314", "it has no section [loggers]", about)
            return
        rows = read_loggers(parser)
        levels = read_handler_levels(parser)
    except (OSError, UnicodeDecodeError, configparser.Error, ValueError) as error:
        yield Finding("PFR315", " ".join(str(error).split()), about)
        return
    yield _judge(rows, levels, about)


def read_loggers(parser: configparser.RawConfigParser) -> Dict[str, LoggerRow]:
    """Return the loggers of the file by qualname; the root is "".

    Raises:
        configparser.Error: a section or option is missing.
        ValueError: a level is none.
    """
    rows: Dict[str, LoggerRow] = {}
    for key in _names(parser.get("loggers", "keys")):
        section = f"logger_{key}"
        name = "" if key == "root" else parser.get(section, "qualname")
        rows[name] = LoggerRow(
            name,
            _level(parser.get(section, "level", fallback="NOTSET")),
            tuple(_names(parser.get(section, "handlers"))),
            parser.getint(section, "propagate", fallback=1) != 0,
        )
    return rows


def read_handler_levels(parser: configparser.RawConfigParser) -> Dict[str, int]:
    """Return the levels of the handlers by their keys, 0 where none is set; raises as above."""
    return {
        key: _level(parser.get(f"handler_{key}", "level", fallback="NOTSET")) or 0
        for key in _names(parser.get("handlers", "keys"))
    }


def _names(text: str) -> List[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _level(text: str) -> Optional[int]:
    level = logging.getLevelName(text.strip().upper())
    if not isinstance(level, int):
        raise ValueError(f"{text.strip()!r} is no logging level")
    return level or None


def _judge(rows: Dict[str, LoggerRow], levels: Dict[str, int], about: str) -> Finding:
    named = [name for name in _lineage(JOB_LOGGER) if name and name in rows]
    if not named:
        return Finding(
            "PFR312", "no logger `pulsar` is named: the loggers that exist when Pulsar reads this "
            "file are disabled", about,
        )
    level, reached = _route(rows)
    if not reached:
        return Finding("PFR312", f"the logger `{named[0]}` leads to no handler", about)
    shown = max(level, min(levels.get(handler, 0) for handler in reached))
    if shown > logging.WARNING:
        return Finding(
            "PFR312", f"nothing below {logging.getLevelName(shown)} is shown of {JOB_LOGGER}", about
        )
    if shown > logging.INFO:
        return Finding(
            "PFR313", f"nothing below {logging.getLevelName(shown)} is shown of {JOB_LOGGER}", about
        )
    return Finding("PFR311", f"{JOB_LOGGER} goes to: {', '.join(reached)}", about)


def _route(rows: Dict[str, LoggerRow]) -> Tuple[int, List[str]]:
    """Return the effective level of the jobs' logger, and the handlers that it reaches."""
    level: Optional[int] = None
    handlers: List[str] = []
    for name in _lineage(JOB_LOGGER):
        row = rows.get(name)
        if row is None:
            continue
        level = row.level if level is None else level
        handlers += row.handlers
        if not row.propagate:
            # The level may still come from further up.
            above = [rows[n].level for n in _lineage(name)[1:] if n in rows and rows[n].level]
            level = level if level is not None else (above[0] if above else None)
            break
    return level or logging.WARNING, handlers


def _lineage(name: str) -> List[str]:
    """Return a logger's name and those above it, the root ("") last."""
    parts = name.split(".")
    return [".".join(parts[:end]) for end in range(len(parts), 0, -1)] + [""]
