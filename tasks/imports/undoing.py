"""Undoing an import: each conversation that it made, and is still here, is deleted everywhere (models/purge.py).

Not those that it only added to. What has an active run is left; it is still marked as made by this import, so the page
names it and the undo can be asked for again. A conversation and its being counted are one transaction.
"""

from __future__ import annotations

import time

import structlog
from sqlalchemy.orm import Session

from models import import_requests
from models.errors import InvalidState, NotFound
from models.purge import Deleted, delete_conversation
from tasks.imports.ledger import Ledger, Stopped
from tasks.news import tell
from tasks.outbox import drain_later

BATCH = 100
DRAIN_SECONDS = 5.0  # between two calls for somebody to let the bytes go

log = structlog.get_logger()


def undo(ledger: Ledger) -> None:
    """Removes what the import made, one conversation a transaction. Raises Stopped, Superseded."""
    resources, last, owed, drained_at = ledger.resources, "00000000-0000-0000-0000-000000000000", False, 0.0
    while True:
        with Session(resources.engine) as db:
            ids = import_requests.conversations(db, ledger.owner, ledger.import_id, last, BATCH)
        if not ids:
            break
        for session_id in ids:
            deleted = _delete(ledger, session_id)
            if deleted is not None:
                tell(resources, session_id)
                owed = owed or bool(deleted.files)
            if owed and time.monotonic() - drained_at > DRAIN_SECONDS:
                drain_later(resources)
                owed, drained_at = False, time.monotonic()
            if ledger.stopping:
                raise Stopped
        last = ids[-1]
    ledger.end("undone")


def _delete(ledger: Ledger, session_id: str) -> Deleted | None:
    """None when it was left because of its active run, or was deleted by somebody else just now."""

    def delete(db: Session) -> Deleted:
        done = delete_conversation(db, ledger.owner, session_id)
        if not done.again:
            ledger.removing(db)
        return done

    try:
        deleted = ledger.write(delete)
    except (InvalidState, NotFound):
        return None
    if deleted.again:
        return None
    ledger.removed += 1
    log.info("conversation_deleted", session_id=session_id, memories=deleted.memories, files=deleted.files)
    return deleted
