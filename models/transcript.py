"""What a reader sees of one conversation: its top-level events, newest page first, and the memories formed in it.

A page is one statement along the primary key of `events`, so it costs the same in a conversation of any length.
Callers have found the conversation as its owner's before they ask here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, select
from sqlalchemy.orm import Session

from models.accounts import Owner
from models.artifacts import Artifact
from models.history import Event
from models.memories import Memory

PAGE = 100  # top-level events of one page
BESIDE_MAX = 200  # memories or files named on one page


@dataclass(frozen=True, slots=True)
class Said:
    """One top-level event as it is shown."""

    seq: int
    type: str
    payload: dict[str, Any]
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Part:
    """Events in their order; `before` is the `seq` below which earlier ones are found, None at the beginning."""

    events: Sequence[Said]
    before: int | None


def part(db: Connection | Session, session_id: str, before: int | None = None, limit: int = PAGE) -> Part:
    """The newest `limit` top-level events, or those just below `before`. One statement."""
    wanted = select(Event.seq, Event.type, Event.payload, Event.created_at).where(
        Event.session_id == session_id, Event.parent_id.is_(None)
    )
    if before is not None:
        wanted = wanted.where(Event.seq < before)
    rows = db.execute(wanted.order_by(Event.seq.desc()).limit(limit + 1)).all()
    shown = [Said(row[0], row[1], row[2], row[3]) for row in reversed(rows[:limit])]
    return Part(shown, before=shown[0].seq if len(rows) > limit else None)


def memories(db: Connection | Session, owner: Owner, session_id: str) -> Sequence[str]:
    """The texts of the first memories that were formed in this conversation, oldest first."""
    wanted = select(Memory.text).where(
        Memory.session_id == session_id, Memory.principal_id == owner.principal_id
    )
    return db.execute(wanted.order_by(Memory.id).limit(BESIDE_MAX)).scalars().all()


def files(db: Connection | Session, owner: Owner, session_id: str) -> Sequence[Any]:
    """Rows (id, name, size) of the conversation's first artifacts, oldest first."""
    wanted = select(Artifact.id, Artifact.name, Artifact.size).where(
        Artifact.session_id == session_id, Artifact.principal_id == owner.principal_id
    )
    return db.execute(wanted.order_by(Artifact.seq).limit(BESIDE_MAX)).all()


def file(db: Connection | Session, owner: Owner, session_id: str, artifact_id: str) -> Any | None:
    """The row (name, content_type, size) of one artifact of this conversation, or None."""
    wanted = select(Artifact.name, Artifact.content_type, Artifact.size).where(
        Artifact.id == artifact_id,
        Artifact.session_id == session_id,
        Artifact.principal_id == owner.principal_id,
    )
    return db.execute(wanted).one_or_none()
