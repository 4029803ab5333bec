"""Delete Everywhere as every edge asks for it: the transaction, then the bytes at once, then a worker for the rest."""

from __future__ import annotations

from dataclasses import dataclass

import structlog
from sqlalchemy.orm import Session

from models.accounts import Owner
from models.purge import Deleted, delete_conversation
from models.rules import INLINE_BUDGET
from tasks.news import tell
from tasks.outbox import drain_later, drain_soon
from tasks.resources import Resources

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the deletion did, and whether bytes are still owed at the moment of the answer."""

    deleted: Deleted
    bytes_owed: bool


def delete_now(
    resources: Resources, owner: Owner, session_id: str, budget: float | None = INLINE_BUDGET
) -> Outcome:
    """Deletes a conversation everywhere. After this returns, nothing of it is readable by anyone.

    Without a `budget` its bytes are left to a caller that deletes many, and then wakes one worker for all of them.
    Raises NotFound and InvalidState("active_run_exists"). A failing store or queue fails nothing here.
    """
    with Session(resources.engine) as db, db.begin():
        deleted = delete_conversation(db, owner, session_id)
    tell(resources, session_id)
    owed = bool(deleted.files)
    if deleted.files and budget is not None:
        owed = not drain_soon(resources, session_id, budget)
        if owed:
            drain_later(resources)
    if not deleted.again:
        log.info(
            "conversation_deleted", session_id=session_id, memories=deleted.memories, files=deleted.files
        )
    return Outcome(deleted, bytes_owed=owed)
