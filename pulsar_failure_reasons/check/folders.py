"""Checks of the folders that Pulsar writes, as the user who checks. Nothing is left in them."""

from __future__ import annotations

import errno
import os
import pwd
import shutil
from typing import Dict, Iterator

from .findings import Finding
from .site import Site

#: Less than this is soon used up by one tool's output.
LITTLE_SPACE_BYTES = 1024**3


def check_folders(site: Site) -> Iterator[Finding]:
    """See whether staging and persistence can be written, and have room."""
    for folder, about in _folders(site).items():
        yield from _one_folder(folder, about)
    if site.config.persistence_directory is None:
        yield Finding("PFR306", "persistence_directory: __none__")


def _folders(site: Site) -> Dict[str, str]:
    """Return each folder once, with what it is for."""
    folders = {
        configured.staging_directory: f"staging of {configured.name}"
        for configured in reversed(site.config.managers)
    }
    if site.config.persistence_directory is not None:
        folders.setdefault(site.config.persistence_directory, "persistence")
    return folders


def _one_folder(folder: str, about: str) -> Iterator[Finding]:
    if not os.path.isdir(folder):
        yield _missing(folder, about)
        return
    status = os.stat(folder)
    if status.st_uid != os.geteuid():
        yield Finding("PFR307", f"{folder} belongs to {_user_name(status.st_uid)}", about)
    why_not = why_not_writable(folder)
    if why_not:
        yield Finding("PFR302", f"{folder}: {why_not}", about)
        return
    yield Finding("PFR301", f"{folder}, mode {status.st_mode & 0o7777:o}", about)
    yield from _room(folder, about)


def _missing(folder: str, about: str) -> Finding:
    why_not = why_not_made(folder)
    if why_not:
        return Finding("PFR304", why_not, about)
    return Finding(
        "PFR303", f"{folder} is not there yet (if Pulsar has run: check in its folder)", about
    )


def why_not_made(folder: str) -> str:
    """Return why this user cannot write in a folder, or make it first; "" where it can."""
    above = folder
    while not os.path.lexists(above):
        above = os.path.dirname(above)
    if not os.path.isdir(above):
        return f"{above} is no folder"
    why_not = why_not_writable(above)
    return f"{above}: {why_not}" if why_not else ""


def why_not_writable(folder: str) -> str:
    """Return why this user cannot make a file in a folder; "" where it can.

    A file without a name is made (Linux's O_TMPFILE), since cleaners of the staging folder trip
    over names they do not expect; where the file system has none, the permissions are looked at.
    """
    try:
        os.close(os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o600))
        return ""
    except (AttributeError, IsADirectoryError):
        pass
    except PermissionError as error:
        return error.strerror or str(error)
    except OSError as error:
        if error.errno != errno.EOPNOTSUPP:
            return error.strerror or str(error)
    effective = os.access in os.supports_effective_ids
    may = os.access(folder, os.W_OK | os.X_OK, effective_ids=effective)
    return "" if may else "its permissions do not allow it"


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


def _room(folder: str, about: str) -> Iterator[Finding]:
    free = shutil.disk_usage(folder).free
    if free < LITTLE_SPACE_BYTES:
        yield Finding(
            "PFR305", f"{folder}: {free / 1024**2:.0f} MB are free", about,
            numbers={"free_bytes": free},
        )
