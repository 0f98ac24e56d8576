"""Skip a test whose real part is missing, or fail it where the parts are demanded.

``REQUIRE_REAL=1`` (CI sets it) turns each such skip into a failure, so that a broken install step
cannot pass as a green run.
"""

from __future__ import annotations

import os
from typing import Optional

import pytest


def require_real(name: str, why_missing: Optional[str]) -> None:
    """Skip (or, with ``REQUIRE_REAL=1``, fail) the calling test if the real part is missing.

    Args:
        name: the part, as a reader knows it ("Slurm 24.11").
        why_missing: why it cannot be used here and what to do; None means that it is there.
    """
    if why_missing is None:
        return
    message = f"real {name} is missing: {why_missing}"
    if os.environ.get("REQUIRE_REAL") == "1":
        pytest.fail(f"{message} (REQUIRE_REAL=1 demands it)", pytrace=False)
    pytest.skip(message)
