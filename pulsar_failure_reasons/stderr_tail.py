"""The last part of a file that may be huge, still growing, binary, or not there."""

from __future__ import annotations

import os

MAX_TAIL_BYTES = 65536


def read_tail(path: str, max_bytes: int = MAX_TAIL_BYTES) -> str:
    """Return the last ``max_bytes`` of a file, from the start of a line on.

    A missing or unreadable file, a directory and a path that is none are "": there is nothing
    that the DRM wrote. Bytes that are no UTF-8 become U+FFFD. A single line longer than
    ``max_bytes`` is returned cut rather than not at all.
    """
    if not path or max_bytes <= 0:
        return ""
    try:
        # A FIFO would block the open for ever; only what can be sought is read.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            start = max(0, size - max_bytes)
            # One byte more tells whether the cut falls on the start of a line.
            stream.seek(max(0, start - 1))
            raw = stream.read(max_bytes + 1)
    except (OSError, ValueError):
        return ""
    if start > 0:
        before, newline, after = raw.partition(b"\n")
        raw = after if newline and after else raw[1:]
    return raw[:max_bytes].decode("utf-8", errors="replace")
