"""A conversation's title, settled once from its first top-level user message (ADR-0050, decision 1).

`models/rules.py` says how a text becomes a title; `models/append.py` asks here while a conversation has none.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import literal_column, select, update
from sqlalchemy.orm import Session

from models.history import Conversation, Event
from models.rules import title_of
from models.versions import touch_list


def derive_titles(db: Session, limit: int = 1000) -> int:
    """Settles the titles of up to `limit` conversations that predate the title's own write path; returns how many.

    By the same function, from the immutable first message (ADR-0050, decision 1). Moves no order, and raises the
    versions of the lists that show them. Two callers at once share the work.
    """
    first = _first_user_message(Conversation.id).scalar_subquery()
    rows = db.execute(
        select(Conversation.id, Conversation.principal_id, first.label("payload"))
        .where(Conversation.title.is_(None), first.is_not(None))
        .limit(limit)
        .with_for_update(of=Conversation, skip_locked=True)
    ).all()
    for row in rows:
        late = update(Conversation).where(Conversation.id == row.id)
        db.execute(late.values(title=title_of(row.payload.get("content"))))
    for principal_id in sorted({row.principal_id for row in rows}):
        touch_list(db, principal_id)
    return len(rows)


def settled(db: Session, conversation: Conversation, messages: Iterable[Any]) -> str | None:
    """The title of a conversation that has none yet, once `messages` are appended; None while none gives one.

    `messages` are the new top-level user messages' contents, in order.
    """
    if conversation.last_seq:  # it may predate this write path: then the first message is stored already
        payload = db.execute(_first_user_message(conversation.id)).scalar_one_or_none()
        if payload is not None:
            return title_of(payload.get("content"))
    return next((title_of(content) for content in messages), None)


def _first_user_message(session_id: Any) -> Any:
    return (
        select(Event.payload)
        .where(
            Event.session_id == session_id,
            # Literals, so that the partial index is seen to fit.
            Event.type == literal_column("'user_message'"),
            Event.parent_id.is_(None),
        )
        .order_by(Event.seq)
        .limit(1)
    )
