"""The outbox: bytes that are owed a deletion. The rows here are the truth; a queue only wakes workers.

A row is claimed with SKIP LOCKED in the transaction that also settles it, so a killed worker loses nothing
and two workers never meet over a row. It leaves when the store confirmed that its bytes are gone, and at no
other time: there is no attempt limit (PRODUCT.md 3.6; FAULTS.md S100 to S117).

It holds no foreign key to what is gone, and of it only the session's id, until the last row of it left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import (
    ARRAY,
    BindParameter,
    Boolean,
    Index,
    Integer,
    Select,
    Text,
    any_,
    bindparam,
    delete,
    func,
    literal,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.orm import Mapped, Session, mapped_column

from models.base import Base, Id, database_time
from models.rules import BATCH, backoff

BLOCKED = ("credentials", "misconfigured")  # error classes that no patience mends: an operator has to act


class Owed(Base):
    """One object whose bytes must go. `error` is the class of its last failure.

    `reserved` is True while an upload is under way: then the row only waits to see whether it dies.
    """

    __tablename__ = "outbox"
    key: Mapped[str] = mapped_column(Text, primary_key=True)
    session_id: Mapped[str] = mapped_column(Id())
    reserved: Mapped[bool] = mapped_column(Boolean, default=False, server_default=text("false"))
    attempts: Mapped[int] = mapped_column(Integer, default=0, server_default=text("0"))
    next_attempt_at: Mapped[datetime]
    error: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[datetime]
    __table_args__ = (Index("ix_outbox_due", "next_attempt_at"), Index("ix_outbox_session_id", "session_id"))


@dataclass(frozen=True, slots=True)
class Backlog:
    """What is owed now; `blocked` of it waits for an operator, `oldest_seconds` is the oldest row's age.

    `errors` counts rows by the class of their last failure; `next_attempt_at` is the earliest coming try.
    """

    owed: int
    blocked: int
    oldest_seconds: float
    errors: Mapping[str, int]
    next_attempt_at: datetime | None


def claim_due(db: Session, *, session_id: str | None = None, limit: int = BATCH) -> list[str]:
    """Locks up to `limit` due rows, most overdue first, and returns their keys; passes over those another worker holds.

    Of one session when it is named. An upload under way is not due until its reservation runs out.
    """
    # Asked as a scalar, so that it is asked once and the index of due rows is walked.
    now = select(func.clock_timestamp()).scalar_subquery()
    wanted = select(Owed.key).where(Owed.next_attempt_at <= now)
    if session_id is not None:
        wanted = wanted.where(Owed.session_id == session_id)
    return _claimed(db, wanted.order_by(Owed.next_attempt_at), limit)


def claim_after(db: Session, key: str, *, limit: int = BATCH) -> list[str]:
    """Like `claim_due`, for rows that back off too, in the order of their keys from behind `key` on.

    So that a walk through all of them tries each once, whatever the store says of the ones before.
    """
    owed = or_(Owed.reserved.is_(False), Owed.next_attempt_at <= database_time(db))
    return _claimed(db, select(Owed.key).where(Owed.key > key, owed).order_by(Owed.key), limit)


def _claimed(db: Session, wanted: Select[str], limit: int) -> list[str]:
    return list(db.connection().scalars(wanted.limit(limit).with_for_update(skip_locked=True)).all())


def settle(db: Session, keys: Sequence[str], failed: Mapping[str, str], chances: Sequence[float]) -> int:
    """Writes what the store said of claimed `keys`: gone ones leave, `failed` (key to error class) back off.

    `chances` are uniform in [0, 1), one a failed key. Returns how many left. The caller's transaction must be
    the one that claimed them.
    """
    gone = [key for key in keys if key not in failed] if failed else keys
    if gone:
        db.connection().execute(delete(Owed).where(Owed.key == any_(_array(gone))))
    if failed:
        now = database_time(db)
        held = db.execute(select(Owed.key, Owed.attempts).where(Owed.key == any_(_array(list(failed)))))
        tries = {row.key: row.attempts + 1 for row in held}
        db.connection().execute(
            update(Owed)
            .where(Owed.key == bindparam("of"))
            .values(attempts=bindparam("tries"), next_attempt_at=bindparam("at"), error=bindparam("why")),
            [
                {"of": key, "tries": tries[key], "at": now + backoff(tries[key], chance), "why": failed[key]}
                for key, chance in zip(failed, chances, strict=True)
            ],
        )
    return len(gone)


def give_up(db: Session, key: str) -> None:
    """Makes a reservation due at once: the upload it stood for has failed, its bytes are nobody's."""
    db.execute(update(Owed).where(Owed.key == key).values(reserved=False, next_attempt_at=database_time(db)))


def hold(db: Session, key: str, life: timedelta) -> bool:
    """Lets a reservation live for `life` from now; False when there is none, because its bytes are due or gone."""
    held = update(Owed).where(Owed.key == key, Owed.reserved, Owed.next_attempt_at > func.clock_timestamp())
    longer = held.values(next_attempt_at=func.clock_timestamp() + life)
    return db.execute(longer.returning(Owed.key)).scalar_one_or_none() is not None


def backlog(db: Session) -> Backlog:
    """The figures that an operator watches; reservations of live uploads are not counted."""
    now = database_time(db)
    counted = or_(Owed.reserved.is_(False), Owed.next_attempt_at <= now)
    rows = db.execute(
        select(Owed.error, func.count(), func.min(Owed.created_at), func.min(Owed.next_attempt_at))
        .where(counted)
        .group_by(Owed.error)
    ).all()
    errors = {row[0]: row[1] for row in rows if row[0] is not None}
    return Backlog(
        owed=sum(row[1] for row in rows),
        blocked=sum(errors.get(name, 0) for name in BLOCKED),
        oldest_seconds=max(((now - row[2]).total_seconds() for row in rows), default=0.0),
        errors=errors,
        next_attempt_at=min((row[3] for row in rows), default=None),
    )


def owed_of(db: Session, session_id: str) -> int:
    """How many of a deleted conversation's objects still have bytes, uploads under way included."""
    return db.execute(select(func.count()).where(Owed.session_id == session_id)).scalar_one()


def unexplained(db: Session, keys: Sequence[str]) -> set[str]:
    """Those of `keys` that no outbox row names."""
    named = set(db.scalars(select(Owed.key).where(Owed.key == any_(_array(keys)))))
    return set(keys) - named


def _array(keys: Sequence[str]) -> BindParameter[Sequence[str]]:
    return literal(list(keys), ARRAY(Text))
