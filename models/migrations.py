"""Bringing the schema to this release, by Alembic, under a lock time-out; two upgrades at once queue up."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, text

FOLDER = Path(__file__).resolve().parent.parent / "migrations"
LOCK_TIMEOUT = "10s"  # a migration that cannot get its lock gives up instead of queueing everyone behind it
_UPGRADE_LOCK = 0x616C6C676F6E65  # "allgone": one upgrade at a time


def upgrade(engine: Engine, revision: str = "head") -> None:
    """Migrates to `revision`; each migration is one transaction."""
    with engine.connect() as connection:
        connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": _UPGRADE_LOCK})
        connection.execute(text(f"SET lock_timeout = '{LOCK_TIMEOUT}'"))
        connection.commit()
        try:
            command.upgrade(configuration(connection), revision)
        finally:
            connection.rollback()
            connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": _UPGRADE_LOCK})
            connection.execute(text("RESET lock_timeout"))
            connection.commit()


def at_head(engine: Engine) -> bool:
    """True when the database has every migration of this release, and none of a later one."""
    with engine.connect() as connection:
        held = set(MigrationContext.configure(connection).get_current_heads())
    return held == set(ScriptDirectory(str(FOLDER)).get_heads())


def configuration(connection: Connection) -> Config:
    """Alembic's configuration for an open connection."""
    config = Config()
    config.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config
