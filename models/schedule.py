"""When each piece of recurring work was last handed out: the row decides, so any number of schedulers may run."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Text, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Mapped, Session, mapped_column

from models.base import Base, database_time
from models.rules import EARLIEST

HEARTBEAT = "scheduler"


class Recurring(Base):
    """One entry of the schedule, or the scheduler's own heartbeat."""

    __tablename__ = "schedule"
    name: Mapped[str] = mapped_column(Text, primary_key=True)
    last_at: Mapped[datetime]


def take_turn(db: Session, name: str, every: timedelta) -> bool:
    """True for the one caller whose turn it is to hand out `name`; the turn is taken when the caller commits."""
    now = database_time(db)
    db.execute(insert(Recurring).values(name=name, last_at=EARLIEST).on_conflict_do_nothing())
    turn = update(Recurring).where(Recurring.name == name, Recurring.last_at <= now - every)
    taken = db.execute(turn.values(last_at=now).returning(Recurring.name))
    return taken.scalar_one_or_none() is not None


def beat(db: Session) -> None:
    """Notes that a scheduler is alive."""
    now = database_time(db)
    write = insert(Recurring).values(name=HEARTBEAT, last_at=now)
    db.execute(write.on_conflict_do_update(index_elements=["name"], set_={"last_at": now}))


def seconds_since_beat(db: Session) -> float | None:
    """How long ago a scheduler was seen; None when never."""
    last = db.execute(select(Recurring.last_at).where(Recurring.name == HEARTBEAT)).scalar_one_or_none()
    return None if last is None else (database_time(db) - last).total_seconds()
