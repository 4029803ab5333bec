"""Statements that PostgreSQL parses and plans once a connection, for the few reads that are asked all the time.

A poll's probe takes a sixth of its time this way, a page of the index half: most of what a small read costs is
planning it, and SQLAlchemy's way to the driver and back.

| on | a `Prepared` is |
|---|---|
| a reader's connection (autocommit) | PREPAREd at its first use there, EXECUTEd from then on, straight at the driver |
| a transaction | the ordinary statement: a fault in it would be the transaction's |
| any fault of the prepared one | the ordinary statement, which answers or fails as ever |

So a pooler that hands each statement to another backend, a migration under a running server or a restarted
PostgreSQL costs the short way, and no answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import psycopg2
from sqlalchemy import Connection, Select
from sqlalchemy.dialects import postgresql
from sqlalchemy.orm import Session

# Given to each reader's connection: one plan for all values. Ours walk an index whoever asks, so none is better
# for some values than for others, and weighing that would cost what is to be saved.
PLANNED_ONCE = "-c plan_cache_mode=force_generic_plan"
_CURSORS = "prepared"  # of a connection: a cursor for each statement that is prepared there


class Prepared:
    """A read, built once. `name` is unique among all of them; values are bound by the names of its parameters."""

    def __init__(self, name: str, statement: Select[*tuple[Any, ...]]) -> None:
        compiled = statement.compile(dialect=postgresql.dialect(paramstyle="numeric_dollar"))  # type: ignore[no-untyped-call]
        self._statement = statement
        self._name = name
        self._parameters: list[str] = compiled.positiontup or []
        self._constants: Mapping[str, Any] = compiled.params
        self.preparing = f"PREPARE {name} AS {compiled}"
        places = ", ".join(["%s"] * len(self._parameters))
        self._execute = f"EXECUTE {name} ({places})"

    def rows(self, db: Connection | Session, values: Mapping[str, Any]) -> Sequence[Sequence[Any]]:
        """All rows, in one statement (two at the first use on a connection)."""
        if isinstance(db, Connection):
            driver: Any = db.connection.driver_connection
            if driver.autocommit:
                held = db.info.setdefault(_CURSORS, {})
                try:
                    return self._executed(driver, held, values)
                except psycopg2.Error:
                    self._drop(driver, held)
        return db.execute(self._statement, values).all()

    def row(self, db: Connection | Session, values: Mapping[str, Any]) -> Sequence[Any] | None:
        """The first row, for a read by a unique key; None when there is none."""
        rows = self.rows(db, values)
        return rows[0] if rows else None

    def _drop(self, driver: Any, held: dict[str, Any]) -> None:
        # This one alone: the others of the connection are as good as before.
        held.pop(self._name, None)
        with suppress(psycopg2.Error), driver.cursor() as cursor:
            cursor.execute(f"DEALLOCATE {self._name}")

    def _executed(
        self, driver: Any, held: dict[str, Any], values: Mapping[str, Any]
    ) -> Sequence[Sequence[Any]]:
        cursor = held.get(self._name)
        if cursor is None:
            cursor = driver.cursor()
            cursor.execute(self.preparing)
            held[self._name] = cursor
        given = {**self._constants, **values}
        cursor.execute(self._execute, [given[name] for name in self._parameters])
        rows: Sequence[Sequence[Any]] = cursor.fetchall()
        return rows
