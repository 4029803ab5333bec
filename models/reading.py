"""Reads of one conversation and its runs, each scoped to its principal in the statement itself."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, Text, cast, func, select
from sqlalchemy.orm import Session

from models.accounts import Owner
from models.errors import NotFound
from models.history import Conversation, Event, Run
from models.ids import is_id

MISSING_RUN = "There is no such run. Its conversation may have been deleted."
PAGE_BYTES = 16 * 1024 * 1024  # of payloads, after which a page ends before its limit


class Read(NamedTuple):
    """One event as it is read: the columns of its row."""

    id: str
    seq: int
    run_id: str | None
    type: str
    parent_id: str | None
    payload: dict[str, Any]
    created_at: datetime


class Page(NamedTuple):
    """Events in order; `more` says that there are others above the last."""

    events: Sequence[Read]
    more: bool


def events(db: Connection | Session, owner: Owner, session_id: str, after: int, limit: int) -> Page:
    """Up to `limit` events with `seq` above `after`, in order, as `above` bounds them. Raises NotFound."""
    mine = select(Conversation.id).where(
        Conversation.id == session_id, Conversation.principal_id == owner.principal_id
    )
    if not is_id(session_id) or db.execute(mine).scalar_one_or_none() is None:
        raise NotFound("There is no such conversation. It may have been deleted.")
    return above(db, session_id, after, limit)


def above(
    db: Connection | Session, session_id: str, after: int, limit: int, most_bytes: int = PAGE_BYTES
) -> Page:
    """Like `events`, for a caller who has asked whose the conversation is. One statement.

    Ends after the event that brings the payloads to `most_bytes`, so that no page costs more memory than that and
    one event.
    """
    columns = [getattr(Event, name) for name in Read._fields]
    wanted = select(*columns).where(Event.session_id == session_id, Event.seq > after)
    page = wanted.order_by(Event.seq).limit(limit + 1).subquery()
    own = func.octet_length(cast(page.c.payload, Text))
    before = func.sum(own).over(order_by=page.c.seq, rows=(None, 0)) - own
    sized = select(page, before.label("before"), func.count().over().label("found")).subquery()
    kept = select(*(sized.c[name] for name in Read._fields), sized.c.found).where(sized.c.before < most_bytes)
    rows = db.execute(kept.order_by(sized.c.seq).limit(limit)).all()
    return Page([Read(*row[:-1]) for row in rows], more=bool(rows) and rows[0].found > len(rows))


def run(db: Session, owner: Owner, run_id: str) -> Run:
    """One run of the caller's. Raises NotFound."""
    found = None
    if is_id(run_id):
        mine = select(Run).where(Run.id == run_id, Run.principal_id == owner.principal_id)
        found = db.execute(mine).scalar_one_or_none()
    if found is None:
        raise NotFound(MISSING_RUN)
    return found
