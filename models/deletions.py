"""Deletions seen together: what many would take along, and how far those that were done have come.

A tombstone holds ids and a time, so that is all that is told of a deletion; how many of its files still have bytes is
read from the outbox. Nothing here deletes: `purge.delete_conversation` does, one conversation a transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, Select, any_, func, literal, select, tuple_
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Session

from models.accounts import Owner
from models.artifacts import Artifact
from models.base import Id
from models.cursor import Position
from models.history import Conversation, Event, Run, Tombstone
from models.ids import is_id
from models.indexing import SAID
from models.listing import TOP
from models.memories import Memory
from models.outbox import BLOCKED, Owed

PAGE = 50  # deletions of one page
TITLES = 3  # that a question names


class Left(NamedTuple):
    """Files that still have bytes; of `blocked` ones the store refuses us, and only an operator can help."""

    owed: int
    blocked: int


class Deletion(NamedTuple):
    """One tombstone, and what is left of its files."""

    session_id: str
    deleted_at: datetime
    owed: int
    blocked: int


@dataclass(frozen=True, slots=True)
class Deletions:
    """Deletions newest first; `more` says that there are older ones."""

    held: Sequence[Deletion]
    more: bool


@dataclass(frozen=True, slots=True)
class Reach:
    """What a deletion of many would take along; `busy` are titles of those that can't go: a run is active."""

    ids: Sequence[str]
    titles: Sequence[str]  # the first few of those that can go, newest first
    busy: Sequence[str]
    messages: int
    files: int
    bytes: int
    memories: int


def reach(db: Session, owner: Owner, session_ids: Sequence[str]) -> Reach:
    """Counts what deleting those of `session_ids` that are the owner's would remove, and which can't go now."""
    wanted = [one for one in session_ids if is_id(one)]
    alive = (
        select(Run.id)
        .where(
            Run.session_id == Conversation.id,
            Run.status == "running",
            Run.lease_expires_at > func.clock_timestamp(),
        )
        .exists()
    )
    mine = (
        select(Conversation.id, func.coalesce(Conversation.title, ""), alive)
        .where(_among(Conversation.id, wanted), Conversation.principal_id == owner.principal_id)
        .order_by(Conversation.updated_at.desc(), Conversation.id.desc())
    )
    rows = db.execute(mine).all()
    going = [row[0] for row in rows if not row[2]]
    counted = db.execute(
        select(
            _count(select(func.count()).where(_among(Event.session_id, going), Event.type.in_(SAID))),
            _count(select(func.count()).where(_among(Artifact.session_id, going))),
            _count(
                select(func.coalesce(func.sum(Artifact.size), 0)).where(_among(Artifact.session_id, going))
            ),
            _count(select(func.count()).where(_among(Memory.session_id, going))),
        )
    ).one()
    return Reach(
        ids=going,
        titles=[row[1] for row in rows if not row[2]][:TITLES],
        busy=[row[1] for row in rows if row[2]],
        messages=counted[0],
        files=counted[1],
        bytes=int(counted[2]),
        memories=counted[3],
    )


def page(
    db: Connection | Session, owner: Owner, after: Position | None = None, limit: int = PAGE
) -> Deletions:
    """The owner's deletions below `after`, newest first. One statement."""
    place = after or TOP
    stones = (
        select(Tombstone.session_id, Tombstone.deleted_at)
        .where(
            Tombstone.principal_id == owner.principal_id,
            tuple_(Tombstone.deleted_at, Tombstone.session_id)
            < tuple_(literal(place.updated_at), literal(place.id, Id())),
        )
        .order_by(Tombstone.deleted_at.desc(), Tombstone.session_id.desc())
        .limit(limit + 1)
        .subquery()
    )
    left = _left().where(Owed.session_id == stones.c.session_id).lateral()
    rows = db.execute(
        select(stones.c.session_id, stones.c.deleted_at, left.c.owed, left.c.blocked)
        .join(left, literal(True))
        .order_by(stones.c.deleted_at.desc(), stones.c.session_id.desc())
    ).all()
    return Deletions([Deletion(*row) for row in rows[:limit]], more=len(rows) > limit)


def left_since(db: Connection | Session, owner: Owner, since: datetime) -> Left:
    """What is left of the files of all that the owner deleted at or after `since`."""
    mine = select(Tombstone.session_id).where(
        Tombstone.principal_id == owner.principal_id, Tombstone.deleted_at >= since
    )
    row = db.execute(_left().where(Owed.session_id.in_(mine))).one()
    return Left(row[0], row[1])


def _left() -> Select[int, int]:
    blocked = func.count().filter(Owed.error.in_(BLOCKED))
    return select(func.count().label("owed"), blocked.label("blocked")).select_from(Owed)


def _among(column: object, ids: Sequence[str]) -> ColumnElement[bool]:
    found: ColumnElement[bool] = column == any_(literal(list(ids), ARRAY(Id())))
    return found


def _count(counted: Select[int]) -> ColumnElement[int]:
    return counted.scalar_subquery()
