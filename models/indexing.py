"""What search looks in: one row for each message that a transcript shows and that has words.

Written in the transaction that appends the message, so it is found at once; purged in the transaction that deletes
its conversation. Nested messages (a sub-agent's) are not shown, so they are not found; the texts of memories, tools
and files are not indexed. A conversation's title is the beginning of its first message, and is found with that.

Conversations from before search are indexed by upkeep, from their newest message down: `sessions.searched_from` is
the `seq` from which on a conversation's messages can be found. Appends to them are found at once all the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import BigInteger, Connection, Index, func, select, update
from sqlalchemy.dialects.postgresql import TSVECTOR
from sqlalchemy.orm import Mapped, Session, mapped_column

from models.base import Base
from models.bulk import Bulk
from models.history import Conversation, Event, session_key
from models.rules import texts
from models.words import tag, vector

SAID = ("user_message", "assistant_message")
CONVERSATIONS, MESSAGES, TOGETHER = 100, 400, 20  # of one batch of older ones; and how many are read together
PENDING_MAX = 10_000  # older conversations that are counted
ALL = 1  # of `searched_from`: every message can be found


class SearchEntry(Base):
    """The words of one message, each beginning with its principal's tag (`models/words.py`)."""

    __tablename__ = "search_entries"
    session_id: Mapped[str] = session_key(primary_key=True)
    seq: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    words: Mapped[str] = mapped_column(TSVECTOR)
    __table_args__ = (Index("ix_search_entries_words", "words", postgresql_using="gin"),)


_ENTRIES = Bulk(SearchEntry, ["session_id", "seq", "words"], "ON CONFLICT (session_id, seq) DO NOTHING")


def index(
    db: Session, principal_id: str, session_id: str, said: Sequence[tuple[int, Mapping[str, Any]]]
) -> None:
    """Makes messages findable; each is its `seq` and its payload. One statement, none when they have no words.

    The caller holds the conversation's lock. One that is indexed already stays as it is.
    """
    of = tag(principal_id)
    rows = [(session_id, seq, vector(texts(payload.get("content")), of)) for seq, payload in said]
    rows = [row for row in rows if row[2]]
    if rows:
        _ENTRIES.write(db, rows)


def index_older(db: Session) -> int:
    """Indexes a batch of what was said before there was a search; returns how many conversations it took up.

    Bounded in conversations and messages, so that no lock is held for long; one that is locked is passed over.
    """
    waiting = (
        select(Conversation.id, Conversation.principal_id, Conversation.searched_from)
        .where(Conversation.searched_from > ALL)
        .limit(CONVERSATIONS)
        .with_for_update(of=Conversation, skip_locked=True)
    )
    left = MESSAGES
    taken = 0
    for session_id, principal_id, above in db.execute(waiting).all():
        if left <= 0:
            break
        taken += 1
        while above > ALL and left > 0:
            said = _said_below(db, session_id, above)
            left -= len(said)
            index(db, principal_id, session_id, said)
            above = said[-1][0] if len(said) == TOGETHER else ALL
        settled = update(Conversation).where(Conversation.id == session_id).values(searched_from=above)
        db.connection().execute(settled)
    return taken


def pending(db: Connection | Session, principal_id: str) -> int:
    """How many conversations of a principal are not wholly indexed yet; counted up to PENDING_MAX."""
    waiting = (
        select(Conversation.id)
        .where(Conversation.principal_id == principal_id, Conversation.searched_from > ALL)
        .limit(PENDING_MAX)
    )
    return db.execute(select(func.count()).select_from(waiting.subquery())).scalar_one()


def _said_below(db: Session, session_id: str, seq: int) -> Sequence[tuple[int, Mapping[str, Any]]]:
    below = (
        select(Event.seq, Event.payload)
        .where(
            Event.session_id == session_id,
            Event.seq < seq,
            Event.parent_id.is_(None),
            Event.type.in_(SAID),
        )
        .order_by(Event.seq.desc())
        .limit(TOGETHER)
    )
    return [(row[0], row[1]) for row in db.execute(below)]
