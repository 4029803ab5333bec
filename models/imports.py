"""Imports: what was asked for, how far it is, how it ended. The rows are the truth; a queue only wakes workers.

| state | means | goes on to |
|---|---|---|
| queued | the file is in the store, no worker has taken it | running, stopped |
| running | a worker reads and writes; `total` is 0 until the file's conversations are counted | done, failed, stopped |
| done, failed, stopped | over: all of it was looked at; could not be (`error` says why); ended by its owner | undoing |
| undoing | a worker removes what this import made | undone |
| undone | that is over, too; what could not be removed is still there | undoing |

Whoever works holds a lease, and every write of theirs names it: a worker that was given up writes nothing more. A
lease that ran out is what the sweep looks for, so a killed worker and an emptied queue lose nothing.

Nothing here tells of a conversation that was deleted: which conversations an import made stands on their own rows,
and a failure is removed by the id that its conversation has or would have had.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    ColumnElement,
    ForeignKey,
    Index,
    Integer,
    Text,
    Update,
    cast,
    func,
    insert,
    select,
    text,
    update,
)
from sqlalchemy.orm import Mapped, Session, mapped_column

from models.base import Base, Id, IdKey, database_time
from models.history import Conversation, Tombstone
from models.outbox import Owed, give_up, hold
from models.rules import RESERVATION

WORKING = ("queued", "running", "undoing")
LEASE = timedelta(seconds=30)  # raised every third of it; a worker that is silent for longer is given up
QUEUE_PATIENCE = timedelta(seconds=60)  # that a queued job may take before it is queued again
AGAIN_AFTER = timedelta(seconds=15)  # a try that met a server that was away
KEPT = timedelta(
    hours=1
)  # a file of which something was left out, for "import again" without choosing it anew
FAILURES_MAX = 200  # failures kept by name; all are counted


class Import(Base):
    """One import. `kind`: file, example or command. `upload` is the key of its bytes while they are kept."""

    __tablename__ = "imports"
    id: Mapped[IdKey]
    principal_id: Mapped[str] = mapped_column(Id(), ForeignKey("principals.id"))
    kind: Mapped[str] = mapped_column(Text)
    state: Mapped[str] = mapped_column(Text)
    file_name: Mapped[str] = mapped_column(Text)
    size: Mapped[int] = mapped_column(BigInteger)
    upload: Mapped[str | None] = mapped_column(Id())
    format: Mapped[str | None] = mapped_column(Text)
    again: Mapped[bool] = mapped_column(Boolean)  # what was deleted here is imported, too
    position: Mapped[int] = mapped_column(
        BigInteger
    )  # bytes read of `length`, while conversations are counted
    length: Mapped[int] = mapped_column(BigInteger)
    total: Mapped[int] = mapped_column(Integer)
    imported: Mapped[int] = mapped_column(Integer)
    created: Mapped[int] = mapped_column(Integer)  # of the imported ones, those that were new
    already_there: Mapped[int] = mapped_column(Integer)
    skipped: Mapped[int] = mapped_column(Integer)
    failed: Mapped[int] = mapped_column(Integer)
    replaced: Mapped[int] = mapped_column(Integer)
    files_left: Mapped[int] = mapped_column(Integer)
    to_remove: Mapped[int] = mapped_column(
        Integer
    )  # what an undo found when it began, and what of it is gone
    removed: Mapped[int] = mapped_column(Integer)
    error: Mapped[str | None] = mapped_column(Text)
    cancel_requested: Mapped[bool] = mapped_column(Boolean)
    attempts: Mapped[int] = mapped_column(Integer)  # since it last got on
    lease_id: Mapped[str | None] = mapped_column(Id())
    lease_until: Mapped[datetime]
    created_at: Mapped[datetime]
    started_at: Mapped[datetime | None]
    ended_at: Mapped[datetime | None]
    __table_args__ = (
        Index("ix_imports_order", "principal_id", "id"),
        Index(
            "ix_imports_working",
            "lease_until",
            postgresql_where=text("state IN ('queued', 'running', 'undoing')"),
        ),
    )

    @property
    def done(self) -> int:
        """Conversations looked at so far."""
        return self.imported + self.already_there + self.skipped + self.failed

    @property
    def over(self) -> bool:
        return self.state not in WORKING


class ImportFailure(Base):
    """A conversation that was not imported. `session_id` is the id it has or would have had, where that is known."""

    __tablename__ = "import_failures"
    import_id: Mapped[str] = mapped_column(Id(), ForeignKey("imports.id"), primary_key=True)
    number: Mapped[int] = mapped_column(Integer, primary_key=True)
    session_id: Mapped[str | None] = mapped_column(Id(), index=True)
    conversation: Mapped[str] = mapped_column(Text)
    reason: Mapped[str] = mapped_column(Text)


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure on its way into the table."""

    conversation: str
    reason: str
    session_id: str | None = None


class LeaseLost(Exception):
    """Somebody else has this import now, or it is gone: whoever meets this stops at once and writes nothing."""


def claim(db: Session, import_id: str, lease_id: str) -> Import | None:
    """Takes an import that waits, or whose worker was given up; None when there is nothing to take."""
    now = database_time(db)
    row = db.execute(select(Import).where(Import.id == import_id).with_for_update()).scalar_one_or_none()
    if row is None or row.over or (row.lease_id is not None and row.lease_until > now):
        return None
    row.lease_id, row.lease_until = lease_id, now + LEASE
    row.started_at = row.started_at or now
    row.state = "running" if row.state == "queued" else row.state
    row.attempts += 1
    row.error = None
    if row.upload is not None:
        hold(db, row.upload, RESERVATION)
    db.flush()
    return row


def save(
    db: Session, import_id: str, lease_id: str, values: Mapping[str, Any], failed: Sequence[Failure] = ()
) -> bool:
    """Writes how far it is and renews the lease; True when its owner wants it to stop. Raises LeaseLost.

    `failed` are new ones, of which `values["failed"]` counts the last; the first FAILURES_MAX are kept by name.
    """
    gone = _deleted(db, failed)
    renewed = _mine(import_id, lease_id).values(lease_until=func.clock_timestamp() + LEASE, **values)
    asked = db.execute(renewed.returning(Import.cancel_requested)).scalar_one_or_none()
    if asked is None:
        raise LeaseLost
    first = int(values["failed"]) - len(failed) if failed else 0
    for number, one in enumerate(failed, first):
        if number < FAILURES_MAX and one.session_id not in gone:
            row = {"session_id": one.session_id, "conversation": one.conversation, "reason": one.reason}
            db.execute(insert(ImportFailure).values(import_id=import_id, number=number, **row))
    return bool(asked)


def _deleted(db: Session, failed: Sequence[Failure]) -> set[str | None]:
    """The ids of conversations among `failed` that were deleted here: their names are kept nowhere."""
    ids = [one.session_id for one in failed if one.session_id is not None]
    if not ids:
        return set()
    # Waits for a deletion under way, whose purge cannot see what is written here.
    held = select(Conversation.id).where(Conversation.id.in_(ids)).order_by(Conversation.id)
    db.execute(held.with_for_update(key_share=True, read=True))
    return set(db.scalars(select(Tombstone.session_id).where(Tombstone.session_id.in_(ids))))


def beat(db: Session, import_id: str, lease_id: str) -> None:
    """Renews the lease, and the reservation of the file. Raises LeaseLost."""
    renewed = _mine(import_id, lease_id).values(lease_until=func.clock_timestamp() + LEASE)
    row = db.execute(renewed.returning(Import.upload)).one_or_none()
    if row is None:
        raise LeaseLost
    if row.upload is not None:
        hold(db, row.upload, RESERVATION)


def mark(db: Session, session_id: str, import_id: str, origin: str | None = None) -> None:
    """Notes on a conversation that this import made it, up to its last event now."""
    made: dict[str, Any] = {"import_id": import_id, "import_seq": Conversation.last_seq}
    if origin is not None:
        made["origin"] = origin
    marked = update(Conversation).where(Conversation.id == session_id).values(**made)
    db.execute(marked.execution_options(synchronize_session=False))


def end(
    db: Session, import_id: str, lease_id: str, state: str, error: str | None = None, *, keep: bool = False
) -> None:
    """It is over. The file's bytes are owed a deletion now, or in an hour with `keep`. Raises LeaseLost."""
    row = db.execute(select(Import).where(Import.id == import_id).with_for_update()).scalar_one_or_none()
    if row is None or row.lease_id != lease_id:
        raise LeaseLost
    close(db, row, state, error, keep=keep)


def release(db: Session, import_id: str, lease_id: str, error: str) -> None:
    """Gives it back to the sweep, to be tried again in a moment; this try counts as none. Raises LeaseLost."""
    again = func.clock_timestamp() + AGAIN_AFTER
    given = _mine(import_id, lease_id).values(
        lease_id=None, lease_until=again, error=error, attempts=func.greatest(Import.attempts - 1, 0)
    )
    if db.execute(given.returning(Import.id)).scalar_one_or_none() is None:
        raise LeaseLost


def due(db: Session, limit: int = 100) -> Sequence[str]:
    """Ids of imports that nobody works on although somebody should; they are due again after a while."""
    now = database_time(db)
    late = select(Import.id).where(Import.state.in_(WORKING), Import.lease_until <= now)
    rows = db.scalars(late.order_by(Import.lease_until).limit(limit).with_for_update(skip_locked=True)).all()
    if rows:
        # The next worker takes it whether or not a dead one's lease is named, which only keeps the queue short.
        patient = update(Import).where(Import.id.in_(rows))
        db.execute(patient.values(lease_id=None, lease_until=now + QUEUE_PATIENCE))
    return rows


def close(db: Session, row: Import, state: str, error: str | None, *, keep: bool) -> None:
    """Ends a locked import, as `end` says."""
    row.state, row.error, row.ended_at = state, error, database_time(db)
    row.lease_id, row.cancel_requested = None, False
    if row.upload is not None and keep:
        hold(db, row.upload, KEPT)
    else:
        let_go(db, row)
    db.flush()


def let_go(db: Session, row: Import) -> None:
    """Makes the bytes of a locked import's file due for deletion."""
    if row.upload is not None:
        give_up(db, row.upload)
        row.upload = None


def let_go_of_deleted(db: Session, now: datetime) -> int:
    """Makes kept files due for deletion that may hold what was deleted since they came; how many.

    A deletion does so by itself (`letting_go`), but not for an import that is at work just then.
    """
    since = select(Tombstone.session_id).where(
        Tombstone.principal_id == Import.principal_id, Tombstone.deleted_at >= Import.created_at
    )
    done: Any = db.execute(letting_go(since.exists(), now), execution_options={"synchronize_session": False})
    return int(done.rowcount)


def letting_go(which: ColumnElement[bool], now: datetime) -> Update:
    """The statement that makes the kept files of those imports due for deletion that are over and `which` is true of.

    A file is not read for what is in it: any deletion of its owner is enough.
    """
    over = Import.upload.is_not(None) & Import.state.not_in(WORKING)
    # What an UPDATE returns is new, so the keys are read before it, of the same rows.
    files = (
        select(Import.id, cast(Import.upload, Text).label("key"))
        .where(over, which)
        .with_for_update()
        .cte("files")
    )
    gone = update(Import).where(Import.id == files.c.id).values(upload=None).cte("let_go")
    return (
        update(Owed).where(Owed.key == files.c.key).values(reserved=False, next_attempt_at=now).add_cte(gone)
    )


def _mine(import_id: str, lease_id: str) -> Any:
    mine = update(Import).where(Import.id == import_id, Import.lease_id == lease_id)
    return mine.execution_options(synchronize_session=False)
