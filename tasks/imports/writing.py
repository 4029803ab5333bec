"""Parsed conversations into a principal's history, each in a transaction of its own (PRODUCT.md 6).

| what is found here | what happens |
|---|---|
| nothing of that id | the conversation is made, with the export's own times: imported |
| the conversation, with fewer messages | what is new is appended behind what is held: imported |
| the conversation, with all of them | already there |
| its tombstone, and that of each id after it | skipped, reason `deleted_here`; with `again`, made under the next id |
| the conversation, with fewer messages and an active run | refused: only a run's worker writes while it is active |

Files are written to the store before the transaction, under keys that are owed a deletion until it commits. The
transaction looks again at what was found; when another import or a deletion came between, all of it begins anew.
What was deleted in between stays deleted, `again` or not: the user speaks of what was deleted before.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError, OperationalError
from sqlalchemy.orm import Session

from models import artifacts, outbox, runs
from models.accounts import Owner
from models.append import BATCH_MAX, PAYLOAD_MAX, Draft, append, lock_conversation, open_conversation
from models.base import database_time
from models.bytestore import Missing
from models.errors import Invalid, InvalidState, NotFound, Refusal, TooLarge
from models.history import Conversation, Event
from models.purge import tombstone
from tasks.imports.files import UNKNOWN_TYPE
from tasks.imports.identity import imported_id
from tasks.imports.parsed import AttachmentUnreadable, Parsed
from tasks.resources import Resources

DELETED_HERE = "deleted_here"
_TRIES = 5  # each lost one means that another import or a deletion got through
_LOCK_TIMEOUT, _DEADLOCK = "55P03", "40P01"  # PostgreSQL's SQLSTATE
_EVENT = re.compile(r"events\[(\d+)\]\.payload")
_media_type = re.compile(r"[a-z0-9][\w.+-]{0,99}/[a-z0-9][\w.+-]{0,99}", re.ASCII | re.IGNORECASE).fullmatch

Uploads = dict[tuple[int, int], artifacts.Uploaded]
"""What was stored, by the places of its message and of itself among the message's attachments."""


@dataclass(frozen=True, slots=True)
class Written:
    """What became of one conversation: `imported`, `already_there` or `skipped`, the last with its reason."""

    outcome: str
    reason: str = ""
    files_left: int = 0  # attachments whose bytes were damaged or over a bound: only their names are kept


class Halt(Exception):
    """A witness wants the import to go no further: it costs no conversation, and passes through everything."""


class Witness:
    """Hears of each write where it happens. This one keeps nothing."""

    def placed(self, session_id: str) -> None:
        """The next conversation is, or would be, the one of this id."""

    def written(
        self, db: Session, session_id: str, parsed: Parsed, *, created: bool, files_left: int
    ) -> None:
        """Called last in the transaction that writes it: what is written here is there exactly when that is."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a parsed conversation belongs: its id, and the message ids that are there already."""

    session_id: str
    exists: bool
    held: frozenset[str] = field(default_factory=frozenset)


class _Changed(Exception):
    """What was found has changed since."""


def write_conversation(
    resources: Resources,
    owner: Owner,
    secret: bytes,
    parsed: Parsed,
    *,
    again: bool = False,
    witness: Witness | None = None,
) -> Written:
    """Imports one conversation, whole or not at all. `secret` is the principal's import secret.

    Raises Refusal when something in it cannot be stored or now is not the time, StoreFault when its files cannot be.
    """
    seen, witness = "", witness or Witness()
    for _ in range(_TRIES):
        with Session(resources.engine) as db:
            place = _place(db, owner, secret, parsed, again, seen)
        if place is None:
            return Written("skipped", DELETED_HERE)
        seen = place.session_id
        witness.placed(seen)
        if all(message.source_id in place.held for message in parsed.messages):
            return Written("already_there")
        with suppress(_Changed):
            return Written("imported", files_left=_write(resources, owner, parsed, place, witness))
    raise InvalidState("changing", "it changed here while it was imported; import the file again")


def _place(db: Session, owner: Owner, secret: bytes, parsed: Parsed, again: bool, seen: str) -> _Place | None:
    """None when it was deleted here; `seen` is the id that was not deleted when it was looked for before."""
    n = 0
    while True:
        session_id = imported_id(parsed, secret, n)
        mine = (Conversation.id == session_id, Conversation.principal_id == owner.principal_id)
        if db.execute(select(Conversation.id).where(*mine)).scalar_one_or_none() is not None:
            return _Place(session_id, True, _held(db, session_id))
        if tombstone(db, owner, session_id) is None:
            return _Place(session_id, False) if again or not n else None
        if session_id == seen:
            return None
        n += 1


def _held(db: Session, session_id: str) -> frozenset[str]:
    message_id = Event.payload[("import", "message_id")].astext
    return frozenset(
        db.scalars(select(message_id).where(Event.session_id == session_id, message_id.is_not(None)))
    )


def _write(resources: Resources, owner: Owner, parsed: Parsed, place: _Place, witness: Witness) -> int:
    uploads: Uploads = {}
    try:
        left = _upload(resources, parsed, place, uploads)
        with Session(resources.engine) as db, db.begin():
            _ready(db, owner, parsed, place)
            for uploaded in uploads.values():
                artifacts.claim(db, uploaded.key)
            _append(db, owner, parsed, place, uploads)
            witness.written(db, place.session_id, parsed, created=not place.exists, files_left=left)
        return left
    except BaseException as fault:
        _give_up(resources, [uploaded.key for uploaded in uploads.values()])
        state = getattr(fault.orig, "pgcode", None) if isinstance(fault, OperationalError) else None
        if state == _DEADLOCK:
            raise _Changed from None
        if state == _LOCK_TIMEOUT:
            raise InvalidState("locked", "other work held it for too long; import the file again") from None
        raise


def _ready(db: Session, owner: Owner, parsed: Parsed, place: _Place) -> None:
    """The conversation, new or locked, as it was found; raises _Changed when it is not."""
    if not place.exists:
        created_at, updated_at = _times(parsed)
        try:
            open_conversation(
                db,
                owner,
                session_id=place.session_id,
                created_at=created_at,
                updated_at=updated_at,
                origin=parsed.format,
            )
        except (IntegrityError, InvalidState):  # it was made, or made and deleted
            raise _Changed from None
        return
    try:
        conversation = lock_conversation(db, owner, place.session_id)
    except NotFound:
        raise _Changed from None
    if _held(db, place.session_id) != place.held:
        raise _Changed
    runs.refuse_active(db, conversation, database_time(db))


def _append(db: Session, owner: Owner, parsed: Parsed, place: _Place, uploads: Uploads) -> None:
    _, updated_at = _times(parsed)
    numbered = list(_drafts(parsed, place.held, uploads))
    for start in range(0, len(numbered), BATCH_MAX):
        batch = numbered[start : start + BATCH_MAX]
        try:
            append(db, owner, place.session_id, [draft for _, draft in batch], at=updated_at)
        except (Invalid, TooLarge) as refusal:
            raise _told(refusal, [number for number, _ in batch]) from None


def _told(refusal: Refusal, numbers: Sequence[int]) -> Refusal:
    """The refusal of a batch in words of the export; `numbers` are the messages' own, from 1, one a draft."""
    found = _EVENT.match(str(refusal.details.get("field", "")))
    if found is None:
        return refusal
    message = f"message {numbers[int(found[1])]}"
    if isinstance(refusal, TooLarge):
        return TooLarge(f"{message} has over {PAYLOAD_MAX >> 20} MiB")
    return Invalid(message, f"{message} cannot be stored: {refusal.detail.replace(found[0], 'it')}")


def _times(parsed: Parsed) -> tuple[datetime | None, datetime | None]:
    """The export's own times; where one is missing, its messages', else the other; None is the time of import."""
    said = [message.created_at for message in parsed.messages if message.created_at is not None]
    created_at = parsed.created_at or min(said, default=parsed.updated_at)
    return created_at, parsed.updated_at or max(said, default=created_at)


def _drafts(parsed: Parsed, held: Collection[str], uploads: Uploads) -> Iterator[tuple[int, Draft]]:
    """The events of the messages that are not held, each with its message's number from 1."""
    at, _ = _times(parsed)
    for index, message in enumerate(parsed.messages):
        at = message.created_at or at  # without a time of its own: that of the message before it
        if message.source_id in held:
            continue
        places = range(len(message.attachments))
        mine = {place: uploads[index, place] for place in places if (index, place) in uploads}
        payload = _with_artifacts(message.payload, mine)
        payload["import"] = {"format": parsed.format, "message_id": message.source_id}
        yield index + 1, Draft(message.type, payload, created_at=at)
        for uploaded in mine.values():
            created = {
                "artifact_id": uploaded.key,
                "name": uploaded.name,
                "content_type": uploaded.content_type,
                "size": uploaded.size,
                "sha256": uploaded.sha256.hex(),
            }
            yield index + 1, Draft("artifact_created", created, created_at=at)


def _with_artifacts(payload: dict[str, Any], uploads: Mapping[int, artifacts.Uploaded]) -> dict[str, Any]:
    """The payload with each stored attachment's id in its block: the n-th file block is the n-th attachment."""
    name = "output" if "output" in payload else "content"
    blocks = payload.get(name)
    if not uploads or not isinstance(blocks, list):
        return dict(payload)
    marked, position = [], 0
    for block in blocks:
        if isinstance(block, dict) and block.get("type") in ("image", "file"):
            if position in uploads:
                block = {**block, "artifact_id": uploads[position].key}
            position += 1
        marked.append(block)
    return {**payload, name: marked}


def _upload(resources: Resources, parsed: Parsed, place: _Place, uploads: Uploads) -> int:
    """Stores the files of the messages that are not held, and adds each to `uploads`; says how many had to be left."""
    left = 0
    for index, message in enumerate(parsed.messages):
        if message.source_id in place.held:
            continue
        for position, attachment in enumerate(message.attachments):
            if attachment.open is None:
                continue
            with Session(resources.engine) as db, db.begin():
                key = artifacts.reserve(db, place.session_id)
            try:
                stored = resources.store.put(key, attachment.open())
            except AttachmentUnreadable:
                _give_up(resources, [key])  # its name remains in the message
                left += 1
                continue
            except Missing:
                raise InvalidState(
                    "upload_expired", "a file in it took too long to store; import the file again"
                ) from None
            except BaseException:
                _give_up(resources, [key])
                raise
            kind = attachment.content_type.partition(";")[0].strip()
            kind = kind if _media_type(kind) else UNKNOWN_TYPE
            uploads[index, position] = artifacts.Uploaded(
                key, attachment.name, kind, stored.size, stored.sha256
            )
    return left


def _give_up(resources: Resources, keys: Sequence[str]) -> None:
    """Makes the deletion of these bytes due."""
    if keys:
        with Session(resources.engine) as db, db.begin():
            for key in keys:
                outbox.give_up(db, key)
