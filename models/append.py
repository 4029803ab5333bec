"""The one verb that appends events; nothing else writes to `events` (PRODUCT.md 3.2).

In one transaction, with the conversation's row locked first: the events get the next `seq`s, become their rows
(`models/project.py`), settle the title, move `updated_at`, renew the run's lease, and raise the list's version
last. A batch is all or nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson
from sqlalchemy import func, literal_column, select, update
from sqlalchemy.orm import Session

from models import project, runs
from models.accounts import Owner
from models.base import database_time
from models.bulk import Bulk
from models.errors import Invalid, InvalidState, NotFound, TooLarge
from models.history import Conversation, Event, Tombstone
from models.ids import is_id, new_id
from models.payloads import check
from models.rules import NAME_MAX, activity, clamped, title_of
from models.versions import raising, touch_list

BATCH_MAX = 1000  # events in one append
_EVENTS = Bulk(Event, ["session_id", "seq", "id", "run_id", "type", "parent_id", "payload", "created_at"])
PAYLOAD_MAX = 4 * 1024 * 1024  # bytes of one payload as JSON


@dataclass(frozen=True, slots=True)
class Draft:
    """An event that a caller wants appended. `created_at` is an export's own time of it, for import alone."""

    type: str
    payload: dict[str, Any]
    parent_id: str | None = None
    created_at: datetime | None = None


def open_conversation(
    db: Session,
    owner: Owner,
    *,
    session_id: str | None = None,
    created_at: datetime | None = None,
    updated_at: datetime | None = None,
    origin: str | None = None,
) -> Conversation:
    """A new, empty conversation; the times and the id are given by import alone, and clamped to 1970..now.

    Raises InvalidState("session_deleted") when a conversation of that id was deleted: nothing revives one.
    """
    now = database_time(db)
    made = clamped(created_at, now) if created_at else now
    conversation = Conversation(
        id=session_id or new_id(),
        tenant_id=owner.tenant_id,
        principal_id=owner.principal_id,
        origin=origin,
        created_at=made,
        updated_at=clamped(updated_at, now) if updated_at else made,
        last_seq=0,
    )
    db.add(conversation)
    db.flush()
    if session_id is not None and db.get(Tombstone, session_id) is not None:
        # Asked after the insert, which waits for a deletion under way: before it, one could slip in between.
        raise InvalidState("session_deleted", "This conversation was deleted, and nothing brings it back.")
    touch_list(db, owner.principal_id)
    return conversation


def lock_conversation(db: Session, owner: Owner, session_id: str) -> Conversation:
    """The conversation with its row locked, read afresh. Raises NotFound for foreign, deleted and missing alike."""
    return locked_now(db, owner, session_id)[0]


def locked_now(db: Session, owner: Owner, session_id: str) -> tuple[Conversation, datetime]:
    """Like `lock_conversation`, with the database's time, in one statement.

    The time is read again when the row changed while we waited for it, so it is never before what was written last.
    """
    row = None
    if is_id(session_id):
        mine = select(Conversation, func.clock_timestamp()).where(
            Conversation.id == session_id, Conversation.principal_id == owner.principal_id
        )
        locked = mine.with_for_update(of=Conversation).execution_options(populate_existing=True)
        row = db.execute(locked).one_or_none()
    if row is None:
        raise NotFound("There is no such conversation. It may have been deleted.")
    return row[0], row[1]


def append(
    db: Session,
    owner: Owner,
    session_id: str,
    drafts: Sequence[Draft],
    *,
    run_id: str | None = None,
    at: datetime | None = None,
) -> list[project.Written]:
    """Appends `drafts` in order and returns them as stored.

    `run_id` names the run that writes: it must be the conversation's active one, and its lease is renewed.
    `at` is the activity's time where it is not the database's own, for import alone.
    Of several appends in one transaction the first alone may form memories: the locks have an order.
    Raises NotFound, Invalid (naming the draft), TooLarge, and InvalidState when the run has ended.
    """
    if not 1 <= len(drafts) <= BATCH_MAX:
        raise Invalid("events", f"A batch has 1 to {BATCH_MAX} events.")
    payloads, texts = zip(
        *(_stored(f"events[{index}]", draft) for index, draft in enumerate(drafts)), strict=True
    )
    conversation, now = locked_now(db, owner, session_id)
    if run_id is not None:
        runs.renew(db, conversation, run_id, now)
    events = _numbered(conversation, drafts, payloads, run_id, now)
    _insert(db, session_id, drafts, texts, events)
    project.apply(db, project.Place(owner, session_id, events[0].seq, now), events)
    ended = next((event for event in events if event.type == "run_ended"), None)
    if ended is not None:
        _end(db, conversation, events, ended, now)
    moved = (
        update(Conversation)
        .where(Conversation.id == session_id)
        .values(
            title=_title(db, conversation, drafts) if conversation.title is None else conversation.title,
            last_seq=events[-1].seq,
            updated_at=activity(conversation.updated_at, at or now, now),
        )
    )
    # One statement for the row and the version; the row is locked already, so the order of the locks is kept.
    db.connection().execute(raising(owner.principal_id).add_cte(moved.cte("moved")))
    db.expire(conversation)
    return events


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
        settled = update(Conversation).where(Conversation.id == row.id)
        db.execute(settled.values(title=title_of(row.payload.get("content"))))
    for principal_id in sorted({row.principal_id for row in rows}):
        touch_list(db, principal_id)
    return len(rows)


def _stored(field: str, draft: Draft) -> tuple[dict[str, Any], str]:
    if not draft.type or len(draft.type) > NAME_MAX or not draft.type.isprintable():
        raise Invalid(f"{field}.type", f"type must be a word of 1 to {NAME_MAX} characters.")
    if draft.parent_id is not None and not is_id(draft.parent_id):
        raise Invalid(f"{field}.parent_id", "parent_id must be an event's id.")
    if not isinstance(draft.payload, dict):
        raise Invalid(f"{field}.payload", "payload must be an object.")
    payload = check(f"{field}.payload", draft.type, draft.payload)
    try:
        raw = orjson.dumps(payload)
    except (orjson.JSONEncodeError, TypeError):
        raise Invalid(
            f"{field}.payload",
            "payload holds a lone surrogate, a number beyond 64 bits, or is nested too deeply.",
        ) from None
    if len(raw) > PAYLOAD_MAX:
        raise TooLarge(f"{field}.payload has over {PAYLOAD_MAX} bytes.", field=f"{field}.payload")
    if b"\\u0000" in raw:
        refuse_unstorable(f"{field}.payload", payload)
    return payload, raw.decode()


def refuse_unstorable(field: str, value: object) -> None:
    """Raises Invalid, naming the place, when a NUL or a lone surrogate is anywhere in a JSON value."""
    stack: list[tuple[str, object]] = [(field, value)]
    while stack:
        place, item = stack.pop()
        if isinstance(item, str):
            _storable(place, item)
        elif isinstance(item, dict):
            for name, child in item.items():
                _storable(place, name)
                stack.append((f"{place}.{name}" if place else name, child))
        elif isinstance(item, list):
            stack.extend((f"{place}[{index}]", child) for index, child in enumerate(item))


def _storable(place: str, text: str) -> None:
    """One string: a value, or a name in the object at `place`."""
    if "\0" in text:
        raise Invalid(place or "body", f"{place or 'The body'} holds a NUL character.")
    if not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text):
        raise Invalid(place or "body", f"{place or 'The body'} holds half of a surrogate pair.")


def _numbered(
    conversation: Conversation,
    drafts: Sequence[Draft],
    payloads: Sequence[dict[str, Any]],
    run_id: str | None,
    now: datetime,
) -> list[project.Written]:
    return [
        project.Written(
            id=new_id(),
            seq=conversation.last_seq + offset,
            run_id=run_id,
            type=draft.type,
            payload=payload,
            created_at=clamped(draft.created_at, now) if draft.created_at else now,
            nested=draft.parent_id is not None,
        )
        for offset, (draft, payload) in enumerate(zip(drafts, payloads, strict=True), start=1)
    ]


def _insert(
    db: Session,
    session_id: str,
    drafts: Sequence[Draft],
    texts: Sequence[str],
    events: Sequence[project.Written],
) -> None:
    _EVENTS.write(
        db,
        [
            (
                session_id,
                event.seq,
                event.id,
                event.run_id,
                event.type,
                draft.parent_id,
                text,
                event.created_at,
            )
            for draft, text, event in zip(drafts, texts, events, strict=True)
        ],
    )


def _end(
    db: Session,
    conversation: Conversation,
    events: Sequence[project.Written],
    ended: project.Written,
    now: datetime,
) -> None:
    if ended.run_id is None or ended is not events[-1]:
        raise Invalid(f"events[{events.index(ended)}]", "run_ended is a run's own last event.")
    runs.end(db, conversation, ended.run_id, ended.payload["status"], now)


def _title(db: Session, conversation: Conversation, drafts: Sequence[Draft]) -> str | None:
    if (
        conversation.last_seq
    ):  # it may predate the title's write path: then the first message is stored already
        payload = db.execute(_first_user_message(conversation.id)).scalar_one_or_none()
        if payload is not None:
            return title_of(payload.get("content"))
    for draft in drafts:
        if draft.type == "user_message" and draft.parent_id is None:
            return title_of(draft.payload.get("content"))
    return None


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
