"""Debian's Chromium without a screen, for pages that we write: what a reader would see of them."""

from __future__ import annotations

import io
import os
import shutil
import signal
import struct
import subprocess
import tempfile
import zlib
from pathlib import Path
from typing import List, NamedTuple, Optional, Sequence, Tuple

from tests.real.processes import HarnessError

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--hide-scrollbars", "--enable-logging=stderr",
    # Nothing is to be fetched: a page that opens offline finds nothing missing.
    "--host-resolver-rules=MAP * ~NOTFOUND",
)
#: Of the page's own clock, which runs ahead while nothing happens.
PAGE_TIME_MS = 10_000
TIMEOUT_S = 600


class Seen(NamedTuple):
    """The page after its scripts ran: its DOM as HTML, and what it wrote to the console."""

    dom: str
    console: List[str]


def why_missing() -> Optional[str]:
    """Return why no page can be looked at here and what to do, or None if it can."""
    if program() is None:
        return "chromium not found: run python -m tests.real.install chromium"
    return None


def program() -> Optional[str]:
    """Return the path of a Chromium, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def look(page: Path, *, dark: bool = False) -> Seen:
    """Open a page and return what became of it."""
    done = _run(page, ["--dump-dom"], dark)
    console = [line for line in done[1].splitlines() if "CONSOLE" in line]
    return Seen(done[0], console)


def background(page: Path, *, dark: bool = False) -> Tuple[int, int, int]:
    """Return the colour of the page's first pixel, red, green and blue."""
    with tempfile.TemporaryDirectory() as folder:
        picture = Path(folder) / "page.png"
        _run(page, [f"--screenshot={picture}", "--window-size=400,300"], dark)
        return first_pixel(picture.read_bytes())


def first_pixel(png: bytes) -> Tuple[int, int, int]:
    """Return the first pixel of a PNG of 8-bit RGB or RGBA (PNG specification, 9.2).

    It has neither a pixel above it nor one on its left, so no filter changes it.
    """
    depth, kind = png[24], png[25]
    if png[:8] != b"\x89PNG\r\n\x1a\n" or depth != 8 or kind not in (2, 6):
        raise HarnessError(f"not a PNG of 8-bit RGB: {png[:32]!r}")
    data, chunks = b"", io.BytesIO(png[8:])
    while True:
        head = chunks.read(8)
        if len(head) < 8:
            break
        length, name = struct.unpack(">I4s", head)
        content = chunks.read(length + 4)[:length]  # behind it is its checksum
        data += content if name == b"IDAT" else b""
    red, green, blue = zlib.decompressobj().decompress(data, 4)[1:4]
    return red, green, blue


def _run(page: Path, options: Sequence[str], dark: bool) -> Tuple[str, str]:
    """Run Chromium with a profile of its own; return its two outputs."""
    browser = program()
    if browser is None:
        raise HarnessError(why_missing())
    profile = tempfile.mkdtemp()
    scheme = ["--blink-settings=preferredColorScheme=0"] if dark else []
    argv = [browser, *FLAGS, *scheme, f"--user-data-dir={profile}",
            f"--virtual-time-budget={PAGE_TIME_MS}", *options, page.as_uri()]
    child = subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, errors="replace", start_new_session=True, env={**os.environ, "HOME": profile},
    )
    try:
        out, err = child.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        raise HarnessError(f"Chromium took longer than {TIMEOUT_S} s for {page}") from None
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)  # its own session: it and its children
            child.wait()
        shutil.rmtree(profile, ignore_errors=True)
    if child.returncode != 0:
        raise HarnessError(f"Chromium failed ({child.returncode}): {err[-800:]}")
    return out, err
