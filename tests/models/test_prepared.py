"""Prepared statements: the same answers, a plan a connection, and never an error of their own."""

from __future__ import annotations

from sqlalchemy import bindparam, func, literal, select
from sqlalchemy.orm import Session
from sqlalchemy.types import Integer

from models.prepared import Prepared
from tasks.resources import Resources

SUM = Prepared("test_sum", select(func.coalesce(None, bindparam("a", type_=Integer())) + literal(2)))
HELD = "SELECT count(*) FROM pg_prepared_statements WHERE name = 'test_sum'"


def test_a_reader_prepares_once_and_executes_from_then_on(resources: Resources) -> None:
    with resources.reader.connect() as connection:
        assert [SUM.rows(connection, {"a": a})[0][0] for a in (1, 2, 3)] == [3, 4, 5]
        assert connection.exec_driver_sql(HELD).scalar_one() == 1


def test_a_transaction_gets_the_ordinary_statement(resources: Resources) -> None:
    with Session(resources.engine) as db:
        assert SUM.row(db, {"a": 1}) == (3,)
        assert db.connection().exec_driver_sql(HELD).scalar_one() == 0


def test_a_statement_that_the_backend_has_forgotten_still_answers(resources: Resources) -> None:
    with resources.reader.connect() as connection:
        SUM.rows(connection, {"a": 1})
        connection.exec_driver_sql("DEALLOCATE ALL")
        assert SUM.row(connection, {"a": 1}) == (3,)
        assert SUM.row(connection, {"a": 2}) == (4,)
        assert connection.exec_driver_sql(HELD).scalar_one() == 1
