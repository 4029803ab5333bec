"""`Idempotency-Key` of a create: the same key gives the same conversation for 24 hours, and never a deleted one again.

The row outlives the conversation, holding two ids and the key's hash, so that a retry after a deletion is told so.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import delete, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Mapped, Session, mapped_column

from models.accounts import Owner, hashed
from models.append import open_conversation
from models.base import Base, Id, IdKey, database_time
from models.errors import InvalidState
from models.history import Conversation
from models.ids import new_id

KEPT = timedelta(hours=24)


class IdempotencyKey(Base):
    """Which conversation a key made."""

    __tablename__ = "idempotency_keys"
    principal_id: Mapped[IdKey]
    hash: Mapped[bytes] = mapped_column(primary_key=True)
    session_id: Mapped[str] = mapped_column(Id())
    created_at: Mapped[datetime] = mapped_column(index=True)


def create(db: Session, owner: Owner, key: str | None) -> str:
    """The id of a new conversation, or of the one that this key made within 24 hours.

    Of two requests with one key at once, the second waits for the first and is given its conversation.
    Raises InvalidState("session_deleted") when that one was deleted meanwhile.
    """
    if key is None:
        return open_conversation(db, owner).id
    now = database_time(db)
    named = (IdempotencyKey.principal_id == owner.principal_id, IdempotencyKey.hash == hashed(key))
    db.execute(delete(IdempotencyKey).where(*named, IdempotencyKey.created_at <= now - KEPT))
    wanted = insert(IdempotencyKey).values(
        principal_id=owner.principal_id, hash=hashed(key), session_id=new_id(), created_at=now
    )
    made = db.execute(
        wanted.on_conflict_do_nothing().returning(IdempotencyKey.session_id)
    ).scalar_one_or_none()
    if made is not None:
        return open_conversation(db, owner, session_id=made).id
    session_id: str = db.execute(select(IdempotencyKey.session_id).where(*named)).scalar_one()
    if db.get(Conversation, session_id) is None:
        raise deleted()
    return session_id


def deleted() -> InvalidState:
    """What a create is told whose key made a conversation that is deleted by now."""
    return InvalidState("session_deleted", "The conversation that this key made was deleted.")


def expire(db: Session) -> int:
    """Drops keys of over 24 hours; returns how many."""
    old = delete(IdempotencyKey).where(IdempotencyKey.created_at <= database_time(db) - KEPT)
    return len(db.execute(old.returning(IdempotencyKey.hash)).all())
