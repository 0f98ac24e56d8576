"""Reading single attributes of events and job ads, whatever stands in for their values."""

from __future__ import annotations

import math
from enum import Enum
from typing import Any, Mapping, Optional

#: Attributes of one event or ad. ``Any``: what comes from the bindings has no types.
Attributes = Mapping[str, Any]


_PLAIN = (str, int, float, bool)


def plain(value: Any) -> Any:
    """Return a ClassAd value as str, int, float, bool or None (undefined, error, unevaluated).

    ``classad2.Value.Undefined`` is an IntEnum and equals 2: taken for a number it would be a
    hold reason code.
    """
    if type(value) in _PLAIN:
        return value
    if isinstance(value, Enum):
        named_value = type(value).__name__ == "Value"
        return int(value) if isinstance(value, int) and not named_value else None
    return value if isinstance(value, _PLAIN) else None


class Reader:
    """The attributes of one event or ad by name, in any case, as HTCondor compares them."""

    def __init__(self, attributes: Attributes):
        self._values = {str(name).lower(): value for name, value in attributes.items()}

    def whole(self, name: str) -> Optional[int]:
        """Return a number as int; None where there is none."""
        value = plain(self._values.get(name.lower()))
        if isinstance(value, bool):
            return None
        if isinstance(value, str):
            try:
                return int(value)
            except ValueError:
                return None
        if isinstance(value, float):
            return int(value) if math.isfinite(value) else None
        return value if isinstance(value, int) else None

    def text(self, name: str) -> Optional[str]:
        """Return a text; None where there is none or it is empty."""
        value = plain(self._values.get(name.lower()))
        return value if isinstance(value, str) and value.strip() else None

    def flag(self, name: str) -> Optional[bool]:
        """Return a truth value; None where there is none."""
        value = plain(self._values.get(name.lower()))
        return value if isinstance(value, bool) else None

    def is_set(self, name: str) -> bool:
        """Tell whether there is any value or expression but undefined and false."""
        value = self._values.get(name.lower())
        if value is None or (isinstance(value, Enum) and plain(value) is None):
            return False
        return str(value).strip().lower() not in ("", "false", "undefined", "error", "0")
