"""Checks of the managers' options, by the managers' own readers."""

from __future__ import annotations

import difflib
import sys
from typing import Any, Iterator, Tuple

from ..errors import ConfigurationError
from .findings import Finding
from .site import MadeManager, Site

#: Options of stock Pulsar's managers and of the proxy around them, read in pulsar/managers and
#: pulsar/manager_factory.py of 0.15.16 and 0.16.0.
STOCK_OPTIONS = frozenset({
    "type", "staging_directory", "assign_ids", "job_directory_mode", "maximum_stream_size",
    "tmp_dir", "cvmfsexec", "debug", "galaxy_home", "galaxy_virtual_env", "galaxy_config_file",
    "galaxy_dataset_files_path", "galaxy_datatypes_config_file", "native_specification",
    "job_name_template", "min_polling_interval", "send_stdout_update", "stdout_update_interval",
    "stdout_update_timeout", "stdout_update_chunk_size", "failure_ledger",
})
#: With what the names of options begin that are open-ended.
STOCK_PREFIXES = (
    "env_", "preprocess_action_", "postprocess_action_", "submit_", "job_", "shell_",
    "failure_ledger_",
)
_OPTIONS_LOGGER = "pulsar.failure_reasons.options"


def check_options(site: Site) -> Iterator[Finding]:
    """See whether each manager of ours can be made, and all its options are known."""
    for made in site.made:
        yield from _of_one(made)


def _of_one(made: MadeManager) -> Iterator[Finding]:
    if made.error is not None:
        yield _refused(made)
        return
    misspelt = [
        record.getMessage() for record in made.log if record.name == _OPTIONS_LOGGER
    ]
    for line in misspelt:
        yield Finding("PFR132", line.partition(": ")[2] or line, made.name)
    ours = _own_options(made.manager)
    for name in made.configured.options:
        if _is_known(name, ours) or any(repr(name) in line for line in misspelt):
            continue
        near = difflib.get_close_matches(name, [*ours, *STOCK_OPTIONS], n=1)
        hint = f"; the nearest known is {near[0]!r}" if near else ""
        yield Finding("PFR133", f"option {name!r} is passed on as it is{hint}", made.name)
    if not misspelt:
        given = sorted(set(made.configured.options) & set(ours))
        yield Finding("PFR130", f"own options: {', '.join(given) or 'all defaults'}", made.name)


def _refused(made: MadeManager) -> Finding:
    text = " ".join(str(made.error).split())
    if isinstance(made.error, ConfigurationError):
        # The bindings have a code of their own.
        code = "PFR205" if "bindings cannot be imported" in text else "PFR131"
        # The finding names the manager, so the error need not.
        return Finding(code, text.replace(f"manager {made.name}: ", "", 1), made.name)
    return Finding("PFR134", f"{type(made.error).__name__}: {text:.300}", made.name)


def _own_options(manager: Any) -> Tuple[str, ...]:
    module = sys.modules[type(manager).__module__]
    return tuple(getattr(module, "OWN_OPTIONS", ()))


def _is_known(name: str, ours: Tuple[str, ...]) -> bool:
    return name in ours or name in STOCK_OPTIONS or name.startswith(STOCK_PREFIXES)
