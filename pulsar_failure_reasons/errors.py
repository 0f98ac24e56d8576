"""The exceptions of this package.

::

    FailureReasonsError
    ├── ConfigurationError          an option has a value that cannot work
    ├── RecordError                 a stored ``runner_state`` file cannot be read
    ├── LedgerError                 the failure ledger's database cannot be used
    │   └── LedgerNotMadeError      its place is there, and no ledger in it yet
    ├── MirrorError                 two trees cannot be compared: one cannot be read
    └── DrmError                    something about the DRM
        ├── OutputParseError        it answered, and we do not understand the answer
        ├── DrmUnreachableError     it did not answer: down, hanging, not installed
        │   └── CommandNotFoundError    the host behind a shell plugin has no such command
        ├── AccountingDisabledError it keeps no accounting, so asking again is useless
        └── SubmissionRefusedError  it answered a submission with no

Everything that ends a query without an answer is a :class:`DrmError`: a caller that only
has to leave the last status standing catches that one.
"""

from __future__ import annotations


class FailureReasonsError(Exception):
    """Base of every exception that this package raises on purpose."""


class ConfigurationError(FailureReasonsError):
    """An option has a value that cannot work; the message names option and allowed values."""


class RecordError(FailureReasonsError):
    """A stored failure reason cannot be read back."""


class MirrorError(FailureReasonsError):
    """Two trees cannot be compared; the message says which file, and why."""


class LedgerError(FailureReasonsError):
    """The database of the failure ledger cannot be used; the message names it and what to do."""


class LedgerNotMadeError(LedgerError):
    """There is no ledger in a place in which one can be: no job has ended, or it is elsewhere."""


class DrmError(FailureReasonsError):
    """The DRM gave no answer that can be used."""


class OutputParseError(DrmError):
    """Text from a DRM that has none of the forms we know."""


class DrmUnreachableError(DrmError):
    """The DRM did not answer: its controller is down, the command hung or is not there."""


class CommandNotFoundError(DrmUnreachableError):
    """The host was reached, and has no such command: nothing was asked of the DRM."""


class AccountingDisabledError(DrmError):
    """The DRM says that it keeps no accounting."""


class SubmissionRefusedError(DrmError):
    """The DRM refused a submission; the message holds its own words."""
