"""An app.yml as Pulsar reads it, without starting what it describes.

Pulsar's own functions do the reading (its environment overrides, ``job_managers.ini``), so that the
commands see what the server sees; checked on pulsar-app 0.15.16 and 0.16.0.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Dict, Mapping, Optional, Tuple

from .errors import ConfigurationError

# As in pulsar/core.py, which cannot be imported without starting half of Pulsar.
_DEFAULT_STAGING = os.path.join("files", "staging")
_DEFAULT_PERSISTENCE = os.path.join("files", "persisted_data")
_NO_PERSISTENCE = "__none__"


@dataclass(frozen=True)
class ConfiguredManager:
    """One manager of an app.yml: name, ``type:``, and all options that it would be given."""

    name: str
    type: str
    options: Mapping[str, Any]
    staging_directory: str


@dataclass(frozen=True)
class AppConfig:
    """What an app.yml says. Relative folders are taken from the current one, as Pulsar does.

    ``persistence_directory`` is None where the site switched persistence off.
    """

    path: str
    options: Mapping[str, Any]
    managers: Tuple[ConfiguredManager, ...]
    staging_directory: str
    persistence_directory: Optional[str]


def load_app_config(path: str) -> AppConfig:
    """Read an app.yml.

    Raises:
        ConfigurationError: there is no Pulsar here, or the file cannot be read or makes no sense;
            the message says what to do.
    """
    try:
        from pulsar import main
    except ImportError as error:
        raise ConfigurationError(
            f"Pulsar cannot be imported ({error}): run this with the Python of Pulsar's own "
            f"environment"
        ) from None
    try:
        options = main.load_app_configuration(
            app_conf_path=path, config_dir=os.path.dirname(os.path.abspath(path))
        )
        return _as_app_config(path, options)
    except ConfigurationError:
        raise
    except Exception as error:  # Pulsar and yaml raise what they like on a bad file
        raise ConfigurationError(f"{path} cannot be read as an app.yml: {_why(error)}") from None


def _why(error: Exception) -> str:
    said = getattr(error, "strerror", None) or " ".join(str(error).split())
    if isinstance(error, UnicodeError):
        return f"it is no UTF-8 text ({said})"
    if isinstance(error, (TypeError, ValueError, AttributeError)):
        return f"it must be a mapping of options, and so must each manager in it ({said})"
    return str(said)


def _as_app_config(path: str, options: Dict[str, Any]) -> AppConfig:
    staging = os.path.abspath(str(options.get("staging_directory", _DEFAULT_STAGING)))
    persistence = str(options.get("persistence_directory") or _DEFAULT_PERSISTENCE)
    return AppConfig(
        path, options, _managers(options, staging), staging,
        None if persistence == _NO_PERSISTENCE else os.path.abspath(persistence),
    )


def _managers(options: Dict[str, Any], staging: str) -> Tuple[ConfiguredManager, ...]:
    from pulsar import manager_factory

    shared = manager_factory._get_default_options(options)
    return tuple(
        ConfiguredManager(
            name=found.manager_name,
            type=found.manager_type,
            options={**shared, **found.manager_options},
            staging_directory=os.path.abspath(
                str(found.manager_options.get("staging_directory", staging))
            ),
        )
        for found in _descriptions(options).values()
    )


def _descriptions(options: Dict[str, Any]) -> Dict[str, Any]:
    """Return Pulsar's ManagerDescription of each manager, by name, as ``build_managers`` does."""
    from pulsar import manager_factory

    found = manager_factory.ManagerDescriptions()
    if "job_managers_config" in options:
        manager_factory._populate_manager_descriptions_from_ini(
            found, options["job_managers_config"]
        )
    elif "managers" in options:
        for name, manager in options["managers"].items():
            found.add(manager_factory.ManagerDescription.from_dict(manager, name))
    else:
        found.add(manager_factory.ManagerDescription.from_dict(options.get("manager") or {}))
    descriptions: Dict[str, Any] = found.descriptions
    return descriptions
