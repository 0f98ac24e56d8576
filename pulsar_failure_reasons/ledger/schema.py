"""The ledger's tables, for SQLite and PostgreSQL (``docs/ledger.md`` describes them).

Times are seconds since 1970 in UTC.
"""

from __future__ import annotations

from typing import Any

from ..errors import LedgerError
from .entry import AMOUNTS
from .settings import NEEDS

try:
    import sqlalchemy as sa
except ImportError as error:
    raise LedgerError(f"the failure ledger needs {NEEDS}") from error
if sa.__version__.startswith(("0.", "1.")):
    raise LedgerError(f"the failure ledger needs {NEEDS}, not SQLAlchemy {sa.__version__}")

SCHEMA_VERSION = 1

metadata = sa.MetaData()

version = sa.Table(
    "ledger_version", metadata, sa.Column("version", sa.Integer, primary_key=True)
)


def _amount(kind: str, name: str) -> sa.Column[Any]:
    kind_of_number = sa.BigInteger() if name.endswith("_bytes") else sa.Float(53)
    return sa.Column(f"{kind}_{name}", kind_of_number)


#: One row for each end that has a reason.
failures = sa.Table(
    "ledger_failures",
    metadata,
    # SQLite numbers its rows itself only where the type is INTEGER.
    sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True),
    sa.Column("recorded_at", sa.BigInteger, nullable=False),
    sa.Column("manager", sa.Text, nullable=False),
    sa.Column("drm", sa.Text),
    sa.Column("job_id", sa.Text, nullable=False),
    sa.Column("attempt", sa.BigInteger),
    sa.Column("external_id", sa.Text),
    sa.Column("tool_id", sa.Text),
    sa.Column("cause", sa.Text, nullable=False),
    sa.Column("runner_state", sa.Text),
    sa.Column("fault", sa.Text, nullable=False),
    sa.Column("confidence", sa.Text, nullable=False),
    sa.Column("node", sa.Text),
    *(_amount(kind, name) for kind in ("requested", "used") for name in AMOUNTS),
    sa.Column("message", sa.Text, nullable=False),
    sa.Column("evidence", sa.Text, nullable=False),
    # A server that is killed between record and status judges the end again after its restart.
    sa.UniqueConstraint("job_id", "manager", "recorded_at", name="ledger_failures_one_end"),
    sa.Index("ledger_failures_by_time", "recorded_at"),
    # Each holds all that a report needs, in the order in which the report groups.
    sa.Index("ledger_failures_by_tool", "cause", "tool_id", "recorded_at"),
    sa.Index("ledger_failures_by_node", "fault", "node", "cause", "manager", "recorded_at"),
)

#: How many jobs ended in each hour (kept for ``HOURS_KEPT_S``) and in each day, two sets of rows
#: told apart by ``span_s``. ``cause`` is empty for ends without a reason, ``tool_id`` for those
#: whose tool is not known.
ends = sa.Table(
    "ledger_ends",
    metadata,
    sa.Column("span_s", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("begins_at", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("manager", sa.Text, primary_key=True),
    sa.Column("cause", sa.Text, primary_key=True),
    sa.Column("tool_id", sa.Text, primary_key=True),
    sa.Column("ends", sa.BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

#: The ends of the last days, so that none is counted twice: two processes of a web server may
#: see the same one, and so does a server after a crash.
counted = sa.Table(
    "ledger_counted",
    metadata,
    sa.Column("job_id", sa.Text, primary_key=True),
    sa.Column("manager", sa.Text, primary_key=True),
    sa.Column("end_key", sa.Text, primary_key=True),
    sa.Column("ended_at", sa.BigInteger, nullable=False),
    sa.Column("cause", sa.Text, nullable=False),
    sa.Column("tool_id", sa.Text, nullable=False),
    sa.Column("batch", sa.BigInteger, nullable=False),
    sa.Index("ledger_counted_by_batch", "batch"),
    sqlite_with_rowid=False,
)
