"""Artifacts: metadata here, bytes in the object store.

Bytes are written before the row that names them, so a crash between the two would leave bytes that nobody
names. Therefore a key is *reserved* first: an outbox row, committed before the first byte, that makes the
bytes owed a deletion unless the transaction that writes the artifact's row also takes the reservation back.
A died upload, and one that raced a delete, so leave nothing behind (PRODUCT.md 3.6; FAULTS.md S4, S5).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import BigInteger, Index, Text, delete, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Mapped, Session, mapped_column

from models.accounts import Owner
from models.base import Base, Id, IdKey, IdRef, database_time
from models.errors import InvalidState
from models.history import session_key
from models.ids import new_id
from models.outbox import Owed
from models.rules import RESERVATION


class Artifact(Base):
    """What is known of some bytes; the object's key is the id, so that a store lists no names."""

    __tablename__ = "artifacts"
    id: Mapped[IdKey]
    session_id: Mapped[str] = session_key()
    principal_id: Mapped[IdRef]
    run_id: Mapped[str | None] = mapped_column(Id())
    seq: Mapped[int] = mapped_column(BigInteger)
    name: Mapped[str] = mapped_column(Text)
    content_type: Mapped[str] = mapped_column(Text)
    size: Mapped[int] = mapped_column(BigInteger)
    sha256: Mapped[bytes]
    created_at: Mapped[datetime]
    __table_args__ = (Index("ix_artifacts_order", "principal_id", "id"),)


@dataclass(frozen=True, slots=True)
class Uploaded:
    """Bytes that lie in the store under a reserved key and wait for their row."""

    key: str
    name: str
    content_type: str
    size: int
    sha256: bytes


def reserve(db: Session, session_id: str) -> str:
    """A fresh key whose bytes are owed a deletion until `claim` takes it; commit before the first byte."""
    key = new_id()
    now = database_time(db)
    db.execute(
        insert(Owed).values(
            key=key, session_id=session_id, reserved=True, next_attempt_at=now + RESERVATION, created_at=now
        )
    )
    return key


def claim(db: Session, key: str) -> None:
    """Takes a reservation back, in the transaction that writes the artifact's row.

    Raises InvalidState when the reservation is gone, because its time ran out and the bytes went with it.
    """
    taken = db.execute(delete(Owed).where(Owed.key == key).returning(Owed.key)).scalar_one_or_none()
    if taken is None:
        raise expired()


def expired() -> InvalidState:
    """What an upload is told whose reservation ran out."""
    return InvalidState("upload_expired", "The upload took too long and was given up. Send it again.")


def artifacts_of(db: Session, owner: Owner, session_id: str) -> list[Artifact]:
    """The artifacts of a conversation, oldest first."""
    wanted = select(Artifact).where(
        Artifact.session_id == session_id, Artifact.principal_id == owner.principal_id
    )
    return list(db.scalars(wanted.order_by(Artifact.seq)))
