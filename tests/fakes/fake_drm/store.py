"""The state folder: one JSON file per job, a lock, a counter, and a log of the commands.

    settings.json    see settings.py
    commands.log     one line per command: real time, a tab, argv as JSON
    jobs/7.json      the record of job 7
    spool/7.script   its script; 7.env.json is its environment
    next_id, lock    a counter and what writers flock
    epoch            when the folder was first used
    stopped          if it exists, no runner starts and running ones end their jobs and themselves

Readers take no lock: files are replaced atomically, so each record is whole. Whoever changes a
record reads, changes and writes it inside ``with store.lock()``.
"""

import fcntl
import json
import os
import time

from fake_drm import settings as settings_module
from fake_drm.clock import Clock


class Store:
    """One state folder."""

    def __init__(self, path):
        self.path = path
        self._jobs = os.path.join(path, "jobs")
        self._spool = os.path.join(path, "spool")
        for folder in (self._jobs, self._spool):
            if not os.path.isdir(folder):
                os.makedirs(folder, exist_ok=True)
        self._epoch = self._read_epoch()
        self._settings_seen = None
        self.reload()

    def reload(self):
        """Read the settings if they changed (a runner lives longer than they do)."""
        try:
            found = os.stat(os.path.join(self.path, "settings.json"))
            seen = (found.st_mtime_ns, found.st_ino)
        except FileNotFoundError:
            seen = (0, 0)
        if seen != self._settings_seen:
            self.settings = settings_module.load(self.path)
            self.clock = Clock(self.settings, self._epoch)
            self._settings_seen = seen

    def _read_epoch(self):
        """When the folder was first used; the simulated clock starts there."""
        path = os.path.join(self.path, "epoch")
        try:
            with open(path) as handle:
                return float(handle.read())
        except (FileNotFoundError, ValueError):
            now = time.time()
            _replace(path, repr(now))
            return now

    def lock(self):
        """Context manager: the only writer until it ends."""
        return _Lock(os.path.join(self.path, "lock"))

    def new_ids(self, count):
        """Reserve ``count`` ids in a row and return the first. Call it inside the lock."""
        path = os.path.join(self.path, "next_id")
        try:
            with open(path) as handle:
                first = int(handle.read())
        except FileNotFoundError:
            first = int(self.settings["first_job_id"])
        _replace(path, str(first + count))
        return first

    def read(self, job_id):
        """Return the record of one job, or None if there is none."""
        try:
            with open(os.path.join(self._jobs, "%d.json" % job_id), "rb") as handle:
                return json.loads(handle.read())
        except FileNotFoundError:
            return None

    def write(self, record):
        """Store a record under its ``id``, atomically."""
        _replace(
            os.path.join(self._jobs, "%d.json" % record["id"]),
            json.dumps(record, separators=(",", ":")),
        )

    def all(self):
        """Return every record, by id."""
        records = []
        for name in os.listdir(self._jobs):
            if name.endswith(".json"):
                record = self.read(int(name[:-5]))
                if record is not None:
                    records.append(record)
        records.sort(key=lambda record: record["id"])
        return records

    def array(self, array_id):
        """Return the records of one array's elements, by id; they have neighbouring ids."""
        first = self.read(array_id)
        if first is None or first["array_id"] is None:
            return []
        return [
            record
            for record in map(self.read, range(array_id, array_id + first["array_size"]))
            if record
        ]

    def option(self, record, name):
        """The value of a setting for this job: its own option, else the folder's setting."""
        if name in record["options"]:
            return record["options"][name]
        return self.settings.get(name)

    def spool_path(self, job_id, suffix):
        """Where a file that belongs to a job lies, such as ``script``."""
        return os.path.join(self._spool, "%d.%s" % (job_id, suffix))

    @property
    def stopped(self):
        """True once ``stop_all`` was asked for."""
        return os.path.exists(os.path.join(self.path, "stopped"))

    def set_stopped(self, value):
        """Let runners start (False), or make them end their jobs and themselves (True)."""
        path = os.path.join(self.path, "stopped")
        if value:
            open(path, "w").close()
        elif os.path.exists(path):
            os.unlink(path)

    def log_command(self, argv):
        """Append one line to ``commands.log``: real time, a tab, argv as JSON."""
        line = "%.6f\t%s\n" % (time.time(), json.dumps(argv))
        descriptor = os.open(
            os.path.join(self.path, "commands.log"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644
        )
        try:
            os.write(descriptor, line.encode())
        finally:
            os.close(descriptor)


class _Lock:
    def __init__(self, path):
        self._path = path
        self._descriptor = -1

    def __enter__(self):
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        return self

    def __exit__(self, *_):
        os.close(self._descriptor)


def _replace(path, text):
    temporary = "%s.%d" % (path, os.getpid())
    with open(temporary, "w") as handle:
        handle.write(text)
    os.replace(temporary, path)
