"""Reads of one conversation and its runs, each scoped to its principal in the statement itself."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from models.accounts import Owner
from models.errors import NotFound
from models.history import Conversation, Event, Run
from models.ids import is_id

MISSING_RUN = "There is no such run. Its conversation may have been deleted."


def events(db: Session, owner: Owner, session_id: str, after: int, limit: int) -> Sequence[Event]:
    """Up to `limit` events with `seq` above `after`, in order. Raises NotFound."""
    mine = select(Conversation.id).where(
        Conversation.id == session_id, Conversation.principal_id == owner.principal_id
    )
    if not is_id(session_id) or db.execute(mine).scalar_one_or_none() is None:
        raise NotFound("There is no such conversation. It may have been deleted.")
    wanted = select(Event).where(Event.session_id == session_id, Event.seq > after)
    return db.scalars(wanted.order_by(Event.seq).limit(limit)).all()


def run(db: Session, owner: Owner, run_id: str) -> Run:
    """One run of the caller's. Raises NotFound."""
    found = None
    if is_id(run_id):
        mine = select(Run).where(Run.id == run_id, Run.principal_id == owner.principal_id)
        found = db.execute(mine).scalar_one_or_none()
    if found is None:
        raise NotFound(MISSING_RUN)
    return found
