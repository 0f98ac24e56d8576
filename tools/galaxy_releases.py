"""The releases of Galaxy that the tests run, and what their environments hold."""

from __future__ import annotations

from typing import Dict, Tuple

import interpreters

#: Galaxy 25.1 and 26.1 need it.
OLDEST_PYTHON: interpreters.Version = (3, 10)
# galaxy-app asks for any version of these, and a newer one does not fit it.
_PARTS = ("app", "auth", "config", "data", "files", "job-execution", "job-metrics", "navigation",
          "objectstore", "schema", "tool-shed-schema", "tool-util", "tool-util-models", "tours",
          "util", "web-framework", "web-stack")
_FOR_TESTS = ("hypothesis", "psycopg2-binary", "pytest>=8", "pytest-xdist")


def _galaxy(version: str) -> Tuple[str, ...]:
    return tuple("galaxy-%s==%s" % (part, version) for part in _PARTS)


REQUIREMENTS: Dict[str, Tuple[str, ...]] = {
    # galaxy-web-apps: for one run of the web server.
    "galaxy-26.1": (*_galaxy("26.1.2"), "galaxy-web-apps==26.1.2",
                    "total-perspective-vortex==3.3.0", *_FOR_TESTS),
    # The newest TPV that writes `resubmit` in its old form.
    "galaxy-25.1": (*_galaxy("25.1.3"), "total-perspective-vortex==3.2.1", *_FOR_TESTS),
}


def interpreter(python: str) -> str:
    """Return that Python, or another of this machine if it is too old for Galaxy.

    Raises:
        SystemExit: there is none.
    """
    if interpreters.MAIN >= OLDEST_PYTHON:
        return python
    found = interpreters.find()
    newer = [found[version] for version in sorted(found) if version >= OLDEST_PYTHON]
    if not newer:
        raise SystemExit("Galaxy needs Python %d.%d or newer; none found" % OLDEST_PYTHON)
    return newer[0]
