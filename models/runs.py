"""A run's life: start, end, expire (PRODUCT.md 3.1); each append renews its lease (`models/append.py`).

At most one run of a conversation is active, and only its worker writes. A run whose lease is over is dead, and
whoever meets it first ends it as `expired` in its own transaction: start, delete, or upkeep. So a dead worker
never locks anyone out of deleting.

Every verb but `overdue` and `alive` expects the conversation's row to be locked.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, func, select, update
from sqlalchemy.orm import Session

from models.errors import InvalidState, NotFound
from models.history import Conversation, Run
from models.ids import is_id, new_id
from models.reading import MISSING_RUN
from models.rules import LEASE_DEFAULT, lease_end, lease_over
from models.versions import touch_list


@dataclass(frozen=True, slots=True)
class Alive:
    """An active run whose lease holds; `cancel_requested` when somebody has asked it to end."""

    id: str
    cancel_requested: bool


def start(db: Session, conversation: Conversation, now: datetime, lease_seconds: int = LEASE_DEFAULT) -> Run:
    """A new active run. Raises InvalidState("active_run_exists") while another is."""
    refuse_active(db, conversation, now)
    run = Run(
        id=new_id(),
        session_id=conversation.id,
        principal_id=conversation.principal_id,
        status="running",
        cancel_requested=False,
        lease_seconds=lease_seconds,
        lease_expires_at=lease_end(now, lease_seconds),
        created_at=now,
    )
    db.add(run)
    conversation.active_run_id = run.id
    db.flush()
    touch_list(db, conversation.principal_id)  # a row with an active run shows it
    return run


def refuse_active(db: Session, conversation: Conversation, now: datetime) -> None:
    """Ends an overdue run as `expired`; raises InvalidState("active_run_exists") with its id while one is alive."""
    late = refuse_alive(db, conversation, now)
    if late is not None:
        end(db, conversation, late.id, "expired", now)


def refuse_alive(db: Session, conversation: Conversation, now: datetime) -> Run | None:
    """The active run when its lease is over, not yet ended; None without one. Raises as `refuse_active` does."""
    if conversation.active_run_id is None:
        return None
    run = db.get(Run, conversation.active_run_id, populate_existing=True)
    if run is None:  # taken away by hand: a row that is missing keeps nobody from deleting
        conversation.active_run_id = None
        return None
    if lease_over(now, run.lease_expires_at):
        return run
    raise InvalidState(
        "active_run_exists",
        "A run of this conversation is active. Stop it and wait until it has ended, then try again.",
        active_run_id=run.id,
    )


def refuse_ended(run: Run, now: datetime) -> None:
    """Raises InvalidState("run_ended") when the run has ended or its lease is over; `status` says how."""
    if run.status != "running":
        raise InvalidState(
            "run_ended",
            f"This run has ended: {run.status}. Nothing was written.",
            run_id=run.id,
            status=run.status,
        )
    if lease_over(now, run.lease_expires_at):
        raise InvalidState(
            "run_ended",
            "This run's lease ran out, so it counts as expired. Nothing was written; start a new run.",
            run_id=run.id,
            status="expired",
        )


def end(db: Session, conversation: Conversation, run_id: str, status: str, now: datetime) -> None:
    """Ends the active run with `status` and makes it the conversation's last one."""
    db.execute(
        update(Run).where(Run.id == run_id, Run.status == "running").values(status=status, ended_at=now)
    )
    conversation.active_run_id = None
    conversation.last_run_id = run_id
    db.flush()


def overdue(db: Session, now: datetime, limit: int = 200) -> list[tuple[str, str]]:
    """(session, principal) of runs whose lease is over, for upkeep to end one by one; most overdue first."""
    late = select(Run.session_id, Run.principal_id).where(
        Run.status == "running", Run.lease_expires_at <= now
    )
    return [(row[0], row[1]) for row in db.execute(late.order_by(Run.lease_expires_at).limit(limit))]


def alive(db: Connection | Session, session_id: str) -> Alive | None:
    """The conversation's active run, unless its lease is over; what a deletion would be refused for. Needs no lock."""
    wanted = select(Run.id, Run.cancel_requested).where(
        Run.session_id == session_id, Run.status == "running", Run.lease_expires_at > func.clock_timestamp()
    )
    row = db.execute(wanted).one_or_none()
    return None if row is None else Alive(row[0], row[1])


def request_cancel(db: Session, conversation: Conversation) -> str | None:
    """Asks the active run to end, and returns its id; None when no run is active. Again is no error.

    Cooperative: the run's worker sees `cancel_requested` and ends it; one that died is ended by its lease.
    """
    if conversation.active_run_id is not None:
        db.execute(update(Run).where(Run.id == conversation.active_run_id).values(cancel_requested=True))
    return conversation.active_run_id


def cancel(db: Session, conversation: Conversation, run_id: str, now: datetime) -> None:
    """Like `request_cancel`, for one run by name. Raises NotFound for another's, and as `refuse_ended` does."""
    run = db.get(Run, run_id, populate_existing=True) if is_id(run_id) else None
    if run is None or run.session_id != conversation.id:
        raise NotFound(MISSING_RUN)
    refuse_ended(run, now)
    request_cancel(db, conversation)
