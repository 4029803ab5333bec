"""The tables of a conversation and of everything its events become (ADR-0050, decision 5; PRODUCT.md 3.2).

Every table that holds something of a conversation has a `session_id` with a foreign key to `sessions` and an
index led by it, and none has a foreign key to anything else: a purge then costs what its rows cost, and the
database itself refuses to drop a session while a row of it is left. `models/purge.py` names each of them.

| table | filled by |
|---|---|
| sessions, list_versions | opening a conversation; each append |
| runs | start of a run |
| events | the append verb, and nothing else |
| checkpoints, projections, approvals, tool_invocations, recall_traces | projections of events |
| search_entries (`models/indexing.py`) | messages that a transcript shows |
| tombstones | a deletion, and nothing else; the one table here without a foreign key |
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ARRAY, BigInteger, Boolean, ForeignKey, Index, Integer, Text, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, Id, IdKey, IdRef


def session_key(*, primary_key: bool = False, nullable: bool = False, index: bool = True) -> Any:
    """A `session_id` column: it leads the primary key or gets an index of its own, unless one follows in the table."""
    return mapped_column(
        Id(),
        ForeignKey("sessions.id"),
        primary_key=primary_key,
        nullable=nullable,
        index=index and not primary_key,
    )


class Conversation(Base):
    """One session. `title` is NULL until the first top-level user message settles it, for good."""

    __tablename__ = "sessions"
    id: Mapped[str] = mapped_column(Id(), primary_key=True)
    tenant_id: Mapped[IdRef]
    principal_id: Mapped[str] = mapped_column(Id(), ForeignKey("principals.id"))
    title: Mapped[str | None] = mapped_column(Text)
    origin: Mapped[str | None] = mapped_column(Text)  # the kind of export it was imported from
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime] = mapped_column()
    last_seq: Mapped[int] = mapped_column(BigInteger, default=0, server_default=text("0"))
    # From which `seq` on its messages can be found; in a row of before search, none (`models/indexing.py`).
    searched_from: Mapped[int] = mapped_column(
        BigInteger, default=1, server_default=text("9223372036854775807")
    )
    active_run_id: Mapped[str | None] = mapped_column(Id())
    last_run_id: Mapped[str | None] = mapped_column(Id())
    import_id: Mapped[str | None] = mapped_column(Id())  # the import that made it, and its last event then
    import_seq: Mapped[int | None] = mapped_column(BigInteger)
    __table_args__ = (
        # The order of the index itself, so that a page is one walk along it at any depth.
        Index("ix_sessions_order", principal_id, updated_at.desc(), id.desc()),  # noqa: A003  the column above
        Index("ix_sessions_unsearched", "principal_id", postgresql_where=text("searched_from > 1")),
        Index("ix_sessions_import_id", "import_id", postgresql_where=text("import_id IS NOT NULL")),
    )


class Tombstone(Base):
    """That a conversation was deleted: these four columns and nothing else. No foreign key, kept for good."""

    __tablename__ = "tombstones"
    session_id: Mapped[IdKey]
    tenant_id: Mapped[IdRef]
    principal_id: Mapped[str] = mapped_column(Id())
    deleted_at: Mapped[datetime]
    __table_args__ = (Index("ix_tombstones_order", "principal_id", "deleted_at"),)


class ListVersion(Base):
    """How often a principal's list changed: what an unchanged poll costs is one look-up here."""

    __tablename__ = "list_versions"
    principal_id: Mapped[IdKey]
    version: Mapped[int] = mapped_column(BigInteger)


class Run(Base):
    """One run of an agent. `status` is `running`, or how it ended: succeeded, failed, cancelled, expired."""

    __tablename__ = "runs"
    id: Mapped[IdKey]
    session_id: Mapped[str] = session_key(index=False)
    principal_id: Mapped[IdRef]
    status: Mapped[str] = mapped_column(Text)
    cancel_requested: Mapped[bool] = mapped_column(Boolean, default=False)
    lease_seconds: Mapped[int] = mapped_column(Integer)
    lease_expires_at: Mapped[datetime]
    created_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]
    __table_args__ = (
        Index("ix_runs_session_id", "session_id"),
        # The database's own word that one run is active: a race that slipped every check still fails here.
        Index("uq_runs_active", "session_id", unique=True, postgresql_where=text("status = 'running'")),
        Index("ix_runs_lease", "lease_expires_at", postgresql_where=text("status = 'running'")),
    )


class Event(Base):
    """One immutable event; `seq` is dense per session from 1."""

    __tablename__ = "events"
    session_id: Mapped[str] = session_key(primary_key=True)
    seq: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    id: Mapped[IdRef]
    run_id: Mapped[str | None] = mapped_column(Id())
    type: Mapped[str] = mapped_column(Text)
    parent_id: Mapped[str | None] = mapped_column(Id())
    payload: Mapped[dict[str, Any]]
    created_at: Mapped[datetime]
    __table_args__ = (
        # Finds the message that a title comes from without reading the transcript.
        Index(
            "ix_events_top_level_user",
            "session_id",
            "seq",
            postgresql_where=text("type = 'user_message' AND parent_id IS NULL"),
        ),
    )


class Checkpoint(Base):
    """The state that a `checkpoint` event saved."""

    __tablename__ = "checkpoints"
    session_id: Mapped[str] = session_key(primary_key=True)
    seq: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    run_id: Mapped[str | None] = mapped_column(Id())
    state: Mapped[Any] = mapped_column(JSONB)
    created_at: Mapped[datetime]


class Projection(Base):
    """The latest state of each name that `projected` events gave."""

    __tablename__ = "projections"
    session_id: Mapped[str] = session_key(primary_key=True)
    name: Mapped[str] = mapped_column(Text, primary_key=True)
    seq: Mapped[int] = mapped_column(BigInteger)
    run_id: Mapped[str | None] = mapped_column(Id())
    state: Mapped[Any] = mapped_column(JSONB)
    updated_at: Mapped[datetime]


class Approval(Base):
    """Something a run asked leave for. `decision` is NULL while pending, then `approve` or `deny`."""

    __tablename__ = "approvals"
    id: Mapped[IdKey]
    session_id: Mapped[str] = session_key()
    principal_id: Mapped[IdRef]
    run_id: Mapped[str | None] = mapped_column(Id())
    seq: Mapped[int] = mapped_column(BigInteger)
    summary: Mapped[str] = mapped_column(Text)
    tool: Mapped[str | None] = mapped_column(Text)
    arguments: Mapped[Any] = mapped_column(JSONB, nullable=True)
    decision: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[datetime]
    decided_at: Mapped[datetime | None]
    __table_args__ = (Index("ix_approvals_order", "principal_id", "id"),)


class ToolInvocation(Base):
    """A tool call and its result, joined by `call_id`."""

    __tablename__ = "tool_invocations"
    session_id: Mapped[str] = session_key(primary_key=True)
    call_id: Mapped[str] = mapped_column(Text, primary_key=True)
    run_id: Mapped[str | None] = mapped_column(Id())
    name: Mapped[str | None] = mapped_column(Text)
    arguments: Mapped[Any] = mapped_column(JSONB, nullable=True)
    output: Mapped[Any] = mapped_column(JSONB, nullable=True)
    status: Mapped[str] = mapped_column(Text)  # called, or what the result says
    created_at: Mapped[datetime]


class RecallTrace(Base):
    """What a run asked its memories, and which answered."""

    __tablename__ = "recall_traces"
    session_id: Mapped[str] = session_key(primary_key=True)
    seq: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    run_id: Mapped[str | None] = mapped_column(Id())
    query: Mapped[str] = mapped_column(Text)
    memory_ids: Mapped[list[str]] = mapped_column(ARRAY(Id()))
    created_at: Mapped[datetime]
