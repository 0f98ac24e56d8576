"""Native specifications: options for the DRM's submit command, as one text.

They come from ``app.yml`` (``native_specification``) or with a job (Galaxy's
``submit_native_specification``).
"""

from __future__ import annotations

import shlex
from typing import Any, List, Optional

from ..errors import ConfigurationError


def split_native_specification(manager_name: str, text: Any) -> List[str]:
    """Return a native specification as options; none for None.

    Raises:
        ConfigurationError: it is no text (YAML makes lists and numbers too), or its quotes do
            not match.
    """
    if text and not isinstance(text, str):
        raise ConfigurationError(
            f"manager {manager_name}: option native_specification is {text!r:.80}; it must be one "
            "text of options, such as '--time=60 --mem=4G'"
        )
    try:
        return shlex.split(text or "")
    except ValueError as error:
        raise ConfigurationError(
            f"manager {manager_name}: native_specification {text!r:.200} cannot be split into "
            f"options: {error}; check its quotes"
        ) from error


def submitted_native_specification(job_directory: Any) -> Optional[str]:
    """Return the native specification that a job came with, None where it came without."""
    launch_config = job_directory.load_metadata("launch_config") or {}
    submit_params = launch_config.get("submit_params") or {}
    text = submit_params.get("native_specification")
    return None if text is None else str(text)
