"""The schema: what the models say, what the migrations make, and what the purge relies on, read from the catalogue."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Engine, make_url, text

from models import migrations
from models.base import open_engine
from models.purge import PURGED
from models.settings import Settings
from models.tables import metadata

# Tables that hold something of a conversation and are no member of PURGED, each with the step that sees to it.
OTHERWISE = {
    "sessions": "the conversation itself, removed last",
    "artifacts": "_owe moves their keys to the outbox",
    "memories": "forget records and removes them",
    "skill_revisions": "durable, detached",
    "import_failures": "a name, removed by the id that its conversation has or would have had",
    "outbox": "keeps the session's id until its last bytes are gone",
    "tombstones": "what remains",
    "deletion_records": "hashes of masked texts, 180 days",
    "memory_tombstones": "ids of memories that were deleted one by one, so that a repetition is a success",
    "idempotency_keys": "two ids and a hash for 24 hours, so that a retried create revives nothing",
}
# Names of columns that hold an id of a conversation or of something that is made in one.
DERIVED = (
    "session_id",
    "run_id",
    "artifact_id",
    "memory_id",
    "authoring_run_id",
    "parent_id",
    "call_id",
    "key",
)


@pytest.fixture(scope="module")
def engine(engines: Settings) -> Iterator[Engine]:
    """The migrated database of this run."""
    held = open_engine(engines.database_url)
    yield held
    held.dispose()


@pytest.fixture(scope="module")
def made(engines: Settings, engine: Engine) -> Iterator[Engine]:
    """A database beside it, made from the models alone."""
    yield from database_beside(engines, engine, "from_models")


def database_beside(engines: Settings, engine: Engine, name: str) -> Iterator[Engine]:
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text(f"DROP DATABASE IF EXISTS {name}"))
        connection.execute(text(f"CREATE DATABASE {name}"))
    url = make_url(engines.database_url).set(database=name).render_as_string(hide_password=False)
    beside = open_engine(url)
    if name == "from_models":
        metadata.create_all(beside)
    yield beside
    beside.dispose()
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text(f"DROP DATABASE {name}"))


def catalogue(engine: Engine, statement: str) -> list[tuple[object, ...]]:
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(text(statement))]


COLUMNS = """
    SELECT table_name, column_name, data_type, udt_name, is_nullable, column_default
    FROM information_schema.columns WHERE table_schema = 'public' AND table_name <> 'alembic_version'
    ORDER BY 1, 2
"""
INDEXES = """
    SELECT tablename, indexname, indexdef FROM pg_indexes
    WHERE schemaname = 'public' AND tablename <> 'alembic_version' ORDER BY 1, 2
"""
CONSTRAINTS = """
    SELECT conrelid::regclass::text, conname, contype::text, pg_get_constraintdef(oid) FROM pg_constraint
    WHERE connamespace = 'public'::regnamespace AND conrelid::regclass::text <> 'alembic_version' ORDER BY 1, 2
"""
FOREIGN_KEYS = """
    SELECT c.conrelid::regclass::text, c.confrelid::regclass::text, c.confdeltype::text, a.attname::text,
        EXISTS (
            SELECT FROM pg_index i
            WHERE i.indrelid = c.conrelid AND i.indkey[0] = c.conkey[1] AND i.indpred IS NULL AND i.indisvalid
        )
    FROM pg_constraint c JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = c.conkey[1]
    WHERE c.contype = 'f' AND array_length(c.conkey, 1) = 1
"""


@pytest.mark.parametrize(
    "statement", [COLUMNS, INDEXES, CONSTRAINTS], ids=["columns", "indexes", "constraints"]
)
def test_the_models_and_the_migrations_make_the_same_schema(
    engine: Engine, made: Engine, statement: str
) -> None:
    migrated, from_models = catalogue(engine, statement), catalogue(made, statement)
    assert len(migrated) > 20
    assert migrated == from_models


def test_alembic_finds_nothing_to_do(engine: Engine) -> None:
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_server_default": True})
        assert compare_metadata(context, metadata) == []
    assert migrations.at_head(engine)


def test_migrating_again_changes_nothing_and_an_empty_database_is_not_at_head(
    engines: Settings, engine: Engine
) -> None:
    migrations.upgrade(engine)
    for empty in database_beside(engines, engine, "empty"):
        assert not migrations.at_head(empty)
        migrations.upgrade(empty)
        assert migrations.at_head(empty)
        assert catalogue(empty, INDEXES) == catalogue(engine, INDEXES)


def test_each_foreign_key_has_an_index_led_by_its_column(engine: Engine) -> None:
    """FAULTS.md S68: without one, each deletion of a parent scans the child."""
    keys = catalogue(engine, FOREIGN_KEYS)
    assert len(keys) > 15
    assert [key for key in keys if not key[4]] == []


def test_every_foreign_key_of_the_graph_goes_to_sessions_and_never_cascades(engine: Engine) -> None:
    """So the database itself refuses a purge that left a table out, instead of finishing it in silence."""
    for table, parent, on_delete, column, _ in catalogue(engine, FOREIGN_KEYS):
        assert on_delete == "a", f"{table}.{column}"
        if column == "session_id":
            assert parent == "sessions"


def test_every_table_that_holds_a_part_of_a_conversation_is_purged(engine: Engine) -> None:
    """A new table has no place until someone gives it one, here and in the purge (FAULTS.md S13)."""
    holding = {
        str(table)
        for table, column, *_ in catalogue(engine, COLUMNS)
        if column in DERIVED and table not in {"tenants", "principals"}
    }
    purged = {table.__tablename__ for table in PURGED}
    assert purged.isdisjoint(OTHERWISE)
    assert holding | {"sessions"} == purged | set(OTHERWISE)


def test_every_purged_table_is_tied_to_its_session_by_the_database(engine: Engine) -> None:
    tied = {table for table, parent, _, column, _ in catalogue(engine, FOREIGN_KEYS) if parent == "sessions"}
    assert tied == {table.__tablename__ for table in PURGED} | {"artifacts", "memories", "skill_revisions"}


def test_what_outlives_a_conversation_has_no_foreign_key(engine: Engine) -> None:
    keyed = {table for table, *_ in catalogue(engine, FOREIGN_KEYS)}
    assert keyed.isdisjoint({"tombstones", "outbox", "deletion_records", "list_versions"})


def test_a_tombstone_is_four_columns_and_an_outbox_row_holds_no_content(engine: Engine) -> None:
    columns: dict[object, set[object]] = {}
    for table, column, *_ in catalogue(engine, COLUMNS):
        columns.setdefault(table, set()).add(column)
    assert columns["tombstones"] == {"session_id", "tenant_id", "principal_id", "deleted_at"}
    assert columns["outbox"] == {
        "key", "session_id", "reserved", "attempts", "next_attempt_at", "error", "created_at",
    }  # fmt: skip
    assert columns["deletion_records"] == {
        "principal_id", "workspace", "dataset", "key", "deleted_at", "raised_at",
    }  # fmt: skip


def test_every_model_is_in_the_one_list_of_tables(engine: Engine) -> None:
    there = {str(row[0]) for row in catalogue(engine, COLUMNS)}
    assert there == set(metadata.tables)


def test_every_time_has_a_zone(engine: Engine) -> None:
    kinds = {str(kind) for _, column, kind, *_ in catalogue(engine, COLUMNS) if str(column).endswith("_at")}
    assert kinds == {"timestamp with time zone"}
