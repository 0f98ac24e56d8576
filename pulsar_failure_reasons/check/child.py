"""What a fresh Python process sees of our seams; run in one (see :func:`ask`).

The process imports Pulsar as a server does. What it tells is one JSON object, the last line of
its stdout.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import sys
from importlib import metadata
from typing import Any, Dict, List

from ..errors import OutputParseError
from ..execute import run

#: How long such a process may take: Pulsar alone needs a second or two on a busy host.
TIMEOUT_S = 120.0
_FINDER = "PulsarFailureReasonsFinder"
_STARTUP_FILES = ("pulsar_failure_reasons.pth", "pulsar_failure_reasons.start")
# Not "-m", which would look for modules in the current folder.
_NOT_HERE = "import sys; sys.path[:1] = [] if sys.path[0] == '' else sys.path[:1]; "
_CHILD = (
    f"at_start = [type(f).__module__ for f in sys.meta_path if type(f).__name__ == {_FINDER!r}]; "
    f"from {__name__} import main; main(at_start, sys.argv[1])"
)
STARTUP, BY_HAND = "startup", "install"


def ask(route: str) -> Dict[str, Any]:
    """Return what a fresh process tells.

    Args:
        route: STARTUP leaves the seams to what runs when Python starts; BY_HAND calls
            ``install()``, as ``run`` and the WSGI factory do.

    Raises:
        DrmUnreachableError: it could not be started, or did not come to its end.
        OutputParseError: it told nothing.
    """
    return told_by(_CHILD, [route], "a fresh Python process that imports Pulsar", TIMEOUT_S)


def told_by(code: str, arguments: List[str], called: str, timeout_s: float) -> Dict[str, Any]:
    """Return the JSON object that a fresh process prints as its last line.

    Args:
        code: Python statements; `sys` is imported.
        arguments: Its `sys.argv[1:]`.
        called: What errors call it.
        timeout_s: How long it may take.

    Raises:
        DrmUnreachableError: it could not be started, or did not come to its end.
        OutputParseError: it told nothing.
    """
    done = run([python(), "-c", _NOT_HERE + code, *arguments], timeout_s, called=called)
    try:
        told: Dict[str, Any] = json.loads(done.stdout.strip().rpartition("\n")[2])
        return told
    except ValueError:
        last = done.stderr.strip().rpartition("\n")[2]
        raise OutputParseError(f"{called} ended with {done.returncode}: {last:.300}") from None


def python() -> str:
    """Return this environment's interpreter."""
    return sys.executable or os.path.join(sys.prefix, "bin", "python3")


def main(at_start: List[str], route: str) -> None:
    """Import Pulsar, and print what is there."""
    records: List[str] = []

    class Keeper(logging.Handler):
        """Keeps what our loggers warn of."""

        def emit(self, record: logging.LogRecord) -> None:
            records.append(record.getMessage())

    logger = logging.getLogger("pulsar.failure_reasons")
    logger.addHandler(Keeper(logging.WARNING))
    print(json.dumps({**_tell(at_start, route), "log": records}))


def _tell(at_start: List[str], route: str) -> Dict[str, Any]:
    from pulsar_failure_reasons import install, pulsar_hooks

    if route == BY_HAND:
        install()
    import pulsar
    from pulsar import manager_factory

    absent = _import_seams(list(pulsar_hooks.active_seams()))
    types = manager_factory._get_managers_dict()
    return {
        "pulsar": str(getattr(pulsar, "__version__", "")),
        "plugin": metadata.version(pulsar_hooks.DISTRIBUTION),
        "refusal": pulsar_hooks.pulsar_refusal(),
        "at_start": at_start,
        "files": _startup_files(),
        "seams": {
            name: active for name, active in pulsar_hooks.active_seams().items()
            if name not in absent
        },
        "types": {name: f"{cls.__module__}:{cls.__name__}" for name, cls in types.items()},
    }


def _import_seams(names: List[str]) -> List[str]:
    """Import the modules of all seams; return those that a webless Pulsar's host cannot."""
    absent = []
    for name in names:
        try:
            importlib.import_module(name.rpartition(".")[0])
        except ImportError:  # no WebOb
            absent.append(name)
    return absent


def _startup_files() -> List[str]:
    paths = [os.path.join(folder, name) for folder in sys.path for name in _STARTUP_FILES]
    return [path for path in dict.fromkeys(paths) if os.path.isfile(path)]
