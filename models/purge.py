"""Delete Everywhere: the one function that removes a conversation, in one transaction (ADR-0050; PRODUCT.md 3.5).

Read it from top to bottom: lock, refuse, record and forget, owe, purge, detach, remove, leave a tombstone. A fault
at any step rolls all of it back. Every path that removes a conversation calls it: API, browser, bulk, upkeep.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import delete, func, insert, literal, select, update
from sqlalchemy.orm import Session

from models import runs
from models.accounts import Owner
from models.append import locked_now
from models.artifacts import Artifact
from models.base import Base, Id
from models.errors import NotFound
from models.history import (
    Approval,
    Checkpoint,
    Conversation,
    Event,
    Projection,
    RecallTrace,
    Run,
    Tombstone,
    ToolInvocation,
)
from models.ids import is_id
from models.imports import Import, ImportFailure, letting_go
from models.indexing import SearchEntry
from models.knowledge import KnowledgeDocument, SkillRevision
from models.memories import (
    Consolidation,
    ConsolidationInput,
    Memory,
    MemoryRejection,
    forget,
    formed_in,
    lock_all_workspaces,
)
from models.outbox import Owed
from models.versions import touch_list

# Everything that holds something of a conversation by its `session_id` and goes with it, beside what has a step
# of its own below. A test walks the catalogue and fails for a table that is in neither.
PURGED: Sequence[type[Base]] = (
    Event,
    SearchEntry,
    Checkpoint,
    Projection,
    Approval,
    ToolInvocation,
    RecallTrace,
    MemoryRejection,
    ConsolidationInput,
    Consolidation,
    KnowledgeDocument,
    Run,
)


@dataclass(frozen=True, slots=True)
class Reach:
    """What a deletion would take along, for the dialog that asks."""

    messages: int
    files: int
    bytes: int
    memories: int


@dataclass(frozen=True, slots=True)
class Deleted:
    """What a deletion did; `again` when the tombstone was there already and nothing was left to do."""

    deleted_at: datetime
    memories: int = 0
    files: int = 0
    again: bool = False


def delete_conversation(db: Session, owner: Owner, session_id: str) -> Deleted:
    """Removes a conversation and everything formed in it. At most 20 statements, however large it is.

    Raises NotFound for a foreign or missing one, InvalidState("active_run_exists") while a run is active.
    The caller commits, and only then lets the bytes go.
    """
    # Lock the conversation: run start and event append take the same lock first.
    try:
        conversation, now = locked_now(db, owner, session_id)
    except NotFound:
        return _deleted_before(db, owner, session_id)
    # Refuse while a run is active; an overdue one has ended, and its row goes below with the others.
    runs.refuse_alive(db, conversation, now)
    # Record the deletion of every memory that goes, and forget it with all that was consolidated from it.
    lock_all_workspaces(db, owner)
    memories = forget(db, formed_in(owner, session_id), now)
    # Owe the bytes: the artifacts' keys go to the outbox as their rows go, and so does an export that may hold it, too.
    files = _owe(db, owner, session_id, now)
    # Purge the graph.
    for table in PURGED:
        db.execute(delete(table).where(_of(table) == session_id).execution_options(synchronize_session=False))
    # Detach what is published and durable.
    detached = update(SkillRevision).where(SkillRevision.session_id == session_id)
    db.execute(
        detached.values(session_id=None, authoring_run_id=None).execution_options(synchronize_session=False)
    )
    # Turn the conversation into its tombstone.
    db.expunge(conversation)
    _bury(db, session_id, now)
    touch_list(db, owner.principal_id)
    return Deleted(now, memories=memories, files=files)


def reach(db: Session, owner: Owner, session_id: str) -> Reach:
    """Counts what `delete_conversation` would remove; one statement. Raises NotFound."""
    mine = select(Conversation.id).where(
        Conversation.id == session_id, Conversation.principal_id == owner.principal_id
    )
    if not is_id(session_id) or db.execute(mine).scalar_one_or_none() is None:
        raise NotFound("There is no such conversation. It may have been deleted.")
    said = Event.type.in_(("user_message", "assistant_message"))
    row = db.execute(
        select(
            select(func.count()).where(Event.session_id == session_id, said).scalar_subquery(),
            select(func.count()).where(Artifact.session_id == session_id).scalar_subquery(),
            select(func.coalesce(func.sum(Artifact.size), 0))
            .where(Artifact.session_id == session_id)
            .scalar_subquery(),
            select(func.count()).where(Memory.session_id == session_id).scalar_subquery(),
        )
    ).one()
    return Reach(messages=row[0], files=row[1], bytes=int(row[2]), memories=row[3])


def tombstone(db: Session, owner: Owner, session_id: str) -> Tombstone | None:
    """The tombstone of a conversation that this principal deleted."""
    if not is_id(session_id):
        return None
    mine = select(Tombstone).where(
        Tombstone.session_id == session_id, Tombstone.principal_id == owner.principal_id
    )
    return db.execute(mine).scalar_one_or_none()


def _deleted_before(db: Session, owner: Owner, session_id: str) -> Deleted:
    stone = tombstone(db, owner, session_id)
    if stone is None:
        raise NotFound("There is no such conversation. It may have been deleted.")
    return Deleted(stone.deleted_at, again=True)


def _owe(db: Session, owner: Owner, session_id: str, now: datetime) -> int:
    gone = delete(Artifact).where(Artifact.session_id == session_id).returning(Artifact.id).cte("gone")
    owed = select(gone.c.id, literal(session_id, Id()), literal(now), literal(now))
    exports = letting_go(Import.principal_id == owner.principal_id, now).cte("exports")
    columns = ["key", "session_id", "next_attempt_at", "created_at"]
    result: Any = db.connection().execute(
        insert(Owed).from_select(columns, owed, include_defaults=False).add_cte(gone, exports)
    )
    return int(result.rowcount)


def _bury(db: Session, session_id: str, now: datetime) -> None:
    gone = (
        delete(Conversation)
        .where(Conversation.id == session_id)
        .returning(Conversation.id, Conversation.tenant_id, Conversation.principal_id)
        .cte("gone")
    )
    # That an import once failed on it names it, too.
    named = delete(ImportFailure).where(ImportFailure.session_id == session_id).cte("named")
    left = select(gone.c.id, gone.c.tenant_id, gone.c.principal_id, literal(now))
    columns = ["session_id", "tenant_id", "principal_id", "deleted_at"]
    db.connection().execute(insert(Tombstone).from_select(columns, left).add_cte(gone, named))


def _of(table: type[Base]) -> Any:
    return table.__table__.c.session_id
