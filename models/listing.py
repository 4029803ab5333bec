"""The index of a principal's conversations (ADR-0050, decision 1; PRODUCT.md 3.4).

Ordered by (updated_at DESC, id DESC) and walked by row comparison along `ix_sessions_order`, so that the cost of
a page grows neither with its depth nor with the table. Each read here is one statement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Select, bindparam, func, literal, select, tuple_
from sqlalchemy.orm import Session

from models.accounts import Owner, SignIn
from models.base import Id
from models.cursor import Position
from models.errors import NotFound
from models.history import Conversation, ListVersion
from models.ids import is_id

WINDOW_MAX = 5000  # rows that one poll may be answered with


@dataclass(frozen=True, slots=True)
class Entry:
    """A row of the index: what SessionView says."""

    id: str
    title: str
    created_at: datetime
    updated_at: datetime
    active_run_id: str | None
    last_run_id: str | None

    @property
    def position(self) -> Position:
        return Position(self.updated_at, self.id)


@dataclass(frozen=True, slots=True)
class Page:
    """Entries in order; `more` says that the index goes on below the last."""

    entries: Sequence[Entry]
    more: bool


_table = Conversation.__table__.c
_COLUMNS = (
    _table.id,
    func.coalesce(_table.title, "").label("title"),
    _table.created_at,
    _table.updated_at,
    _table.active_run_id,
    _table.last_run_id,
)


def page(db: Connection | Session, owner: Owner, limit: int, after: Position | None = None) -> Page:
    """Up to `limit` entries below `after`, or from the top."""
    wanted = _index(owner).limit(limit + 1)
    if after is not None:
        wanted = wanted.where(tuple_(_table.updated_at, _table.id) < _row(after))
    rows = db.execute(wanted).all()
    return Page([_entry(row) for row in rows[:limit]], more=len(rows) > limit)


def window(
    db: Connection | Session, owner: Owner, until: Position, least: int, most: int = WINDOW_MAX
) -> Page:
    """Every entry from the top down to `until`, at least `least` of them where there are as many.

    What a poll of a list that was scrolled down to `until` is answered with. Over `most` entries, the first
    `least` alone.
    """
    above = select(_table.id).where(
        _table.principal_id == owner.principal_id, tuple_(_table.updated_at, _table.id) >= _row(until)
    )
    # Counted no further than it matters, so that the cost is bounded by `most` and not by the table.
    count = select(func.count()).select_from(above.limit(most + 1).subquery()).scalar_subquery()
    size = func.greatest(count, least)
    rows = db.execute(_index(owner).limit(func.least(size + 1, most + 1)).add_columns(size)).all()
    size_now = min(rows[0][-1], len(rows)) if rows else 0
    if size_now > most:
        size_now = least
    return Page([_entry(row) for row in rows[:size_now]], more=len(rows) > size_now)


def find(db: Connection | Session, owner: Owner, session_id: str) -> Entry:
    """The scoped point read. Raises NotFound for a foreign, deleted or missing one alike."""
    row = None
    if is_id(session_id):
        mine = select(*_COLUMNS).where(_table.id == session_id, _table.principal_id == owner.principal_id)
        row = db.execute(mine).one_or_none()
    if row is None:
        raise NotFound("There is no such conversation. It may have been deleted.")
    return _entry(row)


def version(db: Connection | Session, owner: Owner) -> int:
    """How often the list changed; 0 for one that never held anything."""
    wanted = select(ListVersion.version).where(ListVersion.principal_id == owner.principal_id)
    return db.execute(wanted).scalar_one_or_none() or 0


def probe(db: Connection | Session, sign_in_id: str) -> int | None:
    """What an unchanged poll costs: in one statement, whether the sign-in still holds, and its list's version.

    None when the sign-in is expired, revoked or unknown. Reads no session row.
    """
    if not is_id(sign_in_id):
        return None
    return db.execute(_PROBE, {"sign_in_id": sign_in_id}).scalar_one_or_none()


# Built once: a poll is the request that is made most often, and building the statement costs as much as running it.
_PROBE = (
    select(func.coalesce(ListVersion.version, 0))
    .select_from(SignIn)
    .outerjoin(ListVersion, ListVersion.principal_id == SignIn.principal_id)
    .where(
        SignIn.id == bindparam("sign_in_id", type_=Id()),
        SignIn.revoked_at.is_(None),
        SignIn.expires_at > func.now(),
    )
)


def _index(owner: Owner) -> Select[Any]:
    return (
        select(*_COLUMNS)
        .where(_table.principal_id == owner.principal_id)
        .order_by(_table.updated_at.desc(), _table.id.desc())
    )


def _row(position: Position) -> Any:
    return tuple_(literal(position.updated_at), literal(position.id, Id()))


def _entry(row: Sequence[Any]) -> Entry:
    return Entry(row[0], row[1], row[2], row[3], row[4], row[5])
