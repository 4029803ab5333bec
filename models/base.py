"""The declarative base, the column types, the engines and the database's own time.

Two engines for one PostgreSQL: `main` for transactions, `reader` for single statements (autocommit, no reset
on return), which spares two round trips a read. Both speak UTC and give ids as text.
"""

from __future__ import annotations

import math
import time
from datetime import datetime
from typing import Annotated, Any

import orjson
import psycopg2
import psycopg2.extensions
from sqlalchemy import DateTime, LargeBinary, MetaData, create_engine, event, func, select
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.engine import Engine
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.orm import DeclarativeBase, Session, mapped_column, registry
from sqlalchemy.types import UserDefinedType

from models.prepared import PLANNED_ONCE

IDLE_SECONDS = 1.0  # of a pooled connection, after which it may have died unseen
UUID_OIDS = (2950,)
UUID_ARRAY_OIDS = (2951,)


class Id(UserDefinedType[str]):
    """A UUID column whose values are text on both sides: no object is made of an id that is only passed on."""

    cache_ok = True

    @property
    def python_type(self) -> type[str]:
        return str

    def get_col_spec(self, **_: Any) -> str:
        return "UUID"


class Base(DeclarativeBase):
    """What every table inherits; also given to Flask-SQLAlchemy, and usable with a plain Session."""

    registry = registry(
        metadata=MetaData(
            naming_convention={
                "ix": "ix_%(table_name)s_%(column_0_N_name)s",
                "uq": "uq_%(table_name)s_%(column_0_N_name)s",
                "ck": "ck_%(table_name)s_%(constraint_name)s",
                "fk": "fk_%(table_name)s_%(column_0_N_name)s",
                "pk": "pk_%(table_name)s",
            }
        ),
        type_annotation_map={
            datetime: DateTime(timezone=True),
            bytes: LargeBinary(),
            dict[str, Any]: JSONB(),
        },
    )


IdKey = Annotated[str, mapped_column(Id(), primary_key=True)]
IdRef = Annotated[str, mapped_column(Id())]


def engine_options(*, reader: bool = False, pool_size: int = 16) -> dict[str, Any]:
    """Keyword arguments of `create_engine` for PostgreSQL; the one place that says how we connect."""
    options: dict[str, Any] = {
        "pool_size": pool_size,
        "max_overflow": 8,
        "pool_use_lifo": True,
        "use_native_hstore": False,
        "hide_parameters": True,  # an error's text reaches logs and failed jobs; what was written must not
        "executemany_mode": "values_plus_batch",  # many rows in one statement, not one statement a row
        "json_serializer": _to_json,
        "json_deserializer": orjson.loads,
        "connect_args": {
            "options": "-c timezone=UTC -c lock_timeout=20s -c idle_in_transaction_session_timeout=120s",
            "application_name": "allgone",
            "connect_timeout": 5,
        },
    }
    if reader:
        options |= {"isolation_level": "AUTOCOMMIT", "pool_reset_on_return": None}
        options["connect_args"]["options"] += f" {PLANNED_ONCE}"
    return options


def tune(engine: Engine) -> Engine:
    """Makes connections of `engine` give ids as text, and asks one that lay idle whether it still lives.

    So a restart of PostgreSQL costs no request an error, and a busy reader no second statement.
    """
    event.listen(engine, "connect", _ids_as_text)
    event.listen(engine, "checkin", _laid_down)
    event.listen(engine, "checkout", _taken_up)
    return engine


def open_engine(url: str, *, reader: bool = False, pool_size: int = 4) -> Engine:
    """An engine outside Flask, for jobs, commands and tests."""
    return tune(create_engine(url, **engine_options(reader=reader, pool_size=pool_size)))


def database_time(db: Session) -> datetime:
    """The database's clock now (not the transaction's start): the only clock that the verbs of models/ read."""
    now: datetime = db.execute(select(func.clock_timestamp())).scalar_one()
    return now


def _to_json(value: object) -> str:
    return orjson.dumps(value).decode()


def _laid_down(_connection: Any, record: Any) -> None:
    record.info["idle_since"] = time.monotonic()


def _taken_up(connection: Any, record: Any, _proxy: Any) -> None:
    if time.monotonic() - record.info.get("idle_since", math.inf) < IDLE_SECONDS:
        return
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        connection.rollback()
    except psycopg2.Error:
        raise DisconnectionError from None  # the pool throws it away and hands out another


def _ids_as_text(connection: Any, _record: Any) -> None:
    # SQLAlchemy registers a caster that builds a UUID object for each value; ids are only passed on here. The
    # driver's own caster of text is put in its place, since one made with new_type would call Python for each.
    text = psycopg2.extensions.UNICODE
    for oid in UUID_OIDS:
        connection.string_types[oid] = text
    psycopg2.extensions.register_type(
        psycopg2.extensions.new_array_type(UUID_ARRAY_OIDS, "IDS", text), connection
    )
