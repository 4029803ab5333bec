"""What its owner asks of an import: to begin, to stop, to be repeated, undone, or taken off the list.

Which conversations an import made stands on their own rows (`sessions.import_id`), so it goes with each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from models.accounts import Owner
from models.base import database_time
from models.errors import InvalidState, NotFound
from models.history import Conversation, Tombstone
from models.ids import is_id, new_id
from models.imports import QUEUE_PATIENCE, WORKING, Import, ImportFailure, close, let_go
from models.outbox import hold
from models.rules import RESERVATION

AT_ONCE = 10  # imports of one principal that are not over
LISTED = 50

_COUNTS = ("imported", "created", "already_there", "skipped", "failed", "replaced", "files_left")
_ZERO = dict.fromkeys((*_COUNTS, "position", "length", "total", "to_remove", "removed", "attempts"), 0)


def refuse_many(db: Session, owner: Owner) -> None:
    """Raises InvalidState("too_many_imports") when AT_ONCE of the owner's imports are not over."""
    mine = select(func.count()).where(Import.principal_id == owner.principal_id, Import.state.in_(WORKING))
    if db.execute(mine).scalar_one() >= AT_ONCE:
        raise InvalidState(
            "too_many_imports", f"{AT_ONCE} imports are under way. Wait until one has ended, then try again."
        )


def create(
    db: Session,
    principal_id: str,
    *,
    kind: str,
    file_name: str,
    size: int,
    upload: str | None = None,
    again: bool = False,
    import_id: str | None = None,
) -> Import:
    """A queued import."""
    now = database_time(db)
    made = Import(
        id=import_id or new_id(),
        principal_id=principal_id,
        kind=kind,
        state="queued",
        file_name=file_name,
        size=size,
        upload=upload,
        again=again,
        cancel_requested=False,
        lease_until=now + QUEUE_PATIENCE,
        created_at=now,
        **_ZERO,
    )
    db.add(made)
    db.flush()
    return made


def find(db: Session, owner: Owner, import_id: str, *, lock: bool = False) -> Import:
    """The owner's import. Raises NotFound for a foreign and a missing one alike."""
    row = None
    if is_id(import_id):
        wanted = select(Import).where(Import.id == import_id, Import.principal_id == owner.principal_id)
        row = db.execute(wanted.with_for_update() if lock else wanted).scalar_one_or_none()
    if row is None:
        raise NotFound("There is no such import. It may have been taken off the list.")
    return row


def listed(db: Session, owner: Owner) -> Sequence[Import]:
    """The owner's newest imports, newest first."""
    mine = select(Import).where(Import.principal_id == owner.principal_id)
    return db.scalars(mine.order_by(Import.id.desc()).limit(LISTED)).all()


def ahead(db: Session, row: Import) -> int:
    """How many imports, of whomever, are worked on before a queued one: those that are not over and came before it."""
    before = select(func.count()).where(Import.state.in_(WORKING), Import.id < row.id)
    return db.execute(before).scalar_one()


def failures(db: Session, import_id: str) -> Sequence[ImportFailure]:
    """The failures that are kept by name, in the order of the file."""
    mine = select(ImportFailure).where(ImportFailure.import_id == import_id)
    return db.scalars(mine.order_by(ImportFailure.number)).all()


def cancel(db: Session, owner: Owner, import_id: str) -> bool:
    """Asks for its end; one that no worker holds ends here. True when it is over now. Raises NotFound."""
    row = find(db, owner, import_id, lock=True)
    if not row.over and row.lease_id is None:
        close(db, row, "undone" if row.state == "undoing" else "stopped", None, keep=row.total > 0)
    elif not row.over:
        row.cancel_requested = True
    db.flush()
    return row.over


def repeat(db: Session, owner: Owner, import_id: str, *, again: bool) -> Import:
    """A new import of the same file, which is still kept. Raises NotFound, InvalidState("file_gone")."""
    row = find(db, owner, import_id, lock=True)
    if not row.over or row.upload is None or not hold(db, row.upload, RESERVATION):
        raise InvalidState("file_gone", "The file is not kept any more. Choose it again on the Import page.")
    refuse_many(db, owner)
    upload, row.upload = row.upload, None
    db.flush()
    return create(
        db,
        owner.principal_id,
        kind="file",
        file_name=row.file_name,
        size=row.size,
        upload=upload,
        again=again,
    )


def begin_undo(db: Session, owner: Owner, import_id: str) -> Import:
    """Queues the removal of what this import made. Raises NotFound; InvalidState at work, or with nothing left.

    Asked again while that goes on, as from a second tab, it changes nothing and is no error.
    """
    row = find(db, owner, import_id, lock=True)
    if row.state == "undoing":
        return row
    if not row.over:
        raise InvalidState("import_active", "This import is still at work. Stop it first.")
    left = made_by(db, owner, import_id)
    if not left:
        raise InvalidState("nothing_left", "Nothing that this import made is left here.")
    let_go(db, row)
    row.state, row.to_remove, row.removed, row.ended_at, row.error = "undoing", left, 0, None, None
    row.lease_until, row.attempts, row.cancel_requested = database_time(db) + QUEUE_PATIENCE, 0, False
    db.flush()
    return row


def forget(db: Session, owner: Owner, import_id: str) -> None:
    """Takes an import off the list, with its file and its failures; what it made stays.

    Raises NotFound, InvalidState while it works.
    """
    row = find(db, owner, import_id, lock=True)
    if not row.over:
        raise InvalidState("import_active", "This import is still at work. Stop it first.")
    _remove(db, row)


def forget_all(db: Session, owner: Owner) -> None:
    """Removes every import of a principal, those at work too, whose workers then stop. For closing an account."""
    mine = select(Import).where(Import.principal_id == owner.principal_id).with_for_update()
    for row in db.scalars(mine).all():
        _remove(db, row)


def made_by(db: Session, owner: Owner, import_id: str) -> int:
    """How many of the conversations that this import made are still here."""
    return db.execute(select(func.count()).where(*_made(owner, import_id))).scalar_one()


def continued(db: Session, owner: Owner, import_id: str) -> int:
    """How many of them were written to since."""
    since = Conversation.last_seq > Conversation.import_seq
    return db.execute(select(func.count()).where(*_made(owner, import_id), since)).scalar_one()


def conversations(db: Session, owner: Owner, import_id: str, after: str, limit: int) -> Sequence[str]:
    """Ids of what this import made and is still here, behind the id `after`."""
    mine = select(Conversation.id).where(*_made(owner, import_id), Conversation.id > after)
    return db.scalars(mine.order_by(Conversation.id).limit(limit)).all()


def newest(db: Session, owner: Owner, import_id: str, limit: int) -> Sequence[Any]:
    """Rows (id, title) of what this import made and is still here, the latest first."""
    mine = select(Conversation.id, Conversation.title).where(*_made(owner, import_id))
    return db.execute(
        mine.order_by(Conversation.updated_at.desc(), Conversation.id.desc()).limit(limit)
    ).all()


def example(db: Session, owner: Owner) -> str | None:
    """The id of the newest example conversation that is here."""
    mine = select(Conversation.id).where(
        Conversation.principal_id == owner.principal_id, Conversation.origin == "example"
    )
    # Along the index by time, in which one that was just made stands in front.
    newest_first = mine.order_by(Conversation.updated_at.desc(), Conversation.id.desc())
    return db.execute(newest_first.limit(1)).scalar_one_or_none()


def deleted_some(db: Session, owner: Owner) -> bool:
    """Whether the owner has ever deleted a conversation here, so that "import what I deleted" means something."""
    mine = select(Tombstone.session_id).where(Tombstone.principal_id == owner.principal_id)
    return db.execute(mine.limit(1)).first() is not None


def _made(owner: Owner, import_id: str) -> tuple[Any, ...]:
    return Conversation.import_id == import_id, Conversation.principal_id == owner.principal_id


def _remove(db: Session, row: Import) -> None:
    let_go(db, row)
    db.execute(delete(ImportFailure).where(ImportFailure.import_id == row.id))
    db.delete(row)
    db.flush()
