"""Where the benchmarks stand: the embedded engines as the product runs them, and a million conversations in them.

The engines have the product's own parameters, durability included. The conversations lie in no order that would
help: a principal's rows are strewn over the table, and the order of activity is chance.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psycopg2.extensions
from sqlalchemy import Connection, make_url, text
from sqlalchemy.orm import Session

from models import accounts, migrations
from models.accounts import Owner
from models.settings import load
from tasks.embedded import running_engines
from tasks.resources import Resources, open_resources

SESSIONS, PRINCIPALS = 1_000_000, 1_000
OF_ONE = 5  # every fifth conversation is one principal's

_OTHERS = """
INSERT INTO principals (id, tenant_id, email, operator, import_secret, device_id, created_at)
SELECT uuidv7(), :tenant, 'user' || n || '@example.com', false, decode(repeat('00', 32), 'hex'), uuidv7(), now()
FROM generate_series(1, :others) n
"""
_CONVERSATIONS = """
WITH others AS (SELECT array_agg(id) AS ids FROM principals WHERE id <> :one),
drawn AS MATERIALIZED (
    SELECT n, random() AS place, now() - random() * interval '700 days' AS active_at FROM generate_series(1, :all) n
)
INSERT INTO sessions (id, tenant_id, principal_id, title, created_at, updated_at, last_seq, searched_from)
SELECT uuidv7(active_at - interval '1 hour' - now()), :tenant,
       CASE WHEN n <= :of_one THEN :one ELSE ids[1 + n % cardinality(ids)] END,
       'A conversation about matter number ' || n, active_at - interval '1 hour', active_at, 2, 1
FROM drawn, others
ORDER BY place
"""


@dataclass(frozen=True)
class Ground:
    """The open ends of running engines, and the principal who owns the many."""

    resources: Resources
    one: Owner

    def player(self) -> Owner:
        """A new principal with nothing yet."""
        with Session(self.resources.engine) as db, db.begin():
            email = f"{secrets.token_hex(8)}@example.com"
            return accounts.create_user(db, email, secrets.token_bytes(32)).owner


@contextmanager
def ground(folder: Path) -> Iterator[Ground]:
    """Engines that run on `folder`, with the million conversations: made when they are not there yet."""
    settings = load({"ALLGONE_DATA_DIR": str(folder), "PUBLIC_URL": "http://localhost"})
    with running_engines(settings):
        resources = open_resources(settings)
        try:
            migrations.upgrade(resources.engine)
            yield Ground(resources, _filled(resources, SESSIONS))
        finally:
            _close(resources)


@contextmanager
def beside(large: Ground, sessions: int) -> Iterator[Ground]:
    """A ground of `sessions` conversations in a database of its own in the same engine; gone afterwards."""
    settings = large.resources.settings
    url = make_url(settings.database_url).set(database="beside")
    with large.resources.reader.connect() as connection:
        connection.execute(text("DROP DATABASE IF EXISTS beside WITH (FORCE)"))
        connection.execute(text("CREATE DATABASE beside TEMPLATE template0"))
    resources = open_resources(replace(settings, database_url=url.render_as_string(hide_password=False)))
    try:
        migrations.upgrade(resources.engine)
        yield Ground(resources, _filled(resources, sessions))
    finally:
        _close(resources)
        with large.resources.reader.connect() as connection:
            connection.execute(text("DROP DATABASE beside WITH (FORCE)"))


@contextmanager
def statements(connection: Connection) -> Iterator[list[str]]:
    """The SQL that leaves on `connection` while the block runs, values filled in, as the driver sends it."""
    seen: list[str] = []

    class Noting(psycopg2.extensions.cursor):
        def execute(self, *given: Any) -> None:
            try:
                super().execute(*given)
            finally:
                seen.append((self.query or b"").decode())

    driver: Any = connection.connection.driver_connection
    driver.cursor_factory = Noting
    try:
        yield seen
    finally:
        driver.cursor_factory = None


def _close(resources: Resources) -> None:
    resources.engine.dispose()
    resources.reader.dispose()
    resources.redis.close()


def _filled(resources: Resources, sessions: int) -> Owner:
    with Session(resources.engine) as db, db.begin():
        one = accounts.find_user(db, "one@example.com")
        if one is not None:
            return one.owner
        one = accounts.create_user(db, "one@example.com", secrets.token_bytes(32))
        db.execute(text(_OTHERS), {"tenant": one.tenant_id, "others": PRINCIPALS - 1})
        rows = {"one": one.id, "tenant": one.tenant_id, "all": sessions, "of_one": sessions // OF_ONE}
        db.execute(text(_CONVERSATIONS), rows)
        db.execute(text("INSERT INTO list_versions SELECT id, 1 FROM principals"))
        owner = one.owner
    with resources.reader.connect() as connection:
        connection.execute(text("VACUUM ANALYZE"))
    return owner
