"""What the checks of a Pulsar host are given, made once."""

from __future__ import annotations

import contextlib
import logging
import tempfile
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Dict, Iterator, List, Mapping, Optional

from ..app_config import AppConfig, ConfiguredManager

#: The root of all loggers of the server side.
LOGGER = "pulsar.failure_reasons"


@dataclass
class MadeManager:
    """A manager of ours, made as Pulsar makes it but on a folder that is gone by now.

    ``manager`` is None where it could not be made: ``error`` says why.
    """

    configured: ConfiguredManager
    manager: Any = None
    error: Optional[Exception] = None
    log: List[logging.LogRecord] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Its name in app.yml."""
        return self.configured.name


@dataclass
class Site:
    """One app.yml and what was asked about it.

    ``server_ini`` is None where there is none. ``route`` is how Pulsar is started, "auto" where
    the operator did not say. ``types`` are the classes of Pulsar's managers by type, in this
    process and with our seams in place; ``trouble`` is why they could not be had.
    """

    config: AppConfig
    server_ini: Optional[str] = None
    route: str = "auto"
    types: Mapping[str, Any] = field(default_factory=dict)
    made: List[MadeManager] = field(default_factory=list)
    trouble: Optional[str] = None
    #: What fresh processes told, by how the seams came into them (see :mod:`.child`).
    told: Dict[str, Dict[str, Any]] = field(default_factory=dict)

    def usable(self) -> List[MadeManager]:
        """Return the managers of ours that could be made."""
        return [one for one in self.made if one.manager is not None]


def describe_site(
    config: AppConfig, server_ini: Optional[str] = None, route: str = "auto"
) -> Site:
    """Return what the checks need; makes the managers of ours without starting anything."""
    site = Site(config, server_ini, route)
    try:
        site.types = _types()
    except Exception as error:  # a Pulsar that is quite another: the seams' check tells more
        site.trouble = f"{type(error).__name__}: {' '.join(str(error).split())}"
    for configured in config.managers:
        manager_class = site.types.get(configured.type)
        if is_ours(manager_class):
            site.made.append(_make(configured, manager_class))
    return site


def is_ours(manager_class: Any) -> bool:
    """Tell whether a class records why jobs end."""
    try:
        from ..managers.recording_manager import RecordingManager
    except ImportError:  # a Pulsar that is too old has not all that it needs
        return False
    return isinstance(manager_class, type) and issubclass(manager_class, RecordingManager)


def _types() -> Mapping[str, Any]:
    from .. import pulsar_hooks

    with captured_log("pulsar"):
        pulsar_hooks.install()
        from pulsar import manager_factory

        types: Mapping[str, Any] = manager_factory._get_managers_dict()
    return types


def _make(configured: ConfiguredManager, manager_class: Any) -> MadeManager:
    made = MadeManager(configured)
    with tempfile.TemporaryDirectory(prefix="pfr-check-") as folder, captured_log() as records:
        options = {**configured.options, "staging_directory": folder}
        try:
            made.manager = manager_class(configured.name, _stand_in(folder), **options)
        except Exception as error:  # stock code over the operator's values raises anything
            made.error = error
        made.log = records
    return made


def _stand_in(folder: str) -> Any:
    """Return what a manager's constructor reads of Pulsar's application."""
    return SimpleNamespace(
        staging_directory=folder, persistence_directory=None, authorizer=None,
        user_auth_manager=None, dependency_manager=None, job_metrics=None, object_store=None,
    )


class _Keeper(logging.Handler):
    def __init__(self, records: List[logging.LogRecord]) -> None:
        super().__init__(logging.INFO)
        self._records = records

    def emit(self, record: logging.LogRecord) -> None:
        self._records.append(record)


@contextlib.contextmanager
def captured_log(name: str = LOGGER) -> Iterator[List[logging.LogRecord]]:
    """Keep what these loggers say, in the list given, instead of showing it."""
    logger = logging.getLogger(name)
    records: List[logging.LogRecord] = []
    keeper = _Keeper(records)
    before: Dict[str, Any] = {"propagate": logger.propagate, "level": logger.level}
    logger.addHandler(keeper)
    logger.propagate = False
    logger.setLevel(logging.INFO)
    try:
        yield records
    finally:
        logger.removeHandler(keeper)
        logger.propagate = before["propagate"]
        logger.setLevel(before["level"])
