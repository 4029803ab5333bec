"""Opening a device's two SQLite files as one connection.

Write-ahead log, every commit synced, five seconds of patience with another process; a transaction that writes says
so when it begins, so that two never wait for each other, and one that reads stands in nobody's way.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import sqlean
from sqlalchemy import Connection, Engine, StaticPool, create_engine, event
from sqlalchemy.exc import OperationalError

from models.errors import InvalidState
from models.memorystore import schema
from models.memorystore.store import READS

MEMORIES, DELETIONS = "memories.sqlite3", "sync-deletions.sqlite3"
PATIENCE = 5.0  # seconds that a lock of another process is waited for
TRIES = 4  # SQLite's own waiting is not fair: of several that write without a pause, one may be passed over for long


def open_files(folder: Path) -> Engine:
    """The engine of the files in `folder`, which are made when they are not there; it has one connection.

    Raises InvalidState("newer_release"), InvalidState("store_missing") when one of the two is gone, and
    sqlean.OperationalError for files that cannot be opened.
    """
    engine = create_engine(
        "sqlite://", creator=lambda: _connect(folder), module=sqlean.dbapi2, poolclass=StaticPool
    )
    event.listen(engine, "begin", _begin)
    return engine


def _begin(connection: Connection) -> None:
    # SQLAlchemy says when a transaction begins; the driver would begin one only at the first write.
    if connection.info.get(READS):
        connection.exec_driver_sql("BEGIN")
        return
    for again in reversed(range(TRIES)):
        try:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            return
        except OperationalError as error:
            if getattr(error.orig, "sqlite_errorname", "") != "SQLITE_BUSY":
                raise
            if not again:
                raise InvalidState(
                    "locked", "Another program has been writing to these memories all the while. Try again."
                ) from None


def _connect(folder: Path) -> Any:
    _refuse_half(folder)
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


def _refuse_half(folder: Path) -> None:
    # Without what was deleted, what is kept would go out as if it were new; without what is kept, nothing here says
    # what a sync would be missing. A start that died before the second was made has left nothing in the first.
    there = [folder / name for name in (MEMORIES, DELETIONS) if (folder / name).exists()]
    if len(there) == 1:
        with closing(sqlean.connect(str(there[0]), timeout=PATIENCE)) as connection:
            (made,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        if made:
            raise InvalidState(
                "store_missing",
                f"Of {MEMORIES} and {DELETIONS} one is missing. Bring back both, of the same moment.",
            )
