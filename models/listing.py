"""The index of a principal's conversations (ADR-0050, decision 1; PRODUCT.md 3.4).

Ordered by (updated_at DESC, id DESC) and walked by row comparison along `ix_sessions_order`, so that the cost of
a page grows neither with its depth nor with the table. Each read here is one statement.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, DateTime, Integer, bindparam, func, select, tuple_
from sqlalchemy.orm import Session

from models.accounts import Owner
from models.base import Id
from models.cursor import Position
from models.errors import NotFound
from models.history import Conversation, ListVersion
from models.ids import is_id
from models.prepared import Prepared
from models.sign_ins import SignIn

TOP = Position(datetime.max.replace(tzinfo=UTC), "ffffffff-ffff-ffff-ffff-ffffffffffff")  # above every entry
WINDOW_MAX = 5000  # rows that one poll may be answered with


class Entry(NamedTuple):
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


def page(db: Connection | Session, owner: Owner, limit: int, after: Position | None = None) -> Page:
    """Up to `limit` entries below `after`, or from the top: the same walk at the same cost."""
    wanted = {"principal_id": owner.principal_id, "limit": limit + 1}
    rows = _PAGE.rows(db, wanted | _named(after or TOP))
    return Page(_entries(rows[:limit]), more=len(rows) > limit)


def window(
    db: Connection | Session, owner: Owner, until: Position, least: int, most: int = WINDOW_MAX
) -> Page:
    """Every entry from the top down to `until`, at least `least` of them where there are as many.

    What a poll of a list that was scrolled down to `until` is answered with. Over `most` entries, the first
    `least` alone.
    """
    wanted = {"principal_id": owner.principal_id, "least": least, "most": most}
    rows = _WINDOW.rows(db, wanted | _named(until))
    size = min(rows[0][-1], len(rows)) if rows else 0
    if size > most:
        size = least
    return Page(_entries(row[:-1] for row in rows[:size]), more=len(rows) > size)


def find(db: Connection | Session, owner: Owner, session_id: str) -> Entry:
    """The scoped point read. Raises NotFound for a foreign, deleted or missing one alike."""
    row = None
    if is_id(session_id):
        row = _FOUND.row(db, {"id": session_id, "principal_id": owner.principal_id})
    if row is None:
        raise NotFound("There is no such conversation. It may have been deleted.")
    return Entry(*row)


def version(db: Connection | Session, owner: Owner) -> int:
    """How often the list changed; 0 for one that never held anything."""
    row = _VERSION.row(db, {"principal_id": owner.principal_id})
    return row[0] if row else 0


def probe(db: Connection | Session, sign_in_id: str) -> int | None:
    """What an unchanged poll costs: in one statement, whether the sign-in still holds, and its list's version.

    None when the sign-in is expired, revoked or unknown. Reads no session row.
    """
    if not is_id(sign_in_id):
        return None
    row = _PROBE.row(db, {"sign_in_id": sign_in_id})
    return row[0] if row else None


def _named(position: Position) -> dict[str, Any]:
    return {"updated_at": position.updated_at, "id": position.id}


def _entries(rows: Iterable[Sequence[Any]]) -> list[Entry]:
    return [Entry(*row) for row in rows]


_table = Conversation.__table__.c
_principal = bindparam("principal_id", type_=Id())
_place = tuple_(bindparam("updated_at", type_=DateTime(timezone=True)), bindparam("id", type_=Id()))
_order = tuple_(_table.updated_at, _table.id)
_limit = bindparam("limit", type_=Integer())
_least, _most = bindparam("least", type_=Integer()), bindparam("most", type_=Integer())
# Counted no further than it matters, so that the cost is bounded by `most` and not by the table.
_above = select(_table.id).where(_table.principal_id == _principal, _order >= _place).limit(_most + 1)
_counted = select(func.count()).select_from(_above.subquery()).scalar_subquery()
_sized = select(func.greatest(_counted, _least).label("size")).cte("sized")
_size = select(_sized.c.size).scalar_subquery()
_index = (
    select(
        _table.id,
        func.coalesce(_table.title, "").label("title"),
        _table.created_at,
        _table.updated_at,
        _table.active_run_id,
        _table.last_run_id,
    )
    .where(_table.principal_id == _principal)
    .order_by(_table.updated_at.desc(), _table.id.desc())
)

_PAGE = Prepared("list_page", _index.where(_order < _place).limit(_limit))
_WINDOW = Prepared("list_window", _index.add_columns(_size).limit(func.least(_size + 1, _most + 1)))
_FOUND = Prepared("list_found", _index.where(_table.id == bindparam("id", type_=Id())).order_by(None))
_VERSION = Prepared("list_version", select(ListVersion.version).where(ListVersion.principal_id == _principal))
_PROBE = Prepared(
    "list_probe",
    select(func.coalesce(ListVersion.version, 0))
    .select_from(SignIn)
    .outerjoin(ListVersion, ListVersion.principal_id == SignIn.principal_id)
    .where(
        SignIn.id == bindparam("sign_in_id", type_=Id()),
        SignIn.revoked_at.is_(None),
        SignIn.expires_at > func.now(),
    ),
)
