"""Alembic's entry: runs migrations on the connection that models/migrations.py opened."""

from alembic import context

from models.tables import metadata

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=metadata,
    transaction_per_migration=True,
    compare_server_default=True,
)
with context.begin_transaction():
    context.run_migrations()
