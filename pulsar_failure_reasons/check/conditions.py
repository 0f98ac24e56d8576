"""A condition of a resubmit rule: the names in it, and when it is true.

Galaxy evaluates "a fairly safe subset of Python" (its sample job_conf.yml). Whether a condition
can be true is tried out on the situations in which Galaxy evaluates it.
"""

from __future__ import annotations

import ast
from typing import Any, Dict, FrozenSet, Iterator, List, Mapping, Optional

#: Galaxy's runner states, each of which makes one of its names true.
RUNNER_STATES = (
    "walltime_reached", "memory_limit_reached", "unknown_error", "tool_detected_failure",
    "tool_timelimit_reached",
)
#: Our conditions, with the runner state that goes with each on the wire.
RUNNER_STATE_OF_CAUSE: Mapping[str, str] = {
    "node_failure": "unknown_error", "preempted": "unknown_error",
    "cancelled_externally": "unknown_error", "disk_limit_reached": "unknown_error",
    "cpu_time_reached": "walltime_reached", "launch_error": "unknown_error",
}
_INFRASTRUCTURE = ("node_failure", "preempted")
_ATTEMPTS = (1, 2, 3, 4, 5, 10, 100)
_SECONDS = (0.0, 60.0, 3600.0, 1e6)

#: What is evaluated here; a condition with anything else (a call) is taken to be fine.
_PLAIN = (
    ast.Expression, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.Compare, ast.Eq,
    ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn, ast.Is, ast.IsNot, ast.BinOp,
    ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Mod, ast.Name, ast.Load, ast.Constant, ast.List,
)
#: What Galaxy does not evaluate although Python would (25.1, 26.1: state_handlers/_safe_eval.py).
_REFUSED = (
    ast.Lambda, ast.IfExp, ast.Dict, ast.Set, ast.ListComp, ast.SetComp, ast.DictComp,
    ast.GeneratorExp, ast.Await, ast.Yield, ast.YieldFrom, ast.JoinedStr, ast.Starred, ast.USub,
    ast.UAdd, ast.Tuple, ast.Slice, ast.FloorDiv, ast.MatMult, ast.NamedExpr,
)


def why_no_condition(text: str) -> Optional[str]:
    """Return why Galaxy would not evaluate a condition, None where it would."""
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError) as error:
        return str(getattr(error, "msg", error))
    for node in ast.walk(tree):
        if isinstance(node, _REFUSED):
            return f"Galaxy does not evaluate {type(node).__name__}"
    return None


def names_in(text: str) -> List[str]:
    """Return the names of a condition, but for those that are called, in their order."""
    tree = ast.parse(text.strip(), mode="eval")
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    names = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and id(n) not in called]
    names.sort(key=lambda name: (name.lineno, name.col_offset))
    return list(dict.fromkeys(name.id for name in names))


def situations(ours: bool) -> Iterator[Dict[str, Any]]:
    """Yield the values of all names in the situations that count; ``ours``: with our causes."""
    causes = [*RUNNER_STATE_OF_CAUSE] if ours else []
    for attempt in _ATTEMPTS:
        for seconds in _SECONDS:
            for state in RUNNER_STATES:
                yield _situation(state, None, attempt, seconds)
            for cause in causes:
                yield _situation(RUNNER_STATE_OF_CAUSE[cause], cause, attempt, seconds)


def cancelled_situations() -> Iterator[Dict[str, Any]]:
    """Yield the situations of a job that somebody cancelled outside Galaxy."""
    for attempt in _ATTEMPTS:
        yield _situation("unknown_error", "cancelled_externally", attempt, 60.0)


def _situation(
    state: str, cause: Optional[str], attempt: int, seconds: float
) -> Dict[str, Any]:
    limits = cause is None and state != "unknown_error"
    return {
        **{name: name == state for name in RUNNER_STATES},
        **{name: name == cause for name in RUNNER_STATE_OF_CAUSE},
        "infrastructure_failure": cause in _INFRASTRUCTURE,
        "any_failure": True, "any_potential_job_failure": True,
        "attempt": attempt, "seconds_running": seconds, "seconds_since_queued": seconds,
        "used_memory_bytes": int(seconds * 1e6), "requested_memory_bytes": 4 * 2**30,
        "used_walltime_s": int(seconds), "requested_walltime_s": 3600 if limits else 0,
        "failed_node": "node1" if cause in _INFRASTRUCTURE else "",
    }


def is_true_in(text: str, cases: Iterator[Dict[str, Any]]) -> Optional[bool]:
    """Tell whether a condition is true in any of these situations; None where it is not tried."""
    tree = ast.parse(text.strip(), mode="eval")
    if not all(isinstance(node, _PLAIN) for node in ast.walk(tree)):
        return None
    compiled = compile(tree, "<condition>", "eval")
    for values in cases:
        try:
            # Nothing but names, constants and operators in it: see _PLAIN.
            if eval(compiled, {"__builtins__": {}}, values):
                return True
        except Exception:  # a comparison of what cannot be compared is true nowhere
            continue
    return False


def unknown_names(text: str, known: FrozenSet[str]) -> List[str]:
    """Return the names of a condition that are none of the known ones."""
    return [name for name in names_in(text) if name not in known]
