"""Run `pulsar_hooks` on Pulsar's seam modules as soon as each has been imported.

The line in `pulsar_failure_reasons.pth` puts a stub on `sys.meta_path` that waits for the first
module of a package called `pulsar` and then puts this finder in its own place. So a Python that
never imports Pulsar imports nothing of ours. Pythons that read `.start` files (PEP 829, 3.15 and
later) call `start` instead and skip the line in the `.pth`.

The finder changes nothing that a module keeps: the loader that another finder chose runs the
module, and the method that runs it is replaced for that one call only.
"""

from __future__ import annotations

import sys
from _thread import get_ident

# As the type checker's constant, without importing `typing`: a `.start` file has this module
# imported in every Python process, and `typing` alone costs several ms.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any, Callable, Optional, Sequence, Set, Tuple

SEAM_MODULES = ("pulsar.manager_factory", "pulsar.manager_endpoint_util", "pulsar.web.routes")

#: In Galaxy: its stock runner classes, which get ours in place if the operator asks for it.
GALAXY_RUNNERS = "galaxy.jobs.runners.pulsar"


class PulsarFailureReasonsFinder:
    """A `sys.meta_path` entry that finds nothing itself and adds a step after the seam modules.

    The stub in the `.pth` has the same class name: that is how each sees the other.
    """

    def __init__(self) -> None:
        self._searching: Set[Tuple[str, int]] = set()

    def find_spec(
        self,
        name: str,
        path: Optional[Sequence[str]] = None,
        target: Optional[ModuleType] = None,
    ) -> Optional[ModuleSpec]:
        """Return the spec that the other finders give for a seam module, else None."""
        if name not in SEAM_MODULES and not (name == GALAXY_RUNNERS and _galaxy_opted_in()):
            return None
        search = (name, get_ident())
        # Other tools' finders ask all finders too, this one among them: they must not go round.
        if search in self._searching:
            return None
        self._searching.add(search)
        try:
            spec = self._ask_the_others(name, path, target)
        finally:
            self._searching.discard(search)
        if spec is not None:
            _run_after_exec(spec)
        return spec

    def _ask_the_others(
        self, name: str, path: Optional[Sequence[str]], target: Optional[ModuleType]
    ) -> Optional[ModuleSpec]:
        for finder in list(sys.meta_path):
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                return spec
        return None


def _run_after_exec(spec: ModuleSpec) -> None:
    """Replace the method of this spec's loader that runs the module, until it has run."""
    loader: Any = spec.loader
    name = spec.name
    # Python 3.9's zipimporter has only the older of the two.
    method = "exec_module" if hasattr(loader, "exec_module") else "load_module"
    stock_method: Optional[Callable[[Any], Any]] = getattr(loader, method, None)
    # A class as loader (frozen and built-in modules) is everybody's: nothing may be set on it.
    if stock_method is None or isinstance(loader, type):
        return

    def run(module_or_name: Any) -> Any:
        # A zip archive's loader is shared by all its modules: the others pass.
        if getattr(module_or_name, "__name__", module_or_name) != name:
            return stock_method(module_or_name)
        loader.__dict__.pop(method, None)
        returned = stock_method(module_or_name)
        _patch(returned if method == "load_module" else module_or_name)
        return returned

    try:
        setattr(loader, method, run)
    except AttributeError:
        # A loader with __slots__ (none of the standard library's for files): not hooked, `check`
        # tells; `pulsar-failure-reasons run` does not need it.
        pass


def _galaxy_opted_in() -> bool:
    from pulsar_failure_reasons import switch

    return switch.galaxy_opted_in()


def _patch(module: ModuleType) -> None:
    """Put ours into a freshly imported seam module; the server starts whatever happens."""
    in_galaxy = module.__name__ == GALAXY_RUNNERS
    try:
        if in_galaxy:
            # Whose first step is to look at the same variable.
            import pulsar_failure_reasons.galaxy_runners  # noqa: F401
        else:
            from pulsar_failure_reasons import pulsar_hooks

            pulsar_hooks.patch_module(module)
    except Exception as exc:  # a removed or broken plugin must not keep a server from starting
        import logging

        names = ("galaxy.pulsar_failure_reasons", "Galaxy") if in_galaxy else (
            "pulsar.failure_reasons", "Pulsar")
        logging.getLogger(names[0]).warning(
            "pulsar-failure-reasons could not be put into %s, %s goes on without it: %s: %s",
            module.__name__, names[1], type(exc).__name__, exc,
        )


def activate() -> PulsarFailureReasonsFinder:
    """Return the finder on `sys.meta_path`, put there first in place of any stub of the `.pth`."""
    for position, finder in enumerate(sys.meta_path):
        if isinstance(finder, PulsarFailureReasonsFinder):
            return finder
        if type(finder).__name__ == PulsarFailureReasonsFinder.__name__:
            # In place: the import system is walking through this list right now.
            ours = PulsarFailureReasonsFinder()
            sys.meta_path[position] = ours
            return ours
    ours = PulsarFailureReasonsFinder()
    sys.meta_path.insert(0, ours)
    return ours


def start() -> None:
    """Be the entry point of `pulsar_failure_reasons.start`."""
    activate()
