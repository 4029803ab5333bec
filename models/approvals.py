"""Approvals: listed, and decided once.

The decision is written under the conversation's lock and appended as an `approval_decided` event beside it, so the
waiting worker sees it in the stream, in the events or in the list, whichever it looks at. Of two opposite decisions
at once, the first to get the lock wins.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from models.accounts import Owner
from models.append import Draft, append, lock_conversation
from models.base import database_time
from models.errors import InvalidState, NotFound
from models.history import Approval
from models.ids import is_id

MISSING = "There is no such approval. Its conversation may have been deleted."


def page(
    db: Session, owner: Owner, limit: int, *, state: str | None = None, below: str | None = None
) -> Sequence[Approval]:
    """Up to `limit` approvals below the id `below`, newest first; of one state when it is named."""
    wanted = select(Approval).where(Approval.principal_id == owner.principal_id)
    if state is not None:
        wanted = wanted.where(
            Approval.decision.is_(None) if state == "pending" else Approval.decision.is_not(None)
        )
    if below is not None:
        wanted = wanted.where(Approval.id < below)
    return db.scalars(wanted.order_by(Approval.id.desc()).limit(limit)).all()


def decide(db: Session, owner: Owner, approval_id: str, decision: str) -> Approval:
    """Decides an approval; the same decision again changes nothing.

    Raises NotFound, and InvalidState("already_decided") for a different decision.
    """
    session_id = None
    if is_id(approval_id):
        mine = select(Approval.session_id).where(
            Approval.id == approval_id, Approval.principal_id == owner.principal_id
        )
        session_id = db.execute(mine).scalar_one_or_none()
    if session_id is None:
        raise NotFound(MISSING)
    try:
        lock_conversation(db, owner, session_id)
    except NotFound:
        raise NotFound(MISSING) from None
    approval = db.get_one(Approval, approval_id, populate_existing=True)
    if approval.decision == decision:
        return approval
    if approval.decision is not None:
        raise InvalidState(
            "already_decided",
            f"This approval was decided already: {approval.decision}.",
            decision=approval.decision,
        )
    approval.decision = decision
    approval.decided_at = database_time(db)
    db.flush()
    append(
        db, owner, session_id, [Draft("approval_decided", {"approval_id": approval_id, "decision": decision})]
    )
    return approval
