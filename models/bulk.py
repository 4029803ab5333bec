"""Many rows in one statement of a fixed text: columns travel as arrays, and PostgreSQL lines them up.

A multi-row VALUES list is compiled anew for each batch, and its parameters are bound one by one; this costs one
parameter a column however many rows there are, which halves an append of a hundred events.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import orjson
from sqlalchemy import text
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Session

from models.base import Base


class Bulk:
    """An insert into some columns of a table. `tail` is what follows, such as an ON CONFLICT clause.

    JSONB columns take JSON text (None is SQL's NULL, "null" is JSON's); all others what their type takes.
    """

    def __init__(self, table: type[Base], columns: Sequence[str], tail: str = "") -> None:
        held = table.__table__.c
        names = ", ".join(columns)
        arrays, chosen = [], []
        for name in columns:
            kind = held[name].type
            is_json = isinstance(kind, JSONB)
            spelled = "text" if is_json else kind.compile(dialect=postgresql.dialect())  # type: ignore[no-untyped-call]
            arrays.append(f"CAST(:{name} AS {spelled}[])")
            chosen.append(f"CAST({name} AS jsonb)" if is_json else name)
        self._columns = tuple(columns)
        self._statement = text(
            f"INSERT INTO {table.__tablename__} ({names}) SELECT {', '.join(chosen)} "  # noqa: S608  names of our own
            f"FROM unnest({', '.join(arrays)}) AS given ({names}) {tail}"
        )

    def write(self, db: Session, rows: Iterable[Sequence[Any]]) -> None:
        """Inserts `rows`, each in the order of the columns; at least one."""
        columns = (list(values) for values in zip(*rows, strict=True))
        db.connection().execute(self._statement, dict(zip(self._columns, columns, strict=True)))


def json_text(value: Any) -> str:
    """A JSON value as a JSONB column of `Bulk` takes it."""
    return orjson.dumps(value).decode()
