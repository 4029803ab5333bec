"""Real engines for every test, the standing cast, and the app around them.

One PostgreSQL and one Valkey serve the whole run, started from their wheels as the product starts them; before
each test every table and the queue are empty and the object store is a fresh folder. The cast: alice owns, bob is
of her tenant, mallory is a stranger's, olivia operates.
"""

from __future__ import annotations

import dataclasses
import secrets
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import text
from sqlalchemy.orm import Session
from werkzeug.serving import make_server

from blueprints import attempts
from models import accounts, migrations
from models.settings import Settings, load
from models.tables import metadata
from tasks.embedded import running_engines
from tasks.resources import Resources, open_resources
from tasks.store import make_store
from tests.cast import Cast, Player

if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    # Begun with nohup: every process of the tests would inherit that, and rightly stay when it is hung up on.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

FAST = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}  # a test's data dies with it


@pytest.fixture(scope="session")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """The settings of engines that run, with the schema at head."""
    folder = tmp_path_factory.mktemp("engines")
    settings = load({"ALLGONE_DATA_DIR": str(folder), "PUBLIC_URL": "http://localhost"})
    with running_engines(settings, FAST):
        held = open_resources(settings)
        migrations.upgrade(held.engine)
        close(held)
        yield settings


@pytest.fixture
def settings(engines: Settings, tmp_path: Path) -> Settings:
    """The engines' settings with an object store of this test's own."""
    return dataclasses.replace(engines, object_store_url=(tmp_path / "objects").as_uri())


@pytest.fixture
def resources(settings: Settings) -> Iterator[Resources]:
    """Open ends on empty tables, an empty queue and an empty store."""
    held = open_resources(settings)
    tables = ", ".join(f'"{name}"' for name in metadata.tables)
    with held.engine.begin() as connection:
        connection.execute(text(f"TRUNCATE {tables}"))
    held.redis.flushall()
    attempts.forget()
    make_store(held.engine, settings)
    yield held
    close(held)


@pytest.fixture
def db(resources: Resources) -> Iterator[Session]:
    """A session for looking and for committing by hand."""
    with Session(resources.engine) as session:
        yield session


@pytest.fixture
def cast(resources: Resources) -> Cast:
    """The standing cast, freshly made."""
    with Session(resources.engine) as session, session.begin():

        def player(email: str, tenant: str, *, operator: bool = False) -> Player:
            made = accounts.create_user(
                session, email, secrets.token_bytes(32), tenant=tenant, operator=operator
            )
            return Player(resources.engine, made.id, made.email, made.owner)

        return Cast(
            alice=player("alice@example.com", "default"),
            bob=player("bob@example.com", "default"),
            mallory=player("mallory@example.net", "strangers"),
            olivia=player("olivia@example.com", "default", operator=True),
        )


@pytest.fixture
def alice(cast: Cast) -> Player:
    return cast.alice


@pytest.fixture
def bob(cast: Cast) -> Player:
    return cast.bob


@pytest.fixture
def mallory(cast: Cast) -> Player:
    return cast.mallory


@pytest.fixture
def olivia(cast: Cast) -> Player:
    return cast.olivia


@pytest.fixture
def app(settings: Settings, resources: Resources) -> Iterator[Flask]:
    """The web application on this test's resources."""
    from importlib import import_module

    made: Flask = import_module("app").create_app(settings)
    yield made
    close(made.extensions["allgone"])


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    """A client without a cookie or a token."""
    return app.test_client()


@pytest.fixture
def live_server(app: Flask) -> Iterator[str]:
    """The app on a real loopback socket; yields its address."""
    server = make_server("127.0.0.1", 0, app, threaded=True)
    address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield address
    server.shutdown()
    server.server_close()
    thread.join(10)


@pytest.fixture
def sign_in(app: Flask) -> Callable[[FlaskClient, Player], None]:
    """Signs a player in at a client, by a one-time link as a person would."""

    def follow(client: FlaskClient, player: Player) -> None:
        answer = client.get(f"/sign-in/{player.link()}")
        assert answer.status_code == 303, answer.status_code

    return follow


def close(held: Resources) -> None:
    """Lets go of every connection."""
    held.engine.dispose()
    held.reader.dispose()
    held.redis.close()
