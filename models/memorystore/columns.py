"""Column types and functions that mean the same on SQLite and on PostgreSQL.

| value | SQLite | PostgreSQL |
|---|---|---|
| a moment | microseconds since 1970 | timestamptz |
| a span of time | microseconds | interval |
| 16 bytes of an id | a blob | uuid |
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, ColumnElement, DateTime, Interval, LargeBinary, Uuid
from sqlalchemy.engine import Dialect
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import GenericFunction
from sqlalchemy.types import TypeDecorator, TypeEngine

from models.rules import EARLIEST, TICK


def micros(at: datetime) -> int:
    """Microseconds since 1970."""
    return (at - EARLIEST) // TICK


def moment(at: int) -> datetime:
    """The time of so many microseconds since 1970."""
    return EARLIEST + timedelta(microseconds=at)


def _is_lite(dialect: Dialect) -> bool:
    return dialect.name == "sqlite"


class Span(TypeDecorator[timedelta]):
    """A span of time, to be added to a moment."""

    impl = BigInteger
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return BigInteger() if _is_lite(dialect) else Interval()

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        return value // TICK if _is_lite(dialect) else value


class Moment(TypeDecorator[datetime]):
    """A moment, to the microsecond."""

    impl = BigInteger
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return BigInteger() if _is_lite(dialect) else DateTime(timezone=True)

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        return micros(value) if value is not None and _is_lite(dialect) else value

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        return moment(value) if value is not None and _is_lite(dialect) else value

    def coerce_compared_value(self, op: Any, value: Any) -> TypeEngine[Any]:
        return Span() if isinstance(value, timedelta) else self


class Sixteen(TypeDecorator[bytes]):
    """An id as its 16 bytes."""

    impl = LargeBinary
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return LargeBinary() if _is_lite(dialect) else Uuid()

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        return UUID(bytes=value) if value is not None and not _is_lite(dialect) else value

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        return value.bytes if isinstance(value, UUID) else value


class later(GenericFunction[datetime]):
    """The later of two moments."""

    type = Moment()
    inherit_cache = True


@compiles(later, "sqlite")
def _later_lite(element: ColumnElement[Any], compiler: Any, **options: Any) -> str:
    return f"max({compiler.process(element.clauses, **options)})"


@compiles(later)
def _later(element: ColumnElement[Any], compiler: Any, **options: Any) -> str:
    return f"greatest({compiler.process(element.clauses, **options)})"


class micros_of(GenericFunction[int]):
    """A moment as its microseconds since 1970, without a stop at Python's own type."""

    type = BigInteger()
    inherit_cache = True


@compiles(micros_of, "sqlite")
def _micros_lite(element: ColumnElement[Any], compiler: Any, **options: Any) -> str:
    return str(compiler.process(element.clauses, **options))


@compiles(micros_of)
def _micros(element: ColumnElement[Any], compiler: Any, **options: Any) -> str:
    # EXTRACT gives a numeric, so no digit is lost.
    return f"(extract(epoch FROM {compiler.process(element.clauses, **options)}) * 1000000)::bigint"


class bytes_of(GenericFunction[bytes]):
    """An id as its bytes, without a stop at Python's own type."""

    type = LargeBinary()
    inherit_cache = True


@compiles(bytes_of, "sqlite")
def _bytes_lite(element: ColumnElement[Any], compiler: Any, **options: Any) -> str:
    return str(compiler.process(element.clauses, **options))


@compiles(bytes_of)
def _bytes(element: ColumnElement[Any], compiler: Any, **options: Any) -> str:
    return f"uuid_send({compiler.process(element.clauses, **options)})"
