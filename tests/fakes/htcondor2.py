"""A drop-in ``htcondor2`` over a simulated pool: put this folder first on ``sys.path``.

The pool's state is the folder in the environment variable ``FAKE_HTCONDOR_STATE``; processes with
the same folder see the same pool. Schedd and Collector are simulated. JobEventLog, Submit, the
enums, HTCondorException and classad2 are the real ones where the wheel ``htcondor`` is installed
behind this folder, else small substitutes. See docs/fake-htcondor2.md.
"""

import importlib.util
import os
import sys
from importlib.machinery import PathFinder

HERE = os.path.dirname(os.path.abspath(__file__))
SIMULATED = True  # the wheel's module has no such name
NAMES = (
    "JobEventType",
    "JobAction",
    "JobStatus",
    "DaemonType",
    "QueryOpt",
    "TransactionFlag",
    "HTCondorException",
    "Submit",
    "SubmitResult",
    "JobEvent",
    "JobEventLog",
    "ClassAd",
    "ExprTree",
)


def _load_wheel():
    """Return the wheel's module, which lies behind this one on sys.path, or None."""
    behind = [path for path in sys.path if os.path.abspath(path or ".") != HERE]
    spec = PathFinder.find_spec(__name__, behind)
    if spec is None or spec.loader is None or spec.submodule_search_locations is None:
        return None
    if not os.path.isfile(os.environ.setdefault("CONDOR_CONFIG", "/dev/null")):
        os.environ["CONDOR_CONFIG"] = "/dev/null"
    module = importlib.util.module_from_spec(spec)
    ours = sys.modules[__name__]
    sys.modules[__name__] = module  # its own modules import each other by this name
    try:
        spec.loader.exec_module(module)
    except ImportError:
        return None
    finally:
        sys.modules[__name__] = ours
    return module


class _Kit:
    """The classes that the simulated ones use."""


def _kit(wheel):
    if wheel is not None:
        sources = (wheel, wheel.classad)
    else:
        from fake_htcondor import small, small_log

        sources = (small, small_log)
        sys.modules.setdefault("classad2", small)
    kit = _Kit()
    for name in NAMES:
        setattr(kit, name, next(getattr(one, name) for one in sources if hasattr(one, name)))
    return kit


if HERE not in sys.path:  # loaded by its file name
    sys.path.append(HERE)

from fake_htcondor import client as _client  # noqa: E402

WHEEL = _load_wheel()  # the real module, for whoever needs both
_made_of = _kit(WHEEL)
if WHEEL is not None:
    __path__ = WHEEL.__path__
    globals().update(
        {name: value for name, value in vars(WHEEL).items() if not name.startswith("_")}
    )
else:
    globals().update({name: value for name, value in vars(_made_of).items()})
    from fake_htcondor import small as classad  # noqa: F401

    param = {}

    def version():
        """The version of these bindings."""
        return "$CondorVersion: 25.14.1 simulated $"

    def reload_config(*_):
        """There is no configuration."""


Schedd, Collector = _client.bind(_made_of)
ALIASES = {
    "QueryOpts": "QueryOpt",
    "TransactionFlags": "TransactionFlag",
    "DaemonTypes": "DaemonType",
}
globals().update({alias: getattr(_made_of, name) for alias, name in ALIASES.items()})
