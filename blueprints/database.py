"""The database as a request sees it: one transaction's session, and a connection for single reads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

from flask import Flask, current_app
from flask_sqlalchemy import SQLAlchemy
from sqlalchemy import Connection
from sqlalchemy.orm import Session

from models.base import Base, engine_options, tune
from models.settings import Settings
from tasks.resources import Resources, assemble

db = SQLAlchemy(model_class=Base)
READER = "reader"


def connect(app: Flask, settings: Settings) -> None:
    """Gives the app its two engines and its resources."""
    app.config["SQLALCHEMY_DATABASE_URI"] = settings.database_url
    app.config["SQLALCHEMY_ENGINE_OPTIONS"] = engine_options()
    app.config["SQLALCHEMY_BINDS"] = {READER: {"url": settings.database_url, **engine_options(reader=True)}}
    db.init_app(app)
    with app.app_context():
        engines = db.engines
        app.extensions["allgone"] = assemble(settings, tune(engines[None]), tune(engines[READER]))


def resources() -> Resources:
    """The open ends of this process."""
    return cast(Resources, current_app.extensions["allgone"])


def reading() -> Connection:
    """A connection for reads of one statement each, given back by its `with`: autocommit, nothing to end."""
    return resources().reader.connect()


@contextmanager
def transaction() -> Iterator[Session]:
    """One transaction: committed at the end of the block, rolled back by an exception."""
    with Session(resources().engine) as session, session.begin():
        yield session
