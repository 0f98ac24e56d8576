"""Where the commands of a DRM run: on this host, or wherever a shell plugin leads.

What looks at a DRM by its commands takes one of these: :class:`LocalCommands` here,
:class:`pulsar_failure_reasons.managers.cli_shell.Link` for Pulsar's shell plugins.
"""

from __future__ import annotations

import os
import shutil
from typing import Callable, Dict, Mapping, Optional, Protocol, Sequence

from ..execute import CommandResult, run

#: Returns an environment in which a DRM's commands answer as its parsers expect.
CleanEnvironment = Callable[[Mapping[str, str]], Dict[str, str]]


class Commands(Protocol):
    """A host on which commands can be run. Every method may take seconds."""

    def run(self, argv: Sequence[str], clean: Optional[CleanEnvironment] = None) -> CommandResult:
        """Run a command to its end and return what it left, whatever its exit code.

        Args:
            argv: The command.
            clean: For questions to a DRM; None keeps the environment as it is, which a
                submission needs.

        Raises:
            DrmUnreachableError: the command could not be run, or did not end in time.
        """

    def has(self, command: str) -> bool:
        """Tell whether a command is there.

        Raises:
            DrmUnreachableError: the host does not answer.
        """

    def user(self) -> str:
        """Return whose jobs we submit there: a uid or user name.

        Raises:
            DrmUnreachableError: the host does not answer.
        """


class LocalCommands:
    """Commands of this host, started without a shell (see :class:`Commands`).

    Args:
        timeout_s: How long a command may take.
    """

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s

    def run(self, argv: Sequence[str], clean: Optional[CleanEnvironment] = None) -> CommandResult:
        """See :class:`Commands`."""
        env = None if clean is None else clean(os.environ)
        return run(argv, timeout_s=self._timeout_s, env=env)

    def has(self, command: str) -> bool:
        """See :class:`Commands`."""
        return shutil.which(command) is not None

    def user(self) -> str:
        """See :class:`Commands`: a uid, which needs no look-up by name."""
        return str(os.geteuid())
