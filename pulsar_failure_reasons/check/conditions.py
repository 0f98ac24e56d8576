"""A condition of a resubmit rule: the names in it, and when it is true.

Galaxy evaluates "a fairly safe subset of Python" (its sample job_conf.yml). Whether a condition
can be true is tried out on the situations in which Galaxy evaluates it.
"""

from __future__ import annotations

import ast
import contextlib
import itertools
import math
from typing import Any, Dict, FrozenSet, Iterator, List, Mapping, Optional, Sequence

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
#: The names that have values, in the situations that tell nothing of them.
_UNTOLD = {
    "used_memory_bytes": 0, "requested_memory_bytes": 0, "used_walltime_s": 0,
    "requested_walltime_s": 0, "failed_node": "",
}
_SECONDS = ("seconds_running", "seconds_since_queued")
_ATTEMPTS = (1, 2, 3, 4, 5, 10, 100)
_AMOUNTS = (0, 1, 60, 3600, 10**18)
_NODES = ("", "node1")
#: Above so many combinations of values a condition is not tried.
_MOST_TRIED = 100_000

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
    """Yield the values of names in the situations that count; ``ours``: with our causes.

    A name that is left out may have any value.
    """
    untold = {} if ours else _UNTOLD
    for state in RUNNER_STATES:
        yield {**_situation(state), **untold}
    if ours:
        for cause, state in RUNNER_STATE_OF_CAUSE.items():
            yield _situation(state, cause)
        # Lost, or the DRM's own file transfer: no name is theirs alone.
        yield {**_situation("unknown_error"), "infrastructure_failure": True}


def cancelled_situations() -> Iterator[Dict[str, Any]]:
    """Yield the situations of a job that somebody cancelled outside Galaxy."""
    yield _situation("unknown_error", "cancelled_externally")


def _situation(state: str, cause: Optional[str] = None) -> Dict[str, Any]:
    return {
        **{name: name == state for name in RUNNER_STATES},
        **{name: name == cause for name in RUNNER_STATE_OF_CAUSE},
        "infrastructure_failure": cause in _INFRASTRUCTURE,
        "any_failure": True, "any_potential_job_failure": True,
    }


def is_true_in(text: str, cases: Iterator[Dict[str, Any]]) -> Optional[bool]:
    """Tell whether a condition is true in any of these situations; None where it is not tried.

    Names with values are tried with the numbers and texts that the condition has itself, and with
    those beside them.
    """
    tree = ast.parse(text.strip(), mode="eval")
    if not all(isinstance(node, _PLAIN) for node in ast.walk(tree)):
        return None
    compiled = compile(tree, "<condition>", "eval")
    values = _values_to_try(tree)
    if math.prod(map(len, values.values())) > _MOST_TRIED:
        return None
    for case in cases:
        free = [name for name in values if name not in case]
        for combination in itertools.product(*(values[name] for name in free)):
            if _is_true(compiled, {**case, **dict(zip(free, combination))}):
                return True
    # What arithmetic makes of a name may be true of a value that was not tried.
    return None if _computes(tree) else False


def _is_true(compiled: Any, values: Dict[str, Any]) -> bool:
    try:
        # Nothing but names, constants and operators in it: see _PLAIN.
        return bool(eval(compiled, {"__builtins__": {}}, values))
    except Exception:  # a comparison of what cannot be compared is true nowhere
        return False


def _values_to_try(tree: ast.AST) -> Dict[str, Sequence[Any]]:
    """Return what to try for each name in the condition that has a value."""
    constants = list(_constants(tree))
    texts = [value for value in constants if isinstance(value, str)]
    numbers = {
        near for value in constants
        if isinstance(value, (int, float)) and math.isfinite(value)
        for near in (math.floor(value) - 1, math.floor(value), value, math.floor(value) + 1)
    }
    amounts = sorted({*_AMOUNTS, *(number for number in numbers if number >= 0)})
    attempts = sorted({*_ATTEMPTS, *(n for n in numbers if isinstance(n, int) and n >= 1)})
    found: Dict[str, Sequence[Any]] = {}
    for name in (node.id for node in ast.walk(tree) if isinstance(node, ast.Name)):
        if name == "attempt":
            found[name] = attempts
        elif name == "failed_node":
            found[name] = [*_NODES, *texts]
        elif name in _UNTOLD or name in _SECONDS:
            found[name] = amounts
    return found


def _constants(tree: ast.AST) -> Iterator[Any]:
    """Yield the constants of a condition, with what its arithmetic makes of constants alone."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            yield node.value
        elif isinstance(node, ast.BinOp) and not _names_of(node):
            with contextlib.suppress(Exception):  # Galaxy evaluates it, and fails as we do
                code = compile(ast.Expression(node), "<constant>", "eval")
                yield eval(code, {"__builtins__": {}}, {})


def _computes(tree: ast.AST) -> bool:
    return any(isinstance(node, ast.BinOp) and _names_of(node) for node in ast.walk(tree))


def _names_of(tree: ast.AST) -> List[str]:
    return [node.id for node in ast.walk(tree) if isinstance(node, ast.Name)]


def unknown_names(text: str, known: FrozenSet[str]) -> List[str]:
    """Return the names of a condition that are none of the known ones."""
    return [name for name in names_in(text) if name not in known]
