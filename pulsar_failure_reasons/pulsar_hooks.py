"""The seams into stock Pulsar: its manager types, what a payload carries, attempts of a job.

Checked on pulsar-app 0.15.16 and 0.16.0. Nothing here imports Pulsar before it must: the modules
come in through `_import_hook`, or through `install()` when called by hand. Whatever is wrong with
a seam, a server that does not use our managers starts and runs as if we were not there.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import logging
import os
import re
import sys
from importlib import metadata
from types import ModuleType
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

log = logging.getLogger("pulsar.failure_reasons.hooks")

DISTRIBUTION = "pulsar-failure-reasons"
MANAGERS_GROUP = "pulsar.managers"
MINIMUM_PULSAR = (0, 15, 16)
#: `1`: an entry point wins over a stock manager of the same name.
OVERRIDE = "PULSAR_FAILURE_REASONS_OVERRIDE"

_WRAPPED_MARK = "_pulsar_failure_reasons_wrapped"

_logged: Set[str] = set()


def install() -> None:
    """Put the seams in by hand, for sites that forbid `.pth` files. May be called twice.

    Raises:
        ImportError: there is no pulsar-app in this environment.
    """
    for name in _PATCHES:
        try:
            module = importlib.import_module(name)
        except ImportError:
            # Of a Pulsar without its web server (no WebOb).
            if name not in _WEB_MODULES:
                raise
        else:
            patch_module(module)


def patch_module(module: ModuleType) -> None:
    """Put our seam into one of Pulsar's modules, once, or log why not."""
    _PATCHES[module.__name__](module)


def active_seams() -> Dict[str, bool]:
    """Return for each seam, by its full name, whether ours is in place in this process."""
    return {
        "%s.%s" % seam: hasattr(
            getattr(sys.modules.get(seam[0]), seam[1], None), _WRAPPED_MARK
        )
        for seam in _WITHOUT_SEAM
    }


def _wrap(module: ModuleType, function_name: str, make_wrapper: Callable[[Any], Any]) -> None:
    """Replace a seam function of the module by `make_wrapper(function)`, unless that was done."""
    original = getattr(module, function_name, None)
    if original is None:
        _log_once(
            logging.ERROR,
            "pulsar-app %s has no %s.%s, which %s needs: %s. Install a pulsar-app that has it "
            "(0.15.16 to 0.16 do), or a newer %s."
            % (_pulsar_version_text(), module.__name__, function_name, DISTRIBUTION,
               _WITHOUT_SEAM[module.__name__, function_name], DISTRIBUTION),
        )
    elif not hasattr(original, _WRAPPED_MARK):
        wrapper = make_wrapper(original)
        setattr(wrapper, _WRAPPED_MARK, True)
        setattr(module, function_name, wrapper)


# --- seam 1: manager types ------------------------------------------------------------------


class UnknownManagerType(KeyError):
    """The configured `type:` is not there; a KeyError, since Pulsar looks it up in a dict."""

    def __str__(self) -> str:
        return str(self.args[0])


class ManagerTypes(Dict[str, Any]):
    """Pulsar's dict of manager types that says in one line why a type is not in it."""

    def __init__(self, types: Dict[str, Any], why_missing: Dict[str, str]) -> None:
        super().__init__(types)
        self._why_missing = why_missing

    def __missing__(self, manager_type: str) -> Any:
        why = self._why_missing.get(manager_type)
        raise UnknownManagerType(why or self._not_known(manager_type))

    def _not_known(self, manager_type: str) -> str:
        nearest = difflib.get_close_matches(str(manager_type), [*self, *self._why_missing], n=1)
        return "Pulsar has no manager type %r%s; it has: %s" % (
            manager_type,
            " (did you mean %r?)" % nearest[0] if nearest else "",
            ", ".join(sorted(self)),
        )


class ManagerEntryPoint(NamedTuple):
    """An entry point of group `pulsar.managers` and the distribution it comes from."""

    entry_point: metadata.EntryPoint
    distribution: str

    @property
    def name(self) -> str:
        return self.entry_point.name

    def __str__(self) -> str:
        return "%s of %s" % (self.entry_point.value, self.distribution)


def _patch_manager_factory(module: ModuleType) -> None:
    def make_wrapper(original: Callable[..., Dict[str, Any]]) -> Callable[..., ManagerTypes]:
        @functools.wraps(original)
        def _get_managers_dict(*args: Any, **kwargs: Any) -> ManagerTypes:
            return _with_entry_points(original(*args, **kwargs))

        return _get_managers_dict

    _wrap(module, "_get_managers_dict", make_wrapper)


def _with_entry_points(stock: Dict[str, Any]) -> ManagerTypes:
    """Return the stock manager types with those of the entry points merged in."""
    refusal = pulsar_refusal()
    if refusal is not None:
        ours = [found.name for found in _manager_entry_points()]
        return ManagerTypes(stock, {name: refusal for name in ours if name not in stock})
    types = dict(stock)
    why_missing: Dict[str, str] = {}
    taken_from: Dict[str, ManagerEntryPoint] = {}
    for found in _manager_entry_points():
        if not _may_take(found, stock, taken_from):
            continue
        try:
            types[found.name] = _load_manager_class(found)
        # A foreign module may do anything while it is imported; Pulsar must still start.
        except (Exception, SystemExit) as exc:
            why = "manager type %r (%s) cannot be imported and is left out: %s: %s" % (
                found.name, found, type(exc).__name__, _one_line(exc),
            )
            log.warning(why)
            if found.name not in types:
                why_missing[found.name] = why
        else:
            taken_from[found.name] = found
            why_missing.pop(found.name, None)
    return ManagerTypes(types, why_missing)


def _may_take(
    found: ManagerEntryPoint, stock: Dict[str, Any], taken_from: Dict[str, ManagerEntryPoint]
) -> bool:
    """Tell whether an entry point gets its name, and log who has it when two want it."""
    if found.name in taken_from:
        log.warning(
            "manager type %r: %s is used, %s is not", found.name, taken_from[found.name], found
        )
        return False
    if found.name not in stock:
        return True
    override = os.environ.get(OVERRIDE) == "1"
    log.warning(
        "manager type %r: %s is used, not %s (%s=%s)",
        found.name,
        found if override else "Pulsar's own",
        "Pulsar's own" if override else found,
        OVERRIDE,
        "1" if override else "1 would turn this round",
    )
    return override


def _load_manager_class(found: ManagerEntryPoint) -> Any:
    manager_class = found.entry_point.load()
    if not isinstance(manager_class, type):
        raise TypeError("it is no class but %.80r" % (manager_class,))
    return manager_class


def _manager_entry_points() -> Iterator[ManagerEntryPoint]:
    """Yield each entry point of our group once, in the order of `sys.path`.

    Python 3.9's entry points do not know their distribution, so the distributions are asked; one
    that is on the path twice (its metadata in two folders) counts once.
    """
    seen: Set[Tuple[str, str]] = set()
    for distribution in metadata.distributions():
        for entry_point in _entry_points_of(distribution):
            identity = (entry_point.name, entry_point.value)
            if entry_point.group == MANAGERS_GROUP and identity not in seen:
                seen.add(identity)
                yield ManagerEntryPoint(entry_point, _distribution_name(distribution))


def _entry_points_of(distribution: metadata.Distribution) -> List[metadata.EntryPoint]:
    """Return a distribution's entry points; none if its `entry_points.txt` cannot be parsed."""
    try:
        return list(distribution.entry_points)
    except Exception as exc:  # configparser's errors, or an undecodable file
        log.warning(
            "the entry points of %s cannot be read and are left out: %s",
            _distribution_name(distribution), _one_line(exc),
        )
        return []


def _distribution_name(distribution: metadata.Distribution) -> str:
    try:
        return str(distribution.metadata["Name"])
    except Exception:  # no METADATA file: the name only serves a message
        return "an unknown distribution"


# --- seam 2: the payload --------------------------------------------------------------------


def _patch_manager_endpoint_util(module: ModuleType) -> None:
    refusal = pulsar_refusal()
    if refusal is not None:
        # Galaxy brings Pulsar's library along, and may never run a server of its own.
        _log_once(logging.DEBUG if "galaxy.jobs" in sys.modules else logging.WARNING, refusal)
        return
    _wrap(module, "full_status", _full_status_with_our_keys)
    _wrap(module, "submit_job", _submit_job_by_attempt)


def _full_status_with_our_keys(
    original: Callable[..., Dict[str, Any]]
) -> Callable[..., Dict[str, Any]]:
    @functools.wraps(original)
    def full_status(manager: Any, job_status: str, job_id: str) -> Dict[str, Any]:
        from pulsar_failure_reasons import pulsar_attempts

        refused = pulsar_attempts.refusal_spoken_of(job_id)
        if refused is not None:
            return refused.payload()
        payload = original(manager, job_status, job_id)
        for key, value in _additional_keys(payload, manager, job_status, job_id).items():
            payload.setdefault(key, value)
        return payload

    return full_status


def _additional_keys(
    payload: Dict[str, Any], manager: Any, job_status: str, job_id: str
) -> Dict[str, Any]:
    """Return what we add to a payload; less or nothing where anything is wrong, it goes out."""
    keys: Dict[str, Any] = {}
    try:
        keys.update(_attempt_keys(manager, job_id))
        # A later Pulsar may send the reason itself: then all of ours step aside.
        if "runner_state" not in payload:
            keys.update(_reason_keys(manager, job_status, job_id))
    except Exception as exc:  # the terminal message of a job must never be lost for its reason
        _log_once(
            logging.WARNING,
            "the failure reasons of jobs cannot be added to their payloads (first seen with job "
            "%s, not repeated): %s: %s" % (job_id, type(exc).__name__, _one_line(exc)),
            kind="reason_keys %s" % type(exc).__name__,
        )
    return keys


def _attempt_keys(manager: Any, job_id: str) -> Dict[str, Any]:
    """Return the number of the job's attempt, {} where Galaxy did not number it."""
    from pulsar_failure_reasons import job_record, wire

    number = job_record.load_attempt_number(manager.job_directory(job_id))
    return {} if number is None else {wire.ATTEMPT: number}


def _reason_keys(manager: Any, job_status: str, job_id: str) -> Dict[str, Any]:
    """Return the keys that tell why a job ended, {} where its job directory holds no reason."""
    from pulsar_failure_reasons import job_record, switch, wire

    if job_status not in wire.STATUSES_WITH_REASON or switch.reasons_are_off():
        return {}
    record = job_record.load_current_record(manager.job_directory(job_id))
    return {} if record is None else wire.payload_keys(record)


# --- seam 3: attempts of one job -------------------------------------------------------------


def _submit_job_by_attempt(original: Callable[..., Any]) -> Any:
    from pulsar_failure_reasons import pulsar_attempts

    return pulsar_attempts.submit_job_by_attempt(original)


def _patch_routes(module: ModuleType) -> None:
    if pulsar_refusal() is not None:
        return

    def make_controller(original: Any) -> Any:
        from pulsar_failure_reasons import pulsar_attempts

        return pulsar_attempts.setup_by_attempt(original, module.PulsarController)

    _wrap(module, "setup", make_controller)
    # It has submit_job by name: for an `install()` that comes after its import.
    wrapped = getattr(sys.modules.get("pulsar.manager_endpoint_util"), "submit_job", None)
    if hasattr(wrapped, _WRAPPED_MARK) and hasattr(module, "submit_job"):
        setattr(module, "submit_job", wrapped)


# --- which Pulsar ---------------------------------------------------------------------------


def pulsar_refusal() -> Optional[str]:
    """Return in one line why this Pulsar will not do, or None if it will.

    A version that is no version (a fork's own text) is let pass: the seams decide.
    """
    found = re.match(r"(\d+)\.(\d+)\.(\d+)", _pulsar_version_text())
    if found is None or tuple(int(part) for part in found.groups()) >= MINIMUM_PULSAR:
        return None
    return (
        "pulsar-app %s is too old for %s, whose managers are not available: it does not report a "
        "job that the DRM killed as failed (pulsar#485). Upgrade with: pip install "
        "'pulsar-app>=%s'" % (
            _pulsar_version_text(), DISTRIBUTION, ".".join(str(part) for part in MINIMUM_PULSAR)
        )
    )


def _pulsar_version_text() -> str:
    return str(getattr(sys.modules.get("pulsar"), "__version__", "of unknown version"))


# --- helpers --------------------------------------------------------------------------------


def _log_once(level: int, message: str, kind: Optional[str] = None) -> None:
    """Log a line the first time its kind (by default the line itself) is seen in this process."""
    if (kind or message) not in _logged:
        _logged.add(kind or message)
        log.log(level, "%s", message)


def _one_line(exc: BaseException) -> str:
    return " ".join(str(exc).split())[:500]


#: The seams, by module and function, and what does not work without them.
_WITHOUT_SEAM = {
    ("pulsar.manager_factory", "_get_managers_dict"):
        "its manager types are not known to this Pulsar",
    ("pulsar.manager_endpoint_util", "full_status"): "no failure reason reaches Galaxy",
    ("pulsar.manager_endpoint_util", "submit_job"):
        "a job that Galaxy sends to this Pulsar a second time is not run",
    ("pulsar.web.routes", "setup"):
        "a job that Galaxy sends to this Pulsar a second time may not be run",
}
_WEB_MODULES = ("pulsar.web.routes",)
_PATCHES: Dict[str, Callable[[ModuleType], None]] = {
    "pulsar.manager_factory": _patch_manager_factory,
    "pulsar.manager_endpoint_util": _patch_manager_endpoint_util,
    "pulsar.web.routes": _patch_routes,
}
