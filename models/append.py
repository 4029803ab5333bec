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
from sqlalchemy import bindparam, func, select, text
from sqlalchemy.orm import Session

from models import project, runs, titles
from models.accounts import Owner
from models.base import database_time
from models.bulk import Bulk
from models.errors import Invalid, InvalidState, NotFound, TooLarge
from models.history import Conversation, Event, Run, Tombstone
from models.ids import is_id, new_id
from models.payloads import check
from models.reading import MISSING_RUN
from models.rules import NAME_MAX, activity, clamped, lease_end
from models.storable import DEEP, refuse_deep, refuse_unstorable
from models.versions import RAISING, touch_list

BATCH_MAX = 1000  # events in one append
_EVENTS = Bulk(Event, ["session_id", "seq", "id", "run_id", "type", "parent_id", "payload", "created_at"])
PAYLOAD_MAX = 4 * 1024 * 1024  # bytes of one payload as JSON

# Built once: each append asks these, and building one costs as much as PostgreSQL's part of it.
_MINE = (Conversation.id == bindparam("session_id"), Conversation.principal_id == bindparam("principal_id"))
_LOCK = (
    select(Conversation, func.clock_timestamp())
    .where(*_MINE)
    .with_for_update(of=Conversation)
    .execution_options(populate_existing=True)
)
# Both rows are locked: of a row that is joined without its lock, PostgreSQL would show the state of before the wait.
_LOCK_WITH_RUN = (
    select(Conversation, Run, func.clock_timestamp())
    .join(Run, Run.session_id == Conversation.id)
    .where(*_MINE, Run.id == bindparam("run_id"))
    .with_for_update(of=(Conversation, Run))
    .execution_options(populate_existing=True)
)
# One statement for the conversation, the lease and the version: both rows are locked, so the locks keep their order.
_MOVE = text(
    f"""
    WITH moved AS (
        UPDATE sessions SET title = :title, last_seq = :last_seq, updated_at = :updated_at WHERE id = :session_id
    ), renewed AS (
        UPDATE runs SET lease_expires_at = :lease WHERE id = CAST(:run_id AS uuid)
    )
    {RAISING}
    """  # noqa: S608  a statement of our own
)


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
        mine = {"session_id": session_id, "principal_id": owner.principal_id}
        row = db.execute(_LOCK, mine).one_or_none()
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
    conversation, run, now = _locked_for(db, owner, session_id, run_id)
    events = _numbered(conversation, drafts, payloads, run_id, now)
    _insert(db, session_id, drafts, texts, events)
    project.apply(db, project.Place(owner, session_id, events[0].seq, now), events)
    ended = next((event for event in events if event.type == "run_ended"), None)
    if ended is not None:
        _end(db, conversation, events, ended, now)
    move = {
        "session_id": session_id,
        "title": _title(db, conversation, drafts),
        "last_seq": events[-1].seq,
        "updated_at": activity(conversation.updated_at, at or now, now),
        "run_id": run_id,
        "lease": lease_end(now, run.lease_seconds) if run else None,
        "principal_id": owner.principal_id,
    }
    db.connection().execute(_MOVE, move)
    for stale in filter(None, (conversation, run)):
        db.expire(stale)
    return events


def _locked_for(
    db: Session, owner: Owner, session_id: str, run_id: str | None
) -> tuple[Conversation, Run | None, datetime]:
    """What `locked_now` gives, and the run that writes, locked too and known to be alive."""
    if run_id is None:
        conversation, now = locked_now(db, owner, session_id)
        return conversation, None, now
    row = None
    if is_id(session_id) and is_id(run_id):
        asked = {"session_id": session_id, "principal_id": owner.principal_id, "run_id": run_id}
        row = db.execute(_LOCK_WITH_RUN, asked).one_or_none()
    if row is None:
        lock_conversation(db, owner, session_id)  # says which of the two is missing
        raise NotFound(MISSING_RUN)
    runs.refuse_ended(row[1], row[2])
    return row[0], row[1], row[2]


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
    if raw.count(b"[") + raw.count(b"{") > DEEP:  # cheaper than a look into each payload
        refuse_deep(f"{field}.payload", payload)
    return payload, raw.decode()


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
    if conversation.title is not None:
        return conversation.title
    asked = (d.payload.get("content") for d in drafts if d.type == "user_message" and d.parent_id is None)
    return titles.settled(db, conversation, asked)
