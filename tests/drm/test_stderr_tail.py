"""The tail of a file that anything may have been written to."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pulsar_failure_reasons.stderr_tail import read_tail


@pytest.mark.parametrize(
    "content, max_bytes, tail",
    [
        pytest.param(b"", 10, "", id="empty"),
        pytest.param(b"one\ntwo\n", 100, "one\ntwo\n", id="whole"),
        pytest.param(b"one\ntwo\n", 8, "one\ntwo\n", id="exactly"),
        pytest.param(b"one\ntwo\n", 6, "two\n", id="cut_at_a_line"),
        pytest.param(b"one\ntwo\n", 4, "two\n", id="cut_falls_on_a_line"),
        pytest.param(b"x" * 50, 10, "x" * 10, id="one_long_line"),
        pytest.param(b"x" * 50 + b"\n", 10, "x" * 9 + "\n", id="one_long_line_with_end"),
        pytest.param(b"a\n\xff\xfe b\n", 100, "a\n\ufffd\ufffd b\n", id="no_utf8"),
    ],
)
def test_tail(tmp_path: Path, content: bytes, max_bytes: int, tail: str) -> None:
    """The tail starts at a line, unless one line alone is longer."""
    path = tmp_path / "stderr"
    path.write_bytes(content)
    assert read_tail(str(path), max_bytes) == tail


def test_what_cannot_be_read_is_empty(tmp_path: Path) -> None:
    """No file, a folder, a pipe that nobody writes to, no path: nothing was said."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for path in (tmp_path / "missing", tmp_path, fifo):
        assert read_tail(str(path)) == ""
    assert read_tail("") == ""
    assert read_tail("a\x00b") == ""
