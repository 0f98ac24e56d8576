"""The simulated HTCondor (tests/fakes/htcondor2.py) for tests: in this process and in others.

state = tmp_path / "pool"
htcondor2 = load(monkeypatch, state)          # in this process
subprocess.run(..., env=environment(state))   # in another: the same pool
control(...).play(str(state), cluster, "0.5 hold 34 102 over its memory")
stop(state)
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any, Dict

import pytest

FAKES = Path(__file__).resolve().parent / "fakes"


def load(monkeypatch: pytest.MonkeyPatch, state: Path) -> Any:
    """Return the simulated htcondor2 over a state folder; in this test it is ``htcondor2``."""
    monkeypatch.setenv("FAKE_HTCONDOR_STATE", str(state))
    monkeypatch.syspath_prepend(str(FAKES))
    spec = importlib.util.spec_from_file_location("htcondor2", FAKES / "htcondor2.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "htcondor2", module)
    spec.loader.exec_module(module)
    return module


def wheel_installed() -> bool:
    """Tell whether the real bindings are installed behind the simulated ones."""
    others = [path for path in sys.path if Path(path or ".").resolve() != FAKES]
    return PathFinder.find_spec("htcondor2", others) is not None


def control() -> Any:
    """Return what a test does to the pool that no client can: the module fake_htcondor.control."""
    if str(FAKES) not in sys.path:
        sys.path.append(str(FAKES))
    return importlib.import_module("fake_htcondor.control")


def environment(state: Path, **more: str) -> Dict[str, str]:
    """Return the environment in which a process finds the simulated htcondor2 and this pool."""
    path = os.pathsep.join(filter(None, [str(FAKES), os.environ.get("PYTHONPATH", "")]))
    return {**os.environ, "FAKE_HTCONDOR_STATE": str(state), "PYTHONPATH": path, **more}


def stop(state: Path) -> None:
    """End all processes of the pool; fail if one of its runners had a failure of its own."""
    control().stop(str(state))
    assert control().errors(str(state)) == ""
