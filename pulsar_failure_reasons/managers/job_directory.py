"""What a job leaves in its Pulsar job directory, written and read so that nothing is mistaken."""

from __future__ import annotations

import errno
import json
import os
import threading
from typing import Any, Optional

from pulsar.managers.base import JobDirectory


class AtomicJobDirectory(JobDirectory):  # type: ignore[misc]
    """A Pulsar job directory whose metadata files are never half written.

    Stock writes ``final_status`` in place: a server killed in the middle leaves an empty file,
    and then does not start again.
    """

    def store_metadata(self, metadata_name: str, metadata_value: Any, atomic: bool = True) -> None:
        """See Pulsar's; always atomic, also with other server processes on the same folder."""
        # Stock's temporary name is by thread alone, which two workers of a web server share.
        part = f"{metadata_name}.tmp.{os.getpid()}.{threading.get_ident()}"
        try:
            self.write_file(part, json.dumps(metadata_value))
            os.replace(self._job_file(part), self._job_file(metadata_name))
        except OSError:
            self.remove_file(part)
            raise


_ABSENT = frozenset(
    {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EACCES, errno.EPERM, errno.ELOOP}
)


def read_return_code(path: str) -> Optional[int]:
    """Return the integer in the file, None where there is none.

    Raises:
        OSError: whether there is one cannot be told now.
    """
    try:
        with open(path, "rb") as stream:
            return int(stream.read())
    except ValueError:
        return None
    except OSError as error:
        if error.errno in _ABSENT:
            return None
        raise


#: What the job script makes before the tool begins; Pulsar never makes it.
_TRACES = ("working.orig", "outputs.orig", "configs.orig", "metadata/tool_stdout")


def has_begun(job_directory: str) -> bool:
    """Tell whether the job script has left traces here, perhaps those of an earlier attempt."""
    return any(os.path.lexists(os.path.join(job_directory, name)) for name in _TRACES)
