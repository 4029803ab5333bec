"""Parsed conversations into a principal's history, each in a transaction of its own (PRODUCT.md 6).

| what is found here | what happens |
|---|---|
| nothing of that id | the conversation is made, with the export's own times: imported |
| the conversation, with fewer messages | what is new is appended: imported |
| the conversation, with all of them | already there |
| its tombstone | skipped, reason `deleted_here`; with `again`, it is made under the next id |

Files are written to the store before the transaction, under keys that are owed a deletion until it commits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from models import artifacts, outbox
from models.accounts import Owner
from models.append import BATCH_MAX, Draft, append, lock_conversation, open_conversation
from models.errors import NotFound
from models.history import Conversation, Event
from models.purge import tombstone
from tasks.imports.identity import imported_id
from tasks.imports.parsed import AttachmentUnreadable, Parsed, ParsedMessage
from tasks.resources import Resources

DELETED_HERE = "deleted_here"
_TRIES = 3  # two imports of one conversation at once: the second finds what the first has made


@dataclass(frozen=True, slots=True)
class Written:
    """What became of one conversation: `imported`, `already_there` or `skipped`, the last with its reason."""

    outcome: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a parsed conversation belongs: its id, and the message ids that are there already."""

    session_id: str
    exists: bool
    held: frozenset[str]


def write_conversation(
    resources: Resources, owner: Owner, secret: bytes, parsed: Parsed, *, again: bool = False
) -> Written:
    """Imports one conversation, whole or not at all. `secret` is the principal's import secret.

    Raises Refusal when something in it cannot be stored, StoreFault when its files cannot be.
    """
    for tries_left in reversed(range(_TRIES)):
        try:
            return _written(resources, owner, secret, parsed, again)
        except IntegrityError:
            if not tries_left:
                raise
    raise AssertionError("unreachable")


def _written(resources: Resources, owner: Owner, secret: bytes, parsed: Parsed, again: bool) -> Written:
    with Session(resources.engine) as db:
        place = _place(db, owner, secret, parsed, again)
    if place is None:
        return Written("skipped", DELETED_HERE)
    new = [message for message in parsed.messages if message.source_id not in place.held]
    if not new:
        return Written("already_there")
    uploads: dict[tuple[int, int], artifacts.Uploaded] = {}
    try:
        for key, uploaded in _uploads(resources, place.session_id, new):
            uploads[key] = uploaded
        with Session(resources.engine) as db, db.begin():
            _append(db, owner, parsed, place, new, uploads)
    except BaseException:
        _give_up(resources, uploads.values())
        raise
    return Written("imported")


def _place(db: Session, owner: Owner, secret: bytes, parsed: Parsed, again: bool) -> _Place | None:
    n = 0
    while True:
        session_id = imported_id(parsed, secret, n)
        mine = (Conversation.id == session_id, Conversation.principal_id == owner.principal_id)
        if db.execute(select(Conversation.id).where(*mine)).scalar_one_or_none() is not None:
            return _Place(session_id, True, _held(db, session_id))
        if tombstone(db, owner, session_id) is None:
            return _Place(session_id, False, frozenset())
        if not again:
            return None
        n += 1


def _held(db: Session, session_id: str) -> frozenset[str]:
    message_id = Event.payload[("import", "message_id")].astext
    return frozenset(
        db.scalars(select(message_id).where(Event.session_id == session_id, message_id.is_not(None)))
    )


def _append(
    db: Session,
    owner: Owner,
    parsed: Parsed,
    place: _Place,
    new: Sequence[ParsedMessage],
    uploads: dict[tuple[int, int], artifacts.Uploaded],
) -> None:
    created_at, updated_at = _times(parsed)
    if place.exists:
        lock_conversation(db, owner, place.session_id)
        if _held(db, place.session_id) != place.held:
            raise NotFound("The conversation changed while it was imported. Import it again.")
    else:
        if tombstone(db, owner, place.session_id) is not None:
            raise NotFound("The conversation was deleted while it was imported.")
        open_conversation(
            db,
            owner,
            session_id=place.session_id,
            created_at=created_at,
            updated_at=updated_at,
            origin=parsed.format,
        )
    drafts = list(_drafts(parsed, new, uploads, created_at))
    for uploaded in uploads.values():
        artifacts.claim(db, uploaded.key)
    for start in range(0, len(drafts), BATCH_MAX):
        append(db, owner, place.session_id, drafts[start : start + BATCH_MAX], at=updated_at)


def _times(parsed: Parsed) -> tuple[datetime | None, datetime | None]:
    """The export's own times; where it has none of a kind, its messages'; else None, the time of import."""
    said = [message.created_at for message in parsed.messages if message.created_at is not None]
    created_at = parsed.created_at or min(said, default=None)
    return created_at, parsed.updated_at or max(said, default=created_at)


def _drafts(
    parsed: Parsed,
    new: Sequence[ParsedMessage],
    uploads: dict[tuple[int, int], artifacts.Uploaded],
    created_at: datetime | None,
) -> Iterator[Draft]:
    at = created_at
    for index, message in enumerate(new):
        at = message.created_at or at
        mine = {
            position: uploads[index, position]
            for position in range(len(message.attachments))
            if (index, position) in uploads
        }
        payload = _with_artifacts(message.payload, mine)
        payload["import"] = {"format": parsed.format, "message_id": message.source_id}
        yield Draft(message.type, payload, created_at=at)
        for uploaded in mine.values():
            yield Draft(
                "artifact_created",
                {
                    "artifact_id": uploaded.key,
                    "name": uploaded.name,
                    "content_type": uploaded.content_type,
                    "size": uploaded.size,
                    "sha256": uploaded.sha256.hex(),
                },
                created_at=at,
            )


def _with_artifacts(payload: dict[str, Any], uploads: dict[int, artifacts.Uploaded]) -> dict[str, Any]:
    """The payload with each stored attachment's id in its block: the n-th file block is the n-th attachment."""
    field = "output" if "output" in payload else "content"
    blocks = payload.get(field)
    if not uploads or not isinstance(blocks, list):
        return dict(payload)
    marked, position = [], 0
    for block in blocks:
        if isinstance(block, dict) and block.get("type") in ("image", "file"):
            if position in uploads:
                block = {**block, "artifact_id": uploads[position].key}
            position += 1
        marked.append(block)
    return {**payload, field: marked}


def _uploads(
    resources: Resources, session_id: str, new: Sequence[ParsedMessage]
) -> Iterator[tuple[tuple[int, int], artifacts.Uploaded]]:
    for index, message in enumerate(new):
        for position, attachment in enumerate(message.attachments):
            if attachment.open is None:
                continue
            with Session(resources.engine) as db, db.begin():
                key = artifacts.reserve(db, session_id)
            try:
                stored = resources.store.put(key, attachment.open())
            except AttachmentUnreadable:
                _forget_key(resources, key)  # its name remains in the message
                continue
            except BaseException:
                _forget_key(resources, key)
                raise
            yield (
                (index, position),
                artifacts.Uploaded(key, attachment.name, attachment.content_type, stored.size, stored.sha256),
            )


def _give_up(resources: Resources, uploads: Sequence[artifacts.Uploaded] | Any) -> None:
    for uploaded in uploads:
        _forget_key(resources, uploaded.key)


def _forget_key(resources: Resources, key: str) -> None:
    with Session(resources.engine) as db, db.begin():
        outbox.give_up(db, key)
