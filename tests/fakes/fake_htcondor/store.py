"""The state folder: one SQLite file with the job queue, the history and the settings, shared by
all processes.

A job is its ad (a dict of attribute name to ClassAd expression text) and ``extra``, what the
runner has to remember. Whoever changes a job reads, changes and writes it inside ``with
store.change() as queue``.
"""

import contextlib
import json
import os
import sqlite3
import time

from fake_htcondor.expressions import literal, value_of

STATE_VARIABLE = "FAKE_HTCONDOR_STATE"
SETTINGS = {
    # the pool
    "schedd_name": "fake@localhost",
    "owner": "daemon",  # of every job, whoever submits; "root" is refused, as by a real schedd
    "version": "23.9.6",
    "memory_mb": 8192,
    "cpus": 16,  # what a job can ask for and still match
    "first_cluster": 1,
    # accidents
    "schedd": "up",  # up | down
    "collector": "up",  # up | down
    "generation": 1,  # how often the schedd has started: a Schedd of before is stale
    # policies of the site
    "system_periodic_hold": "",
    "system_periodic_hold_reason": "",
    "system_periodic_hold_subcode": 0,
    "system_periodic_remove": "",
    "system_periodic_release": "",
    "startd_hold_memory": False,  # 21/102, as `use policy:Hold_If_Memory_Exceeded`
    "startd_hold_runtime": 0,  # seconds; 21/103, as `use policy:Hold_If_Runtime_Exceeds`
    "cgroup_memory": "",  # "" | "23" (34/0, as 23.9 says it) | "25" (34/102)
    "execute_duration_needs_transfer": True,  # as before 24.0.19
    # times, in seconds
    "policy_interval": 0.2,
    "start_delay": 0.0,
    "image_size_interval": 5.0,
    "vacate_time": 1.0,
    # what to play in every job, see play.py; a job's own FakePlay comes before it
    "play": "",
}


class StateError(Exception):
    """The state folder is missing or a setting is unknown; the message says what to do."""


class Store:
    """One state folder."""

    def __init__(self, path):
        self.path = os.path.abspath(path)
        os.makedirs(self.path, exist_ok=True)
        self._file = os.path.join(self.path, "state.db")
        with contextlib.closing(self._connect()) as connection, connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(
                "CREATE TABLE IF NOT EXISTS settings (name TEXT PRIMARY KEY, value TEXT)"
            )
            for table in ("jobs", "history"):
                connection.execute(
                    "CREATE TABLE IF NOT EXISTS %s (cluster INTEGER, proc INTEGER, ad TEXT, "
                    "extra TEXT, PRIMARY KEY (cluster, proc))" % table
                )

    def _connect(self):
        connection = sqlite3.connect(self._file, timeout=120, isolation_level=None)
        connection.execute("PRAGMA synchronous = OFF")
        return connection

    @contextlib.contextmanager
    def change(self):
        """Yield a Queue; nobody else changes the folder until the end of the block."""
        with contextlib.closing(self._connect()) as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield Queue(self, connection)
                connection.execute("COMMIT")
            except BaseException:
                connection.execute("ROLLBACK")
                raise

    @contextlib.contextmanager
    def look(self):
        """Yield a Queue for reading."""
        with contextlib.closing(self._connect()) as connection:
            yield Queue(self, connection)

    def settings(self):
        """Return all settings, defaults filled in."""
        with self.look() as queue:
            return queue.settings()

    def configure(self, **changes):
        """Change settings; raise StateError on an unknown one."""
        unknown = sorted(set(changes) - set(SETTINGS))
        if unknown:
            raise StateError(
                "unknown settings %s; known: %s" % (", ".join(unknown), ", ".join(sorted(SETTINGS)))
            )
        with self.change() as queue:
            queue.configure(changes)


class Queue:
    """The queue and the history, while they are open."""

    def __init__(self, store, connection):
        self.store = store
        self._connection = connection

    def settings(self):
        """Return all settings, defaults filled in."""
        found = dict(SETTINGS)
        for name, value in self._connection.execute("SELECT name, value FROM settings"):
            found[name] = json.loads(value)
        return found

    def configure(self, changes):
        """Store settings."""
        rows = [(name, json.dumps(value)) for name, value in changes.items()]
        self._connection.executemany("INSERT OR REPLACE INTO settings VALUES (?, ?)", rows)

    def new_cluster(self):
        """Return the next cluster id."""
        highest = 0
        for table in ("jobs", "history"):
            highest = max(
                highest,
                self._connection.execute("SELECT MAX(cluster) FROM %s" % table).fetchone()[0] or 0,
            )
        return max(highest + 1, self.settings()["first_cluster"])

    def get(self, cluster, proc=0):
        """Return a job of the queue, or None."""
        row = self._connection.execute(
            "SELECT cluster, proc, ad, extra FROM jobs WHERE cluster = ? AND proc = ?",
            (cluster, proc),
        ).fetchone()
        return None if row is None else Job(*row)

    def jobs(self):
        """Yield the jobs of the queue by id."""
        for row in self._connection.execute(
            "SELECT cluster, proc, ad, extra FROM jobs ORDER BY cluster, proc"
        ):
            yield Job(*row)

    def history(self):
        """Yield the jobs that have left, the newest first."""
        for row in self._connection.execute(
            "SELECT cluster, proc, ad, extra FROM history ORDER BY rowid DESC"
        ):
            yield Job(*row)

    def put(self, *jobs):
        """Write jobs of the queue."""
        self._write("jobs", jobs)

    def leave(self, job):
        """Move a job from the queue to the history."""
        self.drop(job)
        self._write("history", [job])

    def drop(self, job):
        """Remove a job from the queue without a trace."""
        self._connection.execute(
            "DELETE FROM jobs WHERE cluster = ? AND proc = ?", (job.cluster, job.proc)
        )

    def _write(self, table, jobs):
        rows = [(job.cluster, job.proc, json.dumps(job.ad), json.dumps(job.extra)) for job in jobs]
        self._connection.executemany("INSERT OR REPLACE INTO %s VALUES (?, ?, ?, ?)" % table, rows)


class Job:
    """One job: its ad and what the runner remembers."""

    def __init__(self, cluster, proc, ad, extra="{}"):
        self.cluster, self.proc = cluster, proc
        self.ad = json.loads(ad) if isinstance(ad, str) else ad
        self.extra = json.loads(extra) if isinstance(extra, str) else extra

    def __getitem__(self, name):
        """The value of an attribute, or None."""
        return value_of(self.ad, name)

    def set(self, **values):
        """Set attributes to Python values."""
        for name, value in values.items():
            self.ad[name] = literal(value)

    def drop(self, *names):
        """Remove attributes."""
        for name in names:
            self.ad.pop(name, None)

    @property
    def status(self):
        """JobStatus."""
        return int(self.ad["JobStatus"])

    def enter(self, status):
        """Change JobStatus."""
        self.set(LastJobStatus=self.status, JobStatus=status, EnteredCurrentStatus=int(time.time()))


def open_store(path=None):
    """Return the Store of a folder, by default of that in FAKE_HTCONDOR_STATE; StateError if none
    is named."""
    path = path or os.environ.get(STATE_VARIABLE)
    if not path:
        raise StateError(
            "set %s to the folder in which the simulated pool keeps its state" % STATE_VARIABLE
        )
    return Store(path)
