"""Reading a manager's own options, with errors that say what to write instead.

Stock's options are open-ended (``env_*``, ``submit_*`` ...), so an unknown name is never an
error; one that looks like a misspelling of ours is a warning.
"""

from __future__ import annotations

import difflib
import logging
import math
import re
from typing import Any, Collection, FrozenSet, Mapping, Optional

from ..errors import ConfigurationError

log = logging.getLogger("pulsar.failure_reasons.options")

_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
A_YEAR_S = 366 * 24 * 3600.0

_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0"})


class Options:
    """The options of one manager, as ``app.yml`` (typed) or an ini file (text) gives them."""

    def __init__(self, manager_name: str, given: Mapping[str, Any]) -> None:
        self._manager_name = manager_name
        self._given = given

    def choice(self, name: str, allowed: Collection[str], default: str) -> str:
        """Return one of the allowed words.

        YAML reads a bare ``none`` as a word but ``no`` and ``off`` as false, so the value's
        text is compared in lower case. An option without a value (YAML's null, whose text in
        Python is the word "None") is not set.

        Raises:
            ConfigurationError: it is none of them.
        """
        given = self._given.get(name)
        value = default if given is None else str(given).lower()
        if value not in allowed:
            raise self._error(name, f"one of: {', '.join(allowed)}")
        return value

    def seconds(self, name: str, default: float, *, zero: bool = False) -> float:
        """Return a number of seconds, above zero unless ``zero`` is allowed.

        Raises:
            ConfigurationError: it is no such number.
        """
        value = self._given.get(name, default)
        try:
            seconds = math.nan if isinstance(value, bool) else float(value)
        except (TypeError, ValueError):
            seconds = math.nan
        if not (0 <= seconds <= A_YEAR_S) or (seconds == 0 and not zero):
            least = "0 or more" if zero else "above 0"
            raise self._error(name, f"a number of seconds, {least}, at most a year")
        return seconds

    def seconds_or_none(self, name: str) -> Optional[float]:
        """Return a number of seconds, zero allowed; None where the option is not set.

        Raises:
            ConfigurationError: it is no such number.
        """
        return None if self._given.get(name) is None else self.seconds(name, 0.0, zero=True)

    def whole(self, name: str, default: int) -> int:
        """Return a whole number, zero or more.

        Raises:
            ConfigurationError: it is no such number.
        """
        text = str(self._given.get(name, default))
        if not text.isdigit():
            raise self._error(name, "a whole number, 0 or more")
        return int(text)

    def choices(
        self, name: str, allowed: Collection[str], default: Collection[str]
    ) -> FrozenSet[str]:
        """Return some of the allowed words, from a YAML list or a text with commas.

        Raises:
            ConfigurationError: one is not allowed.
        """
        value = self._given.get(name, default)
        words = value.split(",") if isinstance(value, str) else value
        try:
            chosen = frozenset(str(word).strip().lower() for word in words if str(word).strip())
        except TypeError:
            chosen = frozenset({"?"})
        if not chosen <= set(allowed):
            raise self._error(name, f"a list of: {', '.join(allowed)}")
        return chosen

    def flag(self, name: str, default: bool = False) -> bool:
        """Return a yes or no.

        Raises:
            ConfigurationError: it is neither.
        """
        value = str(self._given.get(name, default)).lower()
        if value not in _TRUE | _FALSE:
            raise self._error(name, "true or false")
        return value in _TRUE

    def word(self, name: str) -> Optional[str]:
        """Return a name of letters, digits, ``_``, ``.`` and ``-``; None where it is not set.

        Raises:
            ConfigurationError: it is empty, starts with a hyphen or dot, or has other characters:
                a command could take it for an option, or for two names. Or it is what YAML
                makes of a bare ``no`` or ``on``, whose text would be another name.
        """
        value = self._given.get(name)
        if value is None:
            return None
        text = str(value)
        if isinstance(value, bool) or not _WORD.fullmatch(text):
            raise self._error(name, "a single word")
        return text

    def address(self, name: str) -> Optional[str]:
        """Return a daemon's name or address (``name@host``, ``host:9618``); None where not set.

        Raises:
            ConfigurationError: it is empty or has blanks or control characters.
        """
        value = self._given.get(name)
        if value is None:
            return None
        text = str(value)
        if not re.fullmatch(r"[!-~]+", text) or text.startswith("-"):
            raise self._error(name, "a name or address without blanks")
        return text

    def warn_of_misspellings(self, ours: Collection[str], stock: Collection[str]) -> None:
        """Log a warning for each option that looks like one of ours and is none of stock's."""
        for name in self._given:
            if name in ours or name in stock:
                continue
            near = difflib.get_close_matches(name, ours, n=1, cutoff=0.8)
            if near:
                log.warning(
                    "manager %s: option %r is not known; is %r meant?",
                    self._manager_name, name, near[0],
                )

    def _error(self, name: str, expected: str) -> ConfigurationError:
        return ConfigurationError(
            f"manager {self._manager_name}: option {name} is {self._given.get(name)!r:.80}; "
            f"it must be {expected}"
        )
