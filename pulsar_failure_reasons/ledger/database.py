"""The ledger's database: opened, made where it is new, written and pruned.

A connection is opened for each batch and closed behind it: a file that an admin has moved away is
seen, and nothing is held between ends that may be hours apart.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import sqlite3
import time
from typing import Any, Dict, Iterator, List, Optional, Sequence
from urllib.parse import quote

from ..errors import LedgerError, LedgerNotMadeError
from .entry import DAY_S, HOUR_S, HOURS_KEPT_S, Entry
from .schema import SCHEMA_VERSION, counted, ends, failures, metadata, version
from .settings import shown, sqlite_path

# Behind .schema, which says in one line what to install where it is missing.
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

#: How long SQLite waits for another process's lock, and PostgreSQL's client for a connection.
LOCK_TIMEOUT_S = 10
#: How long an end is remembered for not to be counted again.
COUNTED_KEPT_S = 7 * 86400
#: Rows that one transaction removes: other processes wait for its lock.
PRUNE_ROWS = 5000
#: "pulsar-fr" as a number: processes that make the tables at once take turns.
_ADVISORY_LOCK = 0x70756C73

_DRIVER_HINTS = {
    "postgresql": "pip install 'pulsar-failure-reasons[postgresql]', and write the URL as "
    "postgresql+psycopg://user@host/database",
}


class LedgerDatabase:
    """One ledger.

    Args:
        url: As in ``failure_ledger``, with a full path.
        read_only: For reports: nothing is made or changed, and a missing file is an error.

    Raises:
        LedgerError: SQLAlchemy cannot work with this URL.
    """

    def __init__(self, url: str, *, read_only: bool = False) -> None:
        self.shown = shown(url)
        self._path = sqlite_path(url)
        self._read_only = read_only
        try:
            self.engine = self._make_engine(url)
        except (sa.exc.ArgumentError, ImportError, ValueError) as error:
            raise LedgerError(
                f"the failure ledger {self.shown} cannot be opened: {_first_line(error)}; "
                + _DRIVER_HINTS.get(url.partition("://")[0].partition("+")[0], "it must be a "
                                    "path, or a URL of SQLite or PostgreSQL")
            ) from error

    def _make_engine(self, url: str) -> sa.Engine:
        if self._path is None:
            parsed = sa.make_url(url)
            if parsed.get_backend_name() != "postgresql":
                raise ValueError(f"{parsed.get_backend_name()} is not served")
            options = {"connect_timeout": LOCK_TIMEOUT_S} if "psycopg" in parsed.drivername else {}
            return sa.create_engine(parsed, poolclass=sa.NullPool, connect_args=options)
        engine = sa.create_engine(
            sa.URL.create("sqlite", database=self._uri(self._path), query={"uri": "true"}),
            poolclass=sa.NullPool, connect_args={"timeout": LOCK_TIMEOUT_S},
        )
        sa.event.listen(engine, "connect", self._on_sqlite_connect)
        sa.event.listen(engine, "begin", self._on_sqlite_begin)
        return engine

    def _uri(self, path: str) -> str:
        return f"file:{quote(path)}?mode={'ro' if self._read_only else 'rw'}"

    def _on_sqlite_connect(self, connection: Any, _: Any) -> None:
        # Python's own handling begins no transaction before the first write, which is too late
        # to be sure of the lock.
        connection.isolation_level = None
        if not self._read_only:
            # Not WAL: its shared memory does not work on network file systems.
            connection.execute("PRAGMA journal_mode=DELETE").close()

    def _on_sqlite_begin(self, connection: sa.Connection) -> None:
        connection.exec_driver_sql("BEGIN" if self._read_only else "BEGIN IMMEDIATE")

    # ---- opening ----------------------------------------------------------------------------

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sa.Connection]:
        """Give a transaction on a ledger of our version.

        Raises:
            LedgerNotMadeError: there is no ledger, and the server may make one there.
            LedgerError: it cannot be opened, or it is of another version.
        """
        try:
            if self._path is not None and not self._read_only:
                _make_private_file(self._path)
            with self.engine.begin() as connection:
                self._check(connection)
                yield connection
        except (sa.exc.SQLAlchemyError, sqlite3.Error, OSError) as error:
            kind = LedgerNotMadeError if _is_absent(self._path) else LedgerError
            raise kind(f"the failure ledger {self.shown}: {self._told(error)}") from error

    def _told(self, error: Exception) -> str:
        if self._path is None or isinstance(error, OSError):
            return _first_line(error)
        try:
            os.stat(self._path)
        except FileNotFoundError:
            return "there is no such file; no job has ended yet, or it lies elsewhere"
        except OSError as why:
            return why.strerror or str(why)
        if self._read_only and not os.access(self._path, os.R_OK):
            return "the file may not be read by this user"
        return _first_line(error)

    def _check(self, connection: sa.Connection) -> None:
        found = self._version(connection)
        if found is None and not self._read_only:
            self._make_tables(connection)
            found = self._version(connection)
        if found is None:
            # A file that holds something else is a mistake; a database has room for more tables.
            raise (LedgerNotMadeError if self._path is None else LedgerError)(
                f"{self.shown} holds no failure ledger; is it the place that failure_ledger names?"
            )
        if found != SCHEMA_VERSION:
            raise LedgerError(
                f"the failure ledger {self.shown} has schema version {found} and this version of "
                f"pulsar-failure-reasons works with {SCHEMA_VERSION}: use the version that wrote "
                "it, or let failure_ledger name another place"
            )

    def _version(self, connection: sa.Connection) -> Optional[int]:
        if not sa.inspect(connection).has_table(version.name):
            return None
        found: Optional[int] = connection.execute(sa.select(version.c.version)).scalar()
        return found

    def _make_tables(self, connection: sa.Connection) -> None:
        if connection.dialect.name == "postgresql":
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_ADVISORY_LOCK)))
            if self._version(connection) is not None:
                return
        metadata.create_all(connection)
        connection.execute(version.insert(), {"version": SCHEMA_VERSION})

    # ---- writing ----------------------------------------------------------------------------

    def write(self, entries: Sequence[Entry]) -> None:
        """Store entries in one transaction; those that are stored already change nothing.

        Raises:
            LedgerError: it cannot be written now.
            ValueError: the database refuses what one of them says; none was stored.
        """
        with self.transaction() as connection, _as_value_error():
            self._count(connection, [entry.count_row() for entry in entries])
            rows = [row for row in (entry.failure_row() for entry in entries) if row is not None]
            if rows:
                connection.execute(self._insert(failures).on_conflict_do_nothing(), rows)

    def _insert(self, table: sa.Table) -> Any:
        is_sqlite = self.engine.dialect.name == "sqlite"
        return sqlite.insert(table) if is_sqlite else postgresql.insert(table)

    def _count(self, connection: sa.Connection, rows: List[Dict[str, Any]]) -> None:
        """Count the ends that were not counted before, in the database alone.

        A batch is known by its time, so that old ones are found, and by chance.
        """
        batch = _batch_of(time.time()) + secrets.randbits(20)
        connection.execute(
            self._insert(counted).on_conflict_do_nothing(),
            [{**row, "batch": batch} for row in rows],
        )
        for span_s in (HOUR_S, DAY_S):
            self._add_counts(connection, counted.c.batch == batch, span_s)

    def _add_counts(self, connection: sa.Connection, these: Any, span_s: int) -> None:
        begins_at = (counted.c.ended_at - counted.c.ended_at % span_s).label("begins_at")
        key = [begins_at, counted.c.manager, counted.c.cause, counted.c.tool_id]
        news = sa.select(sa.literal(span_s), *key, sa.func.count()).where(these).group_by(*key)
        names = [column.name for column in ends.primary_key]
        insert = self._insert(ends).from_select([*names, "ends"], news)
        connection.execute(
            insert.on_conflict_do_update(
                index_elements=names, set_={"ends": ends.c.ends + insert.excluded.ends}
            )
        )

    def prune(self, retention_s: Optional[int], now: float) -> int:
        """Remove what is older than ``retention_s`` (None: nothing); return how many failures.

        Raises:
            LedgerError: it cannot be written now.
        """
        self._prune(counted, counted.c.batch < _batch_of(now - COUNTED_KEPT_S), ())
        is_hour = ends.c.span_s == HOUR_S
        self._prune(ends, is_hour & (ends.c.begins_at < int(now) - HOURS_KEPT_S), ())
        if retention_s is None:
            return 0
        oldest = int(now) - retention_s
        self._prune(ends, ends.c.begins_at <= oldest - ends.c.span_s, ())
        return self._prune(failures, failures.c.recorded_at < oldest, (failures.c.id,))

    def _prune(self, table: sa.Table, old: Any, key: Sequence[Any]) -> int:
        """Remove old rows by and by where there is a single key, else at once."""
        if not key:
            with self.transaction() as connection:
                removed = connection.execute(table.delete().where(old)).rowcount
                return int(removed)
        removed = 0
        some = sa.select(key[0]).where(old).limit(PRUNE_ROWS)
        while True:
            with self.transaction() as connection:
                count = connection.execute(table.delete().where(key[0].in_(some))).rowcount
            removed += count
            if count < PRUNE_ROWS:
                return removed


class EmptyLedger(LedgerDatabase):
    """Stands for a ledger that its server has not made yet: nothing is in it, and none is made."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._path = None
        # In memory, and a new one for each connection: the tables are made in each.
        self.engine = sa.create_engine("sqlite://", poolclass=sa.NullPool)


def _batch_of(moment_s: float) -> int:
    # 20 bits of chance behind the milliseconds fit into 63 bits.
    return int(moment_s * 1000) << 20


def _is_absent(path: Optional[str]) -> bool:
    """Tell whether a file's folder is there, and nothing in the file's place."""
    try:
        os.lstat(path or ".")
    except OSError as why:
        folder = os.path.dirname(path or "") or "."
        return isinstance(why, FileNotFoundError) and os.path.isdir(folder)
    return False


def _make_private_file(path: str) -> None:
    """Make the file for its owner alone; one that is there keeps the mode that an admin gave it."""
    os.makedirs(os.path.dirname(path) or ".", mode=0o700, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


@contextlib.contextmanager
def _as_value_error() -> Iterator[None]:
    """Tell what is wrong with a row from what is wrong with the database."""
    try:
        yield
    except (sa.exc.DataError, sa.exc.IntegrityError, OverflowError, TypeError) as error:
        raise ValueError(_first_line(error)) from error


def _first_line(error: BaseException) -> str:
    inner = getattr(error, "orig", None) or error
    return " ".join(str(inner).split())[:300] or type(inner).__name__
