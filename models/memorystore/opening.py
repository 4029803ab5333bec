"""Opening a device's two SQLite files as one connection.

Write-ahead log, every commit synced, five seconds of patience with another process; a transaction that writes says
so when it begins, so that two never wait for each other.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import sqlean
from sqlalchemy import Engine, StaticPool, create_engine, event

from models.memorystore import schema

MEMORIES, DELETIONS = "memories.sqlite3", "sync-deletions.sqlite3"
PATIENCE = 5.0  # seconds that a lock of another process is waited for


def open_files(folder: Path) -> Engine:
    """The engine of the files in `folder`, which are made when they are not there; it has one connection.

    Raises InvalidState("newer_release"), and sqlean.OperationalError for files that cannot be opened.
    """
    engine = create_engine(
        "sqlite://", creator=lambda: _connect(folder), module=sqlean.dbapi2, poolclass=StaticPool
    )
    # SQLAlchemy says when a transaction begins; the driver would begin one only at the first write.
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    return engine


def _connect(folder: Path) -> Any:
    connection = sqlean.connect(
        str(folder / MEMORIES), timeout=PATIENCE, isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute("ATTACH DATABASE ? AS deletions", (str(folder / DELETIONS),))
        for file in ("main", "deletions"):
            for setting in ("journal_mode = WAL", "secure_delete = ON", "synchronous = FULL"):
                connection.execute(f"PRAGMA {file}.{setting}")
        connection.execute("PRAGMA temp_store = FILE")
        connection.execute("PRAGMA cache_size = -65536")
        schema.upgrade(connection)
    except BaseException:
        connection.close()
        raise
    return connection
