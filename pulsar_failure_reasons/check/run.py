"""Running checks one after the other: one that fails is a finding, and the others go on."""

from __future__ import annotations

from typing import Callable, Iterable, Iterator, Sequence, Tuple, TypeVar

from ..reason import clean_text
from .findings import Finding

Subject = TypeVar("Subject")
#: A check's name for people, and the check.
Check = Tuple[str, Callable[[Subject], Iterable[Finding]]]


def run_checks(checks: Sequence[Check[Subject]], subject: Subject) -> Iterator[Finding]:
    """Yield what each check finds, as it finds it. Never raises for a mistake of a check."""
    for name, check in checks:
        try:
            yield from check(subject)
        except Exception as error:
            yield crashed(name, error)


def crashed(name: str, error: Exception) -> Finding:
    """Return the finding for a check that failed."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = ""
    if trace is not None:
        file_name = trace.tb_frame.f_code.co_filename.rpartition("/")[2]
        where = f" ({file_name}, line {trace.tb_lineno})"
    said = clean_text(str(error)) or "no message"
    return Finding(
        "PFR199", f"the check of {name} failed: {type(error).__name__}: {said}{where}"
    )
