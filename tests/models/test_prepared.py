"""Prepared statements: the same answers, a plan a connection, and never an error of their own."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import bindparam, func, literal, select
from sqlalchemy.orm import Session
from sqlalchemy.types import Integer

from blueprints import access
from models import listing
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


def test_one_that_cannot_be_prepared_answers_and_leaves_the_others_as_they_are(resources: Resources) -> None:
    untyped = Prepared("test_untyped", select(func.now() - timedelta(minutes=1) < func.now()))
    with resources.reader.connect() as connection:
        SUM.rows(connection, {"a": 1})
        assert untyped.row(connection, {}) == (True,)
        connection.exec_driver_sql("SET allgone.kept = '1'")  # the connection itself is the same one
        assert SUM.row(connection, {"a": 2}) == (4,)
        assert connection.exec_driver_sql(HELD).scalar_one() == 1


def test_every_read_of_the_product_that_means_to_be_prepared_can_be(resources: Resources) -> None:
    made = [one for module in (access, listing) for one in vars(module).values() if isinstance(one, Prepared)]
    assert len(made) >= 5
    with resources.reader.connect() as connection:
        for one in made:
            connection.exec_driver_sql(one.preparing)
